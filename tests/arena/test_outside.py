"""Applications and the grid are what they say; what must hold is read from rows."""

import numpy as np
import pytest

from scgd_arena import results
from scgd_arena.applications import APPLICATIONS, SIMULATED, application
from scgd_arena.cells import Cell, build
from scgd_arena.formulas import CEC
from scgd_arena.grid import GRID, crossed, crossing
from scgd_arena.oracle import Oracle
from scgd_arena.peers import METHODS
from scgd_arena.problems import Task
from scgd_arena.results import page
from scgd_arena.rows import Line, Rows, Run
from scgd_arena.score import behind
from scgd_arena.suites import CONFIRM, suite

EXACT = sorted({*APPLICATIONS} - {*SIMULATED} - {"pushing14"})
ROBOTS = {"pushing14", "shaken14"}


def made(name, instance=1):
    if name in ROBOTS:
        pytest.importorskip("Box2D")
    return application(name, instance)


# applications


@pytest.mark.parametrize("name", EXACT)
def test_no_random_point_lies_below_the_lowest_value(name):
    task, rng = application(name, 3), np.random.default_rng(0)
    fun, other = task.make(0), application(name, 4)
    points = rng.uniform(0, 1, (50, task.x0.size))
    assert min(task.gap(x) for x in points) > 0 and np.isfinite(task.gap(task.x0))
    assert fun(points[0]) - task.lowest == pytest.approx(task.gap(points[0]))
    assert other.x0.tolist() != task.x0.tolist()
    outside = np.where(rng.random(task.x0.size) < 0.5, -3.0, 4.0)
    assert task.gap(outside) == task.gap(np.clip(outside, 0, 1))  # the nearest point inside counts


@pytest.mark.parametrize("name", sorted(SIMULATED))
def test_chance_comes_from_the_seed_and_comparisons_do_not_move(name):
    task = made(name)
    one, again, other = (task.make(seed) for seed in (1, 1, 2))
    first = one(task.x0)
    assert first == again(task.x0) and not task.repeats and task.gap(task.x0) > 0
    assert task.gap(task.x0) == task.gap(task.x0)
    if name not in ROBOTS:  # hands that miss both objects leave them where they are
        assert len({first, one(task.x0), other(task.x0)}) == 3


def test_noise_is_a_share_of_what_the_start_has_to_gain():
    task = build("coating10-s0.01", 2)
    fun, exact = task.make(4), build("coating10", 2)
    seen = np.array([fun(task.x0) for _ in range(400)]) - exact.make(0)(task.x0)
    assert np.std(seen) == pytest.approx(0.01 * exact.gap(task.x0), rel=0.15)
    assert not task.repeats and task.gap(task.x0) == exact.gap(task.x0)


def test_optics_and_fish_are_those_of_nevergrad():
    photonics = pytest.importorskip("nevergrad.functions.photonics.photonics")
    from nevergrad.functions.arcoating.core import ARCoating
    from nevergrad.functions.fishing.core import _compute_total_fishing

    rng = np.random.default_rng(0)
    theirs = {
        "bragg16": lambda x: photonics.bragg(np.r_[2 + x[:8], 30 + 150 * x[8:]]),
        "chirped40": lambda x: photonics.chirped(30 + 150 * x),
        "coating10": lambda x: ARCoating(10, 400)._get_minimum_average_reflexion(1 + 8 * x),
        "fishing50": lambda x: _compute_total_fishing(x),
    }
    for name, fun in theirs.items():
        task = application(name)
        for x in rng.uniform(0, 1, (3, task.x0.size)):
            assert task.make(0)(x) == pytest.approx(fun(x), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "low", "high", "best"),
    [
        ("beam", [0.1] * 4, [2, 10, 10, 2], [0.20572964, 3.47048867, 9.03662391, 0.20572964]),
        ("spring", [0.05, 0.25, 2], [2, 1.3, 15], [0.05168906, 0.35671774, 11.28896595]),
        ("reducer", [2.6, 0.7, 17, 7.3, 7.3, 2.9, 5], [3.6, 0.8, 28, 8.3, 8.3, 3.9, 5.5],
         [3.5, 0.7, 17, 7.3, 7.71531991, 3.35021467, 5.28665446]),
    ],
)  # fmt: skip
def test_published_designs_are_the_lowest(name, low, high, best):
    task, (low, high) = application(name), np.array([low, high], float)
    x = (np.array(best) - low) / (high - low)
    assert abs(task.gap(x)) < 2e-3 * task.lowest
    rng = np.random.default_rng(0)
    near = [task.gap(x + 1e-4 * rng.standard_normal(x.size)) for _ in range(300)]
    assert min(near) > -1e-4 * task.lowest


