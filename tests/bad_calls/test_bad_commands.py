"""Every option of the command line against every odd word: it works, or one line names it.

The table is made from the parsers; a new option needs a word here for what it takes.
"""

import contextlib
import io
import random
import shutil
import sys
import warnings

import numpy as np
import pytest
from odd_words import WORDS, allowed

from scgd import cli
from scgd_arena import command as arena
from scgd_paper import commands as paper

MODULE = """
import numpy as np

def sphere(x, *rest):
    return float(np.sum((x - 1.0) ** 2))

number = 3
"""
SAMPLED = 30
"""Calls per command in a plain run; all of them with ``-m faults``."""
COMMANDS = {
    "list": ["list", "theory"],
    "run": ["run", "theory", "--panel=rescaled", "--quick", "--runs=1", "--no-progress", "--workers=1"],
    "report": ["report", "results/quick"],
    "data": ["data", "show", "mnist", "--data=folder"],
    "arena": ["good:sphere", "--dim=2", "--max-evals=5", "--methods=random",
              "--instances=1-1", "--out=arena"],
    "fit": ["fit", "table.csv"],
    "predict": ["predict", "model.npz", "table.csv"],
    "minimize": ["minimize", "good:sphere", "--dim=3", "--max-evals=6", "--method=uniform",
                 "--no-progress", "--seed=0", "--scale=1"],
}  # fmt: skip
"""Of each command a line that works."""
INSTEAD = {"x0": "--dim", "space": "--dim", "suite": "good:", "problems": "good:"}
"""What must not stand beside an option."""
KINDS = {
    "list": {"ids": "none"},
    "run": {
        "ids": "none", "panel": "none", "method": "none", "extra": "none", "runs": "count",
        "settings": "none", "workers": "count", "cluster": "none", "out": "new folder",
        "data": "anything", "published": "old folder", "set": "none",
    },
    "report": {"folder": "none", "published": "old folder"},
    "data": {"action": "none", "names": "none", "data": "anything"},
    "arena": {
        "function": "none", "dim": "count", "x0": "point", "bounds": "none", "max_evals": "count",
        "suite": "none", "problems": "none", "budgets": "none", "methods": "none",
        "instances": "natural", "jobs": "count", "max_seconds": "positive", "out": "new folder",
    },
    "fit": {
        "data": "table", "target": "none", "task": "none", "loss": "none", "penalty": "none",
        "alpha": "nonnegative", "cv": "count", "groups": "none", "time_ordered": "bare",
        "missing": "none", "scale": "none", "drop": "none", "categorical": "none", "max_levels": "count",
        "high_cardinality": "none", "sep": "separator", "jobs": "count", "seed": "natural",
        "out": "none", "plot": "none",
    },
    "predict": {"model": "none", "data": "table", "out": "old table", "sep": "separator"},
    "minimize": {
        "function": "none", "dim": "count", "x0": "point", "space": "none", "max_evals": "count",
        "max_time": "limit", "target": "target", "method": "none", "block_size": "count",
        "bounds": "fixed", "scale": "positive", "noise": "none", "sample": "count",
        "batch_size": "count", "seed": "natural+huge", "failures": "none", "catch": "none",
        "workers": "count", "cluster": "none", "timeout": "none", "asynchronous": "count",
        "checkpoint": "new file", "status": "new file", "out": "new file", "plot": "none",
        "log": "new table",
    },
}  # fmt: skip
"""What each option takes: the words of ``odd_words.KINDS``."""


def program(command):
    """Return the module whose ``main`` has a command."""
    return {"list": paper, "run": paper, "report": paper, "data": paper, "arena": arena}.get(
        command, cli
    )


def actions(command):
    """Return the options and positional arguments of a command that take a word."""
    parser = program(command).build_parser()
    if parser._subparsers:
        parser = parser._subparsers._group_actions[0].choices[command]
    return {a.dest: a for a in parser._actions if a.nargs != 0}


