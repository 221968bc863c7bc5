"""Words people look for: maximize, catch, failures="worst"; the result counts failures."""

import contextlib
import io
import json
import sys

import numba
import numpy as np
import pytest

import scgd
from asking import same_run
from grouped import grouped
from registry import MINIMUM, P, quadratic, quadratic_gradient
from scgd.cli import main
from scgd.history import Status
from scgd.outcomes import CAUGHT, is_caught

METHODS = ["auto", "musketeer", "uniform", "spsa", "dds", "random"]


def peak(x, *rest):
    return -quadratic(x)


def negative_gradient(x, coords):
    return -quadratic_gradient(x, coords)


def rows_below(x):
    return np.array([quadratic(row) for row in x])


def rows_above(x):
    return -rows_below(x)


@numba.njit
def compiled(x):
    return np.sum((x - 1.0) ** 2)


@numba.njit
def compiled_peak(x):
    return -np.sum((x - 1.0) ** 2)


def mirrored(up, down):
    """Check that two results are the same but for the sign of the values."""
    for name in ("fun", "history"):
        up[name] = (
            -up.fun
            if name == "fun"
            else {**up.history, "fun": -up.history["fun"], "incumbent": -up.history["incumbent"]}
        )
    same_run(up, down)


@pytest.mark.parametrize("method", METHODS)
def test_maximising_is_minimising_the_negative_bit_for_bit(method):
    keywords = {"method": method, "max_evals": 400, "scale": 1.0, "seed": 3}
    up = scgd.minimize(peak, np.zeros(P), maximize=True, **keywords)
    down = scgd.minimize(quadratic, np.zeros(P), **keywords)
    assert up.fun <= 0 and np.all(up.history["fun"] <= 0)
    mirrored(up, down)


@pytest.mark.parametrize(
    ("up", "down", "more"),
    [
        (peak, quadratic, {"workers": 2, "block_size": 4}),
        (peak, quadratic, {"asynchronous": 4, "method": "uniform"}),
        (rows_above, rows_below, {"vectorized": True, "block_size": 3}),
        (compiled_peak, compiled, {"method": "musketeer"}),
    ],
    ids=["workers", "asynchronous", "vectorized", "compiled"],
)
def test_maximising_whoever_evaluates(up, down, more):
    keywords = {"max_evals": 200, "scale": 1.0, "seed": 3, **more}
    above = scgd.minimize(up, np.zeros(P), maximize=True, **grouped(**keywords))
    mirrored(above, scgd.minimize(down, np.zeros(P), **grouped(**keywords)))


def test_maximising_with_derivatives():
    keywords = {"max_evals": 200, "scale": 1.0, "seed": 3}
    up = scgd.minimize(peak, np.zeros(P), jac=negative_gradient, maximize=True, **keywords)
    mirrored(up, scgd.minimize(quadratic, np.zeros(P), jac=quadratic_gradient, **keywords))
    assert np.abs(up.x - MINIMUM).max() < 1.0


def test_the_target_of_a_maximum_lies_above():
    seen = []
    keywords = {"max_evals": 4000, "scale": 1.0, "seed": 0, "maximize": True}
    result = scgd.minimize(
        peak, np.zeros(P), target=-0.01, reporting=lambda r: seen.append(r.fun), **keywords
    )
    assert result.status == Status.TARGET and result.success and -0.01 <= result.fun <= 0
    assert max(seen) <= 0.0 and seen[-1] >= seen[0]
    short = scgd.minimize(peak, np.zeros(P), target=1.0, **{**keywords, "max_evals": 60})
    assert short.status == Status.BUDGET and not short.success


def test_messages_speak_of_the_values_of_the_user():
    def fun(x):
        return np.inf if x[0] != 0 else 0.0

    with pytest.raises(FloatingPointError, match="fun returned inf at evaluation"):
        scgd.minimize(
            fun, np.zeros(3), method="musketeer", scale=1.0, maximize=True, max_evals=99, seed=0
        )


def test_a_maximum_is_another_run(tmp_path):
    keywords = {"max_evals": 50, "scale": 1.0, "seed": 0, "checkpoint": str(tmp_path / "run")}
    scgd.minimize(quadratic, np.zeros(P), **keywords)
    with pytest.raises(scgd.CheckpointError, match="its maximize is False there and True here"):
        scgd.minimize(quadratic, np.zeros(P), maximize=True, **keywords)


