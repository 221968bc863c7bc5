"""The default for deterministic functions: a portfolio of solvers that share the evaluations.

How far f falls gives the unit of length. Coordinates that do nothing are left out, and a sum over
coordinates goes to line searches. Everything else is for BFGS, CMA-ES, implicit filtering or random
direct search: how well gradients agree with differences over the length scale tells who leads. The
leader goes on while it improves on the best value known; then all take turns, with restarts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from scgd.estimators import random_signs
from scgd.problem import Problem
from scgd.strategies.asks import Asking, Outcome, Report
from scgd.strategies.bfgs import BFGS
from scgd.strategies.box import Box, in_box
from scgd.strategies.budget import Budget
from scgd.strategies.cma_es import default_size
from scgd.strategies.direct_search import random_direct_search
from scgd.strategies.gradient_agreement import follow_slopes, gets_better
from scgd.strategies.implicit_filtering import ImplicitFiltering
from scgd.strategies.length_scale import KEPT, WIDEST, initial_step_size
from scgd.strategies.line_search import POOR, line_search, per_line
from scgd.strategies.member import Best, Member
from scgd.strategies.model_lead import first_step, is_scarce, lead_by_model, process
from scgd.strategies.precision import Precision, measure_precision, single_precision
from scgd.strategies.restarts import Shared, polisher, populations, restarts
from scgd.strategies.separability import active_coordinates
from scgd.strategies.stopping import StoppingRule
from scgd.strategies.subspace import in_active
from scgd.typing import Floats

__all__ = ["portfolio"]

PAIR, TINY = 6, 100
"""Evaluations below which a pair beside x0 is all there is, and below which derivatives are
followed at once: measuring takes some 25 evaluations."""
LEAN, FEW, SMALL = 12, 40, 32
"""Evaluations per coordinate, and in all, below which nothing is measured before BFGS begins
(measuring takes some 25), and coordinates from which it is worth asking how many matter."""
ASKED = 4
"""One over the part of the budget that may go into finding out which coordinates are active."""
SUM, SLOPES = 2.25, 1.5
"""Evaluations per coordinate from which parabolas along all of them are affordable, and below which
not even one gradient and a line are: then parabolas along as many as there is budget for."""


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
    yield Report(deterministic=True, message="Deterministic: a portfolio of solvers.")
    f = (yield x) if f is None else f
    if budget.total < PAIR and not problem.has_gradient:
        yield from look_beside(problem, budget, rng, x)
        return Outcome()
    unit = problem.unit
    none = problem.lower.size
    box = Box(x / unit, problem.lower / unit[:none], problem.upper / unit[:none])
    f = f if np.isfinite(f) else np.inf
    search = _minimize(x / unit, f, problem, budget, rng, box, noise)
    return (yield from in_box(search, problem, box))


def look_beside(
    problem: Problem, budget: Budget, rng: np.random.Generator, x: Floats, reach: float = 0.1
) -> Asking:
    """Evaluate one or two points beside x, on opposite sides, where the budget pays for no more."""
    aside = reach * problem.unit * random_signs(x.size, rng)
    aside = np.where(problem.clipped(x + aside) == x + aside, aside, -aside)
    for move in (aside, -aside):
        if budget.left > 0:
            yield problem.clipped(x + move)


def _minimize(
    x: Floats, f: float, problem: Problem, budget: Budget, rng: np.random.Generator, box: Box,
    noise: float,
) -> Asking:  # fmt: skip
    """Measure, leave out what does nothing, let solvers compete."""
    p, best = x.size, Best(x, f)
    at_once = (
        (p < SMALL and budget.left < max(FEW, LEAN * p))
        or (problem.has_gradient and budget.left < TINY)
        or (is_scarce(p, budget) and budget.left >= SLOPES * p)
    )
    if at_once and np.isfinite(f):
        size = max(single_precision(f), noise)
        share = Shared(budget, rng, box, best, Precision(size, change=abs(f)),
                       StoppingRule(budget.tol, f, size), problem.has_gradient)  # fmt: skip
        yield from compete(share, x, f, min(KEPT, WIDEST * box.width), at_once=True)
        return Outcome(converged=True)
    measured = Member("measuring", _measure(x, f, problem, budget, rng, box, noise), best)
    x, f, s, plateau, precision, active = yield from measured.finish()
    share = Shared(budget, rng, box, best, precision, StoppingRule(budget.tol, f, precision.noise),
                   problem.has_gradient)  # fmt: skip
    if not active.all():
        fraction = float(active.mean())  # random directions were diluted by what does nothing
        inner = s * np.sqrt(fraction) if fraction < 0.5 else s
        part = replace(share, box=box.part(active), best=Best(x[active], f))
        woke = yield from in_active(compete(part, x[active], f, inner), share, x, f, s, active)
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
    most = min(2 * x.size, budget.left // ASKED)
    active = yield from active_coordinates(x, f, s, rng, box, most, precision)
    return x, f, s, plateau, precision, active


# ---- who gets the evaluations ------------------------------------------------------------------

WINDOW = 10
"""Evaluations per coordinate of a turn."""
SCARCE = 15
"""Evaluations per coordinate below which a population is for rough functions alone."""
PER_LOOK, LOOKS = 60, (3, 8)
"""Evaluations per direction along which slopes are followed, and how few and many those may be."""
PLENTY = 60
"""Evaluations per coordinate from which a population finds its way over steps better."""
MISLED = 0.3
"""The part of what slopes promised that first steps must have gained for f not to look rough."""
MOST_GRADIENTS = 150
LEAST, PATIENCE = 6, 8
"""Turns in a row of a population that leads, and turns without a gain after which the population in
BFGS's metric is given up."""


