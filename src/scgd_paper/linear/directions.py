"""Steps along one random direction of all coordinates: Gaussian and sphere smoothing, SPSA."""

from __future__ import annotations

from math import sqrt

from scgd.compiling import njit
from scgd.linear.data import REASSOCIATE
from scgd.linear.losses import difference
from scgd.random import below, uniform
from scgd_paper.linear.by_code import compiled_sgd, move
from scgd_paper.linear.inputs import dot
from scgd_paper.linear.normal import fill_normal
from scgd_paper.linear.rows import EPSILON, FACTOR, L2, LOSS, MODE, N_FEATURES

__all__ = ["run_directions", "step_along"]

GAUSSIAN, SPHERE, SIGNS = 3, 4, 5


@njit(cache=True, error_model="numpy")
def fill_direction(mode, stream, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with a Gaussian vector, a point of the unit sphere or random signs."""
    if mode == SIGNS:
        for j in range(len(out)):
            out[j] = 1.0 if uniform(stream) < 0.5 else -1.0
        return
    fill_normal(stream, out)
    if mode == SPHERE:
        scale = 1.0 / sqrt(products(out, out, len(out))[1])
        for j in range(len(out)):
            out[j] *= scale


@njit(cache=True, error_model="numpy", fastmath=REASSOCIATE)
def products(theta, u, n):  # type: ignore[no-untyped-def]
    """Return the products of ``u`` with ``theta`` and with itself, over the first ``n`` entries."""
    along = size = 0.0
    for k in range(n):
        along += theta[k] * u[k]
        size += u[k] * u[k]
    return along, size


@njit(cache=True, error_model="numpy")
def quotient_along(  # type: ignore[no-untyped-def]
    dense, indptr, indices, values, targets, weights, codes, params, theta, u, rows, h
):
    """Return the difference quotient of the penalised mini-batch loss along ``u``."""
    n_features, loss, epsilon = codes[N_FEATURES], codes[LOSS], params[EPSILON]
    two_sided, total = codes[MODE] == SIGNS, 0.0
    for j in range(len(rows)):
        i = rows[j]
        z = dot(dense, indptr, indices, values, i, theta)
        x = dot(dense, indptr, indices, values, i, u)
        if len(theta) > n_features:
            z += theta[n_features]
            x += u[n_features]
        if two_sided:
            part = difference(loss, z - h * x, 2.0 * h * x, targets[i], epsilon) / (2.0 * h)
        else:
            part = difference(loss, z, h * x, targets[i], epsilon) / h
        total += part * weights[i] if len(weights) > 0 else part
    along, size = products(theta, u, n_features)
    return total / len(rows) + params[L2] * (along if two_sided else along + 0.5 * h * size)


@njit(cache=True, error_model="numpy")
def step_along(problem, walk, rule, u, rows, rate, h):  # type: ignore[no-untyped-def]
    """Move all coordinates along ``u``."""
    dense, indptr, indices, values = problem.rows
    theta, hyper, slots = walk.theta, walk.hyper, walk.slots
    along = walk.params[FACTOR] * quotient_along(
        dense, indptr, indices, values, problem.targets, problem.weights, walk.codes, walk.params,
        theta, u, rows, h,
    )  # fmt: skip
    if rule is None:  # the plain step as a loop of its own, which then vectorises
        for k in range(len(theta)):
            theta[k] -= compiled_sgd(k, along * u[k], rate, hyper, slots)
        return
    for k in range(len(theta)):
        theta[k] -= move(rule, k, along * u[k], rate, hyper, slots)


@njit(cache=True, error_model="numpy", nogil=True)
def run_directions(problem, walk, rates, radii, stride, snapshots):  # type: ignore[no-untyped-def]
    """Run ``len(rates)`` steps, copying theta into ``snapshots`` after every ``stride`` of them."""
    taken, rows, u = 0, walk.rows[0], walk.margins
    for t in range(len(rates)):
        for j in range(len(rows)):
            rows[j] = below(walk.row_stream, len(problem.targets))
        fill_direction(walk.codes[MODE], walk.direction_stream, u)
        step_along(problem, walk, walk.rule, u, rows, rates[t], radii[t])
        if taken < len(snapshots) and t + 1 == (taken + 1) * stride:
            for k in range(len(walk.theta)):
                snapshots[taken, k] = walk.theta[k]
            taken += 1
