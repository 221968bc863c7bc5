"""Several steps under way: the recorded order makes a run repeatable, whoever does the work."""

import random
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import scgd
from grouped import grouped
from runs import check_same
from scgd.checkpoint import CheckpointError, read


def minimize(fun, x0, **words):
    return scgd.minimize(fun, x0, **grouped(**words))


P = 16
KEYWORDS = {"x0": np.zeros(P), "method": "musketeer", "max_evals": 1200, "seed": 3, "scale": 1.0}


def noise(rng):
    return 0.05 * rng.standard_normal(P)


def uneven(x, xi):
    time.sleep(random.random() * 2e-3)
    return float(np.sum((x - 1.0 - xi) ** 2))


def fast(x, xi):
    return float(np.sum((x - 1.0 - xi) ** 2))


def test_a_run_is_replayed_from_its_events():
    with ThreadPoolExecutor(8) as executor:
        run = minimize(
            uneven, workers=scgd.Workers(executor, asynchronous=8), **KEYWORDS, sample=noise
        )
        again = minimize(
            fast, workers=scgd.Workers(executor, asynchronous=run.events), **KEYWORDS, sample=noise
        )
    alone = minimize(fast, workers=scgd.Workers(asynchronous=run.events), **KEYWORDS, sample=noise)
    assert not np.array_equal(run.events.order, np.arange(1200))  # some overtook others
    assert sorted(run.events.order) == list(range(1200)) and run.nfev == 1200
    assert np.array_equal(run.x, again.x) and np.array_equal(run.x, alone.x)
    assert np.array_equal(run.weights, alone.weights)
    assert fast(run.x, 0.0) < 0.05 * fast(np.zeros(P), 0.0)


def test_one_step_at_a_time_is_the_plain_run():
    """With room for one step only, steps see the newest point."""
    keywords = {**KEYWORDS, "policy": "uniform", "block_size": P, "sample": noise}
    run, plain = (
        minimize(fast, workers=scgd.Workers(asynchronous=2 * P), **keywords),
        minimize(fast, **keywords),
    )
    assert np.array_equal(run.events.order, np.arange(plain.nfev))
    assert np.array_equal(run.x, plain.x) and run.fun == plain.fun
    assert fast(run.x, 0.0) < 0.05 * P


class Crash(Exception):
    pass


