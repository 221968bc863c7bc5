"""What follows what in a run with ``method="auto"``.

The plan measures (classification, length scale, rounding), picks the member that fits what it
found, and guards it: points are compared on common samples along the way and at the end, and what
is returned is never knowingly worse than x0.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from scgd.auto.classify import Classify
from scgd.auto.descent import Descent
from scgd.auto.judge import Judge
from scgd.auto.members import block_member, joint_member, short_member
from scgd.auto.radii import Radii
from scgd.auto.reach import Reach
from scgd.auto.rounding import Rounding
from scgd.auto.stage import Stage
from scgd.scale import ScaleSearch
from scgd.typing import Floats

__all__ = ["Plan"]

Optimizer = Any
"""The optimizer lies above this module; a plan uses what its comments there call for plans."""
NOMINAL = 200
"""Evaluations per coordinate that a run without a budget plans for; then twice as many."""
N_GUARDS = 4
SHORT = 6
"""Evaluations per coordinate below which a sweep over coordinates costs too much."""
FIRST, SECOND = 2.0, 0.75
BACK = 0.25
"""How far the second search for a joint radius starts below the first one's."""


class Plan:
    """The sequence of stages and legs of one run."""

    def __init__(self, opt: Optimizer) -> None:
        self.step = "classify"
        self.kind = "unknown"
        self.unit: Floats = (
            np.ones(opt.n_coords) if opt.problem.scale is None else opt.problem.scale
        )
        self.facts: dict[str, float] = {"shrink": 1.0, "guards": 0.0, "error": 0.0, "length": 1.0}
        self.facts["nominal"] = max(1000, NOMINAL * opt.n_coords)
        self.importance: Floats = np.empty(0)
        self.best: dict[str, Any] | None = None
        self.finished = False
        opt.stage = self.stage(opt)

    @property
    def message(self) -> str:
        """One sentence on what was found and chosen."""
        return FOUND[self.kind].format(**{"radius": np.nan, **self.facts})

    def budget(self, opt: Optimizer) -> int:
        """Return the evaluations to plan for."""
        if opt.max_evals is not None:
            return int(opt.max_evals - opt.reserve)
        return int(self.facts["nominal"])

    def stage(self, opt: Optimizer) -> Stage | None:
        """Return the stage of the current step, fresh; None where ordinary steps run."""
        budget = self.budget(opt)
        if self.step == "classify":
            return Classify(self.unit)
        if self.step == "scale":
            return ScaleSearch(self.unit, scale_rounds(budget, self.kind), repeat=False)
        if self.step == "rounding":
            return Rounding(self.facts["length"] * self.unit)
        if self.step == "descent":
            length = self.facts["length"] * self.unit
            return Descent(opt.theta, length, self.facts["error"], budget)
        if self.step == "reach":
            return Reach(self.unit, budget, known=opt.problem.scale is not None)
        if self.step == "grow":
            return Radii(self.radius * self.unit, 0, self.n_checks(opt), n_pairs(budget))
        if self.step == "radii":
            levels = int(self.facts["levels"])
            common = self.radius * self.facts["growth"] * (1.0 if levels else BACK) * self.unit
            return Radii(common, levels, self.n_checks(opt), n_pairs(budget))
        if self.step in ("check", "last"):
            assert self.best is not None
            return Judge(self.best["theta"], self.n_checks(opt))
        if self.step == "guard":
            assert self.best is not None
            return Judge(self.best["theta"], guard_samples(budget))
        if self.step == "final":
            n = self.n_checks(opt) if self.kind == "uncontrollable" else final_samples(budget)
            return Judge(opt.problem.x0, n)
        return None

    def go(self, opt: Optimizer, step: str) -> None:
        """Begin a step."""
        self.step = step
        opt.stage = self.stage(opt)

    def advance(self, opt: Optimizer, stage: Stage | None) -> None:
        """Go on after a stage (or a leg, when ``stage`` is None) has ended."""
        getattr(self, f"after_{self.step}")(opt, stage)

    def weights(self, opt: Optimizer) -> Floats | None:
        """Return the importance of the coordinates where it is not the sampler that knows it."""
        known = opt.stage.importance() if isinstance(opt.stage, Descent) else self.importance
        total = float(np.sum(known))
        return known / total if 0 < total < np.inf else None

    def after_classify(self, opt: Optimizer, stage: Classify) -> None:
        """Choose what to measure next."""
        self.kind = stage.kind
        self.go(opt, "reach" if self.kind == "uncontrollable" else "scale")

    def after_scale(self, opt: Optimizer, stage: ScaleSearch) -> None:
        """Keep the length scale."""
        self.facts.update(length=stage.scale, bend=stage.bend)
        self.facts["rough"] = stage.h if stage.floor > 0 else 0.0
        self.go(opt, "rounding")

    def after_rounding(self, opt: Optimizer, stage: Rounding) -> None:
        """Start the member for controllable noise."""
        self.facts["error"] = stage.error
        if self.kind == "deterministic":
            self.go(opt, "descent")
        else:
            self.begin_blocks(opt)

    def after_descent(self, opt: Optimizer, stage: Descent) -> None:
        """End: the descent has nothing left to try."""
        self.finished, opt.stage = True, None

    # ---- controllable noise: blocks with a shared base, guarded ----------------------------------

    def begin_blocks(self, opt: Optimizer) -> None:
        """Start the legs between guards."""
        budget = self.budget(opt)
        self.facts["start"], self.facts["end"] = opt.nfev, budget - 2 * final_samples(budget)
        opt.adopt(self.recipe(opt), self.facts["length"] * self.unit, int(self.facts["end"]))
        self.best = snapshot(opt)
        self.next_leg(opt)

    def recipe(self, opt: Optimizer) -> Any:
        """Return the member's recipe."""
        if self.kind == "uncontrollable":
            return joint_member(
                int(self.facts["n_steps"]), self.facts["factor"], self.facts["growth"]
            )
        length, bend = self.facts["length"], self.facts["bend"]
        smallest = 2 * np.sqrt(self.facts["error"] * opt.n_coords / bend) if bend > 0 else 0.0
        smallest = max(smallest, self.facts["rough"])
        if self.budget(opt) < SHORT * opt.n_coords:
            return short_member(smallest / length, self.facts["shrink"])
        return block_member(opt.n_coords, self.budget(opt), smallest / length, self.facts["shrink"])

    def next_leg(self, opt: Optimizer) -> None:
        """Run to the next guard."""
        self.step, opt.stage = "leg", None
        self.facts["guards"] += 1
        start, end = self.facts["start"], self.facts["end"]
        n = n_guards(self.budget(opt))
        part = self.facts["guards"] / (n + 1)
        opt.leg_end = int(end if self.facts["guards"] > n else start + part * (end - start))

    def after_leg(self, opt: Optimizer, stage: None) -> None:
        """Guard what was reached, or judge it at the end."""
        if self.kind == "uncontrollable":
            self.go(opt, "check")
        else:
            self.go(opt, "guard" if self.facts["guards"] <= n_guards(self.budget(opt)) else "final")

    def after_guard(self, opt: Optimizer, stage: Judge) -> None:
        """Keep the new point, or go back to the best one with shorter steps."""
        assert self.best is not None
        if stage.mean > 3 * stage.error:
            restore(opt, self.best)
            self.facts["shrink"] /= 3
            opt.replace_recipe(self.recipe(opt))
        else:
            self.best = snapshot(opt)
        self.next_leg(opt)

    def after_final(self, opt: Optimizer, stage: Judge) -> None:
        """Return to x0 if the end looks worse.

        One standard error of evidence is enough: an end that is worse by three passes once in fifty
        times, and the guards have looked before; asking for less would often throw away a gain.
        """
        opt.last_phase = np.array(stage.here)
        if stage.mean > stage.error:
            opt.theta[...] = opt.problem.x0
            opt.last_phase = np.array(stage.there)
        self.finished = True
        opt.stage = None
        if opt.max_evals is None:
            self.facts["nominal"] *= 2
            self.extend(opt)

    # ---- noise that nobody controls: joint directions --------------------------------------------

    @property
    def radius(self) -> float:
        """The common radius, in units of x."""
        return self.facts["radius"]

    def n_checks(self, opt: Optimizer) -> int:
        """Return the pairs of a comparison."""
        budget = self.budget(opt)
        return max(min(10, budget // 40), int(0.002 * budget), 2)

    def after_reach(self, opt: Optimizer, stage: Reach) -> None:
        """Start the first leg at the radius found."""
        n, budget = opt.n_coords, self.budget(opt)
        if stage.found == "nothing" and opt.problem.scale is None:
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
        room = self.budget(opt) - opt.nfev - 6 * self.n_checks(opt)
        n_steps = int(share * room / 2)
        if n_steps < 1:
            self.go(opt, "final")
            return
        self.facts["n_steps"] = n_steps
        end = opt.nfev + 2 * n_steps
        opt.adopt(self.recipe(opt), scale, end)
        self.best = snapshot(opt)
        self.step, opt.stage, opt.leg_end = "leg", None, end

    def after_check(self, opt: Optimizer, stage: Judge) -> None:
        """After the first leg: nearer if it went wrong, else a radius per coordinate."""
        assert self.best is not None
        if stage.mean > 2 * stage.error and self.facts["tries"] < 4:
            opt.theta[...] = self.best["theta"]
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

    # ---- more budget ----------------------------------------------------------------------------

    def extend(self, opt: Optimizer) -> None:
        """Go on with a larger budget: a new leg of the member that runs, from where it is."""
        if isinstance(opt.stage, Descent):
            opt.stage.budget = self.budget(opt)
        elif self.best is not None and (self.finished or opt.stage is None):
            self.finished = False
            if self.kind == "uncontrollable":
                self.begin_joint(opt, 1.0, opt.scale)
                if self.step == "leg":
                    self.step = "second"
            else:
                self.facts["guards"] = 0.0
                self.begin_blocks(opt)

    # ---- state ----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        return {
            "step": self.step,
            "kind": self.kind,
            "facts": dict(self.facts),
            "best": self.best,
            "importance": self.importance,
            "finished": self.finished,
        }

    def load_state_dict(self, opt: Optimizer, state: dict[str, Any]) -> None:
        """Take up another run's plan; the member's recipe follows from its facts."""
        self.step, self.kind, self.finished = state["step"], state["kind"], state["finished"]
        self.facts = dict(state["facts"])
        self.best, self.importance = state["best"], state["importance"]
        opt.stage = None if self.finished else self.stage(opt)
        if self.best is not None:
            opt.rebuild(self.recipe(opt))


WEAK = (
    "nothing near x0 shows above the noise; "
    "give scale= (the typical size of a coordinate) or bounds="
)
FOUND = {
    "unknown": "The noise has not been classified yet.",
    "deterministic": "Found a deterministic function.",
    "controllable": "Found noise that the sample controls; length scale {length:.3g}.",
    "uncontrollable": "Found noise that nobody controls; radius {radius:.3g} in units of x.",
}


def snapshot(opt: Optimizer) -> dict[str, Any]:
    """Return a copy of what a leg changes."""
    return {
        "theta": opt.theta.copy(),
        "slots": opt.slots.copy(),
        "sampler": opt.sampler.state_dict(),
    }


def restore(opt: Optimizer, saved: dict[str, Any]) -> None:
    """Put a copy back; random streams go on, so that the leg is not repeated."""
    stream = opt.sampler.stream.copy()
    opt.theta[...] = saved["theta"]
    opt.slots[...] = saved["slots"]
    opt.sampler.load_state_dict(saved["sampler"])
    opt.sampler.stream[...] = stream


def scale_rounds(budget: int, kind: str) -> tuple[int, ...]:
    """Return the directions of the length search: 180 evaluations, at most 5 % of the budget."""
    n = int(np.clip(0.05 * budget / 3, 3, 60))
    few = max(1, n // 12)
    last = few if kind == "deterministic" else max(few, n - 4 * few)
    return few, few, few, few, last


def guard_samples(budget: int) -> int:
    """Return the samples of a comparison: at least 16 where that is not much of the budget."""
    return int(np.clip(budget // 25, 4, max(16, budget // 2000)))


def final_samples(budget: int) -> int:
    """Return the samples of the comparison with x0, which must not be lost by chance."""
    return max(guard_samples(budget), budget // 150)


def n_pairs(budget: int) -> int:
    """Return the pairs at each joint radius."""
    return int(np.clip(budget // 1000, 2, 8))


def n_guards(budget: int) -> int:
    """Return the comparisons before the last one."""
    return N_GUARDS if budget >= 2500 else 0
