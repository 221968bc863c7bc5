"""What a user of ``minimize`` relies on."""

import tracemalloc

import numpy as np
import pytest

import scgd
from asking import Recorded, answer, steps_of
from registry import (
    CURVATURES,
    ESTIMATORS,
    EVERY_METHOD,
    MINIMUM,
    POLICIES,
    STEPS,
    P,
    quadratic,
    quadratic_gradient,
)
from scgd.history import Status


class Counted:
    """A function that counts its calls and the points it has seen."""

    def __init__(self, fun):
        self.fun, self.n = fun, 0

    def __call__(self, x, *rest):
        self.n += 1
        return self.fun(x, *rest)


SHARES = {"random": 0.8}
"""What may be left of f(x0), where that is more than a twentieth: by a baseline."""


@pytest.mark.parametrize("method", EVERY_METHOD)
def test_every_method_descends_without_tuning(method):
    start = quadratic(np.zeros(P))
    result = scgd.minimize(quadratic, np.zeros(P), method=method, max_evals=8000, seed=0)
    assert quadratic(result.x) < SHARES.get(method, 0.05) * start
    assert result.success and result.status in (Status.BUDGET, Status.FINISHED, Status.CONVERGED)


@pytest.mark.parametrize(
    "factor, shift, unit", [(1e6, 0, 1), (1e-6, 0, 1), (1, 1e3, 1), (1, 0, 1e3), (1, 0, 1e-3)]
)
def test_defaults_are_free_of_scale(factor, shift, unit):
    """Multiplying f or rescaling x changes nothing; shifting f only what rounding does."""
    plain = scgd.minimize(quadratic, np.zeros(P), method="musketeer", max_evals=4000, seed=1)
    other = scgd.minimize(
        lambda z: factor * quadratic(z / unit) + shift,
        np.zeros(P),
        method="musketeer",
        max_evals=4000,
        seed=1,
    )
    np.testing.assert_allclose(other.x / unit, plain.x, atol=0.03)


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_reaches_the_minimum(name):
    result = scgd.minimize(
        quadratic, np.zeros(P), max_evals=20_000, seed=0,
    method=scgd.SCGD(policy=POLICIES[name], estimator="central", learning_rate=0.8, radius=0.1))  # fmt: skip
    assert quadratic(result.x) < 1e-3 * quadratic(np.zeros(P))


@pytest.mark.parametrize("policy", ["gauss-southwell", "gradient-weights", "full"])
def test_policies_that_look_at_all_coordinates(policy):
    result = scgd.minimize(
        quadratic,
        np.zeros(P),
        max_evals=30_000,
        seed=0,
        method=scgd.SCGD(policy=policy, learning_rate=0.8, radius=0.1),
    )
    assert quadratic(result.x) < 1e-3 * quadratic(np.zeros(P))
    assert result.weights is None  # no law is learned


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("step", STEPS)
def test_every_estimator_with_every_step(estimator, step):
    result = scgd.minimize(
        quadratic, np.zeros(P), max_evals=6000, seed=0,
    method=scgd.SCGD(policy="uniform", estimator=estimator, step=step, learning_rate=scgd.Linear(0.05), radius=0.01, block_size=3))  # fmt: skip
    assert quadratic(result.x) < 0.3 * quadratic(np.zeros(P))


def test_first_order_uses_jac_and_reports_fun():
    fun = Counted(quadratic)
    jac = Counted(quadratic_gradient)
    result = scgd.minimize(
        fun, np.zeros(P), jac=jac, max_evals=4000, seed=0, method=scgd.SCGD(learning_rate=0.9)
    )
    assert quadratic(result.x) < 1e-4
    assert result.fun == pytest.approx(quadratic(result.x))
    assert fun.n + jac.n == result.nfev <= 4000


