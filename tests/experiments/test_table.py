"""The results table: whole runs only, exact resume, damage named."""

import os
import resource

import numpy as np
import pytest

from scgd.errors import CommandError
from scgd.experiments.table import COLUMNS, Curve, Key, Run, Table, read

ENDS = {"a": (3.0, 2)}


def make_run(number: int) -> Run:
    passes = np.arange(4)
    curves = [
        Curve(m, passes, 2 * passes, passes / 10, passes + number + 0.5) for m in ("loss", "gap")
    ]
    return Run(Key("x", "a", "paper", "m", number), curves, np.ones(3), np.full(3, 1 / 3))


def write(path, runs):
    table = Table(path, ENDS)
    for number in runs:
        if make_run(number).key not in table.done:
            table.append(make_run(number))
    table.close()


def test_rows_come_back(tmp_path):
    write(tmp_path / "x.csv", [0, 1])
    table = read(tmp_path / "x.csv")
    assert tuple(table.columns) == COLUMNS
    assert len(table) == 16
    last = table[(table["run"] == 1) & (table["measure"] == "gap")].iloc[-1]
    assert (last["pass"], last["queries"], last["value"]) == (3, 6, 4.5)


@pytest.mark.parametrize("name", ["x.csv", "x.weights.csv"])
def test_cut_anywhere_resumes_to_the_same_bytes(tmp_path, name):
    whole = tmp_path / "whole"
    write(whole / "x.csv", range(3))
    data = (whole / name).read_bytes()
    other = "x.weights.csv" if name == "x.csv" else "x.csv"
    for cut in range(0, len(data), 7):
        torn = tmp_path / f"cut{cut}"
        torn.mkdir()
        (torn / name).write_bytes(data[:cut])
        # Weights are written before the rows, so a cut in them means that the rows are shorter.
        if name == "x.csv":
            (torn / other).write_bytes((whole / other).read_bytes())
        write(torn / "x.csv", range(3))
        assert (torn / name).read_bytes() == data
        assert (torn / other).read_bytes() == (whole / other).read_bytes()


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (0, "a,b,c", "line 1: not a table"),
        (3, "x,a,paper,m,zero,1,2,0,1,loss", "line 4: not a row"),
        (3, "garbage", "line 4: not a row"),
        (8, "x,a,paper,m,7,3,6,0,1,gap", "line 9: run 0 of m on a is not whole"),
    ],
)
def test_damage_is_named_and_left_alone(tmp_path, line, text, message):
    path = tmp_path / "x.csv"
    write(path, [0, 1])
    lines = path.read_text().splitlines()
    lines[line] = text
    damaged = "\n".join(lines) + "\n"
    path.write_text(damaged)
    with pytest.raises(CommandError, match=message):
        Table(path, ENDS)
    assert path.read_text() == damaged


def test_two_writers_are_refused(tmp_path):
    table = Table(tmp_path / "x.csv", ENDS)
    with pytest.raises(CommandError, match="another run is writing"):
        Table(tmp_path / "x.csv", ENDS)
    table.close()
    Table(tmp_path / "x.csv", ENDS).close()


def test_unwritable_place_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match=r"cannot write .*file"):
        Table(tmp_path / "file" / "x.csv", ENDS)


def test_full_disk_keeps_what_was_finished(tmp_path):
    path = tmp_path / "x.csv"
    table = Table(path, ENDS)
    table.append(make_run(0))
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, hard))
        with pytest.raises(CommandError, match="what was finished is kept"):
            table.append(make_run(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        table.close()
    assert path.read_bytes() == before
    write(path, [0, 1])
    assert len(read(path)) == 16
    assert os.path.getsize(path) > len(before)
