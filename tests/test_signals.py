"""A signal on any line of the library, and in the user's own: saved whole, or not at all."""

import asyncio
import contextlib
import inspect
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

import scgd
from runs import CASES, check_same, n_accepted, nested, quadratic, run
from scgd.run import signals
from scgd.run.signals import Terminate
from scgd.steps import StepRule

SIGNALS = (signal.SIGINT, signal.SIGTERM)
ELSEWHERE = ("scgd.linear", "scgd.torch")
N_PLACES = 50  # in all, in make test
MANY = 44  # per case, in make test-faults


@pytest.fixture(autouse=True)
def terminable():
    """Have SIGTERM outside of a run raise, so that it does not end the tests."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    signal.signal(signal.SIGTERM, Terminate())
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class Tracer:
    """Deliver a signal at the n-th visit of a line of the library; count visits of all lines."""

    def __init__(self, place=None, visit=0, number=None):
        self.place, self.visit, self.number = place, visit, number
        self.visits, self.fired = {}, False

    def __enter__(self):
        sys.settrace(self.enter)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def enter(self, frame, event, argument):
        name = frame.f_globals.get("__name__") or ""
        return self.line if name.startswith("scgd.") and not name.startswith(ELSEWHERE) else None

    def _line(self, frame, event, argument):
        if event == "line":
            place = (frame.f_code.co_filename, frame.f_lineno)
            n = self.visits[place] = self.visits.get(place, 0) + 1
            if place == self.place and n == self.visit:
                self.fired = True
                raise_signal(self.number)  # noqa: F821
        return self.line

    @property
    def line(self):
        """The tracer as a line of the library: a handler must not take its frame for the user's."""
        body = type(self)._line
        names = {"__name__": "scgd.tracer", "raise_signal": signal.raise_signal}
        return FunctionType(body.__code__, names).__get__(self)


def lines(name):
    """Return the result of a case and how often each line of the library was visited."""
    run(name)  # compile and import first
    with Tracer() as tracer:
        whole = run(name)
    return whole, tracer.visits


def chosen(visits, n, rng):
    """Return distinct lines, and which visit of each."""
    places = rng.sample(sorted(visits), min(n, len(visits)))
    return [(place, rng.randint(1, visits[place])) for place in places]


def check_signal(name, path, whole, place, visit, number):
    """Deliver a signal at a place, take the run up again, compare; tell whether it was delivered."""
    tracer = Tracer(place, visit, number)
    with contextlib.suppress(KeyboardInterrupt, SystemExit), tracer:
        run(name, path)
    where = f"{name} {Path(place[0]).name}:{place[1]} visit {visit} {number.name}"
    try:
        check_same(run(name, path), whole)
    except (AssertionError, scgd.checkpoint.CheckpointError) as error:
        raise AssertionError(f"signal at {where}") from error
    return tracer.fired


def check_places(name, folder, n, rng):
    whole, visits = lines(name)
    fired = 0
    for i, (place, visit) in enumerate(chosen(visits, n, rng)):
        path = folder / f"{name}-{i}.npz"
        fired += check_signal(name, path, whole, place, visit, rng.choice(SIGNALS))
    return fired


def test_a_signal_while_a_run_takes_over_leaves_no_handler_behind():
    line = inspect.getsourcelines(signals.run_of)[1] + 2
    tracer = Tracer((signals.__file__, line), 1, signal.SIGTERM)
    with contextlib.suppress(SystemExit), tracer:
        run("random")
    assert tracer.fired and signal.getsignal(signal.SIGINT) is signal.default_int_handler


SHARES = {name: len(range(i, N_PLACES, len(CASES))) for i, name in enumerate(CASES)}


@pytest.mark.parametrize("name", CASES)
def test_signals_on_lines_of_the_library(name, tmp_path):
    rng = random.Random(f"a few {name}")
    # A place that depends on the clock (a bar, a checkpoint that is due) may not come by.
    assert check_places(name, tmp_path, SHARES[name], rng) >= SHARES[name] - 1


@pytest.mark.faults
@pytest.mark.parametrize("name", CASES)
def test_signals_on_many_lines_of_the_library(name, tmp_path):
    assert check_places(name, tmp_path, MANY, random.Random(name)) > 0.8 * MANY


class Halt(Exception):
    """What a user's own handler raises."""


def halting(number, frame):
    raise Halt


@pytest.mark.parametrize("name", ["musketeer", "block", "spsa", "auto", "asynchronous", "jac"])
def test_a_handler_of_the_users_that_raises_leaves_the_last_good_checkpoint(name, tmp_path):
    whole, visits = lines(name)
    signal.signal(signal.SIGINT, halting)
    for i, (place, visit) in enumerate(chosen(visits, 4, random.Random(name))):
        path = tmp_path / f"{i}.npz"
        tracer = Tracer(place, visit, signal.SIGINT)
        with contextlib.suppress(Halt), tracer:
            run(name, path)
        check_same(run(name, path), whole)
    assert signal.getsignal(signal.SIGINT) is halting


