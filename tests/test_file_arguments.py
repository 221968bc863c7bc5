"""Files are settled once, at the start: where they are, what they are, and that they are whole."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import scgd
from scgd.checkpoint import CheckpointError, read
from scgd.cli import main

COMMAND = ["minimize", "simulator:sphere", "--dim", "3", "--max-evals", "60", "--method", "uniform", "--seed", "1", "--no-progress"]  # fmt: skip
MODULE = """
def sphere(x):
    return float(x @ x + 1)
def nan(x):
    return float("nan")
"""


def sphere(x):
    return float(x @ x)


def run(path, fun=sphere, **more):
    keywords = {"method": "uniform", "max_evals": 40, "seed": 0, "scale": 1.0, **more}
    return scgd.minimize(fun, np.ones(3), checkpoint=path, **keywords)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "simulator.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    sys.modules.pop("simulator", None)
    return tmp_path


# ---- where ---------------------------------------------------------------------------------------


def test_relative_files_stay_where_they_are_when_the_function_changes_folders(folder):
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()

    def moves(x):
        os.chdir(elsewhere)
        return sphere(x)

    first = run("run.npz", moves, reporting="run.csv")
    assert {p.name for p in folder.iterdir()} >= {"run.npz", "run.csv"}
    assert not list(elsewhere.iterdir())
    os.chdir(folder)
    calls = []
    again = run("run.npz", lambda x: calls.append(1), reporting="run.csv")
    assert not calls and np.array_equal(first.x, again.x)


def test_a_working_folder_that_is_gone_is_said(folder, monkeypatch):
    gone = folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(FileNotFoundError, match=r"checkpoint: run\.npz .* give an absolute path"):
        run("run.npz")


# ---- what ----------------------------------------------------------------------------------------


def loop(path):
    path.symlink_to(path.name)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, loop])
@pytest.mark.parametrize("argument", ["checkpoint", "log"])
def test_what_is_no_file_is_refused_before_the_first_evaluation(make, argument, folder):
    make(folder / "odd")
    argument_of = {
        "checkpoint": {"checkpoint": "odd"},
        "log": {"reporting": scgd.Reporting(log="odd")},
    }
    with pytest.raises(ValueError, match=rf"{argument}\)?: odd is not an ordinary file"):
        scgd.minimize(lambda x: 1 / 0, np.ones(3), max_evals=40, **argument_of[argument])


@pytest.mark.parametrize("make", [os.mkfifo, loop])
@pytest.mark.parametrize(
    "words",
    [
        *(
            [*COMMAND, f"--{name}", "odd"]
            for name in ("checkpoint", "log", "out", "plot", "status")
        ),
        ["minimize", "simulator:sphere", "--x0", "odd"],
        ["minimize", "simulator:sphere", "--space", "odd"],
        ["fit", "odd"],
        ["predict", "odd", "simulator.py"],
        ["predict", "simulator.py", "odd"],
    ],
    ids=lambda words: f"{words[0]}{words[-2]}",
)
def test_every_file_of_a_command_is_an_ordinary_one(make, words, folder, capsys):
    make(folder / "odd")
    assert main(words) in (1, 2)
    said = capsys.readouterr().err
    assert "odd is not an ordinary file" in said and len(said.splitlines()) == 1


def test_a_space_that_is_nested_too_deeply_is_refused(folder, capsys):
    (folder / "deep.toml").write_text("a = " + "[" * 5000 + "]" * 5000)
    assert main(["minimize", "simulator:sphere", "--space", "deep.toml"]) == 2
    assert "deep.toml is nested too deeply" in capsys.readouterr().err


# ---- locks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, loop])
def test_a_lock_that_cannot_be_had_gives_one_warning_and_the_run_goes_on(make, tmp_path):
    path = tmp_path / "run.npz"
    make(tmp_path / ".run.npz.lock")
    with pytest.warns(RuntimeWarning, match="could not be locked") as seen:
        first = run(path)
    assert len(seen) == 1
    with pytest.warns(RuntimeWarning, match="could not be locked"):
        assert np.array_equal(run(path).x, first.x)


NO_ROOM = """
import resource, sys, numpy as np, scgd
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
print(scgd.minimize(lambda x: float(x @ x), np.ones(3), method="uniform", max_evals=40, seed=0, scale=1.0,
                    checkpoint=scgd.Checkpoint(sys.argv[1], every=0.0)).nfev)
