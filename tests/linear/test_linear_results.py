"""The page of results against other solvers is the one that its stored rows make."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.filterwarnings("ignore")
def test_the_page_is_made_of_the_rows():
    made = runpy.run_path(str(ROOT / "benchmarks" / "bench_rivals.py"))["page"]()
    assert (ROOT / "docs" / "linear-results.md").read_text() == made
