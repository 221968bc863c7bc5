"""Passes to a relative gap of 1e-6 by sampling rule alone: ``python benchmarks/bench_passes.py``.

No leaps, no extrapolation, no working sets: :func:`scgd_paper.linear.solve` moves one coordinate at a
time by its exact curvature (squares) or a bound of it (logistic), in the order of the rule; the
last rows visit samples (dual coordinates). A pass is as many visits as there are coordinates,
long and short columns alike. Medians over seeds; the first column of figures is of
the data the rule was made on, the second of fresh seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import toeplitz

from scgd import Adaptive, Musketeer, Uniform
from scgd.linear import LOSSES
from scgd.linear.dual import Ascent
from scgd.linear.task import Design, Task
from scgd_paper.linear import solve

GAP = 1e-6
RULES = {
    "adaptive": Adaptive(),
    "shuffled": Adaptive(least=1.0),
    "uniform": Uniform(),
    "musketeer": Musketeer(mixing=0.5),
}
SEEDS = {"design": (0, 1, 2), "fresh": (71, 72, 73)}
MOST = 400


class Cell(NamedTuple):
    """Data by seed, the penalties, the loss, and whether difficulty is uneven."""

    make: Callable[[int], tuple[Any, Any, float, float]]
    loss: str
    uneven: bool


def uneven(n: int, p: int, seed: int, power: float = 1.0) -> tuple[Any, Any]:
    """Make columns that fade."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * np.arange(1.0, p + 1) ** -power
    return np.asfortranarray(X), X @ rng.normal(size=p) + 0.1 * rng.normal(size=n)


def correlated(n: int, p: int, rho: float, seed: int) -> tuple[Any, Any]:
    """Make rows whose neighbouring entries are alike."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) @ np.linalg.cholesky(toeplitz(rho ** np.arange(p))).T
    return np.asfortranarray(X), X[:, ::10].sum(axis=1) + rng.normal(size=n)


def words(n: int, p: int, nnz: int, seed: int) -> tuple[Any, Any]:
    """Make sparse unit rows with words as frequent as 1 / rank."""
    rng = np.random.default_rng(seed)
    law = 1.0 / np.arange(1.0, p + 1)
    indices = rng.choice(p, (n, nnz), p=law / law.sum())
    X = sparse.csr_array((np.full(n * nnz, nnz**-0.5), indices.ravel(), np.arange(0, n * nnz + 1, nnz)),
                         shape=(n, p))  # fmt: skip
    X.sum_duplicates()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, X @ rng.normal(size=p) * 3 + 0.3 * rng.normal(size=n)


def l1_alpha(X: Any, y: Any, kind: str, part: float) -> float:
    """Return a part of the l1 penalty from which on all coefficients are zero."""
    return part * float(np.abs(X.T @ y).max()) / len(y) * (0.5 if "logistic" in kind else 1.0)


def normal(seed: int) -> tuple[Any, Any, float, float]:
    """Make columns that are alike."""
    X, y = uneven(600, 300, seed, 0.0)
    return X, y, 0.1, 0.0


def fading(seed: int) -> tuple[Any, Any, float, float]:
    """Make columns that fade."""
    X, y = uneven(600, 300, seed)
    return X, y, 1e-4, 0.0


def fading_and_correlated(seed: int) -> tuple[Any, Any, float, float]:
    """Make correlated columns that fade."""
    X, y = correlated(600, 300, 0.9, seed)
    return X * np.arange(1.0, 301) ** -1.0, y, 1e-3, 0.0


def chain(seed: int, l1: float) -> tuple[Any, Any, float, float]:
    """Make neighbours that are alike."""
    X, y = correlated(600, 300, 0.9, seed)
    return X, y, 0.0 if l1 else 0.3, l1_alpha(X, y, "lasso", l1)


def hard_few(seed: int) -> tuple[Any, Any, float, float]:
    """Make thirty columns that resemble each other among three hundred that do not."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 300))
    X[:, :30] += 3 * rng.normal(size=(600, 1))
    return X, X @ rng.normal(size=300) + rng.normal(size=600), 1e-2, 0.0


def wide(seed: int) -> tuple[Any, Any, float, float]:
    """Make far more columns than rows, ten of them in use."""
    X, _ = uneven(200, 2000, seed, 0.0)
    y = X[:, :10].sum(axis=1) + np.random.default_rng(seed).normal(size=200)
    return X, y, 0.0, l1_alpha(X, y, "lasso", 0.1)