def test_maximising_by_ask_and_tell():
    opt = scgd.Optimizer(np.zeros(P), "musketeer", maximize=True, max_evals=900, seed=3)
    while not opt.done:
        for trial in opt.ask():
            opt.tell(trial.id, peak(trial.x))
    whole = scgd.minimize(
        peak, np.zeros(P), method="musketeer", maximize=True, max_evals=900, seed=3
    )
    same_run(opt.result(), whole)


def test_partials_by_ask_and_tell_have_the_sign_of_the_user():
    opt = scgd.Optimizer(
        np.zeros(P), "uniform", first_order=True, maximize=True, scale=1.0, max_evals=99, seed=0
    )
    while not opt.done:
        for trial in opt.ask():
            partials = trial.coords is not None
            value = negative_gradient(trial.x, trial.coords) if partials else peak(trial.x)
            opt.tell(trial.id, value)
    assert peak(opt.x) > peak(np.zeros(P))


# ---- failures --------------------------------------------------------------------------------------


def failing(x, *rest):
    if x[0] > 0.02:
        raise RuntimeError("solver failed")
    return quadratic(x)


def nan_there(x, *rest):
    return float("nan") if x[0] > 0.02 else quadratic(x)


def failing_rows(x):
    if (x[:, 0] > 0.02).any():
        raise RuntimeError("solver failed")
    return rows_below(x)


@pytest.mark.parametrize("method", ["musketeer", "uniform", "spsa", "auto", "dds"])
def test_an_exception_that_is_caught_is_a_value_that_was_lost(method):
    keywords = {"method": method, "max_evals": 300, "scale": 1.0, "seed": 1}
    caught = scgd.minimize(failing, np.zeros(P), failures=RuntimeError, **keywords)
    skipped = scgd.minimize(nan_there, np.zeros(P), failures="skip", **keywords)
    same_run(caught, skipped)
    assert caught.n_failed > 0 and f"without a finite value: {caught.n_failed}" in caught.message


@pytest.mark.parametrize(
    "more",
    [{"workers": 2, "block_size": 4}, {"asynchronous": 6}, {"workers": map, "block_size": 4}],
    ids=["processes", "asynchronous", "map"],
)
def test_exceptions_are_caught_wherever_they_are_raised(more):
    keywords = {"method": "uniform", "max_evals": 120, "scale": 1.0, "seed": 1}
    caught = scgd.minimize(
        failing, np.zeros(P), failures=(OSError, RuntimeError), **grouped(**keywords, **more)
    )
    skipped = scgd.minimize(nan_there, np.zeros(P), failures="skip", **grouped(**keywords, **more))
    same_run(caught, skipped)
    assert 0 < caught.n_failed < caught.nfev


def test_a_call_of_a_vectorized_function_that_raises_loses_its_values():
    result = scgd.minimize(
        failing_rows, np.zeros(P), max_evals=124, scale=1.0, seed=1,
    method=scgd.SCGD(policy="uniform", block_size=4), failures=RuntimeError, workers=scgd.Workers(vectorized=True))  # fmt: skip
    assert 0 < result.n_failed < result.nfev == 124 and result.n_failed % 4 == 0


def test_derivatives_that_raise():
    def jac(x, coords):
        if 0 in coords:
            raise RuntimeError("no")
        return quadratic_gradient(x, coords)

    result = scgd.minimize(
        quadratic, np.zeros(P), jac=jac, method="musketeer", max_evals=400,
        scale=1.0, seed=0,
    failures=RuntimeError)  # fmt: skip
    assert result.n_failed > 0 and result.x[0] == 0.0 and result.x[1] != 0.0


def test_what_is_not_listed_is_raised_and_so_is_a_nan():
    keywords = {"method": "uniform", "max_evals": 300, "scale": 1.0, "seed": 1}
    with pytest.raises(RuntimeError, match="solver failed"):
        scgd.minimize(failing, np.zeros(P), failures=(OSError,), **keywords)
    with pytest.raises(FloatingPointError, match="fun returned nan"):
        scgd.minimize(nan_there, np.zeros(P), failures=RuntimeError, **keywords)


