"""Time and checkpoints hold within one evaluation, whatever the question; jac runs obey limits too."""

import threading

import numpy as np
import pytest

import scgd
from runs import CASES, P, partials, quadratic
from scgd.checkpoint import Checkpoint, read
from scgd.run.signals import Stop

FAST = 40
LIMITED = [name for name in CASES if name != "compiled"]
"""A compiled function cannot wait for a clock in Python."""


class Clock:
    """Wait until the run's clock has ticked, however slow the machine is."""

    def __init__(self, monkeypatch):
        self.ticked, self.over = threading.Event(), threading.Event()
        for name, event in (("set", self.ticked), ("end", self.over)):
            monkeypatch.setattr(Stop, name, self.told(getattr(Stop, name), event))

    def told(self, real, event):
        def method(stop):
            real(stop)
            event.set()

        return method

    def wait_for_tick(self):
        self.ticked.clear()
        assert self.ticked.wait(60)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


class Slows:
    """A function that becomes slow in the middle: from then on a call lasts beyond the deadline."""

    def __init__(self, fun, clock):
        self.fun, self.clock, self.n = fun, clock, 0

    def __call__(self, x, *rest):
        self.n += 1
        if self.n > FAST:
            assert self.clock.over.wait(60)
        return self.fun(x, *rest)


@pytest.mark.parametrize("name", LIMITED)
def test_no_evaluation_begins_after_max_time(name, clock):
    fun, keywords = CASES[name]
    slows = Slows(fun() if isinstance(fun, type) else fun, clock)
    if "jac" in keywords:
        keywords = {"jac": lambda x, coords: (slows(x), partials(x, coords))[1]}
    more = {"max_evals": 10**6, "max_time": 0.5, "seed": 5}
    result = scgd.minimize(slows, np.zeros(P), **{**keywords, **more})
    assert slows.n <= FAST + 1
    assert result.status == 2 and np.all(np.isfinite(result.x))


@pytest.mark.parametrize(
    "keywords",
    [
        {"method": "dds"},
        {"method": scgd.SCGD("uniform", block_size=500)},
        {"method": scgd.SCGD("gauss-southwell")},
        {},
    ],
)
@pytest.mark.parametrize("checkpoint", [False, True])
def test_max_time_holds_in_the_middle_of_a_scan(keywords, checkpoint, clock, tmp_path):
    """A question of a thousand evaluations is not one piece."""
    slows = Slows(lambda x: float(np.sum((x - 1) ** 2)), clock)
    more = {"checkpoint": tmp_path / "run.npz"} if checkpoint else {}
    more |= {"max_evals": 10**6, "max_time": 0.5, "seed": 5, "scale": 1.0}
    result = scgd.minimize(slows, np.zeros(500), **keywords, **more)
    assert slows.n <= FAST + 1 and result.status == 2


def test_a_slow_vectorized_function_is_not_called_again_for_what_it_has_told(clock, tmp_path):
    """A clock that looks at the bar and at the file leaves the values of a call alone."""
    shapes = []

    def fun(points):
        shapes.append(len(points))
        clock.wait_for_tick()
        return np.sum((points - 1) ** 2, axis=1)

    result = scgd.minimize(
        fun, np.zeros(8), scale=1.0, max_evals=64,
        seed=0, checkpoint=tmp_path / "run.npz",
    method=scgd.SCGD(policy="uniform", block_size=8), workers=scgd.Workers(vectorized=True))  # fmt: skip
    assert shapes == [3, 16, 16, 16] and result.nfev == 51


def test_values_that_a_map_returns_together_are_all_accepted(clock, tmp_path):
    calls = []

    def slow_map(task, items):
        calls.append(len(items))
        clock.wait_for_tick()
        return [task(item) for item in items]

    result = scgd.minimize(
        quadratic, np.zeros(P), scale=1.0, max_evals=48, seed=0,
        workers=slow_map, checkpoint=tmp_path / "run.npz",
    method=scgd.SCGD(policy="uniform", block_size=P))  # fmt: skip
    assert calls == [3, 2 * P, 2 * P, 2 * P] and result.nfev == 39


# ---- checkpoints in time ---------------------------------------------------------------------------


@pytest.mark.parametrize("every, first", [(30.0, 1.0), (0.5, 0.5), (0.0, 0.0)])
def test_the_first_checkpoint_is_due_after_a_second(every, first, tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("scgd.checkpoint.time.monotonic", lambda: now[0])
    file = Checkpoint(tmp_path / "run.npz", every)
    now[0] = 150.0
    assert not file.load(lambda identity, state: None)
    for start in (150.0, 300.0):  # also where one object serves two runs
        now[0] = start
        file.load(lambda identity, state: None)
        now[0] = start + 0.99 * first
        assert file.due() == (first == 0.0)
        now[0] = start + first
        assert file.due()
        file.save({}, {})
        now[0] += 0.99 * every
        assert file.due() == (every == 0.0)
        now[0] = start + first + every
        assert file.due()


@pytest.mark.parametrize("method", ["auto", "random"])
def test_a_long_question_is_saved_in_the_middle(method, clock, tmp_path):
    """2,000 coordinates are scanned in one question; the file follows value by value."""
    path, held, calls = tmp_path / "run.npz", [], []

    def fun(x):
        if len(calls) % 100 == 1 and path.exists():
            state = read(path)[1]
            held.append((state["ledger"]["n_accepted"] - len(calls), state["n_issued"]))
        calls.append(1)
        if len(calls) > 1000:
            raise KeyboardInterrupt
        if len(calls) % 100 == 1:
            clock.wait_for_tick()
        return float(np.sum((x - 1) ** 2))

    scgd.minimize(
        fun, np.zeros(2000), method=method, max_evals=5000, seed=0, scale=1.0,
        checkpoint=Checkpoint(path, every=0.0),
    )  # fmt: skip
    assert len(held) == 10 and all(behind == 0 for behind, _ in held)


# ---- runs that see derivatives ---------------------------------------------------------------------

JAC = {"jac": partials, "seed": 5}


def test_jac_runs_know_their_value_at_any_end(tmp_path):
    path, steps = tmp_path / "run.npz", {**JAC, "method": "musketeer"}
    first = scgd.minimize(quadratic, np.zeros(P), max_evals=50, checkpoint=path, **steps)
    longer = scgd.minimize(quadratic, np.zeros(P), max_evals=300, checkpoint=path, **steps)
    assert first.nfev == 50 and longer.nfev == 300
    assert longer.fun < first.fun < 21 and longer.fun == pytest.approx(quadratic(longer.x), abs=2)

    def stop(intermediate):
        if intermediate.nfev > 60:
            raise StopIteration

    stopped = scgd.minimize(quadratic, np.zeros(P), max_evals=300, reporting=stop, **JAC)
    assert stopped.status == 3 and 60 < stopped.nfev < 300 and np.isfinite(stopped.fun)


def test_jac_runs_stop_at_their_target():
    reached = scgd.minimize(quadratic, np.zeros(P), max_evals=20_000, target=1.0, **JAC)
    assert reached.status == 0 and reached.nfev < 20_000
    assert quadratic(reached.x) < 2.0


@pytest.mark.parametrize("budget", [1, 2, 20, 21, 22, 43, 100])
def test_jac_runs_use_their_budget_exactly(budget, tmp_path):
    calls = []

    def fun(x):
        calls.append(1)
        return quadratic(x)

    def jac(x, coords):
        calls.append(1)
        return partials(x, coords)

    result = scgd.minimize(fun, np.zeros(P), jac=jac, max_evals=budget, seed=5)
    assert len(calls) == result.nfev == budget
