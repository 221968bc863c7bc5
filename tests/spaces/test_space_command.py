"""``scgd minimize --space``: a space from a file."""

import json
import sys

import pytest

from scgd.cli import main

MODULE = """
def loss(params):
    return (params["depth"] - 4) ** 2 + (0.0 if params["kind"] == "b" else 1.0) + sum(params["w"] ** 2)
"""
SPACE = """
depth = {type = "int", low = 1, high = 9}
kind = {type = "choice", values = ["a", "b"]}
w = {type = "float", low = -1, high = 1, size = 2, default = 0}
"""
ARGUMENTS = ["minimize", "tuned:loss", "--space", "space.toml", "--max-evals", "40", "--seed", "1", "--no-progress"]  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "tuned.py").write_text(MODULE)
    (tmp_path / "space.toml").write_text(SPACE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    sys.modules.pop("tuned", None)
    return tmp_path


def test_params_are_printed_written_and_resumed(folder, capsys):
    for budget in ("25", "40"):
        code = main(
            [*ARGUMENTS, "--max-evals", budget, "--out", "out.json", "--checkpoint", "run.npz"]
        )
    found = json.loads((folder / "out.json").read_text())
    assert code == 0 and found["nfev"] == 40
    assert found["params"]["depth"] == 4 and found["params"]["kind"] == "b"
    assert len(found["params"]["w"]) == 2 and len(found["x"]) == 4
    assert "depth=4, kind=b" in capsys.readouterr().out


@pytest.mark.parametrize(
    "more, message",
    [
        (["--space", "none.toml"], "--space: cannot read the space in none.toml"),
        (["--bounds", "0", "1"], "bounds makes no sense with a Space"),
        (["--scale", "1"], "scale makes no sense with a Space"),
        (["--method", "spsa"], "knows no whole numbers"),
        (["--dim", "3"], "not allowed with argument"),
    ],
)
def test_wrong_commands_fail_clearly(folder, capsys, more, message):
    try:
        code = main([*ARGUMENTS, *more])
    except SystemExit as error:
        code = error.code
    assert code == 2 and message in capsys.readouterr().err
