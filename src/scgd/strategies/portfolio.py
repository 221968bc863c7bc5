"""The default for deterministic functions: a portfolio of solvers that share the evaluations.

How far f falls gives the unit of length. Coordinates that do nothing are left out, and a sum over
coordinates goes to line searches. Everything else is for BFGS and CMA-ES: whether the gradient
agrees with differences over the length scale tells who leads. Who has the turn goes on while it
improves on the best value known.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import cycle

import numpy as np

from scgd.problem import Problem
from scgd.strategies.asks import Asking, Outcome, Report
from scgd.strategies.bfgs import BFGS
from scgd.strategies.box import Box, in_box
from scgd.strategies.budget import Budget
from scgd.strategies.gradient_agreement import follow_slopes
from scgd.strategies.length_scale import KEPT, WIDEST, initial_step_size
from scgd.strategies.line_search import POOR, line_search, per_line
from scgd.strategies.member import Best, Member
from scgd.strategies.model_lead import first_step, is_scarce, lead_by_process, lead_where_few
from scgd.strategies.precision import Precision, measure_precision, single_precision
from scgd.strategies.restarts import Shared, populations, restarts
from scgd.strategies.separability import active_coordinates
from scgd.strategies.stopping import StoppingRule
from scgd.strategies.subspace import in_active
from scgd.typing import Floats

__all__ = ["TESTABLE", "portfolio"]

TESTABLE, TINY = 6, 100
"""Evaluations below which nothing can be tested, and below which derivatives are followed at once:
measuring takes some 25 evaluations."""
LEAN, FEW, SMALL = 12, 40, 32
"""Evaluations per coordinate, and in all, below which nothing is measured before BFGS begins
(measuring takes some 25), and coordinates from which it is worth asking how many matter."""
ASKED = 4
"""One over the part of the budget that may go into finding out which coordinates are active."""
SUM, SLOPES = 2.25, 1.5
"""Evaluations per coordinate from which parabolas along all of them are affordable, and below which
not even one gradient and a line are: then, where no model can lead, parabolas along as many as
there is budget for."""


def portfolio(
    problem: Problem,
    budget: Budget,
    rng: np.random.Generator,
    x: Floats | None = None,
    f: float | None = None,
    noise: float = 0.0,
) -> Asking:
    """Minimize a deterministic function; converged where nothing is left to gain.

    Parameters
    ----------
    problem, budget, rng
        As of every strategy.
    x, f
        Where to begin, x0 by default, and the value there where it is known.
    noise
        A standard deviation of values, far below what f changes by; 0: measure the precision of f.

    Examples
    --------
    >>> from scgd.strategies.drive import drive
    >>> done = drive(portfolio, Problem.check([3.0, 1.0]), lambda x: float(x @ x), 100)
    >>> done.fun < 1e-12
    True
    """
    x = problem.x0 if x is None else x
    found, level = "Deterministic", None
    if budget.total < TESTABLE and problem.noise is None:
        found, level = "Taken as deterministic, with too few evaluations to test for noise", np.nan
    yield Report(deterministic=True, message=f"{found}: a portfolio of solvers.", noise=level)
    if f is None:
        yield Report(solver="x0")
        f = yield x
    unit = problem.unit
    none = problem.lower.size
    box = Box(x / unit, problem.lower / unit[:none], problem.upper / unit[:none])
    f = f if np.isfinite(f) else np.inf
    search = _minimize(x / unit, f, problem, budget, rng, box, noise, found)
    return (yield from in_box(search, problem, box))


def _minimize(
    x: Floats, f: float, problem: Problem, budget: Budget, rng: np.random.Generator, box: Box,
    noise: float, found: str,
) -> Asking:  # fmt: skip
    """Measure, leave out what does nothing, let solvers compete."""
    p, best = x.size, Best(x, f)
    at_once = (
        (p < SMALL and budget.left < max(FEW, LEAN * p))
        or (problem.has_gradient and budget.left < TINY)
        or is_scarce(box, budget)
    )
    if at_once and np.isfinite(f):
        size = max(single_precision(f), noise)
        share = Shared(budget, rng, box, best, Precision(size, change=abs(f)),
                       StoppingRule(budget.tol, f, size), problem.has_gradient, found)  # fmt: skip
        yield from compete(share, x, f, min(KEPT, WIDEST * box.width), at_once=True)
        return Outcome(converged=True)
    measured = Member("measuring", _measure(x, f, problem, budget, rng, box, noise), best)
    x, f, s, plateau, precision, active = yield from measured.finish()
    share = Shared(budget, rng, box, best, precision, StoppingRule(budget.tol, f, precision.noise),
                   problem.has_gradient, found)  # fmt: skip
    if not active.all():
        fraction = float(active.mean())  # random directions were diluted by what does nothing
        inner = s * np.sqrt(fraction) if fraction < 0.5 else s
        part = replace(share, box=box.part(active), best=Best(x[active], f))
        woke = yield from in_active(compete(part, x[active], f, inner), part, share, x, s, active)
        if not woke:
            return Outcome(converged=True)
        x, f = best.x, best.f
    yield from compete(share, x, f, s, plateau=plateau)
    return Outcome(converged=True)


def _measure(
    x: Floats, f: float, problem: Problem, budget: Budget, rng: np.random.Generator, box: Box,
    noise: float,
) -> Asking:  # fmt: skip
    """Return where to begin, f there, the length scale, whether f is flat, precision, activity."""
    s, best, value, plateau = yield from initial_step_size(x, f, budget.total, rng, box)
    while not np.isfinite(value):  # nothing is known yet: look around
        best = x + s * 2 ** rng.uniform(-3, 3) * rng.standard_normal(x.size)
        value = yield best
    if not np.isfinite(f):
        x, f = best, value
    precision = Precision(noise, change=abs(f - value))
    if not problem.has_gradient and not noise:
        precision = yield from measure_precision(x, f, s, f - value, rng, box)
    active = np.ones(x.size, np.bool_)
    if not plateau:  # where values are equal no coordinate seems to matter
        most = min(2 * x.size, budget.left // ASKED)
        active = yield from active_coordinates(x, f, s, rng, box, most, precision)
    return x, f, s, plateau, precision, active


# ---- who gets the evaluations ------------------------------------------------------------------

WINDOW, PATIENCE = 10, 6
"""Evaluations per coordinate of a turn: a few gradients and lines, or generations; and turns that
a solver may go without a gain, but for the first descent: populations learn and descents begin
again for long before they gain."""
PER_LOOK, LOOKS = 60, (3, 8)
"""Evaluations per direction along which slopes are followed, and how few and many those may be."""
TO_MINIMUM, AT_MOST = 10, 0.2
"""Gradients that BFGS needs from the best point of a population to the minimum near it, and the
part of the budget that may be kept for them."""


def compete(
    share: Shared, x: Floats, f: float, s: float, *, at_once: bool = False, plateau: bool = False
) -> Asking:
    """Search lines where f is a sum over coordinates; else let solvers take turns.

    BFGS is the first where it is to go down ``at_once``, or where f is smooth.
    """
    p, best = x.size, share.best
    few = share.budget.left < SLOPES * p and not (share.has_gradient or leads(share, at_once))
    descends = at_once and share.has_gradient
    # on a plateau equal values add up without being a sum
    asked = share.budget.left >= SUM * p and not (plateau or descends)
    if asked:
        n_times = 1 if share.budget.left < 3 * p else 3  # the sweep tells, too
        test = share.member("measuring", share.is_sum(s, best.x, best.f, n_times))
        asked = yield from test.finish()
    swept = few or (asked and not (at_once and share.has_gradient))
    if swept:
        if (yield from lines(share, s)):
            return
        x, f, at_once = best.x, best.f, True  # a sum near the start, but not here
    if leads(share, at_once):
        yield from lead_where_few(share, x, f)
        x, f = best.x, best.f
    # after lines, which saw all coordinates around x0, slopes tell of the place they led to only
    newton = share.bfgs(x, f, s, main=not swept)
    descent = share.member("bfgs", newton.run())
    population = share.member("cma-es", populations(share, x, best.x, s))
    if at_once and not share.has_gradient:
        yield from first_step(share, newton, descent)
    smooth = at_once and not descent.over  # without a slope populations are the first
    if not at_once:
        yield from descent.run(1)  # its first gradient
        trend = yield from share.member("measuring", slopes_tell(share, newton, s)).finish()
        smooth = trend.smooth and not trend.walled
        if not (trend.clear or trend.walled):
            yield from lead_by_process(share, x, f)
    members = [descent, population] if smooth else [population, descent]
    yield share.led_by(members[0].name)
    yield from take_turns(share, x, s, newton, {member.name: member for member in members})


def leads(share: Shared, at_once: bool) -> bool:
    """Tell whether a model leads where a solver is to go down at once."""
    return at_once and not share.has_gradient and is_scarce(share.box, share.budget)


def lines(share: Shared, s: float) -> Asking:
    """Search lines until a second look brings nothing; False where f is no sum there any more."""
    best, p = share.best, share.box.start.size
    n, sizes = per_line(share.budget.left, p), np.zeros(p)
    for k in range(2**30):
        x, f = best.x, best.f
        search = line_search(
            x, f, s, share.rng, n, sizes, share.box, share.precision,
            goes_on=partial(share.is_sum, s), left=lambda: share.budget.left,
        )  # fmt: skip
        yield from share.member("line search", search).finish()
        nothing = f - best.f <= share.stopping.worth(f)
        # where lines led to, it must still be a sum, over a few length scales
        test = share.member("measuring", share.is_sum(4 * s, best.x, best.f))
        if not (yield from test.finish()):
            return False
        second = n >= 2 * POOR and k > 0  # a second look, twice as close
        if share.budget.tol > 0 and nothing and second:
            return True
        n, s = 2 * n, s * share.rng.uniform(0.7, 1.4)
    return True


def slopes_tell(share: Shared, newton: BFGS, s: float) -> Asking:
    """Return how the gradient agrees with differences over the length scale."""
    assert newton.gradient is not None
    n = int(np.clip(share.budget.left // PER_LOOK, *LOOKS))
    trend = yield from follow_slopes(newton.x, newton.gradient, s, share.rng, n, share.box)
    share.flat = trend.flat
    return trend


def take_turns(
    share: Shared, x: Floats, s: float, newton: BFGS, members: dict[str, Member]
) -> Asking:
    """Let each member go on while it improves on the best value known; the first one leads.

    Where BFGS led to a minimum inside finite bounds, the population looks at the whole box; then
    BFGS begins again elsewhere. The last evaluations of a population go into a descent from its
    best point.
    """
    budget, best, stopping, window = share.budget, share.best, share.stopping, WINDOW * x.size
    descent, population, leads = members["bfgs"], members["cma-es"], "bfgs" == next(iter(members))
    reserve = int(min(TO_MINIMUM * (x.size + 3), AT_MOST * budget.total))
    reserve = 0 if share.flat else reserve  # no slope leads down from a step
    for name in cycle(members):
        if stopping.over:
            return
        if name == "bfgs" and members[name].over:
            members[name] = share.member(name, restarts(share, x, s))
        member, kept = members[name], 0
        if member is population:
            share.across = leads and descent.over and share.box.finite
            kept = reserve
        patience = 1 if member is descent else PATIENCE
        n_idle = 0
        while n_idle < patience and not (member.over or stopping.over):
            if kept and budget.left <= kept:
                break
            if member is descent and newton.jammed and not population.n:
                break
            before = best.f
            yield from member.run(min(window, budget.left - kept) if kept else window, stopping)
            gained = before - best.f > stopping.least(before)
            n_idle = 0 if gained else n_idle + 1
            if gained:
                stopping.gained()
        if kept and budget.left <= kept:
            reserve = 0
            if np.isfinite(population.best):
                last = share.bfgs(population.x, population.best, s)
                yield from share.member("bfgs", last.run()).finish()
