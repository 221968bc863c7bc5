"""The results table: whole runs only, exact resume, damage named."""

import os
import resource

import numpy as np
import pytest

from scgd.errors import CommandError
from scgd_paper.table import COLUMNS, WEIGHT_COLUMNS, Curve, Key, Run, Shape, Table, read

SHAPES = {("x", "a", "paper", "m"): Shape(("loss", "gap"), np.arange(4), 3)}


def make_run(number: int) -> Run:
    passes = np.arange(4)
    curves = [
        Curve(m, passes, 2 * passes, passes / 10, passes + number + 0.5) for m in ("loss", "gap")
    ]
    return Run(Key("x", "a", "paper", "m", number), curves, np.ones(3), np.full(3, 1 / 3))


def write(path, runs):
    table = Table(path, SHAPES)
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
        (3, "x,a,paper,m,0,2,4,0.2,,loss", "line 4: not a row"),
        (3, "x,a,paper,n,0,2,4,0.2,1,loss", "line 4: run 0 of m on a, paper settings, is not"),
        (1, "x,a,papXr,m,0,0,0,0,1,loss", "line 2: there is no method 'x a papXr m'"),
        (3, None, "line 4: .* has pass 3 of loss where pass 2 of loss should be"),
        (4, None, "line 5: .* has pass 0 of gap where pass 3 of loss should be"),
        (8, "x,a,paper,m,7,3,6,0,1,gap", "line 9: run 0 of m on a, paper settings, is not whole"),
    ],
)
def test_damage_is_named_and_left_alone(tmp_path, line, text, message):
    damaged = damage(tmp_path / "x.csv", line, text)
    with pytest.raises(CommandError, match=message):
        Table(tmp_path / "x.csv", SHAPES)
    assert (tmp_path / "x.csv").read_text() == damaged


def damage(path, line, text):
    """Write two runs, replace or delete a line, and return what is there then."""
    write(path.with_name("x.csv"), [0, 1])
    lines = path.read_text().splitlines()
    lines[line : line + 1] = [] if text is None else [text]
    path.write_text("\n".join(lines) + "\n")
    return path.read_text()


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (0, "a,b,c", "line 1: not a table"),
        (2, "x,a,papXr,m,0,1,1,0.3", "line 3: there is no method 'x a papXr m' in x.csv"),
        (2, "x,a,paper,m,zero,1,1,0.3", "line 3: not a row of weights"),
        (2, "x,a,paper,m,0,1,1,", "line 3: not a row of weights"),
        (2, "x,a,paper,m,7,1,1,0.3", "line 3: run 7 of m on a, .* is not in x.csv"),
        (2, None, "line 3: coordinate 2 of run 0 .* out of turn"),
        (6, None, "the law of run 1 of m on a, paper settings, is not whole"),
        (6, "x,a,paper,m,7,1,1,0.3", "the law of run 1 of m on a, paper settings, is not whole"),
    ],
)
def test_damaged_laws_are_named_and_left_alone(tmp_path, line, text, message):
    path = tmp_path / "x.weights.csv"
    damaged = damage(path, line, text)
    with pytest.raises(CommandError, match=message):
        Table(tmp_path / "x.csv", SHAPES)
    assert path.read_text() == damaged


def test_a_run_deleted_from_both_tables_is_done_again(tmp_path):
    path = tmp_path / "x.csv"
    write(path, [0, 1, 2])
    for file in (path, tmp_path / "x.weights.csv"):
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(line for line in lines if ",m,1," not in line))
    write(path, [0, 1, 2])
    assert set(read(path)["run"]) == {0, 1, 2}
    assert len(read(tmp_path / "x.weights.csv", WEIGHT_COLUMNS)) == 9


def test_a_file_that_is_no_table_is_not_emptied(tmp_path):
    (tmp_path / "x.csv").write_text("my notes")
    with pytest.raises(CommandError, match="line 1: not a table"):
        Table(tmp_path / "x.csv", SHAPES)
    assert (tmp_path / "x.csv").read_text() == "my notes"


@pytest.mark.parametrize(
    ("name", "columns", "text", "message"),
    [
        ("x.csv", COLUMNS, "x,a,paper,m,0,2,4,0.2,,loss", "cannot read .*x.csv"),
        ("x.csv", COLUMNS, None, "run 0 of m on a, paper settings, has 3 rows where another has 4"),
        ("x.weights.csv", WEIGHT_COLUMNS, None, "run 0 of m on a, .* has 2 rows where another"),
        ("x.weights.csv", WEIGHT_COLUMNS, "x,a,paper,m,0,2,1,", "cannot read .*x.weights.csv"),
    ],
)
def test_readers_name_damage_too(tmp_path, name, columns, text, message):
    damage(tmp_path / name, 3, text)
    with pytest.raises(CommandError, match=message):
        read(tmp_path / name, columns)


def test_values_that_are_not_finite_are_read(tmp_path):
    text = "x,a,paper,m,0,2,4,0.2,{},loss"
    for value in ("nan", "inf"):
        damage(tmp_path / "x.csv", 3, text.format(value))
        assert str(read(tmp_path / "x.csv")["value"][2]) == value
        (tmp_path / "x.csv").unlink()
        (tmp_path / "x.weights.csv").unlink()


def test_two_writers_are_refused(tmp_path):
    table = Table(tmp_path / "x.csv", SHAPES)
    with pytest.raises(CommandError, match="another run is writing"):
        Table(tmp_path / "x.csv", SHAPES)
    table.close()
    Table(tmp_path / "x.csv", SHAPES).close()


def test_unwritable_place_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match=r"cannot write .*file"):
        Table(tmp_path / "file" / "x.csv", SHAPES)


def test_full_disk_keeps_what_was_finished(tmp_path):
    path = tmp_path / "x.csv"
    table = Table(path, SHAPES)
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
