"""Search the penalty by cross-validation, each fold prepared by itself, and fit the best model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from scgd.linear.estimators import SCGDClassifier, SCGDRegressor
from scgd.linear.models import TableModel
from scgd.linear.paths import alpha_path, at_place, best_place, default_scores, fit_path
from scgd.linear.tables.choosing import Options
from scgd.linear.tables.preparation import PREPARATIONS
from scgd.linear.tables.target import Problem
from scgd.typing import Array, Floats

KINDS: dict[str, Any] = {"classification": SCGDClassifier, "regression": SCGDRegressor}
N_ALPHAS = 20
N_SHOWN = 20
IMBALANCED = 0.2
"""Below this part of its even share a label counts as rare: accuracy would ignore it."""
FAR, LEAK = 1e3, 0.999
"""Times the 99th percentile of a column; correlation of a column with the target."""


@dataclass(frozen=True)
class Outcome:
    """A fitted model and how it was found."""

    model: TableModel
    alphas: Floats
    scores: Floats
    place: int
    spread: Floats
    notes: list[str]
    balanced: bool = False

    def largest(self) -> list[tuple[str, float]]:
        """Return what stands out: names and coefficients per standard deviation.

        Of several classes each column shows the one it says most about; zeros are left out.
        """
        fitted, names = self.model.model, self.model.preparation.labels
        sizes = np.atleast_2d(fitted.coef_) * self.spread
        rows = np.abs(sizes).argmax(axis=0)
        strongest = sizes[rows, np.arange(sizes.shape[1])]
        if len(sizes) > 1:
            names = [f"{n} -> {fitted.classes_[row]}" for n, row in zip(names, rows, strict=True)]
        order = np.argsort(-np.abs(strongest), kind="stable")[:N_SHOWN]
        return [(names[k], float(strongest[k])) for k in order if strongest[k]]

    def meaning(self) -> str:
        """Return what the coefficients speak for, and how many there are."""
        fitted = self.model.model
        sizes = np.atleast_2d(fitted.coef_)
        there = np.count_nonzero(np.any(sizes != 0, axis=0))
        speaks = f"more of {self.model.target!r}"
        if hasattr(fitted, "classes_"):
            speaks = (
                "the label after the arrow" if len(sizes) > 1 else repr(str(fitted.classes_[1]))
            )
        return f"{there} of {sizes.shape[1]} columns used; above zero speaks for {speaks}"


def train(
    problem: Problem, task: str, words: dict[str, Any], alpha: float | None, folds: list[Any],
    options: Options, n_jobs: int = 1,
) -> Outcome:  # fmt: skip
    """Return the model at the best penalty; ``words`` are the estimator's parameters."""
    prepare = PREPARATIONS["table" if hasattr(problem.features, "iloc") else "matrix"]
    preparation = prepare(options).fit(problem.features)
    X, _ = preparation.transform(problem.features)
    classes = np.unique(problem.y) if task == "classification" else None
    single = KINDS[task](**words, alpha=1.0)
    single.classes_ = classes
    alphas = np.array([alpha]) if alpha is not None else path_of(single, X, problem.y)

    by_class = balancing(problem.y) if task == "classification" else None

    def fold_scores(rows: Array, held: Array) -> Floats:
        mine, other = problem.take(rows), problem.take(held)
        step = prepare(options).fit(mine.features)
        path = fit_path(single, step.transform(mine.features)[0], mine.y, None, alphas, rough=True)
        return default_scores(path, step.transform(other.features)[0], other.y,
                              None if by_class is None else by_class[held], classes)  # fmt: skip

    parallel = Parallel(n_jobs, prefer="threads")
    scores = np.stack(parallel(delayed(fold_scores)(*fold) for fold in folds), axis=1)
    place = best_place(scores)
    path = fit_path(single, X, problem.y, None, alphas[: place + 1])
    fitted = at_place(single, path, place, 1, X.dtype).set_params(alpha=float(alphas[place]))
    if classes is None:
        del fitted.classes_
    told = [] if path.converged else [f"the fit is within {fitted.dual_gap_:.3g} of its minimum"]
    model = TableModel(preparation, fitted, problem.target)
    notes = preparation.notes + told + hints(X, problem.y, preparation.labels)
    balanced = by_class is not None
    return Outcome(model, alphas, scores, place, spreads(X), notes, balanced)


def path_of(model: Any, X: Any, y: Array) -> Floats:
    """Return the penalties to try."""
    share: float = {"l2": 0.0, "l1": 1.0}.get(model.penalty, model.l1_ratio)
    return alpha_path(X, y, l1_share=share, n_alphas=N_ALPHAS, loss=model.loss)


def balancing(y: Array) -> Array | None:
    """Return weights that give all labels the same say where one has a tenth or less of it."""
    labels, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    if counts.min() * len(labels) > IMBALANCED * len(y):
        return None
    return np.asarray(1.0 / counts[codes])


def hints(X: Any, y: Array, names: Any) -> list[str]:
    """Return what to look at: columns that tell all, that count rows, that have outliers."""
    if hasattr(X, "tocsr"):
        return []
    notes, targets = [], np.unique(y, return_inverse=True)[1] if y.dtype.kind != "f" else y
    for name, column in zip(names, np.asarray(X, np.float64).T, strict=True):
        middle = np.median(column)
        size = np.quantile(np.abs(column - middle), 0.99)
        if size > 0 and np.abs(column - middle).max() > FAR * size:
            notes.append(f"{name!r} holds values far from all others, beside which the rest count "
                         "for nothing; check them, or --scale robust")  # fmt: skip
        centred, spread = column - column.mean(), column.std() * targets.std()
        if spread > 0 and abs(np.mean(centred * (targets - targets.mean()))) > LEAK * spread:
            notes.append(f"{name!r} alone tells the target; --drop it if it is known only later")
        steps = np.diff(np.sort(column))  # columns may be scaled
        if len(steps) > 1 and steps.min() > 0 and np.ptp(steps) <= 1e-6 * steps.mean():
            notes.append(f"{name!r} has another whole number in each row, like an identifier; "
                         "--drop it if it is one")  # fmt: skip
    return notes


def spreads(X: Any) -> Floats:
    """Return the standard deviations of the columns of a dense or sparse matrix."""
    squares = X.multiply(X) if hasattr(X, "tocsr") else np.square(X)
    means, squares = (np.ravel(part.mean(axis=0)) for part in (X, squares))
    return np.asarray(np.sqrt(np.maximum(squares - means**2, 0.0)))
