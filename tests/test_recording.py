"""The table of evaluations: every value and point as the function saw it, in memory and in a file."""

import csv
import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import scgd
from scgd import Checkpoint, Optimizer, minimize
from scgd.evaluations import Points
from scgd.run import recording


def valley(x):
    return float(np.sum((x - 1.0) ** 2 * np.arange(1, x.size + 1)))


class Seen:
    """A function that remembers where it was called."""

    def __init__(self, fun=valley):
        self.fun, self.points, self.values = fun, [], []

    def __call__(self, x):
        self.points.append(x.copy())
        self.values.append(self.fun(x))
        return self.values[-1]


CASES = [
    {"method": "auto"},
    {"method": "random"},
    {"method": "musketeer"},
    {"method": scgd.SCGD(estimator="forward")},
    {"method": scgd.SCGD(block_size=3)},
    {"method": scgd.SCGD(block_size=3, estimator="forward")},
    {"method": "spsa"},
    {"method": "musketeer", "bounds": [(-1.0, 0.9)] * 7},
]


@pytest.mark.parametrize("record", [False, True])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_table_is_what_the_function_saw(case, record):
    fun = Seen()
    result = minimize(
        fun, np.zeros(7), max_evals=400, seed=3, reporting=scgd.Reporting(record=record), **case
    )
    table = result.evaluations
    assert len(table) == result.nfev == len(fun.values)
    assert table.number.tolist() == list(range(result.nfev))
    assert table.value.tolist() == fun.values
    assert np.all(np.diff(table.seconds) >= 0) and 0 < table.seconds[-1] < 60
    if record:
        assert all(map(np.array_equal, table.points, fun.points))
        columns = np.array(fun.points)[:, [5, 2]]
        assert np.array_equal(table.points.columns([5, 2]), columns)
    else:
        assert table.points is None


def test_recording_does_not_change_the_trajectory():
    results = [
        minimize(
            valley,
            np.zeros(9),
            method="musketeer",
            max_evals=500,
            seed=1,
            reporting=scgd.Reporting(record=record),
        )
        for record in (False, True)
    ]
    assert np.array_equal(results[0].x, results[1].x) and results[0].fun == results[1].fun


@pytest.mark.parametrize("record", [False, True])
@pytest.mark.parametrize("method", ["auto", "musketeer"])
def test_maximizing_the_table_shows_the_users_values(method, record):
    fun = Seen(lambda x: -valley(x))
    result = minimize(fun, np.zeros(4), method=method, max_evals=200, seed=1, maximize=True,
                      reporting=scgd.Reporting(record=record))  # fmt: skip
    assert result.evaluations.value.tolist() == fun.values and max(fun.values) > -1.0


def test_members_are_named():
    table = minimize(valley, np.zeros(5), max_evals=200, seed=0).evaluations
    assert table.member[:2].tolist() == ["x0", "noise test"] and len(set(table.member)) > 2
    only = minimize(valley, np.zeros(5), method="musketeer", scale=1.0, max_evals=60, seed=0)
    assert set(only.evaluations.member) == {"x0", "SCGD"}


def test_lost_values_are_rows_too():
    rng = np.random.default_rng(0)

    def sometimes(x):
        return float("nan") if rng.random() < 0.1 else valley(x)

    result = minimize(
        sometimes, np.zeros(4), method="musketeer", max_evals=300, seed=0, failures="skip"
    )
    assert np.isnan(result.evaluations.value).sum() == result.n_failed > 10
    assert len(result.evaluations) == result.nfev


def test_partials_have_no_value():
    def slopes(x, coords):
        return 2 * x[coords]

    result = minimize(
        valley, np.ones(4), jac=slopes, max_evals=40, seed=0, reporting=scgd.Reporting(record=True)
    )
    assert len(result.evaluations) == result.nfev
    assert np.isnan(result.evaluations.value).any()


def test_a_step_that_is_cut_leaves_no_row():
    class Done(Exception):
        pass

    calls = []

    def fun(x):
        calls.append(1)
        if len(calls) == 100:
            raise Done
        return valley(x)

    opt = []

    def watch(result):
        opt.append(result)

    with pytest.raises(Done):
        minimize(fun, np.zeros(4), method="musketeer", scale=1.0, max_evals=200, seed=0,
                 reporting=watch)  # fmt: skip
    assert len(opt[-1].evaluations) == opt[-1].nfev


def test_a_callback_sees_the_table_so_far():
    kept = []
    minimize(valley, np.zeros(4), method="musketeer", max_evals=200, seed=0, reporting=scgd.Reporting(callback=kept.append, record=True))  # fmt: skip
    sizes = [(len(r.evaluations), len(list(r.evaluations.points)), r.nfev) for r in kept]
    assert all(a == b == c for a, b, c in sizes) and sizes[0] != sizes[-1]


