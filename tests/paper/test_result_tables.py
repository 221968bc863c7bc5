"""The page of the paper's results shows what its rows say."""

import runpy
import shutil
from pathlib import Path

from drawings import same_picture

DOCS = Path(__file__).parents[2] / "docs"


def test_the_tables_of_the_page_are_made_from_its_rows():
    tables = runpy.run_path(str(DOCS / "paper_tables.py"))
    page = (DOCS / "paper-results.md").read_text()
    assert page.count("<!-- rows: ") == len(tables["BLOCKS"])
    again = tables["rendered"](page, tables["stored"]())
    assert again == page, "run: python docs/paper_tables.py"


def test_the_picture_of_figure_1_is_drawn_from_its_rows(tmp_path):
    shutil.copy(DOCS / "pictures.py", tmp_path)
    for name in ("figure_1.py", "figure-1.csv", "lines.py"):
        shutil.copy(DOCS / "images" / name, tmp_path)
    runpy.run_path(str(tmp_path / "figure_1.py"))["draw"]()
    drawn = (tmp_path / "figure-1.svg").read_text()
    assert same_picture(drawn, (DOCS / "images" / "figure-1.svg").read_text())
