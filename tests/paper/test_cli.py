"""The command line: exit codes, bad input named, resumed runs the same as uninterrupted ones."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from scgd_paper.commands import build_parser, main
from scgd_paper.commands.run import selections, settings_of
from scgd_paper.registry import EXPERIMENTS, find
from scgd_paper.table import COLUMNS, read

PANELS = {
    "zo-linear": "ridge-alpha5 ridge-alpha10 logistic-alpha2 logistic-alpha5 logistic-alpha10",
    "zo-networks": "mnist fashion-mnist kmnist",
    "paths-2d": "f h",
    "fo-linear": "ridge-alpha5 ridge-alpha10 logistic-alpha2 logistic-alpha5",
    "fo-networks": "mnist fashion-mnist cifar10",
}
FEW = {
    "zo-linear": ["logistic-alpha5"],
    "fo-linear": ["logistic-alpha5"],
    "zo-grid": ["ridge-n1000-p20", "logistic-n2000-p100"],
    "zo-importance": ["ridge-n1000-p50"],
    "fo-rates": ["p20-gamma0.5"],
    "fo-grid": ["logistic-n1000-p20"],
    "theory": ["weights", "regret", "mean-step", "regret-bound"],
    "paths-2d": ["f", "h"],
}
SETTINGS = {"zo-grid": "published", "zo-importance": "published"}  # else the paper's
RUN = pytest.param("published", "zo-linear", marks=pytest.mark.slow)  # what `make run` does


def run(*arguments) -> int:
    return main([str(a) for a in arguments])


def same_but_seconds(a: Path, b: Path) -> None:
    left, right = read(a).drop(columns="seconds"), read(b).drop(columns="seconds")
    assert left.equals(right)


def test_every_experiment_of_the_paper_is_listed(capsys):
    assert run("list") == 0
    out = capsys.readouterr().out
    for name in EXPERIMENTS:
        assert re.search(rf"^{name} ", out, re.M)
    for name, panels in PANELS.items():
        for settings in EXPERIMENTS[name].panels:
            assert [p.name for p in EXPERIMENTS[name].panels[settings]] == panels.split()


def test_commands_say_what_they_are():
    parser = build_parser()
    assert parser.parse_args(["report", "x"]).folder == Path("x")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "zo-liner"], 2, "did you mean 'zo-linear'"),
        (["run", "zo-linear", "--panel", "ridge-alpha6"], 2, "did you mean 'ridge-alpha5'"),
        (["run", "zo-linear", "--method", "unifrom"], 2, "did you mean 'uniform'"),
        (["run", "zo-linear", "--extra", "autto"], 2, "did you mean 'auto'"),
        (["run", "theory", "--extra", "auto"], 2, "there is no extra method 'auto'"),
        (["run", "zo-linear", "--runs", "0"], 2, "above zero, got '0'"),
        (["run", "zo-linear", "--settings", "papier"], 2, "did you mean 'paper'"),
        (["rum"], 2, "did you mean 'run'"),
        (["data", "get", "mnits"], 2, "did you mean 'mnist'"),
        (["report", "/nowhere/at/all"], 1, "there is no folder /nowhere/at/all"),
        (
            ["run", "paths-2d", "--quick", "--out", "/dev/null/x"],
            2,
            "--out: /dev/null is not a folder",
        ),
    ],
)
def test_bad_command_lines(arguments, code, message, capsys):
    try:
        found = main(arguments)
    except SystemExit as stop:
        found = stop.code
    assert found == code
    assert message in capsys.readouterr().err


def test_empty_folder_has_no_report(tmp_path, capsys):
    assert run("report", tmp_path) == 1
    assert "holds no table" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "name"),
    [RUN, *((SETTINGS.get(name, "paper"), name) for name in FEW)],
)
def test_quick_runs_make_whole_tables_and_a_report(name, settings, tmp_path, capsys):
    experiment = EXPERIMENTS[name]
    chosen = [a for panel in FEW[name] for a in ("--panel", panel)]
    code = run("run", name, "--quick", "--settings", settings, "--workers", 1, "--no-progress",
               "--out", tmp_path, *chosen)  # fmt: skip
    assert code == 0
    table = read(tmp_path / f"{name}.csv")
    assert tuple(table.columns) == COLUMNS
    for panel_name in FEW[name]:
        panel = experiment.panel(panel_name, settings).quick()
        rows = table[table["panel"] == panel_name]
        assert set(rows["method"]) == {m.name for m in panel.methods}
        assert set(rows["measure"]) == set(panel.measures)
        assert set(rows["settings"]) == {settings}
        last = rows[rows["pass"] == panel.n_passes]
        n_runs = sum(min(2, getattr(m, "n_runs", 2)) for m in panel.methods)
        assert len(last) == n_runs * len(panel.measures)
    assert "report.html written" in capsys.readouterr().out
    assert (tmp_path / "report.html").stat().st_size > 1e6


def test_workers_do_not_change_the_numbers(tmp_path):
    for workers in (1, 2):
        out = tmp_path / str(workers)
        common = ["--quick", "--runs", 3, "--workers", workers, "--no-progress", "--out", out]
        assert run("run", "zo-grid", "--panel", "ridge-n1000-p20", *common) == 0
    same_but_seconds(tmp_path / "1" / "zo-grid.csv", tmp_path / "2" / "zo-grid.csv")


def test_more_runs_keep_the_first(tmp_path):
    common = ["run", "zo-grid", "--panel", "ridge-n1000-p20", "--quick", "--no-progress"]
    assert run(*common, "--runs", 2, "--out", tmp_path / "a") == 0
    few = read(tmp_path / "a" / "zo-grid.csv")
    assert run(*common, "--runs", 4, "--out", tmp_path / "a") == 0
    many = read(tmp_path / "a" / "zo-grid.csv")
    assert len(many) == 2 * len(few)
    kept = many[many["run"] < 2].reset_index(drop=True)
    assert np.array_equal(np.sort(kept["value"]), np.sort(few["value"]))


def test_quick_and_full_runs_do_not_mix(tmp_path, capsys):
    common = ["run", "zo-grid", "--panel", "ridge-n1000-p20", "--runs", 1, "--no-progress"]
    assert run(*common, "--quick", "--out", tmp_path) == 0
    assert run(*common, "--out", tmp_path) == 1
    assert "holds quick runs" in capsys.readouterr().err


@pytest.mark.faults  # three processes that compile
def test_killed_run_goes_on_to_the_same_table(tmp_path):
    command = [sys.executable, "-m", "scgd_paper", "run", "theory", "--panel", "rescaled", "--runs",
               "3", "--workers", "1", "--no-progress", "--out"]  # fmt: skip
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    process = subprocess.Popen([*command, torn], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    table = torn / "theory.csv"
    while time.monotonic() < deadline and not (table.exists() and table.stat().st_size > 5_000):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    size = table.stat().st_size
    with table.open("r+b") as file:  # a kill in the middle of a write
        file.truncate(size - 37)
    done = read_partial(table)
    assert 0 < done < 12
    subprocess.run([*command, torn], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*command, whole], check=True, stdout=subprocess.DEVNULL)
    same_but_seconds(whole / "theory.csv", table)


def read_partial(path: Path) -> int:
    keys = {tuple(line.split(",")[1:5]) for line in path.read_text().splitlines()[1:-1]}
    return len(keys)


def test_damaged_note_is_named(tmp_path, capsys):
    common = ["run", "paths-2d", "--panel", "f", "--quick", "--no-progress", "--workers", 1]
    assert run(*common, "--out", tmp_path) == 0
    note = json.loads((tmp_path / "paths-2d.json").read_text())
    assert note["quick"] is True and note["made"][0]["environment"]["Python"]
    (tmp_path / "paths-2d.json").write_text("{")
    assert run(*common, "--out", tmp_path) == 1
    assert "paths-2d.json is damaged" in capsys.readouterr().err


def test_missing_data_is_said_and_the_rest_runs(tmp_path, capsys, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.delenv("SCGD_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing"))
    code = run("run", "zo-networks", "paths-2d", "--panel", "kmnist", "--panel", "h", "--quick",
               "--workers", 1, "--no-progress", "--out", tmp_path / "out")  # fmt: skip
    captured = capsys.readouterr()
    assert code == 1
    assert "kmnist left out: the data set kmnist is not at hand" in captured.err
    assert "scgd_paper data get kmnist" in captured.err
    assert "paths-2d · h" in captured.out


def test_an_experiment_that_fails_does_not_stop_the_others(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "scgd_paper.network_runs", raising=False)
    (tmp_path / "zo-grid.csv").write_text("my notes\n")
    code = run("run", "zo-grid", "zo-networks", "paths-2d", "--quick", "--workers", 1,
               "--no-progress", "--out", tmp_path)  # fmt: skip
    captured = capsys.readouterr()
    assert code == 1
    assert "zo-networks: this experiment needs torch" in captured.err
    assert "zo-grid.csv, line 1: not a table" in captured.err
    assert "paths-2d · h" in captured.out
    assert "paths-2d/h" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "zo-grid.csv").read_text() == "my notes\n"


def test_only_the_panels_asked_for_are_summed_up(tmp_path, capsys):
    common = ["run", "zo-grid", "--quick", "--no-progress", "--out", tmp_path]
    assert run(*common, "--panel", "ridge-n1000-p20") == 0
    capsys.readouterr()
    assert run(*common, "--panel", "logistic-n1000-p20") == 0
    out = capsys.readouterr().out
    assert "logistic-n1000-p20" in out and "ridge" not in out


def test_methods_are_chosen_by_name_and_extra_ones_added(tmp_path, capsys):
    common = ("--quick", "--runs", "1", "--workers", "1", "--no-progress", "--out", tmp_path)
    panel = ("run", "zo-linear", "--panel", "ridge-alpha5")
    assert run(*panel, "--method", "uniform", *common) == 0
    assert set(read(tmp_path / "zo-linear.csv")["method"]) == {"uniform"}
    assert run(*panel, "--method", "uniform", "--extra", "auto", *common) == 0
    table = read(tmp_path / "zo-linear.csv")
    assert set(table["method"]) == {"uniform", "auto"}
    curves = {m: part.set_index("pass") for m, part in table.groupby("method", observed=True)}
    assert (curves["auto"]["queries"] == curves["uniform"]["queries"]).all()  # equal queries
    starts = [curves[m]["value"].iloc[0] for m in ("auto", "uniform")]
    assert starts[0] == pytest.approx(starts[1], rel=1e-8)
    assert curves["auto"]["value"].iloc[-1] < starts[0]
    words = capsys.readouterr().out
    assert "auto" in words and "mean nothing" in words


def chosen(*arguments):
    args = build_parser().parse_args(["run", *arguments])
    rows = find(args.ids)
    return selections(rows, settings_of(args.settings, args.ids), args)


def test_all_redoes_the_whole_paper_in_both_settings():
    every = chosen("all")
    assert list(every) == ["published", "paper"]
    done = {
        (s, id, p.name) for s, rows in every.items() for id, panels in rows.items() for p in panels
    }
    assert done == {(s, row.id, p.name) for row in EXPERIMENTS.values()
                    for s, panels in row.panels.items() for p in panels}  # fmt: skip
    softmax = {id for id, panels in every["paper"].items()
               for p in panels for m in p.methods if m.name.endswith("-softmax")}  # fmt: skip
    assert {"zo-linear", "zo-grid", "zo-networks"} <= softmax  # figures F.2 and F.4 among them
    assert list(chosen("all", "--settings", "published")) == ["published", "paper"]
    assert (
        "zo-grid" not in chosen("all", "--settings", "published")["paper"]
    )  # only what has no other


def test_settings_of_some_experiments():
    assert list(chosen("zo-linear")) == ["published"]
    assert list(chosen("zo-linear", "--settings", "both")) == ["published", "paper"]
    assert list(chosen("theory")) == ["paper"]
    only = chosen("zo-linear", "--settings", "both", "--method", "gaussian")
    assert list(only) == ["paper"]  # a method that one of the settings has
    assert {m.name for p in only["paper"]["zo-linear"] for m in p.methods} == {"gaussian"}


@pytest.mark.slow
def test_full_disk_leaves_no_half_of_a_picture(tmp_path):
    command = [sys.executable, "-m", "scgd_paper", "run", "paths-2d", "--panel", "f", "--quick",
               "--no-progress", "--workers", "1", "--out", str(tmp_path)]  # fmt: skip
    # A whole run first: compiled code is stored by Numba, which the limit would stop too.
    whole = [*command[:-1], str(tmp_path / "whole")]
    assert subprocess.run(whole, capture_output=True).returncode == 0
    with Image.open(tmp_path / "whole" / "paths-2d-f.gif") as film:
        assert film.n_frames > 40 and film.size[0] == 520
    out = tmp_path / "limited"
    command[-1] = str(out)
    limited = ["bash", "-c", 'ulimit -f 40; exec "$@"', "bash", *command]
    done = subprocess.run(limited, capture_output=True, text=True)
    assert done.returncode == 1
    assert "paths-2d-f.gif: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(p.suffix for p in out.iterdir()) == [".csv", ".csv", ".json"]
    assert subprocess.run(command, capture_output=True).returncode == 0
    assert (out / "paths-2d-f.gif").is_file()


@pytest.mark.parametrize("command", ["run", "report"])
def test_published_folder_must_hold_curves(command, tmp_path, capsys):
    first = ["run", "paths-2d", "--quick"] if command == "run" else ["report", tmp_path]
    out = ["--out", tmp_path] if command == "run" else []
    assert run(*first, *out, "--published", tmp_path / "nope") == 1
    assert "nope (--published or SCGD_PUBLISHED) is no folder" in capsys.readouterr().err


def test_ctrl_c_is_quick_and_keeps_finished_runs(tmp_path):
    command = [sys.executable, "-m", "scgd_paper", "run", "theory", "--panel", "gradient-norm",
               "--workers", "2", "--no-progress", "--out", str(tmp_path)]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    table, deadline = tmp_path / "theory.csv", time.monotonic() + 120
    while time.monotonic() < deadline and not (table.exists() and read_partial(table)):
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes of the group
    stopped = time.monotonic()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "stopped; the same command goes on from here" in said
    assert "Traceback" not in said
    assert time.monotonic() - stopped < 5
    assert 0 < read_partial(table) < 25


def test_pipes_may_close_early(tmp_path):
    command = f"{sys.executable} -m scgd_paper list | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=os.environ)
    assert done.stdout.startswith("zo-linear")
    assert "Traceback" not in done.stderr
