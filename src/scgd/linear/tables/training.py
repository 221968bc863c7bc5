"""Search the penalty by cross-validation, each fold prepared by itself, and fit the best model."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

from scgd.linear.estimators import SCGDClassifier, SCGDRegressor
from scgd.linear.models import TableModel
from scgd.linear.paths import alpha_path, best_place, follow, path_scores
from scgd.linear.tables.choosing import Options
from scgd.linear.tables.preparation import PREPARATIONS
from scgd.linear.tables.target import Problem
from scgd.typing import Array, Floats

__all__ = ["N_SHOWN", "Outcome", "train"]

KINDS: dict[str, Any] = {"classification": SCGDClassifier, "regression": SCGDRegressor}
N_ALPHAS = 20
N_SHOWN = 20
ROUGH = 1e-4
"""Tolerance of the fits that are only compared with each other."""


@dataclass(frozen=True)
class Outcome:
    """A fitted model and how it was found."""

    model: TableModel
    alphas: Floats
    scores: Floats
    place: int
    spread: Floats
    notes: list[str]

    def largest(self) -> list[tuple[str, float, float]]:
        """Return what stands out: names, coefficients per standard deviation, sampling weights.

        Of several classes each column shows the one it says most about; zeros are left out.
        """
        fitted, names = self.model.model, self.model.preparation.labels
        sizes = np.atleast_2d(fitted.coef_) * self.spread
        weights = np.atleast_2d(fitted.sampling_weights_).mean(axis=0)
        rows = np.abs(sizes).argmax(axis=0)
        strongest = sizes[rows, np.arange(sizes.shape[1])]
        if len(sizes) > 1:
            names = [f"{n} -> {fitted.classes_[row]}" for n, row in zip(names, rows, strict=True)]
        order = np.argsort(-np.abs(strongest), kind="stable")[:N_SHOWN]
        return [(names[k], float(strongest[k]), float(weights[k])) for k in order if strongest[k]]

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
    single = KINDS[task](**words)
    alphas = np.array([alpha]) if alpha is not None else path_of(single, X, problem.y)

    def fold_scores(rows: Array, held: Array) -> Floats:
        mine, other = problem.take(rows), problem.take(held)
        step = prepare(options).fit(mine.features)
        train_part, test_part = ((step.transform(p.features)[0], p.y) for p in (mine, other))
        return path_scores(KINDS[task](**words, tol=ROUGH), train_part, test_part, alphas, score)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        parallel = Parallel(n_jobs, prefer="threads")
        scores = np.stack(parallel(delayed(fold_scores)(*fold) for fold in folds), axis=1)
        place = best_place(scores)
        *_, fitted = follow(single, X, problem.y, alphas[: place + 1])
    fitted.set_params(warm_start=False)
    told = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    model = TableModel(preparation, fitted, problem.target)
    return Outcome(model, alphas, scores, place, spreads(X), preparation.notes + told[-1:])


def path_of(model: Any, X: Any, y: Array) -> Floats:
    """Return the penalties to try."""
    share: float = {"l2": 0.0, "l1": 1.0}.get(model.penalty, model.l1_ratio)
    return alpha_path(X, y, l1_share=share, n_alphas=N_ALPHAS, loss=model.loss)


def score(model: Any, X: Any, y: Any) -> float:
    """Return the accuracy or R2."""
    return float(model.score(X, y))


def spreads(X: Any) -> Floats:
    """Return the standard deviations of the columns of a dense or sparse matrix."""
    squares = X.multiply(X) if hasattr(X, "tocsr") else np.square(X)
    means, squares = (np.ravel(part.mean(axis=0)) for part in (X, squares))
    return np.asarray(np.sqrt(np.maximum(squares - means**2, 0.0)))
