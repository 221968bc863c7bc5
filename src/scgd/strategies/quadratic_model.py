r"""A trust-region method without derivatives: quadratic models through few points.

The model interpolates f at n + 2 to :math:`2 n + 1` points. What they leave open is settled by
changing the Hessian as little as possible, in the Frobenius norm, from one model to the next. With
r for the values less those of the model before, the change is
:math:`c + g^T y + \frac12 \sum_j \lambda_j (y_j^T y)^2`, where

.. math::

    \begin{pmatrix} A & 1 & Y \\ 1^T & 0 & 0 \\ Y^T & 0 & 0 \end{pmatrix}
    \begin{pmatrix} \lambda \\ c \\ g \end{pmatrix} = \begin{pmatrix} r \\ 0 \\ 0 \end{pmatrix},
    \qquad A_{ij} = \tfrac12 (y_i^T y_j)^2.

A new point changes one row and one column, so the inverse changes by a matrix of rank two. See
Powell, Mathematical Programming 100 (2004), The NEWUOA software (2006) and The BOBYQA algorithm
(2009); Conn, Scheinberg and Vicente, Introduction to Derivative-Free Optimization (2009).
"""

from __future__ import annotations

import numpy as np

from scgd.problem import Problem
from scgd.strategies.asks import Asking, Outcome, Report
from scgd.strategies.box import Box, in_box
from scgd.strategies.budget import Budget
from scgd.strategies.subspace import on_coordinates
from scgd.typing import Floats

SCARCE = 4
"""Evaluations per coordinate below which the first set has n + 2 points, about as many as a
gradient takes: 2 n + 1 would leave hardly any for steps."""
FIRST, WIDEST = 0.7, 0.4
"""The first radius, in units and in widths of the box: x0 tells the unit, and a minimum lies about
one from there."""
POOR, GOOD = 0.1, 0.7
"""Actual by predicted fall: below the first a ball is too large, above the second too small."""
ENOUGH = 0.01
"""A further step that brings less than this share of the gain so far is left out, as in Powell's
programs: the quadratic is only a model."""
FAR = 10.0
"""The origin follows the best point when it is so many radii away: fourth powers of that, times the
rounding unit, still leave twelve digits to the model."""


def quadratic_model(problem: Problem, budget: Budget, rng: np.random.Generator) -> Asking:
    """Minimize a deterministic function by quadratic models through few points.

    From the end of one search the next begins, with a radius half as large, while that gains.
    It suits smooth functions of up to about a hundred inputs and few evaluations.

    Examples
    --------
    >>> from scgd.strategies.drive import drive
    >>> done = drive(quadratic_model, Problem.check([3.0, 1.0]), lambda x: float(x @ x), 40)
    >>> done.fun < 1e-12
    True
    """
    yield Report(solver="quadratic model", deterministic=True)
    unit, none = problem.unit, problem.lower.size
    x, f = problem.x0 / unit, (yield problem.x0)
    f = f if np.isfinite(f) else np.inf
    box = Box(x, problem.lower / unit[:none], problem.upper / unit[:none])
    radius, gain = first_radius(box), np.inf
    while gain > budget.tol * abs(f) or not np.isfinite(f):
        search = interpolate_quadratics(x, f, radius, box, first_points(x.size, budget))
        end, least = yield from in_box(search, problem, box)
        gain, x, f, radius = f - least, end, least, 0.5 * radius
    return Outcome(converged=True)


def first_radius(box: Box) -> float:
    """Return how far from the start the first points lie."""
    return min(FIRST, WIDEST * box.width)


def first_points(n: int, budget: Budget) -> int:
    """Return how many points of n coordinates are affordable."""
    return n + 2 if budget.left < SCARCE * n else 2 * n + 1


