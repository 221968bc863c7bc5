"""A panel with other settings is a call, or ``--set`` on the command line."""

import pytest

from scgd.errors import UsageError
from scgd.schedules import SqrtOf
from scgd_paper import EXPERIMENTS, Panel, run_panel, varied, varied_panel
from scgd_paper.commands import main
from scgd_paper.linear_rows import LinearProblem, zeroth_order


def test_a_panel_of_ones_own_is_run():
    problem = LinearProblem("ridge", 60, 6, 2.0, 2, published=False, truth=(-1.0, 1.0))
    panel = Panel("mine", "Mine", problem, zeroth_order("paper", (1.0, 10.0))[:2], n_passes=4)
    table = run_panel(panel, n_runs=2)
    assert set(table["method"]) == {"full", "uniform"} and len(table) == 2 * 2 * 5
    assert table.equals(run_panel(panel, n_runs=2).assign(seconds=table["seconds"]))
    faster = run_panel(varied_panel(panel, {"gamma": 2}), n_runs=2)
    moved = table["pass"] > 0
    assert (faster["value"] != table["value"])[moved].all()
    assert (faster["value"] == table["value"])[~moved].all()


def test_settings_change_where_they_occur():
    panel = EXPERIMENTS["zo-linear"].panel("ridge-alpha5", "paper")
    new = varied_panel(panel, {"gamma": 5, "k0": 2, "n": 100, "T": 7, "eta": 0.5, "lambda": 0.1})
    assert new.problem.n_samples == 100
    for method in new.methods:
        assert (method.learning_rate.scale, method.learning_rate.offset) == (5, 2)
        assert method.radius == SqrtOf(method.learning_rate)
    policy = next(m.policy for m in new.methods if m.name == "musketeer-absolute-softmax")
    assert (policy.length, policy.sharpness, policy.mixing) == (7, 0.5, 0.1)
    theory = varied(EXPERIMENTS["theory"], {"noise": 0.5}).panels["paper"]
    assert all(p.problem.noise == 0.5 for p in theory)


def test_unknown_settings_are_named():
    with pytest.raises(UsageError, match="did you mean 'gamma'"):
        varied_panel(EXPERIMENTS["zo-linear"].panel("ridge-alpha5", "paper"), {"gama": 3})


WRONG = (
    ("gamma", "NAME=NUMBER"), ("gamma=nan", "NAME=NUMBER"), ("=3", "NAME=NUMBER"),
    ("gama=3", "did you mean 'gamma'"), ("gamma=-1", "gamma=-1 cannot be"), ("n=0.5", "n=0.5 cannot be"),
)  # fmt: skip


def test_the_command_line_sets_and_keeps_apart(tmp_path, capsys):
    words = [
        "run",
        "fo-rates",
        "--panel",
        "p20-gamma1",
        "--quick",
        "--no-progress",
        "--workers",
        "1",
    ]
    assert main([*words, "--set", "gamma=3", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "gamma=3" / "fo-rates.csv").exists() and not (
        tmp_path / "fo-rates.csv"
    ).exists()
    assert "gamma = 3" in (tmp_path / "gamma=3" / "report.html").read_text()
    for wrong, message in WRONG:
        assert main([*words, "--set", wrong, "--out", str(tmp_path)]) == 2
        assert message in capsys.readouterr().err