"""


@pytest.mark.parametrize("exists", [False, True])
def test_where_nothing_can_be_written_there_is_one_warning(exists, tmp_path):
    path = tmp_path / "run.npz"
    if exists:
        run(path)
    done = subprocess.run([sys.executable, "-c", NO_ROOM, path], capture_output=True, text=True)
    assert done.stdout == "39\n" and done.returncode == 0, done.stderr
    assert done.stderr.count("RuntimeWarning") == 1 and "could not be written" in done.stderr


def test_a_lock_does_not_touch_the_file_that_it_is_a_second_name_of(tmp_path):
    precious, path = tmp_path / "precious", tmp_path / "run.npz"
    precious.write_text("mine")
    os.link(precious, tmp_path / ".run.npz.lock")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(path).nfev == 39
    assert precious.read_text() == "mine" and not list(tmp_path.glob(".*.lock"))


def test_a_log_that_goes_on_does_not_cut_a_file_of_somebody_else(tmp_path):
    precious, path = tmp_path / "precious", tmp_path / "run.npz"
    run(path, max_evals=20)
    precious.write_text("mine, without a line break")
    os.link(precious, tmp_path / "run.csv")
    with pytest.raises(ValueError, match="not of this run"):
        run(path, max_evals=40, reporting=tmp_path / "run.csv")
    assert precious.read_text() == "mine, without a line break"


# ---- the last step of the command ----------------------------------------------------------------


def test_the_result_is_written_before_it_is_told(folder):
    words = [sys.executable, "-m", "scgd", *COMMAND, "--out", "out.json"]
    reader, writer = os.pipe()
    os.close(reader)
    subprocess.run(words, stdout=writer, stderr=subprocess.DEVNULL)
    os.close(writer)
    assert len(json.loads((folder / "out.json").read_text())["x"]) == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
@pytest.mark.parametrize("buffered", ["", "1"])
def test_where_the_answer_cannot_be_printed_one_line_says_so(buffered, folder):
    words = [sys.executable, "-m", "scgd", *COMMAND, "--out", "out.json"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            words, stdout=full, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONUNBUFFERED": buffered},
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("scgd: the answer cannot be printed: ")
    assert "Traceback" not in done.stderr and "ignored" not in done.stderr
    assert len(json.loads((folder / "out.json").read_text())["x"]) == 3


def test_the_result_is_json_where_nothing_was_seen(folder):
    (folder / "out.json").write_text("old")
    words = ["minimize", "simulator:nan", *COMMAND[2:], "--failures", "skip"]
    assert main([*words, "--out", "out.json"]) == 1
    found = json.loads((folder / "out.json").read_text(), parse_constant=pytest.fail)
    assert found["fun"] is None and found["status"] == 7


# ---- checkpoints that were altered ---------------------------------------------------------------


def altered(path, name, array):
    """Write a checkpoint again with another one of its entries."""
    with np.load(path) as file:
        entries = {key: file[key] for key in file.files}
    np.savez(path, **{**entries, name: array})


def test_a_checkpoint_altered_in_any_value_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    run(path, method="musketeer")
    (tmp_path / ".run.npz.previous").unlink(missing_ok=True)
    whole = path.read_bytes()
    with np.load(path) as file:
        entries = {name: file[name] for name in file.files}
    n_tried = 0
    for name, array in entries.items():
        content = array.tobytes()
        for place in range(0, len(content), 8 if array.dtype.itemsize == 8 else 97):
            changed = bytearray(content)
            changed[place] ^= 1  # the last bit of a number, or another letter
            altered(path, name, np.frombuffer(bytes(changed), array.dtype).reshape(array.shape))
            with pytest.raises(CheckpointError):
                read(path)
            path.write_bytes(whole)
            n_tried += 1
    assert n_tried > 100
    altered(
        path, "document", np.frombuffer(bytes(entries["document"]).replace(b"39", b"38"), np.uint8)
    )
    with pytest.raises(CheckpointError, match="not what was written"):
        run(path, method="musketeer")


def test_a_checkpoint_of_an_older_version_says_so(tmp_path):
    path = tmp_path / "run.npz"
    document = json.dumps({"format": 4, "arrays": ["order"], "identity": {}, "state": {}})
    np.savez(path, document=np.array(document), order=np.zeros(3))
    with pytest.raises(
        CheckpointError, match=r"has format 4, this version reads \d+; finish it with"
    ):
        run(path)
