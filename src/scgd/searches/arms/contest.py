"""BFGS, a population, wide differences, strides or lines lead: what fits f; then turns."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from scgd.searches.arms.arm import Arm, Telling
from scgd.searches.arms.box import Box
from scgd.searches.arms.ending import Ending
from scgd.searches.arms.filtering import Filtering
from scgd.searches.arms.grain import EPS, Grain
from scgd.searches.arms.lines import POOR, per_line, sweep_lines
from scgd.searches.arms.population import default_size, population
from scgd.searches.arms.quasinewton import QuasiNewton
from scgd.searches.arms.strides import take_strides
from scgd.searches.arms.structure import is_additive
from scgd.searches.arms.trend import follow_slopes, gets_better
from scgd.typing import Floats

if TYPE_CHECKING:
    from scgd.searches.told import Told

__all__ = ["Contest"]

FULL, LARGEST_FULL, AMPLE = 64, 300, 500
"""Coordinates up to which a population learns a full covariance; and with 500 evaluations each."""
STEPPED = 2
"""How often the first population is doubled where f goes in steps, with as many evaluations: a
small one soon stands on one of them."""
WINDOW = 10
"""Evaluations per coordinate of a turn."""
SCARCE = 30
"""Evaluations per coordinate below which a population is for rough functions alone."""
PER_LOOK, LOOKS = 60, (3, 8)
"""Evaluations per direction along which slopes are followed, and how few and many those may be."""
PLENTY = 60
"""Evaluations per coordinate from which a population finds its way over steps better."""
MISLED = 0.3
"""The part of what slopes promised that first steps must have gained for f not to look rough."""
GENERATIONS = 3, 8
"""How few and many generations of a population are looked at, for a quarter of what is left."""
STRIDE, ROOM = 0.4, 40
"""First stride, in length scales along each coordinate, and the evaluations per coordinate from
which a population goes on beside strides."""
CROWD = 0.1
"""First step size of a population and of wide differences, at most, in widths of the box: walls
cut what lies beyond."""
MOST_GRADIENTS = 150
SMALL = 1e-3
"""The part of a gain that is not worth it that counts as none in a restart."""
WIDER = 4
"""Length scales over which a sum over coordinates must still be one where lines led to."""
LEAST = 6
"""Windows in a row of a population that leads; where f is grainy, of the one in BFGS's metric."""
PATIENCE = 8
"""Windows without a gain after which the population in BFGS's metric is given up."""


