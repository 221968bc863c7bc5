"""The cells of the arena: which functions, in which dimensions, with how many evaluations.

A cell is a problem and a budget; its gap is the median over instances. Instances 1 to 5 are for
design, others for confirmation, drawn anew for each release. `auto` is given the start alone or, in
a cell of its own, bounds too; peers know the domain in both, so their rows serve both. A problem
that has bounds itself has them for all.
"""

from __future__ import annotations

from collections.abc import Callable

from scgd.errors import UsageError, nearest
from scgd_arena.applications import SIMULATED
from scgd_arena.cells import Cell
from scgd_arena.everyday import EVERYDAY
from scgd_arena.formulas import CEC
from scgd_arena.grid import GRID, crossing
from scgd_arena.mixed import TUNING

__all__ = ["CONFIRM", "DESIGN", "SMALL", "SPENT", "SUITES", "suite"]

DESIGN = range(1, 6)
RELEASES = {
    "0.1": range(71, 76), "0.2": range(91, 96),
    "0.3, first draft": range(101, 104), "0.3, second draft": range(111, 114),
    "0.3": range(121, 124),
}  # fmt: skip
"""Instances for the confirmation of each release; afterwards they have been looked at."""
CONFIRM = RELEASES["0.3"]
SPENT = [i for span in list(RELEASES.values())[:-1] for i in span]


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


BOUNDED_NOISE = ((6, 20, 0.01), (10, 50, 0.1), (20, 100, 0.01), (40, 100, 0.1))
"""Those of them in which `auto` is told bounds, too."""


def additive() -> list[Cell]:
    """Return ioh's functions with independent additive Gaussian noise; a few with bounds too."""
    return [
        Cell(
            "noisy" + families(bounds),
            f"noise {s:g} D={d}, {per} D{families(bounds)}",
            f"ioh-f{f}-d{d}-s{s:g}", per * d, bounds,
        )
        for bounds, shapes in ((False, NOISE), (True, BOUNDED_NOISE))
        for d, per, s in shapes
        for f in NOISY_FUNCTIONS
    ]  # fmt: skip


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
    cells = (
        ("pendulum", 600), ("swimmer", 200), ("lunarlander", 400), ("hopper", 300),
        ("acrobot", 200),
    )  # fmt: skip
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


OUTSIDE_CELLS: tuple[tuple[str, int, int], ...] = (
    ("coating10", 300, 1000), ("coating35", 700, 2000), ("bragg16", 320, 1600),
    ("bragg40", 800, 2000), ("chirped40", 800, 2000), ("fishing50", 1000, 2500),
    ("fishing100", 2000, 4000), ("rover60", 1200, 2400), ("pushing14", 280, 700),
    ("lotka", 120, 600), ("linear40", 800, 4000), ("beam", 100, 400), ("spring", 100, 400),
    ("reducer", 150, 700), ("vessel", 100, 400), ("plateaus20", 400, 2000),
    ("sawtooth10", 200, 1000),
    *((f"{name}{p}", 20 * p, 100 * p) for p in (10, 30) for name in CEC),
    ("coating10-s0.01", 300, 1000), ("lotka-s0.05", 120, 600), ("fishing50-s0.05", 1000, 2500),
    ("rover60-s0.05", 1200, 2400), ("sawtooth10-s1e-06", 200, 1000), ("power", 480, 1200),
    ("simulator", 120, 600), ("shaken14", 280, 700), ("inputs300-s0.15", 1500, 3000),
)  # fmt: skip
"""Problems of others, and few and many evaluations of them."""


def outside() -> list[Cell]:
    """Return applications, competitions' functions and two that stop a search; all with bounds."""
    return [
        Cell("outside" + noise, f"outside{noise}, {text}", name, budget)
        for name, *both in OUTSIDE_CELLS
        for noise in (", noise" if "-s" in name or name in SIMULATED else "",)
        for text, budget in zip(("few", "many"), both, strict=True)
    ]


FEW = ("lotka", "coating10", "ioh-f15-d12", "bragg16", "ioh-f8-d24", "linear40")
"""Problems of 6 to 40 coordinates for 50 to 200 evaluations."""


def few() -> list[Cell]:
    """Return budgets of tens of evaluations, with bounds."""
    return [
        Cell("few", f"few, {budget}", name, budget, bounds=name.startswith("ioh"))
        for budget in (50, 100, 200)
        for name in FEW
    ]


def grid() -> list[Cell]:
    """Return bounds, noise, failures and samples in every combination."""
    return [
        Cell("grid", f"grid p={p}, noise {noise}{', bounds' if box else ''}", name, budget)
        for name, budget in crossing()
        for p, noise, _, _, _, box in (GRID.fullmatch(name).groups(),)  # type: ignore[union-attr]
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
        outside,
        few,
        grid,
        home,
    )
    return [cell for part in parts for cell in part()]


def design_small() -> list[Cell]:
    """Return a small stratified sample, for an answer within minutes."""
    return [cell for cell in everything() if cell.function in SMALL.get(cell.family, ())]


COSTLY = ("practice", "few", "grid", "home")


def confirmation() -> list[Cell]:
    """Return cells that are cheap enough to be run anew for a release, rivals included.

    Of functions with numbers every third is taken, another third in every dimension and budget.
    """
    return [
        cell
        for cell in everything()
        if cell.budget <= 2000 and cell.shape[0] <= 60 and cell.group not in COSTLY
        if not cell.name.startswith("bbob-noisy")  # every run of it skips thousands of values first
        if not cell.function or (cell.function + cell.shape[0] + cell.budget // 10) % 3 == 0
    ]


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
    "outside": outside,
    "few": few,
    "grid": grid,
    "home": home,
    "mixint": mixed_integers,
    "mixint-small": few_mixed_integers,
    "tuning": tuning,
    "confirm": confirmation,
    "all": everything,
}


def suite(name: str) -> list[Cell]:
    """Return the cells of a suite."""
    if name not in SUITES:
        raise UsageError(f"--suite: {name!r} is not known{nearest(name, SUITES)}")
    return SUITES[name]()