def test_the_table_is_bounded_unless_wanted(monkeypatch):
    monkeypatch.setattr(recording, "LIMIT", 75)
    free = minimize(valley, np.zeros(4), method="musketeer", max_evals=200, seed=0)
    assert free.evaluations.number.tolist() == list(range(75))
    asked = minimize(
        valley,
        np.zeros(4),
        method="musketeer",
        max_evals=200,
        seed=0,
        reporting=scgd.Reporting(record=True),
    )
    assert len(asked.evaluations) == 200
    assert asked.evaluations.value[:75].tolist() == free.evaluations.value.tolist()


def test_asynchronous_points():
    result = minimize(valley, np.zeros(4), method="musketeer", max_evals=120, seed=0, workers=scgd.Workers(asynchronous=6), reporting=scgd.Reporting(record=True))  # fmt: skip
    table = result.evaluations
    assert [valley(x) for x in table.points] == table.value.tolist()
    assert sorted(table.number) == list(range(120))


def test_ask_and_tell_is_recorded():
    opt = Optimizer(np.zeros(3), "musketeer", max_evals=60, seed=1, record=True)
    asked = {}
    while not opt.done:
        for trial in opt.ask():
            asked[trial.id] = trial.x.copy()
            opt.tell(trial.id, valley(trial.x))
    table = opt.result().evaluations
    points = list(table.points)
    assert all(np.array_equal(asked[n], x) for n, x in zip(table.number, points, strict=True))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(0, 2**32 - 1), st.integers(0, 12))
