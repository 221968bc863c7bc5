"""Which inputs matter under noise: the screen, the model's errors, and what results say of it."""

import numpy as np
import pytest

import scgd
from noises import Stop
from scgd.problem import Problem
from scgd.questions import Point
from scgd.searches import Screen
from scgd.searches.regression import Regression
from scgd.searches.screen import FIRST, correlations, least_squares, pursue
from scgd.searches.walk import Walk
from test_noisy import Numbered, played
from test_regression import features, priors
from test_relevance import inputs

MANY = 1000


def planted(n, effects, noise, seed=0, p=MANY):
    """Return packed signs, values with few effects, and the signs as a matrix."""
    rng = np.random.default_rng(seed)
    plus = rng.random((n, p)) < 0.5
    signs = 2.0 * plus - 1
    odd = signs[:, list(effects)] @ np.array(list(effects.values()))
    return np.packbits(plus, axis=1), odd + noise * rng.standard_normal(n), signs


def test_a_pursuit_is_least_squares_on_what_shows():
    effects = {3: 2.0, 77: -0.5, 500: 1.0, 999: 0.25}
    packed, odd, signs = planted(300, effects, 0.3)
    found, errors, left = pursue(packed, odd, MANY)
    assert np.flatnonzero(found).tolist() == sorted(effects)
    matrix = signs[:, sorted(effects)]
    expected, rss = np.linalg.lstsq(matrix, odd, rcond=None)[:2]
    np.testing.assert_allclose(found[sorted(effects)], expected)
    assert left == pytest.approx(rss[0] / (300 - 4))
    own = np.sqrt(left * np.diag(np.linalg.inv(matrix.T @ matrix)))
    np.testing.assert_allclose(errors[sorted(effects)], own)
    others = np.delete(errors, sorted(effects))
    np.testing.assert_allclose(others, np.sqrt(left / 300))


def test_correlations_and_columns_are_those_of_the_signs():
    packed, odd, signs = planted(50, {1: 1.0}, 1.0, p=21)
    np.testing.assert_allclose(correlations(packed, odd, 21), odd @ signs, atol=1e-12)
    chosen = np.array([0, 7, 8, 20])
    effects, _, left = least_squares(packed, odd, chosen)
    np.testing.assert_allclose(left, odd - signs[:, chosen] @ effects)


def test_what_chance_makes_of_many_is_no_effect():
    wrong = 0
    for seed in range(40):
        packed, odd, _ = planted(150, {0: 0.0}, 1.0, seed)
        wrong += np.count_nonzero(pursue(packed, odd, MANY)[0])
    assert wrong <= 4  # 2000 (1 - Phi(sqrt(2 log 10^4))) = .018 each, heavier tails aside


def test_an_outlier_does_not_hide_effects():
    packed, odd, _ = planted(200, {5: 1.0, 6: 2.0}, 0.1)
    odd[17] = 1e9
    assert np.flatnonzero(pursue(packed, odd, MANY)[0]).tolist() == [5, 6]


def screen(fun, n_pairs, deviation=0.1, p=MANY, bounds=None):
    problem = Problem.check(np.zeros(p), bounds)
    search = Screen(
        problem, Point(problem.x0), np.random.default_rng(0), 0.5, n_pairs, deviation
    )  # fmt: skip
    return search, played(search, fun)


def test_a_screen_tells_few_from_many():
    few, points = screen(Numbered(lambda x: 3 * x[4] + x[9] + x[9] ** 2, 0.1), 200)
    assert few.finding().n_found == 2 and few.finding().sparse and len(points) == 400
    assert few.moving.sum() == 2 and few.moving[[4, 9]].all()
    share, error = few.relevance
    assert share[[4, 9]] == pytest.approx([0.75, 0.25], abs=0.02) and share.sum() == 1
    assert 0 < error[4] < 0.02 and np.abs(points).max() == 0.5 == few.farthest
    many, _ = screen(Numbered(lambda x: 20 * x[4] + float(np.sum(x)), 0.1), 200)
    assert many.finding().n_found >= 1 and not many.finding().sparse


