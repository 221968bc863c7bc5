"""One table says how every wrong call fails: with what error and what words."""

import dataclasses
import multiprocessing.pool
import re

import numba
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

import scgd
from asking import run_loop, same_state, steps_of


def fun(x, *rest):
    return float(x @ x)


DISC = scipy.optimize.NonlinearConstraint(fun, -np.inf, 1.0)


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
    (lambda: minimize(bounds=(0, 1)), ValueError, "bounds must be scipy.optimize.Bounds or 3 pairs (low, high), got (0, 1)"),
    (lambda: minimize(bounds=5), ValueError, "bounds must be scipy.optimize.Bounds or 3 pairs (low, high), got 5"),
    (lambda: minimize(bounds=[(0, 2), (0, 2), (0,)]), ValueError, "bounds must be scipy.optimize.Bounds or 3 pairs (low, high)"),
    (lambda: minimize(bounds=[("a", 2)] * 3), ValueError, "bounds must be scipy.optimize.Bounds or 3 pairs (low, high)"),
    (lambda: minimize(bounds=[(0, 2), (0, np.nan), (0, 2)]), ValueError, "the bounds of coordinate 1 are not numbers; None means no bound"),
    (lambda: minimize(bounds=[(np.nan, 2)] * 3), ValueError, "the bounds of coordinate 0 are not numbers"),
    (lambda: minimize(bounds=scipy.optimize.Bounds([0, 0], [2, 2])), ValueError, "bounds do not fit the 3 coordinates of x0"),
    # names
    (lambda: minimize(method="nonsense"), ValueError, "method must be scgd.SCGD(...), a generator function or a name, got 'nonsense'"),
    (lambda: minimize(method=3), ValueError, "method must be scgd.SCGD(...), a generator function or a name"),
    (lambda: minimize(method=scgd.SCGD(policy="nonsense")), ValueError, "policy must be an object or one of ['adaptive', "),
    (lambda: minimize(method=scgd.SCGD(policy="fixed-weights")), ValueError, "needs arguments; pass FixedWeights(...)"),
    (lambda: minimize(method=scgd.SCGD(policy=scgd.Uniform)), TypeError, "policy must be an object or a name, got the class Uniform"),
    (lambda: minimize(method=scgd.SCGD(estimator="nonsense")), ValueError, "estimator must be an object or one of ['central'"),
    (lambda: minimize(method=scgd.SCGD(step="nonsense")), ValueError, "step must be an object or one of ['adam'"),
    (lambda: minimize(method=scgd.SCGD(importance="nonsense")), ValueError, "importance must be None, 'inverse', 'relative', a number, weights"),
    (lambda: minimize(failures="ignore"), ValueError, "failures (nonfinite) must be one of ('raise', 'skip', 'worst'), got 'ignore'"),
    (lambda: minimize(maximize=1), TypeError, "maximize must be True or False, got 1"),
    (lambda: minimize(maximize="yes"), TypeError, "maximize must be True or False, got 'yes'"),
    (lambda: scgd.Optimizer(np.ones(3), maximize=None), TypeError, "maximize must be True or False, got None"),
    (lambda: minimize(failures="RuntimeError"), ValueError, "failures (nonfinite) must be one of ('raise', 'skip', 'worst'), got 'RuntimeError'"),
    (lambda: minimize(failures=(ValueError, 3)), TypeError, "catch must be a subclass of Exception or a tuple of them"),
    (lambda: minimize(failures=KeyboardInterrupt), TypeError, "catch must be a subclass of Exception or a tuple of them"),
    (lambda: minimize(failures=None), TypeError, "got None"),
    (lambda: minimize(lambda x: "1", np.ones(3), maximize=True), TypeError, "fun must return one real number, got str"),
    (lambda: minimize(lambda x: 1.0, np.ones(3), maximize=True, workers=scgd.Workers(vectorized=True)), TypeError, "must return 1 values for 1 points"),
    (lambda: scgd.SCGD(polcy=1), TypeError, "unexpected keyword argument 'polcy'"),
    # numbers
    (lambda: minimize(max_evals=0), ValueError, "max_evals must be a whole number >= 1, got 0"),
    (lambda: minimize(max_evals=-5), ValueError, "max_evals must be a whole number >= 1, got -5"),
    (lambda: minimize(max_evals=2.5), ValueError, "max_evals must be a whole number >= 1, got 2.5"),
    (lambda: minimize(max_evals=float("inf")), ValueError, "max_evals must be a whole number >= 1, got inf"),
    (lambda: minimize(max_evals="many"), ValueError, "max_evals must be a whole number >= 1, got 'many'"),
    (lambda: minimize(max_time=0), ValueError, "max_time must be a positive number of seconds, got 0"),
    (lambda: minimize(target=float("nan")), ValueError, "target must be a number, got nan"),
    (lambda: minimize(sample=0), ValueError, "sample must be a whole number >= 1, got 0"),
    (lambda: minimize(sample=scgd.Rows(9, 0)), ValueError, "batch_size must be a whole number >= 1, got 0"),
    (lambda: minimize(seed=-1), ValueError, "seed must be None, a whole number >= 0 or a SeedSequence, got -1"),
    (lambda: minimize(seed="x"), ValueError, "seed must be None, a whole number >= 0 or a SeedSequence, got 'x'"),
    (lambda: minimize(method=scgd.SCGD(block_size=0)), ValueError, "block_size must be a whole number >= 1, got 0"),
    (lambda: minimize(method=scgd.SCGD(block_size=1.5)), ValueError, "block_size must be a whole number >= 1, got 1.5"),
    (lambda: minimize(method=scgd.SCGD(learning_rate=0.0)), ValueError, "learning_rate must be positive and finite, got 0.0"),
    (lambda: minimize(method=scgd.SCGD(learning_rate="x")), TypeError, "learning_rate must be a number or a callable of t, got 'x'"),
    (lambda: minimize(method=scgd.SCGD(radius=-1.0)), ValueError, "radius must be positive and finite, got -1.0"),
    (lambda: minimize(noise=-0.1), ValueError, "noise must be the standard deviation of fun's noise, a finite number >= 0 (0: fun repeats itself), got -0.1"),
    (lambda: minimize(noise=float("nan")), ValueError, "noise must be the standard deviation"),
    (lambda: minimize(noise=float("inf")), ValueError, "noise must be the standard deviation"),
    (lambda: minimize(noise="small"), ValueError, "noise must be the standard deviation"),
    (lambda: minimize(noise=True), ValueError, "noise must be the standard deviation"),
    (lambda: minimize(noise=[0.1]), ValueError, "noise must be the standard deviation"),
    (lambda: minimize(noise=0.1, sample=5), ValueError, "noise= is for independent noise; with sample= the sample is the noise"),
    (lambda: minimize(noise=0.1, method="musketeer"), ValueError, "noise is used by method auto, not by 'musketeer'; drop it"),
    (lambda: minimize(noise=0.1, method="dds"), ValueError, "noise is used by method auto, not by 'dds'"),
    (lambda: scgd.Optimizer(np.ones(3), noise=-1), ValueError, "noise must be the standard deviation"),
    (lambda: minimize(scale=0.0), ValueError, "scale must be positive and finite, got 0.0"),
    (lambda: minimize(scale=[1.0, 2.0]), ValueError, "scale must be a number or 3 numbers, got shape (2,)"),
    (lambda: minimize(method=scgd.SCGD(importance=[1.0, 2.0])), ValueError, "importance has 2 weights for 3 coordinates"),
    (lambda: minimize(method=scgd.SCGD(importance=[1.0, 0.0, 1.0])), ValueError, "importance weights must be positive and finite"),
    # functions
    (lambda: minimize("fun", np.ones(3)), TypeError, "fun must be callable, got str"),
    (lambda: minimize(lambda x: x, np.ones(3)), TypeError, "fun must return one real number, got ndarray of shape (3,)"),
    (lambda: minimize(lambda x: x[:1], np.ones(3)), TypeError, "got ndarray of shape (1,)"),
    (lambda: minimize(lambda x: None, np.ones(3)), TypeError, "fun must return one real number, got NoneType"),
    (lambda: minimize(lambda x: "1", np.ones(3)), TypeError, "fun must return one real number, got str"),
    (lambda: minimize(lambda x: 1j, np.ones(3)), TypeError, "fun must return one real number, got complex"),
    (lambda: minimize(lambda x: x, np.ones(3), method="spsa"), TypeError, "fun must return one real number"),
    (lambda: minimize(lambda x: 1.0, np.ones(3), workers=scgd.Workers(vectorized=True)), TypeError, "must return 1 values for 1 points"),
    (lambda: minimize(method=scgd.SCGD(estimator="first-order")), ValueError, "estimator 'first-order' needs jac="),
    (lambda: minimize(jac=lambda x, k: [1.0, 2.0]), TypeError, "jac must return 3 partial derivatives"),
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
    (lambda: minimize(method=scgd.SCGD(policy=scgd.FixedWeights((1.0, 2.0)))), ValueError, "FixedWeights has 2 values for 3 coordinates"),
    (lambda: scgd.GradientWeights(0.0), ValueError, "power must be positive and finite, got 0.0"),
    (lambda: scgd.Adam(beta1=1.0), ValueError, "beta1 must lie in [0, 1), got 1.0"),
    # ask and tell
    (lambda: scgd.Optimizer(np.ones(3)).tell(0, 1.0), ValueError, "evaluation 0 was not asked, or has been answered"),
    (lambda: scgd.Optimizer(np.ones(3)).fail(0), ValueError, "evaluation 0 was not asked, or has been answered"),
    (lambda: asked().tell([77], [1.0]), ValueError, "evaluation 77 was not asked, or has been answered"),
    (lambda: asked().tell([0, 0], [1.0, 1.0]), ValueError, "tell got an evaluation twice; give each of them one value"),
    (lambda: asked().tell([0, 1], [1.0]), ValueError, "tell got 2 ids and 1 values; give one each"),
    (lambda: ask_after_the_end(), RuntimeError, "the search has ended: Converged"),
    (lambda: ask_too_often(), RuntimeError, "the budget of 2 evaluations is used up; extend() it to go on"),
    (lambda: asked().ask(0), ValueError, "n must be a whole number >= 1, got 0"),
    (lambda: asked().ask(1.5), ValueError, "n must be a whole number >= 1, got 1.5"),
    (lambda: asked().tell(0, 1.0, error=-1.0), ValueError, "error must be a standard error >= 0, got -1.0"),
    (lambda: asked().tell(0, 1.0, error="x"), TypeError, "error must be one real number, got 'x'"),
    (lambda: asked().tell([0, 1], [1.0, 2.0], error=[1.0]), ValueError, "tell got 2 ids, 2 values and 1 errors; give one each"),
    (lambda: asked().add([1.0], 2.0), ValueError, "x must be 3 finite numbers, got [1.]"),
    (lambda: asked().add("abc", 2.0), TypeError, "x must be an array of real numbers, got 'abc'"),
    (lambda: asked().add(np.ones(3), np.nan), ValueError, "value must be finite, got nan; leave measurements that failed out"),
    (lambda: asked().add(np.ones(3), None), TypeError, "value must be one real number, got None"),
    (lambda: asked().add(np.ones(3), 1.0, error=-2.0), ValueError, "error must be a standard error >= 0, got -2.0"),
    (lambda: scgd.Optimizer.load(3), TypeError, "checkpoint must be the path of a file, got 3"),
    # constraints
    (lambda: minimize(constraints=3), TypeError, "constraints must be a scipy.optimize.LinearConstraint, a NonlinearConstraint or a list of them, got 3"),
    (lambda: minimize(constraints=[fun]), TypeError, "constraints must be a scipy.optimize.LinearConstraint, a NonlinearConstraint or a list of them, got <function fun"),
    (lambda: minimize(constraints={"type": "eq", "fun": fun}), TypeError, "constraints must be a scipy.optimize.LinearConstraint"),
    (lambda: minimize(constraints=scipy.optimize.LinearConstraint(np.ones(2), 1, 1)), ValueError, "must have 3 finite columns, one per coordinate, got shape (1, 2)"),
    (lambda: minimize(constraints=scipy.optimize.LinearConstraint(np.ones(3), 2, 1)), ValueError, "a constraint cannot hold: lb[0] = 2.0, ub[0] = 1.0"),
    (lambda: minimize(constraints=scipy.optimize.NonlinearConstraint(fun, np.nan, 1)), ValueError, "a constraint cannot hold: lb[0] = nan, ub[0] = 1.0"),
    (lambda: minimize(constraints=scipy.optimize.NonlinearConstraint(fun, [0, 0], 1)), ValueError, "lb and ub of a constraint do not fit its 1 values"),
    (lambda: minimize(constraints=scipy.optimize.NonlinearConstraint(np.diag, 0, 1)), ValueError, "a constraint must return a list of numbers, got shape (3, 3)"),
    (lambda: minimize(constraints=DISC, jac=lambda x, k: x[k]), ValueError, "constraints do not go with jac or vectorized; drop those"),
    (lambda: minimize(constraints=DISC, workers=scgd.Workers(vectorized=True)), ValueError, "constraints do not go with jac or vectorized; drop those"),
    (lambda: scgd.Optimizer(np.ones(3), "uniform", first_order=True, constraints=DISC), ValueError, "constraints do not go with first_order; drop it"),
    # earlier measurements
    (lambda: minimize(known=5), TypeError, "known must be a list of pairs (x, value), got 5"),
    (lambda: minimize(known={"x": 1}), TypeError, "known must be a list of pairs (x, value), got {'x': 1}"),
    (lambda: minimize(known=[1.0]), TypeError, "known[0] must be a pair (x, value), got 1.0"),
    (lambda: minimize(known=[(np.ones(2), 1.0)]), ValueError, "the point of known[0] must be 3 finite numbers, got [1. 1.]"),
    (lambda: minimize(known=[(np.ones(3), 1.0), (np.ones(3), np.inf)]), ValueError, "the value of known[1] must be finite, got inf"),
    (lambda: minimize(known=[(np.ones(3), "1")]), TypeError, "the value of known[0] must be one real number, got '1'"),
    (lambda: minimize(known=[([0.0, 5.0, 0.0], 1.0)], bounds=[(0, 2)] * 3), ValueError, "the point of known[0] lies outside the bounds of coordinate 1; leave it out"),
    (lambda: scgd.Optimizer(np.ones(3), known=[3]), TypeError, "known[0] must be a pair (x, value), got 3"),
    (lambda: asked().tell(0, None), TypeError, "values must be real numbers, one per trial, got None; NaN, an exception or fail(id) for one that failed"),
    (lambda: asked().tell(0, "1"), TypeError, "values must be real numbers, one per trial, got '1'"),
    (lambda: asked().tell(0, [1.0]), TypeError, "values must be real numbers, one per trial, got [1.0]"),
    (lambda: asked().tell(0, np.inf), FloatingPointError, "fun returned inf at evaluation 0, x = ["),
    # what excludes each other
    (lambda: minimize(workers=scgd.Workers(asynchronous=4, vectorized=True)), ValueError, "a vectorized fun takes whole questions; drop asynchronous="),
    (lambda: minimize(jac=lambda x, k: 2 * x[k], method=scgd.SCGD(policy="uniform", estimator=scgd.SPSA())), ValueError, "jac and an estimator of differences exclude each other"),
    (lambda: minimize(jac=lambda x, k: 2 * x[k], method="dds"), ValueError, "method 'dds' does not use jac"),
    # workers
    (lambda: minimize(workers=0), ValueError, "workers must be a number >= 1 or -1 for all cores, got 0"),
    (lambda: minimize(workers="two"), TypeError, "workers must be a number, an Executor, a distributed.Client or a map-like callable, got str"),
    (lambda: minimize(workers=scgd.Workers(2, vectorized=True)), ValueError, "vectorized=True evaluates in this process"),
    (lambda: with_pool(), TypeError, "multiprocessing.Pool hangs for ever when a worker dies"),
    (lambda: minimize(workers=lambda f, tasks: []), RuntimeError, "workers returned 0 results for"),
    (lambda: scgd.Checkpoint("x", every=-1), ValueError, "every must be a number of seconds >= 0, got -1"),
]  # fmt: skip


