"""Engines: all give what this process gives, lose nothing and count nothing twice."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import ClassVar

import numpy as np
import pytest
from scipy.optimize import NonlinearConstraint

import runs
import scgd
from grouped import grouped
from scgd import minimize
from scgd.run.build import build
from scgd.workers import remote
from scgd.workers.engines import ExecutorEngine
from scgd.workers.remote import RemoteEvaluator
from scgd.workers.tasks import Job

P = 20
KEYWORDS = {"x0": np.zeros(P), "method": scgd.SCGD(block_size=4), "max_evals": 96, "seed": 3}


def quadratic(x):
    return float(np.sum(np.arange(1, P + 1) * (x - 1) ** 2))


def shifted(x, xi):
    return float(np.sum((x - xi) ** 2))


def by_rows(x, rows):
    return float(np.sum((x - 0.1 * rows.sum()) ** 2))


def partials(x, coords):
    return 2.0 * (coords + 1) * (x[coords] - 1.0)


def noise(rng):
    return 1.0 + 0.1 * rng.standard_normal(P)


CASES = {
    "values": {"fun": quadratic},
    "xi": {"fun": shifted, "sample": noise},
    "rows": {"fun": by_rows, "sample": scgd.Rows(7, 3)},
    "partials": {"fun": quadratic, "jac": partials},
    "joint": {"fun": quadratic, "method": "spsa", "max_evals": 20},
}


def check_same(workers, names=tuple(CASES), **more):
    for name in names:
        case = {**KEYWORDS, **CASES[name]}
        here = minimize(**case)
        there = minimize(**case, workers=workers, **more)
        assert np.array_equal(there.x, here.x), name
        assert (there.nfev, there.nfev_repeated) == (here.nfev, 0)


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**settings, silence_logs=60) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.filterwarnings("ignore:.*some stay idle:RuntimeWarning")
def test_threads_and_map_give_what_this_process_gives():
    with ThreadPoolExecutor(2) as executor:
        check_same(executor)
        check_same(executor.map)


@pytest.mark.filterwarnings("ignore:.*some stay idle:RuntimeWarning")
def test_processes_give_what_this_process_gives():
    check_same(2, ("xi", "joint"))
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        check_same(executor, ("xi",))


@pytest.mark.filterwarnings("ignore:.*some stay idle:RuntimeWarning")
def test_dask_gives_what_this_process_gives(client, monkeypatch):
    check_same(client)
    monkeypatch.setattr("scgd.workers.cluster.SCATTER", 0)
    check_same(client, ("values", "xi"))
    monkeypatch.setattr("scgd.workers.remote.LARGE", 0)  # as for long points
    check_same(client)
    with client.get_executor() as executor:
        check_same(executor, ("xi",))


def test_more_workers_than_evaluations_are_told():
    with ThreadPoolExecutor(20) as executor, pytest.warns(RuntimeWarning, match="some stay idle"):
        minimize(quadratic, **KEYWORDS, workers=executor)


def test_multiprocessing_pool_is_refused():
    with multiprocessing.Pool(1) as pool:
        for workers in (pool, pool.map):
            with pytest.raises(TypeError, match=r"multiprocessing\.Pool hangs for ever"):
                minimize(quadratic, **KEYWORDS, workers=workers)


@pytest.mark.parametrize("workers", [1, map])
def test_timeout_needs_workers_that_can_be_left(workers):
    with pytest.raises(ValueError, match="timeout needs workers that can be left behind"):
        minimize(quadratic, workers=scgd.Workers(workers, timeout=1.0), **KEYWORDS)


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_timeout(timeout):
    with pytest.raises(ValueError, match="timeout must be a positive number"):
        minimize(quadratic, workers=scgd.Workers(2, timeout=timeout), **KEYWORDS)


FAULTS = [
    "die",
    "hang",
    pytest.param("stop", marks=pytest.mark.faults),
    pytest.param("crawl", marks=pytest.mark.faults),
]


class Once:
    """Does something bad the first time it is called anywhere, then behaves."""

    def __init__(self, folder, what):
        self.flag, self.what = str(folder / what), what

    def __call__(self, x):
        time.sleep(0.02)
        try:
            os.mkdir(self.flag)
        except FileExistsError:
            return quadratic(x)
        if self.what == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.what == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(600.0 if self.what == "hang" else 1.0)
        return quadratic(x)


@pytest.mark.parametrize("what", FAULTS)
def test_faults_of_processes(what, tmp_path):
    here = minimize(quadratic, **KEYWORDS)
    timeout = None if what == "die" else 3.0
    there = minimize(Once(tmp_path, what), workers=scgd.Workers(2, timeout=timeout), **KEYWORDS)
    assert np.array_equal(there.x, here.x) and there.nfev == here.nfev


@pytest.mark.parametrize("what", FAULTS)
def test_faults_of_dask_workers(what, client, tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "START", 5.0)
    client.wait_for_workers(2, timeout=60)
    here = minimize(quadratic, **KEYWORDS)
    timeout = None if what == "die" else 3.0
    there = minimize(
        Once(tmp_path, what), workers=scgd.Workers(client, timeout=timeout), **KEYWORDS
    )
    assert np.array_equal(there.x, here.x) and there.nfev == here.nfev


def test_restarted_cluster(client, tmp_path):
    """All futures are cancelled and all scattered data lost in the middle of a run."""
    here, n_phases = minimize(quadratic, **KEYWORDS), []

    def restart(intermediate):
        n_phases.append(intermediate.nfev)
        if len(n_phases) == 3:
            client.restart(wait_for_workers=False)  # the run itself waits for one

    there = minimize(quadratic, reporting=restart, **KEYWORDS, workers=client)
    assert np.array_equal(there.x, here.x) and there.nfev == here.nfev
    assert len(n_phases) > 5


class Failing:
    def __init__(self, how, at):
        self.how, self.at = how, at

    def __call__(self, x):
        if abs(x[:] - 1.0).mean() > self.at:
            return quadratic(x)
        if self.how == "raise":
            raise ZeroDivisionError("out of luck")
        return "garbage" if self.how == "garbage" else float("nan")


@pytest.mark.parametrize(
    "how, error",
    [("raise", ZeroDivisionError), ("garbage", TypeError), ("nan", FloatingPointError)],
)
@pytest.mark.parametrize("engine", ["threads", "dask"])
def test_failing_evaluation_leaves_a_usable_checkpoint(how, error, engine, request, tmp_path):
    """The run stops with the evaluation's own error; mended, it goes on to the same result."""
    keywords = {**KEYWORDS, "checkpoint": tmp_path / "run.npz"}
    here = minimize(quadratic, **KEYWORDS)
    with ThreadPoolExecutor(2) as executor:
        workers = executor if engine == "threads" else request.getfixturevalue("client")
        with pytest.raises(error):
            minimize(Failing(how, 0.9), **keywords, workers=workers)
        assert 0 < scgd.checkpoint.read(tmp_path / "run.npz")[1]["ledger"]["n_accepted"] < 96
        there = minimize(quadratic, **keywords, workers=workers)
    assert np.array_equal(there.x, here.x) and there.nfev == here.nfev


