"""Which of many inputs matter, seen through noise: random designs in mirrored pairs.

:func:`screen` looks around a point: solvers so find the few inputs worth moving. :class:`Screen`
does it for all of a box, as the method of :func:`scgd.screen`: it also moves all inputs together
that seem not to matter, and where f changes, one of them matters after all. Both estimate by
:mod:`scgd.strategies.effects`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy  # whose rooms load when they are used

from scgd.problem import Problem
from scgd.strategies.asks import Asking, Outcome, Report, Wait
from scgd.strategies.budget import Budget
from scgd.strategies.effects import adjusted, below_threshold, estimate, interval
from scgd.strategies.pursuit import EPSILON
from scgd.strategies.random_design import Design, design_of, evaluated
from scgd.typing import Array, Floats, Ints

__all__ = ["DECISIONS", "FIRST", "LEAST_EVALS", "Screen", "Screened", "screen"]

FIRST = 128
"""Pairs after which a screening around a point that has found nothing is given up."""
MOST = 1000
"""Pairs around a point, at most: they tell a hundred effects apart."""
LEFT = 0.25
"""The part of the variance that the effects found may leave, beside that of the noise."""


class Screened(NamedTuple):
    """The coordinates that showed an effect, whether they explain what was seen, and relevance."""

    coords: Ints
    sparse: bool
    relevance: tuple[Floats, Floats] | None


def screen(
    problem: Problem, x: Floats, rng: np.random.Generator, radius: float, n_pairs: int,
    deviation: float, fdr: float = 0.1,
) -> Asking:  # fmt: skip
    r"""Find the coordinates that matter from pairs :math:`x \pm h s` with random signs s.

    Half the difference of a pair is :math:`\sum_k s_k a_k`, with :math:`a_k` the effect of moving
    coordinate k by h, plus noise; whatever is even in the moves cancels.

    Parameters
    ----------
    problem, x, rng
        What is known, where to look, and where signs come from.
    radius
        How far coordinates are moved, in units of x.
    n_pairs
        Pairs, at most.
    deviation
        The standard deviation of the noise.
    fdr
        The false-discovery rate.
    """
    most = min(n_pairs, MOST)
    middle, reach = problem.centred(x, radius * problem.unit)
    places = problem.clipped(np.stack([middle - reach, middle + reach])).T
    design = Design(places, np.full(x.size, 2))
    for due in (min(FIRST, most), most):
        yield from design.ask(problem, due - design.n_asked, rng)
        effects = estimate(design, products=False)
        coords = np.flatnonzero(adjusted(effects.p_values) < fdr)
        if not len(coords):
            break
    explained = effects.left[0] ** 2 <= LEFT * effects.total[0] ** 2 + deviation**2 / 2
    return Screened(coords, bool(len(coords) and explained), effects.shares(coords))


# ---- the whole of a box --------------------------------------------------------------------------

LEAST_EVALS = 12
"""Evaluations below which nothing can be told: four repeats and four pairs."""
REPEATS = 4
"""Evaluations of one point, which tell whether values repeat themselves."""
OPENING, TRIALS = 0.45, 20
"""The part of the budget for the pairs before the rest is first tried, and as much for halving;
trials at a time."""
AT_ONCE = 32
"""Pairs before the first look; each look has half as many more as all before."""
QUIET = 0.1
"""The noise, in standard deviations of the values, below which single differences show."""
JUMP = 5.0
"""Standard errors of a difference from which it is halved until one input makes it."""
AGAIN = 3
"""Fresh evaluations on either side of a jump, under noise."""
DOUBT = 0.05
"""The p-value at which inputs that were dismissed are no longer."""
CERTAIN = 1e6
"""Degrees of freedom of a noise level that is known."""
DECISIONS = ("does not", "cannot say", "matters")
UNTRIED = (float("nan"), float("nan"))


@dataclass(frozen=True)
class Screen:
    """The method of :func:`scgd.screen`: a strategy that finds the inputs that matter.

    Parameters
    ----------
    fdr
        The false-discovery rate of the inputs said to matter, and of those said not to.
    level
        Of the confidence intervals.
    negligible
        Effects below this part of the largest one do not matter.

    Examples
    --------
    >>> import scgd
    >>> opt = scgd.Optimizer(np.zeros(6), Screen(), bounds=[(-1, 1)] * 6, max_evals=60, seed=0)
    >>> while not opt.done:
    ...     for trial in opt.ask():
    ...         opt.tell(trial.id, float(trial.x[2] + trial.x[4] ** 2))
    >>> scgd.Screening.of(opt.result()).matter
    ['x[2]', 'x[4]']
    """

    fdr: float = 0.1
    level: float = 0.95
    negligible: float = 0.1
    __name__: ClassVar[str] = "screen"

    def __post_init__(self) -> None:
        for name in ("fdr", "level", "negligible"):
            value = getattr(self, name)
            number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            if not number or not 0 < value < 1:
                raise ValueError(f"{name} must be a number between 0 and 1, got {value!r}")
            object.__setattr__(self, name, float(value))

    def __call__(self, problem: Problem, budget: Budget, rng: np.random.Generator) -> Asking:
        """Ask pairs, try the rest, ask the remaining pairs, and try the rest again."""
        state = WholeBox(self, problem, budget, rng)
        yield state.report("repeats")
        yield from state.repeat()
        yield from state.more_pairs(budget.total - int(OPENING * budget.total))
        if state.quiet:
            yield from state.try_rest()
        while True:
            yield from state.more_pairs(state.reserve)
            yield from state.try_rest()
            if not state.undecided:
                return Outcome(converged=True)
            if budget.left <= 2 * state.reserve + 1:
                yield Wait()


@dataclass
class Trial:
    """Two points that differ in some inputs, and what is known of the way between them."""

    low: Array
    high: Array
    order: Ints
    f_low: float
    f_high: float
    first: int
    last: int

    def at(self, n: int) -> Array:
        """Return the levels with the first n inputs moved."""
        levels = self.low.copy()
        levels[self.order[:n]] = self.high[self.order[:n]]
        return levels


class WholeBox:
    """A screening of the whole box under way: pairs, repeats, trials, and what they tell."""

    def __init__(
        self, options: Screen, problem: Problem, budget: Budget, rng: np.random.Generator
    ) -> None:
        self.options, self.problem, self.budget, self.rng = options, problem, budget, rng
        self.design = design_of(problem)
        self.squares, self.freedom = 0.0, 0.0  # of repeats
        if problem.noise is not None:
            self.squares, self.freedom = problem.noise**2 * CERTAIN, CERTAIN
        self.caught: dict[int, float] = {}  # p-values of single inputs
        self.others, self.rest = np.empty(0, np.int64), UNTRIED
        self.look()

    @property
    def noise(self) -> float:
        """The standard deviation of a value; 0: values repeat themselves, or nobody knows."""
        return float(np.sqrt(self.squares / max(self.freedom, 1.0)))

    @property
    def exact(self) -> bool:
        """Whether a value need not be asked for again."""
        return self.freedom > 0 and self.squares == 0 and not self.problem.sampled

    @property
    def reserve(self) -> int:
        """Evaluations kept for the last trials."""
        exact = self.freedom > 0 and self.squares == 0
        return min(TRIALS, self.budget.total // 20) * (1 if exact else 2)

    @property
    def undecided(self) -> bool:
        """Whether of any input nothing can be said."""
        return bool(np.any((self.matters == 0) & (self.design.counts > 1)))

    @property
    def quiet(self) -> bool:
        """Whether single differences show what moved; samples of their own would hide it."""
        spread = float(np.hypot.reduce(self.effects.total))
        return self.freedom > 0 and not self.problem.sampled and self.noise <= QUIET * spread

    def report(self, solver: str | None = None) -> Report:
        """Return what is known, for people and the run."""
        found, no = np.flatnonzero(self.matters > 0), int(np.sum(self.matters < 0))
        message = f"{len(found)} of {self.matters.size} inputs matter, {no} do not."
        relevance = self.effects.shares(found)
        return Report(solver, message, relevance=relevance, screening=self.seen)

    def repeat(self) -> Asking:
        """See whether a value comes again."""
        n = min(REPEATS, self.budget.left // 3)
        if n < 2 or (self.freedom and not self.problem.sampled):
            return
        x = self.problem.clipped(self.design.point(self.design.draw(self.rng)))
        values = yield np.tile(x, (n, 1))
        seen = values[np.isfinite(values)]
        if len(seen) > 1:
            off = seen - seen.mean()
            self.freedom = len(seen) - 1
            differ = np.ptp(seen) > EPSILON * float(np.abs(seen).max())
            self.squares = float(off @ off) if differ else 0.0

    def more_pairs(self, kept: int) -> Asking:
        """Ask pairs while any input is undecided, and look at all of them now and then."""
        while self.undecided and self.budget.left > kept + 1:
            yield Report(solver="pairs")
            n = min(max(AT_ONCE, self.design.n_asked // 2), (self.budget.left - kept) // 2)
            yield from self.design.ask(self.problem, n, self.rng)
            self.look()
            yield self.report()

    def look(self) -> None:
        """Decide on every input; write down what :class:`scgd.Screening` shows."""
        self.effects = effects = estimate(self.design, exact=self.exact)
        options, counts = self.options, self.design.counts
        moved, p_values = counts > 1, effects.p_values.copy()
        for k, p in self.caught.items():
            p_values[k] = min(1.0, 2 * min(p, p_values[k]))
        q_values, not_values = np.ones((2, counts.size))
        q_values[moved] = adjusted(p_values[moved])
        yes = (q_values < options.fdr) & moved
        largest = float(effects.sizes[yes].max(initial=0.0))
        threshold = options.negligible * (largest or float(np.hypot.reduce(effects.total)))
        not_values[moved] = adjusted(below_threshold(effects, threshold)[moved])
        others = np.flatnonzero(moved & ~yes)
        if not np.array_equal(others, self.others):
            self.others, self.rest = others, UNTRIED
        no = (not_values < options.fdr) & ~yes & moved
        if self.rest[1] < DOUBT:  # something among them moves f
            no[:] = False
        self.matters = yes.astype(np.int64) - no
        low, high = interval(effects, options.level)
        ends = self.design.tables[min(1, self.design.most - 1), counts, counts - 1]
        ends = np.where(moved, 2 * ends, 2.0)  # from the lowest level to the highest
        self.seen: dict[str, Any] = {
            "decisions": np.array(DECISIONS)[self.matters + 1], "sizes": effects.sizes,
            "low": low, "high": high, "effects": ends * effects.contrasts[0],
            "effect_errors": ends * effects.errors[0], "p_values": p_values,
            "q_values": q_values, "interactions": list(effects.interactions),
            "rest": self.rest[0], "rest_p_value": self.rest[1], "threshold": threshold,
            "noise": self.noise, "options": options, "n_pairs": len(self.design.values),
        }  # fmt: skip

    # ---- the rest --------------------------------------------------------------------------------

    def try_rest(self) -> Asking:
        """Move all inputs together that are not known to matter, the others fixed.

        Where f changes beyond its noise, one of them matters after all; where noise is small
        against the change, halving finds which.
        """
        end = max(self.budget.left - int(OPENING * self.budget.total), self.reserve)
        while len(self.others) and len(self.design.values):
            n = min(TRIALS, len(self.design.values), max(self.reserve // 2, 4))
            if self.budget.left < n * (1 if self.exact else 2):
                return
            yield Report(solver="trials of the rest")
            jumps = yield from self.move(n)
            self.look()
            yield self.report()
            n_caught = len(self.caught)
            if not self.quiet or not jumps or self.budget.left <= end:
                return
            yield from self.halve(jumps)
            self.look()
            yield self.report()
            if len(self.caught) == n_caught:
                return

    def move(self, n: int) -> Asking:
        """Move the rest at n points of pairs; return the trials with a clear change.

        The point before is evaluated again, too: where there are samples, on the one that is shared
        with the point after; else it tells of the noise.
        """
        design, sampled, exact = self.design, self.problem.sampled, self.exact
        rows = self.rng.choice(len(design.values), n, replace=False)
        trials, points = [], []
        for row, low in zip(rows, design.levels(slice(0, design.n_inputs))[rows], strict=True):
            high = low.copy()
            high[self.others] = design.draw(self.rng)[self.others]
            order = self.rng.permutation(self.others[high[self.others] != low[self.others]])
            trials.append(Trial(low, high, order, design.values[row][0], 0.0, 0, len(order)))
            points.append([design.point(high if exact else low), design.point(high)][exact:])
        values = yield from evaluated(self.problem, np.array(points))
        first, last = np.array([trial.f_low for trial in trials]), values[:, -1]
        again = first if exact else values[:, 0]
        first = again if sampled else first
        sound = np.isfinite(again + last) & np.array([len(trial.order) > 0 for trial in trials])
        first, again, last = first[sound], again[sound], last[sound]
        if not len(first):
            return []
        if not sampled and self.freedom < CERTAIN and not exact:
            self.squares += float(np.sum((first - again) ** 2) / 2)
            self.freedom += len(first)
        before, size = (first + again) / 2, EPSILON * float(np.abs(first).max())
        times = 2.0 if sampled or exact else 1.5  # a change has so many variances of a value
        freedom = self.freedom if self.squares else CERTAIN
        square, variance = float(np.mean((last - before) ** 2)), max(self.noise, size) ** 2
        p_value = scipy.special.fdtrc(len(first), freedom, square / max(times * variance, 1e-300))
        effect = max(square - times * self.noise**2, 0.0) / 2
        self.rest = float(np.sqrt(effect)), float(p_value)
        bar, found = max(JUMP * self.noise * np.sqrt(times), size), []
        tried = [trial for trial, is_sound in zip(trials, sound, strict=True) if is_sound]
        for trial, f_low, f_high in zip(tried, before.tolist(), last.tolist(), strict=True):
            trial.f_low, trial.f_high = f_low, f_high
            if abs(f_high - f_low) > bar:
                found.append(trial)
        return found

    def halve(self, trials: Sequence[Trial]) -> Asking:
        """Halve the ways between points until one input makes each jump; note those inputs."""
        while going := [t for t in trials if t.last - t.first > 1]:
            if self.budget.left < len(going) + self.reserve:
                return
            middles = [(t.first + t.last) // 2 for t in going]
            asked = zip(going, middles, strict=True)
            values = yield np.stack([self.design.point(t.at(m)) for t, m in asked])
            for t, m, value in zip(going, middles, values.tolist(), strict=True):
                if not np.isfinite(value):
                    t.last = t.first
                elif abs(value - t.f_low) >= abs(t.f_high - value):
                    t.last, t.f_high = m, value
                else:
                    t.first, t.f_low = m, value
        whole = {int(t.order[t.first]): t for t in trials if t.last - t.first == 1}
        if self.exact:
            self.caught.update({k: 0.0 for k, t in whole.items() if t.f_high != t.f_low})
        elif whole and self.budget.left >= 2 * AGAIN * len(whole):
            ways = [(t.at(t.first), t.at(t.last)) for t in whole.values()]
            points = np.array([[self.design.point(end) for end in way] for way in ways])
            values = yield np.tile(points, (AGAIN, 1, 1)).reshape(-1, points.shape[-1])
            jumps = np.diff(values.reshape(AGAIN, len(whole), 2))[..., 0].mean(axis=0)
            error = max(self.noise * np.sqrt(2 / AGAIN), 1e-300)
            for k, jump in zip(whole, jumps.tolist(), strict=True):
                if np.isfinite(jump):
                    p_value = float(2 * scipy.special.stdtr(self.freedom, -abs(jump) / error))
                    self.caught[k] = min(self.caught.get(k, 1.0), p_value)
