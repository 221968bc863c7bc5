"""Time fits against the best rivals on cells drawn from a seed: ``bench_linear_fresh.py --seed 7``.

CPU milliseconds of ``fit`` until the objective is within a relative gap of 1e-4 and 1e-6 of the
least that anyone finds, (f - f*) / (f(best constant) - f*), intercepts fitted, compiled code warm,
the least of three. A solver is given a ladder of tolerances and charged the cheapest that reaches
the gap; what is not reached counts as 50. ``--law`` compares the adaptive law with shuffled
sweeps instead. Rivals: scikit-learn with liblinear, and celer, skglm, adelie and glum where they
are installed. Run it with one thread: OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from scgd import Adaptive
from scgd.linear import SCGDClassifier, SCGDRegressor

TOLS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)
PATIENCE = 4.0
"""Seconds after which a solver gets no smaller tolerance."""
UNREACHED = 50.0


class Cell(NamedTuple):
    """A problem: data, loss, penalty and its strength."""

    name: str
    X: Any
    y: Any
    loss: str
    penalty: str
    alpha: float


def text(rng: Any, n: int, p: int, k: int) -> Any:
    """Make sparse unit rows with words as frequent as a power of their rank."""
    law = np.arange(1.0, p + 1) ** -rng.uniform(0.6, 1.1)
    places = rng.choice(p, (n, k), p=law / law.sum())
    X = sparse.csr_array((np.ones(n * k), places.ravel(), np.arange(0, n * k + 1, k)), shape=(n, p))
    X.sum_duplicates()
    X.data *= np.log(n / (1.0 + np.bincount(X.indices, minlength=p)))[X.indices] + 1.0
    X = sparse.csr_array(X.multiply(1.0 / np.sqrt((X * X).sum(axis=1))[:, None]))
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def dense(rng: Any, n: int, p: int) -> Any:
    """Make correlated columns of uneven scales, not centred."""
    X = rng.normal(size=(n, p)) + rng.uniform(0, 2) * rng.normal(size=(n, 1))
    return np.asfortranarray(X * 10 ** rng.uniform(-0.5, 0.5, p) + rng.normal(size=p))


def cells(seed: int) -> Iterator[Cell]:
    """Draw the cells."""
    rng = np.random.default_rng(seed)
    shapes = {
        "text": (8000, 20000),
        "wide": (200, 8000),
        "tall": (100_000, 30),
        "dense": (2000, 300),
    }
    for name, (n, p) in shapes.items():
        X = text(rng, n, p, 50) if name == "text" else dense(rng, n, p)
        w = rng.normal(size=p) * (rng.uniform(size=p) < max(0.05, 20 / p))
        z = X @ w
        z = (z - z.mean()) / z.std()
        y, labels = z + rng.normal(size=n), np.where(z + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
        first = float(np.abs(X.T @ (y - y.mean())).max()) / n
        half = float(np.abs(X.T @ (labels - labels.mean())).max()) / (2 * n)
        part = 10 ** rng.uniform(-2, -1)
        yield Cell(f"{name} ridge", X, y, "squared", "l2", 1e-3 if name != "text" else 1.0 / n)
        yield Cell(f"{name} lasso", X, y, "squared", "l1", part * first)
        yield Cell(f"{name} enet", X, y, "squared", "elasticnet", 2 * part * first)
        yield Cell(f"{name} l2 logistic", X, labels, "logistic", "l2", 10 ** rng.uniform(0, 1) / n)
        yield Cell(f"{name} l1 logistic", X, labels, "logistic", "l1", part * half)
        yield Cell(f"{name} hinge", X, labels, "hinge", "l2", 1.0 / n if name == "text" else 1e-2)


def value(cell: Cell, w: Any, b: float) -> float:
    """Return the objective."""
    z, y = cell.X @ w + b, cell.y
    risk = {
        "squared": lambda: 0.5 * (z - y) ** 2,
        "logistic": lambda: np.logaddexp(0, -y * z),
        "hinge": lambda: np.maximum(1 - y * z, 0),
    }[cell.loss]().mean()
    share = {"l1": 1.0, "l2": 0.0, "elasticnet": 0.5}[cell.penalty]
    return float(risk + cell.alpha * (share * np.abs(w).sum() + 0.5 * (1 - share) * w @ w))


def ours(cell: Cell, **parts: Any) -> Callable[[float], Any]:
    """Return this package's estimator by tolerance."""
    kind: Any = SCGDRegressor if cell.loss == "squared" else SCGDClassifier
    return lambda tol: kind(cell.loss, penalty=cell.penalty, alpha=cell.alpha, l1_ratio=0.5, tol=tol,
                            random_state=0, **parts)  # fmt: skip


class Wrapped:
    """A fit function as an estimator."""

    def __init__(self, call: Callable[[Any, Any], tuple[Any, float]]) -> None:
        self.call = call

    def fit(self, X: Any, y: Any) -> Wrapped:
        """Fit."""
        self.coef_, self.intercept_ = self.call(X, y)
        return self