def test_points_come_back(p, seed, n):
    rng = np.random.default_rng(seed)
    x, points, kept = rng.normal(size=p), None, []
    points = Points(x)
    for _ in range(n):
        coords = rng.permutation(p)[: rng.integers(0, p + 1)]
        x[coords] = rng.normal(size=len(coords))
        points.add(coords, x[coords])
        kept.append(x.copy())
    assert len(points) == n and all(map(np.array_equal, points, kept))
    half = points.head(n // 2)
    assert len(list(half)) == n // 2
    if n:
        wanted = rng.integers(0, p, 3)
        assert np.array_equal(points.columns(wanted), np.array(kept)[:, wanted])


def test_table_copies_and_prints():
    result = minimize(
        valley, np.zeros(3), max_evals=60, seed=0, reporting=scgd.Reporting(record=True)
    )
    again = pickle.loads(pickle.dumps(result))
    assert np.array_equal(again.evaluations.value, result.evaluations.value)
    assert all(map(np.array_equal, again.evaluations.points, result.evaluations.points))
    columns = result.evaluations.to_dict()
    assert list(columns) == ["number", "member", "value", "seconds", "x0", "x1", "x2"]
    assert [valley(np.array(x)) for x in zip(columns["x0"], columns["x1"], columns["x2"],
                                              strict=True)] == columns["value"].tolist()  # fmt: skip
    assert "60 evaluations, with points" in repr(result.evaluations)


# ---- the file ------------------------------------------------------------------------------------


def rows(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def timeless(path):
    return [row[:3] + row[4:] for row in rows(path)]


@pytest.mark.parametrize("p", [3, 150])
def test_log_holds_every_evaluation(p, tmp_path):
    fun, path = Seen(), tmp_path / "run.csv"
    result = minimize(
        fun,
        np.zeros(p),
        method="musketeer",
        max_evals=90,
        seed=1,
        reporting=scgd.Reporting(log=path),
    )
    head, *body = rows(path)
    assert head[:4] == ["number", "member", "value", "seconds"] and len(body) == result.nfev == 90
    assert [float(row[2]) for row in body] == fun.values
    assert [int(row[0]) for row in body] == list(range(90))
    if p == 3:
        assert head[4:] == ["x0", "x1", "x2"]
        assert [[float(x) for x in row[4:]] for row in body] == [x.tolist() for x in fun.points]
    else:
        x = np.zeros(p)
        for row, point in zip(body, fun.points, strict=True):
            for pair in row[4].split():
                k, _, entry = pair.partition("=")
                x[int(k)] = float(entry)
            assert np.array_equal(x, point)
    assert all(map(np.array_equal, result.evaluations.points, fun.points))


def test_log_grows_while_running(tmp_path):
    path, sizes = tmp_path / "run.csv", []

    def fun(x):
        sizes.append(len(path.read_text().splitlines()) - 1)
        return valley(x)

    minimize(
        fun,
        np.zeros(3),
        method="musketeer",
        max_evals=40,
        seed=1,
        reporting=scgd.Reporting(log=path),
    )
    assert sizes[0] == 0 and sizes[-1] >= 38 and sizes == sorted(sizes)


@pytest.mark.parametrize("p", [3, 150])
@pytest.mark.parametrize("late", [0, 5])
def test_log_resumes_without_duplicates(p, late, tmp_path):
    """Rows written after the last checkpoint belong to evaluations that are made again."""

    def go(folder, stop):
        def halt(result):
            if result.nfev >= stop:
                raise StopIteration

        return minimize(
            valley, np.zeros(p), method="musketeer", max_evals=400, seed=1, checkpoint=Checkpoint(folder / "run.npz", every=0), reporting=scgd.Reporting(callback=halt, log=folder / "run.csv"))  # fmt: skip

    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    whole = go(one, 10_000)
    half = go(two, 100)
    assert half.nfev < 400
    if late:
        lines = (one / "run.csv").read_text().splitlines(keepends=True)
        beyond = "".join(lines[1 + half.nfev : 1 + half.nfev + late]) + lines[-1][: late * 2]
        with open(two / "run.csv", "a") as file:
            file.write(beyond)
    again = go(two, 10_000)
    assert timeless(two / "run.csv") == timeless(one / "run.csv")
    assert again.evaluations.value.tolist() == whole.evaluations.value.tolist()
    assert all(map(np.array_equal, again.evaluations.points, whole.evaluations.points))
    assert np.all(np.diff(again.evaluations.seconds) >= 0)


SCRIPT = """
import sys, time
import numpy as np
from scgd import Checkpoint, minimize

def slow(x):
    time.sleep(0.003)
    return float(np.sum((x - 1.0) ** 2))

minimize(slow, np.zeros(3), method="musketeer", max_evals=600, seed=1, reporting="run.csv",
         checkpoint=Checkpoint("run.npz", every=0.2))
"""


def test_log_is_whole_after_a_kill(tmp_path):
    command = [sys.executable, "-c", SCRIPT]
    process = subprocess.Popen(command, cwd=tmp_path)
    log, saved = tmp_path / "run.csv", tmp_path / "run.npz"
    while not (saved.exists() and log.read_text().count("\n") > 150):
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    text = log.read_text()
    assert text.endswith("\n") and text.count("\n") < 600
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
    whole = tmp_path / "whole.csv"
    minimize(lambda x: float(np.sum((x - 1.0) ** 2)), np.zeros(3), method="musketeer",
             max_evals=600, seed=1, reporting=scgd.Reporting(log=whole))  # fmt: skip
    assert timeless(log) == timeless(whole)


def test_a_second_run_keeps_the_log_of_the_first(tmp_path):
    path = tmp_path / "run.csv"
    minimize(valley, np.zeros(3), max_evals=20, seed=1, reporting=scgd.Reporting(log=path))
    first = path.read_text()
    again = minimize(
        valley, np.zeros(3), max_evals=30, seed=2, reporting=scgd.Reporting(log=str(path))
    )
    assert (tmp_path / "run.csv.previous").read_text() == first
    assert len(path.read_text().splitlines()) == again.nfev + 1 > 25


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        ({"log": 5}, TypeError, r"reporting \(log\) must be the path of a file, got 5"),
        ({"record": "yes"}, TypeError, "record must be True or False, got 'yes'"),
        ({"record": None}, TypeError, "record must be True or False, got None"),
    ],
)
def test_bad_arguments_are_named_before_anything_runs(
    arguments, error, words, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    fun = Seen()
    with pytest.raises(error, match=words):
        minimize(fun, np.zeros(3), max_evals=10, reporting=scgd.Reporting(**arguments))
    assert not fun.values


@pytest.mark.parametrize("given", [lambda path: path, lambda path: scgd.Reporting(log=path)])
@pytest.mark.parametrize(
    "path, error, words",
    [
        ("nowhere/run.csv", FileNotFoundError, ": there is no folder nowhere"),
        (".", ValueError, r": \. is not an ordinary file"),
        ("", TypeError, " must be the path of a file, got ''"),
    ],
)
def test_the_argument_that_named_a_bad_log_is_named(
    given, path, error, words, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    fun = Seen()
    with pytest.raises(error, match=rf"^reporting \(log\){words}"):
        minimize(fun, np.zeros(3), max_evals=10, reporting=given(path))
    assert not fun.values


def test_a_log_of_another_run_is_refused(tmp_path):
    log, saved = tmp_path / "run.csv", tmp_path / "run.npz"
    words = {"method": "musketeer", "seed": 1, "reporting": log, "checkpoint": saved}
    minimize(valley, np.zeros(3), max_evals=20, **words)
    log.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="has other columns"):
        minimize(valley, np.zeros(3), max_evals=40, **words)
    assert log.read_text() == "a,b\n1,2\n"


def test_a_full_disk_does_not_end_the_run():
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    from scgd.run.log import Log

    log = Log("anything.csv", np.zeros(2))
    log.file = open("/dev/full", "wb", buffering=0)
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        log.write(0, "steps", 1.0, 0.0, np.array([0]), np.zeros(2))
    assert log.file is None


# ---- search spaces -------------------------------------------------------------------------------


def test_a_space_keeps_parameters(tmp_path):
    from scgd import Choice, Float, Int, Space

    space = Space(
        lr=Float(1e-4, 1, log=True), depth=Int(2, 12), kind=Choice("a,b", 'c"'),
        drop=Float(0, 0.5, when={"kind": 'c"'}), w=Float(-1, 1, size=2),
    )  # fmt: skip
    asked = []

    def loss(params):
        asked.append(params)
        base = np.log10(params["lr"] / 0.03) ** 2 + (params["depth"] - 8) ** 2 / 20
        return float(base + np.sum(params["w"] ** 2) + params.get("drop", 0.3))

    words = {"seed": 1, "reporting": tmp_path / "run.csv", "checkpoint": tmp_path / "run.npz"}
    minimize(loss, space, max_evals=25, **words)
    result = minimize(loss, space, max_evals=40, **words)
    table = result.evaluations
    assert len(asked) == len(table) == 40
    for params, found in zip(asked, table.params, strict=True):
        assert params.keys() == found.keys() and all(
            np.array_equal(params[name], found[name]) for name in params
        )
    head, *body = rows(tmp_path / "run.csv")
    assert head[4:] == ["lr", "depth", "kind", "drop", "w[0]", "w[1]", "point"]
    for row, params in zip(body, asked, strict=True):
        assert (float(row[4]), int(row[5]), row[6]) == (
            params["lr"],
            params["depth"],
            params["kind"],
        )
        assert row[7] == str(params.get("drop", "")) and float(row[9]) == params["w"][1]
    plain = minimize(loss, space, max_evals=20, seed=1)
    assert len(plain.evaluations.params) == 20
    assert "kind=" in repr(result) and "lr=" in repr(result)


# ---- checkpoints -----------------------------------------------------------------------------------


def same_table(a, b):
    assert np.array_equal(a.number, b.number) and list(a.member) == list(b.member)
    assert np.array_equal(a.value, b.value, equal_nan=True)
    assert np.all(np.diff(a.seconds) >= 0)
    assert all(np.array_equal(x, y) for x, y in zip(a.points, b.points, strict=True))


@pytest.mark.parametrize("kind", ["recipe", "space"])
def test_the_table_survives_a_resume(kind, tmp_path):
    space = scgd.Space(a=scgd.Int(0, 50), b=scgd.Float(0, 1), c=scgd.Choice("u", "v"))

    def go(max_evals, **more):
        if kind == "space":
            return scgd.minimize(
                lambda p: p["a"] + p["b"], space, max_evals=max_evals, seed=0, **more
            )
        return scgd.minimize(
            lambda x: float(x @ x), np.ones(4), max_evals=max_evals, seed=0,
            method=scgd.SCGD(learning_rate=0.1, radius=0.1), reporting=scgd.Reporting(record=True), **more)  # fmt: skip

    path = tmp_path / "run.npz"
    go(20, checkpoint=path)
    again = go(40, checkpoint=path)
    assert again.evaluations.number.tolist() == list(range(40))
    same_table(again.evaluations, go(40, checkpoint=path).evaluations)  # read back
    if kind == "recipe":
        same_table(again.evaluations, go(40).evaluations)


def test_the_table_of_a_laboratory_survives(tmp_path):
    opt = scgd.Optimizer(np.ones(3), max_evals=20, seed=0, record=True)
    while not opt.done:
        for trial in opt.ask(2):
            opt.tell(trial.id, float(trial.x @ trial.x))
        opt.save(tmp_path / "run.npz")
        opt = scgd.Optimizer.load(tmp_path / "run.npz")
    assert len(opt.result().evaluations) == opt.result().nfev == 20


def test_a_table_from_elsewhere_is_refused(tmp_path):
    points = Points(np.zeros(3))
    points.add(np.array([1]), np.array([5.0]))
    state = points.state_dict()
    for name, wrong in (
        ("coords", [3]),
        ("counts", [2]),
        ("entries", [1.0, 2.0]),
        ("counts", [-2]),
    ):
        with pytest.raises(ValueError, match="no points of this problem"):
            points.load_state_dict({**state, name: np.array(wrong)})
    points.load_state_dict(state)
    assert [x.tolist() for x in points] == [[0.0, 5.0, 0.0]]