@pytest.mark.faults
def test_evaluation_that_always_hangs():
    keywords = {**KEYWORDS, "max_evals": 16, "method": scgd.SCGD("full")}
    keywords["x0"] = np.zeros(4)
    with pytest.raises(
        TimeoutError, match=r"took longer than timeout=1 s 2 times; .*failures=TimeoutError"
    ):
        minimize(slow_square, workers=scgd.Workers(2, timeout=1.0), **keywords)
    result = minimize(
        slow_square, failures="skip", workers=scgd.Workers(2, timeout=1.0), **keywords
    )
    assert result.n_failed >= 1 and result.nfev <= 16


def slow_square(x):
    if abs(x[3]) > 1e-4:
        time.sleep(600.0)
    return float(x @ x)


def killing(x):
    os.kill(os.getpid(), signal.SIGKILL)


def test_evaluation_that_always_kills(monkeypatch):
    monkeypatch.setattr(remote, "LOSSES", 2)
    with pytest.raises(RuntimeError, match="was lost with its worker 3 times"):
        minimize(killing, **KEYWORDS, workers=2)


class TwiceEngine(ExecutorEngine):
    """An engine that hands everything over twice and loses every fifth task once."""

    lost: ClassVar[set[int]] = set()

    def wait(self, seconds):
        for future, number in list(self.futures.items()):
            if number % 5 == 0 and number not in self.lost:
                self.lost.add(number)
                gone = Future()
                gone.cancel()
                gone.set_running_or_notify_cancel()
                self.futures[gone] = self.futures.pop(future)
        arrivals = super().wait(seconds)
        return arrivals + arrivals


