"""A cell of the arena: a problem by name, and a budget."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from scgd.errors import UsageError, nearest
from scgd_arena.applications import APPLICATIONS, application
from scgd_arena.bbob import coco, ioh
from scgd_arena.everyday import EVERYDAY, everyday
from scgd_arena.grid import GRID, crossed
from scgd_arena.mixed import TUNING, mixint
from scgd_arena.outside import OUTSIDE, artificial
from scgd_arena.practice import PRACTICE
from scgd_arena.problems import PROBLEMS, Task
from scgd_arena.rollouts import ROLLOUTS

__all__ = ["SHAPES", "Cell", "build", "named"]

BBOB = re.compile(
    r"(bbob|bbob-mixint|bbob-largescale|bbob-noisy|ioh)-f(\d+)-d(\d+)(?:-s([^g]+))?(?:-g(.+))?"
)
OFTEN = re.compile(rf"({'|'.join(EVERYDAY)})-d(\d+)")
APPLIED = re.compile(rf"({'|'.join(APPLICATIONS)})(?:-s(.+))?")
NEVERGRAD = re.compile(r"ng-(\w+)-(\d+)\+(\d+)(-turned)?(?:-s(.+))?")


@dataclass(frozen=True)
class Cell:
    """A problem and a budget.

    Attributes
    ----------
    group, family
        Where the score counts it: noiseless, noisy, ...; and which row of the table.
    name, budget
        The problem (see :func:`build`) and the evaluations.
    bounds
        Whether `auto` is told the peers' box as bounds.
    """

    group: str
    family: str
    name: str
    budget: int
    bounds: bool = False

    @property
    def key(self) -> str:
        """Name of the cell in the peers' rows."""
        return f"{self.name}@{self.budget}"

    @property
    def own_key(self) -> str:
        """Name of the cell in our own rows."""
        return self.key + ("+bounds" if self.bounds else "")

    @property
    def shape(self) -> tuple[int, bool]:
        """Number of coordinates, and whether f repeats itself; known without building it."""
        if found := BBOB.fullmatch(self.name):
            return int(found[3]), found[1] != "bbob-noisy" and not found[4]
        if found := NEVERGRAD.fullmatch(self.name):
            return int(found[2]) + int(found[3]), not found[5]
        if found := OFTEN.fullmatch(self.name):
            return int(found[2]), True
        if found := GRID.fullmatch(self.name):
            return int(found[1]), float(found[2]) == 0
        if self.name not in SHAPES:
            task = self.task(1)
            SHAPES[self.name] = task.x0.size, task.repeats
        return SHAPES[self.name]

    @property
    def micros(self) -> float:
        """About what f costs, in microseconds; orders the work, no more."""
        return SLOW.get(self.name, 5 + 0.001 * self.shape[0] ** 2)

    @property
    def function(self) -> int:
        """Number of the function within its suite; 0 where there is none."""
        found = re.search(r"-f(\d+)-", self.name)
        return int(found[1]) if found else 0

    def task(self, instance: int) -> Task:
        """Return an instance of the problem."""
        task = build(self.name, instance)
        if not self.bounds:
            return task
        low, high = task.box
        return replace(task, bounds=list(zip(low.tolist(), high.tolist(), strict=True)))


def build(name: str, instance: int = 1) -> Task:
    """Return a problem by name.

    ``bbob-f8-d20``, ``bbob-largescale-f8-d80``, ``bbob-noisy-f9-d20``: COCO; ``ioh-f8-d30-s0.01``:
    ioh, with noise of 1 % of the start's gap; ``ioh-f8-d20-g1e-08``: with jitter that repeats
    itself, as a solver's tolerance leaves it; ``ng-cigar-10+90-s0.1``: Nevergrad, 10 useful and 90
    useless variables; ``walled-d10``: a function as people bring them; ``coating10-s0.01``: an
    application, with noise; ``grid-20-s0.01-f0.1-sampled-corner-box``: a point of the grid; further
    names are listed by ``python -m scgd_arena --list``.
    """
    if found := BBOB.fullmatch(name):
        kind, function, dimension, noise, grain = found.groups()
        if kind == "ioh":
            sizes = float(noise or 0), float(grain or 0)
            return ioh(int(function), int(dimension), instance, *sizes)
        if kind == "bbob-mixint":
            return mixint(int(function), int(dimension), instance)
        return coco(kind, int(function), int(dimension), instance)
    if found := NEVERGRAD.fullmatch(name):
        kind, active, useless, turned, noise = found.groups()
        task = artificial(
            kind, int(active), int(useless), float(noise or 0), bool(turned), instance
        )  # fmt: skip
        return replace(task, name=name, domain=(-2.5, 2.5))
    if found := OFTEN.fullmatch(name):
        return everyday(found[1], int(found[2]), instance)
    if found := APPLIED.fullmatch(name):
        return application(found[1], instance, float(found[2] or 0))
    if GRID.fullmatch(name):
        return crossed(name, instance)
    if name in TUNING:
        return TUNING[name]()
    if name in PRACTICE or name in ROLLOUTS:
        return {**PRACTICE, **ROLLOUTS}[name](instance)
    known = {**PROBLEMS, **OUTSIDE}
    if name not in known:
        raise UsageError(f"problem {name!r} is not known{nearest(name, known)}")
    chosen: Task = known[name]()
    return chosen


def named(names: Iterable[str], budgets: Iterable[int]) -> list[Cell]:
    """Return cells of problems by name."""
    return [Cell("chosen", name, name, budget) for name in names for budget in list(budgets)]


SHAPES: dict[str, tuple[int, bool]] = {
    **{f"{kind}{a}": (250, False) for kind in ("ridge", "logistic") for a in (1, 2, 5, 10)},
    "ridge5rotated": (250, False), "hp": (50, False), "quadnoisy": (1000, False),
    "rosennoisy": (1000, False), "quad": (1000, True), "rosen": (1000, True),
    "quad10000": (10_000, True), "rosen10000": (10_000, True), "ng-sphere": (100, False),
    "ng-cigar": (100, False), **{f"largescale-f{f}": (160, True) for f in (1, 2, 10, 15)},
    "noisy-f1": (40, False), "noisy-f16": (40, False), "rollout": (481, False),
    "breast_cancer": (31, False), "digits": (65, False), "dense": (200, True),
    "densenoisy": (200, False), "rastrigin": (100, True), "far-sphere": (20, False),
    "laboratory": (6, False), "epidemic": (30, True), "portfolio": (60, True),
    "inputs5000": (5000, True), "inputs5000noisy": (5000, False), "pendulum": (7, False),
    "swimmer": (18, False), "lunarlander": (36, False), "hopper": (36, False),
    "acrobot": (21, False),     "boosting-diabetes": (10, True),
    "boosting-cancer": (10, True), "pipeline": (8, True),
}  # fmt: skip
"""Coordinates of problems that take long to build, and whether they repeat (see Cell.shape)."""
SLOW = {"pendulum": 9e3, "swimmer": 5e4, "lunarlander": 1e4, "hopper": 1e4, "acrobot": 2e4,
        "pushing14": 3500, "shaken14": 3500, "power": 1000, "rover60": 300, "epidemic": 8e3,
        "portfolio": 150, "boosting-diabetes": 1e5, "boosting-cancer": 2e5,
        "pipeline": 5e4}  # fmt: skip
"""Microseconds per evaluation of functions that are slow themselves."""