@dataclass
class Solvers:
    """The members of a portfolio on a function that is no sum."""

    newton: BFGS
    descent: Member
    population: Member
    filtering: Member
    direct: Member

    @property
    def all(self) -> tuple[Member, ...]:
        """All of them."""
        return self.descent, self.population, self.filtering, self.direct


def compete(
    share: Shared, x: Floats, f: float, s: float, *, at_once: bool = False, plateau: bool = False
) -> Asking:
    """Search lines where f is a sum over coordinates; else let the solver lead that fits f.

    That is BFGS where it is to go down ``at_once``.
    """
    p, best = x.size, share.best
    few = share.budget.left < SLOPES * p and not share.has_gradient
    asked = share.budget.left >= SUM * p and not plateau  # equal values add up without being a sum
    if asked and not (at_once and share.has_gradient):
        n_times = 1 if share.budget.left < 3 * p else 3  # the sweep tells, too
        test = share.member("measuring", share.is_sum(s, best.x, best.f, n_times))
        asked = yield from test.finish()
    if few or (asked and not (at_once and share.has_gradient)):
        if (yield from lines(share, s)):
            return
        x, f, at_once = best.x, best.f, True  # a sum near the start, but not here
    if at_once and is_scarce(p, share.budget) and not (few or share.has_gradient):
        yield from lead_by_model(share)
        x, f = best.x, best.f
    newton = share.bfgs(x, f, s, main=True)
    stride = 0.4 * share.within(s) * float(np.sqrt(p))
    solvers = Solvers(
        newton,
        share.member("bfgs", newton.run()),
        share.member("cma-es", populations(share, x, best.x, s)),
        share.member(
            "implicit filtering",
            ImplicitFiltering(best.x, best.f, share.within(s), share.box).run(),
        ),
        share.member(
            "direct search", random_direct_search(best.x, best.f, stride, share.rng, share.box)
        ),
    )
    leader = solvers.descent if at_once else (yield from choose(share, x, s, solvers))
    if at_once and not share.has_gradient:
        yield from first_step(share, newton, leader)
    yield Report(message=f"Deterministic: {leader.name} leads a portfolio of solvers.")
    leads = leader is solvers.descent
    if leads:
        yield from lead(share, solvers)
        if newton.jammed and share.budget.left >= WINDOW * p:  # a wall stands across its way
            around = populations(share, x, solvers.descent.x, s)
            solvers.population = share.member("cma-es", around)
            yield from follow(share, solvers)
    elif leader is solvers.direct:
        yield from go_on(leader, p, solvers.population if share.budget.left >= 40 * p else None)
    elif leader is solvers.population:
        leads = yield from follow(share, solvers)
    else:
        yield from go_on(leader, p)
    yield from take_turns(share, x, s, solvers, leads)


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


