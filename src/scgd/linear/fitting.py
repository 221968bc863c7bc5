"""Which solver for which problem: a table of cost estimates.

``candidates`` lists the solvers that can take a problem with what each is expected to cost. Cheap
ones come first; where their cost depends on more than the sizes (how correlated the columns are,
how separable the classes) they may spend a third of what the surest costs. What one found
the next begins with, and the best point of all is returned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from scgd.linear.certificate import Best
from scgd.linear.dual import LOSSES_WITH_DUAL, ascend
from scgd.linear.gram import by_gram
from scgd.linear.interior import STEPS as INTERIOR_STEPS
from scgd.linear.interior import interior
from scgd.linear.losses import HINGE, SQUARED
from scgd.linear.newton import newton
from scgd.linear.newton_cg import newton_cg
from scgd.linear.primal import descend
from scgd.linear.program import solve_program, suits_program
from scgd.linear.rounding import follow_rounded
from scgd.linear.task import Fit, Task
from scgd.policies import Adaptive, Policy
from scgd.typing import Floats

BY_SAMPLES = Adaptive(least=0.5)
BLAS = 20.0
"""Multiplications of matrices by BLAS-3 in the time in which a pass reads one entry."""
SMALL_COST = 1e6
"""Below this, a millisecond or so, nothing is tried before the surest."""
STEPS = 8.0
"""Newton steps of a loss that is no square."""
PASSES = 15.0
"""Passes of a dual ascent or products of conjugate gradients on easy data."""
PASSES_BY_SWEEPS = 30.0
PASSES_WITH_L1 = 5.0
"""Sweeps over working sets and their certificates, in passes over all columns."""
VISIT = 20.0
"""What a visit costs beside its entries, in entries."""
DENSE = 0.5
"""What a product of dense data with a vector costs, in sparse products of as many entries."""
TIMES = 3.0
"""How far a cost may be from what is expected."""
MOST_ASCENTS = 100
MOST_BYTES = 2**30
"""Memory for products of columns."""
SPARE_BYTES, MOST_COPIES = 2**28, 1.5
"""Memory for copies of the data: so much is always there, or so many times the data."""
SMALL, FILL = 1_000_000, 200
"""Sparse entries written out for Newton steps: any such number, or so many per one stored."""

Start = Floats | None


@dataclass(frozen=True)
class Candidate:
    """A solver, what it is expected to cost (in entries read), and whether it is sure to end.

    ``run`` takes the task, the first coefficients and intercept and how much may be spent.
    """

    name: str
    cost: float
    sure: bool
    run: Callable[[Task, Start, float, float], Fit | None]


def fit(
    task: Task, policy: Policy, dual: bool | str, start: Floats | None = None, b: float = 0.0
) -> Fit:
    """Minimise a task from ``start`` and ``b``.

    Parameters
    ----------
    task, policy
        What is minimised, and the order of visits.
    dual
        Whether to take dual coordinates where they exist; ``"auto"`` decides by the data.
    start, b
        First coefficients (default: none) and intercept.
    """
    best, used = Best(task), 0
    solvers = candidates(task, policy, dual)
    surest = min(one.cost for one in solvers if one.sure)
    found: Fit | None = None
    for place, one in enumerate(solvers):
        last = place == len(solvers) - 1
        part = replace(task, max_passes=max(1, task.max_passes - used)) if used else task
        most = TIMES * one.cost if one.sure else max(surest / TIMES, 0.1 * one.cost)
        found = one.run(part, start, b, float("inf") if last else most)
        if found is None:
            continue
        used += found.n_passes
        if found.converged and found.value <= best.value + task.rounding:
            return replace(found, n_passes=used)
        best.adopt(found)
        start, b = best.w, best.b
        if used >= task.max_passes:
            break
    visits = None if found is None else found.visits
    return best.fit(used, best.closed or bool(found and found.converged), visits)


def candidates(task: Task, policy: Policy, dual: bool | str) -> list[Candidate]:
    """Return the solvers for a problem in the order in which they are tried.

    ===================  =======================================  ==================================
    solver               takes                                    expected cost, in entries read
    ===================  =======================================  ==================================
    linear program       hinge with l1 alone, up to 400,000       --
    Gram                 squares, dense                           n p^2 / 20
    conjugate gradients  smooth losses with l2                    15 products, per Newton step
    dual ascent          hinge; sparse classification, with l2    15 (entries + 20 n)
    interior point       hinge with l2                            (n p^2 + p^3 / 3), of 20 steps
    Newton               smooth losses without l1                 (n p^2 + p^3 / 3) / 20 per step
    sweeps               everything (the hinge by rounding)       30 (entries + 20 p)
    ===================  =======================================  ==================================
    """
    n, p, loss = task.design.n_samples, task.design.n_features, task.loss
    entries = float(task.design.X.nnz if task.design.sparse else n * p)
    by_product = entries if task.design.sparse else DENSE * entries
    hinge = loss == HINGE and task.epsilon == 0.0
    free = isinstance(policy, Adaptive) and not task.watched
    inside = direct_cost(task, INTERIOR_STEPS) if free and hinge and task.l2 > 0.0 else float("inf")
    out: list[Candidate] = []

    def add(name: str, cost: float, sure: bool, run: Callable[..., Fit | None]) -> None:
        out.append(Candidate(name, cost, sure, run))

    def sweeps(part: Task, w: Start, b: float, most: float) -> Fit:
        if hinge:
            return follow_rounded(part, lambda t, w, b: fit(t, policy, False, w, b), w, b)
        return descend(part, policy, w, b)

    def ascent(part: Task, w: Start, b: float, most: float) -> Fit:
        passes = part.max_passes if dual is True else min(part.max_passes, MOST_ASCENTS)
        if inside < float("inf"):  # then what is surest is not far
            passes = int(min(passes, max(PASSES, most / (entries + VISIT * n))))
        return ascend(replace(part, max_passes=passes), BY_SAMPLES, w, b)

    def by_products(part: Task, w: Start, b: float, most: float) -> Fit:
        return newton_cg(part, w, b, max(20.0, most / by_product))

    by_sweeps = PASSES_BY_SWEEPS * (entries + VISIT * p)
    ascends = has_dual(task) and dual is not False and isinstance(policy, Adaptive)
    if ascends and dual is True:
        add("dual ascent", PASSES * (entries + VISIT * n), True, ascent)
        return out
    steps = 1.0 if loss == SQUARED else STEPS
    direct = direct_cost(task, steps)
    if free and hinge and suits_program(task):
        add("linear program", 0.0, False, lambda part, w, b, most: solve_program(part))
    tiny = direct <= SMALL_COST
    visits = PASSES * (entries + VISIT * n)
    if ascends and (hinge or (free and task.design.sparse and not tiny)) and 3 * visits < inside:
        add("dual ascent", visits, False, ascent)
    if inside < float("inf"):
        add("interior point", inside, True, lambda part, w, b, most: interior(part, w, b))
        return out
    known = loss == SQUARED and task.l1 + task.l2 > 0.0 and task.design.kept("gram", task)
    if free and known:
        add("Gram", 10.0 * p * p, False, lambda part, w, b, most: by_gram(part, w))
    if free and not hinge:
        if task.l1 == 0.0:
            products = 2.0 * PASSES * steps * by_product
            if task.l2 > 0.0 and products < TIMES * direct and not tiny:
                add("conjugate gradients", products, direct == float("inf"), by_products)
            if not known and suits_gram(task, 1) and not tiny:
                add("Gram", n * p * p / BLAS, False, lambda part, w, b, most: by_gram(part, w))
            if direct < float("inf"):
                add("Newton", direct, True, lambda part, w, b, most: newton(part, w, b))
                return out
        elif not out and suits_gram(task, 1):
            add("Gram", n * p * p / BLAS, False, lambda part, w, b, most: by_gram(part, w))
    add("sweeps", by_sweeps, True, sweeps)
    return out


def has_dual(task: Task) -> bool:
    """Tell whether samples have dual variables."""
    return task.loss in LOSSES_WITH_DUAL and task.l1 == 0.0 and task.l2 > 0.0


def suits_gram(task: Task, n_penalties: int) -> bool:
    """Tell whether the products of all columns cost less than sweeps for so many penalties."""
    n, p = task.design.n_samples, task.design.n_features
    if task.loss != SQUARED or task.design.sparse or 16 * p * p > MOST_BYTES:
        return False
    if task.l1 == 0.0:
        return task.l2 > 0.0 and n >= p
    return bool(n * p * p / BLAS < n_penalties * PASSES_WITH_L1 * (n + VISIT) * p)


def direct_cost(task: Task, steps: float) -> float:
    """Return what Newton steps cost with a factor; infinite where memory does not allow it."""
    n, p = task.design.n_samples, task.design.n_features
    few, entries = min(n, p), n * p
    stored = task.design.X.nnz if task.design.sparse else entries
    if task.l1 > 0.0 or (task.design.sparse and entries > max(SMALL, FILL * stored)):
        return float("inf")
    copies = 8.0 * entries * (2 if p > n or task.design.sparse else 1)
    room = max(SPARE_BYTES, MOST_COPIES * task.design.X.dtype.itemsize * stored)
    if copies > room or 24.0 * few * few > MOST_BYTES:
        return float("inf")
    wide = (entries * few + 10.0 * few**3) / BLAS if p > n else 0.0
    return float(wide + steps * (few * few * n + few**3 / 3.0) / BLAS)