def asked():
    opt = scgd.Optimizer(np.ones(3), "uniform", scale=1.0)
    opt.ask()
    return opt


def ask_too_often():
    opt = scgd.Optimizer(np.ones(3), METHOD, max_evals=2)
    opt.tell([trial.id for trial in opt.ask()], [1.0, 2.0])
    opt.ask()


def ask_after_the_end():
    opt = scgd.Optimizer(np.ones(3), "auto", max_evals=5000, seed=0)
    while True:
        (trial,) = opt.ask(1)
        opt.tell(trial.id, float(trial.x @ trial.x))


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


METHOD = scgd.SCGD("uniform", learning_rate=0.1, radius=0.1)
"""Steps in units of x, before which nothing is measured."""


def test_a_compiled_function_that_raises_leaves_a_consistent_state():
    opt, other = (scgd.Optimizer(np.ones(5), METHOD, max_evals=1000, seed=0) for _ in range(2))
    with pytest.raises(ValueError, match="too far"):
        run_loop(opt, raises_later, (np.zeros(1),), 800)
    run_loop(other, lambda x: float(np.sum(x * x)), (), 98)
    assert opt.run.nfev == other.run.nfev == 98
    same_state(opt, other)


@pytest.mark.parametrize(
    "parts", [{}, {"estimator": "forward"}, {"block_size": 3}, {"estimator": "spsa"}],
    ids=["central", "forward", "block", "joint"],
)  # fmt: skip
@pytest.mark.parametrize("when", [1, 2, 7, 50])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, StopIteration])
def test_a_raising_function_leaves_the_steps_before_it(parts, when, error):
    """The step in hand has not happened: point, buffer and random streams are as before it."""
    recipe = dataclasses.replace(METHOD, **parts)
    opt, other = (scgd.Optimizer(np.ones(5), recipe, max_evals=1000, seed=0) for _ in range(2))
    calls = 0

    def crash(x):
        nonlocal calls
        calls += 1
        if calls == when:
            raise error("no")
        return fun(x)

    with pytest.raises(error):
        run_loop(opt, crash)
    cost = opt.run.strategy.cost
    assert opt.run.nfev == (when - 1) // cost * cost
    assert np.array_equal(steps_of(opt).point.buffer, opt.x)
    if opt.run.nfev:
        run_loop(other, fun, (), opt.run.nfev)
    same_state(opt, other)
    run_loop(opt, fun)
    run_loop(other, fun)
    same_state(opt, other)


