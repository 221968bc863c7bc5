"""The tutorials as notebooks: executed by a real kernel, and those of the site are the same."""

import json
import re
import runpy
from pathlib import Path

import pytest

nbclient = pytest.importorskip(
    "nbclient", reason="nbclient is not installed (pip install '.[dev]')"
)
pytest.importorskip("ipykernel", reason="ipykernel is not installed (pip install '.[dev]')")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("matplotlib", reason="matplotlib is not installed (pip install '.[dev]')")

ROOT = Path(__file__).parent.parent
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.py"))
LONG = ("linear_models", "torch_blocks")
notebook = runpy.run_path(str(ROOT / "docs" / "notebooks.py"))["notebook"]


def code_of(content):
    return ["".join(c["source"]).strip() for c in content["cells"] if c["cell_type"] == "code"]


@pytest.mark.filterwarnings("ignore")  # of the kernel's own packages
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(p, id=p.stem, marks=pytest.mark.slow if p.stem in LONG else ())
        for p in TUTORIALS
    ],
)
def test_a_kernel_executes_it_and_shows_its_pictures(path, tmp_path, monkeypatch):
    if path.stem.startswith("torch"):
        pytest.importorskip("torch")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    book = nbformat.from_dict(notebook(path))
    nbformat.validate(book)
    nbclient.NotebookClient(
        book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = [out for cell in book.cells if cell.cell_type == "code" for out in cell.outputs]
    shown = {kind for out in outputs for kind in out.get("data", {})}
    assert any(kind.startswith("image") for kind in shown)
    assert not list(tmp_path.glob("*.svg"))


RUN = """
import numpy as np, scgd
rng = np.random.default_rng(0)
noisy = lambda x: float(np.sum((x - 1) ** 2)) + 0.1 * rng.standard_normal()
scgd.minimize(noisy, np.zeros(4), max_evals=800, seed=0, reporting=True)
"""


@pytest.mark.filterwarnings("ignore")
def test_a_cell_shows_how_far_a_run_is_and_its_result(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(RUN)])
    nbclient.NotebookClient(book, timeout=120).execute()
    line, result = book.cells[0].outputs  # the line is one output that changes
    assert line.output_type == "display_data" and result.output_type == "execute_result"
    assert "<progress value" in line.data["text/html"] and "<svg" in result.data["text/html"]
    for word in ("800 of 800, f = ", " +- ", "/s, ", " left, "):
        assert word in line.data["text/plain"]


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_the_site_offers_the_same(path):
    built = list((ROOT / "docs/_build/html/_downloads").glob(f"*/{path.stem}.ipynb"))
    if not built:
        pytest.skip("the site is not built (make docs)")
    found = code_of(json.loads(built[0].read_text()))
    magic = re.compile(r"^%matplotlib inline$", re.M)
    assert [code for code in found if not magic.fullmatch(code)] == code_of(notebook(path))
