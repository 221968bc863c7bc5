"""Steps that read whole columns: the margins of all samples are kept, a move updates them.

A step costs one column, dense or sparse, whatever the number of features: the way to go for full
batches, for more features than samples, and for sparse data. Margins kept by increments drift, so
they are computed afresh now and then.
"""

from __future__ import annotations

from math import sqrt

from scgd.compiling import njit
from scgd.linear.data import REASSOCIATE
from scgd.linear.losses import SQUARED
from scgd.policies import base as distributions
from scgd.random import below
from scgd_paper.linear.by_code import compiled_sgd, move
from scgd_paper.linear.inputs import entry
from scgd_paper.linear.rows import (
    BLOCK,
    DIVISOR,
    EPSILON,
    FIRST,
    FORWARD,
    L1,
    L2,
    LOSS,
    MODE,
    N_FEATURES,
    SCALED,
    fetch_ahead,
    sample_part,
    soft_threshold,
)  # fmt: skip

__all__ = ["compute_margins", "explore_columns", "partial_sum", "run_columns"]

POSITION, N_PHASES, AGE = range(3)
FRESH = 30
SHORT = 64
"""Cache lines of the next dense column that are asked for ahead; the hardware does the rest."""


@njit(cache=True, error_model="numpy", nogil=True)
def compute_margins(problem, theta, margins):  # type: ignore[no-untyped-def]
    """Set the margins of all samples, by columns."""
    dense, indptr, indices, values = problem.columns
    intercept = theta[problem.n_features] if len(theta) > problem.n_features else 0.0
    for i in range(len(margins)):
        margins[i] = intercept
    for k in range(problem.n_features):
        if theta[k] != 0.0:
            shift_margins(dense, indptr, indices, values, k, theta[k], margins)


@njit(cache=True, error_model="numpy")
def shift_margins(dense, indptr, indices, values, k, delta, margins):  # type: ignore[no-untyped-def]
    """Add ``delta`` times column ``k`` to the margins."""
    if dense is not None:
        for i in range(len(margins)):
            margins[i] += delta * dense[k, i]
    if indptr is not None:
        for j in range(indptr[k], indptr[k + 1]):
            margins[indices[j]] += delta * values[j]


@njit(cache=True, fastmath=REASSOCIATE, error_model="numpy")
def residual_dot(dense, k, margins, targets):  # type: ignore[no-untyped-def]
    """Return the sum of residuals times column ``k``."""
    total = 0.0
    for i in range(len(margins)):
        total += (margins[i] - targets[i]) * dense[k, i]
    return total


@njit(cache=True, error_model="numpy")
def partial_sum(  # type: ignore[no-untyped-def]
    dense, indptr, indices, values, targets, weights, mode, loss, epsilon, k, h, margins
):
    """Return the sum over all samples of their parts of the derivative along column ``k``."""
    total = 0.0
    if dense is not None:
        if loss == SQUARED and mode == FIRST and len(weights) == 0:
            return residual_dot(dense, k, margins, targets)
        for i in range(len(margins)):
            x = dense[k, i]
            part = sample_part(mode, loss, epsilon, margins[i], targets[i], x, h)
            total += part * weights[i] if len(weights) > 0 else part
    if indptr is not None:
        for j in range(indptr[k], indptr[k + 1]):
            i, x = indices[j], values[j]
            part = sample_part(mode, loss, epsilon, margins[i], targets[i], x, h)
            total += part * weights[i] if len(weights) > 0 else part
    return total


@njit(cache=True, error_model="numpy")
def intercept_sum(targets, weights, mode, loss, epsilon, h, margins):  # type: ignore[no-untyped-def]
    """Return the sum over all samples of their parts of the derivative along the intercept."""
    total = 0.0
    for i in range(len(margins)):
        part = sample_part(mode, loss, epsilon, margins[i], targets[i], 1.0, h)
        total += part * weights[i] if len(weights) > 0 else part
    return total


@njit(cache=True, error_model="numpy")
def sampled_sum(  # type: ignore[no-untyped-def]
    dense, indptr, indices, values, targets, weights, n_features, mode, loss, epsilon, k, h,
    margins, rows,
):  # fmt: skip
    """Return the sum over sampled rows of their parts of the derivative along column ``k``."""
    total = 0.0
    for j in range(len(rows)):
        i, x = rows[j], 1.0
        if k < n_features:
            x = entry(dense, indptr, indices, values, k, i)
        part = sample_part(mode, loss, epsilon, margins[i], targets[i], x, h)
        total += part * weights[i] if len(weights) > 0 else part
    return total