@pytest.mark.parametrize("method", EVERY_METHOD)
@pytest.mark.parametrize("max_evals", [1, 7, 100, 777])
def test_the_budget_is_hard(method, max_evals):
    fun = Counted(quadratic)
    result = scgd.minimize(fun, np.zeros(P), method=method, max_evals=max_evals, seed=0)
    assert fun.n == result.nfev <= max_evals
    if result.status == Status.TOO_SMALL:
        assert not result.success and max_evals <= 7
        assert np.array_equal(result.x, np.zeros(P))


def test_weights_tell_which_coordinates_matter():
    def fun(x):
        return float((x[3] - 1) ** 2 + 1e-6 * x @ x)

    result = scgd.minimize(fun, np.zeros(50), method="musketeer", max_evals=4000, seed=0)
    assert np.argmax(result.weights) == 3
    assert result.weights[3] > 0.3


def test_recommendation_is_not_the_luckiest_observation():
    noise = np.random.default_rng(0)
    values = []

    def fun(x):
        values.append(quadratic(x) + noise.standard_normal())
        return values[-1]

    result = scgd.minimize(fun, np.zeros(P), scale=1.0, max_evals=3000, seed=0)
    assert result.fun > min(values) + 1.0
    assert 0 < result.fun_error < 1


def test_fun_is_the_mean_of_the_last_phase():
    values = []

    def fun(x):
        values.append(quadratic(x))
        return values[-1]

    result = scgd.minimize(
        fun, np.zeros(P), max_evals=600,
    method=scgd.SCGD(policy=scgd.Uniform(), estimator="forward", learning_rate=0.1, radius=0.1))  # fmt: skip
    last = values[-6::2]  # T = floor(sqrt(12)) = 3 steps of two evaluations, base first
    assert result.fun == pytest.approx(np.mean(last))
    assert result.fun_error == pytest.approx(np.std(last, ddof=1) / np.sqrt(3))


def test_averaged_iterate_is_the_mean_of_all():
    recipe = scgd.SCGD(policy="uniform", learning_rate=0.3, radius=0.1, average=True)
    opt = scgd.Optimizer(np.zeros(P), recipe, max_evals=400, seed=0)
    iterates = []
    while not opt.done:
        answer(opt, quadratic)
        iterates.append(steps_of(opt).point.x.copy())
    np.testing.assert_allclose(opt.result().x, np.mean(iterates, axis=0), rtol=1e-12, atol=1e-14)


def test_rows_are_whole_numbers_below_n():
    seen = []

    def fun(x, rows, extra):
        assert rows.shape == (3,) and rows.dtype.kind == "i" and extra == "more"
        seen.append(rows.copy())
        return float(x @ x)

    scgd.minimize(
        fun, np.ones(4), "more", method="uniform", max_evals=400, seed=0, sample=scgd.Rows(10, 3)
    )
    rows = np.concatenate(seen)
    assert rows.min() == 0 and rows.max() == 9
    assert all(np.array_equal(a, b) for a, b in zip(seen[-20::2], seen[-19::2], strict=True))


def test_x_is_read_only_and_x0_untouched():
    x0 = np.ones(4)

    def fun(x):
        with pytest.raises(ValueError, match="read-only"):
            x[0] = 5.0
        return float(x @ x)

    scgd.minimize(fun, x0, max_evals=100, seed=0)
    assert np.array_equal(x0, np.ones(4))


def test_global_random_state_is_untouched():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    scgd.minimize(quadratic, np.zeros(P), max_evals=500)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_target_stops_the_run():
    result = scgd.minimize(
        quadratic, np.zeros(P), method="musketeer", target=0.1, max_evals=10_000, seed=0
    )
    assert result.success and result.status == Status.TARGET
    assert result.fun <= 0.1 and result.nfev < 10_000
    missed = scgd.minimize(quadratic, np.zeros(P), target=-1.0, max_evals=500, seed=0)
    assert not missed.success and missed.status == Status.BUDGET
    assert missed.message.startswith("Short of the target.")