def interpolate_quadratics(
    x: Floats, f: float, radius: float, box: Box, n_points: int, final_radius: float = 1e-8
) -> Asking:
    r"""Go down from x by quadratic models; return the best point and its value.

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
    n_points
        How many points determine a model: from n + 2, which move soonest, to 2 n + 1, which tell
        the curvature along each coordinate.
    """
    free = box.upper > box.lower
    if not free.all():
        end = x.copy()
        if free.any():
            part, places = box.part(free), np.flatnonzero(free)
            inner = interpolate_quadratics(x[free], f, radius, part, n_points, final_radius)
            end[places], f = yield from on_coordinates(inner, x, places)
        return end, f
    delta = rho = min(radius, 0.5 * float((box.upper - box.lower).min()))
    model: Interpolation = yield from first_model(x, f, rho, box, n_points)
    errors: list[float] = []
    while True:
        if not model.sound:  # a degenerate set, or nothing but failures
            if rho <= final_radius:
                return model.x, model.lowest
            delta = rho = max(0.1 * rho, final_radius)
            model = yield from first_model(model.x, model.lowest, rho, box, n_points)
            continue
        if float(np.abs(model.at).max()) > FAR * delta:
            model.move_origin()
            continue
        at, lowest, reached = model.at.copy(), model.lowest, delta
        with np.errstate(over="ignore", invalid="ignore"):
            slope, room = model.gradient(), model.room(box)
            d, gain, bend = trust_region_step(slope, model.hessian, *room, delta)
        model.sound = bool(np.isfinite(d).all())
        if not model.sound:
            continue
        length, ratio, settled = min(delta, float(np.linalg.norm(d))), -1.0, False
        if length < rho / 2 or gain <= np.finfo(float).eps * abs(lowest):
            delta *= 0.1  # where errors could not move the minimum by rho, all is known here
            settled = len(errors) > 1 and max(errors) <= 0.125 * rho**2 * bend
        else:
            predicted = float(model.rise(at + d))
            value = yield from evaluate(model, at + d, -1, delta, box)
            errors = [*errors[-2:], abs(value - lowest - predicted)]
            ratio = (lowest - value) / -predicted if predicted < 0 else -1.0
            delta, reached = max(0.5 * delta, length if ratio <= GOOD else 2 * length), length
            if ratio <= POOR:
                delta = min(0.5 * reached, delta)
        delta = delta if delta > 1.5 * rho else rho
        if ratio >= POOR or not model.sound:
            continue
        distances = np.linalg.norm(model.points - model.at, axis=1)
        t = int(distances.argmax())
        if distances[t] > 2 * delta and not settled:
            size = max(min(0.1 * float(distances[t]), delta), rho)
            yield from evaluate(model, model.far_in_lagrange(t, size, box), t, delta, box)
        elif settled or (ratio <= 0 and max(delta, reached) <= rho):
            if rho <= final_radius:
                return model.x, model.lowest
            delta, rho, errors = 0.5 * rho, max(0.1 * rho, final_radius), []


def first_model(x: Floats, f: float, rho: float, box: Box, n_points: int) -> Asking:
    """Ask the first set around x: up and down along each coordinate."""
    n = x.size
    lower, upper = np.minimum(box.lower - x, 0.0), np.maximum(box.upper - x, 0.0)
    up, down = np.minimum(upper, rho), np.maximum(lower, -rho)
    near = -down < rho / 2  # a bound in the way: two points on the other side
    down = np.where(near, np.minimum(upper, 2 * rho), down)
    up = np.where(up < rho / 2, np.maximum(lower, -2 * rho), up)
    points = np.concatenate([np.zeros((1, n)), np.diag(up), np.diag(down)])[:n_points]
    values = np.append(f, (yield box.clip(x + points[1:])))
    known = values[np.isfinite(values)]
    values[~np.isfinite(values)] = known.max() if known.size else np.inf
    return Interpolation(x, points, values)


