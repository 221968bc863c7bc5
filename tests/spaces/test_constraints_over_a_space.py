"""Constraints whose functions take parameters: the answer is feasible, and good."""

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint

from scgd import Choice, Float, Int, Optimizer, Space, minimize

SPACE = Space(n=Int(1, 20), radius=Float(1, 10), kind=Choice("thin", "thick"))


def cost(params):
    return params["n"] * (1.0 if params["kind"] == "thin" else 1.5) + params["radius"]


def strength(params):
    return [params["n"] * params["radius"] ** 2, 2.0 if params["kind"] == "thick" else 1.0]


STRONG = NonlinearConstraint(strength, [100, 1.5], np.inf)


@pytest.mark.parametrize("method", ["auto", "dds"])
def test_the_answer_is_feasible_and_good(method):
    result = minimize(cost, SPACE, constraints=STRONG, method=method, max_evals=150, seed=0)
    assert result.maxcv == 0 and result.success and result.nfev == 150
    assert result.params["kind"] == "thick" and min(strength(result.params)) >= 1.5
    assert result.fun == cost(result.params) and result.fun < 11.7  # 11.5 is the least


def test_whole_numbers_that_hang_together():
    """A pressure vessel: thicknesses of whole sixteenths of an inch, and its radius and length."""
    space = Space(shell=Int(1, 99), head=Int(1, 99), radius=Float(10, 200), length=Float(10, 200))

    def design(params):
        return params["shell"] / 16, params["head"] / 16, params["radius"], params["length"]

    def price(params):
        s, h, r, long = design(params)
        return 0.6224 * s * r * long + 1.7781 * h * r**2 + 3.1661 * s**2 * long + 19.84 * s**2 * r

    def limits(params):
        s, h, r, long = design(params)
        volume = np.pi * r**2 * long + 4 / 3 * np.pi * r**3
        return [s - 0.0193 * r, h - 0.00954 * r, volume / 1_296_000 - 1]

    holds = NonlinearConstraint(limits, 0, np.inf)
    found = [
        minimize(price, space, constraints=holds, max_evals=4000, seed=seed) for seed in range(3)
    ]
    assert all(result.maxcv == 0 for result in found)
    assert np.median([result.fun for result in found]) < 6061  # 6,090 is the next best design


def test_real_numbers_end_exactly():
    space = Space(x=Float(-2, 2), y=Float(-2, 2))
    disc = NonlinearConstraint(lambda q: q["x"] ** 2 + q["y"] ** 2, -np.inf, 1)
    result = minimize(
        lambda q: 100 * (q["y"] - q["x"] ** 2) ** 2 + (1 - q["x"]) ** 2,
        space, constraints=disc, max_evals=800, seed=0,
    )  # fmt: skip
    assert result.maxcv == 0 and result.fun < 0.04568  # 0.0456748 is the least


def test_ask_and_tell_ends_as_minimize_does():
    opt = Optimizer(SPACE, constraints=STRONG, max_evals=60, seed=0)
    while not opt.done:
        for trial in opt.ask(1):
            opt.tell(trial.id, cost(trial.params))
    once = minimize(cost, SPACE, constraints=STRONG, max_evals=60, seed=0)
    assert opt.result().fun == once.fun and opt.result().maxcv == 0


def test_failures_and_noise():
    rng = np.random.default_rng(0)

    def fun(params):
        return float("nan") if rng.random() < 0.2 else cost(params) + 0.1 * rng.standard_normal()

    result = minimize(fun, SPACE, constraints=STRONG, max_evals=120, failures="skip", seed=0)
    assert result.maxcv == 0 and cost(result.params) < 14


def test_what_cannot_hold_is_said():
    never = NonlinearConstraint(lambda params: params["radius"], 11, np.inf)
    result = minimize(cost, SPACE, constraints=never, max_evals=40, seed=0)
    assert not result.success and "No feasible point" in result.message
    assert result.maxcv == pytest.approx(1.0, abs=0.5)


def test_a_matrix_has_no_columns_here():
    with pytest.raises(ValueError, match="NonlinearConstraint"):
        minimize(cost, SPACE, constraints=LinearConstraint(np.ones(3), 0, 1), max_evals=9)
