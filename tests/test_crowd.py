"""A population under noise: where it stands, what it tells, and when it ends."""

import numpy as np
import pytest

from scgd.problem import Problem
from scgd.questions import Point
from scgd.searches import Crowd
from scgd.searches.arms.population import Population

P, SIZE = 3, 7  # 4 + 3 log 3


def crowd(budget=100, seed=1, **words):
    problem = Problem.check(np.full(P, 2.0), **words)
    return Crowd(problem, Point(problem.x0), np.random.SeedSequence(seed), budget, 0.5)


def generation(search, values):
    question = search.pose()
    points = np.array([question.at(j) for j in range(len(question))])
    search.take(question, np.asarray(values, np.float64))
    return points


def test_it_is_cma_es_and_stands_at_the_mean():
    search, rng = crowd(scale=4.0), np.random.Generator(np.random.PCG64(np.random.SeedSequence(1)))
    state = Population(np.full(P, 0.5), 0.5, rng)
    for values in ([5, 1, 4, 2, 3, 7, 6], [1, 2, 3, 9, 5, 6, 7]):
        normal, steps = state.sample()
        points = generation(search, values)
        np.testing.assert_allclose(points, 4 * (state.mean + state.sigma * steps))
        state.learn(normal, steps, np.array(values, np.float64))
        np.testing.assert_allclose(search.point.x, 4 * state.mean)
        assert search.standing.values.tolist() == values and not search.standing.exact
    assert search.journal == [(7, 4.0), (14, 5.0)] and search.members == {"population": 14}


def test_it_ends_where_no_whole_generation_can_be_paid():
    search = crowd(2 * SIZE)
    generation(search, np.arange(SIZE))
    assert not search.finished
    generation(search, np.arange(SIZE))
    assert search.finished
    short = crowd(2 * SIZE - 1)
    generation(short, np.arange(SIZE))
    assert short.finished


def test_it_ends_where_generations_are_level():
    search = crowd()
    generation(search, np.ones(SIZE))
    assert not search.finished
    generation(search, np.ones(SIZE))
    assert search.finished


def test_it_stands_inside_bounds_though_the_mean_may_not():
    search = crowd(400, bounds=[(1.9, 2.1)] * P)
    for _ in range(20):
        points = generation(search, np.arange(SIZE))
        assert np.all((points >= 1.9) & (points <= 2.1))
        assert np.all((search.point.x >= 1.9) & (search.point.x <= 2.1))


def test_lost_values_rank_last_and_are_not_told():
    search = crowd()
    generation(search, [3, np.nan, 1, np.nan, np.nan, np.nan, 2])
    assert search.standing.values.tolist() == [3.0, 1.0, 2.0] and search.journal == []
    other = crowd()
    generation(other, [3, 5, 1, 6, 7, 8, 2])
    np.testing.assert_allclose(search.point.x, other.point.x)


@pytest.mark.parametrize("p, diagonal", [(64, False), (65, True)])
def test_up_to_64_coordinates_learn_a_full_covariance(p, diagonal):
    problem = Problem.check(np.ones(p))
    search = Crowd(problem, Point(problem.x0), np.random.SeedSequence(0), 100, 0.5)
    assert search.crowd.diagonal is diagonal


@pytest.mark.parametrize("seed", range(3))
def test_it_finds_its_way_where_far_out_f_is_as_flat_as_here(seed):
    """A reward for right signs, as policies with limits have it; the noise is a third of it."""
    problem, rng = Problem.check(np.zeros(P)), np.random.default_rng(seed)
    search = Crowd(problem, Point(problem.x0), np.random.SeedSequence(seed), 400, 0.5)
    signs = np.array([1.0, -1.0, 1.0])
    while (question := search.pose()) is not None:
        points = np.array([question.at(j) for j in range(len(question))])
        reward = np.mean(np.tanh(5 * points) * signs, axis=1)
        search.take(question, -reward + 0.3 * rng.standard_normal(len(points)))
    assert np.mean(np.tanh(5 * search.point.x) * signs) > 0.9
