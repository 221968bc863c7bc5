r"""A trust-region method without derivatives on quadratic models through few points.

The model interpolates f at m points, n + 2 to 2 n + 1; what they leave open is settled by changing
the Hessian as little as possible from one model to the next. A step minimises the model in a ball
around the best point, inside the bounds. See Powell, The NEWUOA software (2006) and The BOBYQA
algorithm (2009); Conn, Scheinberg & Vicente, Introduction to Derivative-Free Optimization (2009).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from scgd.problem import Problem
from scgd.strategies.asks import Asking, Outcome, Report
from scgd.strategies.box import Box, in_box
from scgd.strategies.budget import Budget
from scgd.strategies.quadratic_model_algebra import Interpolation
from scgd.strategies.trust_region import trust_region_step
from scgd.typing import Array, Floats

__all__ = ["QuadraticModel", "quadratic_model", "quadratic_models"]

FIRST = 0.4
"""The first radius in units: x0 tells the unit, and a minimum lies about one from there."""

POOR, GOOD = 0.1, 0.7
"""Actual by predicted fall: below the first a ball is too large, above the second too small."""
FAR = 10.0
"""The base follows the best point when it is so many radii away: fourth powers of that, times the
rounding unit, still leave twelve digits to the model."""


@dataclass(frozen=True)
class QuadraticModel:
    """Where a search by quadratic models ended, and its last model.

    Attributes
    ----------
    x, fun
        The best point, and its value.
    gradient, hessian
        Of the model at x; coordinates that the bounds fix have none (zeros).
    radius
        The last lower bound of the trust-region radius.
    """

    x: Floats
    fun: float
    gradient: Floats
    hessian: Floats
    radius: float


def quadratic_model(
    x: Floats,
    f: float,
    radius: float,
    box: Box,
    rng: np.random.Generator,
    final_radius: float = 1e-8,
    n_points: int | None = None,
) -> Generator[Floats, Any, QuadraticModel]:
    r"""Minimise by quadratic models through few points, until the radius is at its final value.

    Step :math:`k` minimises :math:`q_k(x_k + d)` over :math:`\|d\| \le \Delta_k` inside the box.
    The ball grows and shrinks with the ratio of actual and predicted fall, but not below
    :math:`\rho`, which falls when steps of that length bring nothing and all points are near. A
    point that is far away is exchanged for the one where its Lagrange function is largest.

    Parameters
    ----------
    x, f
        The start, inside the box, and its value.
    radius, final_radius
        The first :math:`\rho`, about a tenth of the distance to the minimum, and the last.
    box
        Bounds; they are read before every step, so that they may widen.
    rng
        Draws the side of the first points where there are fewer than two per coordinate.
    n_points
        m; None: 2 n + 1.

    Yields
    ------
    ndarray
        The other points of the first set as rows, then one point at a time. Values are floats; a
        failed evaluation is infinite.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> search = quadratic_model(np.zeros(2), 5.0, 0.5, Box.around(np.zeros(2)), rng)
    >>> asked, n_evals = next(search), 0
    >>> try:
    ...     while True:
    ...         values = ((asked - [1.0, 2.0]) ** 2).sum(axis=-1)
    ...         n_evals += values.size
    ...         asked = search.send(values)
    ... except StopIteration as end:
    ...     found = end.value
    >>> found.x.round(6), n_evals < 40
    (array([1., 2.]), True)
    """
    free = box.upper > box.lower
    if not free.any():
        return QuadraticModel(x, f, np.zeros(x.size), np.zeros((x.size, x.size)), final_radius)
    search = Search(x, f, radius, final_radius, box, free)
    yield from search.begin(rng, n_points)
    while True:
        if search.model.sound:
            if not (yield from search.iterate()):
                return search.found()
        elif search.rho > search.final and np.isfinite(search.f):
            search.lower_rho()  # nothing but failures around, or a degenerate set: begin anew
            yield from search.begin(rng, n_points)
        else:
            return search.found()


class Search:
    """The state of one search: its model, radius (Delta) and resolution (rho)."""

    model: Interpolation

    def __init__(
        self, x: Floats, f: float, radius: float, final: float, box: Box, free: Array
    ) -> None:
        self.x, self.f, self.box, self.free = x.copy(), f, box, free
        widths = (box.upper - box.lower)[free]
        self.rho = self.radius = min(radius, 0.5 * float(widths.min()))
        self.final = min(final, self.rho)
        self.errors: list[float] = []
        self.worse = 0

    def bounds(self, about: Floats) -> tuple[Floats, Floats]:
        """Return the bounds relative to a point of the coordinates that move."""
        lower, upper = self.box.lower[self.free], self.box.upper[self.free]
        return np.minimum(lower - about, 0.0), np.maximum(upper - about, 0.0)

    def whole(self, points: Floats) -> Floats:
        """Return points with all coordinates."""
        whole = np.broadcast_to(self.x, (*points.shape[:-1], self.x.size)).copy()
        whole[..., self.free] = points
        return self.box.clip(whole)

    def begin(self, rng: np.random.Generator, n_points: int | None) -> Generator[Floats, Any, None]:
        """Ask the first set around the best point: up and down along each coordinate."""
        base = self.x[self.free]
        n = base.size
        m = 2 * n + 1 if n_points is None else min(max(n_points, n + 2), 2 * n + 1)
        lower, upper = self.bounds(base)
        r = self.rho
        up, down = np.minimum(upper, r), np.maximum(lower, -r)
        steps = np.stack([up, down])
        near = -down < r / 2  # a bound in the way: two points on the other side
        steps[:, near] = np.stack([up, np.minimum(upper, 2 * r)])[:, near]
        near = up < r / 2
        steps[:, near] = np.stack([down, np.maximum(lower, -2 * r)])[:, near]
        if m < 2 * n + 1:
            steps = rng.permuted(steps, axis=0)
        points = np.zeros((m, n))
        points[1 : n + 1] = np.diag(steps[0])
        points[n + 1 :] = np.diag(steps[1])[: m - n - 1]
        asked = self.whole(base + points[1:])
        told = yield asked
        values = np.concatenate([[self.f], np.asarray(told, np.float64)])
        known = values[np.isfinite(values)]
        values[~np.isfinite(values)] = known.max() if known.size else 0.0
        self.model = Interpolation(base, points, values)
        self.model.sound = self.model.sound and known.size > 1
        if self.model.best:
            self.x, self.f = asked[self.model.best - 1], self.model.lowest

    def evaluate(self, y: Floats, t: int | None) -> Generator[Floats, Any, tuple[float, float]]:
        """Ask f at a point, and take it into the set for point t or the one that matters least.

        Return the value (the worst of the set for a failed one) and the value of the model.
        """
        model = self.model
        lowest, predicted = model.lowest, model.lowest + float(model.rise(y))
        k = -1 if t is None else t
        value = float((yield self.whole(model.base + y)))
        value = value if np.isfinite(value) else float(model.values.max())
        for trial in range(2):
            parts, image, beta = model.denominators(y)
            if t is None:
                centre = y if value < lowest else model.at
                near = ((model.points - centre) ** 2).sum(axis=1) / self.radius**2
                weights = np.maximum(near, 1.0) ** 2 * parts
                if value >= lowest:
                    weights[model.best] = -1.0
                k = int(weights.argmax())
            if parts[k] > 0.5 * image[k] ** 2:
                break
            if trial == 0 and not model.factorise():
                break
        if model.sound and parts[k] > 0.5 * image[k] ** 2:
            model.replace(k, y, value, image, beta)
        else:
            model.sound = False
        if value < self.f:
            self.f, self.x = value, self.whole(model.base + y)
        self.errors = [*self.errors[-2:], abs(value - predicted)]
        return value, predicted

    def iterate(self) -> Generator[Floats, Any, bool]:
        """Take a step, improve the set or lower rho; tell whether to go on."""
        model = self.model
        if float(np.abs(model.at).max()) > FAR * self.radius:
            model.move_base()
            if not model.sound:
                return True
        at, lowest = model.at.copy(), model.lowest
        gradient = model.gradient()
        bounds = self.bounds(model.base + at)
        d, gain, curvature = trust_region_step(gradient, model.hessian, *bounds, self.radius)
        length = min(self.radius, float(np.sqrt(d @ d)))
        ratio, settled = -1.0, False
        short = length < self.rho / 2 or gain <= np.finfo(float).eps * abs(lowest)
        if short:
            known = len(self.errors) == 3 and curvature > 0
            settled = known and max(self.errors) <= 0.125 * self.rho**2 * curvature
            self.resize(0.1 * self.radius)
        else:
            value, predicted = yield from self.evaluate(at + d, None)
            ratio = (lowest - value) / (lowest - predicted) if predicted < lowest else -1.0
            if ratio <= POOR:
                self.resize(min(0.5 * self.radius, length))
            else:
                self.resize(max(0.5 * self.radius, length if ratio <= GOOD else 2 * length))
            self.compare_least(ratio)
            if ratio >= POOR or not model.sound:
                return True
        if not settled:
            if (yield from self.improve()):
                return True
            if ratio > 0 or max(self.radius, 0.0 if short else length) > self.rho:
                return True
        if self.rho > self.final:
            self.lower_rho()
            return True
        if short and length > 0:
            yield from self.evaluate(at + d, None)
        return False

    def improve(self) -> Generator[Floats, Any, bool]:
        """Exchange the farthest point if it is too far away; tell whether it was."""
        model = self.model
        distances = np.sqrt(((model.points - model.at) ** 2).sum(axis=1))
        t = int(distances.argmax())
        if distances[t] <= 2 * self.radius:
            return False
        size = max(min(0.1 * distances[t], self.radius), self.rho)
        gradient, hessian = model.lagrange(t)
        bounds = self.bounds(model.base + model.at)
        steps = [trust_region_step(s * gradient, s * hessian, *bounds, size) for s in (1.0, -1.0)]
        tries = [model.at + step[0] for step in steps]
        worth = [model.denominators(y)[0][t] for y in tries]
        yield from self.evaluate(tries[int(np.argmax(worth))], t)
        return True

    def compare_least(self, ratio: float) -> None:
        """Forget the past of the model if thrice the least Hessian would tell a tenth the slope."""
        model = self.model
        if ratio > 0.01 or not model.sound:
            self.worse = 0
            return
        least, now = model.least_gradient(), model.gradient()
        self.worse = self.worse + 1 if now @ now >= 100 * (least @ least) else 0
        if self.worse >= 3:
            model.forget()
            self.worse = 0

    def resize(self, radius: float) -> None:
        """Set the radius; one a little above rho is rho."""
        self.radius = radius if radius > 1.5 * self.rho else self.rho

    def lower_rho(self) -> None:
        """Lower rho by a factor of ten, or in even steps to its final value."""
        old, left = self.rho, self.rho / self.final
        # at most a factor of ten, and the last two falls of one size (Powell 2006, section 7)
        self.rho = self.final if left <= 16 else old * (left**-0.5 if left <= 250 else 0.1)
        self.radius = max(0.5 * old, self.rho)
        self.errors = []

    def found(self) -> QuadraticModel:
        """Return where the search stands."""
        n, model = self.x.size, self.model
        gradient, hessian = np.zeros(n), np.zeros((n, n))
        gradient[self.free] = model.gradient()
        hessian[np.ix_(self.free, self.free)] = model.hessian
        return QuadraticModel(self.x, self.f, gradient, hessian, self.rho)


def quadratic_models(problem: Problem, budget: Budget, rng: np.random.Generator) -> Asking:
    """Run :func:`quadratic_model` from x0, then from its answer with other first points."""
    yield Report(solver="quadratic model", deterministic=True)
    unit, none = problem.unit, problem.lower.size
    x, f = problem.x0 / unit, (yield problem.x0)
    box = Box(x, problem.lower / unit[:none], problem.upper / unit[:none])
    radius, gain = min(FIRST, 0.4 * box.width), np.inf
    while gain > budget.tol * abs(f) or not np.isfinite(f):
        search = quadratic_model(x, f if np.isfinite(f) else 1e300, radius, box, rng)
        found = yield from in_box(search, problem, box)
        gain, x, f, radius = f - found.fun, found.x, found.fun, 0.5 * radius
    return Outcome(converged=True)
