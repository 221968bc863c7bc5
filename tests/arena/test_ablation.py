"""An ablation changes a rule for the time of a run, and its page says what the stored rows say."""

import re
from pathlib import Path

import pytest

from scgd_arena import ablation
from scgd_arena.cells import Cell
from scgd_arena.switches import changes, names_used

PAGE = Path(__file__).parents[2] / "docs" / "ablation.md"
CHANGES = {change.name: change for change in changes()}
CELL = Cell("exact", "", "ioh-f10-d8", 400)


def test_the_page_is_made_of_the_stored_rows():
    assert PAGE.read_text() == ablation.page(), "run: make ablation"


def test_stored_rows_are_of_changes_and_cells_that_there_are():
    known = {cell.own_key for cell in ablation.cells()} | {""}
    for (name, _), gaps in ablation.Table(ablation.ROWS).gaps.items():
        assert name in {"", *CHANGES}
        assert {*gaps} <= known


def test_useless_and_small_are_what_the_page_says():
    told = re.search(
        r"worth less than (\d+)%, and less than (\d+)% in each class", PAGE.read_text()
    )
    overall, needed = (int(percent) / 100 for percent in told.groups())

    def of(mean, group, n_cells=1):
        return ablation.Worth("", mean, 0.0, {"one": group, "other": 0.0}, n_cells, 0, 0)

    for sign in (1, -1):
        assert of(sign * 0.99 * overall, sign * 0.99 * needed).small
        assert not of(sign * 1.01 * overall, 0.0).small and not of(0.0, sign * 1.01 * needed).small
    assert of(0.99 * overall, 0.99 * needed).useless and of(-1.0, -1.0).useless
    assert not of(1.01 * overall, 0.0).useless and not of(0.0, 1.01 * needed).useless
    assert not of(0.0, 0.0, n_cells=0).useless


def moved(constant):
    """Return a constant moved down."""
    return next(change for name, change in CHANGES.items() if name.startswith(f"{constant} "))


def test_a_change_lasts_as_long_as_it_is_made():
    change = CHANGES["a choice of who leads (always CMA-ES)"]
    before = ablation.gaps_of(CELL, [1])
    with change.made():
        assert ablation.gaps_of(CELL, [1]) != before
    assert ablation.gaps_of(CELL, [1]) == before


def test_constants_are_moved_wherever_they_are_used():
    few = moved("bfgs.MEMORY"), moved("bfgs.ARMIJO")
    assert all(change.kind == "constant" for change in few)
    with names_used() as names:
        before = ablation.gaps_of(CELL, [1])
    assert all(change.uses & names for change in few)
    unused = moved("spsa.RATE")
    assert not unused.uses & names
    with unused.made():
        assert ablation.gaps_of(CELL, [1]) == before


def test_defaults_that_a_constant_gives_move_with_it():
    from scgd.strategies.budget import Budget

    before = Budget(9, 1).tol
    with moved("budget.TOL").made():
        assert Budget(9, 1).tol < before
    assert Budget(9, 1).tol == before


@pytest.fixture
def three_cells(monkeypatch):
    cells = [Cell("exact", "", f"ioh-f{f}-d4", 60) for f in (1, 8)]
    cells += [Cell("noise", "", "ioh-f1-d4-s0.01", 80)]
    monkeypatch.setattr(ablation, "cells", lambda: cells)
    return cells


def test_rows_are_kept_and_resumed_and_made_anew_when_auto_changes(three_cells, tmp_path, capsys):
    rows = tmp_path / "rows.csv"
    argv = ["--only", "a choice of who leads", "--rows", str(rows)]
    assert ablation.main([*argv, "--part", "1/2"]) == 0
    first = ablation.Table(rows)
    assert ablation.main(argv) == 0
    both = ablation.Table(rows)
    assert len(both.gaps) == len(first.gaps) + 1 == 3
    worth = ablation.worth(both, "a choice of who leads (always BFGS)", ablation.FIRST[:1])
    assert worth.n_cells <= 3 and worth.groups["noise"] == 0.0
    text = rows.read_text()
    gap = next(iter(both.gaps["", ablation.FIRST[0]].values()))[0]
    rows.write_text(text.replace(f",{gap:.3g} ", ",123 ", 1))
    assert ablation.main([*argv, "--part", "1/2"]) == 0
    assert "made anew" in capsys.readouterr().out
    assert len(ablation.Table(rows).gaps) == 2
