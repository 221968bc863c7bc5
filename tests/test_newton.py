"""Newton's steps under constraints: models are exact for parabolas, minima are met, runs go on."""

import numpy as np
import pytest
from scipy.optimize import NonlinearConstraint

import scgd
from asking import same_run
from scgd.constraints import Constraints, Merit
from scgd.constraints.quadratic import Surface, n_points, newton_steps, pattern
from scgd.problem import Problem
from scgd.strategies.budget import Budget

RNG = np.random.default_rng(5)


def parabolas(p, n):
    """Return values, slopes and symmetric bends of n functions, and the functions."""
    a, b, c = RNG.normal(size=n), RNG.normal(size=(n, p)), RNG.normal(size=(n, p, p))
    c = c + c.transpose(0, 2, 1)
    return a, b, c, lambda d: a + b @ d + 0.5 * np.einsum("ijk,j,k->i", c, d, d)


@pytest.mark.parametrize("p", [1, 2, 5])
def test_models_pass_through_parabolas(p):
    a, b, c, at = parabolas(p, 3)
    assert len(pattern(p)) == n_points(p)
    made = Surface.fitted(np.stack([at(d) for d in pattern(p)]), p, np.array([True, False]))
    np.testing.assert_allclose(made.values, a)
    np.testing.assert_allclose(made.slopes, b, atol=1e-12)
    np.testing.assert_allclose(made.bends, c, atol=1e-12)
    d = RNG.normal(size=p)
    np.testing.assert_allclose(made.at(d), at(d))
    ahead, behind = (made.at(d + e) for e in (np.full(p, 1e-6), np.full(p, -1e-6)))
    np.testing.assert_allclose(made.slope(d).sum(axis=1), (ahead - behind) / 2e-6, rtol=1e-6)


def disc_and_line():
    """f = |d - (3, 1)|^2 / 2, d1 + d2 = 0 and |d|^2 <= 2: the minimum is (1, -1)."""
    values = np.array([5.0, 0.0, -2.0])
    slopes = np.array([[-3.0, -1.0], [1.0, 1.0], [0.0, 0.0]])
    bends = np.array([np.eye(2), np.zeros((2, 2)), 2 * np.eye(2)])
    return Surface(values, slopes, bends, np.array([True, False]))


def test_the_step_and_the_multipliers_of_a_known_minimum():
    made = disc_and_line()
    d = made.step(np.full(2, -4.0), np.full(2, 4.0))
    np.testing.assert_allclose(d, [1, -1], atol=1e-7)
    # (d - (3, 1)) + m1 (1, 1) + m2 2 d = 0 at d = (1, -1): m1 = 2, m2 = 0
    np.testing.assert_allclose(made.multipliers(np.array([1.0, -1.0])), [2, 0], atol=1e-9)
    near = made.step(np.full(2, -0.5), np.full(2, 0.5))
    np.testing.assert_allclose(near, [0.5, -0.5], atol=1e-7)


def test_equations_may_push_either_way():
    made = disc_and_line()
    turned = Surface(made.values, made.slopes * [[1], [-1], [1]], made.bends, made.equal)
    np.testing.assert_allclose(turned.multipliers(np.array([1.0, -1.0])), [-2, 0], atol=1e-9)


@pytest.mark.parametrize("turned", [True, False])
def test_the_metric_evens_curvature_out(turned):
    bend = np.array([[100.0, 3.0], [3.0, 1.0]]) if turned else np.diag([1.0, 100.0])
    made = Surface(np.zeros(1), np.zeros((1, 2)), bend[None], np.zeros(0, bool))
    metric = made.metric(np.zeros(2), np.zeros(0), turned=turned)
    even = metric.T @ bend @ metric
    np.testing.assert_allclose(even, even[0, 0] * np.eye(2), atol=1e-9)
    assert np.linalg.norm(metric, axis=0).max() == pytest.approx(1.0)
    if not turned:
        np.testing.assert_allclose(metric, np.diag([1.0, 0.1]))


SCALES = 10.0 ** np.arange(5)


def steep(x):
    return float(np.sum(SCALES * (x - 1) ** 2))


BALL = NonlinearConstraint(lambda x: x @ x, -np.inf, 2)


def least(constraint, **more):
    return scgd.minimize(steep, np.zeros(5), constraints=constraint, seed=0, **more)


def lowest():
    """The minimum on the ball, by its multiplier: x_k = s_k / (s_k + m) with |x|^2 = 2."""
    from scipy.optimize import brentq

    m = brentq(lambda m: np.sum((SCALES / (SCALES + m)) ** 2) - 2, 0, 1e6, xtol=1e-12, rtol=1e-14)
    return steep(SCALES / (SCALES + m))


def test_an_ill_conditioned_problem_ends_exactly():
    result = least(BALL, max_evals=3000)
    assert result.maxcv == 0
    assert abs(result.fun / lowest() - 1) < 1e-7  # a violation of 1e-8 counts as none


def test_bounds_hold_and_may_be_the_answer():
    low = np.full(5, 0.7)
    seen = []

    def watched(x):
        seen.append(x.copy())
        return float(np.sum(x))

    ball = NonlinearConstraint(lambda x: x @ x, -np.inf, 4)
    result = scgd.minimize(
        watched, np.full(5, 0.8), constraints=ball, bounds=[(0.7, 2)] * 5, max_evals=2500, seed=0
    )
    assert np.min(seen) >= 0.7 and np.max(seen) <= 2
    np.testing.assert_allclose(result.x, low, atol=1e-9)


def test_failures_end_it_and_not_the_run():
    def holes(x):
        return np.nan if x[0] > 0.5 else steep(x)

    result = scgd.minimize(
        holes, np.zeros(5), constraints=BALL, max_evals=2500, seed=0, failures="skip"
    )
    assert result.n_failed and result.maxcv == 0 and result.nfev <= 2500


def test_after_a_step_that_fails_the_next_is_a_quarter_as_long():
    """The models of a bowl have their minimum well within the radius; what is there fails."""
    problem = Problem.check(np.zeros(2))
    merit = Merit(Constraints.check(BALL, problem), 2)
    run = newton_steps(problem, merit, Budget(100, 2), turned=False)
    points = next(run)
    aim = 0.1 * problem.unit
    f = np.sum((points - aim) ** 2, axis=1)
    (first,) = run.send(np.column_stack([f, np.full(len(f), -1.0), np.zeros(len(f))]))
    np.testing.assert_allclose(first, aim, rtol=1e-6)
    (second,) = run.send(np.array([[100.0, -1.0, 0.0]]))
    np.testing.assert_allclose(second, first / 4, rtol=1e-6)


@pytest.mark.parametrize("n", [400, 700])
def test_it_resumes_bit_for_bit(n, tmp_path):
    def go(max_evals, **more):
        return least(BALL, max_evals=max_evals, **more)

    class Stop:
        def __call__(self, result):
            if result.nfev >= n:
                raise StopIteration

    path = tmp_path / "run.npz"
    go(1500, checkpoint=path, reporting=Stop())
    same_run(go(1500, checkpoint=path), go(1500))
