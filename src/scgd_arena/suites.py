"""The cells of the arena: which functions, in which dimensions, with how many evaluations.

A cell is a problem and a budget; its gap is the median over instances. Instances 1 to 5 are for
design, 91 to 95 for confirmation. `auto` is given the start alone or, in a cell of its own, bounds
too; peers know the domain in both, so their rows serve both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from scgd.errors import UsageError, nearest
from scgd_arena.bbob import coco, ioh
from scgd_arena.everyday import EVERYDAY, everyday
from scgd_arena.mixed import TUNING, mixint
from scgd_arena.outside import OUTSIDE, artificial
from scgd_arena.practice import PRACTICE
from scgd_arena.problems import PROBLEMS, Task
from scgd_arena.rollouts import ROLLOUTS

__all__ = ["CONFIRM", "DESIGN", "SPENT", "SUITES", "Cell", "build", "named", "suite"]

DESIGN, CONFIRM = range(1, 6), range(91, 96)
SPENT = range(71, 76)
"""Instances of a first confirmation, with fewer peers, of which single rows have been seen."""
BBOB = re.compile(
    r"(bbob|bbob-mixint|bbob-largescale|bbob-noisy|ioh)-f(\d+)-d(\d+)(?:-s([^g]+))?(?:-g(.+))?"
)
OFTEN = re.compile(rf"({'|'.join(EVERYDAY)})-d(\d+)")
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
    useless variables; ``walled-d10``: a function as people bring them; further names are listed by
    ``python -m scgd_arena --list``.
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


def families(bounds: bool) -> str:
    """Return the end of a family's name."""
    return ", bounds" if bounds else ""


def bbob() -> list[Cell]:
    """Return COCO's 24 functions at D = 20 and 40, 100 D and 1000 D; D = 20 with bounds too."""
    return [
        Cell(
            "noiseless" + families(bounds),
            f"bbob D={d}, {per} D{families(bounds)}",
            f"bbob-f{f}-d{d}", per * d, bounds,
        )
        for d, per, bounds in (
            (20, 100, False), (20, 100, True), (40, 100, False), (20, 1000, False),
            (20, 1000, True), (40, 1000, False),
        )
        for f in range(1, 25)
    ]  # fmt: skip


def largescale() -> list[Cell]:
    """Return COCO's large-scale functions at 100 D; D = 80 with bounds too."""
    return [
        Cell(
            "noiseless" + families(bounds),
            f"largescale D={d}, 100 D{families(bounds)}",
            f"bbob-largescale-f{f}-d{d}", 100 * d, bounds,
        )
        for d, bounds in ((80, False), (80, True), (160, False), (320, False))
        for f in range(1, 25)
    ]  # fmt: skip


def small_budgets() -> list[Cell]:
    """Return ioh's functions at 20 D and 50 D; 20 D with bounds too."""
    return [
        Cell(
            "noiseless" + families(bounds),
            f"ioh D={d}, {per} D{families(bounds)}",
            f"ioh-f{f}-d{d}", per * d, bounds,
        )
        for per, bounds in ((20, False), (20, True), (50, False))
        for d in (10, 30, 100)
        for f in range(1, 25)
    ]  # fmt: skip


NOISE = (
    (6, 20, 0.01), (10, 20, 0.01), (10, 50, 0.1), (20, 50, 1e-6), (20, 50, 1e-4), (20, 100, 0.01),
    (20, 100, 0.1), (20, 400, 0.05), (20, 1000, 0.01), (30, 50, 0.01), (40, 100, 1e-4),
    (40, 100, 0.1), (60, 20, 0.01), (100, 20, 0.01), (100, 50, 0.1),
)  # fmt: skip
"""Dimension, evaluations per coordinate, noise in units of the start's gap."""
NOISY_FUNCTIONS = (1, 2, 3, 6, 7, 8, 10, 12, 14, 15, 17, 21)


