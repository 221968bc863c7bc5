r"""Coordinate descent in the order a policy chooses, on parabolas of the risk, to a closed gap.

Each outer step models the risk by a parabola at the current margins (for squares it is the risk),
sweeps over coordinates until the model is solved well enough, and takes as much of the way as
decreases the objective. With an l1 penalty the sweeps are over a working set, the coefficients in
use and those nearest to entering, twice as many as are in use; without it over all coordinates.
What the sweeps gain tells when a certificate is worth its pass over the data.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from scgd.linear.anderson import DEPTH, Extrapolation
from scgd.linear.certificate import Best, balanced, dual_value
from scgd.linear.leap import Products, leap, sweeps_before_leap
from scgd.linear.losses import CROSS_ENTROPY, LOGISTIC, SQUARED
from scgd.linear.sweeps import correlate, curvatures, moved_margins, sweep
from scgd.linear.task import Caution, Fit, Task
from scgd.policies import Adaptive, Policy
from scgd.random import stream
from scgd.timetable import Mixings
from scgd.typing import Array, Floats, Ints

FIRST_SET = 100
MOST_SWEEPS = 200
PLAIN_SWEEPS = 2
INNER = 0.3
MOST_STALLS = 4
SHORTEST = 2.0**-30
"""Part of a step below which the model is at fault, not its length."""
SHARE, RATIO = 0.003, 0.05
TIGHT = 1e-6
"""The gain, in limits, at which a set that costs no data is solved: gaps follow its root."""
AHEAD = 8
"""Columns of sparse rows that are made at first, in working sets."""
OVERHEAD = 20.0
"""What a visit costs beside its column's entries, in entries."""
Terms = tuple[float, Floats, Floats]
"""A risk, its weighted slopes and its weighted curvatures."""


def descend(task: Task, policy: Policy, start: Floats | None = None, b: float = 0.0) -> Fit:
    """Minimise from ``start`` and ``b`` by sweeps in the order of a policy."""
    descent = Descent(task, policy, start, b)
    converged = descent.run()
    visits = descent.visits / max(descent.visits.sum(), 1.0)
    if not isinstance(policy, Adaptive) and descent.n_passes > 0:
        visits = policy.weights(descent.state(descent.all))
    return descent.best.fit(descent.n_passes, converged, visits)