class Signalling:
    """A function that is hit by signals at its 100th call."""

    def __init__(self, *numbers, swallow=False):
        self.numbers, self.swallow, self.n, self.went_on = numbers, swallow, 0, False

    def __call__(self, x, *rest):
        self.n += 1
        if self.n == 100:
            for number in self.numbers:
                with contextlib.suppress(KeyboardInterrupt if self.swallow else ()):
                    signal.raise_signal(number)
            self.went_on = True
        return quadratic(x)


@pytest.fixture
def no_early_save(monkeypatch):
    monkeypatch.setattr("scgd.checkpoint.FIRST", 1e9)


METHODS = ("musketeer", "spsa", "auto", "dds", "random")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("number", SIGNALS)
def test_the_users_function_is_interrupted_at_once_and_the_run_saved(method, number, tmp_path):
    path, fun = tmp_path / "run.npz", Signalling(number)
    keywords = {"method": method, "max_evals": 240, "seed": 5}
    result = scgd.minimize(fun, np.zeros(6), checkpoint=path, **keywords)
    assert fun.n == 100 and not fun.went_on
    assert result.status == 4 and not result.success
    assert 98 <= result.nfev == n_accepted(path) <= 99
    resumed = scgd.minimize(quadratic, np.zeros(6), checkpoint=path, **keywords)
    check_same(resumed, scgd.minimize(quadratic, np.zeros(6), **keywords))


COUNTDOWN = [0]


def half_kernel(k, grad, rate, hyper, slots):
    slots[0][k] += 1.0
    COUNTDOWN[0] -= 1
    if COUNTDOWN[0] == 0:
        signal.raise_signal(signal.SIGINT)
    slots[1][k] += grad
    return rate * slots[1][k] / slots[0][k]


class Half(StepRule):
    """The mean gradient of each coordinate; a signal comes between its two slots."""

    n_slots = 2
    kernel = staticmethod(half_kernel)


def test_a_signal_inside_a_users_step_rule_waits_until_its_slots_are_whole(tmp_path):
    path = tmp_path / "run.npz"

    def half(n_steps, **keywords):
        COUNTDOWN[0] = n_steps
        return scgd.minimize(
            quadratic, np.zeros(6), max_evals=240, seed=5, method=scgd.SCGD(step=Half(), learning_rate=0.05, radius=0.01), **keywords)  # fmt: skip

    cut = half(41, checkpoint=path)
    assert cut.status == 4 and cut.nit == 41
    check_same(half(0, checkpoint=path), half(0))


@pytest.mark.parametrize("method", METHODS)
def test_the_second_signal_ends_without_saving(method, tmp_path, no_early_save):
    path, twice = tmp_path / "run.npz", Signalling(signal.SIGINT, swallow=True)

    def again(x):
        value = twice(x)
        if twice.n == 100:
            signal.raise_signal(signal.SIGINT)
        return value

    with pytest.raises(KeyboardInterrupt):
        scgd.minimize(
            again, np.zeros(6), method=method, max_evals=240, seed=5,
            checkpoint=scgd.Checkpoint(path, every=1e9),
        )  # fmt: skip
    assert twice.n == 100 and twice.went_on and not path.exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("method", ["musketeer", "auto"])
def test_handlers_of_the_users_are_left_alone(number, method):
    seen = []
    whole = scgd.minimize(quadratic, np.zeros(6), method=method, max_evals=240, seed=5)
    for handler in (lambda n, frame: seen.append(n), signal.SIG_IGN):
        signal.signal(number, handler)
        fun = Signalling(number)
        result = scgd.minimize(fun, np.zeros(6), method=method, max_evals=240, seed=5)
        check_same(result, whole)
        assert fun.went_on and signal.getsignal(number) is handler
    assert seen == [number]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("method", ["musketeer", "auto"])
def test_a_slow_function_is_not_waited_for(workers, method, tmp_path):
    """Here, or in a worker: the signal comes while an evaluation would take minutes."""
    flag = tmp_path / "slow"
    path = tmp_path / "run.npz"

    def interrupt():
        while not flag.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    result = scgd.minimize(
        SlowAt(str(flag), 20), np.zeros(6), max_evals=240, seed=5,
        workers=workers, checkpoint=path,
    method=method)  # fmt: skip
    thread.join()
    assert result.status == 4 and not Path(f"{flag}-over").exists()
    keywords = {"method": method, "max_evals": 240, "seed": 5}
    resumed = scgd.minimize(quadratic, np.zeros(6), checkpoint=path, **keywords)
    check_same(resumed, scgd.minimize(quadratic, np.zeros(6), **keywords))


class SlowAt:
    """A function that takes for ever where x has come so far."""

    def __init__(self, flag, value):
        self.flag, self.value = flag, value

    def __call__(self, x):
        if quadratic(x) < self.value and np.any(x):
            Path(self.flag).touch()
            time.sleep(120)
            Path(f"{self.flag}-over").touch()
        return quadratic(x)