def evaluate(model: Interpolation, y: Floats, t: int, delta: float, box: Box) -> Asking:
    """Ask f at y and take it into the set for point t, or -1: for the one that matters least.

    Return the value; a failed one counts as the worst of the set.
    """
    value = yield box.clip(model.origin + y)
    value = value if np.isfinite(value) else float(model.values.max())
    for _ in range(2):
        parts, image, beta = model.denominators(y)
        if t < 0:
            centre = y if value < model.lowest else model.at
            near = ((model.points - centre) ** 2).sum(axis=1) / delta**2
            weights = np.maximum(near, 1.0) ** 2 * parts
            if value >= model.lowest:
                weights[model.best] = -1.0
            t = int(weights.argmax())
        model.sound = bool(parts[t] > 0.5 * image[t] ** 2)
        if model.sound or not model.factorise():  # rounding had grown
            break
    if model.sound:
        model.replace(t, y, value, image, beta)
    return value


class Interpolation:
    """Points relative to an origin, their values, and the quadratic through them.

    ``best`` is the row of the lowest value, ``slope`` the gradient at the origin; columns of
    ``inverse`` hold the Lagrange functions. ``sound`` tells whether the points determine them.
    """

    def __init__(self, origin: Floats, points: Floats, values: Floats) -> None:
        self.origin, self.points, self.values = origin, points, values
        self.slope, self.hessian = np.zeros(origin.size), np.zeros((origin.size,) * 2)
        self.best = int(values.argmin())
        self.sound = bool(np.isfinite(values).all()) and self.factorise()

    @property
    def at(self) -> Floats:
        """The best point, relative to the origin."""
        at: Floats = self.points[self.best]
        return at

    @property
    def x(self) -> Floats:
        """The best point."""
        return self.origin + self.at

    @property
    def lowest(self) -> float:
        """The lowest value."""
        return float(self.values[self.best])

    def room(self, box: Box) -> tuple[Floats, Floats]:
        """Return the bounds relative to the best point."""
        return np.minimum(box.lower - self.x, 0.0), np.maximum(box.upper - self.x, 0.0)

    def factorise(self) -> bool:
        """Invert the matrix anew and let the model meet all values; tell whether that worked."""
        y, m = self.points, len(self.points)
        matrix = np.zeros((m + 1 + y.shape[1],) * 2)
        matrix[:m, :m] = 0.5 * (y @ y.T) ** 2
        matrix[:m, m] = matrix[m, :m] = 1.0
        matrix[:m, m + 1 :], matrix[m + 1 :, :m] = y, y.T
        unit = np.ones(len(matrix))
        for _ in range(3):  # rows of about equal size: points may lie at very different distances
            size = np.abs(matrix * unit).max(axis=1) * unit
            unit /= np.sqrt(np.where(size > 0, size, 1.0))
        try:
            inverse = np.linalg.inv(unit[:, None] * matrix * unit)
        except np.linalg.LinAlgError:
            return False
        inverse = unit[:, None] * inverse * unit
        self.inverse = 0.5 * (inverse + inverse.T)
        self.add(self.inverse[:, :m] @ (self.values - self.lowest - self.rise(y)))
        return bool(np.isfinite(self.inverse).all() and np.isfinite(self.hessian).all())

    def add(self, change: Floats) -> None:
        """Add the quadratic with these coefficients."""
        m = len(self.points)
        self.slope = self.slope + change[m + 1 :]
        self.hessian = self.hessian + (self.points.T * change[:m]) @ self.points

    def move_origin(self) -> None:
        """Let the best point be the origin: less is lost to rounding near it."""
        at = self.at.copy()
        self.slope = self.slope + self.hessian @ at
        self.origin, self.points = self.origin + at, self.points - at
        self.sound = self.factorise()

    def gradient(self) -> Floats:
        """Return the gradient of the quadratic at the best point."""
        return self.slope + self.hessian @ self.at

    def rise(self, y: Floats) -> Floats:
        """Return by how much the quadratic lies above its value at the best point."""
        d = y - self.at
        rise: Floats = d @ self.gradient() + 0.5 * ((d @ self.hessian) * d).sum(axis=-1)
        return rise

    def far_in_lagrange(self, t: int, size: float, box: Box) -> Floats:
        """Return where the Lagrange function of point t is about largest, in a ball and the box.

        It is 1 at point t and 0 at all others.
        """
        m = len(self.points)
        hessian = (self.points.T * self.inverse[:m, t]) @ self.points
        gradient, room = self.inverse[m + 1 :, t] + hessian @ self.at, self.room(box)
        ways = [
            self.at + trust_region_step(sign * gradient, sign * hessian, *room, size)[0]
            for sign in (1.0, -1.0)
        ]
        return max(ways, key=lambda y: self.denominators(y)[0][t])

    def denominators(self, y: Floats) -> tuple[Floats, Floats, float]:
        """Return what each point's exchange for y divides by, and what :meth:`replace` needs.

        For t these are alpha beta + tau^2, where tau is the value of its Lagrange function at y;
        the larger, the better the set after it. Beyond rounding none is below tau^2.
        """
        m = len(self.points)
        w = np.concatenate([0.5 * (self.points @ y) ** 2, [1.0], y])
        image = self.inverse @ w
        beta = 0.5 * float(y @ y) ** 2 - float(w @ image)
        return np.diagonal(self.inverse)[:m] * beta + image[:m] ** 2, image, beta

    def replace(self, t: int, y: Floats, value: float, image: Floats, beta: float) -> None:
        """Exchange point t for y, whose value is known."""
        error = value - self.lowest - float(self.rise(y))
        alpha, tau = self.inverse[t, t], image[t]
        other = -image
        other[t] += 1.0
        pair = np.stack([other, self.inverse[:, t]])
        middle = np.array([[alpha, tau], [tau, -beta]]) / (alpha * beta + tau * tau)
        self.inverse = self.inverse + pair.T @ (middle @ pair)
        self.points[t], self.values[t] = y, value
        self.add(error * self.inverse[:, t])
        if value < self.lowest:
            self.best = t


