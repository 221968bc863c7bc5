"""One table says how every wrong call fails: with what error and what words."""

import multiprocessing.pool
import re

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import scgd
from scgd.explore import explorer


def fun(x, *rest):
    return float(x @ x)


def minimize(*args, **keywords):
    return scgd.minimize(
        *(args or (fun, np.ones(3))), **{"max_evals": 50, "scale": 1.0, **keywords}
    )


BAD = [
    # x0
    (lambda: minimize(fun, np.ones((2, 2))), ValueError, "x0 must be a non-empty 1-d array, got shape (2, 2)"),
    (lambda: minimize(fun, []), ValueError, "x0 must be a non-empty 1-d array, got shape (0,)"),
    (lambda: minimize(fun, 1.0), ValueError, "x0 must be a non-empty 1-d array, got shape ()"),
    (lambda: minimize(fun, ["a", "b"]), TypeError, "x0 must be an array of real numbers"),
    (lambda: minimize(fun, np.ones(2) * 1j), TypeError, "x0 must be real"),
    (lambda: minimize(fun, [1.0, np.nan]), ValueError, "x0 must be finite, got x0[1] = nan"),
    (lambda: minimize(fun, [np.inf, 1.0]), ValueError, "x0 must be finite, got x0[0] = inf"),
    # bounds
    (lambda: minimize(bounds=[(0, 2)] * 2), ValueError, "bounds must be scipy.optimize.Bounds or 3 pairs"),
    (lambda: minimize(bounds=[(2, 0)] * 3), ValueError, "bounds cross at coordinate 0: low 2.0 > high 0.0"),
    (lambda: minimize(bounds=[(0, 1), (2, 3), (0, 1)]), ValueError, "x0[1] = 1.0 lies outside its bounds [2.0, 3.0]"),
    # names
    (lambda: minimize(method="nonsense"), ValueError, "method must be a Recipe or one of ['auto', 'bfgs'"),
    (lambda: minimize(method=3), ValueError, "method must be a Recipe or one of"),
    (lambda: minimize(policy="nonsense"), ValueError, "policy must be an object or one of ['fixed-weights'"),
    (lambda: minimize(policy="fixed-weights"), ValueError, "needs arguments; pass FixedWeights(...)"),
    (lambda: minimize(policy=scgd.Uniform), TypeError, "policy must be an object or a name, got the class Uniform"),
    (lambda: minimize(estimator="nonsense"), ValueError, "estimator must be an object or one of ['central'"),
    (lambda: minimize(step="nonsense"), ValueError, "step must be an object or one of ['adam'"),
    (lambda: minimize(importance="nonsense"), ValueError, "importance must be None, 'inverse', 'relative' or weights"),
    (lambda: minimize(on_nonfinite="ignore"), ValueError, "on_nonfinite must be 'raise' or 'skip', got 'ignore'"),
    (lambda: scgd.RECIPES["auto"].override(polcy=1), TypeError, "a recipe has no part 'polcy'"),
    # numbers
    (lambda: minimize(max_evals=0), ValueError, "max_evals must be a whole number >= 1, got 0"),
    (lambda: minimize(max_evals=-5), ValueError, "max_evals must be a whole number >= 1, got -5"),
    (lambda: minimize(max_evals=2.5), ValueError, "max_evals must be a whole number >= 1, got 2.5"),
    (lambda: minimize(max_evals=float("inf")), ValueError, "max_evals must be a whole number >= 1, got inf"),
    (lambda: minimize(max_evals="many"), ValueError, "max_evals must be a whole number >= 1, got 'many'"),
    (lambda: minimize(max_time=0), ValueError, "max_time must be a positive number of seconds, got 0"),
    (lambda: minimize(target=float("nan")), ValueError, "target must be a number, got nan"),
    (lambda: minimize(sample=0), ValueError, "sample must be a whole number >= 1, got 0"),
    (lambda: minimize(sample=9, batch_size=0), ValueError, "batch_size must be a whole number >= 1, got 0"),
    (lambda: minimize(seed=-1), ValueError, "seed must be None or a whole number >= 0, got -1"),
    (lambda: minimize(seed="x"), ValueError, "seed must be None or a whole number >= 0, got 'x'"),
    (lambda: minimize(block_size=0), ValueError, "block_size must be a whole number >= 1, got 0"),
    (lambda: minimize(block_size=1.5), ValueError, "block_size must be a whole number >= 1, got 1.5"),
    (lambda: minimize(learning_rate=0.0), ValueError, "learning_rate must be positive and finite, got 0.0"),
    (lambda: minimize(learning_rate="x"), TypeError, "learning_rate must be a number or a callable of t, got 'x'"),
    (lambda: minimize(radius=-1.0), ValueError, "radius must be positive and finite, got -1.0"),
    (lambda: minimize(scale=0.0), ValueError, "scale must be positive and finite, got 0.0"),
    (lambda: minimize(scale=[1.0, 2.0]), ValueError, "scale must be a number or 3 numbers, got shape (2,)"),
    (lambda: minimize(importance=[1.0, 2.0]), ValueError, "importance has 2 weights for 3 coordinates"),
    (lambda: minimize(importance=[1.0, 0.0, 1.0]), ValueError, "importance weights must be positive and finite"),
    # functions
    (lambda: minimize("fun", np.ones(3)), TypeError, "fun must be callable, got str"),
    (lambda: minimize(lambda x: x, np.ones(3)), TypeError, "fun must return one real number, got ndarray of shape (3,)"),
    (lambda: minimize(lambda x: x[:1], np.ones(3)), TypeError, "got ndarray of shape (1,)"),
    (lambda: minimize(lambda x: None, np.ones(3)), TypeError, "fun must return one real number, got NoneType"),
    (lambda: minimize(lambda x: "1", np.ones(3)), TypeError, "fun must return one real number, got str"),
    (lambda: minimize(lambda x: 1j, np.ones(3)), TypeError, "fun must return one real number, got complex"),
    (lambda: minimize(lambda x: x, np.ones(3), method="spsa"), TypeError, "fun must return one real number"),
    (lambda: minimize(lambda x: 1.0, np.ones(3), vectorized=True), TypeError, "must return 2 values for 2 points"),
    (lambda: minimize(estimator="first-order"), ValueError, "estimator 'first-order' needs jac="),
    (lambda: minimize(jac=lambda x, k: [1.0, 2.0]), TypeError, "jac must return 1 partial derivatives"),
    # policies
    (lambda: scgd.Musketeer(mixing=0.0), ValueError, "mixing must lie in (0, 1] with l1 normalization, got 0.0; use softmax"),
    (lambda: scgd.Musketeer(mixing=1.5), ValueError, "mixing must lie in (0, 1] with l1 normalization, got 1.5"),
    (lambda: scgd.Musketeer(normalization="softmax", mixing=-0.1), ValueError, "mixing must lie in [0, 1], got -0.1"),
    (lambda: scgd.Musketeer(gain="best"), ValueError, "gain must be one of ('average', 'absolute', 'square'), got 'best'"),
    (lambda: scgd.Musketeer(normalization="l2"), ValueError, "normalization must be one of ('l1', 'softmax')"),
    (lambda: scgd.Musketeer(memory="none"), ValueError, "memory must be one of"),
    (lambda: scgd.Musketeer(sharpness=0.0), ValueError, "sharpness must be positive and finite, got 0.0"),
    (lambda: scgd.Musketeer(length=0), ValueError, "length must be a whole number of draws >= 1, got 0"),
    (lambda: scgd.FixedWeights((0.0, 0.0)), ValueError, "non-negative with a positive sum"),
    (lambda: scgd.FixedWeights((1.0, -1.0)), ValueError, "non-negative with a positive sum"),
    (lambda: scgd.FixedWeights((1.0, np.nan)), ValueError, "must be a list of finite numbers"),
    (lambda: minimize(policy=scgd.FixedWeights((1.0, 2.0))), ValueError, "FixedWeights has 2 values for 3 coordinates"),
    (lambda: scgd.GradientWeights(0.0), ValueError, "power must be positive and finite, got 0.0"),
    (lambda: scgd.Adam(beta1=1.0), ValueError, "beta1 must lie in [0, 1), got 1.0"),
    # ask and tell
    (lambda: scgd.Optimizer(np.ones(3)).tell([0], [1.0]), RuntimeError, "nothing was asked; call ask() before tell()"),
    (lambda: wrong_id(), ValueError, "id 77 was not asked or is already used"),
    (lambda: wrong_count(), ValueError, "tell got 2 ids and 1 values; give one each"),
    (lambda: ask_too_often(), RuntimeError, "the budget of 2 evaluations is used up; call extend() to go on"),
    # workers
    (lambda: minimize(workers=0), ValueError, "workers must be a number >= 1 or -1 for all cores, got 0"),
    (lambda: minimize(workers="two"), TypeError, "workers must be a number, an Executor, a distributed.Client or a map-like callable, got str"),
    (lambda: minimize(workers=2, vectorized=True), ValueError, "vectorized=True evaluates in this process"),
    (lambda: with_pool(), TypeError, "multiprocessing.Pool hangs for ever when a worker dies"),
    (lambda: minimize(workers=lambda f, tasks: []), RuntimeError, "workers returned 0 results for"),
    (lambda: scgd.Checkpoint("x", every=-1), ValueError, "every must be a number of seconds >= 0, got -1"),
]  # fmt: skip


