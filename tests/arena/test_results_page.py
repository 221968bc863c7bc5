"""The page of results says what the stored rows say."""

from pathlib import Path

from scgd_arena.results import page

PAGE = Path(__file__).parents[2] / "docs" / "arena-results.md"


def test_the_page_is_made_of_the_stored_rows():
    assert PAGE.read_text() == page(), f"run: python -m scgd_arena.results {PAGE.name}"
