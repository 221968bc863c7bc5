"""Disks that fail, files from elsewhere, evaluations that fail, and runs that last."""

import json
import math
import os
import random
import resource
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numba import njit

import scgd
from registry import P, quadratic
from scgd.checkpoint import FORMAT, Checkpoint, CheckpointError, previous, read, write


def bounded(x, rows):
    """A function that is finite wherever a mutated state may lead."""
    return float(np.sum(np.tanh(x - 1.0 + 0.01 * rows.sum()) ** 2))


KEYWORDS = {"sample": 9, "seed": 4}


def half_run(path, method="musketeer"):
    scgd.minimize(bounded, np.zeros(P), method=method, max_evals=333, checkpoint=path, **KEYWORDS)
    return path.read_bytes()


def resume(path, method="musketeer"):
    return scgd.minimize(
        bounded, np.zeros(P), method=method, max_evals=400, checkpoint=path, **KEYWORDS
    )


def same(one, other):
    """Compare nested states, NaN equal to NaN."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype == float)
    return one == other or (one != one and other != other)


def flips(content, rng):
    """Yield malformed versions: flipped, cut, repeated, zeroed and exchanged bytes."""
    while True:
        data = bytearray(content)
        for _ in range(rng.choice((1, 1, 1, 2, 8))):
            kind, at = rng.randrange(6), rng.randrange(len(data))
            if kind <= 2:
                data[at] ^= 1 << rng.randrange(8)
            elif kind == 3:
                del data[at : at + rng.randrange(1, 64)]
            elif kind == 4:
                data[at:at] = data[at : at + rng.randrange(1, 64)]
            else:
                data[at : at + 16] = bytes(rng.randrange(256) for _ in range(16))
            if not data:
                break
        yield bytes(data)


def check_malformed(content, path, n, seed):
    """Whatever is done to the bytes, reading gives the state as it was or CheckpointError."""
    path.write_bytes(content)
    whole, n_refused = read(path), 0
    for _, data in zip(range(n), flips(content, random.Random(seed)), strict=False):
        path.write_bytes(data)
        try:
            found = read(path)
        except CheckpointError:
            n_refused += 1
        else:
            assert same(found[0], whole[0]) and same(found[1], whole[1])
    assert n_refused > 0.5 * n


def test_malformed_bytes(tmp_path):
    content = half_run(tmp_path / "run.npz")
    check_malformed(content, tmp_path / "flipped.npz", 1000, seed=0)


@pytest.mark.faults
@pytest.mark.parametrize("method", ["musketeer", "spsa"])
def test_malformed_bytes_many(method, tmp_path):
    content = half_run(tmp_path / "run.npz", method)
    check_malformed(content, tmp_path / "flipped.npz", 10_000, seed=1)


def paths_of(state, prefix=()):
    for name, value in state.items():
        if isinstance(value, dict):
            yield from paths_of(value, (*prefix, name))
        yield (*prefix, name)


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=5)
)
ODD = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=3),
    st.dictionaries(st.text(max_size=5), SCALARS, max_size=2),
    st.sampled_from([np.zeros(0), np.full(P, np.nan), np.arange(3), np.full((2, 2), 10**15)]),
)


def mutated(state, data):
    """Change one entry: another value, another element, or gone."""
    path = data.draw(st.sampled_from(sorted(paths_of(state))))
    place = state
    for name in path[:-1]:
        place = place[name]
    old, how = place[path[-1]], data.draw(st.integers(0, 3))
    if how == 0:
        del place[path[-1]]
    elif how == 1 or not isinstance(old, np.ndarray) or old.size == 0:
        place[path[-1]] = data.draw(ODD)
    else:
        at = data.draw(st.integers(0, old.size - 1))
        whole = st.integers(-(2**63), 2**63 - 1)
        fresh = st.floats() if old.dtype.kind == "f" else whole
        old.flat[at] = np.array(data.draw(fresh)).astype(old.dtype)
    return state


def check_mutation(data, path, method):
    """A state changed at will is refused cleanly, or is a state that a run can go on from."""
    identity, state = read(path.with_suffix(".good"))
    try:
        write(path, identity, mutated(state, data))
    except (TypeError, ValueError):
        return  # not something a checkpoint can hold
    try:
        result = resume(path, method)
    except CheckpointError:
        return
    assert result.x.shape == (P,)


METHODS = [
    "musketeer",
    scgd.SCGD(policy=scgd.Musketeer(normalization="softmax")),
    scgd.SCGD(policy=scgd.RecentGains()),
]
NAMES = ["l1", "softmax", "recent"]


def fuzz_states(tmp_path_factory, n, method):
    path = tmp_path_factory.mktemp("fuzz") / "run.npz"
    half_run(path, method)
    path.rename(path.with_suffix(".good"))

    @settings(
        max_examples=n, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.data())
    def check(data):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # overflow in a mutated state
            previous(path).unlink(missing_ok=True)
            check_mutation(data, path, method)

    check()


@pytest.mark.parametrize("method", METHODS, ids=NAMES)
def test_malformed_states(method, tmp_path_factory):
    fuzz_states(tmp_path_factory, 100, method)


@pytest.mark.faults
@pytest.mark.parametrize("method", METHODS, ids=NAMES)
def test_malformed_states_many(method, tmp_path_factory):
    fuzz_states(tmp_path_factory, 1500, method)


@pytest.mark.parametrize(
    "changed",
    [
        {"firsts": np.empty(0)},
        {"firsts": np.empty((50, 0))},
        {"recent": np.empty((50, 0))},
        {"n_phases": 49, "firsts": np.empty(0)},
        {"firsts": np.empty(0), "recent": np.empty(0)},
    ],
    ids=str,
)
def test_the_phases_of_a_leg_are_those_that_were_counted(changed, tmp_path):
    """The first of them is compared with every later one."""
    path = tmp_path / "run.npz"
    half_run(path)
    identity, state = read(path)
    assert state["strategy"]["engine"]["n_phases"] > 50
    state["strategy"]["engine"].update(changed)
    write(path, identity, state)
    previous(path).unlink()
    with pytest.raises(CheckpointError, match="does not fit this run"):
        resume(path)


def test_nothing_in_a_file_is_executed(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "trapped"),)

    path = tmp_path / "run.npz"
    np.savez(path, document=np.array(json.dumps({"format": FORMAT})), theta=np.array([Trap()]))
    with pytest.raises(CheckpointError, match="not a readable checkpoint"):
        resume(path)
    assert not (tmp_path / "trapped").exists()


def test_torn_file_gives_way_to_the_one_before(tmp_path):
    path = tmp_path / "run.npz"
    for file in (tmp_path / "whole.npz", path):
        half_run(file)
        whole = resume(file)
    content, before = path.read_bytes(), previous(path).read_bytes()
    rng = random.Random(0)
    for _ in range(20):
        path.write_bytes(content[: rng.randrange(len(content))])
        previous(path).write_bytes(before)
        with pytest.warns(RuntimeWarning, match="going on from the one before"):
            resumed = resume(path)
        assert np.array_equal(resumed.x, whole.x) and resumed.nfev == whole.nfev
    path.write_bytes(content[:1000])
    previous(path).unlink()
    with pytest.raises(CheckpointError, match="not a readable checkpoint"):
        resume(path)


FULL = """
import resource, signal, sys, warnings
import numpy as np, scgd
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
fun = lambda x: float(np.sum((x - 1) ** 2))
path = sys.argv[1]
seen = []
def fill(intermediate):
    seen.append(intermediate.nfev)
    if len(seen) == 5:  # from here on, no file may grow beyond 100 bytes
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    result = scgd.minimize(fun, np.zeros(5), max_evals=400, seed=1, reporting=fill, method='uniform',
                           checkpoint=scgd.Checkpoint(path, every=0.0))