def test_the_nan_of_an_exception_is_known_by_its_bits():
    assert is_caught(CAUGHT) and is_caught(float(np.array([CAUGHT])[0]))
    assert not is_caught(float("nan")) and not is_caught(-CAUGHT) and not is_caught(np.inf)


@pytest.mark.parametrize("method", ["musketeer", "auto", "dds"])
@pytest.mark.parametrize("failing", [nan_there, failing])
def test_worst_stands_in_for_values_that_were_lost(method, failing):
    """The same run as of a function that returns the highest value seen so far by itself."""
    highest = [-np.inf]

    def by_hand(x):
        value = nan_there(x)
        if np.isfinite(value):
            highest[0] = max(highest[0], value)
            return value
        return highest[0] if np.isfinite(highest[0]) else np.nan

    keywords = {"method": method, "max_evals": 400, "scale": 1.0, "seed": 1}
    worst = scgd.minimize(
        failing, np.zeros(P), failures=scgd.Failures("worst", RuntimeError), **keywords
    )
    hand = scgd.minimize(by_hand, np.zeros(P), failures="skip", **keywords)
    assert worst.n_failed > hand.n_failed
    assert np.array_equal(worst.x, hand.x) and worst.fun == hand.fun
    assert np.array_equal(worst.history["fun"], hand.history["fun"])


def test_the_worst_of_a_maximum_is_the_lowest():
    keywords = {"method": "uniform", "max_evals": 300, "scale": 1.0, "seed": 1}
    down = scgd.minimize(nan_there, np.zeros(P), failures="worst", **keywords)
    up = scgd.minimize(
        lambda x: -nan_there(x), np.zeros(P), maximize=True, failures="worst", **keywords
    )
    mirrored(up, down)


def test_worst_and_catch_resume(tmp_path):
    keywords = {"method": "uniform", "scale": 1.0, "seed": 1, "workers": 1}
    keywords |= {"failures": scgd.Failures("worst", RuntimeError), "maximize": True}
    file = str(tmp_path / "run")

    def fun(x):
        if x[0] > 0.02:
            raise RuntimeError
        return peak(x)

    stopped = scgd.minimize(
        fun, np.zeros(P), max_evals=400, checkpoint=file, reporting=stop_at(150), **keywords
    )
    assert 150 <= stopped.nfev < 400 and stopped.n_failed
    resumed = scgd.minimize(fun, np.zeros(P), max_evals=400, checkpoint=file, **keywords)
    same_run(resumed, scgd.minimize(fun, np.zeros(P), max_evals=400, **keywords))


def stop_at(n):
    def callback(result):
        if result.nfev >= n:
            raise StopIteration

    return callback


# ---- the command -----------------------------------------------------------------------------------

MODULE = """
class Odd(Exception):
    pass

def peak(x):
    if x[0] > 0.5:
        raise Odd
    return -float(x @ x) + float(x.sum())
"""


def test_the_command_knows_the_words(tmp_path, monkeypatch):
    (tmp_path / "words_module.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    words = ["--maximize", "--catch", "words_module:Odd", "--failures", "worst"]
    run = ["minimize", "words_module:peak", "--dim", "3", "--max-evals", "300", "--seed", "0"]
    with contextlib.redirect_stdout(io.StringIO()):
        code = main([*run, *words, "--no-progress", "--out", "out.json"])
    found = json.loads((tmp_path / "out.json").read_text())
    assert code == 0 and 0.5 < found["fun"] <= 0.75 and found["n_failed"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--catch", "Nothing"], "--catch must be the name of an exception"),
        (["--catch", "nowhere:Nothing"], "--catch must be the name of an exception"),
        (["--catch", ":"], "--catch must be the name of an exception"),
        (["--catch", "int"], "catch must be a subclass of Exception"),
        (["--failures", "ignore"], "must be one of ('raise', 'skip', 'worst')"),
    ],
)
def test_the_command_refuses_other_words(words, message, capsys):
    run = ["minimize", "json:dumps", "--dim", "3", "--max-evals", "30", "--no-progress"]
    assert main([*run, *words]) == 2
    assert message in capsys.readouterr().err
