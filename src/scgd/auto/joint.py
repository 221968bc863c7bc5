"""The part of a plan for noise that nobody controls: joint directions at radii that show.

First the radius at which dense directions show above the noise and how much wider joint moves may
be, a first leg there, then a radius per coordinate where the budget allows, and a second leg.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from scgd.auto.judge import Judge
from scgd.auto.legs import snapshot
from scgd.auto.radii import Radii
from scgd.auto.reach import Reach
from scgd.typing import Floats

__all__ = ["JointPlan", "n_checks", "n_pairs"]

Optimizer = Any
FIRST, SECOND = 2.0, 0.75
"""First step lengths of the legs, in units of the radius over the root of the leg's steps."""
BACK = 0.25
"""How far the second search for a joint radius starts below the first one's."""
MOST_TRIES = 4
WEAK = (
    "nothing near x0 shows above the noise; "
    "give scale= (the typical size of a coordinate) or bounds="
)


class JointPlan:
    """What follows what when the noise is nobody's to control."""

    unit: Floats
    facts: dict[str, float]
    importance: Floats
    best: dict[str, Any] | None
    step: str
    budget: Callable[[Optimizer], int]
    recipe: Callable[[Optimizer], Any]
    go: Callable[[Optimizer, str], None]

    @property
    def radius(self) -> float:
        """The common radius, in units of x."""
        return self.facts["radius"]

    def after_reach(self, opt: Optimizer, stage: Reach) -> None:
        """Start the first leg at the radius found."""
        n, budget = opt.n_coords, self.budget(opt)
        if stage.found == "nothing" and not opt.problem.told:
            warnings.warn(WEAK, RuntimeWarning, stacklevel=2)
        levels = 7 if 14 * n <= 0.12 * budget else 3 if 6 * n <= 0.12 * budget else 0
        self.facts.update(radius=stage.radius, levels=levels, tries=0)
        self.go(opt, "grow")

    def after_grow(self, opt: Optimizer, stage: Radii) -> None:
        """Start the first leg: signals of the widest radius, steps of the narrow one."""
        self.facts.update(growth=stage.joint if stage.seen else 1.0, factor=FIRST)
        self.begin_joint(opt, 0.3, self.radius * self.unit)

    def begin_joint(self, opt: Optimizer, share: float, scale: Floats) -> None:
        """Spend a share of what is left, less two comparisons, on joint directions."""
        room = self.budget(opt) - opt.nfev - 6 * n_checks(self.budget(opt))
        n_steps = int(share * room / 2)
        if n_steps < 1:
            self.go(opt, "final")
            return
        self.facts["n_steps"] = n_steps
        end = opt.nfev + 2 * n_steps
        opt.adopt(self.recipe(opt), scale, end)
        self.best = snapshot(opt)
        self.facts["began"] = opt.nfev
        self.step, opt.stage, opt.leg_end = "leg", None, end

    def after_check(self, opt: Optimizer, stage: Judge) -> None:
        """After the first leg: nearer if it went wrong, else a radius per coordinate."""
        assert self.best is not None
        worse = stage.mean > 2 * stage.error
        if worse:
            opt.theta[...] = self.best["theta"]
        if worse and self.facts["tries"] < MOST_TRIES:
            self.facts["tries"] += 1
            self.facts["radius"] /= 10**0.5
            self.go(opt, "grow")
        else:
            self.go(opt, "radii")

    def after_radii(self, opt: Optimizer, stage: Radii) -> None:
        """Start the second leg in units of the radii found."""
        n_resolved = int(stage.resolved.sum()) if self.facts["levels"] else 0
        self.facts["resolved"] = n_resolved
        if stage.seen and not self.facts["levels"]:
            self.facts["growth"] *= BACK * stage.joint
        scale = self.radius * self.unit
        if n_resolved:
            growth = stage.joint * np.sqrt(n_resolved)
            own = stage.radii / np.sqrt(n_resolved)
            scale = np.where(stage.resolved, own, self.facts["growth"] / growth * scale)
            self.importance = np.where(stage.resolved, stage.radii**-2.0, 0.0)
            self.facts["growth"] = float(growth)
        self.facts["factor"] = SECOND
        self.begin_joint(opt, 1.0, scale)
        if self.step == "leg":
            self.step = "second"

    def after_second(self, opt: Optimizer, stage: None) -> None:
        """Compare the second leg with the first."""
        self.go(opt, "last")

    def after_last(self, opt: Optimizer, stage: Judge) -> None:
        """Go back to the end of the first leg if the second made it worse."""
        assert self.best is not None
        if stage.mean > 2 * stage.error:
            opt.theta[...] = self.best["theta"]
        self.go(opt, "final")


def n_checks(budget: int) -> int:
    """Return the pairs of a comparison."""
    return max(min(10, budget // 40), int(0.002 * budget), 2)


def n_pairs(budget: int) -> int:
    """Return the pairs at each joint radius."""
    return int(np.clip(budget // 1000, 2, 8))
