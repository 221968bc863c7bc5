"""What ``import scgd`` costs: processor time beside that of what it is built on.

Each row is the least of several fresh processes, so that other work on the machine counts little;
the ratio to ``import numpy, scipy.optimize`` is what travels between machines.
"""

import argparse
import os
import subprocess
import sys

CODE = "import time; began = time.process_time(); {}; print(time.process_time() - began)"
IMPORTS = {
    "import numpy": "import numpy",
    "import numpy, scipy.optimize": "import numpy, scipy.optimize",
    "import scgd": "import scgd",
    "import scgd, its command line": "import scgd.cli; scgd.cli.build_parser()",
    "import scgd, scgd.linear.SCGDRegressor": "import scgd; scgd.linear.SCGDRegressor",
    "import numpy, numba": "import numpy, numba",
}


def seconds(statement, repeats):
    """Return the least processor time of a statement in processes that have compiled sources."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", CODE.format(statement)]
    return min(
        float(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)
        for _ in range(repeats + 1)
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    found = {name: seconds(statement, repeats) for name, statement in IMPORTS.items()}
    floor = found["import numpy, scipy.optimize"]
    for name, spent in found.items():
        print(f"{name:42}{spent:7.3f} s {spent / floor:6.2f} of numpy, scipy.optimize")