@pytest.mark.parametrize("name", sorted(CEC))
def test_shifted_functions_are_lowest_where_nothing_is_shifted(name):
    assert CEC[name](np.zeros(5)) == pytest.approx(0, abs=1e-12)
    rng = np.random.default_rng(1)
    assert min(CEC[name](z) for z in rng.normal(0, 1, (200, 5))) > 0


def test_steps_have_equal_heights_in_the_logarithm():
    task = application("plateaus20")
    levels = np.log([task.gap(x) for x in np.random.default_rng(0).uniform(0, 1, (20, 20))])
    np.testing.assert_allclose(levels, np.round(levels), atol=1e-9)
    near = task.x0 + 1e-6
    assert task.gap(near) == task.gap(task.x0)


# the grid


def test_the_grid_is_the_product_of_its_factors():
    cells = crossing()
    names = {name for name, _ in cells}
    assert len(cells) == len({*cells}) == 2 * len(names) == 3 * 7 * 2 * 2 * 2 * 2
    assert all(GRID.fullmatch(name) for name in names)
    for extra in ("-box", "-corner", "-sampled"):
        part = [name for name in names if extra in name]
        assert {name.replace(extra, "") for name in part} <= names and part
    for cell in suite("grid")[::29]:
        task = cell.task(1)
        assert cell.shape == (task.x0.size, task.repeats)


def test_places_noise_failures_and_samples_of_the_grid():
    inside, corner = (crossed(f"grid-20-s0-f0{place}-box", 2) for place in ("", "-corner"))
    assert corner.bounds == [(-1.0, 1.0)] * 20 and crossed("grid-20-s0-f0", 2).bounds is None
    slope = [corner.gap(corner.x0 + e) - corner.gap(corner.x0 - e) for e in 1e-3 * np.eye(20)]
    assert corner.gap(-np.sign(slope)) == 0 < inside.gap(-np.sign(slope))
    assert sum(abs(value) > 1e-12 for value in slope) == 6
    failing = crossed("grid-6-s0.01-f0.1", 1)
    fun, size = failing.make(3), 0.01 * failing.gap(failing.x0)
    seen = np.array([fun(failing.x0) for _ in range(1000)]) - failing.gap(failing.x0)
    assert 0.07 < np.isnan(seen).mean() < 0.13
    assert np.nanstd(seen) == pytest.approx(size, rel=0.1)
    sampled = crossed("grid-6-s0.01-f0-sampled", 1)
    fun, x = sampled.make(3), sampled.x0 + 0.1
    seen = np.array([fun(x, np.array([k])) for k in range(sampled.sample)]) - sampled.gap(x)
    assert np.std(seen) == pytest.approx(size, rel=0.1) and abs(np.mean(seen)) < 0.1 * size
    assert np.isfinite(sampled.make(3)(x))  # peers that leave samples alone


def rows(path, entries):
    found = Rows(path)
    for cell, method, gap in entries:
        found.add(Line(cell, method, 1, 50, 100, (Run(gap),) * 3))
    return found


