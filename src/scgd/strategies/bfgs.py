"""BFGS from differences, with a long memory and steps that need only values."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from scgd.strategies.asks import Along, Gradient, Report
from scgd.strategies.box import Box
from scgd.strategies.limited_memory import bends, two_loop
from scgd.strategies.member import Best
from scgd.strategies.precision import Precision
from scgd.strategies.relevance import PLACES, Shares
from scgd.typing import Array, Floats

MEMORY = 200
"""Pairs kept: of BBOB's f10 in 20 dimensions and 2,000 evaluations 4e-6 is left, L-BFGS-B with its
ten leaves 1,600."""
HERE = 3e-4
"""The part of x itself that a difference must have, in radii: else x's own rounding hides it."""
WIDER = 3.0
"""How much wider differences become where noise in f hides a gradient: half a decade."""
DROWNED = 2.0
"""A gradient, or a change of it, that noise in f does not explain, in standard deviations: 95 %."""
COVERED = 1e-4
"""Share of the squared gradient that inactive coordinates may hold."""
LEAST, OTHERS = 16, 0.1
"""Coordinates below which all are differentiated every time; else, beside the active ones, so many
others, as a part of those. Of Rosenbrock's function of ten coordinates of 100, the others faint,
2,500 evaluations leave 2e-5, and 2.4 where all are differentiated."""
ARMIJO, STRAIGHT = 1e-4, 0.95
"""The parts of what a slope promised that f must have fallen by (Nocedal and Wright, ch. 3), and
beyond which f is still straight: a parabola gains so much at a tenth of the way to its minimum,
where its slope is 0.9 of the first one, their second Wolfe constant."""
CLOSE = 0.85
"""How near a step must come to the minimum that a parabola predicts."""
MOST_TRIES, MOST_GROWN = 25, 12
"""Points on a line, and those after which a longer rate is not tried: 4^12 times the first one."""
NOT_BELOW, NOT_ABOVE, SHRUNK = 0.05, 0.5, 0.1
"""The limits of a shorter rate, in parts of the last, and the rate where no parabola tells it
(Dennis and Schnabel 1983 have a tenth and a half)."""
GROWTH, FIRST_GROWTH = 4.0, 10.0
"""The most that a rate grows at once where a memory tells the length of a step, and where not."""
FARTHEST = 100.0
"""The longest step, in length scales per coordinate (root mean square): a metric may be wrong."""
LONGER, SHORTER = 0.2, 0.3
"""How the weight of the long metric changes after a full step, and after one of less than half:
five of a kind turn it over. Without the long metric gaps are a fifth larger (docs/ablation.md)."""
RETRY, SMALLEST = 1e-3, 1e-9
"""What a first step is multiplied by after a line that did not fall, and the smallest one, in
length scales: a tenth of the finest difference."""
PATIENCE = 3
"""Small gains in a row, or lines that did not fall, that end a descent: one may be luck."""
HOPELESS = 1e-3
"""A gain in parts of what is missing to the best value known, below which a descent ends elsewhere:
a thousand such steps are more than it takes to converge."""
WALL, JAMMED = 1e3, 3
"""A rise that is a wall, in changes that the slope predicted (a failed value is one, too), and the
lines in a row that must have met one for it to stand across the way."""


