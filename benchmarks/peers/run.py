"""The peer arena as a script: ``python benchmarks/peers/run.py [--full]``, as ``scgd compare``."""

import argparse
import sys

from scgd.compare.command import add_parser

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers(required=True))
    args = parser.parse_args(["compare", *sys.argv[1:]])
    sys.exit(args.run(args))
