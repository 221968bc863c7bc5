"""Resuming equals never having stopped, bit for bit; files from elsewhere are refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import scgd
from registry import POLICIES, P, quadratic
from scgd.checkpoint import Checkpoint, CheckpointError, previous, read, write

PARTS = {
    **{name: scgd.SCGD(policy=policy) for name, policy in POLICIES.items()},
    "adam-blocks": scgd.SCGD(step="adam", block_size=3, replace=False),
    "average": scgd.SCGD(policy="uniform", average=True),
    "greedy": scgd.SCGD(policy="gradient-weights"),
    "spsa": scgd.METHODS["spsa"],
    "gaussian": scgd.METHODS["gaussian"],
}


def noisy(x, rows):
    return quadratic(x + 0.01 * rows.sum())


class Stop(Exception):
    """Thrown by a function to simulate a crash."""


class Crashing:
    def __init__(self, fun, at):
        self.fun, self.left = fun, at

    def __call__(self, *args):
        if self.left == 0:
            raise Stop
        self.left -= 1
        return self.fun(*args)


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("at", [10, 131, 500])
def test_resume_equals_never_stopped(name, at, tmp_path):
    keywords = {"method": PARTS[name], "sample": 9, "max_evals": 900, "seed": 4}
    whole = scgd.minimize(noisy, np.zeros(P), **keywords)
    path = tmp_path / "run.npz"
    crashing = Crashing(noisy, at)
    with pytest.raises(Stop):
        scgd.minimize(crashing, np.zeros(P), checkpoint=path, **keywords)
    rest = Crashing(noisy, 10**9)
    resumed = scgd.minimize(rest, np.zeros(P), checkpoint=str(path), **keywords)
    assert np.array_equal(resumed.x, whole.x) and np.array_equal(resumed.weights, whole.weights)
    assert resumed.fun == whole.fun and resumed.nfev == whole.nfev
    made = 10**9 - rest.left
    assert made <= whole.nfev - at + 2 * P + 2  # it went on, and repeated one step at most
    again = scgd.minimize(Crashing(noisy, 0), np.zeros(P), checkpoint=path, **keywords)
    assert np.array_equal(again.x, whole.x)  # read back without an evaluation


@given(st.data())
def test_state_dict_round_trips_at_any_step(data):
    method = PARTS[data.draw(st.sampled_from(sorted(PARTS)))]
    asks = data.draw(st.integers(0, 60))
    half_told = data.draw(st.booleans())

    def fresh():
        return scgd.Optimizer(np.zeros(P), method, sample=9, max_evals=2000, seed=1)

    def go(opt, n):
        for _ in range(n):
            for trial in opt.out() or opt.ask():
                opt.tell(trial.id, noisy(trial.x, *trial.arguments))

    one = fresh()
    go(one, asks)
    if half_told:
        trial = one.ask()[-1]  # the rest is out
        one.tell(trial.id, noisy(trial.x, *trial.arguments))
    other = fresh()
    other.load_state_dict(one.state_dict())
    reference = fresh()
    go(other, 20)
    while reference.run.nfev < other.run.nfev:
        go(reference, 1)
    np.testing.assert_equal(other.state_dict(), reference.state_dict())


def test_larger_budget_goes_on_bit_for_bit(tmp_path):
    """Where no schedule reads the budget, stopping and extending is one long run."""
    path = tmp_path / "run.npz"
    keywords = {"method": scgd.SCGD(learning_rate=0.3, radius=0.1), "seed": 4, "sample": 9}
    scgd.minimize(noisy, np.zeros(P), max_evals=301, checkpoint=path, **keywords)
    longer = scgd.minimize(noisy, np.zeros(P), max_evals=1500, checkpoint=path, **keywords)
    whole = scgd.minimize(noisy, np.zeros(P), max_evals=1500, **keywords)
    assert np.array_equal(longer.x, whole.x)


def test_larger_budget_starts_a_new_decay_leg(tmp_path):
    keywords = {"method": "musketeer", "seed": 4, "scale": 1.0, "checkpoint": tmp_path / "run.npz"}
    first = scgd.minimize(quadratic, np.zeros(P), max_evals=400, **keywords)
    second = scgd.minimize(quadratic, np.zeros(P), max_evals=4000, **keywords)
    assert second.nfev == 4000 and quadratic(second.x) < quadratic(first.x)


def test_checkpoints_are_written_now_and_then(tmp_path):
    path = tmp_path / "run.npz"
    sizes = []

    def callback(intermediate):
        if path.exists():
            sizes.append(read(path)[1]["ledger"]["n_accepted"])

    scgd.minimize(
        quadratic,
        np.zeros(P),
        max_evals=600,
        checkpoint=Checkpoint(path, every=0.0),
        reporting=callback,
    )
    assert len(set(sizes)) > 10 and sizes == sorted(sizes)
    assert not list(tmp_path.glob(".*tmp"))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"seed": 5}, "its seed is"),
        ({"method": "uniform"}, "its method is"),
        ({"sample": 8}, "its sample is"),
        ({"sample": scgd.Rows(9, 2)}, "its sample is"),
    ],
)
def test_another_run_is_refused(change, message, tmp_path):
    path = tmp_path / "run.npz"
    keywords = {"max_evals": 100, "seed": 4, "sample": 9, "method": "musketeer"}
    scgd.minimize(noisy, np.zeros(P), checkpoint=path, **keywords)
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match=message):
        scgd.minimize(noisy, np.zeros(P), checkpoint=path, **{**keywords, **change})
    with pytest.raises(CheckpointError, match="its dimension is 12 there and 5 here"):
        scgd.minimize(noisy, np.zeros(5), checkpoint=path, **keywords)
    assert path.read_bytes() == before


def test_garbage_and_other_formats_are_refused(tmp_path):
    path = tmp_path / "run.npz"
    for content in (b"", b"garbage", b"PK\x03\x04 torn"):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="not a readable checkpoint"):
            scgd.minimize(quadratic, np.zeros(P), max_evals=100, checkpoint=path)
        assert path.read_bytes() == content
    np.savez(path, document=np.array('{"format": 99, "identity": {}, "state": {}}'))
    with pytest.raises(CheckpointError, match="format 99"):
        scgd.minimize(quadratic, np.zeros(P), max_evals=100, checkpoint=path)


def test_an_unseeded_run_resumes_with_its_own_seed(tmp_path):
    path = tmp_path / "run.npz"
    with pytest.raises(Stop):
        scgd.minimize(
            Crashing(quadratic, 100),
            np.zeros(P),
            method="musketeer",
            max_evals=400,
            checkpoint=path,
        )
    rest = Crashing(quadratic, 400)
    scgd.minimize(rest, np.zeros(P), method="musketeer", max_evals=400, checkpoint=path)
    assert rest.left >= 98


@pytest.mark.parametrize("count", [0, 331, 10**12])
def test_books_that_do_not_agree_with_the_search_are_refused(count, tmp_path):
    """A count of accepted evaluations from elsewhere would give a run without end."""
    path, keywords = tmp_path / "run.npz", {"method": "musketeer", "sample": 9, "seed": 4}
    scgd.minimize(noisy, np.zeros(P), max_evals=333, checkpoint=path, **keywords)
    identity, state = read(path)
    state["ledger"]["n_accepted"] = count
    write(path, identity, state)
    previous(path).unlink(missing_ok=True)
    with pytest.raises(CheckpointError, match="do not add up"):
        scgd.minimize(noisy, np.zeros(P), max_evals=400, checkpoint=path, **keywords)