def test_ledger_accepts_every_evaluation_once():
    method = scgd.SCGD(block_size=5)
    keywords = {"max_evals": 100, "seed": 3, "scale": 1.0}
    run = build(np.zeros(P), method, **keywords)
    job = Job(quadratic, None, (), run.samples)
    with ThreadPoolExecutor(2) as executor:
        evaluate = RemoteEvaluator(TwiceEngine(job, executor))
        while not run.done:
            for arrived in evaluate.answers(run.next_question()):
                for number, value in arrived:
                    run.accept(number, value)
    here = minimize(quadratic, np.zeros(P), method=method, **keywords)
    assert np.array_equal(run.result().x, here.x)
    assert run.nfev == here.nfev == 94 and evaluate.n_repeated >= 94 and not evaluate.open


def settings_of(x):
    """Fail with the thread settings of the process that evaluates."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    raise LookupError(" ".join(f"{name}={os.environ.get(name)}" for name in names))


@pytest.mark.parametrize("chosen", [None, "3"])
def test_worker_processes_have_one_thread_each_unless_told_otherwise(chosen, monkeypatch):
    for name in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
        monkeypatch.delenv(f"{name}_NUM_THREADS", raising=False)
    if chosen:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", chosen)
    mine = lambda: {k: v for k, v in os.environ.items() if k.endswith("_NUM_THREADS")}  # noqa: E731
    before = mine()
    with pytest.raises(LookupError) as caught:
        minimize(settings_of, **KEYWORDS, workers=2)
    said = dict(item.split("=") for item in str(caught.value.args[0]).split())
    assert said.pop("OPENBLAS_NUM_THREADS") == (chosen or "1")
    assert set(said.values()) == {"1"}
    assert mine() == before  # this process keeps its own


@pytest.mark.filterwarnings("ignore:.*some stay idle:RuntimeWarning")
@pytest.mark.parametrize("name", ["auto", "auto-rows", "auto-xi", "jac", "random", "sphere"])
def test_values_do_not_depend_on_the_number_of_workers(name):
    here = runs.run(name)
    for n_workers in (1, 3, 8):
        with ThreadPoolExecutor(n_workers) as executor:
            runs.check_same(runs.run(name, workers=executor), here)


@pytest.mark.filterwarnings("ignore:.*some stay idle:RuntimeWarning")
def test_a_tick_in_the_middle_of_a_question_loses_nothing(tmp_path):
    """Values that arrive together while the clock ticks are all accepted, and none is asked again."""
    made = []

    def slow(x):
        made.append(1)
        time.sleep(0.05)
        return quadratic(x)

    with ThreadPoolExecutor(4) as executor:
        there = minimize(slow, **KEYWORDS, workers=executor, checkpoint=tmp_path / "run.npz")
    here = minimize(quadratic, **KEYWORDS)
    runs.check_same(there, here)
    assert len(made) == here.nfev and there.nfev_repeated == 0


# ---- what cannot be unpickled, and who is left behind ---------------------------------------------


class Stubborn(Exception):
    """Can be pickled and not be unpickled."""

    def __init__(self, code, text):
        super().__init__(f"{text} ({code})")


def stubborn(x):
    raise Stubborn(7, "the pump is dry")


@pytest.mark.parametrize("engine", ["processes", "executor"])
def test_an_error_that_cannot_be_unpickled_arrives_as_its_text(engine):
    began = time.monotonic()
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        workers = 2 if engine == "processes" else pool
        with pytest.raises(RuntimeError, match=r"^Stubborn: the pump is dry \(7\)") as caught:
            minimize(stubborn, **KEYWORDS, workers=workers)
    assert any("in stubborn" in note for note in caught.value.__notes__)
    assert any("cannot be sent" in note for note in caught.value.__notes__)
    assert time.monotonic() - began < 60


def plainly(x):
    raise KeyError("pump")


def test_an_error_that_can_be_sent_arrives_as_itself():
    with pytest.raises(KeyError, match="pump"):
        minimize(plainly, **KEYWORDS, workers=2)


DRIVER = """
import os, sys, time
import numpy as np, scgd
def fun(x):
    open(os.path.join(sys.argv[1], str(os.getpid())), "w").close()
    time.sleep(0.05)
    return float(x @ x)
