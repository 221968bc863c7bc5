"""The pages and examples of this room are executed; recipes of trackers where they are installed."""

import os
import re
import runpy
import shutil
from pathlib import Path

import numpy as np
import pytest

from drawings import same_picture

ROOT = Path(__file__).parents[2]


def blocks(page, kind="python"):
    text = (ROOT / "docs" / page).read_text()
    return re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("page", ["plots.md", "doors.md"])
def test_pages_run(page, tmp_path, monkeypatch):
    if page == "doors.md":
        pytest.importorskip("optuna")
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks(page):
        exec(block, names)
    if page == "plots.md":
        assert names["last"] < names["first"] and names["columns"].shape[1] == 2


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what the trackers stand on
@pytest.mark.parametrize("package", ["mlflow", "wandb", "torch.utils.tensorboard"])
def test_recipes_of_trackers(package, tmp_path, monkeypatch):
    if package == "torch.utils.tensorboard":
        pytest.importorskip("tensorboard")
    pytest.importorskip(package)
    import scgd

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    block = next(b for b in blocks("doors.md", "python notest") if package in b)
    exec(block, {"scgd": scgd, "f": lambda x: float(x @ x), "x0": np.ones(3)})
    assert os.listdir(tmp_path)


def test_the_pictures_are_drawn_from_their_rows(tmp_path):
    folder = ROOT / "docs" / "images"
    shutil.copy(ROOT / "docs" / "pictures.py", tmp_path)
    for name in ("doors.py", "doors.csv", "lines.py"):
        shutil.copy(folder / name, tmp_path)
    module = runpy.run_path(str(tmp_path / "doors.py"))
    for door in module["DOORS"]:
        module["draw"](door)
        drawn = (tmp_path / f"door-{door}.svg").read_text()
        assert same_picture(drawn, (folder / f"door-{door}.svg").read_text())
