"""Long points stay on the workers: a task carries what has changed, and any copy comes out the same."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import scgd
from scgd.questions import Point
from scgd.workers.replicas import Driven, Stale, settled

P = 20_000


@settings(max_examples=60, deadline=None)
@given(data=st.data(), n=st.integers(1, 30), size=st.integers(1, 90))
def test_every_copy_comes_out_as_the_point_was(data, n, size):
    """Steps of any size; tasks arrive late and in any order, at workers that have missed many."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**31)))
    point, driven, sent = Point(rng.normal(size=1000)), Driven(), []
    for _ in range(n):
        moves = driven.moves(point)
        sent.append((moves, point.x.copy()))
        for chosen in rng.permutation(len(sent))[:2]:
            wanted, x = sent[chosen]
            try:
                found = settled(wanted)
            except Stale:
                found = settled(replace(wanted, whole=x))
            assert np.array_equal(found, x)
        if rng.random() < 0.1:
            point.put(rng.normal(size=1000))
        else:
            coords = rng.choice(1000, rng.integers(1, size + 1), replace=False)
            point.move(coords, rng.normal(size=coords.size))


def test_a_task_stays_small():
    import pickle

    rng = np.random.default_rng(0)
    point, driven = Point(np.zeros(1_000_000)), Driven()
    driven.moves(point)
    for _ in range(500):
        point.move(rng.choice(1_000_000, 8, replace=False), rng.normal(size=8))
        moves = driven.moves(point)
    assert len(pickle.dumps(moves)) < 8_000


def long_quadratic(x):
    return float(np.sum((x[::1000] - 1) ** 2))


@pytest.mark.filterwarnings("ignore:.*some stay idle:RuntimeWarning")
@pytest.mark.parametrize("method", [scgd.SCGD(block_size=4), "spsa"])
def test_workers_give_what_this_process_gives(method):
    same = {"method": method, "scale": 1.0, "max_evals": 120, "seed": 3}
    here = scgd.minimize(long_quadratic, np.zeros(P), **same)
    with ThreadPoolExecutor(3) as threads:
        there = scgd.minimize(long_quadratic, np.zeros(P), workers=threads, **same)
    processes = scgd.minimize(long_quadratic, np.zeros(P), workers=2, **same)
    assert np.array_equal(here.x, there.x) and np.array_equal(here.x, processes.x)
    assert there.nfev_repeated == processes.nfev_repeated == 0


def uneven(x):
    time.sleep(0.02 * (int(abs(x[0]) * 1e6) % 3))
    return long_quadratic(x)


@pytest.mark.filterwarnings("ignore:.*some stay idle:RuntimeWarning")
def test_several_steps_under_way_and_again():
    same = {"method": "musketeer", "scale": 1.0, "max_evals": 80, "seed": 3}
    with ThreadPoolExecutor(4) as threads:
        workers = scgd.Workers(threads, asynchronous=8)
        run = scgd.minimize(uneven, np.zeros(P), workers=workers, **same)
    again = scgd.minimize(
        uneven, np.zeros(P), workers=scgd.Workers(asynchronous=run.events), **same
    )
    assert np.array_equal(run.x, again.x)


def writing(x):
    x.base[1] += 1.0
    return float(x[0])


@pytest.mark.filterwarnings("ignore:.*some stay idle:RuntimeWarning")
def test_a_function_that_writes_into_a_long_point_is_refused():
    with ThreadPoolExecutor(1) as threads, pytest.raises(ValueError, match="has written into x"):
        scgd.minimize(
            writing, np.zeros(100_000), method="uniform", scale=1.0, max_evals=40, workers=threads
        )