def test_time_limit_stops_slow_functions():
    import time

    def slow(x):
        time.sleep(0.02)
        return quadratic(x)

    started = time.monotonic()
    result = scgd.minimize(slow, np.zeros(P), max_time=0.3)
    assert time.monotonic() - started < 2.0
    assert result.status == Status.TIME and result.nfev >= 4


def test_callback_sees_results_and_may_stop():
    seen = []

    def callback(intermediate):
        seen.append(intermediate.nfev)
        assert intermediate.x.shape == (P,)
        if len(seen) == 5:
            raise StopIteration

    result = scgd.minimize(
        quadratic, np.zeros(P), scale=1.0, max_evals=5000, method="uniform", reporting=callback
    )
    assert result.status == Status.CALLBACK and result.success
    assert np.all(np.diff(seen) == 6)  # one phase: 3 steps of two evaluations


@pytest.mark.parametrize("method", ["musketeer", "spsa"])
def test_ctrl_c_returns_the_result_so_far(method):
    def fun(x):
        fun.n += 1
        if fun.n == 101:
            raise KeyboardInterrupt
        return quadratic(x)

    fun.n = 0
    result = scgd.minimize(fun, np.zeros(P), method=method, scale=1.0, max_evals=5000, seed=0)
    assert result.status == Status.INTERRUPTED and not result.success
    assert result.nfev == 100 and np.all(np.isfinite(result.x))


@pytest.mark.parametrize("method", ["musketeer", "full", "spsa"])
def test_a_raising_function_raises(method):
    def fun(x):
        fun.n += 1
        if fun.n == 50:
            raise RuntimeError("simulator crashed")
        return quadratic(x)

    fun.n = 0
    with pytest.raises(RuntimeError, match="simulator crashed"):
        scgd.minimize(fun, np.zeros(P), method=method, scale=1.0, max_evals=5000)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("method", ["musketeer", "full", "spsa"])
def test_nonfinite_values(method, bad):
    def fun(x):
        fun.n += 1
        return bad if fun.n % 40 == 0 else quadratic(x)

    fun.n = 0
    with pytest.raises(FloatingPointError, match=r"(?s)evaluation 39, x = .*failures='skip'"):
        scgd.minimize(fun, np.zeros(P), method=method, scale=1.0, max_evals=5000)
    fun.n = 0
    result = scgd.minimize(
        fun, np.zeros(P), method=method, scale=1.0, max_evals=8000, seed=0, failures="skip"
    )
    assert result.n_failed == result.nfev // 40
    assert quadratic(result.x) < 0.2 * quadratic(np.zeros(P))
    assert np.all(np.isfinite(result.history["fun"]))


def test_bounds_hold_and_bind():
    low, high = -0.3, 0.4
    result = scgd.minimize(
        lambda x: quadratic(check_inside(x, low, high)), np.zeros(P), bounds=[(low, high)] * P, max_evals=8000, seed=0,
    )  # fmt: skip
    expected = np.clip(MINIMUM, low, high)
    heavy = CURVATURES > 0.1
    np.testing.assert_allclose(result.x[heavy], expected[heavy], atol=0.02)


def check_inside(x, low, high):
    assert x.min() >= low and x.max() <= high
    return x


def test_one_seed_one_trajectory():
    keywords = {"method": "musketeer", "max_evals": 500}
    a, b, c = (scgd.minimize(quadratic, np.zeros(P), seed=s, **keywords) for s in (1, 1, 2))
    assert np.array_equal(a.x, b.x) and not np.array_equal(a.x, c.x)


def test_more_workers_than_evaluations_warns():
    import concurrent.futures

    with (
        concurrent.futures.ThreadPoolExecutor(8) as pool,
        pytest.warns(RuntimeWarning, match="some stay idle"),
    ):
        scgd.minimize(
            quadratic, np.zeros(P), method="uniform", scale=1.0, workers=pool, max_evals=20
        )