def test_checkpoint_is_the_log_of_values(tmp_path):
    calls = []

    def counted(x, xi):
        calls.append(1)
        if len(calls) == 500:
            raise Crash
        return fast(x, xi)

    path = tmp_path / "run.npz"
    keywords = {**KEYWORDS, "sample": noise, "asynchronous": 8}
    with pytest.raises(Crash):
        minimize(counted, **keywords, checkpoint=path)
    assert len(read(path)[1]["order"]) == 499 == read(path)[1]["ledger"]["n_accepted"]
    resumed = minimize(counted, **keywords, checkpoint=path)
    assert np.array_equal(resumed.x, minimize(fast, **keywords).x)
    assert len(calls) == 1200 + 1  # the one that crashed is made again, and no other
    with pytest.raises(CheckpointError, match="its asynchronous is 8 there and 6 here"):
        minimize(fast, **{**keywords, "asynchronous": 6}, checkpoint=path)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"asynchronous": 1}, "at least the 2 evaluations of a step"),
        ({"asynchronous": 0}, "asynchronous must be a whole number"),
        ({"asynchronous": 8, "policy": "gauss-southwell"}, "at least the 34 evaluations"),
        ({"asynchronous": 8, "vectorized": True}, "drop asynchronous"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(ValueError, match=message):
        minimize(fast, **{**KEYWORDS, "sample": noise, **change})


def test_jac_and_scale_search():
    """Derivatives and the search for a scale fly too."""
    run = minimize(
        lambda x: float(x @ x), np.ones(4), jac=lambda x, coords: 2.0 * x[coords],
        method="musketeer", max_evals=400, seed=1, workers=scgd.Workers(asynchronous=3))  # fmt: skip
    assert run.fun < 0.1
    search = minimize(
        lambda x: float((x - 1) @ (x - 1)), np.zeros(4), method="musketeer", max_evals=2000, seed=1,
        workers=scgd.Workers(asynchronous=6))  # fmt: skip
    assert search.fun < 0.1


@pytest.mark.parametrize("bad, error", [(np.nan, FloatingPointError), ("garbage", TypeError)])
def test_values_are_checked_before_they_are_entered(bad, error, tmp_path):
    """A value that is refused is in no checkpoint; mended, the run goes on to the same bits."""
    path, calls = tmp_path / "run.npz", []

    def fun(x, xi):
        calls.append(1)
        return bad if len(calls) == 333 else fast(x, xi)

    keywords = {**KEYWORDS, "sample": noise, "asynchronous": 8}
    with pytest.raises(error):
        minimize(fun, **keywords, checkpoint=path)
    state = read(path)[1]
    assert state["order"].tolist() == list(range(332)) and state["ledger"]["n_accepted"] == 332
    assert 332 not in state["order"] and state["n_issued"] > 332
    check_same(minimize(fast, **keywords, checkpoint=path), minimize(fast, **keywords))


@pytest.mark.parametrize("fault", [None, Crash])
def test_without_a_seed_it_resumes_too(fault, tmp_path):
    path, calls = tmp_path / "run.npz", []

    def fun(x, xi):
        calls.append(1)
        if len(calls) == 500 and fault is not None:
            raise fault
        return fast(x, xi)

    keywords = {**KEYWORDS, "sample": noise, "asynchronous": 8, "seed": None}
    if fault is None:
        whole = minimize(fun, **keywords, checkpoint=path)
        again = minimize(fun, **keywords, checkpoint=path)
        assert len(calls) == 1200
        check_same(whole, again)
    else:
        with pytest.raises(fault):
            minimize(fun, **keywords, checkpoint=path)
        assert minimize(fun, **keywords, checkpoint=path).nfev == 1200
        assert len(calls) == 1201


def test_a_seed_of_its_own_is_another_run():
    one, other = (minimize(fast, **{**KEYWORDS, "seed": None}, sample=noise) for _ in range(2))
    assert not np.array_equal(one.x, other.x)


@pytest.mark.parametrize(
    "keywords",
    [
        {"method": "auto"},
        {"method": "random"},
        {"method": "spsa"},
        {"policy": "gauss-southwell", "asynchronous": 40},
    ],
)
def test_every_method_flies_and_is_replayed(keywords):
    """Searches that must see answers first wait for them; the order of arrival is all there is."""
    options = {"x0": np.zeros(P), "seed": 3, "max_evals": 400, "asynchronous": 12, **keywords}
    fun = lambda x: float(np.sum((x - 1.0) ** 2))  # noqa: E731

    def slow(x):
        time.sleep(random.random() * 1e-3)
        return fun(x)

    with ThreadPoolExecutor(4) as executor:
        first = minimize(slow, **options, workers=executor)
    again = minimize(fun, **{**options, "asynchronous": first.events})
    check_same(first, again)
    assert sorted(first.events.order) == list(range(first.nfev))
    assert first.nfev <= 400 and fun(first.x) < fun(np.zeros(P))


def test_one_lost_value_costs_one_value():
    lost = []

    def fun(x, xi):
        if len(lost) < 3 and random.Random(float(x.sum())).random() < 0.05:
            lost.append(1)
            return np.nan
        return fast(x, xi)

    run = minimize(
        fun, failures="skip", workers=scgd.Workers(asynchronous=8), **KEYWORDS, sample=noise
    )
    assert run.n_failed == len(lost) == 3 and run.nfev == 1200
    assert fast(run.x, 0.0) < 0.1 * P
