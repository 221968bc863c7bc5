"""Every public argument against every odd value: it works, or the error names the argument.

A new argument needs a word in a table for what it takes (``odd_values.WORDS``), a new public name
needs a row; without them a test fails and says so.
"""

import random

import doors_core
import doors_linear
import doors_others
import doors_theory
import doors_torch
import pytest
from door import Door

import scgd
import scgd.torch
import scgd_paper.theory

TABLES = (doors_core, doors_linear, doors_others, doors_theory, doors_torch)
DOORS = {name: Door(*row) for table in TABLES for name, row in table.DOORS.items()}
SAMPLED = 100
"""Calls per door in a plain run; all of them with ``-m faults``."""
RETURNED = {"BlockData", "CheckpointError", "Conditions", "LinearResult", "Screening", "Trial"}
"""Names of what is returned or raised, not called."""
CALLED_BY_TORCH = {"reduce_sampled"}


def check(door, calls):
    found = [text for call in calls if (text := DOORS[door].complaint(*call))]
    assert not found, f"{door}:\n" + "\n".join(found)


def test_every_public_name_has_a_row():
    for module in (scgd, scgd.linear, scgd_paper.theory, scgd.torch):
        for name in set(module.__all__) - RETURNED - CALLED_BY_TORCH - set(DOORS):
            found = getattr(module, name)
            assert not callable(found) or not Door(None, found, {}).named(), f"no row for {name}"


@pytest.mark.parametrize("door", DOORS)
def test_every_argument_has_a_word(door):
    for name in DOORS[door].named():
        assert name in DOORS[door].kinds, f"say in the table what {door}({name}=) may take"


@pytest.mark.parametrize("door", DOORS)
def test_odd_values_work_or_are_named(door, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    calls = list(DOORS[door].calls())
    check(door, random.Random(0).sample(calls, min(SAMPLED, len(calls))))


@pytest.mark.faults
@pytest.mark.parametrize("door", DOORS)
def test_every_odd_value_works_or_is_named(door, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(door, DOORS[door].calls())


@pytest.mark.parametrize("value", [3, "x", None, [], {"low": 0}])
def test_a_space_names_the_parameter_that_is_none(value):
    with pytest.raises((TypeError, ValueError), match="rate"):
        scgd.Space(rate=value)
