"""Several steps under way: the recorded order makes a run repeatable, whoever does the work."""

import random
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from scgd import minimize
from scgd.checkpoint import CheckpointError, read

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
        run = minimize(uneven, **KEYWORDS, sample=noise, workers=executor, asynchronous=8)
        again = minimize(fast, **KEYWORDS, sample=noise, workers=executor, asynchronous=run.events)
    alone = minimize(fast, **KEYWORDS, sample=noise, asynchronous=run.events)
    assert not np.array_equal(run.events.order, np.arange(1200))  # some overtook others
    assert sorted(run.events.order) == list(range(1200)) and run.nfev == 1200
    assert np.array_equal(run.x, again.x) and np.array_equal(run.x, alone.x)
    assert np.array_equal(run.weights, alone.weights)
    assert fast(run.x, 0.0) < 0.05 * fast(np.zeros(P), 0.0)


def test_one_step_at_a_time_is_the_plain_run():
    """With room for one step only, steps see the newest point."""
    keywords = {**KEYWORDS, "policy": "uniform", "block_size": P, "sample": noise}
    run = minimize(fast, **keywords, asynchronous=2 * P)
    assert np.array_equal(run.events.order, np.arange(len(run.events.order)))
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
    assert len(read(path)[1]["order"]) == 499
    resumed = minimize(counted, **keywords, checkpoint=path)
    assert np.array_equal(resumed.x, minimize(fast, **keywords).x)
    assert len(calls) <= 1200 + 1 + 8  # what was under way is made again
    with pytest.raises(CheckpointError, match="its asynchronous is 8"):
        minimize(fast, **{**keywords, "asynchronous": 6}, checkpoint=path)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"asynchronous": 1}, "at least the 2 evaluations of a step"),
        ({"asynchronous": 0}, "asynchronous must be a whole number"),
        ({"asynchronous": 8, "method": "auto"}, "cannot be asynchronous"),
        ({"asynchronous": 8, "policy": "gauss-southwell"}, "cannot be asynchronous"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(ValueError, match=message):
        minimize(fast, **{**KEYWORDS, "sample": noise, **change})


def test_jac_and_scale_search():
    """Derivatives and the search for a scale fly too."""
    run = minimize(
        lambda x: float(x @ x), np.ones(4), jac=lambda x, coords: 2.0 * x[coords],
        method="musketeer", max_evals=400, seed=1, asynchronous=3,
    )  # fmt: skip
    assert run.fun < 0.1
    search = minimize(
        lambda x: float((x - 1) @ (x - 1)), np.zeros(4), method="musketeer", max_evals=2000, seed=1,
        asynchronous=6,
    )  # fmt: skip
    assert search.fun < 0.1
