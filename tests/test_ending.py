"""A run ends when nothing is left to gain, says so, and returns the best point seen."""

import numpy as np
import pytest

import scgd
from asking import Recorded
from noises import Stop, controllable
from registry import EVERY_METHOD
from scgd.history import Status
from scgd.searches.arms.ending import DESCENTS, POPULATIONS, Ending
from test_noisy import Numbered

P = 6
START = np.full(P, -1.3)
DETERMINISTIC = ("auto", "race", "descent", "parabola", "bfgs")


def quadratic(x):
    return float(np.arange(1, P + 1) @ (x - 1) ** 2)


def rosenbrock(x):
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def rastrigin(x):
    return float(np.sum(x**2 - 10 * np.cos(2 * np.pi * x) + 10))


@pytest.mark.parametrize("method", DETERMINISTIC)
def test_a_solved_problem_does_not_use_up_its_budget(method):
    result = scgd.minimize(quadratic, START, method=method, max_evals=5000, seed=1)
    assert result.status == Status.CONVERGED and result.success
    assert result.fun < 1e-12 and result.nfev < 700
    assert f"{5000 - result.nfev} evaluations were not needed" in result.message


@pytest.mark.parametrize("fun", [rosenbrock, rastrigin])
def test_what_is_known_to_have_other_minima_is_solved_before_it_ends(fun):
    for seed in range(3):
        result = scgd.minimize(fun, START, max_evals=20_000, seed=seed)
        assert result.fun < 1e-9 and result.status == Status.CONVERGED


def test_a_larger_tolerance_ends_sooner_and_zero_never():
    def fun(x):  # a long valley: decreases shrink slowly
        return float(np.sum(np.abs(np.cumsum(x - 1)) ** 3))

    n = [scgd.minimize(fun, START, tol=tol, max_evals=9000, seed=2).nfev for tol in (1e-2, 1e-10)]
    assert n[0] < n[1]
    assert scgd.minimize(quadratic, START, tol=0, max_evals=3000, seed=2).nfev == 3000


@pytest.mark.parametrize("method", [*DETERMINISTIC, "random"])
def test_nothing_better_than_the_start_is_no_success(method):
    result = scgd.minimize(lambda x: 1.0, START, method=method, max_evals=900, seed=3)
    assert not result.success and "Nothing improved on x0; give scale=" in result.message
    assert np.array_equal(result.x, START)


def test_a_needle_off_a_plain_is_looked_for_to_the_end():
    result = scgd.minimize(lambda x: 1.0, START, max_evals=900, seed=3)
    assert result.nfev == 900  # coming back to f(x0) from elsewhere proves nothing


def test_a_sum_near_the_start_alone_is_not_taken_for_one():
    turned = np.linalg.qr(np.random.default_rng(0).standard_normal((P, P)))[0]
    result = scgd.minimize(
        lambda x: float(np.abs(turned @ x).max()), START, max_evals=8000, seed=1
    )  # linear in one corner, where everything adds up
    assert result.fun < 1e-2


def test_restarts_that_agree_or_many_that_do_not_end_a_race():
    agreed, other, flat = (Ending(1e-3, first=10.0) for _ in range(3))
    agreed.note("descent", 0.0, 0.1)  # ten times tol of what was gained
    assert not agreed.over
    agreed.note("population", 0.0, 0.0999)
    assert agreed.over
    agreed.note("descent", 0.0, 0.11)  # elsewhere and higher: there are other minima
    assert not agreed.over
    agreed.note("descent", 0.0, 0.0)
    assert agreed.over
    agreed.note("descent", 0.0, -0.011)
    assert not agreed.over and agreed.n_agreed == 0
    for _ in range(DESCENTS):
        other.note("descent", 0.0, 0.11)
    assert not other.over
    for _ in range(POPULATIONS):
        other.note("population", 0.0, 0.11)
    assert other.over
    for _ in range(5):
        flat.note("descent", 10.0, 10.0)
    assert not flat.over and flat.failed["descent"] == 5
    assert agreed.worth(0.0) == 0.01 and agreed.worth(np.inf) == agreed.worth(11.0) == 0.0


