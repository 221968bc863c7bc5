"""Paths of penalties: from the strongest that leaves nothing down, each fit from the last one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import LabelBinarizer

from scgd.typing import Array, Floats

__all__ = ["alpha_path", "best_place", "follow", "path_scores"]

L1_SPAN, L2_SPAN = 1e-3, 1e-6
"""How far a path goes down, where nothing else is asked for."""
REAL = ("squared", "huber")
SLOPES = {"logistic": 0.5, "squared-hinge": 2.0}


def alpha_path(
    X: Any,
    y: Any,
    sample_weight: Floats | None = None,
    *,
    l1_share: float = 0.0,
    n_alphas: int = 20,
    span: float | None = None,
    loss: str = "squared",
    fit_intercept: bool = True,
) -> Floats:
    r"""Return penalties to try, the strongest first, evenly spaced in their logarithm.

    With a share :math:`\rho` of l1 the first is the smallest that leaves no coefficient beside zero
    (for ``huber`` and ``hinge`` one of its size),

    .. math:: \alpha_1 = \max_j \frac{s}{\rho \sum w} \Big|\sum_i w_i x_{ij} (t_i - \bar t)\Big|,

    with targets *t* (for classifiers -1 and 1) and the slope *s* of the loss, 1/2 for ``logistic``
    and 2 for ``squared-hinge``. Without l1 no penalty does that; the first is the sum of the
    variances of the columns, beyond which the penalty outweighs the data in every direction. The
    last is ``span`` times the first (1e-3 with l1, 1e-6 without).

    Examples
    --------
    >>> X = np.array([[-1.0], [1.0]])
    >>> alpha_path(X, np.array([-2.0, 2.0]), l1_share=1.0, n_alphas=2)
    array([2.   , 0.002])
    """
    weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    weight = weight / weight.sum()
    if loss not in REAL:
        y = LabelBinarizer(neg_label=-1).fit_transform(y)
    targets = np.asarray(y, np.float64).reshape(len(weight), -1)
    if fit_intercept:
        targets = targets - weight @ targets
    if l1_share > 0:
        slopes = SLOPES.get(loss, 1.0) * np.abs(X.T @ (weight[:, None] * targets))
        first = float(slopes.max()) / l1_share
    else:
        squares = X.multiply(X) if sparse.issparse(X) else np.square(X)
        means = weight @ X if fit_intercept else 0.0
        first = float(np.sum(weight @ squares - np.square(means)))
    span = span or (L1_SPAN if l1_share > 0 else L2_SPAN)
    # Constant columns or targets leave nothing to scale by; any path will do.
    first = first if np.isfinite(first) and first > 0 else 1.0
    return np.geomspace(first, first * span, n_alphas) if n_alphas > 1 else np.array([first])


def follow(model: Any, X: Any, y: Any, alphas: Floats, **weights: Any) -> Iterator[Any]:
    """Fit the model for each penalty in turn, each fit starting where the last one ended."""
    model.set_params(warm_start=True)
    for alpha in alphas:
        yield model.set_params(alpha=float(alpha)).fit(X, y, **weights)


def path_scores(model: Any, train: Any, test: Any, alphas: Floats, scorer: Any) -> Floats:
    """Return the score on a test part of fits to a training part, for each penalty.

    Parts are X, y and, where there are some, weights.
    """
    (X, y, *weight), (X_test, y_test, *test_weight) = train, test
    weights = {"sample_weight": weight[0]} if weight else {}
    test_weights = {"sample_weight": test_weight[0]} if test_weight else {}
    fits = follow(model, X, y, alphas, **weights)
    return np.array([scorer(fit, X_test, y_test, **test_weights) for fit in fits])


def best_place(scores: Array) -> int:
    """Return which penalty has the best mean score over the folds; of equal ones the strongest."""
    means = np.mean(scores, axis=1)
    if np.all(np.isnan(means)):
        raise ValueError("no score is a number: the folds are too small for it; lower cv")
    return int(np.nanargmax(means))
