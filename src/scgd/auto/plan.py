"""What follows what in a run with ``method="auto"``.

The plan measures (classification, length scale, rounding), picks the member that fits what it
found, and guards it: points are compared on common samples along the way and at the end, and what
is returned is never knowingly worse than x0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.auto.classify import Classify
from scgd.auto.descent import Descent
from scgd.auto.joint import BACK, JointPlan, n_checks, n_pairs
from scgd.auto.judge import Judge
from scgd.auto.legs import descending, restore, snapshot
from scgd.auto.members import block_member, joint_member, short_member
from scgd.auto.radii import Radii
from scgd.auto.reach import Reach
from scgd.auto.rounding import Rounding
from scgd.auto.stage import Stage
from scgd.result import Status
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
SCARCE = 2.0
"""The same where f is deterministic and one difference tells a slope."""
TINY = 100
"""Evaluations below which hardly any are spent on measuring."""


class Plan(JointPlan):
    """The sequence of stages and legs of one run."""

    def __init__(self, opt: Optimizer) -> None:
        given = opt.recipe.search is not None
        self.step, self.kind = ("scale", "deterministic") if given else ("classify", "unknown")
        self.search: str = opt.recipe.search or "descent"
        self.unit: Floats = (
            np.ones(opt.n_coords) if opt.problem.scale is None else opt.problem.scale
        )
        self.facts: dict[str, float] = {"shrink": 1.0, "guards": 0.0, "error": 0.0, "length": 1.0}
        self.facts["nominal"] = max(1000, NOMINAL * opt.n_coords)
        self.importance: Floats = np.empty(0)
        self.best: dict[str, Any] | None = None
        self.finished = False
        self.go(opt, self.step)

    @property
    def message(self) -> str:
        """One sentence on what was found and chosen."""
        common = bool(np.all(self.unit == self.unit[0]))
        unit, of_what = (float(self.unit[0]), "") if common else (1.0, " times scale")
        sizes = {
            name: f"{self.facts[name] * unit:.3g}{of_what}"
            for name in ("radius", "length")
            if name in self.facts
        }
        return FOUND[self.kind].format(**{"radius": "not known yet", **sizes})

    def budget(self, opt: Optimizer) -> int:
        """Return the evaluations to plan for."""
        if opt.max_evals is not None:
            return int(opt.max_evals - opt.reserve)
        return int(self.facts["nominal"])

    def stage(self, opt: Optimizer) -> Stage | None:
        """Return the stage of the current step, fresh; None where ordinary steps run."""
        budget = int(self.facts["planned"])
        if self.step == "classify":
            n = 1 if budget < TINY else 3
            return Classify(self.unit, n, sampled=opt.sampling.controlled)
        if self.step == "scale":
            return ScaleSearch(self.unit, scale_rounds(budget, self.kind), repeat=False)
        if self.step == "rounding":
            return Rounding(self.facts["length"] * self.unit)
        if self.step == "descent":
            length = self.facts["length"] * self.unit
            n = budget - int(self.facts["spent"])
            return Descent(opt.theta, length, self.facts["error"], n, self.search)
        if self.step == "reach":
            return Reach(self.unit, budget, known=opt.problem.told)
        if self.step == "grow":
            return Radii(self.radius * self.unit, 0, n_checks(budget), n_pairs(budget))
        if self.step == "radii":
            levels = int(self.facts["levels"])
            common = self.radius * self.facts["growth"] * (1.0 if levels else BACK) * self.unit
            return Radii(common, levels, n_checks(budget), n_pairs(budget))
        if self.step in ("check", "last"):
            assert self.best is not None
            return Judge(self.best["theta"], n_checks(budget))
        if self.step == "guard":
            assert self.best is not None
            return Judge(self.best["theta"], guard_samples(budget))
        if self.step == "final":
            n = n_checks(budget) if self.kind == "uncontrollable" else final_samples(budget)
            return Judge(opt.problem.x0, n)
        return None

    def go(self, opt: Optimizer, step: str) -> None:
        """Begin a step; a stage is made for the budget it began with, also after a restart."""
        self.step = step
        self.facts.update(planned=self.budget(opt), spent=opt.nfev)
        opt.stage = self.stage(opt)

    def recommend(self, opt: Optimizer) -> tuple[Floats, Floats | None]:
        """Return the point of a run that stops here, and what was seen there if not near theta.

        In the middle of a leg nobody has compared theta with where the leg began: what the leg saw
        first and last must do, and unless it fell the leg counts for nothing.
        """
        if self.finished or self.best is None or opt.status is Status.TARGET:
            return opt.theta, None
        if opt.stage is not None and self.step not in ("guard", "check", "last", "final"):
            return opt.theta, None
        fell, first = descending(opt.history, int(self.facts["began"]))
        return (opt.theta, None) if fell else (self.best["theta"], first)

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
        if self.budget(opt) < TINY:
            self.begin_member(opt)
        else:
            self.go(opt, "rounding")

    def after_rounding(self, opt: Optimizer, stage: Rounding) -> None:
        """Keep the size of rounding errors."""
        self.facts["error"] = stage.error
        self.begin_member(opt)

    def begin_member(self, opt: Optimizer) -> None:
        """Start the member; without noise joint directions if the budget is too small to scan."""
        scarce = self.budget(opt) < SCARCE * opt.n_coords and opt.recipe.search is None
        if self.kind == "deterministic" and not scarce:
            self.go(opt, "descent")
        else:
            self.begin_blocks(opt)

    def after_descent(self, opt: Optimizer, stage: Descent) -> None:
        """End: the descent has nothing left to try."""
        self.finished, opt.stage = True, None

    # ---- controllable noise: blocks with a shared base, guarded ----------------------------------

    def begin_blocks(self, opt: Optimizer) -> None:
        """Start the legs between guards."""
        budget = self.facts["adopted"] = self.budget(opt)
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
        budget, smallest = int(self.facts["adopted"]), smallest / length
        if budget < SHORT * opt.n_coords:
            return short_member(smallest, self.facts["shrink"])
        return block_member(opt.n_coords, budget, smallest, self.facts["shrink"])

    def next_leg(self, opt: Optimizer) -> None:
        """Run to the next guard."""
        self.step, opt.stage = "leg", None
        self.facts["began"] = opt.nfev
        self.facts["guards"] += 1
        start, end = self.facts["start"], self.facts["end"]
        n = n_guards(int(self.facts["adopted"]))
        part = self.facts["guards"] / (n + 1)
        opt.leg_end = int(end if self.facts["guards"] > n else start + part * (end - start))

    def after_leg(self, opt: Optimizer, stage: None) -> None:
        """Guard what was reached, or judge it at the end."""
        if self.kind == "uncontrollable":
            self.go(opt, "check")
        else:
            more = self.facts["guards"] <= n_guards(int(self.facts["adopted"]))
            self.go(opt, "guard" if more else "final")

    def after_guard(self, opt: Optimizer, stage: Judge) -> None:
        """Keep the new point, or go back to the best one with shorter steps."""
        assert self.best is not None
        if stage.mean > 3 * stage.error:
            restore(opt, self.best)
            self.facts["shrink"] /= 3
            opt.replace_recipe(self.recipe(opt))
        else:
            self.best = snapshot(opt)
        law = opt.sampler.weights()  # a law forgets; the sum of a few remembers what mattered
        self.importance = law + (self.importance if self.importance.size else 0.0)
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
        elif self.facts.pop("extended", 0.0):
            self.extend(opt)

    # ---- more budget ----------------------------------------------------------------------------

    def extend(self, opt: Optimizer) -> None:
        """Go on with a larger budget: a new leg of the member that runs, from where it is.

        In the middle of a question the new leg waits until what is under way has ended.
        """
        if isinstance(opt.stage, Descent):
            opt.stage.budget = self.budget(opt) - int(self.facts["spent"])
        elif opt.stage is not None:
            self.facts["extended"] = 1.0
        elif self.best is not None or (self.finished and self.kind == "uncontrollable"):
            self.finished = False
            if self.kind == "uncontrollable":
                scale = self.radius * self.unit if self.best is None else opt.scale
                self.begin_joint(opt, 1.0, scale)
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


FOUND = {
    "unknown": "The noise has not been classified yet.",
    "deterministic": (
        "Found a deterministic function: parabolas along coordinates, BFGS on those that matter."
    ),
    "controllable": "Found noise that the sample controls; length scale {length}.",
    "uncontrollable": "Found noise that nobody controls; radius {radius}.",
}


def scale_rounds(budget: int, kind: str) -> tuple[int, ...]:
    """Return the directions of the length search: up to 180 evaluations, 5 % of the budget."""
    if budget < TINY:
        return 1, 1
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


def n_guards(budget: int) -> int:
    """Return the comparisons before the last one."""
    return N_GUARDS if budget >= 2500 else 0