def additive() -> list[Cell]:
    """Return ioh's functions with independent additive Gaussian noise."""
    return [
        Cell("noisy", f"noise {s:g} D={d}, {per} D", f"ioh-f{f}-d{d}-s{s:g}", per * d)
        for d, per, s in NOISE
        for f in NOISY_FUNCTIONS
    ]


def grainy() -> list[Cell]:
    """Return ioh's functions at D = 20, 100 D, with jitter that repeats itself."""
    return [
        Cell("grain", f"grain {g:g} D=20, 100 D", f"ioh-f{f}-d20-g{g:g}", 2000)
        for g in (1e-10, 1e-8, 1e-6)
        for f in NOISY_FUNCTIONS
    ]


def noisy() -> list[Cell]:
    """Return COCO's noisy functions at D = 20: moderate, severe, and Cauchy noise apart."""

    def family(f: int, per: int) -> str:
        kind = "Cauchy" if f % 3 == 0 else "moderate" if f < 7 else "severe"
        return f"bbob-noisy {kind} D=20, {per} D"

    return [
        Cell("noisy", family(f, per), f"bbob-noisy-f{f}-d20", 20 * per)
        for per in (100, 1000)
        for f in sorted(range(1, 31), key=lambda f: (f % 3 != 0, f > 6))
    ]


def nevergrad() -> list[Cell]:
    """Return Nevergrad's functions: 10 of 100 variables useful; 20 turned and 20 useless."""
    kinds = ("sphere", "cigar", "ellipsoid", "rosenbrock", "rastrigin", "griewank")
    shapes = (
        ("10+90", "", "10 of 100 useful"),
        ("10+90", "-s0.1", "10 of 100 useful, noise"),
        ("20+20-turned", "-s0.1", "20 of 40 useful, turned, noise"),
    )
    return [
        Cell("nevergrad", f"nevergrad {text}", f"ng-{kind}-{shape}{noise}", 5000)
        for shape, noise, text in shapes
        for kind in kinds
    ]


def rollouts() -> list[Cell]:
    """Return linear policies in gymnasium, by episodes."""
    cells = (("pendulum", 600), ("swimmer", 200), ("lunarlander", 400))
    return [Cell("practice", name, name, budget) for name, budget in cells]


def practice() -> list[Cell]:
    """Return problems as users bring them."""
    cells = (
        ("far-sphere", 1000), ("laboratory", 120), ("epidemic", 2000), ("portfolio", 6000),
        ("inputs5000", 7500), ("inputs5000", 20000), ("inputs5000noisy", 4000),
    )  # fmt: skip
    return [Cell("practice", name, name, budget) for name, budget in cells]


def as_people_bring() -> list[Cell]:
    """Return functions as people bring them."""
    return [
        Cell("everyday", name, f"{name}-d{p}", budget)
        for name, (_, sizes) in EVERYDAY.items()
        for p, budget in sizes
    ]


def mixed_integers() -> list[Cell]:
    """Return COCO's mixed-integer functions at D = 10 and 20, 100 D."""
    return [
        Cell("spaces", f"mixint D={d}, 100 D", f"bbob-mixint-f{f}-d{d}", 100 * d)
        for d in (10, 20)
        for f in range(1, 25)
    ]


FEW_MIXED = (1, 6, 8, 10, 15, 17, 20, 21)


def few_mixed_integers() -> list[Cell]:
    """Return a third of them, from every group of functions."""
    return [cell for cell in mixed_integers() if cell.function in FEW_MIXED]


def tuning() -> list[Cell]:
    """Return learners to be tuned in 150 evaluations."""
    return [Cell("spaces", name, name, 150) for name in TUNING]


