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
