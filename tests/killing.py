"""Kill real processes at random points: run as ``python killing.py CASE SIZE FOLDER N_KILLS SEED``.

The case runs in forked children. Each is killed with SIGKILL after a random time; the last one is
left alone. A case writes its result into the folder and, for every evaluation or step, one byte into
``calls``, which survives the kill.
"""

import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

LONGEST = 0.1  # seconds that a child lives


def count_call(folder):
    descriptor = os.open(folder / "calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, b".")
    os.close(descriptor)


def n_calls(folder):
    return (folder / "calls").stat().st_size if (folder / "calls").exists() else 0


def minimize_case(folder, size):
    """A noisy quadratic, block by block, with a checkpoint after every step."""
    import scgd

    def fun(x, xi):
        count_call(folder)
        time.sleep(5e-4)
        return float(np.sum((x - xi) ** 2))

    result = scgd.minimize(
        fun,
        np.zeros(12),
        sample=lambda rng: 1.0 + 0.1 * rng.standard_normal(12),
        block_size=4,
        max_evals=size,
        seed=2,
        checkpoint=scgd.Checkpoint(folder / "run.npz", every=0.0),
    )
    np.savez(folder / "result.npz", x=result.x, weights=result.weights, nfev=result.nfev)


CASES = {"minimize": minimize_case}


def run_child(case, folder, size):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            CASES[case](folder, size)
            code = 0
        finally:
            os._exit(code)
    return child


def main(case, size, folder, n_kills, seed):
    random.seed(seed)
    folder, killed, progressed = Path(folder), 0, 0
    with tempfile.TemporaryDirectory() as other:
        CASES[case](Path(other), 80)  # compiled here, so that children start in no time
    while not (folder / "result.npz").exists():
        before = n_calls(folder)
        child = run_child(case, folder, size)
        if killed < n_kills:
            time.sleep(random.uniform(0.0, LONGEST))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            killed += 1
            progressed += n_calls(folder) > before
        elif status:
            sys.exit(1)
    print(killed, progressed)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