SCRIPT = """
import sys, os, signal, numpy as np, scgd
def fun(x):
    fun.n += 1
    if fun.n == 100:
        os.kill(os.getpid(), signal.SIGTERM)
    return float(np.sum((x - 1) ** 2))
fun.n = 0
scgd.minimize(fun, np.zeros(6), method="random", max_evals=240, seed=5, checkpoint=sys.argv[1])
print("went on")
"""


def test_where_nobody_handles_sigterm_the_program_ends_by_it_after_saving(tmp_path):
    path = tmp_path / "run.npz"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == -signal.SIGTERM and done.stdout == "", done.stderr
    assert n_accepted(path) == 99


class Inner:
    """A function that is a run of its own, hit by a signal in its 3rd call and inside another run."""

    def __init__(self, place, n_signals=1):
        self.place, self.n_signals, self.n, self.at_x0 = place, n_signals, 0, 0

    def hit(self):
        for _ in range(self.n_signals):
            with contextlib.suppress(KeyboardInterrupt if self.n_signals > 1 else ()):
                signal.raise_signal(signal.SIGINT)

    def __call__(self, x):
        self.n += 1

        def inner(z):
            inner.n += 1
            if self.n == 3 and inner.n == 5 and self.place == "function":
                self.hit()
            return quadratic(z)

        def callback(result):
            if self.n == 3 and self.place == "callback":
                self.hit()

        inner.n = 0
        found = scgd.minimize(inner, x, method="spsa", max_evals=30, seed=0, reporting=callback)
        assert found.status != 4, "a cut run has returned"
        return float(x @ x) + found.fun


@pytest.mark.parametrize("place", ["function", "callback"])
@pytest.mark.parametrize("n_signals", [1, 2])
def test_a_run_inside_a_run_hands_on_what_it_was_interrupted_by(place, n_signals, tmp_path):
    path, keywords = tmp_path / "run.npz", {"method": "spsa", "max_evals": 12, "seed": 5}
    cut = scgd.Checkpoint(path, every=1e9)
    if n_signals == 2:
        with pytest.raises(KeyboardInterrupt):
            scgd.minimize(Inner(place, 2), np.zeros(6), checkpoint=cut, **keywords)
        assert not path.exists()
    else:
        result = scgd.minimize(Inner(place), np.zeros(6), checkpoint=cut, **keywords)
        assert result.status == 4 and result.nfev == n_accepted(path) == 2
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    resumed = scgd.minimize(Inner("nowhere"), np.zeros(6), checkpoint=path, **keywords)
    check_same(resumed, scgd.minimize(Inner("nowhere"), np.zeros(6), **keywords))


def test_a_run_in_a_worker_hands_on_its_interrupt():
    """A terminal sends Ctrl-C to the workers too: what their runs had found is no value."""

    def evaluate(call, calls):
        return [call(c) for c in calls]

    fun = Inner("function")
    keywords = {"method": "spsa", "max_evals": 12, "seed": 5}
    result = scgd.minimize(fun, np.zeros(6), workers=evaluate, **keywords)
    assert result.status == 4 and result.nfev == 0  # of the question that was cut


def test_a_signal_while_a_run_goes_on_in_a_thread():
    """The main thread has the interrupt, as without us; the run is not cut."""
    results, begun, over = [], threading.Event(), threading.Event()

    def fun(x):
        if not begun.is_set():
            begun.set()
            os.kill(os.getpid(), signal.SIGINT)
        return nested(x)

    def work():
        results.append(scgd.minimize(fun, np.zeros(6), method="spsa", max_evals=12, seed=5))
        over.set()

    thread = threading.Thread(target=work)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        over.wait(60)
    assert over.wait(60)
    thread.join()
    check_same(results[0], scgd.minimize(nested, np.zeros(6), method="spsa", max_evals=12, seed=5))


@pytest.mark.parametrize("name", ["nested", "auto"])
def test_signals_in_a_notebook(name, tmp_path):
    """There, cells run inside an event loop; the next cell goes on."""
    whole, visits = lines(name)
    loop = asyncio.new_event_loop()

    async def cell(place, visit, path):
        tracer = Tracer(place, visit, signal.SIGINT)
        with tracer:
            return run(name, path)

    async def next_cell(path):
        return run(name, path)

    try:
        for i, (place, visit) in enumerate(chosen(visits, 4, random.Random(name))):
            path = tmp_path / f"{i}.npz"
            with contextlib.suppress(KeyboardInterrupt):
                loop.run_until_complete(cell(place, visit, path))
            check_same(loop.run_until_complete(next_cell(path)), whole)
    finally:
        loop.close()


def test_a_run_in_a_thread_leaves_signals_alone():
    results = []
    thread = threading.Thread(target=lambda: results.append(run("musketeer")))
    thread.start()
    thread.join()
    check_same(results[0], run("musketeer"))