def line(command, name, word):
    """Return a command line in which one word is odd."""
    action, words = actions(command)[name], COMMANDS[command]
    if not action.option_strings:
        positional = [a.dest for a in actions(command).values() if not a.option_strings]
        place = (words[0] == command) + positional.index(name)
        return [*words[:place], word, *words[place + 1 :]]
    flag = action.option_strings[0]
    gone = (f"{flag}=", INSTEAD.get(name, f"{flag}="))
    kept = [given for given in words if not given.startswith(gone)]
    return [*kept, flag, word, word] if action.nargs == 2 else [*kept, f"{flag}={word}"]


def said(command, arguments):
    """Run a command line; return its code and what it says on standard error."""
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        try:
            code = program(command).main(arguments)
        except SystemExit as end:  # of argparse
            code = end.code
    return code, errors.getvalue()


def complaint(command, name, label):
    """What is wrong with how a command fails, or works; None where all is well."""
    words = line(command, name, WORDS[label])
    try:
        code, errors = said(command, words)
    except Exception as error:
        return f"{name}={label} fails inside: {type(error).__name__}: {str(error)[:200]}"
    last = errors.strip().splitlines()[-1] if errors.strip() else ""
    if code == 0 or not last:  # a run that ended early says so on standard output
        fine = label in allowed(KINDS[command][name])
        return (
            None if fine else f"{name}={label} is accepted, though it takes {KINDS[command][name]}"
        )
    spelled = name.replace("_", "-")
    of_argparse = errors.startswith("usage: ")
    if not of_argparse and errors.count("\n") != 1:
        return f"{name}={label} says more than a line: {errors[:200]!r}"
    word, line_ = WORDS[label], " ".join(WORDS[label].splitlines())
    known = (name.removesuffix("s"), spelled, ascii(word)[1:-1], line_)
    named = any(text in last for text in known)
    named |= label == "1e300" and "FloatingPointError" in last  # a run that left the numbers
    required = of_argparse and "required" in last  # a word that looks like an option
    return None if named or required else f"{name}={label} is not named: {last[:200]}"


def calls(command):
    """Yield every option with every odd word; not those that start what the machine has."""
    for name in actions(command):
        for label in WORDS:
            processes = name in ("jobs", "workers") and label in ("-1", "underscored")
            unused = (command, name) == ("run", "data")  # the theory needs none
            if name != "cluster" and not processes and not unused:  # an address is waited for
                yield name, label


def check(command, chosen):
    found = [text for call in chosen if (text := complaint(command, *call))]
    assert not found, f"{command}:\n" + "\n".join(found)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with what the commands that work read."""
    folder = tmp_path_factory.mktemp("words")
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(30, 3)), 3)
    rows = [f"{a},{b},{c},{a + 2 * b - c:.3f}" for a, b, c in X]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        (folder / "good.py").write_text(MODULE)
        (folder / "table.csv").write_text("\n".join(["a,b,c,y", *rows, ""]))
        (folder / "nothing.csv").touch()
        (folder / "bytes.bin").write_bytes(bytes(range(256)))
        (folder / "folder").mkdir()
        assert said("fit", ["fit", "table.csv", "--out=model.npz"])[0] == 0
        assert said("run", COMMANDS["run"])[0] == 0
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    """Stand in a copy of that folder."""
    shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("SCGD_DATA", "folder")
    sys.modules.pop("good", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_a_word(command):
    for name in actions(command):
        assert name in KINDS[command], f"say in the table what scgd {command} {name} may take"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_line_works(command, folder):
    assert said(command, COMMANDS[command])[0] == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_odd_words_work_or_are_named(command, folder):
    every = list(calls(command))
    check(command, random.Random(0).sample(every, min(SAMPLED, len(every))))


@pytest.mark.faults
@pytest.mark.parametrize("command", COMMANDS)
def test_every_odd_word_works_or_is_named(command, folder):
    check(command, calls(command))
