"""The programs on the pages run as they are printed, page by page from top to bottom."""

import csv
import re
import runpy
import tomllib
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from scgd.cli import main

ROOT = Path(__file__).parent.parent
ELSEWHERE = {  # executed by tests of their own rooms
    "torch.md", "blocks.md", "adding-a-policy.md", "adding-a-step-rule.md",
    "plots.md", "doors.md", "spaces.md", "laboratory.md", "constraints.md", "engines.md",
}  # fmt: skip
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAM = re.compile(r"^```python\n(.*?)^```", re.S | re.M)
OUTPUT = re.compile(r"^```python\n((?:(?!```)[^\n]*\n)*)```\n\n```text\n(.*?)^```", re.S | re.M)


def programs(page):
    return PROGRAM.findall(page.read_text())


def outputs(page):
    """Return what pages say that a program prints, by program."""
    return dict(OUTPUT.findall(page.read_text()))


def simulate(x):
    return float(np.sum((x - 1) ** 2))


def before_fit(folder):
    """Make the model and the table of which the page speaks."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 3))
    for name in ("train.csv", "new.csv"):
        table = np.column_stack([rows, rows @ [1.0, 2.0, 0.0]])
        np.savetxt(folder / name, table, delimiter=",", header="a,b,c,y", comments="")
    assert not main(["fit", "train.csv", "--target", "y", "--out", "model.npz"])
    return {}, {}


def before_scaling(folder):
    """A cluster of this machine instead of the page's, and a smaller budget."""
    names = {"simulate": simulate, "x0": np.zeros(8)}
    small = {'Client("tcp://scheduler:8786")': "Client(n_workers=1, dashboard_address=None)"}
    small["max_evals=20_000"] = "max_evals=100"
    small["scgd.Workers(client, asynchronous=16)"] = (
        "scgd.Workers(2, asynchronous=16), max_evals=100"
    )
    small["scgd.Workers(asynchronous=run.events)"] = (
        "scgd.Workers(asynchronous=run.events), max_evals=100"
    )
    return names, small


BEFORE = {"fit.md": before_fit, "scaling.md": before_scaling}


@pytest.mark.parametrize(
    "page", [p for p in PAGES if p.name not in ELSEWHERE and programs(p)], ids=lambda p: p.name
)
def test_programs_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names, changes = BEFORE.get(page.name, lambda folder: ({}, {}))(tmp_path)
    shown = outputs(page)
    for i, program in enumerate(programs(page)):
        for said, small in changes.items():
            program = program.replace(said, small)
        exec(compile(program, f"{page.name} program {i}", "exec"), names)
        printed = capsys.readouterr().out
        if program in shown:
            assert printed == shown[program], f"{page.name} shows another output"


def test_the_readme_names_every_extra_and_shows_what_the_index_shows():
    readme = (ROOT / "README.md").read_text()
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for name in settings["project"]["optional-dependencies"]:
        assert f"`{name}`" in readme, f"the README does not name the extra {name}"
    index = ROOT / "docs" / "index.md"
    assert outputs(index) == outputs(ROOT / "README.md") and outputs(index)


def test_every_example_has_a_place_in_the_gallery_and_a_picture():
    shown = runpy.run_path(str(ROOT / "docs" / "pictures.py"))
    examples = sorted((ROOT / "examples").glob("*.py"))
    tutorials = sorted((ROOT / "docs" / "tutorials").glob("*.py"))
    assert sorted(shown["ORDER"]) == sorted(path.stem for path in [*examples, *tutorials])
    for name in shown["HEAVY"]:
        assert (ROOT / "docs" / "images" / "gallery" / f"{name}.svg").exists(), name


def test_benchmarks_say_what_their_stored_rows_say():
    made = runpy.run_path(str(ROOT / "benchmarks" / "measured_page.py"))
    page = ROOT / "docs" / "benchmarks.md"
    assert page.read_text() == made["page"](), "run: python benchmarks/measured_page.py"


def test_the_picture_of_the_first_page_says_what_its_rows_say():
    with (ROOT / "docs" / "images" / "rivals.csv").open() as file:
        rows = list(csv.DictReader(file))
    gaps = defaultdict(list)
    for row in rows:
        gaps[row["method"], int(row["evaluations"])].append(float(row["gap"]))
    assert all(len(values) == 3 for values in gaps.values())
    for (method, n), values in gaps.items():
        assert method == "scgd" or np.median(values) > np.median(gaps["scgd", n]), (method, n)
