r"""Newton's steps under constraints, where f and they repeat themselves: the end of a round.

A round of a strategy sees one number per evaluation, the augmented Lagrangian. Where there is no
noise the same evaluations tell f and every constraint apart, so slopes and curvatures of all of
them (:mod:`scgd.constraints.surface`) give steps that end exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.constraints.merit import TOLERANCE, Merit
from scgd.constraints.surface import Surface, n_points, pattern
from scgd.problem import Problem
from scgd.strategies.asks import Asking
from scgd.strategies.budget import Budget
from scgd.typing import Floats

__all__ = ["affordable", "newton_share", "newton_steps"]

MODELS = 12
"""Models that a share of the budget must pay for: fewer do not converge."""
SMALLEST = 1e-10
"""Radius of the last step, in units of the scale."""
NARROW, WIDE = 1e-7, 0.1
"""Limits of the steps of differences, in units of the scale: rounding, and the model's use."""


def affordable(p: int, share: int) -> bool:
    """Tell whether a share of the budget is worth beginning with."""
    return share >= MODELS * n_points(p)


def newton_share(p: int, budget: int) -> int:
    """Return the evaluations of one go: a tenth of the budget, and enough to get anywhere."""
    return max(budget // 10, MODELS * n_points(p))


def newton_steps(problem: Problem, merit: Merit, budget: Budget, *, turned: bool) -> Asking:
    r"""Minimise models of f under models of the constraints, within a radius that follows success.

    A step is accepted by :math:`f + \rho \sum_i v_i`, where :math:`v_i` are violations and
    :math:`\rho` is twice the largest multiplier. The radius follows the steps that come true and
    shrinks to a quarter of those that do not. The trust region is a cube in directions along which
    the Lagrangian bends alike (``turned``; the coordinates where there are bounds), and so are the
    steps of the differences. It ends when nothing is gained any more. Return the best point.
    """
    p = problem.n_coords
    x, vector = merit.best[0].copy(), np.full(merit.size, np.inf)
    basis: Any = np.diag(problem.unit)
    radius = 0.5
    while radius >= SMALLEST and budget.left >= n_points(p) + 1:
        width = float(np.clip(0.2 * radius, NARROW, WIDE))
        centre = x.copy()
        if problem.lower.size:  # a model needs room to both sides
            most = (problem.upper - problem.lower) / 4 / width
            basis = np.diag(np.minimum(np.diag(basis), most))
            room = width * np.diag(basis)
            centre = np.clip(x, problem.lower + room, problem.upper - room)
        points = centre + width * pattern(p) @ basis.T
        measured = yield from vectors_at(points, merit)
        if not np.isfinite(measured).all():
            break
        if np.array_equal(centre, x) or not np.isfinite(vector).all():
            x, vector = centre.copy(), measured[0]
        surface = Surface.fitted(measured[:, :-1], p, merit.equal)
        frame = basis * width
        while radius >= SMALLEST and budget.left:
            step = best_step(surface, problem, frame, centre, x, radius / width)
            trial = problem.clipped(centre + step)
            (seen,) = yield from vectors_at(trial[None], merit)
            d = np.asarray(np.linalg.solve(frame, trial - centre), np.float64)
            pushes = surface.multipliers(d)
            price = 2.0 * float(np.abs(pushes).max(initial=0.0))
            now = penalised(vector, price, merit)
            gain = now - penalised(seen, price, merit) if np.isfinite(seen).all() else -np.inf
            hoped = now - penalised(surface.at(d), price, merit)
            length = float(np.abs(np.linalg.solve(basis, trial - x)).max())
            if gain > max(0.0, 0.05 * hoped):
                growth = 4 if length < 0.9 * radius else 2 if gain > 0.7 * hoped else 1
                if turned:
                    free = not problem.lower.size
                    basis = basis @ surface.metric(d, pushes, turned=free)
                    basis /= np.linalg.norm(basis / problem.unit[:, None], axis=0).max()
                length = float(np.abs(np.linalg.solve(basis, trial - x)).max())
                radius, x, vector = max(NARROW, growth * length), trial, seen
                break
            radius = 0.25 * min(length, radius)
    return merit.best[0].copy()


def vectors_at(points: Floats, merit: Merit) -> Asking:
    """Evaluate points and take note of the feasible ones."""
    rows = np.asarray((yield points), np.float64).reshape(-1, merit.size)
    for vector, z in zip(rows, points.reshape(-1, points.shape[-1]), strict=True):
        merit.offer(vector, z)
    return rows


def best_step(
    surface: Surface, problem: Problem, frame: Any, centre: Floats, x: Floats, most: float
) -> Floats:
    """Return the step from the centre that the models like best, within the radius around x."""
    away = np.asarray(np.linalg.solve(frame, x - centre), np.float64)
    low, high = away - most, away + most
    if problem.lower.size:
        low = np.maximum(low, (problem.lower - centre) / np.diag(frame))
        high = np.minimum(high, (problem.upper - centre) / np.diag(frame))
    return np.asarray(frame @ surface.step(low, high), np.float64)


def penalised(vector: Floats, price: float, merit: Merit) -> float:
    """Return f plus what violations cost."""
    residuals = vector[1 : 1 + len(merit.equal)]
    missed = np.where(merit.equal, np.abs(residuals), np.maximum(residuals, 0.0))
    return float(vector[0] + price * np.maximum(missed - TOLERANCE / 2, 0.0).sum())