def test_a_screen_that_shows_nothing_is_given_up():
    search, points = screen(Numbered(lambda x: 0.0, 1.0), 400, 1.0)
    assert len(points) == 2 * FIRST and search.relevance is None and not search.finding().sparse


def test_lost_pairs_and_bounds():
    bounds = [(0.0, 1.0)] * MANY  # x is a corner
    search, points = screen(Numbered(lambda x: float(x[3]), 0.01), 160, 0.01, bounds=bounds)
    assert points.min() == 0 and points.max() == 0.25  # pairs keep their middle in the bounds
    assert np.flatnonzero(search.effects).tolist() == [3]
    search, _ = screen(lambda x: np.nan if x[0] > 0 else float(x[3]) + 1e-3 * x[5], 160, 0.0)
    assert len(search.odds) == 0 and search.relevance is None


def sparse(x):
    return float((x[2] - 1) ** 2 + 2 * (x[30] + 0.5) ** 2 + x[2] * x[700] + (x[700] - 0.7) ** 2)


def test_few_of_many_inputs_are_found_through_noise_and_the_others_stay(tmp_path):
    options = {"max_evals": 1600, "seed": 1}
    x0 = np.full(MANY, 0.25)
    result = scgd.minimize(Numbered(sparse, 0.1), x0, **options)
    assert set(np.argsort(-result.relevance)[:3]) == {2, 30, 700}
    others = np.delete(np.arange(MANY), [2, 30, 700])
    assert not result.relevance[others].any() and np.all(result.relevance_error > 0)
    assert np.all(result.x[others] == 0.25) and sparse(result.x) < 0.45  # 0.436 at best
    assert "3 of 1000 inputs show an effect" in result.message
    assert np.array_equal(result.weights, result.relevance)
    for n_calls in (200, 700):  # in the screen, and in the walk
        path = tmp_path / f"{n_calls}.npz"
        scgd.minimize(Stop(Numbered(sparse, 0.1), n_calls), x0, checkpoint=path, **options)
        again = scgd.minimize(Numbered(sparse, 0.1, n_calls), x0, checkpoint=path, **options)
        np.testing.assert_array_equal(again.x, result.x)
        np.testing.assert_array_equal(again.relevance, result.relevance)


@pytest.mark.slow
def test_no_worse_than_correlations_of_random_points():
    for seed in (1, 2):
        fun, which = inputs(5000, seed)
        rng, noisy = np.random.default_rng(seed), Numbered(fun, 0.3)
        values, sums, total = [], np.zeros(5000), np.zeros(5000)
        for _ in range(4000):
            x = rng.uniform(-1, 1, 5000)
            values.append(noisy(x))
            sums += values[-1] * x
            total += x
        correlated = np.abs(sums - np.mean(values) * total)
        result = scgd.minimize(Numbered(fun, 0.3), np.zeros(5000), max_evals=4000, seed=seed)
        recall = [len(set(np.argsort(-size)[:15]) & set(which))
                  for size in (result.relevance, correlated)]  # fmt: skip
        assert recall[0] >= max(recall[1], 13)


def test_errors_of_a_regression_are_those_of_the_posterior():
    rng, n = np.random.default_rng(4), 3
    points, values = rng.standard_normal((20, n)), rng.standard_normal(20)
    sizes = np.array([0.3, -0.5, 0.1, -0.4, -0.2])
    data = Regression(points, values)
    phi, variance = np.array([features(u) for u in points]), priors(sizes, n)
    noise = 10.0 ** sizes[4]
    covariance = phi @ np.diag(variance) @ phi.T + noise * np.eye(20)
    scale = data.y @ np.linalg.solve(covariance, data.y) / 20
    after = scale * np.linalg.inv(np.diag(1 / variance) + phi.T @ phi / noise)
    model = data.quadratic(sizes)
    for k in range(n):
        bend = np.zeros(len(variance))  # H_kk: twice common, own and mixed
        bend[[1 + n, 2 + n + k, 2 + 2 * n + k * n + k]] = 2
        larger = max(after[1 + k, 1 + k], bend @ after @ bend / 2)
        assert model.errors[k] == pytest.approx(data.spread * np.sqrt(larger), rel=1e-6)
        size = np.hypot(model.slope[k], model.bend[k, k] / np.sqrt(2))
        assert model.effects[k] == pytest.approx(size)