def trust_region_step(
    gradient: Floats, hessian: Floats, lower: Floats, upper: Floats, radius: float
) -> tuple[Floats, float, float]:
    """Return a step inside a ball and bounds, its fall and the least curvature met (0 at the ball).

    Conjugate gradients from 0; a coordinate that meets its bound stays there and they begin anew,
    and where they meet the ball they end (Conn, Gould and Toint, Trust-Region Methods, 2000).
    """
    d, g, s, gain, share = np.zeros(gradient.size), gradient, np.zeros(gradient.size), 0.0, 0.0
    least = np.inf
    free = ~(((lower >= 0.0) & (g >= 0.0)) | ((upper <= 0.0) & (g <= 0.0)))
    while True:
        down = np.where(free, -g, 0.0)
        square, left = float(down @ down), radius * radius - float(d @ d)
        if left <= 0.0 or not square * left > (ENOUGH * gain) ** 2:  # also where it overflows
            return d, gain, least if least < np.inf else 0.0
        s = down + share * s
        hs = hessian @ s
        fall, size, along, bend = (float(v) for v in (down @ s, s @ s, d @ s, s @ hs))
        to_ball = left / (np.sqrt(along * along + size * left) + along)
        length = min(to_ball, fall / bend) if bend > 0.0 else to_ball
        with np.errstate(divide="ignore", invalid="ignore"):
            limits = np.where(s == 0.0, np.inf, np.where(s > 0.0, upper - d, lower - d) / s)
        met = int(limits.argmin())
        bounded = bool(limits[met] < length)
        length = float(limits[met]) if bounded else length
        d, g, won = d + length * s, g + length * hs, length * (fall - 0.5 * length * bend)
        gain, least = gain + won, min(least, max(bend / size, 0.0))
        if bounded:
            d[met] = upper[met] if s[met] > 0.0 else lower[met]
            free[met], share = False, 0.0
        elif length == to_ball or won <= ENOUGH * gain:
            return d, gain, 0.0 if length == to_ball else least
        else:
            share = float(g[free] @ g[free]) / square
