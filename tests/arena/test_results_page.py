"""The page of results says what the stored rows say."""

import re
from pathlib import Path

from scgd_arena.results import AIMS, NAMED, page

PAGE = Path(__file__).parents[2] / "docs" / "arena-results.md"


def test_the_page_is_made_of_the_stored_rows():
    assert PAGE.read_text() == page(), f"run: python -m scgd_arena.results {PAGE.name}"


def test_what_must_hold_stands_on_the_page():
    rows = (line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines())
    told = {row[0]: row[2:4] for row in rows if len(row) == 7}
    numbers = {name: [float(n) for n in re.findall(r"[\d.]+", told[name][1])] for name in told}
    for name, _, before, within, mean in AIMS:
        assert told[name][0] == before
        assert numbers[name] == ([round(100 * within), mean] if within else [mean])
    assert all(numbers[name] == [most] for name, *_, most in NAMED)