@pytest.mark.parametrize("value", [None, "1", [1.0], 1j, np.ones(2)])
def test_tell_refuses_at_once_and_the_question_stays_open(value):
    opt = scgd.Optimizer(np.ones(3), METHOD, seed=0)
    low, high = opt.ask()
    before = opt.state_dict()
    with pytest.raises(TypeError, match="values must be real numbers, one per trial"):
        opt.tell(low.id, value)
    np.testing.assert_equal(opt.state_dict(), before)
    assert [trial.id for trial in opt.out()] == [low.id, high.id]
    opt.tell([high.id, low.id], [1.0, 2.0])
    assert opt.run.nfev == 2 and not opt.out()


def test_a_value_that_is_refused_can_be_told_again():
    opt = scgd.Optimizer(np.ones(3), METHOD, seed=0)
    low, high = opt.ask()
    with pytest.raises(FloatingPointError, match="failures='skip'"):
        opt.tell(low.id, np.inf)
    opt.tell([low.id, high.id], [1.0, 2.0])
    assert opt.run.nfev == 2 and opt.run.ledger.n_failed == 0


@pytest.mark.parametrize(
    "bounds", [[(None, 2.0)] * 3, [(-np.inf, 2.0)] * 3, [(0.0, None)] * 3, [(0.0, 2.0)]]
)
def test_bounds_that_are_open_or_shared(bounds):
    result = minimize(fun, np.ones(3), bounds=bounds, max_evals=2000, seed=0)
    assert np.all(np.abs(result.x) < 0.05)
