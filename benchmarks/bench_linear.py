"""Time the linear engine against its floors and rivals: ``python benchmarks/bench_linear.py``.

Kernels: minima over short chunks run in turn in one process, one thread; the floor is a random row
and its dot product, written in numba. Fits: wall time until the objective is within a relative gap
of 1e-3, for budgets of passes or epochs that grow by a half, the rivals with several schedules and
first rates. Start-up: a fit in a fresh process, with an empty and with a filled cache of
compiled code.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numba import njit
from scipy import sparse

from scgd import InverseTime, Musketeer, SphereSmoothing
from scgd.linear import SCGDClassifier, SCGDRegressor
from scgd.linear.data import REASSOCIATE, transposed
from scgd.random import below, stream
from scgd_paper.linear import block_data, solve
from scgd_paper.linear.columns import run_columns
from scgd_paper.linear.engine import run_rows
from scgd_paper.linear.inputs import as_problem
from scgd_paper.linear.objective import objective
from scgd_paper.linear.solver import DEFAULT
from scgd_paper.linear.walks import Run, Timetable

GAP = 1e-3
ETAS = (1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0)
ALPHA = 1e-4


@njit(error_model="numpy", fastmath=REASSOCIATE)
def floor(X, theta, words, n_steps):  # type: ignore[no-untyped-def]
    """Gather random rows and multiply."""
    total = 0.0
    for _ in range(n_steps):
        i = below(words, X.shape[0])
        for j in range(X.shape[1]):
            total += X[i, j] * theta[j]
    return total


def chunk(problem: Any, batch: int, n_steps: int, **parts: Any) -> Callable[[], None]:
    """Return a function that runs so many steps of a method in one compiled call."""
    n_coords = problem.n_features
    method = replace(DEFAULT, learning_rate=1e-4, radius=0.01, **parts)
    run = Run(problem, method, batch, True, np.zeros(n_coords), 0)
    table = Timetable(method, n_coords, n_steps, 1)
    rates, mixings = table.chunk(0, n_steps), table.mixings(0, n_steps)
    loop = run_columns if run.by_columns else run_rows
    none = np.empty((0, n_coords))
    return lambda: loop(problem, run.walk, run.state, *rates, mixings, n_steps, none)


def best_times(chunks: dict[str, tuple[Callable[[], Any], int]], repeats: int) -> dict[str, float]:
    """Return the least nanoseconds per step of each chunk, run in turn."""
    for run, _ in chunks.values():
        run()
    best = dict.fromkeys(chunks, np.inf)
    for _ in range(repeats):
        for name, (run, n_steps) in chunks.items():
            began = time.perf_counter()
            run()
            best[name] = min(best[name], (time.perf_counter() - began) / n_steps * 1e9)
    return best


def kernels(repeats: int) -> None:
    """Print steps against the floor."""
    ridge = block_data("ridge")
    policy, n = Musketeer(length=15), 3000
    squared = as_problem(ridge.X, ridge.y, l2=ridge.l2)
    logistic = as_problem(ridge.X, np.sign(ridge.y), loss="logistic", l2=ridge.l2)
    words, theta = stream(np.random.SeedSequence(0)), np.ones(250)
    best = best_times(
        {
            "floor": (lambda: floor(ridge.X, theta, words, n), n),
            "zeroth order, squared": (
                chunk(squared, 1, n, policy=policy, estimator="forward"), n),
            "zeroth order, logistic": (
                chunk(logistic, 1, n, policy=policy, estimator="forward"), n),
            "first order, batch 8": (chunk(squared, 8, n // 8, policy=policy), n // 8),
        },
        repeats,
    )  # fmt: skip
    print("Musketeer steps, n=10000 p=250 T=15 float64")
    for name, ns in best.items():
        floors = ns / best["floor"] / (8 if "batch 8" in name else 1)
        print(f"  {name:<24}{ns:8.0f} ns  {floors:6.2f} floors{' of 8' * ('batch' in name)}")


def columns_against_rows(repeats: int) -> None:
    """Print the two paths where there are many more features than samples."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 20_000))
    problem = as_problem(X, rng.normal(size=200))
    n = 3000
    chunks = {
        "rows": (chunk(problem, 1, n // 10), n // 10),
        "columns": (chunk(problem._replace(columns=transposed(X)), 1, n), n),
    }
    best = best_times(chunks, repeats)
    ratio = best["rows"] / best["columns"]
    print(f"n=200 p=20000: rows {best['rows']:.0f} ns, columns {best['columns']:.0f} ns, "
          f"{ratio:.0f} times faster")  # fmt: skip


def time_to_gap(
    make: Callable[[int], Any], X: Any, y: Any, problem: Any, best: float, most: int
) -> str:
    """Return the wall time of the smallest budget that reaches the gap."""
    budget = 1
    while budget <= most:
        model = make(budget)
        began = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - began
        theta = np.append(np.ravel(model.coef_), np.ravel(model.intercept_))
        gap = float(objective(problem, theta[None])[0]) / best - 1
        if gap <= GAP:
            return f"{seconds:.3f} s ({budget} passes)"
        budget = max(budget + 1, int(1.5 * budget))
    return f"not reached in {most} passes (gap {gap:.2g})"


def uneven_dense(quick: bool) -> tuple[Any, Any, Any, float]:
    """Return dense data whose columns fade like 1/k, its problem and the least objective."""
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(0)
    n, p = (2000, 300) if quick else (10_000, 1000)
    X = rng.normal(size=(n, p)) * np.arange(1.0, p + 1) ** -1.0
    y = X @ rng.normal(size=p) + 0.1 * rng.normal(size=n)
    problem = as_problem(X, y, l2=ALPHA)
    exact = Ridge(alpha=ALPHA * n).fit(X, y)
    theta = np.append(exact.coef_, exact.intercept_)
    return X, y, problem, float(objective(problem, theta[None])[0])


def text_like(quick: bool) -> tuple[Any, Any, Any, float]:
    """Return sparse counts with words as frequent as 1/rank, their problem and least objective."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    n, p, nnz = (3000, 20_000, 50) if quick else (20_000, 100_000, 100)
    ranks = np.arange(1.0, p + 1)
    indices = rng.choice(p, (n, nnz), p=ranks**-1 / np.sum(ranks**-1))
    counts = sparse.csr_array((np.full(n * nnz, nnz**-0.5), indices.ravel(),
                               np.arange(0, n * nnz + 1, nnz)), shape=(n, p))  # fmt: skip
    counts.sum_duplicates()
    counts.indices, counts.indptr = counts.indices.astype("i4"), counts.indptr.astype("i4")
    y = np.where(counts @ rng.normal(size=p) + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    problem = as_problem(counts, y, loss="logistic", l2=ALPHA)
    exact = LogisticRegression(C=1 / (ALPHA * n), tol=1e-6, max_iter=3000).fit(counts, y)
    theta = np.append(exact.coef_[0], exact.intercept_)
    return counts, y, problem, float(objective(problem, theta[None])[0])


def against_sgd(quick: bool) -> None:
    """Print times to the gap against scikit-learn's SGD with several rates and schedules."""
    import warnings

    from sklearn.linear_model import SGDClassifier, SGDRegressor

    warnings.simplefilter("ignore")
    schedules = [{}, {"learning_rate": "optimal"}] + [
        {"learning_rate": name, "eta0": eta} for name in ("invscaling", "adaptive") for eta in ETAS
    ]
    classifier = partial(SGDClassifier, "log_loss")
    for name, make, ours, theirs in (
        ("uneven dense squared", uneven_dense, SCGDRegressor, SGDRegressor),
        ("sparse logistic", text_like, SCGDClassifier, classifier),
    ):
        X, y, problem, best = make(quick)
        rivals = [
            (ours, {"policy": policy, "tol": 0.0})
            for policy in ("adaptive", "musketeer", "uniform")
        ]
        rivals += [(theirs, {"tol": None, **schedule}) for schedule in schedules]
        print(f"{name}, {X.shape[0]} x {X.shape[1]}: time to a relative gap of {GAP}")
        for kind, parts in rivals:
            told = time_to_gap(
                lambda b, kind=kind, parts=parts: kind(
                    alpha=ALPHA, max_iter=b, random_state=0, **parts
                ), X, y, problem, best, 60 if quick else 200,
            )  # fmt: skip
            label = "SCGD" if kind is ours else "SGD"
            print(f"  {label:<6}{', '.join(f'{k}={v}' for k, v in parts.items()):<48}{told}")


def panels(quick: bool) -> None:
    """Print the time of the paper's zeroth-order panels: 24 problems, 9 methods, 20 runs."""
    sizes = (20, 50) if quick else (20, 50, 100, 200)
    n_samples = (1000,) if quick else (1000, 2000, 5000)
    problems = [
        block_data(kind, n, p, block=10 if kind == "ridge" else 5)
        for kind in ("ridge", "logistic") for n in n_samples for p in sizes
    ]  # fmt: skip
    methods = [{"policy": "full", "shared_sample": False}, {"policy": "uniform"}]
    methods += [{"policy": "full", "estimator": SphereSmoothing(unbiased=False)}]
    for gain in ("average", "absolute", "square"):
        policy = Musketeer(gain=gain, memory="run")
        methods += [{"policy": policy}, {"policy": policy, "importance": "relative"}]
    rate, radius = InverseTime(1.0, 10.0, per="pass"), InverseTime(1.0, 1.0, per="pass")
    parts = {"estimator": "forward", "learning_rate": rate, "radius": radius, "n_passes": 200}
    for method in methods:
        solve(problems[0].X, problems[0].y, **{**parts, "n_passes": 1} | method)
    began = time.perf_counter()
    for problem in problems:
        for method in methods:
            solve(problem.X, problem.y, loss=problem.loss, l2=problem.l2, seed=range(20),
                  **parts | method)  # fmt: skip
    seconds = time.perf_counter() - began
    print(f"{len(problems)} panels x {len(methods)} methods x 20 runs: {seconds:.1f} s "
          f"on {os.cpu_count()} cores")  # fmt: skip


def start_up() -> None:
    """Print the time of a first fit in a fresh process, cold and cached."""
    code = (
        "import numpy as np, time; t = time.perf_counter()\n"
        "from scgd.linear import SCGDRegressor\n"
        "X = np.random.default_rng(0).normal(size=(100, 5)); u = time.perf_counter()\n"
        "SCGDRegressor().fit(X, X[:, 0]); v = time.perf_counter()\n"
        "print(f'import {u - t:.2f} s, fit {v - u:.2f} s')"
    )
    with tempfile.TemporaryDirectory() as folder:
        for name in ("cold", "cached"):
            out = subprocess.run(
                [sys.executable, "-c", code], env={**os.environ, "NUMBA_CACHE_DIR": folder},
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            print(f"first fit, {name}: {out.stdout.strip()}")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small problems, few repeats")
    parts = {
        "kernels": lambda quick: kernels(50 if quick else 400),
        "columns": lambda quick: columns_against_rows(3 if quick else 10),
        "sgd": against_sgd,
        "panels": panels,
        "start-up": lambda quick: start_up(),
    }
    parser.add_argument("--only", choices=parts, action="append", help="some of the tables")
    args = parser.parse_args()
    for name in args.only or parts:
        parts[name](args.quick)


if __name__ == "__main__":
    main()
