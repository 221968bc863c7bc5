"""The peer arena: counted, resumable, judged by the truth, in its quick form."""

import argparse
import warnings

import numpy as np
import pytest

from scgd.compare.arena import Row, first_reached, load, problem, run_arena, summary
from scgd.compare.command import add_parser
from scgd.compare.outside import model_fit, rollout
from scgd.compare.peers import METHODS, Oracle, Spent, spsa_adam
from scgd.compare.problems import PROBLEMS, build, ridge, scaled
from scgd.compare.report import data_profiles, markdown_table, profiles, write_report

QUICK = ["ridge5", "quad", "hp"]


@pytest.mark.parametrize("name", [n for n in PROBLEMS if "10000" not in n])
def test_problems_are_what_they_say(name):
    task = build(name)
    fun = task.make(3)
    rng = np.random.default_rng(0)
    gap = task.gap(task.x0)
    assert gap > 0
    if task.sample is None:
        seen = [fun(task.x0) for _ in range(200)]
    else:
        seen = [fun(task.x0, rng.integers(0, task.sample, 1)) for _ in range(200)]
        assert fun(task.x0, np.array([7])) == fun(task.x0, np.array([7]))
    floor = 1e-9 + 5 * np.std(seen) / np.sqrt(len(seen))
    best = np.mean(seen) - gap  # f* is the observed mean less the gap, within the noise
    assert best > -floor


def test_ridge_is_the_papers():
    assert ridge(5).gap(np.zeros(250)) == pytest.approx(1.9033092 - 5.087464e-4, rel=1e-6)


def test_real_data_and_rollouts_improve():
    for task in (model_fit("breast_cancer"), rollout()):
        x = METHODS["auto"](Oracle(task, 3000, 1), 1)
        assert task.gap(x) < 0.9 * task.gap(task.x0)


def test_the_oracle_counts_and_refuses():
    oracle = Oracle(build("ridge5"), 3, 0)
    rows = oracle.rows(2)
    oracle.at(np.zeros(250), rows)
    oracle(np.zeros(250))
    assert oracle.count == 3
    with pytest.raises(Spent):
        oracle(np.zeros(250))


def test_scaled_problems_keep_their_gap():
    task = build("quad")
    other = scaled(task, f_scale=1e6, f_shift=3.0, x_scale=1e-3)
    x = np.linspace(-1, 1, task.x0.size)
    assert other.gap(1e-3 * x) == pytest.approx(task.gap(x))
    assert other.make(0)(1e-3 * x) == pytest.approx(1e6 * task.make(0)(x) + 3.0)


def test_tuned_peer_descends():
    task = build("ridge5")
    x = spsa_adam(Oracle(task, 4000, 5), 5, rate=0.01, radius=0.1)
    assert task.gap(x) < 0.02


def test_quick_arena_runs_resumes_and_reports(tmp_path):
    path = tmp_path / "results.csv"
    rows = run_arena(QUICK, ["auto", "powell"], [800], [11, 12], path)
    assert len(rows) == 12 and all(row.evals <= 800 for row in rows)
    assert all(row.gap <= 1.5 * row.start for row in rows if row.method == "auto")
    more = []
    again = run_arena(QUICK, ["auto", "powell"], [800], [11, 12, 13], path, report=more.append)
    assert len(again) == 18 and {row.seed for row in more} == {13}
    assert load(path) == again
    cells = summary(again)
    assert cells["quad", 800]["auto"][0] < cells["quad", 800]["powell"][0]
    factors, shares = profiles(again)
    assert shares["auto"][-1] == 1.0 and len(factors) == len(shares["powell"])
    places, solved = data_profiles(again)
    assert solved["auto"].shape == (3, len(places)) and (np.diff(solved["auto"]) >= 0).all()
    assert (np.diff(solved["auto"], axis=0) <= 0).all()  # a smaller gap takes longer
    assert solved["auto"][0, -1] >= solved["powell"][0, -1]
    assert markdown_table(again).count("\n") == 1 + len(cells)
    pytest.importorskip("plotly")
    write_report(again, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "Performance profiles" in page and "Data profiles" in page and "ridge5" in page


def test_a_method_that_is_too_slow_is_stopped_and_says_so(tmp_path):
    rows = run_arena(["hp"], ["powell"], [5000], [1], tmp_path / "r.csv", max_seconds=0.0)
    assert rows[0].evals < 5000


@pytest.mark.parametrize("name", ["cma-sep", "cma", "cma-vkd"])
def test_pycma_peers(name):
    pytest.importorskip("cma")
    task = build("hp")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = METHODS[name](Oracle(task, 1500, 1), 1)
    assert task.gap(x) < task.gap(task.x0)


@pytest.mark.parametrize("argument", [["--problems", "nothing"], ["--methods", "nothing"]])
def test_command_refuses_unknown_names(argument, tmp_path, capsys):
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    args = parser.parse_args(["compare", "--out", str(tmp_path), *argument])
    assert args.run(args) == 2
    assert "must be one of" in capsys.readouterr().err


def test_command_lists(capsys):
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    args = parser.parse_args(["compare", "--list"])
    assert args.run(args) == 0
    assert "ridge5" in capsys.readouterr().out


def test_first_reached():
    seen = [(1, 10.0), (5, 0.9), (7, 2.0), (9, 0.01)]
    assert first_reached(seen, 10.0) == [5.0, 9.0, 9.0]
    assert first_reached(seen, 1.0) == [9.0, 9.0, np.inf]


def test_a_table_of_something_else_is_refused(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text("problem,method\nridge5,auto\n")
    with pytest.raises(ValueError, match="not a table of this arena"):
        load(path)


def test_a_torn_table_goes_on_and_a_broken_method_is_told(tmp_path, monkeypatch):
    path = tmp_path / "results.csv"
    path.touch()
    whole = run_arena(["hp"], ["powell"], [300], [1, 2], path)
    text = path.read_text()
    path.write_text(text[:-9])
    assert [row.gap for row in run_arena(["hp"], ["powell"], [300], [1, 2], path)] == [
        row.gap for row in whole
    ]

    def broken(oracle, seed):
        raise MemoryError("too large")

    monkeypatch.setitem(METHODS, "powell", broken)
    row = run_arena(["hp"], ["powell"], [300], [3], path)[-1]
    assert "failed" in row.note and row.gap == row.start
    with pytest.raises(ValueError, match="seeds must be"):
        run_arena(["hp"], ["powell"], [300], range(3, 2), path)


def test_rows_are_plain():
    row = Row("a", "b", 1, 2, 0.5, 1.0, 1, 0.1)
    assert row.key == ("a", "b", 1, 2)
    with pytest.raises(ValueError, match="must be one of"):
        problem("nothing")