HOME = (
    "ridge10", "ridge5", "ridge2", "ridge1", "logistic10", "logistic5", "logistic2", "logistic1",
    "hp", "quadnoisy", "rosennoisy", "quad", "rosen", "quad10000", "rosen10000", "ng-sphere",
    "ng-cigar", "largescale-f1", "largescale-f2", "largescale-f10", "largescale-f15", "noisy-f1",
    "noisy-f16", "rollout", "breast_cancer", "digits", "ridge5rotated", "dense", "densenoisy",
    "rastrigin",
)  # fmt: skip

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
    "swimmer": (18, False), "lunarlander": (36, False), "boosting-diabetes": (10, True),
    "boosting-cancer": (10, True), "pipeline": (8, True),
}  # fmt: skip
"""Coordinates of problems that take long to build, and whether they repeat (see Cell.shape)."""
SLOW = {"pendulum": 9e3, "swimmer": 5e4, "lunarlander": 1e4, "epidemic": 8e3, "portfolio": 150,
        "boosting-diabetes": 1e5, "boosting-cancer": 2e5, "pipeline": 5e4}  # fmt: skip
"""Microseconds per evaluation of functions that are slow themselves."""


def home() -> list[Cell]:
    """Return the problems `auto` was first designed on, the table of docs/choosing.md."""
    long = HOME[:10]
    return [Cell("home", "home, 1e4", name, 10_000) for name in HOME] + [
        Cell("home", "home, 1e5", name, 100_000) for name in long
    ]


SMALL: dict[str, tuple[int, ...]] = {
    "bbob D=20, 100 D": tuple(range(1, 25)),
    "bbob D=20, 1000 D": (2, 6, 8, 10, 12, 15, 17, 21),
    "bbob D=20, 100 D, bounds": (3, 6, 7, 10, 13, 16, 20, 24),
    "largescale D=80, 100 D": (3, 6, 8, 12, 17, 21),
    "largescale D=160, 100 D": (4, 11, 19),
    "ioh D=10, 20 D": (1, 2, 4, 8, 11, 14, 18, 22),
    "ioh D=30, 50 D": (1, 3, 6, 9, 10, 13, 15, 21),
    "ioh D=100, 20 D": (1, 2, 5, 8, 14, 17, 20, 23),
    **{
        f"noise {s:g} D={d}, {per} D": (1, 6, 8, 12, 15, 21)
        for d, per, s in NOISE
        if per <= 400
    },
    "noise 0.01 D=20, 1000 D": (6, 15),
    "bbob-noisy Cauchy D=20, 100 D": (3, 6, 9, 15, 18, 27),
    "bbob-noisy Cauchy D=20, 1000 D": (9, 18),
    "bbob-noisy moderate D=20, 100 D": (1, 5),
    "bbob-noisy severe D=20, 100 D": (7, 14),
    "far-sphere": (0,),
    "laboratory": (0,),
    "pendulum": (0,),
}  # fmt: skip
"""Functions of each family in the small sample for design."""


def everything() -> list[Cell]:
    """Return all cells."""
    parts = (
        bbob,
        small_budgets,
        additive,
        grainy,
        noisy,
        largescale,
        nevergrad,
        as_people_bring,
        practice,
        rollouts,
        home,
    )
    return [cell for part in parts for cell in part()]


def design_small() -> list[Cell]:
    """Return a small stratified sample, for an answer within minutes."""
    return [cell for cell in everything() if cell.function in SMALL.get(cell.family, ())]


SUITES: dict[str, Callable[[], list[Cell]]] = {
    "design-small": design_small,
    "bbob": bbob,
    "bbob-largescale": largescale,
    "bbob-noisy": noisy,
    "ioh": small_budgets,
    "ioh-noise": additive,
    "ioh-grain": grainy,
    "nevergrad": nevergrad,
    "rollouts": rollouts,
    "everyday": as_people_bring,
    "practice": practice,
    "home": home,
    "mixint": mixed_integers,
    "mixint-small": few_mixed_integers,
    "tuning": tuning,
    "all": everything,
}


def suite(name: str) -> list[Cell]:
    """Return the cells of a suite."""
    if name not in SUITES:
        raise UsageError(f"--suite: {name!r} is not known{nearest(name, SUITES)}")
    return SUITES[name]()
