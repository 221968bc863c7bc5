"""``scipy.optimize.minimize(method=scgd.scipy_method)``: SciPy's words, our run."""

import numpy as np
import pytest
from scipy.optimize import Bounds, minimize, rosen

import scgd


def shifted(x, centre, weight=1.0):
    return weight * float(np.sum((x - centre) ** 2))


def go(fun, x0, **words):
    return minimize(fun, x0, method=scgd.scipy_method, **words)


def test_it_is_our_run():
    there = go(rosen, [0.5, 0.5, 0.5], options={"maxfev": 300, "seed": 4})
    here = scgd.minimize(rosen, [0.5, 0.5, 0.5], max_evals=300, seed=4)
    assert np.array_equal(there.x, here.x) and there.fun == here.fun and there.nfev == here.nfev
    assert len(there.evaluations) == there.nfev


def test_args_and_bounds():
    result = go(shifted, np.zeros(3), args=(2.0, 3.0), bounds=Bounds(-1, 1),
                options={"maxfev": 200, "seed": 0})  # fmt: skip
    assert np.allclose(result.x, 1.0) and result.fun == pytest.approx(9.0)
    assert np.allclose(go(shifted, np.zeros(2), args=0.5, options={"maxfev": 200}).x, 0.5)
    pairs = go(shifted, np.zeros(2), args=(2.0,), bounds=[(None, 1), (0, None)],
               options={"maxfev": 200, "seed": 0})  # fmt: skip
    assert np.allclose(pairs.x, [1.0, 2.0], atol=1e-3)


def bowl(x, *rest):
    return shifted(x, 1.0) + 3 * float(np.sum(x - 1.0)) ** 2


@pytest.mark.parametrize("kind", ["beside the value", "a function"])
def test_gradients_are_used(kind):
    calls = []

    def slopes(x, *rest):
        calls.append(len(rest))
        return 2 * (x - 1.0) + 6 * np.sum(x - 1.0)

    words = {"options": {"maxfev": 400, "seed": 0, "scale": 1.0}}
    if kind == "a function":
        result = go(bowl, np.zeros(3), args=(1,), jac=slopes, **words)
        assert set(calls) == {1}
    else:
        result = go(lambda x: (bowl(x), slopes(x)), np.zeros(3), jac=True, **words)
    assert len(calls) >= 3 and result.fun < 1e-8


def test_the_function_may_keep_and_change_x():
    kept = []

    def fun(x):
        kept.append(x)
        x *= 1.0
        return np.array([rosen(x)])

    go(fun, np.zeros(2), options={"maxfev": 50, "seed": 0, "method": "musketeer"})
    assert len({x.tobytes() for x in kept}) > 20


def test_both_kinds_of_callback():
    seen = []

    def by_point(xk):
        seen.append(("x", xk.shape))

    def by_result(intermediate_result):
        seen.append(("result", intermediate_result.nfev))
        if intermediate_result.nfev > 100:
            raise StopIteration

    options = {"maxfev": 300, "seed": 0, "method": "musketeer"}
    go(rosen, np.zeros(3), callback=by_point, options=options)
    assert seen and all(one == ("x", (3,)) for one in seen)
    seen.clear()
    result = go(rosen, np.zeros(3), callback=by_result, options=options)
    assert seen[-1] == ("result", result.nfev) and 100 < result.nfev < 300 and result.status == 3


def test_maxiter_ends_the_run():
    result = go(rosen, np.zeros(3), options={"maxiter": 20, "seed": 0, "method": "musketeer"})
    assert 20 <= result.nit < 30 and "maxiter=20" in result.message
    assert "callback" not in result.message  # nobody gave one


def test_disp_prints(capsys):
    go(rosen, np.zeros(2), options={"maxfev": 30, "seed": 0, "disp": True})
    assert "auto: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, error, message",
    [
        ({"options": {"maxfv": 3}}, TypeError, "did you mean 'maxfev'"),
        ({"options": {"x0": 3}}, TypeError, "positional|multiple|does not know"),
        ({"options": {"maxiter": 0}}, ValueError, "maxiter must be a whole number"),
        ({"constraints": {"type": "le", "fun": rosen}}, ValueError, "needs type='eq' or 'ineq'"),
        ({"bounds": [(1, 2), (3, 4)]}, ValueError, "outside its bounds"),
    ],
)
def test_wrong_words_are_named(words, error, message):
    with pytest.raises(error, match=message):
        go(rosen, np.zeros(2), **words)


def test_what_is_not_used_is_said():
    with pytest.warns(RuntimeWarning, match="does not use hess"):
        go(rosen, np.zeros(2), hess=lambda x: np.eye(2), options={"maxfev": 20})


@pytest.mark.parametrize("kind", ["eq", "ineq"])
def test_constraints_are_handed_on(kind):
    limit = {"type": kind, "fun": lambda x, total: total - x.sum(), "args": (1.0,)}
    options = {"maxfev": 1000, "seed": 0}
    result = go(shifted, np.zeros(2), args=(2.0,), constraints=limit, options=options)
    assert np.allclose(result.x, 0.5, atol=0.02)