def test_the_check_of_the_grid_finds_what_is_worse(tmp_path):
    own = rows(tmp_path / "auto.csv", [
        ("grid-6-s0.01-f0@80", "auto", 1.0), ("grid-6-s0.01-f0-box@80", "auto", 1.31),
        ("grid-20-s0.5-f0@300", "auto", 1.0), ("grid-20-s0.5-f0-box@300", "auto", 1.29),
        ("grid-6-s0.5-f0@80", "auto", 1.0), ("grid-6-s0.5-f0-sampled@80", "auto", 1.4),
    ])  # fmt: skip
    peers = rows(tmp_path / "peers.csv", [
        ("grid-6-s0.01-f0@80", "cma", 0.51), ("grid-20-s0.5-f0@300", "cma-sep", 0.49),
        ("grid-6-s0.01-f0-box@80", "l-bfgs-b", 1e-9), ("grid-6-s0.5-f0@80", "cma", 0.69),
    ])  # fmt: skip
    lines, n = behind(own, peers, (1, 2, 3))
    assert n == 6
    assert [line.split("@")[0] for line in lines] == [
        "grid-6-s0.01-f0-box", "grid-6-s0.5-f0-sampled", "grid-6-s0.5-f0-sampled",
        "grid-20-s0.5-f0",
    ]  # fmt: skip


# rivals


BOUNDED = ("l-bfgs-b", "powell", "nelder-mead", "newuoa", "cobyqa", "cma", "cma-sep", "py-bobyqa")


@pytest.mark.parametrize("method", BOUNDED)
def test_rivals_keep_the_bounds_of_a_problem(method):
    pytest.importorskip(METHODS[method].needs)
    seen = []

    def fun(x):
        seen.append(np.array(x))
        return float(np.sum((x - 1.5) ** 2))

    task = Task(
        "cornered", np.full(4, 0.3), None, lambda seed: fun, fun, [(0.0, 1.0)] * 4,
        domain=(0.0, 1.0), repeats=True,
    )  # fmt: skip
    found = METHODS[method].run(Oracle(task, 150, 1), 1)
    assert np.min(seen) >= -1e-12 and np.max(seen) <= 1 + 1e-12
    assert fun(found) < 1.2  # 1 in the corner


# the page


def test_the_page_says_what_holds(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "STORED", tmp_path)
    few = [cell for cell in suite("few") if cell.budget == 50]
    rows(tmp_path / "auto.csv", [
        *((cell.own_key, "auto", 1.1) for cell in few), ("fishing50@2500", "auto", 3.0),
        ("inputs300-s0.15@3000", "auto", 0.009),
    ])  # fmt: skip
    rows(tmp_path / "peers.csv", [
        *((cell.key, "turbo", 1.0) for cell in few), ("fishing50@2500", "cma", 1.0),
        ("fishing50@2500", "powell", 0.5), ("inputs300-s0.15@3000", "cma", 9.0),
    ])  # fmt: skip
    text = page()
    assert "| 50 evaluations | 6 | mean 1.6 | mean 1.2 | 100%, 1.10 | - | yes |" in text
    assert "| fishing, 50 days | 1 | - | 2 times pycma | 3 | - | **no** |" in text
    assert "| 300 inputs, noise, bounds | 1 | - | gap 0.01 | 0.009 | - | yes |" in text
    assert "- outside (1): `fishing50@2500` 6 (powell)" in text and "- few (0): none" in text
    assert "BBOB, exact" not in text  # no rows, no claim
    new = [Line(cell.key, "turbo", CONFIRM[0], 1, 100, (Run(0.5),) * 3) for cell in few]
    new += [Line(cell.own_key, "auto", CONFIRM[0], 1, 100, (Run(1.1),) * 3) for cell in few]
    for line in new:
        ending = "auto-confirm.csv" if line.method == "auto" else "peers-confirm.csv"
        Rows(tmp_path / ending).add(line)
    assert "| 50 evaluations | 6 | mean 1.6 | mean 1.2 | 100%, 1.10 | 0%, 2.20 | **no** |" in page()


def test_confirmation_is_cheap_and_knows_no_cells_of_its_own():
    cells = suite("confirm")
    assert {cell.own_key for cell in cells} <= {cell.own_key for cell in suite("all")}
    assert sum(cell.budget for cell in cells) < 1e6
    assert {"noiseless", "noiseless, bounds", "noisy", "noisy, bounds", "outside"} <= {
        cell.group for cell in cells
    }
    assert all(isinstance(cell, Cell) for cell in cells)