def rivals(cell: Cell) -> dict[str, Callable[[float], Any]]:
    """Return the rivals' estimators by tolerance."""
    n, a = len(cell.y), cell.alpha
    out: dict[str, Callable[[float], Any]] = {}
    l1 = cell.penalty == "l1"
    if cell.loss == "squared" and cell.penalty == "l2":
        for name in ("cholesky", "lsqr", "sparse_cg"):
            if name != "cholesky" or not sparse.issparse(cell.X):
                out[f"Ridge {name}"] = lambda t, s=name: Ridge(alpha=n * a, solver=s, tol=t)
    elif cell.loss == "squared":
        kind: Any = (lambda **k: Lasso(**k)) if l1 else (lambda **k: ElasticNet(l1_ratio=0.5, **k))
        out["sk CD"] = lambda t: kind(alpha=a, tol=t, max_iter=20_000)
    elif cell.loss == "hinge":
        out["LinearSVC"] = lambda t: LinearSVC(loss="hinge", C=1 / (n * a), tol=t, max_iter=20_000,
                                               intercept_scaling=30.0)  # fmt: skip
    elif l1:
        out["liblinear"] = lambda t: LogisticRegression(
            C=1 / (n * a), l1_ratio=1.0, solver="liblinear", tol=t, intercept_scaling=30.0)  # fmt: skip
    else:
        names = ["lbfgs", "newton-cg"]
        names += [] if sparse.issparse(cell.X) or cell.X.shape[1] > 2000 else ["newton-cholesky"]
        for name in names:
            out[name] = lambda t, s=name: LogisticRegression(C=1 / (n * a), solver=s, tol=t,
                                                             max_iter=2000)  # fmt: skip
    if cell.penalty != "l2":
        out |= l1_rivals(cell)
    return out


def l1_rivals(cell: Cell) -> dict[str, Callable[[float], Any]]:
    """Return celer, skglm, adelie and glum where they are installed."""
    a, out, logistic = cell.alpha, {}, cell.loss == "logistic"
    share = 1.0 if cell.penalty == "l1" else 0.5
    try:
        import celer

        if not logistic:
            out["celer"] = lambda t: celer.ElasticNet(alpha=a, l1_ratio=share, tol=t, max_iter=200)
    except ImportError:
        pass
    try:
        import skglm

        if not logistic:
            out["skglm"] = lambda t: skglm.ElasticNet(alpha=a, l1_ratio=share, tol=t)
        else:
            out["skglm"] = lambda t: skglm.SparseLogisticRegression(alpha=a, tol=t)
    except ImportError:
        pass
    try:
        import glum

        family = "binomial" if logistic else "normal"
        if cell.X.shape[1] <= 2000:
            out["glum"] = lambda t: glum.GeneralizedLinearRegressor(
                family=family, alpha=a, l1_ratio=share, gradient_tol=t, max_iter=200)  # fmt: skip
    except ImportError:
        pass
    try:
        import adelie

        def adelie_fit(X: Any, y: Any, t: float) -> tuple[Any, float]:
            family = (
                adelie.glm.binomial(y=(y > 0).astype(float))
                if logistic
                else adelie.glm.gaussian(y=y)
            )
            state = adelie.grpnet(X=X, glm=family, alpha=share, lmda_path=[a], tol=t * 1e-3,
                                  progress_bar=False, early_exit=False)  # fmt: skip
            return np.asarray(state.betas.toarray())[-1], float(state.intercepts[-1])

        if not sparse.issparse(cell.X):
            out["adelie"] = lambda t: Wrapped(lambda X, y: adelie_fit(X, y, t))
    except ImportError:
        pass
    return out


def timed(make: Callable[[float], Any], cell: Cell) -> list[tuple[float, float]]:
    """Return seconds and objectives of a solver for falling tolerances."""
    out, y = [], cell.y
    for tol in TOLS:
        try:
            seconds, model = np.inf, None
            if tol == TOLS[0]:
                make(tol).fit(cell.X, y)
            for _ in range(3):
                model = make(tol)
                start = time.process_time()
                model.fit(cell.X, y)
                seconds = min(seconds, time.process_time() - start)
                if seconds > 0.5:
                    break
        except Exception as error:
            print(f"    {error!r:.100}")
            break
        b = float(np.ravel(model.intercept_)[0])
        out.append((seconds, value(cell, np.ravel(model.coef_), b)))
        if seconds > PATIENCE:
            break
    return out


def main() -> None:
    """Run the cells and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--law", action="store_true")
    parser.add_argument("--only", default="")
    words = parser.parse_args()
    warnings.simplefilter("ignore")
    ratios: dict[float, list[float]] = {1e-4: [], 1e-6: []}
    for cell in cells(words.seed):
        if words.only not in cell.name:
            continue
        others = rivals(cell)
        if words.law:
            others = {"shuffled sweeps": ours(cell, policy=Adaptive(least=1.0))}
        runs = {"scgd": timed(ours(cell), cell)} | {k: timed(m, cell) for k, m in others.items()}
        least = min(f for run in runs.values() for _, f in run)
        base = value(
            cell, np.zeros(cell.X.shape[1]), cell.y.mean() if cell.loss == "squared" else 0.0
        )
        line = f"{cell.name:18}"
        for gap in ratios:
            limit = least + gap * (base - least)
            best = {
                k: min((s for s, f in run if f <= limit), default=np.inf) for k, run in runs.items()
            }
            mine = best.pop("scgd")
            name = min(best, key=lambda k: best[k])
            ratio = mine / best[name] if best[name] < np.inf else 1.0
            ratios[gap].append(min(ratio, UNREACHED) if mine < np.inf else UNREACHED)
            line += f" | {1e3 * mine:8.1f} ms, {name} {1e3 * best[name]:8.1f} ms, {ratios[gap][-1]:6.2f}"
        print(line, flush=True)
    for gap, found in ratios.items():
        print(
            f"gap {gap:g}: geometric mean {np.exp(np.mean(np.log(found))):.2f}, worst {max(found):.1f}"
        )


if __name__ == "__main__":
    main()