def wrong_id():
    opt = scgd.Optimizer(np.ones(3), "uniform", scale=1.0)
    opt.ask()
    opt.tell([77], [1.0])


def wrong_count():
    opt = scgd.Optimizer(np.ones(3), "uniform", scale=1.0)
    opt.tell(opt.ask().ids, [1.0])


def ask_too_often():
    opt = scgd.Optimizer(np.ones(3), "uniform", max_evals=2, scale=1.0)
    opt.tell(opt.ask().ids, [1.0, 2.0])
    opt.ask()


def with_pool():
    with multiprocessing.pool.ThreadPool(1) as pool:
        minimize(workers=pool.map)


@pytest.mark.parametrize("case", range(len(BAD)))
def test_wrong_calls_fail_clearly(case):
    call, error, message = BAD[case]
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    with pytest.raises(error, match=re.escape(message)):
        call()
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@given(
    value=st.one_of(
        st.none(), st.text(), st.lists(st.integers()), st.complex_numbers(), st.binary()
    )
)
def test_any_odd_value_is_a_type_error(value):
    with pytest.raises(TypeError, match="fun must return one real number"):
        minimize(lambda x: value, np.ones(3))


@given(
    x0=st.one_of(
        st.none(),
        st.text(min_size=1),
        st.dictionaries(st.text(), st.integers()),
        st.binary(min_size=1),
    )
)
def test_any_odd_start_is_refused(x0):
    with pytest.raises((TypeError, ValueError), match="x0 must be"):
        minimize(fun, x0)


@numba.njit
def raises_later(x, calls):
    calls[0] += 1
    if calls[0] == 100:
        raise ValueError("too far")
    return np.sum(x * x)


def test_a_compiled_function_that_raises_leaves_a_consistent_state():
    opt = scgd.Optimizer(np.ones(5), "musketeer", scale=1.0, max_evals=1000, seed=0)
    other = scgd.Optimizer(np.ones(5), "musketeer", scale=1.0, max_evals=1000, seed=0)
    with pytest.raises(ValueError, match="too far"):
        explorer(opt, raises_later, (np.zeros(1),)).run(400, stop_at_phase=False)
    explorer(other, lambda x: float(np.sum(x * x)), ()).run(49, stop_at_phase=False)
    assert opt.nfev == other.nfev == 98 and np.array_equal(opt.theta, other.theta)
    assert np.array_equal(opt.sampler.weights(), other.sampler.weights())


def test_a_raising_function_leaves_x_restored():
    opt = scgd.Optimizer(np.ones(5), "uniform", scale=1.0, max_evals=100, seed=0)

    def crash(x):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        explorer(opt, crash, ()).run(10, stop_at_phase=False)
    assert np.array_equal(opt.theta, np.ones(5)) and opt.nfev == 0
