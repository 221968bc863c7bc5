"""Search spaces: what the strategies find, and what they never do."""

import numpy as np
import pytest

from scgd.problem import Known, Problem
from scgd.run.filler import Filler
from scgd.spaces import Choice, Float, Int, Space
from scgd.strategies.drive import drive
from scgd.strategies.gaussian_process import gaussian_process
from scgd.strategies.mutation import dynamically_dimensioned_search
from scgd.strategies.random_search import random_search
from scgd.trials import Trials

STRATEGIES = [gaussian_process, dynamically_dimensioned_search, random_search]
SPACE = Space(
    x=Float(-5, 5, size=3),
    n=Int(1, 50, log=True),
    kind=Choice("a", "b", "c"),
    extra=Float(0, 1, when={"kind": "b"}),
)


def cost(params):
    """Lowest, 0, at x = 1, n = 7, kind "b", extra 0.25."""
    other = 1.0 if params["kind"] != "b" else (params["extra"] - 0.25) ** 2
    return float(np.sum((params["x"] - 1) ** 2) + np.log(params["n"] / 7) ** 2 + other)


def mixed(x):
    return cost(SPACE.decode(x))


def bounded(d):
    return Problem.check(np.full(d, 2.0), bounds=[(-5, 5)] * d)


def sphere(x):
    return float(np.sum((x - 1.0) ** 2))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_points_lie_on_the_grid_and_the_budget_is_kept(strategy):
    done = drive(strategy, SPACE.problem(), mixed, 60)
    assert done.n_evals == 60
    points = np.array(done.points)
    assert np.array_equal(SPACE.grid.canonical(points), points)
    assert np.array_equal(points[0], SPACE.grid.start)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_seed_one_trajectory(strategy):
    runs = [drive(strategy, SPACE.problem(), mixed, 40, seed=3).points for _ in range(2)]
    assert np.array_equal(*runs)


@pytest.mark.parametrize(("strategy", "n_evals"), [(gaussian_process, 80), (STRATEGIES[1], 1000)])
def test_a_mixed_space_is_solved(strategy, n_evals):
    found = [drive(strategy, SPACE.problem(), mixed, n_evals, seed=s).fun for s in range(5)]
    assert np.median(found) < 0.1


def test_a_model_is_worth_many_random_points():
    model = [drive(gaussian_process, bounded(6), sphere, 60, seed=s).fun for s in range(5)]
    luck = [drive(random_search, bounded(6), sphere, 600, seed=s).fun for s in range(5)]
    assert np.median(model) < 0.05 * np.median(luck)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("where", ["first", "all", "some"])
def test_failed_evaluations_cost_themselves_only(strategy, where):
    n = 0

    def failing(x):
        nonlocal n
        n += 1
        lost = {"first": n == 1, "all": True, "some": n % 4 == 0}[where]
        return float("nan") if lost else mixed(x)

    done = drive(strategy, SPACE.problem(), failing, 50)
    assert done.n_evals == 50


@pytest.mark.parametrize("strategy", STRATEGIES[:2])
def test_a_small_grid_is_exhausted_and_no_point_asked_twice(strategy):
    space = Space(a=Int(1, 5), b=Choice("u", "v"))
    done = drive(strategy, space.problem(), lambda x: float(x.sum()), 100)
    assert done.found.converged
    assert 10 <= done.n_evals <= 11  # one repeat may tell whether f is noisy
    assert len(np.unique(done.points, axis=0)) == 10


@pytest.mark.parametrize("strategy", STRATEGIES[:2])
def test_under_noise_a_good_point_is_recommended(strategy):
    gaps = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        done = drive(
            strategy, bounded(3), lambda x, r=rng: sphere(x) + 0.3 * r.standard_normal(), 150, seed
        )
        assert done.reported("deterministic") is False
        gaps.append(sphere(done.reported("x")))
    assert np.median(gaps) < 0.6 < sphere(bounded(3).x0)


def test_what_is_known_is_not_evaluated_again():
    from dataclasses import replace

    points = np.random.default_rng(0).uniform(-5, 5, (30, 2))
    problem = replace(bounded(2), known=Known(points, np.array([sphere(x) for x in points])))
    done = drive(gaussian_process, problem, sphere, 12)
    assert done.fun < 0.5
    assert not {x.tobytes() for x in done.points} & {x.tobytes() for x in points}


def test_without_bounds_the_model_looks_around_the_start():
    problem = Problem.check(np.full(3, 3.0))
    found = [drive(gaussian_process, problem, sphere, 60, seed=s).fun for s in range(3)]
    assert np.median(found) < 0.1


@pytest.mark.parametrize("factor", [1e-8, 1e8])
def test_units_of_f_change_nothing(factor):
    runs = [
        drive(gaussian_process, bounded(3), lambda x, c=c: c * sphere(x), 40).fun / c
        for c in (1.0, factor)
    ]
    assert max(runs) < 0.5


@pytest.mark.parametrize("bounds", [None, [(-5, 5)] * 3])
def test_the_filler_finds_the_minimum_of_what_others_measured(bounds):
    problem = Problem.check(np.full(3, 2.0), bounds=bounds)
    rng, trials = np.random.default_rng(0), Trials(3)
    for x in 2 + rng.standard_normal((60, 3)):
        trials.add(x, sphere(x))
    filler = Filler(problem, trials, rng)
    asked = np.concatenate([filler.ask().points() for _ in range(10)])
    assert np.median([sphere(x) for x in asked]) < trials.table["values"].min() + 0.3
    assert all(np.array_equal(problem.clipped(x), x) for x in asked)
    assert len(np.unique(asked, axis=0)) == 10  # the centre too is asked once


def test_the_filler_begins_around_x0():
    filler = Filler(Problem.check(np.zeros(2), scale=1.0), Trials(2), np.random.default_rng(0))
    (x,) = filler.ask().points()
    assert np.isfinite(x).all() and 0 < np.abs(x).max() < 5
