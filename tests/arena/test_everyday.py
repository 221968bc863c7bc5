"""Functions as people bring them: units side by side, walls, lost values, few evaluations."""

import numpy as np
import pytest

import scgd
from scgd.problem import APART, sizes_of
from scgd_arena.cells import build
from scgd_arena.everyday import EVERYDAY, everyday
from scgd_arena.suites import suite

CELLS = [(name, p, budget) for name, (_, sizes) in EVERYDAY.items() for p, budget in sizes]
REACHED = {
    "lost-half": 0.15, "walled": 0.5, "penalised": 0.01, "joined": 1e-6, "units": 1e-6, "peak": 1e-6,
    "rate": 1e-6, "decay": 1e-6, "largest-line": 0.3, "absolute": 0.03, "valley": 1e-3, "camel": 0.82,
    "turned": 0.01, "network": 1e-3,
}  # fmt: skip
"""Gaps that the median of five instances stays below (of the camel, that of its second valley)."""


NEAR_THE_START = {
    "lost-half": 3.310311338296118, "walled": 3.310311338296118, "penalised": 9.231935832517278,
    "joined": 10.010135235768558, "units": 34.82017610164775, "peak": 50.41326745651153,
    "rate": 0.4551927833177809, "decay": 1.0720688073344053, "largest-line": 5.992880456266416,
    "absolute": 84.64607077769494, "valley": 57.269076443405574, "camel": 1.8246476265193325,
    "turned": 81.84472454276127, "network": 0.6223416660182526,
}  # fmt: skip
"""Gaps at 1.1 times the start of the first instance: a problem that changes needs new rows."""


def gap(name, p, budget, instance):
    task = build(f"{name}-d{p}", instance)
    return task.gap(scgd.minimize(task.make(0), task.x0, max_evals=budget, seed=instance).x)


@pytest.mark.parametrize("name, p, budget", CELLS)
def test_everyday_functions_are_solved(name, p, budget):
    assert np.median([gap(name, p, budget, i) for i in range(41, 46)]) <= REACHED[name]


@pytest.mark.parametrize("name, p, budget", CELLS)
def test_no_random_point_lies_below_the_lowest_value(name, p, budget):
    task, rng = everyday(name, p, 3), np.random.default_rng(0)
    low, high = task.box
    values = [task.gap(rng.uniform(low, high)) for _ in range(300)]
    assert np.nanmin(values) > 0 and np.isfinite(task.gap(task.x0))
    assert task.gap(task.x0) > 1e-3 and everyday(name, p, 4).x0.tolist() != task.x0.tolist()


@pytest.mark.parametrize("name", EVERYDAY)
def test_everyday_functions_are_those_of_the_stored_rows(name):
    (p, _), *_ = EVERYDAY[name][1]
    task = everyday(name, p, 1)
    assert task.gap(1.1 * task.x0) == pytest.approx(NEAR_THE_START[name], rel=1e-6)


def test_the_bowl_is_cut_where_it_has_the_value_one():
    """By descent along the plane: nothing lower lies before it, and 1 is reached."""
    for i in range(5):
        task = everyday("penalised", 3, i)
        found = [
            scgd.minimize(task.make(0), task.x0, max_evals=3000, seed=s, tol=0).fun for s in (0, 1)
        ]
        assert min(found) == pytest.approx(1.0, abs=1e-6)


def test_the_suite_has_a_cell_for_each():
    cells = suite("everyday")
    assert [(cell.name, cell.budget) for cell in cells] == [(f"{n}-d{p}", b) for n, p, b in CELLS]
    assert all(cell.shape == (cell.task(1).x0.size, True) for cell in cells)


# ---- units ---------------------------------------------------------------------------------------


def test_entries_that_lie_far_apart_have_units_of_their_own():
    assert sizes_of(np.zeros(3)) is None
    near = np.array([1.0, 1.001 / APART])
    assert np.ptp(sizes_of(near)) == 0 and sizes_of(near)[0] == pytest.approx(
        np.sqrt(0.5), rel=1e-5
    )
    assert sizes_of(np.array([1.0, -1 / APART])).tolist() == [1.0, 1 / APART]
    found = sizes_of(np.array([3e6, 4e6, 0.0, 1e-6]))
    whole = np.sqrt((9 + 16) / 4) * 1e6
    np.testing.assert_allclose(found, [np.sqrt(12.5) * 1e6, np.sqrt(12.5) * 1e6, whole, 1e-6])
    assert np.isfinite(sizes_of(np.array([1e300, 1e300, 1e-300]))).all()


@pytest.mark.parametrize("seed", range(3))
def test_coordinates_in_other_units_are_not_given_up(seed):
    unit = np.array([1e-6, 1e6, 1.0])
    fun = lambda x: float(np.sum((x / unit - 1.7) ** 2))  # noqa: E731
    result = scgd.minimize(fun, unit.copy(), max_evals=5000, seed=seed)
    assert result.fun < 1e-12


# ---- great numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: 1e300 + 1e290 * np.sum((x - 1) ** 2),
        lambda x: 1e200 * (1 + 1e-10 * np.sum((x - 1) ** 2)),
        lambda x: -1e300 + 1e290 * np.sum((x - 1) ** 2),
    ],
)
def test_great_numbers_do_not_stop_a_run(fun):
    result = scgd.minimize(lambda x: float(fun(x)), np.zeros(4), max_evals=300, seed=0)
    assert result.fun < fun(np.zeros(4)) and np.abs(result.x - 1).max() < 0.5
