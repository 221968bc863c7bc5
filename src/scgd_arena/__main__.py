"""``python -m scgd_arena``: the arena from the command line."""

import sys

from scgd_arena.command import main

if __name__ == "__main__":
    sys.exit(main())
