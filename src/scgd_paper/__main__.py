"""``python -m scgd_paper``: the paper's experiments from the command line."""

import sys

from scgd_paper.commands import main

if __name__ == "__main__":
    sys.exit(main())