if __name__ == "__main__":
    scgd.minimize(fun, np.ones(8), method=scgd.SCGD("uniform", block_size=4), workers=2, max_time=600)
"""


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="looks at /proc")
def test_a_killed_driver_leaves_no_worker_behind(tmp_path):
    script, seen = tmp_path / "driver.py", tmp_path / "seen"
    script.write_text(DRIVER)
    seen.mkdir()
    driver = subprocess.Popen([sys.executable, str(script), str(seen)], start_new_session=True)
    deadline = time.monotonic() + 60
    while len(workers := [int(path.name) for path in seen.iterdir()]) < 2:
        assert time.monotonic() < deadline and driver.poll() is None
        time.sleep(0.05)
    assert all(alive(pid) for pid in workers)
    driver.kill()
    driver.wait()
    deadline = time.monotonic() + 10
    while any(alive(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [pid for pid in workers if alive(pid)]


# ---- what travels with the function, and what stays here -------------------------------------------


class Broken(Exception):
    """An exception of the user's own."""


def breaking(x):
    if x[0] > 0.01:
        raise Broken("too far")
    return quadratic(x)


def ball(x):
    if x[1] > 0.01:
        raise Broken("too far")
    return float(x @ x)


def table(path):
    with open(path) as file:
        return [line.split(",")[:3] for line in file]


@pytest.mark.faults
@pytest.mark.parametrize("case", ["constraints", "catch", "both", "record", "log"])
@pytest.mark.filterwarnings("ignore:.*some stay idle:RuntimeWarning")
def test_dask_with_constraints_failures_and_tables(case, client, tmp_path):
    within = NonlinearConstraint(ball, -np.inf, 1)
    words = {
        "constraints": {"fun": quadratic, "constraints": within, "catch": Broken},
        "catch": {"fun": breaking, "catch": (Broken,)},
        "both": {"fun": breaking, "constraints": within, "catch": Broken},
        "record": {"fun": quadratic, "record": True},
        "log": {"fun": quadratic},
    }[case]
    words |= {"x0": np.zeros(P), "max_evals": 80, "seed": 3, "method": "spsa", "scale": 1.0}
    logs = (
        [{"log": tmp_path / name} for name in ("here.csv", "there.csv")]
        if case == "log"
        else [{}] * 2
    )
    here = minimize(**grouped(**words, **logs[0]))
    there = minimize(**grouped(**words, **logs[1], workers=client))
    assert np.array_equal(there.x, here.x) and there.nfev == here.nfev
    assert there.n_failed == here.n_failed and (there.n_failed > 0 or case != "catch")
    rows = [
        dict(zip(r.evaluations.number.tolist(), r.evaluations.value, strict=True))
        for r in (here, there)
    ]
    np.testing.assert_equal(rows[0], rows[1])  # arrivals may be in another order
    if case == "record":
        tables = [sorted(x.tolist() for x in r.evaluations.points) for r in (here, there)]
        assert tables[0] == tables[1]
    if case == "log":
        found = [sorted(table(log["log"])) for log in logs]
        assert found[0] == found[1] and len(found[0]) == 81


def test_nothing_is_evaluated_here_where_there_are_workers():
    """Every value comes from the workers, by every kind of question."""
    done = []

    def counting(task, items):
        done.append(len(items))
        return [task(item) for item in items]

    for name in ("musketeer", "auto", "random"):
        done.clear()
        result = runs.run(name, workers=counting)
        assert sum(done) == result.nfev