def choose(share: Shared, x: Floats, s: float, solvers: Solvers) -> Asking:
    """Return who leads: how gradients agree with differences tells that, or a race."""
    p, B, value = x.size, share.budget.left, share.best.f
    turn = int(min(8 * p, max(0.06 * B, 4 * (p + 3)), 0.15 * B))
    yield from solvers.descent.run(1)  # its first gradient
    assert solvers.newton.gradient is not None
    n = int(np.clip(B // PER_LOOK, *LOOKS))
    look = follow_slopes(x, solvers.newton.gradient, s, share.rng, n, share.box)
    trend = yield from share.member("measuring", look).finish()
    share.rough, share.flat = trend.rough, trend.flat
    if trend.walled:
        return solvers.population
    model = None if trend.clear else process(share, x, value)
    if model is not None:
        return model
    if trend.smooth:
        return solvers.descent
    if trend.flat and B < PLENTY * p:
        return solvers.filtering
    if not trend.rough:
        return (yield from race(share, x, value, s, solvers, turn))
    seen: list[Floats] = []
    n = int(np.clip(share.budget.left / (4 * default_size(p)), 3, 8))  # generations looked at
    while len(seen) < n and not solvers.population.over:
        yield from solvers.population.run(1)
        seen.append(solvers.population.values)
    share.trendless = not gets_better(seen) and not trend.flat
    other = solvers.direct if share.trendless else solvers.population
    yield from other.run(turn - other.n)
    if trend.fractal:
        yield from solvers.filtering.run(turn)
    return min(other, solvers.filtering, key=lambda member: member.best)


def race(share: Shared, x: Floats, f: float, s: float, solvers: Solvers, turn: int) -> Asking:
    """Give BFGS and CMA-ES the same evaluations, more while they are close or BFGS looks rough."""
    newton, descent, population = solvers.newton, solvers.descent, solvers.population
    p, B = x.size, share.budget.left + descent.n
    yield from descent.run(max(turn, 2 * (p + 3)) - descent.n)
    fell = descent.best < f
    sparse = p >= 16 and fell and 1 <= newton.n_active <= p // 4
    misled = not newton.agreement or float(np.mean(newton.agreement)) < MISLED
    if sparse or (B < SCARCE * p and fell and not misled):
        return descent
    yield from population.run(turn)
    last = 0.0
    for k in range(3):
        first, gap = min(descent.best, population.best), abs(descent.best - population.best)
        tied = gap < (0.1 * (f - first) if k == 0 else 0.5 * last)
        seen = newton.agreement[1:]
        moved = float(np.linalg.norm(descent.x - x)) if descent.best < f else 0.0
        rough = (len(seen) >= 3 and float(np.median(seen)) < 0.15) or (
            B >= 45 * p and moved < 0.25 * s * np.sqrt(p)
        )
        rough = rough and descent.best < population.best
        if share.budget.left < 0.6 * B or descent.over or not (tied or rough):
            break
        yield from descent.run(turn)
        yield from population.run(turn)
        last = first - min(descent.best, population.best)
    return descent if descent.best <= population.best else population


def lead(share: Shared, solvers: Solvers) -> Asking:
    """Let BFGS go on while it improves on the best value known, up to so many gradients."""
    p, newton, descent = solvers.newton.p, solvers.newton, solvers.descent
    most, gained = MOST_GRADIENTS * (p + 3), True
    while gained and not (descent.over or newton.jammed) and descent.n < most:
        before = share.best.f
        yield from descent.run(WINDOW * p)
        gained = before - descent.best > share.stopping.worth(before)


def follow(share: Shared, solvers: Solvers) -> Asking:
    """Let the population go on until its first restart; return whether BFGS overtook it."""
    window = WINDOW * solvers.newton.p
    while not share.n_restarts:
        for _ in range(8):
            if not share.n_restarts:
                yield from solvers.population.run(window)
        if not share.rough:
            yield from solvers.descent.run(window)
        if solvers.descent.best < solvers.population.best:
            yield from lead(share, solvers)
            return True
    return False


def go_on(leader: Member, p: int, rival: Member | None = None) -> Asking:
    """Let the leader go on until it is over, or a rival with as many turns overtakes it."""
    while not leader.over:
        yield from leader.run(WINDOW * p)
        if rival is not None:
            yield from rival.run(WINDOW * p)
            if rival.best < leader.best:
                return


def take_turns(share: Shared, x: Floats, s: float, solvers: Solvers, leads: bool) -> Asking:
    """Polish in BFGS's metric, restart BFGS, restart populations; who gains goes on.

    When BFGS has found a minimum inside finite bounds, a population looks at the whole box first.
    One more solver is one more line of ``members``.
    """
    share.across = leads and solvers.descent.over and share.box.finite
    window, best, stopping, n_failed = WINDOW * x.size, share.best, share.stopping, 0
    members = {"descent": solvers.descent, "cma-es": solvers.population}
    polish = polisher(share, solvers.newton) if leads else None
    if polish is not None:
        members = {"descent": solvers.descent, "polish": polish, "cma-es": solvers.population}
    order = list(members) if leads else list(members)[::-1]
    if share.across:
        order = ["cma-es", *order[:-1]]
    patient = "cma-es" if share.across or not leads else "polish" if share.precision.noise else ""
    for turn in range(2**30):
        tried = polish is None or polish.over or n_failed > 0
        if stopping.over and tried:
            return
        who = order[turn % len(order)]
        if who == "polish" and (members[who].over or n_failed >= PATIENCE):
            continue
        if who == "descent" and members[who].over:
            name = "direct search" if share.trendless else "bfgs"
            members[who] = share.member(name, restarts(share, x, s))
        least = LEAST if who == patient else 1
        for k in range(1, max(least, 10) + 1):
            member, before = members[who], best.f
            yield from member.run(window, None if who == "polish" else stopping)
            gained = best.f < before - 1e-14 * abs(before)
            n_failed += who == "polish" and not gained
            if before - best.f > stopping.worth(before):
                stopping.gained()
            if member.over or (k >= least and not gained):
                break
