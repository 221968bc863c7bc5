"""The lengths that steps are measured in: how far f falls, and where it stops being straight."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scgd.estimators import random_signs
from scgd.problem import Problem
from scgd.strategies.asks import Asking
from scgd.strategies.box import REACH, Box
from scgd.strategies.precision import EPS
from scgd.typing import Floats

FEW, BRIEF = 400, 160
"""Evaluations below which fewer directions are looked at, and below which the widest decade along
one direction must do: looking takes 50, 25, or 10, an eighth of the budget at most."""
FACTOR, TRIES = 2.2, 5
"""The ratio of neighbouring distances, about a third of a decade, and how many are tried: a decade
and a half on either side."""
KEPT = 0.35
"""The length in parts of the distance at which f still falls: a parabola does up to twice the way
to its minimum, so this is two thirds of the way."""
SAME = 1e-12
"""The part of a value by which another one must differ: more than rounding."""
WIDEST = 0.4
"""The part of the width of the box that the length may be: beyond, walls cut what is looked at."""
NEAR, FAR = 9.0, 11.0
"""Units beyond which only a fall leads on, and at which the search from other directions ends."""


class Fall:
    """Looks along directions from one point, and remembers the best."""

    def __init__(self, x: Floats, f: float, rng: np.random.Generator, box: Box) -> None:
        self.x, self.f, self.rng, self.box = x, f, rng, box
        self.best, self.value = x, f
        self.n_seen = self.n_same = 0

    @property
    def plateau(self) -> bool:
        """Whether nothing fell and many values are that at x: f goes in steps."""
        return not self.value < self.f and self.n_same > 0.25 * self.n_seen

    @property
    def nothing(self) -> float:
        """The length where nothing fell: the unit of the problem on a plateau."""
        return 1.0 if self.plateau else 0.1

    def direction(self) -> Floats:
        """Draw a unit vector."""
        d = self.rng.standard_normal(self.x.size)
        return np.asarray(d / np.linalg.norm(d))

    def falls(self, h: float, d: Floats) -> Generator[Any, Any, float]:
        """Return how far along d f falls, one way or the other, or 0; h unless a wall is nearer."""
        for sign in (1.0, -1.0):
            point = self.box.clip(self.x + sign * h * d)
            value = yield point
            self.n_seen += 1
            self.n_same += abs(value - self.f) <= SAME * abs(self.f)
            if value < self.value:
                self.best, self.value = point, value
            if value < self.f - SAME * abs(self.f):
                return min(h, float(np.linalg.norm(point - self.x)))
        return 0.0

    def widest(self, decades: Floats) -> Generator[Any, Any, float]:
        """Return the widest of some distances at which f falls along a random direction, or 0.

        From the first one beyond :data:`NEAR` outwards while f falls, else inwards.
        """
        d, found = self.direction(), 0.0
        for h in decades[decades >= NEAR].tolist():
            if not (fell := (yield from self.falls(h, d))):
                break
            found = fell
        for h in reversed(decades[decades < NEAR].tolist()):
            found = found or (yield from self.falls(h, d))
        return found

    def farthest(self, h: float) -> Generator[Any, Any, float]:
        """Return the largest distance near h at which f falls along a random direction, or 0."""
        d = self.direction()
        if found := (yield from self.falls(h, d)):
            for _ in range(TRIES):
                h *= FACTOR
                if not (fell := (yield from self.falls(h, d))) > found:
                    break
                found = fell
            return found
        for _ in range(TRIES):
            h /= FACTOR
            if found := (yield from self.falls(h, d)):
                return found
        return found


def initial_step_size(
    x: Floats, f: float, budget: int, rng: np.random.Generator, box: Box
) -> Generator[Any, Any, tuple[float, Floats, float, bool]]:
    """Return a length scale, and the best point seen with its value.

    Decades are tried along one direction, farther out along others; around the largest one at
    which f falls, some directions tell how far it does. The length is about a third of their
    root mean square, and not much of the width of the box.
    """
    fall, few = Fall(x, f, rng, box), budget < FEW
    decades: Floats = 10.0 ** np.arange(*((-3.0, 3.0) if few else (-6.0, 5.0)))
    found = yield from fall.widest(decades)
    if budget < BRIEF:
        return (
            min(KEPT * (found or fall.nothing), WIDEST * box.width),
            fall.best,
            fall.value,
            fall.plateau,
        )
    for _ in range(1 if few else 3):
        d, start = fall.direction(), found or float(decades[0])
        for h in decades[(decades > 1.5 * start) & (decades <= min(1.1e4 * start, FAR))].tolist():
            found = max(found, (yield from fall.falls(h, d)))
    start = found or fall.nothing
    lengths = []
    for _ in range(1 if few else 4):
        lengths.append((yield from fall.farthest(start)))
    seen = np.array([length for length in lengths if length > 0])
    # where nothing fell along any direction, the unit is all that is known
    length = float(np.sqrt(np.mean(seen**2))) if seen.size else found or 1.0
    return min(KEPT * length, WIDEST * box.width), fall.best, fall.value, fall.plateau


@dataclass(frozen=True)
class LengthScale:
    """The length at which f stops being a straight line, in units of the problem.

    Attributes
    ----------
    length, bend
        The length, and the curvature of f along random signs there.
    rough
        The radius below which f is rough; 0 where it is smooth.
    repeats
        Whether f was asked twice at the same points and gave the same values.
    value
        F at the point.
    """

    length: float = 1.0
    bend: float = 0.0
    rough: float = 0.0
    repeats: bool = False
    value: float = float("nan")


def length_scale(
    problem: Problem,
    x: Floats,
    rng: np.random.Generator,
    rounds: Sequence[int] = (1, 1, 1, 1, 4),
    *,
    repeat: bool = False,
) -> Asking:
    r"""Measure the length at which f stops being a straight line.

    Along random signs u, slope :math:`g = |f(x + hu) - f(x - hu)| / 2h` and curvature
    :math:`c = |f(x + hu) + f(x - hu) - 2 f(x)| / h^2` give the Newton length g / c, which does not
    change when f is scaled or shifted and follows when x is rescaled. After each round of
    directions h settles at a tenth of it; the last round measures. Where g / c shrinks with h, f is
    rough (it jumps), and h goes outwards until it is not. A failed evaluation tells that h was too
    large. Points of a direction share a sample.

    Parameters
    ----------
    problem, x, rng
        What is known, where to look, and where directions come from.
    rounds
        Directions per round.
    repeat
        Whether f(x) is taken twice with the same sample: if it differs, differences mean nothing,
        and the length stays 1.

    Examples
    --------
    >>> from scgd.strategies.drive import drive
    >>> def measure(problem, budget, rng):
    ...     return length_scale(problem, problem.x0, rng)
    >>> f = lambda x: 5 * float(x[0]) ** 2
    >>> round(drive(measure, Problem.check([3.0], scale=1.0), f, 99).found.length, 6)
    3.0
    """
    h, widest, floor, found = 1e-3, 0.0, 0.0, LengthScale()
    value, same = float("nan"), False
    for n_directions in rounds:
        slopes: list[float] = []
        bends: list[float] = []
        for _ in range(n_directions):
            centre, reach = problem.centred(x, h * problem.unit)
            move = reach * random_signs(x.size, rng)
            rows = [centre] * (1 + repeat) + [centre + move, centre - move]
            values = yield problem.clipped(np.stack(rows))
            if not np.isfinite(values).all():
                h, slopes, bends = 1e-2 * h, [], []
                continue
            base, up, down = values[-3:].tolist()
            value, same = float(values[0]), repeat
            if value != base:
                return LengthScale(bend=found.bend, value=value)
            slopes.append(abs(up - down) / (2 * h))
            bends.append(abs(up + down - 2 * base) / h**2)
        slope, bend = (float(np.mean(seen)) if seen else 0.0 for seen in (slopes, bends))
        if slope > 0 and bend * h**2 > 8 * EPS * abs(value):  # more than rounding
            length = slope / bend
            rough = length < 1.5 * h
            if rough and h < widest:  # as rough nearer by: jumps, not curvature
                floor = max(floor, widest)
                h = 30 * floor
            else:
                widest = h if rough else 0.0
                h = max(h * float(np.clip(0.1 * length / h, 1e-3, 1e3)), 3 * floor)
            if not rough or found.bend == 0:
                found = LengthScale(float(np.clip(length, 1e-8, 1e8)), bend)
        elif slopes:
            h *= 1e2 if slope > 0 else 10.0
        h = min(h, REACH)
    return LengthScale(found.length, found.bend, h if floor > 0 else 0.0, same, value)
