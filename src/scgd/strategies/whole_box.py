"""Which inputs matter over a whole box: the method of :func:`scgd.screen`.

Random designs in mirrored pairs tell the effects (:mod:`scgd.strategies.effects`). Then all inputs
that seem not to matter are moved together: where f changes, one of them matters after all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy  # whose rooms load when they are used

from scgd.problem import Problem
from scgd.strategies.asks import Asking, Outcome, Report, Wait
from scgd.strategies.budget import Budget
from scgd.strategies.effects import Effects, adjusted, below_threshold, interval
from scgd.strategies.pursuit import EPSILON
from scgd.strategies.random_design import design_of
from scgd.strategies.screening import Pairs, evaluated, shares
from scgd.typing import Array, Floats, Ints

__all__ = ["LEAST_EVALS", "Screen", "Seen"]

LEAST_EVALS = 12
"""Evaluations below which nothing can be told: four repeats and four pairs."""
REPEATS = 4
"""Evaluations of one point, which tell whether values repeat themselves."""
OPENING, TRIALS = 0.45, 20
"""The part of the budget for the pairs before the rest is first tried, and trials at a time."""
FIRST = 32
"""Pairs before the first look; each look has as many more as all before."""
QUIET = 0.1
"""The noise, in standard deviations of the values, below which single differences show."""
JUMP = 5.0
"""Standard errors of a difference from which it is halved until one input makes it."""
AGAIN = 3
"""Fresh evaluations on either side of a jump, under noise."""
DOUBT = 0.05
"""The p-value at which inputs that were dismissed are no longer."""


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
        state = Box(self, problem, budget, rng)
        yield Report(solver="repeats", screening=state.seen)
        yield from state.repeat()
        opening = int(OPENING * budget.total) // 2
        while state.undecided and state.pairs.n_asked < opening:
            due = max(state.pairs.n_asked, FIRST)
            yield from state.more_pairs(min(due, opening - state.pairs.n_asked))
        if state.undecided and state.quiet:
            yield from state.try_rest(catch=True)
        while True:
            while state.undecided and budget.left > 2 * state.reserve + 1:
                n = (budget.left - state.reserve) // 2
                yield from state.more_pairs(max(1, min(n, max(state.pairs.n_asked // 2, FIRST))))
            yield from state.try_rest(catch=state.quiet)
            if not state.undecided:
                return Outcome(converged=True)
            if budget.left <= 2 * state.reserve + 1:
                yield Wait()


@dataclass(frozen=True)
class Seen:
    """What a screening of the whole box has seen so far.

    Attributes
    ----------
    effects
        Of the pairs.
    p_values, q_values
        Of no effect at all, and adjusted for the false-discovery rate.
    not_values
        The same of the hypothesis that an effect is not negligible.
    low, high
        Confidence limits of the sizes.
    matters
        1: it matters; -1: it does not; 0: one cannot say.
    threshold
        The size from which an effect is not negligible.
    noise
        The standard deviation of one value; 0: values repeat themselves.
    options
        The rates and levels of the decisions.
    rest
        What all inputs that do not matter change together, as a standard deviation, and the p-value
        of nothing; NaN where that was not tried.
    caught
        Inputs that a trial of the rest found.
    """

    effects: Effects
    p_values: Floats
    q_values: Floats
    not_values: Floats
    low: Floats
    high: Floats
    matters: Ints
    threshold: float
    noise: float
    options: Screen
    rest: tuple[float, float] = (float("nan"), float("nan"))
    caught: tuple[int, ...] = ()


@dataclass
class Trial:
    """Two points that differ in some inputs, and what is known of the way between them."""

    low: Array
    high: Array
    order: Ints
    f_low: float
    f_high: float
    first: int = 0
    last: int = 0

    def at(self, n: int) -> Array:
        """Return the levels with the first n inputs moved."""
        levels = self.low.copy()
        levels[self.order[:n]] = self.high[self.order[:n]]
        return levels


class Box:
    """A screening of the whole box under way."""

    def __init__(
        self, options: Screen, problem: Problem, budget: Budget, rng: np.random.Generator
    ) -> None:
        self.options, self.problem, self.budget, self.rng = options, problem, budget, rng
        self.design = design_of(problem)
        self.pairs = Pairs(problem, self.design)
        self.noise, self.freedom = problem.noise, 0
        self.caught: dict[int, float] = {}  # p-values of single inputs
        self.rest = (float("nan"), float("nan"))
        self.seen = self.look()

    @property
    def reserve(self) -> int:
        """Evaluations kept for the last trials."""
        price = 1 if self.noise == 0.0 else 2
        return min(TRIALS, self.budget.total // 20) * price

    @property
    def undecided(self) -> bool:
        """Whether of any input nothing can be said."""
        return bool(np.any((self.seen.matters == 0) & (self.design.counts > 1)))

    @property
    def quiet(self) -> bool:
        """Whether single differences show what moved; samples of their own would hide it."""
        if self.problem.sampled:
            return False
        spread = float(np.hypot(*self.seen.effects.total))
        return self.noise is not None and self.noise <= QUIET * spread

    def repeat(self) -> Asking:
        """See whether a value comes again."""
        if self.noise is not None and not self.problem.sampled:
            return
        n = min(REPEATS, self.budget.left // 3)
        if n < 2:
            return
        x = self.problem.clipped(self.design.point(self.design.draw(self.rng)))
        values = yield np.tile(x, (n, 1))
        seen = values[np.isfinite(values)]
        if len(seen) > 1:
            self.noise, self.freedom = float(seen.std(ddof=1)), len(seen) - 1
            if self.noise <= EPSILON * float(np.abs(seen).max()):
                self.noise = 0.0

    def more_pairs(self, n: int) -> Asking:
        """Ask so many more pairs and look at all of them."""
        n = min(n, self.budget.left // 2)
        if n < 1:
            return
        yield Report(solver="pairs")
        yield from self.pairs.ask(n, self.rng)
        before = self.others()
        self.seen = self.look()
        if not np.array_equal(before, self.others()):  # the rest is another one
            self.rest = (float("nan"), float("nan"))
            self.seen = self.look()
        yield self.report()

    def report(self) -> Report:
        """Return what is known, for people and the run."""
        seen = self.seen
        found = np.flatnonzero(seen.matters > 0)
        message = (
            f"{len(found)} of {seen.matters.size} inputs matter, "
            f"{int(np.sum(seen.matters < 0))} do not."
        )
        relevance = shares(seen.effects, found)
        return Report(message=message, relevance=relevance, screening=seen)

    # ---- decisions -------------------------------------------------------------------------------

    def look(self) -> Seen:
        """Decide on every input."""
        effects = self.pairs.effects(exact=self.noise == 0.0 and not self.problem.sampled)
        options, moved = self.options, self.design.counts > 1
        p_values = effects.p_values.copy()
        for k, p in self.caught.items():
            p_values[k] = min(1.0, 2 * min(p, p_values[k]))
        q_values, not_values = np.ones(p_values.size), np.ones(p_values.size)
        q_values[moved] = adjusted(p_values[moved])
        yes = (q_values < options.fdr) & moved
        spread = float(np.hypot(*effects.total))
        top = float(effects.sizes[yes].max(initial=0.0)) or spread
        threshold = options.negligible * top
        low, high = interval(effects, options.level)
        squares, error = effects.statistics
        if np.isfinite(error):
            n = np.maximum(effects.counts, 1)
            with np.errstate(divide="ignore", invalid="ignore"):
                far = (threshold / error) ** 2 if error > 0 else np.inf
            none = threshold == 0 and error == 0  # nothing changes f at all
            below = np.zeros(n.size) if none else below_threshold(squares, n, far)
            not_values[moved] = adjusted(below[moved])
        no = (not_values < options.fdr) & ~yes & moved
        if self.rest[1] < DOUBT:  # something among them moves f
            no[:] = False
        matters, caught = yes.astype(np.int64) - no, tuple(sorted(self.caught))
        return Seen(
            effects, p_values, q_values, not_values, low, high, matters, threshold,
            self.noise or 0.0, options, self.rest, caught,
        )  # fmt: skip

    # ---- the rest --------------------------------------------------------------------------------

    def others(self) -> Ints:
        """Return the inputs that are not known to matter."""
        return np.flatnonzero((self.seen.matters <= 0) & (self.design.counts > 1))

    def try_rest(self, *, catch: bool) -> Asking:
        """Move all inputs together that are not known to matter, the others fixed.

        Where f changes beyond its noise, one of them matters after all; where noise is small
        against the change, halving finds which.
        """
        catch = catch and self.quiet
        end = self.budget.left - (int(0.4 * self.budget.total) if catch else self.reserve)
        while len(self.others()) and len(self.pairs.values):
            n = min(TRIALS, len(self.pairs.values), max(self.reserve // 2, 4))
            exact = self.noise == 0.0
            price = 1 if exact and not self.problem.sampled else 2
            if self.budget.left < n * price:
                return
            yield Report(solver="trials of the rest")
            trials = yield from self.move(self.others(), n, price)
            changed = self.compare(trials, price)
            self.seen = self.look()
            yield self.report()
            if not catch or not changed or self.budget.left <= max(end, self.reserve):
                return
            before = set(self.caught)
            yield from self.halve(changed)
            self.seen = self.look()
            yield self.report()
            if set(self.caught) == before:
                return

    def move(self, inputs: Ints, n: int, price: int) -> Asking:
        """Move inputs at n points of pairs; return these with values: before, again, and after."""
        design = self.design
        rows = self.rng.choice(len(self.pairs.values), n, replace=False)
        every = slice(None)
        levels = design.levels(every)[rows]
        tried, points = [], []
        for row, low in zip(rows.tolist(), levels, strict=True):
            high = low.copy()
            high[inputs] = design.draw(self.rng)[inputs]
            order = self.rng.permutation(inputs[high[inputs] != low[inputs]])
            f = self.pairs.values[row][0]
            tried.append(Trial(low, high, order, f, float("nan"), 0, len(order)))
            ends = [design.point(high)] if price == 1 else [design.point(low), design.point(high)]
            points.append(np.stack(ends))
        values = yield from evaluated(self.problem, np.stack(points))
        found = []
        for trial, seen in zip(tried, values.tolist(), strict=True):
            if np.isfinite(seen).all() and len(trial.order):
                again = trial.f_low if price == 1 else seen[0]
                trial.f_high = seen[-1]
                found.append((trial, again))
        return found

    def compare(self, trials: Sequence[tuple[Trial, float]], price: int) -> list[Trial]:
        """Compare the changes with the noise; return the trials with a clear one."""
        if not trials:
            return []
        n, sampled = len(trials), self.problem.sampled
        first = np.array([trial.f_low for trial, _ in trials])
        again = np.array([value for _, value in trials])
        after = np.array([trial.f_high for trial, _ in trials])
        size = EPSILON * float(np.abs(first).max())
        if price == 1 or (sampled and self.noise == 0.0):
            change, noise = after - again, 0.0
            share = float(np.sqrt(np.mean(change**2) / 2))
            self.rest = (share, 0.0 if share > size else 1.0)
        else:
            repeats = float(np.sum((first - again) ** 2) / 2)
            known = self.noise or 0.0
            freedom = n + self.freedom
            variance = (repeats + self.freedom * known**2) / freedom
            if self.problem.noise is not None and not sampled:
                variance, freedom = known**2, 10**6
            elif not sampled:
                self.noise, self.freedom = float(np.sqrt(variance)), freedom
            change = after - (first + again) / 2
            seen = float(np.mean(change**2) / 1.5)
            ratio = seen / max(variance, size**2, 1e-300)
            p_value = float(scipy.special.fdtrc(n, freedom, ratio))
            self.rest = (float(np.sqrt(max(seen - variance, 0.0) * 0.75)), p_value)
            noise = float(np.sqrt(variance))
            for (trial, value), mean in zip(trials, (first + again) / 2, strict=True):
                trial.f_low = float(mean if not sampled else value)
        bar = max(JUMP * noise * np.sqrt(1.5), size)
        return [one for (one, _), d in zip(trials, change.tolist(), strict=True) if abs(d) > bar]

    def halve(self, trials: list[Trial]) -> Asking:
        """Halve the ways between points until one input makes each jump; note those inputs."""
        open_ones = trials
        while open_ones := [t for t in open_ones if t.last - t.first > 1]:
            if self.budget.left < len(open_ones) + self.reserve:
                return
            middles = [(t.first + t.last) // 2 for t in open_ones]
            asked = zip(open_ones, middles, strict=True)
            values = yield np.stack([self.design.point(t.at(m)) for t, m in asked])
            for t, m, value in zip(open_ones, middles, values.tolist(), strict=True):
                if not np.isfinite(value):
                    t.last = t.first
                elif abs(value - t.f_low) >= abs(t.f_high - value):
                    t.last, t.f_high = m, value
                else:
                    t.first, t.f_low = m, value
        whole = {int(t.order[t.first]): t for t in trials if t.last - t.first == 1}
        noise = self.noise or 0.0
        if noise == 0.0 and not self.problem.sampled:
            self.caught.update({k: 0.0 for k, t in whole.items() if t.f_high != t.f_low})
            return
        if not whole or self.budget.left < 2 * AGAIN * len(whole):
            return
        point = self.design.point
        ends = [[point(t.at(t.first)), point(t.at(t.last))] for t in whole.values()]
        points = np.repeat(np.array(ends), AGAIN, axis=0)
        values = (yield from evaluated(self.problem, points)).reshape(len(whole), AGAIN, 2)
        for k, seen in zip(whole, values, strict=True):
            jump = float(np.mean(seen[:, 1] - seen[:, 0]))
            error = noise * np.sqrt(2 / AGAIN)
            if np.isfinite(jump):
                z = abs(jump) / max(error, 1e-300)
                p_value = float(2 * scipy.special.stdtr(max(self.freedom, 1), -z))
                self.caught[k] = min(self.caught.get(k, 1.0), p_value)
