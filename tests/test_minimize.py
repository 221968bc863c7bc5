"""What a user of ``minimize`` relies on."""

import numpy as np
import pytest
from scgd.result import Status

import scgd
from registry import (
    CURVATURES,
    ESTIMATORS,
    MINIMUM,
    POLICIES,
    STEPS,
    P,
    quadratic,
    quadratic_gradient,
)


class Counted:
    """A function that counts its calls and the points it has seen."""

    def __init__(self, fun):
        self.fun, self.n = fun, 0

    def __call__(self, x, *rest):
        self.n += 1
        return self.fun(x, *rest)


@pytest.mark.parametrize("method", scgd.RECIPES)
def test_every_recipe_descends_without_tuning(method):
    start = quadratic(np.zeros(P))
    result = scgd.minimize(quadratic, np.zeros(P), method=method, max_evals=8000, seed=0)
    assert quadratic(result.x) < 0.05 * start
    assert result.success and result.status == Status.BUDGET


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
        quadratic, np.zeros(P), policy=POLICIES[name], learning_rate=0.8, radius=0.1, estimator="central",
        max_evals=20_000, seed=0,
    )  # fmt: skip
    assert quadratic(result.x) < 1e-3 * quadratic(np.zeros(P))


@pytest.mark.parametrize("policy", ["gauss-southwell", "gradient-weights", "full"])
def test_policies_that_look_at_all_coordinates(policy):
    result = scgd.minimize(
        quadratic,
        np.zeros(P),
        policy=policy,
        learning_rate=0.8,
        radius=0.1,
        max_evals=30_000,
        seed=0,
    )
    assert quadratic(result.x) < 1e-3 * quadratic(np.zeros(P))
    np.testing.assert_allclose(result.weights, 1 / P)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("step", STEPS)
def test_every_estimator_with_every_step(estimator, step):
    result = scgd.minimize(
        quadratic, np.zeros(P), policy="uniform", estimator=estimator, step=step, block_size=3,
        learning_rate=scgd.Linear(0.05), radius=0.01, max_evals=6000, seed=0,
    )  # fmt: skip
    assert quadratic(result.x) < 0.3 * quadratic(np.zeros(P))


def test_first_order_uses_jac_and_reports_fun():
    fun = Counted(quadratic)
    jac = Counted(quadratic_gradient)
    result = scgd.minimize(
        fun, np.zeros(P), jac=jac, method="musketeer", learning_rate=0.9, max_evals=4000, seed=0
    )
    assert quadratic(result.x) < 1e-4
    assert result.fun == pytest.approx(quadratic(result.x))
    assert fun.n + jac.n == result.nfev <= 4000


@pytest.mark.parametrize("method", scgd.RECIPES)
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
        fun, np.zeros(P), policy=scgd.Uniform(), estimator="forward", learning_rate=0.1, radius=0.1, max_evals=600,
    )  # fmt: skip
    last = values[-6::2]  # T = floor(sqrt(12)) = 3 steps of two evaluations, base first
    assert result.fun == pytest.approx(np.mean(last))
    assert result.fun_error == pytest.approx(np.std(last, ddof=1) / np.sqrt(3))


def test_averaged_iterate_is_the_mean_of_all():
    recipe = scgd.RECIPES["uniform"].override(learning_rate=0.3, radius=0.1, average=True)
    opt = scgd.Optimizer(np.zeros(P), recipe, max_evals=400, seed=0)
    iterates = []
    while not opt.done:
        probes = opt.ask()
        opt.tell(probes.ids, [quadratic(x) for x in probes.points()])
        iterates.append(opt.theta.copy())
    np.testing.assert_allclose(opt.result().x, np.mean(iterates, axis=0), rtol=1e-12, atol=1e-14)


def test_rows_are_whole_numbers_below_n():
    seen = []

    def fun(x, rows, extra):
        assert rows.shape == (3,) and rows.dtype.kind == "i" and extra == "more"
        seen.append(rows.copy())
        return float(x @ x)

    scgd.minimize(
        fun, np.ones(4), "more", method="uniform", sample=10, batch_size=3, max_evals=400, seed=0
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
        quadratic, np.zeros(P), callback=callback, scale=1.0, max_evals=5000, method="uniform"
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
    with pytest.raises(FloatingPointError, match=r"(?s)evaluation 39, x = .*on_nonfinite='skip'"):
        scgd.minimize(fun, np.zeros(P), method=method, scale=1.0, max_evals=5000)
    fun.n = 0
    result = scgd.minimize(
        fun, np.zeros(P), method=method, scale=1.0, max_evals=8000, on_nonfinite="skip", seed=0
    )
    assert result.n_skipped == result.nfev // 40
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


def test_progress_shows_a_bar(capfd):
    scgd.minimize(quadratic, np.zeros(P), method="musketeer", max_evals=2000, progress=True, seed=0)
    assert "2000/2000" in capfd.readouterr().err


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

    keywords = {"method": "musketeer", "block_size": 4, "max_evals": 60, "seed": 2, "scale": 0.5}
    result = scgd.minimize(fun, np.zeros(P), workers=2, **keywords)
    alone = scgd.minimize(quadratic, np.zeros(P), **keywords)
    assert flag.exists() and np.array_equal(result.x, alone.x)


def test_the_recipe_prints_what_ran():
    result = scgd.minimize(
        quadratic, np.zeros(P), method="musketeer", block_size=2, max_evals=100, seed=0
    )
    text = repr(result.recipe)
    assert (
        "Musketeer(gain='absolute'" in text
        and "block_size=2" in text
        and "CentralDifference()" in text
    )


def test_memory_is_linear_in_p():
    result = scgd.minimize(
        lambda x: float(x[0] ** 2), np.ones(200_000), method="musketeer", max_evals=2000, seed=0
    )
    assert result.x.shape == (200_000,)
