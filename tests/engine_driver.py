"""A run through somebody else's workers: ``python engine_driver.py ENGINE FOLDER [deadly]``.

With ``deadly`` the evaluation that finds no file ``died`` in the folder makes it and kills its worker.
The point found is written to ``x.npy``.
"""

import os
import signal
import sys
from functools import partial
from pathlib import Path

import numpy as np

import scgd

KEYWORDS = {"x0": np.zeros(6), "max_evals": 60, "seed": 3, "scale": 1.0}


def bowl(x):
    return float(np.sum(np.arange(1, 7) * (x - 1) ** 2))


def deadly(x, died):
    if x.any() and not os.path.exists(died):  # not the first step: something is saved by then
        open(died, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return bowl(x)


def run(fun, folder, workers):
    saved = scgd.Checkpoint(folder / "run.npz", every=0.0)
    result = scgd.minimize(
        fun,
        **KEYWORDS,
        method=scgd.SCGD("uniform", block_size=3),
        workers=workers,
        checkpoint=saved,
    )
    np.save(folder / "x.npy", result.x)


def by_ray(fun, folder, pool):
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        if pool:
            from ray.util.multiprocessing import Pool

            run(fun, folder, Pool(2).map)
        else:
            run(fun, folder, lambda f, tasks: ray.get([ray.remote(f).remote(t) for t in tasks]))
    finally:
        ray.shutdown()


def by_mpi(fun, folder):
    from mpi4py.futures import MPIPoolExecutor

    with MPIPoolExecutor() as pool:
        run(fun, folder, pool)


ENGINES = {
    "ray-tasks": partial(by_ray, pool=False),
    "ray-pool": partial(by_ray, pool=True),
    "mpi": by_mpi,
}

if __name__ == "__main__":
    here = Path(sys.argv[2])
    chosen = partial(deadly, died=str(here / "died")) if "deadly" in sys.argv else bowl
    ENGINES[sys.argv[1]](chosen, here)
