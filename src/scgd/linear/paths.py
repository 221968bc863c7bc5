"""Paths of penalties: from the strongest that leaves nothing down, each fit from the last one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import check_random_state

from scgd.linear.fitting import fit, suits_gram
from scgd.linear.gram import Gram
from scgd.linear.multinomial import fit_multinomial
from scgd.linear.task import Design
from scgd.typing import Array, Floats, Ints

L1_SPAN, L2_SPAN = 1e-3, 1e-6
"""How far a path goes down, where nothing else is asked for."""
ROUGH = 100.0
"""Times ``tol``: by default the tolerance of scikit-learn's paths."""
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


@dataclass(frozen=True)
class Path:
    """Fits along a path of penalties, each from the last one's solution; a row per penalty.

    Attributes
    ----------
    coefs, intercepts
        Of shape (penalties, targets, features) and (penalties, targets).
    gaps, n_passes
        The largest duality gap and the most passes over the targets.
    visits
        The share of each coordinate in the visits of the last fits.
    converged
        Whether all fits met their stopping test.
    """

    coefs: Floats
    intercepts: Floats
    gaps: Floats
    n_passes: Ints
    visits: list[Floats]
    converged: bool


def fit_path(
    model: Any, X: Any, y: Any, weight: Any, alphas: Floats, *, rough: bool = False
) -> Path:
    """Fit an estimator's model for each penalty in turn: one design, one Gram matrix for all.

    Parameters
    ----------
    model
        An estimator with its parameters and, of classifiers, all ``classes_``.
    X, y, weight
        Data that were checked, targets or labels, and weights or nothing.
    alphas
        Penalties, the strongest first.
    rough
        Whether fits need only be good enough for their scores to be compared.
    """
    design = Design(X)
    targets, weights = model._targets(y, weight)
    together = model.loss == "multinomial" and len(model.classes_) > 2
    codes = np.searchsorted(model.classes_, y) if together else None
    n_outputs = len(targets)
    coefs, intercepts = (
        np.zeros((len(alphas), n_outputs, X.shape[1])),
        np.zeros((len(alphas), n_outputs)),
    )
    gaps, n_passes = np.zeros(len(alphas)), np.zeros(len(alphas), np.int64)
    visits, converged = [np.empty(0)] * n_outputs, True
    seeds = check_random_state(model.random_state).randint(np.iinfo(np.int32).max, size=n_outputs)
    for k in range(1 if together else n_outputs):
        unit = model._task(design, targets[k], weights[k], int(seeds[k]))  # its alpha is one
        unit = replace(unit, tol=ROUGH * unit.tol, rough=True) if rough else unit
        if suits_gram(unit, len(alphas)):
            design.kept("gram", unit, Gram)
        last: Any = None
        w, b = None, 0.0
        for place, alpha in enumerate(alphas):
            task = unit.penalised(float(alpha))
            if codes is not None:
                found = fit_multinomial(task, codes, n_outputs, w, b)
            else:
                found = fit(task, model._policy(), model.dual, w, b)
            w, b = ahead(unit, alphas, place, last, found)
            last = found
            rows = slice(None) if together else k
            coefs[place, rows], intercepts[place, rows] = found.w, found.b
            gaps[place] = max(gaps[place], found.gap)
            n_passes[place] = max(n_passes[place], found.n_passes)
            converged = converged and found.converged
        visits = (
            [found.visits] * n_outputs
            if together
            else [*visits[:k], found.visits, *visits[k + 1 :]]
        )
    return Path(coefs, intercepts, gaps, n_passes, visits, converged)


def ahead(unit: Any, alphas: Floats, place: int, last: Any, found: Any) -> tuple[Any, Any]:
    """Return where to begin the next fit: without l1, further along the line of the last two."""
    w, b = found.w, found.b
    if unit.l1 > 0.0 or last is None or place + 1 == len(alphas) or alphas[place + 1] == 0.0:
        return w, b
    before, now, then = np.log(alphas[place - 1 : place + 2])
    part = (now - then) / (before - now)
    return w + part * (w - last.w), b + part * (b - last.b)


def default_scores(path: Path, X: Any, y: Any, weight: Any, classes: Any = None) -> Floats:
    """Return R2 or, with classes, the accuracy of every fit of a path, as scikit-learn has them."""
    n_penalties, n_outputs, p = path.coefs.shape
    s = np.ones(X.shape[0]) if weight is None else weight
    flat = path.coefs.reshape(-1, p).T
    margins = np.asarray(X @ flat).reshape(-1, n_penalties, n_outputs) + path.intercepts
    if classes is not None:
        codes = (margins[:, :, 0] > 0).astype(int) if n_outputs == 1 else margins.argmax(axis=2)
        return np.asarray(s @ (classes[codes] == np.asarray(y)[:, None]) / s.sum())
    y = np.asarray(y, np.float64).reshape(len(s), 1, n_outputs)
    rest = np.tensordot(s, (margins - y) ** 2, 1)
    whole = np.tensordot(s, (y - np.average(y, axis=0, weights=s)) ** 2, 1)
    exact = np.where(rest > 0.0, 0.0, 1.0)  # of targets that do not vary
    return np.asarray(
        np.where(whole > 0.0, 1.0 - rest / np.where(whole > 0, whole, 1.0), exact).mean(axis=1)
    )


def at_place(model: Any, path: Path, place: int, n_dims: int, dtype: Any) -> Any:
    """Return the estimator with the coefficients of one penalty of a path."""
    model._store(path.coefs[place], path.intercepts[place], path.visits, dtype)
    model.n_features_in_ = path.coefs.shape[2]
    model.n_iter_, model.dual_gap_ = int(path.n_passes[place]), float(path.gaps[place])
    return model._flatten(n_dims)


def best_place(scores: Array) -> int:
    """Return which penalty has the best mean score over the folds; of equal ones the strongest."""
    means = np.mean(scores, axis=1)
    if np.all(np.isnan(means)):
        raise ValueError("no score is a number: the folds are too small for it; lower cv")
    return int(np.nanargmax(means))
