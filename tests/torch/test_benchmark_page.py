"""The page of PyTorch benchmarks says what the stored rows say."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_made_of_the_stored_rows():
    made = runpy.run_path(str(ROOT / "benchmarks" / "torch_page.py"))["page"]()
    told = "run: python benchmarks/torch_page.py"
    assert (ROOT / "docs" / "torch-benchmarks.md").read_text() == made, told
