"""The settings behind the published curves of the linear models, and where the curves are."""

import os
from pathlib import Path

import numpy as np
import pytest

from scgd import InverseLog, InverseTime, Musketeer, SphereSmoothing
from scgd_paper.linear import block_data, solve

FOLDER = os.environ.get("SCGD_PUBLISHED")
needs_curves = pytest.mark.skipif(
    FOLDER is None, reason="SCGD_PUBLISHED names no folder with the published curves"
)
N_PASSES = 200
RATES = {"ridge": (1.0, 10.0), "logistic": (10.0, 5.0)}
BLOCKS = {"ridge": 10, "logistic": 5}
GAINS = ("average", "absolute", "square")
METHODS = ("full", "uniform", "sphere", *(f"musketeer-{gain}" for gain in GAINS))
WITH_IMPORTANCE = tuple(f"musketeer-{gain}-importance" for gain in GAINS)


def curves(name):
    with np.load(Path(FOLDER) / f"{name}.npz") as file:
        return {key: file[key] for key in file.files}


def zeroth_order_problem(kind, n_samples=10_000, n_coords=250):
    return block_data(kind, n_samples, n_coords, block=BLOCKS[kind])


def zeroth_order(kind, method, n_coords):
    """Return the parts of a method as the authors ran it at zeroth order."""
    scale, offset = RATES[kind]
    parts = {
        "policy": "full",
        "estimator": "forward",
        "learning_rate": InverseTime(scale, offset, per="pass"),
        "radius": InverseTime(1.0, 1.0, per="pass"),
    }
    if method == "full":
        return parts | {"radius": InverseTime(1.0, 0.0, per="pass"), "shared_sample": False}
    if method == "sphere":
        return parts | {"estimator": SphereSmoothing(unbiased=False)}
    if method == "uniform":
        return parts | {"policy": "uniform"}
    gain = method.split("-")[1]
    length = 15 if n_coords == 250 else int(np.sqrt(n_coords))
    parts |= {"policy": Musketeer(gain=gain, memory="run", length=length)}
    return parts | ({"importance": "relative"} if method.endswith("importance") else {})


def run_zeroth_order(kind, method, problem, seeds, record_every=None):
    """Return the objective of runs with our own draws, one row per seed."""
    result = solve(
        problem.X, problem.y, loss=problem.loss, l2=problem.l2, n_passes=N_PASSES, seed=seeds,
        record_every=record_every, **zeroth_order(kind, method, problem.X.shape[1]),
    )  # fmt: skip
    return result.history["loss"]


def first_order_problem(kind):
    return block_data(kind, block=1, truth=(0.0, 1.0))


def first_order(kind, method):
    """Return the parts of a method as the authors ran it at first order.

    Their logistic gradient is that of the cross-entropy at targets -1 and 1.
    """
    parts = {
        "policy": "full",
        "batch_size": 8 if kind == "ridge" else 32,
        "learning_rate": InverseTime(1.0, 0.0 if method == "sgd" else 1.0, per="pass"),
        "n_passes": 100 if kind == "ridge" else 1000,
        "loss": "squared" if kind == "ridge" else "cross-entropy",
        "record_loss": "squared" if kind == "ridge" else "logistic",
    }
    if method == "sgd":
        return parts
    if method == "uniform":
        return parts | {"policy": "uniform"}
    rule = {"gain": "average", "normalization": "softmax", "rescale": True, "length": 15}
    if kind == "ridge":
        policy = Musketeer(**rule, memory="phase", mixing=InverseLog(1.0))
    else:
        policy = Musketeer(**rule, memory="visits", sharpness=1.7, mixing=0.0)
    return parts | {"policy": policy, "importance": "relative" if method == "adaptive" else None}


def run_first_order(kind, method, problem, seeds):
    """Return the objective of runs with our own draws, one row per seed."""
    parts = first_order(kind, method)
    result = solve(problem.X, problem.y, l2=problem.l2, seed=seeds, record_every=None, **parts)
    return result.history["loss"]