def signs_of(made: tuple[Any, Any, float, float]) -> tuple[Any, Any, float, float]:
    """Return the data of a classifier."""
    return made[0], np.where(made[1] > 0, 1.0, -1.0), *made[2:]


def text(seed: int) -> tuple[Any, Any, float, float]:
    """Make sparse rows."""
    X, y = words(3000, 6000, 30, seed)
    return X, y, 0.0, l1_alpha(X, y, "lasso", 0.05)


CELLS = {
    "iid, l2": Cell(normal, "squared", False),
    "fading, l2": Cell(fading, "squared", False),
    "fading and correlated, l2": Cell(fading_and_correlated, "squared", True),
    "AR 0.9, l2": Cell(lambda seed: chain(seed, 0.0), "squared", False),
    "AR 0.9, l1": Cell(lambda seed: chain(seed, 0.05), "squared", True),
    "30 hard of 300, l2": Cell(hard_few, "squared", True),
    "200 x 2000, l1": Cell(wide, "squared", True),
    "text, l1": Cell(text, "squared", True),
    "30 hard of 300, logistic": Cell(lambda seed: signs_of(hard_few(seed)), "logistic", True),
}


def passes(cell: Cell, seed: int) -> dict[str, float]:
    """Return the passes of each rule to the gap."""
    X, y, l2, l1 = cell.make(seed)
    parts = {"loss": cell.loss, "l2": l2, "l1": l1, "batch_size": None, "seed": seed}
    losses = {}
    for name, rule in RULES.items():
        losses[name] = solve(X, y, policy=rule, n_passes=MOST, **parts).history["loss"]  # type: ignore[arg-type]
    far = solve(X, y, policy=RULES["adaptive"], n_passes=5 * MOST, record_every=None, **parts)  # type: ignore[arg-type]
    least = min(float(far.history["loss"][-1]), *(float(path.min()) for path in losses.values()))
    return {name: first_below(path, least) for name, path in losses.items()}


def first_below(path: Any, least: float) -> float:
    """Return the first record within the gap, or infinity."""
    found = np.flatnonzero(path - least <= GAP * (path[0] - least))
    return float(found[0]) if len(found) else np.inf


def dual_passes(loss: str, C: float, seed: int) -> dict[str, float]:
    """Return the passes over samples of each rule to a certified gap."""
    X, y = words(3000, 6000, 30, seed)
    signs, n = np.where(y > 0, 1.0, -1.0), len(y)
    out = {}
    for name, rule in (RULES | {"adaptive": Adaptive(least=0.5)}).items():
        task = Task(Design(X), signs, np.full(n, 1.0 / n), LOSSES.index(loss), 0.0, 1.0 / (C * n),
                    0.0, False, GAP, MOST, seed)  # fmt: skip
        ascent = Ascent(task, rule, None, 0.0)
        out[name] = float(ascent.n_passes) if ascent.run() else np.inf
    return out


def main() -> None:
    """Print a row per cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cells whose name contains this")
    only = parser.parse_args().only
    rows: dict[str, tuple[Callable[[int], dict[str, float]], bool]] = {
        name: (lambda seed, cell=cell: passes(cell, seed), cell.uneven)  # type: ignore[misc]
        for name, cell in CELLS.items()
    }
    for loss in ("logistic", "squared-hinge", "hinge"):
        for C in (1.0, 100.0):
            rows[f"samples of text, {loss} C={C:g}"] = (
                lambda seed, loss=loss, C=C: dual_passes(loss, C, seed), C > 1)  # type: ignore[misc]  # fmt: skip
    print(f"{'cell (* uneven)':42}" + "".join(f"{name:>18}" for name in RULES))
    for name, (count, hard) in rows.items():
        if only not in name:
            continue
        medians = {kind: [count(seed) for seed in seeds] for kind, seeds in SEEDS.items()}
        told = ""
        for rule in RULES:
            both = [np.median([found[rule] for found in medians[kind]]) for kind in SEEDS]
            told += f"{both[0]:9.0f}{both[1]:9.0f}"
        print(f"{name + (' *' if hard else ''):42}{told}", flush=True)


if __name__ == "__main__":
    main()
