r"""Newton's steps under constraints, where f and they repeat themselves: the end of a round.

A round of a strategy sees one number per evaluation, the augmented Lagrangian. Where there is no
noise the same evaluations tell f and every constraint apart, so slopes and curvatures of all of
them (:mod:`scgd.constraints.quadratic`) give steps that end exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scgd.constraints.merit import TOLERANCE, Merit
from scgd.problem import Problem
from scgd.strategies.asks import Asking
from scgd.strategies.budget import Budget
from scgd.typing import Array, Floats

ACTIVE = 1e-6
"""Residuals above minus this, in units of their slope, may push back."""
FLATTEST = 1e-8
"""The least curvature that counts, in units of the largest."""


def n_points(p: int) -> int:
    """Return the evaluations of a model.

    Examples
    --------
    >>> n_points(10)
    66
    """
    return 1 + 2 * p + p * (p - 1) // 2


def pattern(p: int) -> Floats:
    """Return where to evaluate, in steps: the centre, both sides of it, and the pairs.

    Examples
    --------
    >>> pattern(2)
    array([[ 0.,  0.],
           [ 1.,  0.],
           [ 0.,  1.],
           [-1., -0.],
           [-0., -1.],
           [ 1.,  1.]])
    """
    eye: Floats = np.eye(p)
    first, second = np.triu_indices(p, 1)
    return np.concatenate([np.zeros((1, p)), eye, -eye, eye[first] + eye[second]])


@dataclass(frozen=True)
class Surface:
    """Models of f (first) and of residuals, in steps from the centre.

    Attributes
    ----------
    values, slopes, bends
        What was measured at the centre, and the derivatives.
    equal
        Which residuals must be zero; the others must not be positive.
    """

    values: Floats
    slopes: Floats
    bends: Floats
    equal: Array

    @classmethod
    def fitted(cls, measured: Floats, p: int, equal: Array) -> Surface:
        """Return the models through measurements at the points of :func:`pattern`."""
        centre, plus, minus, pairs = np.split(measured, [1, 1 + p, 1 + 2 * p])
        bends = np.zeros((measured.shape[1], p, p))
        first, second = np.triu_indices(p, 1)
        mixed = pairs - plus[first] - plus[second] + centre
        bends[:, first, second] = bends[:, second, first] = mixed.T
        bends[:, range(p), range(p)] = (plus + minus - 2 * centre).T
        return cls(centre[0], (0.5 * (plus - minus)).T, bends, equal)

    def at(self, d: Floats) -> Floats:
        """Return f and the residuals, as the models have them."""
        bent = self.bends @ d
        return np.asarray(self.values + self.slopes @ d + 0.5 * bent @ d, np.float64)

    def slope(self, d: Floats) -> Floats:
        """Return their derivatives."""
        return np.asarray(self.slopes + self.bends @ d, np.float64)

    def step(self, low: Floats, high: Floats) -> Floats:
        """Return where f is lowest within a box and the residuals are as they must be."""
        from scipy.optimize import minimize

        width = float(np.maximum(-low, high).max())
        size = np.abs(self.slopes).sum(axis=1) + 0.5 * np.abs(self.bends).sum(axis=(1, 2)) * width
        size = np.where(size > 0, size * width, 1.0)

        def part(which: Any, sign: float) -> dict[str, Any]:
            def fun(u: Floats) -> Floats:
                return np.asarray(sign * (self.at(width * u) / size)[1:][which])

            def jac(u: Floats) -> Floats:
                return np.asarray(sign * width * (self.slope(width * u) / size[:, None])[1:][which])

            return {"type": "eq" if sign > 0 else "ineq", "fun": fun, "jac": jac}

        limits = [part(self.equal, 1.0)] if self.equal.any() else []
        limits += [part(~self.equal, -1.0)] if (~self.equal).any() else []
        with np.errstate(all="ignore"):
            found = minimize(
                lambda u: float(self.at(width * u)[0] - self.values[0]) / size[0],
                np.zeros(len(low)), jac=lambda u: width * self.slope(width * u)[0] / size[0],
                method="SLSQP", bounds=list(zip(low / width, high / width, strict=True)),
                constraints=limits, options={"ftol": 1e-15, "maxiter": 100},
            )  # fmt: skip
        d = np.clip(width * found.x, low, high)
        return d if np.isfinite(d).all() else np.zeros(len(low))

    def multipliers(self, d: Floats) -> Floats:
        """Return how hard each residual pushes back at d, as if that were the minimum."""
        from scipy.optimize import nnls

        values, slopes = self.at(d)[1:], self.slope(d)
        size = np.abs(slopes[1:]).sum(axis=1) + 1e-300
        pushing = self.equal | (values >= -ACTIVE * size)
        found = np.zeros(len(values))
        if pushing.any():  # equations push either way
            columns = np.concatenate([slopes[1:][pushing], -slopes[1:][self.equal]]).T
            pushes, _ = nnls(columns, -slopes[0], maxiter=50 * columns.shape[1])
            found[pushing] = pushes[: int(pushing.sum())]
            found[self.equal] -= pushes[int(pushing.sum()) :]
        return found

    def metric(self, d: Floats, multipliers: Floats, *, turned: bool) -> Floats:
        """Return directions, as columns, along which the Lagrangian bends alike; 1 is the longest.

        Parameters
        ----------
        d, multipliers
            Where, and how much each residual counts.
        turned
            Whether directions may be others than the coordinates'.
        """
        bends = self.bends[0] + np.tensordot(multipliers, self.bends[1:], 1)
        if not turned:
            bends = np.diag(np.diag(bends))
        sizes, directions = np.linalg.eigh(bends)
        sizes = np.abs(sizes)
        sizes = np.maximum(sizes, FLATTEST * max(float(sizes.max()), 1e-300))
        if not turned:
            sizes, directions = np.diag(directions @ np.diag(sizes) @ directions.T), np.eye(len(d))
        return np.asarray(directions * np.sqrt(sizes.min() / sizes), np.float64)


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
    return float(
        vector[0] + price * np.maximum(merit.violations(vector) - TOLERANCE / 2, 0.0).sum()
    )