class Contest:
    """The race on some coordinates.

    Parameters
    ----------
    owner
        Whose race it is: its generator, budget, best value and books are used.
    ending
        When nothing is left to gain.
    box
        Where to look.
    grain
        How fine f is.

    Attributes
    ----------
    leader
        Who led when the race was decided.
    sizes
        What f changes along each coordinate, in units of its own.
    """

    def __init__(self, owner: Told, ending: Ending, box: Box, grain: Grain | None = None) -> None:
        self.owner, self.ending, self.box = owner, ending, box
        self.grain = grain or Grain()
        self.rng, self.tol = owner.rng, owner.tol
        self.leader, self.n_restarts = "", 0
        self.rough = self.flat = self.trendless = False
        self.newton: QuasiNewton | None = None
        self.sizes: Floats = np.zeros(box.start.size)

    def relevance(self) -> tuple[Floats, Floats] | None:
        """Return what f changes along each coordinate, as shares, and their standard errors.

        Along lines the shares are exact; slopes are seen in several places and averaged, and the
        error is NaN where there was one alone.
        """
        if self.newton is not None:
            return self.newton.relevance()
        total = float(self.sizes.sum())
        return (self.sizes / total, 0.0 * self.sizes) if 0 < total < np.inf else None

    @property
    def left(self) -> int:
        """Evaluations that are left."""
        return self.owner.left

    def compete(
        self, x: Floats, f: float, s: float, best: Floats, value: float, *, at_once: bool = False
    ) -> Telling:
        """Go to lines where f is a sum over coordinates; else let the arm lead that fits f.

        That is BFGS where it is to go down ``at_once``.
        """
        p, B = x.size, self.left
        if 4 * p <= B and (yield from self._is_sum(s, best, value)):
            self.leader = "lines"
            best, value, still = yield from self._lines(best, value, s)
            if still:
                return
            x, f, at_once = best, value, True  # a sum near the start, but not here
        newton = self.newton = self._newton(x, f, s)
        descent = Arm(self.owner, "bfgs", newton.run())
        crowd = Arm(self.owner, "population", self._populations(x, best, s))
        wide, strides = self._wide(best, value, s), self._strides(best, value, s)
        arms = descent, crowd, wide, strides
        leader = descent
        if not at_once:
            leader = yield from self._choose(x, value, s, newton, arms)
        self.leader, leads = leader.name, leader is descent
        if leads:
            yield from self._lead(newton, descent)
            if newton.jammed and self.left >= WINDOW * p:
                crowd = Arm(self.owner, "population", self._populations(x, descent.x, s))
                arms = descent, crowd, wide, strides
                yield from self._follow(newton, descent, crowd)
        elif leader is wide:
            yield from self._finish(wide)
        elif leader is strides:
            yield from self._finish(strides, crowd if self.left >= ROOM * p else None)
        else:
            leads = yield from self._follow(newton, descent, crowd)
        yield from self._take_turns(x, s, newton, arms, leads)

    def _wide(self, x: Floats, f: float, s: float) -> Arm:
        return Arm(self.owner, "filtering", Filtering(x, f, self._within(s), self.box).run())

    def _strides(self, x: Floats, f: float, s: float) -> Arm:
        strides = take_strides(x, f, self._stride(s, x.size), self.rng, self.box)
        return Arm(self.owner, "strides", strides)

    def _stride(self, s: float, p: int) -> float:
        """Return the length of a first stride."""
        return STRIDE * self._within(s) * float(np.sqrt(p))

    def _finish(self, leader: Arm, rival: Arm | None = None) -> Telling:
        """Let the leader go on until it is over, or a rival with as many turns overtakes it."""
        window = WINDOW * self.box.start.size
        while not leader.over:
            yield from leader.run(window)
            if rival is not None:
                yield from rival.run(window)
                if rival.best < leader.best:
                    return

    def _sinks(self, crowd: Arm, p: int) -> Generator[Any, Any, bool]:
        """Look at some generations of a population; tell whether they get better."""
        seen: list[Floats] = []
        n = int(np.clip(self.left / (4 * default_size(p)), *GENERATIONS))
        while len(seen) < n:
            yield from crowd.run(1)
            seen.append(crowd.values)
        return gets_better(seen)

    def _within(self, s: float) -> float:
        """Return a length, but at most a part of the box."""
        return min(s, CROWD * self.box.width)

    def _is_sum(self, s: float, x: Floats, f: float, n_times: int = 3) -> Generator[Any, Any, bool]:
        return is_additive(x, f, s, self.rng, self.box, self.grain, n_times=n_times)

    def _newton(self, x: Floats, f: float, s: float, small: float = 0.0) -> QuasiNewton:
        return QuasiNewton(x, f, s, small, self.box, self.owner.partials, self.grain)

    def _lines(self, x: Floats, f: float, s: float) -> Telling:
        """Sweep lines until a second look brings nothing, or f is no sum where they led to."""
        n, spread = per_line(self.left, x.size), np.zeros(x.size)
        for k in range(2**30):
            still_sum = partial(self._is_sum, s)
            lines = sweep_lines(
                x, f, s, self.rng, n, spread, self.box, self.grain, goes_on=still_sum
            )  # fmt: skip
            arm = Arm(self.owner, "lines", lines)
            while not arm.over:
                yield from arm.run(WINDOW * x.size)
            self.sizes = spread
            nothing = f - arm.best <= self.ending.worth(f)
            if arm.best < f:
                x, f = arm.x, arm.best
            still = yield from self._is_sum(WIDER * s, x, f)
            closer = n >= 2 * POOR and k > 0  # it was a second look, twice as close
            if not still or (self.tol > 0 and nothing and closer):
                return x, f, still
            n, s = 2 * n, s * self.rng.uniform(0.7, 1.4)

    def _populations(self, x: Floats, best: Floats, s: float) -> Telling:
        """Restart with populations that double, with full and diagonal covariances in turn.

        On steps the first is larger and no full one is followed by a diagonal one.
        """
        s = self._within(s)
        p, mean, sigma, ample = x.size, best, s, self.left >= AMPLE * x.size
        full, k = p <= FULL or (p <= LARGEST_FULL and ample), STEPPED if self.flat and ample else 0
        while True:
            size = default_size(p) * 2 ** min(k, 8)
            before, diagonal = self.owner.best, not full or (k % 2 == 1 and not self.flat)
            value = yield from population(
                mean, sigma, self.rng, size, diagonal=diagonal, box=self.box
            )
            if self.n_restarts:
                self.ending.note("population", before, value)
            k += 1
            self.n_restarts += 1
            sigma = s * 2 ** self.rng.uniform(-1, 1)
            mean = self.box.reflect(x + 1.5 * sigma * self.rng.standard_normal(p))

    def _choose(
        self, x: Floats, f: float, s: float, newton: QuasiNewton, arms: tuple[Arm, ...]
    ) -> Generator[Any, Any, Arm]:
        """Return who leads: what slopes are worth tells that, or a race."""
        descent, crowd, wide, strides = arms
        B, p = self.left, x.size
        r = self._turn(p)
        yield from descent.run(1)  # its first gradient
        assert newton.gradient is not None
        n = int(np.clip(B // PER_LOOK, *LOOKS))
        trend = yield from follow_slopes(x, newton.gradient, s, self.rng, n, self.box)
        self.rough, self.flat = trend.rough, trend.flat
        if trend.walled:
            return crowd
        if trend.smooth:
            return descent
        if trend.flat and B < PLENTY * p:
            return wide
        if not trend.rough:
            return (yield from self._race(x, f, s, newton, descent, crowd, r))
        sinks = yield from self._sinks(crowd, p)
        self.trendless = not sinks and not trend.flat
        other = strides if self.trendless else crowd
        yield from other.run(r - other.n)
        if trend.fractal:
            yield from wide.run(r)
        return min(other, wide, key=lambda arm: arm.best)

    def _turn(self, p: int) -> int:
        """Return the evaluations of a turn while nobody leads."""
        return int(min(8 * p, max(0.06 * self.left, 4 * (p + 3)), 0.15 * self.left))

    def _race(
        self, x: Floats, f: float, s: float, newton: QuasiNewton, descent: Arm, crowd: Arm, r: int
    ) -> Generator[Any, Any, Arm]:
        """Give both the same evaluations, more while they are close or BFGS looks rough."""
        p, B = x.size, self.left + descent.n
        yield from descent.run(max(r, 2 * (p + 3)) - descent.n)
        fell = descent.best < f
        sparse = p >= 16 and fell and 1 <= newton.n_active <= p // 4
        misled = not newton.agreement or float(np.mean(newton.agreement)) < MISLED
        if sparse or (B < SCARCE * p and fell and not misled):
            return descent
        yield from crowd.run(r)
        last = 0.0
        for k in range(3):
            lead, gap = min(descent.best, crowd.best), abs(descent.best - crowd.best)
            tied = gap < (0.1 * (f - lead) if k == 0 else 0.5 * last)
            rough = descent.best < crowd.best and self._is_rough(x, f, s, newton, descent, B)
            if self.left < 0.6 * B or descent.over or not (tied or rough):
                break
            yield from descent.run(r)
            yield from crowd.run(r)
            last = lead - min(descent.best, crowd.best)
        return descent if descent.best <= crowd.best else crowd

    def _is_rough(
        self, x: Floats, f: float, s: float, newton: QuasiNewton, descent: Arm, budget: int
    ) -> bool:
        """Tell whether BFGS's slopes predict little, or it has hardly moved."""
        seen = newton.agreement[1:]
        if len(seen) >= 3 and float(np.median(seen)) < 0.15:
            return True
        moved = float(np.linalg.norm(descent.x - x)) if descent.best < f else 0.0
        return budget >= 45 * x.size and moved < 0.25 * s * np.sqrt(x.size)

    def _lead(self, newton: QuasiNewton, descent: Arm) -> Telling:
        """Let BFGS go on while it gains, up to so many gradients."""
        p, gained = newton.p, True
        most = MOST_GRADIENTS * (p + 3)
        while gained and not (descent.over or newton.jammed) and descent.n < most:
            before = descent.best
            yield from descent.run(WINDOW * p)
            gain = before - descent.best
            gained = not self.tol or gain > self.ending.worth(before)

    def _follow(self, newton: QuasiNewton, descent: Arm, crowd: Arm) -> Telling:
        """Let the population go on until its first restart; tell whether BFGS overtook it."""
        p = newton.p
        while not self.n_restarts:
            for _ in range(8):
                if not self.n_restarts:
                    yield from crowd.run(WINDOW * p)
            if not self.rough:
                yield from descent.run(WINDOW * p)
            if descent.best < crowd.best:
                yield from self._lead(newton, descent)
                return True
        return False

    def _take_turns(
        self, x: Floats, s: float, newton: QuasiNewton, arms: tuple[Arm, ...], leads: bool
    ) -> Telling:
        """Polish in BFGS's metric, restart BFGS, restart populations; who gains goes on."""
        window = WINDOW * x.size
        first = min(arms, key=lambda arm: arm.best)
        best, here, (descent, crowd, *_) = first.best, first.x, arms
        polish = self._polisher(newton, here, best) if leads else None
        again = descent
        order = ["descent", "polish", "crowd"] if leads else ["crowd", "descent"]
        turn = n_failed = 0
        while not self._is_over(polish, n_failed):
            who = order[turn % len(order)]
            turn += 1
            if who == "polish" and (polish is None or polish.over or n_failed >= PATIENCE):
                continue
            if who == "descent" and again.over:
                name = "strides" if self.trendless else "bfgs restarts"
                again = Arm(self.owner, name, self._restarts(x, s, here))
            patient = "crowd" if not leads else "polish" if self.grain.size else ""
            least = LEAST if who == patient else 1
            for k in range(1, max(least, 10) + 1):
                arm = {"polish": polish, "descent": again, "crowd": crowd}[who]
                assert arm is not None
                before = best
                yield from arm.run(window, None if who == "polish" else self.ending)
                if arm.best < best:
                    best, here = arm.best, arm.x
                gained = best < before - 1e-14 * abs(before)
                n_failed += who == "polish" and not gained
                if before - best > self.ending.worth(before):
                    self.ending.gained()
                if arm.over or (k >= least and not gained):
                    break

    def _is_over(self, polish: Arm | None, n_failed: int) -> bool:
        """Tell whether restarts are not worth it and polishing brought nothing."""
        tried = polish is None or polish.over or n_failed > 0
        return self.ending.over and tried

    def _polisher(self, newton: QuasiNewton, x: Floats, f: float) -> Arm | None:
        """Return a population around the best point with BFGS's inverse Hessian as covariance."""
        if not newton.longest[0] or newton.p > LARGEST_FULL:
            return None
        gain = max(sum(newton.gains), 1e5 * EPS * abs(f), 10 * self.grain.size, 1e-300)
        metric = newton.metric()
        if not np.all(np.isfinite(metric)) or np.linalg.eigvalsh(metric)[0] <= 0:
            return None
        sigma = float(np.sqrt(2 * gain / newton.p))
        crowd = population(x, sigma, self.rng, covariance=metric, narrowest=1e-9, box=self.box)
        return Arm(self.owner, "polish", crowd)

    def _restarts(self, x: Floats, s: float, best: Floats) -> Telling:
        """Restart BFGS from around x0, every third time from around the best point."""
        for n in range(1, 2**30):
            z = s * 2 ** self.rng.uniform(0, 3)
            start = x + 1.5 * z * self.rng.standard_normal(x.size)
            if n % 3 == 0:
                near = z * self.rng.choice([0.1, 0.3, 1.0])
                start = best + near * self.rng.standard_normal(x.size)
            start = self.box.reflect(start)
            before, value = self.owner.best, (yield start)
            value = yield from self._descend(start, value, s, SMALL * self.ending.worth(before))
            if n % 3:  # an independent one
                self.ending.note("descent", before, value)

    def _descend(self, x: Floats, f: float, s: float, small: float) -> Generator[Any, Any, float]:
        """Let BFGS go down from a point, or strides where f has no trend; return f there."""
        if self.trendless:
            return (yield from take_strides(x, f, self._stride(s, x.size), self.rng, self.box))
        newton = self._newton(x, f, s, small)
        yield from newton.run()
        return newton.f