class Descent:
    """The state of a descent; the intercept ``b`` is that of centred columns."""

    def __init__(self, task: Task, policy: Policy, start: Floats | None, b: float) -> None:
        self.task, self.policy = task, policy
        p, n = task.design.n_features, task.design.n_samples
        self.means = np.zeros(p)
        if task.intercept and not task.design.sparse:
            self.means = task.design.correlations(task.shares)
        self.w = np.zeros(p) if start is None else start.copy()
        self.b = b + float(self.means @ self.w)
        self.squares, self.products = np.zeros(p), np.zeros(p)
        self.costs = np.empty(0)
        if task.design.sparse:
            lengths = task.design.lengths + OVERHEAD
            self.costs = lengths / lengths.mean()
        self.visits, self.n_passes, self.n_phases = np.zeros(p), 0, 0
        self.best = Best(task)
        self.words = stream(np.random.SeedSequence(task.seed))
        self.order = np.random.default_rng(task.seed)
        self.all = np.arange(p)
        self.at_hand: Array | None = None
        if task.l1 > 0.0 and isinstance(policy, Adaptive) and task.design.by_rows:
            self.at_hand = np.zeros(p, np.bool_)  # columns come with the first working set
        else:
            self.columns = task.design.columns
        self.states: dict[int, Any] = {}
        self.known: Products | None = None
        self.since = 0  # sweeps since the last leap
        self.z = np.empty(n)
        self.refresh()
        self.caution = Caution(task.loss, task.epsilon)

    def refresh(self) -> None:
        """Compute the margins afresh, without the drift of increments."""
        self.z = np.full(len(self.z), self.b - float(self.means @ self.w))
        if self.w.any():  # most fits begin at zero
            self.z += self.task.design.margins(self.w)

    def run(self) -> bool:
        """Take outer steps until the gap is closed or the passes are used."""
        task, limit, rounding = self.task, self.task.limit, self.task.rounding
        gain, checked, lowest, stalled = np.inf, np.inf, np.inf, 0
        value, slopes, curve = self.look(task.terms(self.z))
        while True:
            due = gain <= limit and gain <= 0.25 * checked
            if task.l1 > 0.0 or due or stalled:
                correlations = self.certify(slopes)
                checked = gain
                if self.best.gap < 0.9 * lowest:
                    lowest, stalled = self.best.gap, 0
            if self.best.closed:
                return True
            if task.l2 == task.l1 == 0.0 and gain <= 0.1 * limit + 1e-3 * rounding and not stalled:
                return True
            if stalled >= MOST_STALLS or self.n_passes >= task.max_passes:
                return bool(self.best.gap <= limit + 10 * rounding)
            if self.n_passes > 0 and task.told(self.n_passes, self.best.gap, self.w, self.plain_b):
                return False
            chosen = self.working_set(correlations) if task.l1 > 0.0 else self.all
            gain, terms = self.step(chosen, value, slopes, curve, limit)
            before, (value, slopes, curve) = value, self.look(terms)
            stalled = stalled + 1 if value >= before - 0.1 * rounding else 0
            if task.rough and not stalled and before - value <= 0.1 * limit:
                return True

    @property
    def plain_b(self) -> float:
        """The intercept of columns that are not centred."""
        return self.b - float(self.means @ self.w) if self.task.intercept else 0.0

    def look(self, terms: Terms) -> Terms:
        """Return the objective and the weighted slopes and curvatures, given those of the risk."""
        risk, slopes, curve = terms
        value = risk + self.task.penalty(self.w)
        self.best.offer(value, self.w, self.plain_b)
        return value, slopes, curve

    def certify(self, slopes: Floats) -> Floats:
        """Bound the distance to the minimum; return the correlations of the columns."""
        u = balanced(self.task, slopes)
        correlations = self.task.design.correlations(u)
        if self.task.intercept:
            correlations -= self.means * u.sum()
        self.best.bound(u, correlations)
        return correlations

    def working_set(self, correlations: Floats) -> Ints:
        """Return the coordinates in use and the nearest to entering."""
        p, used = len(self.w), np.flatnonzero(self.w)
        size = max(FIRST_SET, 2 * len(used))
        if size >= p or not isinstance(self.policy, Adaptive):
            self.columns, self.at_hand = self.task.design.columns, None
            return self.all
        sizes = np.abs(correlations)  # of those in use, l1 + l2 |w|: they say nothing of the others
        most = float(sizes.max(initial=0.0, where=self.w == 0.0))
        distance = 1.0 - sizes / max(self.task.l1, most)
        norms = np.sqrt(self.norms())
        distance = np.divide(distance, norms, out=np.full(p, np.inf), where=norms > 0.0)
        distance[used] = -1.0
        return self.bring(distance, size)

    def bring(self, distance: Floats, size: int) -> Ints:
        """Return the nearest coordinates, and have their columns at hand.

        Of sparse rows those near entering are made first, for all cost more than a loose fit, and
        all when others are wanted.
        """
        chosen = np.sort(np.argpartition(distance, size - 1)[:size])
        if self.at_hand is None or self.at_hand[chosen].all():
            return chosen
        if self.at_hand.any() or AHEAD * size >= len(self.w):
            self.columns, self.at_hand = self.task.design.columns, None
            return chosen
        near = np.argpartition(distance, AHEAD * size - 1)[: AHEAD * size]
        self.columns, self.at_hand[near] = self.task.design.some_columns(near), True
        return chosen

    def norms(self) -> Floats:
        """Return the weighted squares of all columns."""
        if not hasattr(self, "_norms"):
            shares, intercept = self.task.shares, self.task.intercept
            if self.at_hand is None:
                squares, products = np.empty(len(self.w)), np.empty(len(self.w))
                curvatures(*self.columns, self.means, shares, self.all, squares, products)
            else:
                squares = self.task.design.squares(shares)
                products = self.task.design.correlations(shares) if intercept else 0.0 * squares
            if self.task.loss == SQUARED:
                self.products = products
            if intercept:
                squares = np.maximum(squares - products**2, 1e-14 * squares)
            self._norms = squares
        return self._norms

    def step(
        self, chosen: Ints, value: float, slopes: Floats, curve: Floats, limit: float
    ) -> tuple[float, Terms]:
        """Solve the model over ``chosen`` and go there; return the last gain and the terms."""
        task, exact = self.task, self.task.loss == SQUARED
        curve = self.caution.apply(curve, task.shares)
        total = float(curve.sum()) if task.intercept else 0.0
        shift = -float(slopes.sum()) / total if total > 0.0 else 0.0
        slopes = slopes + shift * curve if shift else slopes
        bends = self.bends(chosen, curve, total)
        old, first, offset, known = self.w[chosen], 0.0, 0.0, None
        memory = Extrapolation() if exact and task.l1 > 0.0 else None
        gain, alone = 0.0, task.l1 > 0.0 and isinstance(self.policy, Adaptive) and not task.watched
        for n in range(min(MOST_SWEEPS, task.max_passes - self.n_passes)):
            if alone and self.n_passes >= sweeps_before_leap(task, len(chosen)):
                known = self.products_with(curve, total)
                offset = leap(known, chosen, self.w, slopes, offset, TIGHT * limit)
                self.n_passes += 1
                break
            turn = (n - PLAIN_SWEEPS) % (DEPTH + 1)
            again = memory is not None and n > PLAIN_SWEEPS and turn > 0
            offset, gain = self.sweep(chosen, slopes, curve, bends, total, offset, again)
            self.n_passes += 1
            first, self.since = max(first, gain), self.since + 1
            used, leapt = chosen[self.w[chosen] != 0.0], False
            due = self.since >= sweeps_before_leap(task, len(used))
            small = max(
                min(SHARE * self.best.gap, RATIO * first),
                0.02 * limit * min(1.0, limit / self.best.gap) ** 2,
            )
            if due:
                known = known or self.products_with(curve, total)
                offset = leap(known, used, self.w, slopes, offset, 0.01 * limit)
                self.since, leapt = 0, True
            elif memory is not None and n >= PLAIN_SWEEPS:
                offset = self.extrapolate(memory, chosen, slopes, curve, offset)
            if memory is not None and (leapt or turn in (0, DEPTH)):
                if leapt:
                    memory = Extrapolation()  # what came before is another way
                if self.solved(chosen, slopes + offset * curve):
                    break
            if memory is None and gain <= small:
                break
        return gain, self.advance(chosen, old, shift + offset, value)

    def products_with(self, curve: Floats, total: float) -> Products:
        """Return the products of columns under these curvatures, which squares do not change."""
        if self.known is None or self.task.loss != SQUARED:
            self.known = Products(self.task, self.means, self.columns, curve, total)
        self.known.columns = self.columns
        return self.known

    def solved(self, chosen: Ints, slopes: Floats) -> bool:
        """Tell whether the gap of the working set alone is well below that of all coordinates."""
        u, out = balanced(self.task, slopes), np.empty(len(chosen))
        correlate(*self.columns, self.means, chosen, u, out)
        value = self.model(self.w[chosen], slopes, self.task.shares)
        return value - dual_value(self.task, u, out) <= INNER * self.best.gap

    def extrapolate(
        self, memory: Extrapolation, chosen: Ints, slopes: Floats, curve: Floats, offset: float
    ) -> float:
        """Go to the extrapolated point if it is better; return the slopes' offset."""
        found = memory.add(np.append(self.w[chosen], offset), slopes)
        if found is None:
            return offset
        point, there = found
        if self.model(point[:-1], there + point[-1] * curve, curve) < self.model(
            self.w[chosen], slopes + offset * curve, curve
        ):
            self.w[chosen], slopes[:], offset = point[:-1], there, float(point[-1])
        return offset

    def model(self, w: Floats, slopes: Floats, curve: Floats) -> float:
        """Return the squared risk with these slopes, and the penalty."""
        held = self.task.held
        return 0.5 * float(np.sum(slopes[held] ** 2 / curve[held])) + self.task.penalty(w)

    def bends(self, chosen: Ints, curve: Floats, total: float) -> Floats:
        """Return the curvature of the model along each chosen coordinate."""
        if self.task.loss == SQUARED:  # the same in every step
            return self.norms()
        curvatures(*self.columns, self.means, curve, chosen, self.squares, self.products)
        bends = self.squares
        if total > 0.0:
            bends = bends - self.products**2 / total
        least = 1e-14 * self.squares
        if self.task.loss in (LOGISTIC, CROSS_ENTROPY):  # where curvatures fade, not jump
            least = np.maximum(least, 1e-10 * self.norms())
        return np.maximum(bends, least)

    def sweep(
        self,
        chosen: Ints,
        slopes: Floats,
        curve: Floats,
        bends: Floats,
        total: float,
        offset: float,
        again: bool,
    ) -> tuple[float, float]:
        """Visit as many coordinates as are chosen; return the slopes' offset and the gain."""
        task, size = self.task, len(chosen)
        shuffled = isinstance(self.policy, Adaptive) and self.policy.least == 1.0
        state = None if shuffled else self.state(chosen)  # each once: nothing to remember
        if not again:
            self.round = np.empty(size, np.int64), np.empty(size), np.empty(size)
        coords, probs, grads = self.round
        length = self.policy.phase_length(size)
        for first in range(0, size, length):
            phase = slice(first, first + length)
            if shuffled and not again:
                coords[phase] = self.order.permutation(size)
            elif not again:
                self.policy.draw(state, self.words, coords[phase], probs[phase], 1, True)
            offset = sweep(
                *self.columns, self.means, slopes, curve, bends, self.products, self.costs, self.w,
                chosen, coords[phase], grads[phase], task.l2, task.l1, total, offset, 1.0,
            )  # fmt: skip
            if not shuffled:
                self.policy.update(state, coords[phase], probs[phase], grads[phase], self.mixing())
        self.visits[chosen] += np.bincount(coords, minlength=size)
        gains = grads**2 * self.costs[chosen[coords]] if len(self.costs) else grads**2
        return offset, 0.5 * float(gains.sum())

    def mixing(self) -> float:
        """Return the weight of the uniform law after the next phase."""
        self.n_phases += 1
        return self.mixings.at(self.n_phases)

    @cached_property
    def mixings(self) -> Mixings:
        """The weights of the uniform law, looked up ahead."""
        return Mixings(self.policy.mixing)

    def state(self, chosen: Ints) -> Any:
        """Return the policy's memory of these coordinates."""
        key = len(chosen) if len(chosen) == len(self.w) else hash(chosen.tobytes())
        if key not in self.states:
            kept = {k: s for k, s in self.states.items() if k == len(self.w)}
            self.states = {**kept, key: self.policy.init(len(chosen), True)}
        return self.states[key]

    def advance(self, chosen: Ints, old: Floats, shift: float, value: float) -> Terms:
        """Go along the model's way as far as the objective falls, or stay; return the terms."""
        task, moves = self.task, self.w[chosen] - old
        along = np.full(len(self.z), shift)
        moved_margins(*self.columns, self.means, chosen, moves, along)
        length, z = 1.0, self.z + along
        terms = task.terms(z)
        while task.loss != SQUARED and not (
            terms[0] + task.penalty(self.w) <= value * (1 + 1e-15) or length == 0.0
        ):
            length = 0.5 * length if length > SHORTEST else 0.0
            self.w[chosen] = old + length * moves if length else old
            z = self.z + length * along if length else self.z
            terms = task.terms(z)
        self.caution.learn(length)
        self.b += length * shift
        self.z = z
        return terms
