"""``python -m scgd``: the command line."""

import sys

from scgd.cli import main

if __name__ == "__main__":
    sys.exit(main())