print(result.nfev, len(seen), sum("could not be written" in str(w.message) for w in caught))
"""


def test_disk_full_keeps_the_last_good_checkpoint(tmp_path):
    path = tmp_path / "run.npz"
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    nfev, n_phases, n_warnings = map(int, done.stdout.split())
    assert nfev == 400 and n_phases > 20 and n_warnings == 1
    assert 0 < read(path)[1]["ledger"]["n_accepted"] < 400
    assert [p.name for p in tmp_path.glob("*.tmp")] == []


def test_read_only_folder(tmp_path):
    folder = tmp_path / "missing"  # like a read-only one, but refused to root as well
    with pytest.warns(RuntimeWarning, match="could not be written") as caught:
        result = scgd.minimize(
            quadratic,
            np.zeros(P),
            method="uniform",
            max_evals=300,
            checkpoint=Checkpoint(folder / "run.npz", 0.0),
        )
    assert result.nfev == 300 and len(caught) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write into read-only folders")
def test_folder_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.warns(RuntimeWarning, match="could not be written") as caught:
        result = scgd.minimize(
            quadratic,
            np.zeros(P),
            method="uniform",
            max_evals=300,
            checkpoint=Checkpoint(tmp_path / "run.npz", 0.0),
        )
    assert result.nfev == 300 and len(caught) == 1


@njit
def separable(x):
    return x[0] * x[0] + x[1] * x[1]


def long_run(n_steps, rounds):
    """Return the growth of memory after the first round, and the drift of the tree's sums."""
    from scgd.descent import choose_loop
    from scgd.descent.compiled import CompiledLoop
    from scgd.policies.sumtree import refresh
    from scgd.run.signals import Stop

    method = scgd.SCGD(step="rms", learning_rate=1e-3, radius=1e-3)
    run = scgd.Optimizer(np.ones(1000), method, scale=1.0).run
    search = run.strategy.engine
    body, sizes = choose_loop(search, separable, (), run.ledger), []
    assert isinstance(body, CompiledLoop)
    for _ in range(rounds):
        run.run_loop(lambda room: body.run(2 * n_steps // rounds, Stop(), by_phase=False))
        pages = Path("/proc/self/statm").read_text().split()[1]
        sizes.append(int(pages) * resource.getpagesize())
    assert search.t == n_steps and run.nfev == 2 * n_steps
    dist = search.sampler.state
    leaves, again = dist.tree[:1000], dist.tree.copy()
    refresh(again, dist.levels)
    exact = math.fsum(leaves)
    drift = abs(dist.tree[dist.levels[-2]] - exact) / exact
    assert np.array_equal(again, dist.tree)
    return sizes[-1] / sizes[0] - 1.0, drift


def test_long_run_small():
    growth, drift = long_run(1_000_000, 5)
    assert growth < 0.05 and drift < 1e-12


@pytest.mark.faults
def test_long_run():
    growth, drift = long_run(100_000_000, 10)
    assert growth < 0.05 and drift < 1e-12