@njit(cache=True, error_model="numpy")
def explore_columns(  # type: ignore[no-untyped-def]
    dense, indptr, indices, values, targets, weights, codes, params,
    theta, coords, probs, grads, samples, whole, margins, scale, rule, hyper, slots, costs,
    first, last, rates, radii,
):  # fmt: skip
    """Run steps ``first`` to ``last`` of the current phase."""
    n_features, loss, mode = codes[N_FEATURES], codes[LOSS], codes[MODE]
    block, epsilon, l2, l1 = codes[BLOCK], params[EPSILON], params[L2], params[L1]
    for s in range(first, last):
        h, rate = radii[s - first], rates[s - first]
        after = coords[min((s + 1) * block, len(coords) - 1)]
        if dense is not None:
            fetch_ahead(dense, min(after, n_features - 1), SHORT)
        for d in range(s * block, (s + 1) * block):
            k, total = coords[d], 0.0
            if samples is not None:
                total = sampled_sum(
                    dense, indptr, indices, values, targets, weights,
                    n_features, mode, loss, epsilon, k, h, margins, samples[s],
                ) / samples.shape[1]  # fmt: skip
            if whole is not None:
                if k == n_features:
                    total = intercept_sum(targets, weights, mode, loss, epsilon, h, margins)
                else:
                    total = partial_sum(
                        dense, indptr, indices, values, targets, weights,
                        mode, loss, epsilon, k, h, margins,
                    )  # fmt: skip
                total /= len(margins)
            if k < n_features:
                total += l2 * (theta[k] + (0.5 * h if mode == FORWARD else 0.0))
            grads[d] = total
        for d in range(s * block, (s + 1) * block):
            k, step, place = coords[d], rate, theta[coords[d]]
            unit = scale[k] if len(scale) > 0 else 1.0
            step *= unit
            if params[DIVISOR] > 0.0:
                step /= params[DIVISOR] * probs[d]
            if rule is None:
                theta[k] = place - compiled_sgd(k, grads[d], step, hyper, slots)
            else:
                theta[k] = place - move(rule, k, grads[d], step, hyper, slots)
            if l1 > 0.0 and k < n_features:
                theta[k] = soft_threshold(theta[k], step * l1)
                grads[d] = (place - theta[k]) / step if step > 0.0 else 0.0
            if codes[SCALED] == 1:
                grads[d] *= sqrt(unit / costs[k] if len(costs) > 0 else unit)
            if k == n_features:
                for i in range(len(margins)):
                    margins[i] += theta[k] - place
            elif theta[k] != place:
                shift_margins(dense, indptr, indices, values, k, theta[k] - place, margins)


@njit(cache=True, error_model="numpy", nogil=True)
def run_columns(problem, walk, law, rates, radii, mixings, stride, snapshots):  # type: ignore[no-untyped-def]
    """Run ``len(rates)`` steps, copying theta into ``snapshots`` after every ``stride`` of them."""
    dense, indptr, indices, values = problem.columns
    targets, weights, codes, params = problem.targets, problem.weights, walk.codes, walk.params
    theta, coords, probs, grads, rows = walk.theta, walk.coords, walk.probs, walk.grads, walk.rows
    margins, scale, hyper, slots, place = (
        walk.margins, walk.scale, walk.hyper, walk.slots, walk.place
    )  # fmt: skip
    fresh = FRESH * len(theta)
    done, taken, ended = 0, 0, 0
    while done < len(rates):
        here = place[POSITION]
        if here == 0:
            distributions.draw(law, walk.coord_stream, coords, probs)
            for s in range(rows.shape[0]):
                for j in range(rows.shape[1]):
                    rows[s, j] = below(walk.row_stream, len(targets))
        if place[AGE] % fresh == 0:
            compute_margins(problem, theta, margins)
        n = min(len(rows) - here, len(rates) - done, fresh - place[AGE] % fresh)
        if taken < len(snapshots):
            n = min(n, (taken + 1) * stride - done)
        explore_columns(
            dense, indptr, indices, values, targets, weights, codes, params,
            theta, coords, probs, grads, walk.samples, walk.whole, margins, scale, walk.rule, hyper,
            slots, walk.costs, here, here + n, rates[done : done + n], radii[done : done + n],
        )  # fmt: skip
        done += n
        place[AGE] += n
        if taken < len(snapshots) and done == (taken + 1) * stride:
            for k in range(len(theta)):  # a slice would take numba seconds to compile
                snapshots[taken, k] = theta[k]
            taken += 1
        place[POSITION] = (here + n) % len(rows)
        if place[POSITION] == 0:
            distributions.update(law, coords, probs, grads, mixings[ended])
            place[N_PHASES] += 1
            ended += 1