def test_a_dead_worker_loses_nothing(tmp_path):
    import os

    flag = tmp_path / "died"

    def fun(x):
        if not flag.exists():
            flag.touch()
            os._exit(1)
        return quadratic(x)

    keywords = {"method": scgd.SCGD(block_size=4), "max_evals": 60, "seed": 2, "scale": 0.5}
    result = scgd.minimize(fun, np.zeros(P), workers=2, **keywords)
    alone = scgd.minimize(quadratic, np.zeros(P), **keywords)
    assert flag.exists() and np.array_equal(result.x, alone.x)


def test_the_recipe_prints_what_ran():
    result = scgd.minimize(
        quadratic, np.zeros(P), max_evals=100, seed=0, method=scgd.SCGD(block_size=2)
    )
    text = repr(result.method)
    assert (
        "Musketeer(gain='absolute'" in text
        and "block_size=2" in text
        and "CentralDifference()" in text
    )


def largest_request(call):
    """Return the bytes that a call had in hand at most, beyond what was there before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("method", ["musketeer", "uniform", "spsa"])
def test_memory_is_linear_in_p(method):
    """Forty vectors of length p at most: no matrix anywhere."""
    p = 100_000
    n_bytes = largest_request(
        lambda: scgd.minimize(
            lambda x: float(x[0] ** 2), np.ones(p), method=method, max_evals=200, seed=0
        )
    )
    assert n_bytes < 40 * 8 * p


def test_a_vectorized_function_is_given_no_matrix_of_all_points():
    """A scan of p coordinates asks for p points; they come as matrices of bounded size."""
    p, widest = 3000, 0

    def fun(points):
        nonlocal widest
        widest = max(widest, points.size)
        return np.sum(points**2, axis=1)

    n_bytes = largest_request(
        lambda: scgd.minimize(
            fun, np.ones(p), max_evals=3 * p, seed=0, workers=scgd.Workers(vectorized=True)
        )
    )
    assert 10 * p < widest <= 2**22 < p * p
    assert n_bytes < 4 * 8 * 2**22


# ---- faults of the user's function ---------------------------------------------------------------


@pytest.mark.parametrize("method", EVERY_METHOD)
def test_stop_iteration_of_fun_is_an_error(method):
    """Only the callback may ask to stop."""

    def fun(x):
        fun.n += 1
        if fun.n == 30:
            raise StopIteration("the iterator of the data ran out")
        return quadratic(x)

    fun.n = 0
    with pytest.raises((StopIteration, RuntimeError), match=r"ran out|StopIteration"):
        scgd.minimize(fun, np.zeros(P), method=method, max_evals=500, seed=0)


@pytest.mark.parametrize("method", EVERY_METHOD)
@pytest.mark.parametrize("workers", [1, map], ids=["inline", "map"])
def test_nothing_but_nan_is_no_success(method, workers):
    result = scgd.minimize(
        lambda x: np.nan, np.zeros(P), method=method, max_evals=200, seed=0,
        workers=workers,
    failures="skip")  # fmt: skip
    assert not result.success and result.status == Status.FAILED
    assert result.n_failed == result.nfev and np.isnan(result.fun)
    assert "finite" in result.message
    assert np.array_equal(result.x, np.zeros(P))


@pytest.mark.parametrize("method", EVERY_METHOD)
@pytest.mark.parametrize("first", [1, 30, 150])
def test_minus_infinity_is_refused_by_every_method(method, first):
    def fun(x):
        fun.n += 1
        return -np.inf if fun.n >= first else quadratic(x)

    fun.n = 0
    with pytest.raises(FloatingPointError, match=f"fun returned -inf at evaluation {first - 1}, x"):
        scgd.minimize(fun, np.zeros(P), method=method, tol=0, max_evals=500, seed=0)


@pytest.mark.parametrize("method", EVERY_METHOD)
def test_nan_at_the_start_is_refused_by_every_method(method):
    with pytest.raises(FloatingPointError, match=r"fun returned nan at evaluation 0, x = \["):
        scgd.minimize(lambda x: np.nan, np.zeros(P), method=method, max_evals=500, seed=0)


PENALTY = 1.7e308


@pytest.mark.parametrize("parts", [
    {}, {"estimator": "forward"}, {"block_size": 4}, {"estimator": "spsa"}, {"policy": "full"},
    {"estimator": "gaussian"},
])  # fmt: skip
@pytest.mark.parametrize("workers", [1, map], ids=["inline", "map"])
def test_quotients_that_overflow_end_nothing(parts, workers):
    """Finite values so far apart that their quotient is not: the step is not taken."""

    def fun(x):
        fun.n += 1
        return PENALTY * (-1) ** (fun.n // 7) if fun.n % 7 == 0 else quadratic(x)

    fun.n = 0
    result = scgd.minimize(
        fun, np.zeros(P), method=scgd.SCGD(**parts), scale=1.0, max_evals=2000, seed=0,
        workers=workers,
    )  # fmt: skip
    assert result.status == Status.BUDGET and result.nfev > 1980 and result.n_failed == 0
    assert np.all(np.isfinite(result.x))
    assert quadratic(result.x) < 0.5 * quadratic(np.zeros(P))


@pytest.mark.parametrize("place", range(1, 11))
@pytest.mark.parametrize("workers", [1, map], ids=["inline", "map"])
def test_one_failed_value_of_a_block_costs_one_value(place, workers):
    """Nine of ten coordinates of a step move by what their values tell."""
    x0, rate, h = np.zeros(10), 0.1, 0.01
    fun = Recorded(lambda x: np.nan if len(fun.values) == place else float(np.sum((x - 1) ** 2)))
    result = scgd.minimize(
        fun, x0, max_evals=11,
        workers=workers, seed=0,
    method=scgd.SCGD(policy="full", estimator="forward", learning_rate=rate, radius=h), failures="skip")  # fmt: skip
    expected = np.full(10, rate * (2.0 - h))
    expected[place - 1] = 0.0
    np.testing.assert_allclose(result.x, expected, rtol=1e-9)
    assert result.n_failed == 1 and result.nfev == 11
    assert result.fun == 10.0


def test_a_failed_base_costs_the_step_but_not_the_run():
    fun = Recorded(lambda x: np.nan if not fun.values else float(np.sum((x - 1) ** 2)))
    result = scgd.minimize(
        fun, np.zeros(10), max_evals=22, seed=0,
    method=scgd.SCGD(policy="full", estimator="forward", learning_rate=0.1, radius=0.01), failures="skip")  # fmt: skip
    np.testing.assert_allclose(result.x, 0.1 * (2.0 - 0.01), rtol=1e-9)
    assert result.n_failed == 1


@pytest.mark.parametrize("method", EVERY_METHOD)
@pytest.mark.parametrize("size", [1e-300, 1e300, 0.0])
def test_extreme_functions_leak_no_warnings(method, size):
    """Warnings are errors here: none of ours leaves a run."""
    result = scgd.minimize(
        lambda x: size * quadratic(x), np.zeros(P), method=method, max_evals=600, seed=0
    )
    assert np.all(np.isfinite(result.x))


@pytest.mark.parametrize("method", ["musketeer", "uniform", "spsa", "auto"])
def test_looking_for_a_scale_tolerates_the_domain_of_f(method):
    """f is not defined beyond a distance that only the search for a scale goes to."""

    def fun(x):
        return np.nan if np.max(np.abs(x)) > 3e-5 else quadratic(1e5 * x)

    result = scgd.minimize(fun, np.zeros(P), method=method, max_evals=3000, seed=0)
    assert quadratic(1e5 * result.x) < 0.2 * quadratic(np.zeros(P))
    assert result.success and result.n_failed > 0


@pytest.mark.parametrize("bound", ["low", "high"])
@pytest.mark.parametrize("method", ["auto"])
def test_a_start_on_a_bound_is_a_start(method, bound):
    """From x0 on its bounds, where only one side can be looked at, to the minimum inside."""
    p = 100
    centre, curvatures = np.full(p, 0.5), np.linspace(1, 10, p)
    x0 = np.zeros(p) if bound == "low" else np.ones(p)
    fun = Recorded(lambda x: float(curvatures @ (x - centre) ** 2))
    result = scgd.minimize(fun, x0, method=method, bounds=[(0.0, 1.0)] * p, max_evals=1000, seed=0)
    assert float(curvatures @ (result.x - centre) ** 2) < 1e-12
    points = np.array(fun.points)
    assert points.min() >= 0.0 and points.max() <= 1.0
    at_start = np.sum(np.all(points == x0, axis=1))
    assert at_start < p // 2


def test_repeated_coordinates_of_a_joint_move_are_moved_once_and_credited_once():
    """The mean step of plain SPSA over uniform blocks is (m / p) grad f."""
    slope, p = np.array([1.0, 2.0, 3.0]), 3
    recipe = scgd.SCGD(
        policy="uniform", estimator="spsa", learning_rate=1.0, radius=0.1, block_size=2
    )
    opt = scgd.Optimizer(np.zeros(p), recipe, seed=0)
    point, moves = steps_of(opt).point, []
    for _ in range(4000):
        point.put(np.zeros(p))
        trials = answer(opt, lambda x: float(slope @ x))
        assert np.count_nonzero(trials[0].x) == 2
        moves.append(-point.x)
    mean, error = np.mean(moves, axis=0), np.std(moves, axis=0) / np.sqrt(len(moves))
    assert np.all(np.abs(mean - slope * 2 / 3) < 4 * error)
    assert np.all(error < 0.1)


@pytest.mark.parametrize("estimator", ["spsa", "gaussian", "sphere"])
def test_directions_move_each_coordinate_once_whatever_replace_says(estimator):
    recipe = scgd.SCGD(
        policy="uniform",
        estimator=estimator,
        learning_rate=1e-3,
        radius=0.1,
        block_size=6,
        replace=True,
    )
    opt = scgd.Optimizer(np.zeros(P), recipe, seed=0)
    for _ in range(50):
        *_, trial = answer(opt, quadratic)
        assert np.count_nonzero(trial.x != steps_of(opt).point.x) >= 6


def test_mixing_may_be_any_callable():
    runs = [
        scgd.minimize(
            quadratic, np.zeros(P), max_evals=900, seed=0,
        method=scgd.SCGD(policy=scgd.Musketeer(mixing=mixing)))
        for mixing in (0.2, lambda n: 0.2, lambda n: np.full(np.shape(n), 0.2))
    ]  # fmt: skip
    assert np.array_equal(runs[0].x, runs[1].x) and np.array_equal(runs[0].x, runs[2].x)
    assert runs[0].weights.min() >= 0.2 / P


def test_jac_reports_fun_and_obeys_target():
    result = scgd.minimize(
        quadratic, np.zeros(P), jac=quadratic_gradient, target=0.01, max_evals=20_000, seed=0,
    method=scgd.SCGD(learning_rate=0.9))  # fmt: skip
    assert result.status == Status.TARGET and result.success and result.nfev < 20_000
    assert np.isfinite(result.fun) and result.fun <= 0.01


def test_jac_stopped_by_the_callback_still_reports_fun():
    def stop(result):
        if result.nfev > 300:
            raise StopIteration

    result = scgd.minimize(
        quadratic, np.zeros(P), jac=quadratic_gradient, max_evals=2000, seed=0,
    method=scgd.SCGD(learning_rate=0.5), reporting=stop)  # fmt: skip
    assert result.status == Status.CALLBACK and np.isfinite(result.fun)
