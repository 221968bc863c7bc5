"""The panels on the theorems: computed curves beside measured ones, and where they rank."""

import numpy as np
import pytest

from scgd.cli import main
from scgd.experiments import summary
from scgd.experiments.pieces import ranking
from scgd.experiments.registry import EXPERIMENTS
from scgd.experiments.table import read
from scgd.experiments.theory_runs import slopes


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    out = tmp_path_factory.mktemp("theory")
    code = main(["run", "theory", "--panel", "bound", "--runs", "16",
                 "--workers", "1", "--no-progress", "--out", str(out)])  # fmt: skip
    assert code == 0
    return read(out / "theory.csv")


def finals(table, measure):
    rows = table[(table["measure"] == measure) & (table["pass"] == 50_000)]
    return rows.groupby("method", observed=True)["value"].mean()


def test_gaps_stay_under_the_bound_and_fall_like_one_over_t(table):
    ends = finals(table, "gap")
    assert ends["uniform"] < ends["recursion"] < ends["theorem-4"]
    assert ends["recursion"] == pytest.approx(ends["one-over-t"], rel=0.01)
    found = finals(table, "slope")
    assert found["one-over-t"] == pytest.approx(-1, abs=1e-9)
    assert found["recursion"] == pytest.approx(-1, abs=0.02)
    late = table[(table["measure"] == "slope") & (table["pass"] > 5000)]
    measured = late[late["method"] == "uniform"]["value"]
    assert measured.mean() == pytest.approx(-1, abs=0.25)


def test_slopes_of_powers_are_their_powers():
    passes = np.array([0, 1, 2, 5, 10, 20, 50, 100])
    with np.errstate(divide="ignore"):
        gaps = 3.0 * passes**-0.5
    assert np.allclose(slopes(passes, gaps), -0.5)


def test_bounds_have_no_rank():
    curve = {"runs": 1, "seconds": [1.0], "std": [0.0], "q25": [0.0], "q75": [0.0]}
    panels = {
        name: {"curves": {"paper": {"gap": {m: {**curve, "mean": [1.0], "median": [1.0 + i]}
                                            for i, m in enumerate(methods)}}}}
        for name, methods in (("bound", ("uniform", "theorem-4", "recursion", "one-over-t")),
                              ("a", ("T=1", "uniform")), ("b", ("T=1", "theorem-4", "uniform")))
    }  # fmt: skip
    page = ranking(panels)
    assert "theorem" not in page and "recursion" not in page and "one over t" not in page
    assert "<td>uniform</td><td>2.00</td><td>0</td><td>2</td><td>2</td>" in page
    ranks = [row["rank"] for row in summary.finals(panels["b"]["curves"]["paper"], "gap")]
    assert ranks == [1, None, 2]


def test_panels_on_rates_open_on_a_log_axis():
    panels = {panel.name: panel for panel in EXPERIMENTS["theory"].panels["paper"]}
    assert {name for name, panel in panels.items() if panel.xscale == "log"} == {"bound"}