class BFGS:
    r"""Limited-memory BFGS on forward, then central differences.

    The first metric is :math:`\gamma = (s'y / y'y)^{1-t} (s's / s'y)^t`: long steps along weak
    directions as long as full steps are accepted (t grows), short ones when they are not. Where few
    coordinates hold nearly all of the gradient, only those are differentiated, and a tenth as many
    others in turn.

    Parameters
    ----------
    x, f
        Where it starts, and f there.
    s
        The length scale.
    small
        A decrease that counts as none, beside rounding.
    box
        Where it may look. Coordinates at a wall whose slope points out of it are held there
        (two-metric projection, Bertsekas 1982); lines bend along the walls.
    has_gradient
        Whether slopes are the user's own instead of differences.
    precision
        How precise f is, and so how wide differences must be.
    main
        Whether it reports the relevance of coordinates: restarts do not.
    best
        The best point known: a gain that is a small part of what is missing to it counts as none.

    Attributes
    ----------
    f, gradient
        At the last point; None before the first gradient.
    jammed
        Whether a wall stands across its way.
    agreement
        Actual over predicted decrease of the last step; None before the first one.
    """

    def __init__(
        self,
        x: Floats,
        f: float,
        s: float,
        small: float,
        box: Box,
        has_gradient: bool,
        precision: Precision,
        *,
        main: bool,
        best: Best,
    ) -> None:
        self.main, self.best = main, best
        self.has_gradient, self.precision = has_gradient, precision
        self.x, self.f, self.s, self.p, self.small = x.copy(), f, s, x.size, small
        self.box = box
        self.steps: list[Floats] = []
        self.changes: list[Floats] = []
        self.gamma, self.trust = 1.0, 1.0
        self.central, self.first = False, True  # the first gradient is compared with none
        self.gradient: Floats | None = None
        self.active: Array | None = None  # a mask, or None for all
        self.was_active: Array = np.zeros(self.p, np.bool_)
        self.renew, self.turn, self.step_length = False, 0, s
        self.looked = False  # at all coordinates, since something was gained
        self.moved: Floats = np.zeros(self.p)
        self.shares = Shares(self.p)
        self.n_small = self.n_failed = self.n_walls = 0
        self.agreement: float | None = None

    def run(self) -> Generator[Any, Any, None]:
        """Descend until nothing is left to gain."""
        while True:
            gradient = yield from self._differentiate()
            self._learn(gradient)
            if self.main and self.shares.news:
                yield Report(relevance=self.shares.found())
            held = self._held(gradient)
            size = float(np.linalg.norm(gradient[~held]))
            if not self._drowned() < size < np.inf:
                if self.central and not self._widen():
                    return
                self.central = self.first = True
                continue
            direction, slope = self._direction(gradient, size, held)
            rate, value, x = yield from self._search_line(direction, slope, gradient)
            self._rate_metric(rate)
            fell = rate > 0 and value < self.f
            self.agreement = (self.f - value) / max(-slope * rate, 1e-300) if fell else 0.0
            if fell:
                over = self._accept(x, value)
            else:
                over = self._refuse()
            if over:
                return

    def _differentiate(self) -> Generator[Any, Any, Floats]:
        """Return differences at the active coordinates and at some others, or the user's slopes."""
        if self.has_gradient:
            exact: Floats = yield Gradient(self.x, np.arange(self.p))
            self.shares.add(exact, np.arange(self.p))
            return exact
        radius = self._radius()
        h = radius * self.s + HERE * radius * np.abs(self.x)
        gradient, extra = np.zeros(self.p), np.empty(0, np.int64)
        todo = np.arange(self.p)
        if self.active is not None:
            rest = np.flatnonzero(~self.active)
            n = min(len(rest), max(1, int(OTHERS * self.active.sum())))
            extra = rest[(self.turn + np.arange(n)) % len(rest)]
            self.turn += n
            todo = np.concatenate([np.flatnonzero(self.active), extra])
        here, lower, upper = self.x[todo], self.box.lower[todo], self.box.upper[todo]
        ups, downs = here + h[todo], np.maximum(here - h[todo], lower)
        if self.central:
            ups = np.minimum(ups, upper)
            widths = ups - downs
            values = yield Along(self.x, np.tile(todo, 2), np.concatenate([ups, downs]))
        else:
            ups = np.where(ups <= upper, ups, downs)
            widths = ups - here
            values = yield Along(self.x, todo, ups)
        widths[widths == 0] = np.inf  # no room: no slope
        base = values[len(todo) :] if self.central else self.f
        with np.errstate(invalid="ignore"):  # of two failed values
            gradient[todo] = (values[: len(todo)] - base) / widths
        gradient[~np.isfinite(gradient)] = 0.0
        self.shares.add(gradient, todo)
        if self.p >= LEAST:
            self._choose_active(gradient, extra)
        return gradient

    def _choose_active(self, gradient: Floats, extra: Array) -> None:
        """Keep to few coordinates where they hold nearly all of the gradient."""
        squares = gradient**2
        total = float(squares.sum())
        if self.active is None:
            if total > 0 and (self.first or self.renew):
                self._find_active(gradient, squares, total)
            return
        new = extra[squares[extra] > COVERED * total]
        gradient[extra[squares[extra] <= COVERED * total]] = 0.0
        if len(new):
            self.active[new] = True
            if self.gradient is not None:
                self.gradient[new] = gradient[new]
        if self.active.all():
            self.active = None

    def _find_active(self, gradient: Floats, squares: Floats, total: float) -> None:
        self.renew, order = False, np.argsort(-squares)
        n = int(np.searchsorted(np.cumsum(squares[order]), (1 - COVERED) * total)) + 1
        active = self.was_active.copy()
        active[order[:n]] = True
        if active.sum() <= self.p // 2:
            self.active, self.turn = active, 0
            gradient[~active] = 0.0

    def _learn(self, gradient: Floats) -> None:
        """Add the last step and the change of the gradient to the memory."""
        if self.gradient is not None and not self.first:
            step, change = self.moved, gradient - self.gradient
            along = float(step @ change)
            if bends(step, change) and float(np.linalg.norm(change)) > self._drowned():
                self.steps.append(step)
                self.changes.append(change)
                if len(self.steps) > MEMORY:
                    del self.steps[0], self.changes[0]
                short, long = along / float(change @ change), float(step @ step) / along
                self.gamma = short ** (1 - self.trust) * long**self.trust
                self._bend()
        self.gradient = gradient

    def _bend(self) -> None:
        """Note over the last steps how f bends: differences may be wider where it bends less."""
        if self.precision.noise:
            recent = zip(self.steps[-PLACES:], self.changes[-PLACES:], strict=True)
            bend = max(float(step @ change) / float(step @ step) for step, change in recent)
            self.precision = Precision(
                self.precision.noise, min(self.precision.change, bend * self.s**2)
            )

    def _widen(self) -> bool:
        """Take wider differences; tell whether that was possible."""
        before = self.precision.central
        self.precision = Precision(self.precision.noise, self.precision.change / WIDER**3)
        return self.precision.central > before

    def _drowned(self) -> float:
        """Return the length of a gradient up to which noise in f explains it."""
        n = self.p / 2 if self.central else 2 * self.p  # values of half the weight, on both sides
        return DROWNED * self.precision.noise / (self._radius() * self.s) * float(np.sqrt(n))

    def _radius(self) -> float:
        return self.precision.central if self.central else self.precision.forward

    # ---- steps -----------------------------------------------------------------------------------

    def _held(self, gradient: Floats) -> Array:
        """Return which coordinates stand at a wall with f falling beyond it."""
        low, high = self.x <= self.box.lower, self.x >= self.box.upper
        return np.asarray((low & (gradient > 0)) | (high & (gradient < 0)))

    def _pairs(self, held: Array) -> tuple[list[Floats], list[Floats]]:
        """Return the memory as the coordinates that are not held see it."""
        if not held.any():
            return self.steps, self.changes
        steps = [np.where(held, 0.0, step) for step in self.steps]
        changes = [np.where(held, 0.0, change) for change in self.changes]
        sound = [bends(step, change) for step, change in zip(steps, changes, strict=True)]
        keep = [k for k, fine in enumerate(sound) if fine]
        return [steps[k] for k in keep], [changes[k] for k in keep]

    def _direction(self, gradient: Floats, size: float, held: Array) -> tuple[Floats, float]:
        """Return where to go and the slope there."""
        gradient = np.where(held, 0.0, gradient)
        direction = -gradient * (self.step_length / size)
        steps, changes = self._pairs(held)
        if steps:
            newton = -two_loop(gradient, steps, changes, self.gamma)
            if gradient @ newton < 0 and np.all(np.isfinite(newton)):
                direction = newton
            else:
                self._forget()
        length, most = float(np.linalg.norm(direction)), FARTHEST * self.s * np.sqrt(self.p)
        if length > most:
            direction *= most / length
        return direction, float(gradient @ direction)

    def _search_line(
        self, direction: Floats, slope: float, gradient: Floats
    ) -> Generator[Any, Any, tuple[float, float, Floats]]:
        """Return a rate along the line, f and the point there; 0 where nothing fell.

        The weak Wolfe conditions, by values: f fell (Armijo), and no longer as straight as its
        slope. Where f is straight up to a rate that is too long, a kink lies between: halving finds
        a point beyond it, whose slope tells BFGS of the kink (Lewis and Overton, 2013). Else the
        parabola through the slope and a value proposes the next rate.
        """
        f, rate, best, lowest, found, last = self.f, 1.0, 0.0, self.f, self.x, self.x
        length, too_long = float(np.linalg.norm(direction)), np.inf
        straight = between = wall = False
        least = 1e-14 * (self.s + float(np.linalg.norm(self.x)))
        growth = FIRST_GROWTH if self.first or not self.steps else GROWTH
        for n in range(1, MOST_TRIES + 1):
            ahead = self.x + rate * direction
            point = self.box.clip(ahead)
            on_line = np.array_equal(point, ahead)
            expected = rate * slope if on_line else float(gradient @ (point - self.x))
            if np.array_equal(point, last):  # all of it lies along walls
                break
            last, value = point, (yield point)
            fell, gained = value < f + ARMIJO * expected, f - value > STRAIGHT * abs(expected)
            if value < lowest or (straight and fell and not gained):
                best, lowest, found, straight = rate, value, point, fell and gained
            wall = wall or not value - f < WALL * abs(expected)
            excess = 2 * (value - f - expected)
            vertex = -expected * rate / excess if 0 < excess < np.inf else np.inf
            if not fell:
                too_long = rate
                if best > 0 and not straight:
                    break
                shorter = vertex if np.isfinite(vertex) else SHRUNK * rate
                rate = min(max(shorter, NOT_BELOW * rate), NOT_ABOVE * rate)
            elif too_long == np.inf:
                near = CLOSE * rate <= vertex <= rate / CLOSE
                if near or between or best != rate or (vertex > rate and n > MOST_GROWN):
                    break
                between = vertex < rate
                rate = min(vertex, growth * rate)
            elif not straight:
                break
            if straight and too_long < np.inf:
                rate = (best + too_long) / 2
            if too_long < np.inf and (too_long - best) * length < max(least, 1e-6 * best * length):
                break
        self.n_walls = self.n_walls + 1 if wall else 0
        return best, lowest, found

    @property
    def jammed(self) -> bool:
        """Whether it stands at a wall across its way."""
        return self.n_walls >= JAMMED

    def _rate_metric(self, rate: float) -> None:
        if self.steps and rate >= 1:
            self.trust = min(1.0, self.trust + LONGER)
        elif self.steps and rate < 0.5:  # less than half of the step
            self.trust = max(0.0, self.trust - SHORTER)

    def _accept(self, x: Floats, value: float) -> bool:
        """Go to the point; tell whether that was the end."""
        gain = self.f - value
        self.moved = x - self.x
        self.x, self.f, self.first, self.n_failed = x, value, False, 0
        self.step_length = max(float(np.linalg.norm(self.moved)), SMALLEST * self.s)
        missing = HOPELESS * (value - self.best.f)
        if gain > max(1e-13 * abs(value), self.small, self.precision.noise, missing):
            self.n_small, self.looked = 0, False
            return False
        self.n_small += 1
        if self.n_small < PATIENCE or self._look_everywhere():
            return False
        over, self.central, self.n_small = self.central, True, 0
        return over

    def _refuse(self) -> bool:
        """Try something else after a line that did not fall; tell whether that was the end."""
        self.n_failed += 1
        if self._look_everywhere():
            self.n_failed = 0
            self._shorten()
        elif not self.central:
            self.central = self.first = True
        elif self.steps and self.n_failed < PATIENCE:
            self._forget()
            self.first = True
            self._shorten()
        else:
            return True
        return False

    def _shorten(self) -> None:
        self.step_length = max(RETRY * self.step_length, SMALLEST * self.s)

    def _look_everywhere(self) -> bool:
        """Differentiate all coordinates again, once without a gain; tell whether that is new."""
        if self.active is None or self.looked:
            return False
        self.was_active, self.active, self.n_small = self.active, None, 0
        self.renew = self.first = self.looked = True
        self._forget()
        return True

    def _forget(self) -> None:
        self.steps, self.changes = [], []