def test_effects_are_those_of_a_fit_in_which_coordinates_may_differ():
    rng = np.random.default_rng(4)
    data = Regression(rng.standard_normal((20, 3)), rng.standard_normal(20))
    alike, apart = np.array([0.3, 1.0, -8.0, -0.4, -0.2]), np.array([0.3, 1.0, 0.0, -0.4, -0.2])
    apart[2] = 1.0 - np.log10(3)  # as much by itself as in common: 4 e2 / D = 4 e1 / D^2
    ours, theirs = data.quadratic(alike), data.quadratic(apart)
    np.testing.assert_allclose(ours.errors, theirs.errors)
    np.testing.assert_allclose(ours.effects, theirs.effects)
    assert not np.allclose(ours.bend, theirs.bend)


def test_a_curvature_that_only_the_sum_shows_is_nobodys():
    """At the minimum signs of one length show the sum of 40 curvatures: no input is named."""
    weights = np.zeros(40)
    weights[[3, 7, 11, 20]] = 5, 3, 2, 1

    def fun(x):
        return float(np.sum(weights * (x - 1) ** 2))

    result = scgd.minimize(Numbered(fun, 0.1), np.zeros(40), max_evals=1500, seed=1)
    share = result.relevance
    assert share is None or set(np.argsort(-share)[:2]) == {3, 7}


def test_what_told_inputs_apart_is_kept():
    walk = Walk.__new__(Walk)
    walk.effects = np.full((2, 3), np.nan)
    assert walk.relevance is None
    everywhere, clear = np.arange(3), np.array([[1.0, 9.0, 1.0], [1.0, 1.0, 1.0]])
    walk.learn(everywhere, clear)
    walk.learn(everywhere, np.ones((2, 3)))
    np.testing.assert_array_equal(walk.effects, clear)
    np.testing.assert_allclose(walk.relevance, [[0.0, 1.0, 0.0], [1 / 9, 1 / 9, 1 / 9]])
    clearer = np.array([[1.0, 1.0, 9.5], [1.0, 1.0, 1.0]])
    walk.learn(everywhere, clearer)
    np.testing.assert_array_equal(walk.effects, clearer)
    walk.effects = np.array([[1.0, 4.9, 1.0], [1.0, 1.0, 1.0]])  # not by four errors
    assert walk.relevance is None and walk.weights is None


def test_what_noise_explains_has_no_share():
    """Of 148 useless inputs each has had a little, 93 % together."""
    rng, p = np.random.default_rng(7), 150

    def fun(x):
        return float(np.sum((x[:2] - 1) ** 2)) + 0.3 * rng.standard_normal()

    result = scgd.minimize(fun, np.full(p, 3.0), max_evals=3000, seed=2)
    assert result.relevance[:2].sum() > 0.7 and np.all(result.relevance_error > 0)


def test_a_model_tells_relevance_under_noise():
    def fun(x):
        return float(3 * (x[0] - 1) ** 2 + 3 * (x[1] + 1) ** 2)

    result = scgd.minimize(Numbered(fun, 0.1), np.zeros(8), max_evals=600, seed=0)
    share, error = result.relevance, result.relevance_error
    assert share.sum() == pytest.approx(1) and np.all(error > 0)
    assert share[:2].min() > 3 * share[2:].max() and np.all(share[:2] > 3 * error[:2])
    assert np.array_equal(result.weights, share)


def test_a_law_tells_relevance_where_samples_are_held_fixed():
    noise = np.random.default_rng(0).standard_normal((50, 3))

    def fun(x, rows):
        there = 1 + 0.3 * noise[rows[0], :3]
        return float(np.sum((x[:3] - there) ** 2) + 1e-3 * x @ x)

    result = scgd.minimize(fun, np.zeros(30), sample=50, max_evals=2600, seed=0)
    assert set(np.argsort(-result.relevance)[:3]) == {0, 1, 2}
    assert result.relevance.sum() == pytest.approx(1) and np.all(result.relevance_error >= 0)
    assert np.array_equal(result.weights, result.relevance)