@pytest.mark.parametrize("patience", [None, 600])
def test_patience_ends_a_noisy_run(patience):
    def fun(x, rows):  # at its minimum: no gain to be had
        return controllable(x, rows)

    result = scgd.minimize(
        fun, np.linspace(-1, 1, 30), sample=50, max_evals=12_000, seed=1, patience=patience
    )
    assert result.nfev > 11_000 if patience is None else result.nfev < 6000
    assert (result.status == Status.CONVERGED) == (patience is not None)


class Flat:
    """Noise around one value, or around a bowl that is never left for good."""

    def __init__(self, bowl=0.0):
        self.bowl, self.rng = bowl, np.random.default_rng(3)

    def __call__(self, x):
        return float(self.bowl * np.sum((x - 1) ** 2)) + self.rng.standard_normal()


@pytest.mark.parametrize(
    ("p", "budget", "method", "bowl"),
    [(5, 3000, "auto", 0.0), (5, 9000, "auto", 1e3),
     pytest.param(120, 9000, "auto", 0.0, marks=pytest.mark.slow),
     (5, 9000, "spsa", 0.0), (5, 9000, "musketeer", 1e-9)],
)  # fmt: skip
def test_patience_ends_every_noisy_plan(p, budget, method, bowl):
    def run(patience, fun):
        return scgd.minimize(fun, np.zeros(p), max_evals=budget, seed=0, scale=1.0, method=method,
                             patience=patience)  # fmt: skip

    result = run(500, Flat(bowl))
    assert result.status == Status.CONVERGED and result.nfev < budget - 500
    assert f"{budget - result.nfev} evaluations were not needed" in result.message
    assert run(None, Flat(bowl)).nfev > 0.95 * budget
    slope = Flat()  # what always gains is not ended
    assert run(500, lambda x: slope(x) - 100 * float(np.sum(x))).nfev > 0.95 * budget


def test_patience_with_a_checkpoint_and_a_larger_budget(tmp_path):
    options = {"seed": 0, "scale": 1.0, "method": "spsa", "patience": 600}
    whole = scgd.minimize(Numbered(quadratic, 0.1), START, max_evals=3000, **options)
    path = tmp_path / "run.npz"
    stopped = Stop(Numbered(quadratic, 0.1), 700)
    scgd.minimize(stopped, START, max_evals=3000, checkpoint=path, **options)
    again = scgd.minimize(
        Numbered(quadratic, 0.1, 700), START, max_evals=3000, checkpoint=path, **options
    )
    assert np.array_equal(again.x, whole.x) and again.message == whole.message


# ---- the best point seen ----------------------------------------------------------------------------


def rippled(x):
    return quadratic(x) + 0.3 * float(np.sin(300.0 * np.sum(x)))


# The method for noise believes no single value, whatever f does.
@pytest.mark.parametrize("method", [name for name in EVERY_METHOD if name != "noisy"])
@pytest.mark.parametrize("start", [0.0, -1.3])
def test_every_method_returns_the_best_point_seen(method, start):
    fun = Recorded(rippled)
    result = scgd.minimize(fun, np.full(P, start), method=method, max_evals=700, seed=0)
    value, x = fun.best()
    assert result.fun == value and result.fun_error == 0.0
    assert np.array_equal(result.x, x)


@pytest.mark.parametrize("method", scgd.RECIPES)
def test_under_noise_the_luckiest_observation_is_not_returned(method):
    rng = np.random.default_rng(0)
    fun = Recorded(lambda x: quadratic(x) * (1 + 0.1 * rng.standard_normal()))
    result = scgd.minimize(fun, START, method=method, max_evals=700, seed=0)
    assert not np.array_equal(result.x, fun.best()[1]) and result.fun_error != 0


@pytest.mark.parametrize(
    ("argument", "value"),
    [("tol", -1e-3), ("tol", 1.0), ("tol", "tight"), ("tol", True), ("tol", np.nan),
     ("patience", 0), ("patience", 2.5), ("patience", "long")],
)  # fmt: skip
def test_bad_wishes_are_refused(argument, value):
    with pytest.raises(ValueError, match=f"{argument} must be"):
        scgd.minimize(quadratic, START, **{argument: value})
