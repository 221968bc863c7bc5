"""The report: right figures, one self-contained page, and a page that works in a real browser."""

import json
import re

import numpy as np
import pytest
from browser import CHROMIUM, Browser

from scgd.cli import main
from scgd.errors import CommandError
from scgd.experiments import summary
from scgd.experiments.pieces import finding
from scgd.experiments.published import published_curves
from scgd.experiments.registry import EXPERIMENTS
from scgd.experiments.report import plain, terminal_summary
from scgd.experiments.table import Curve, Key, Run, Shape, Table


def fill(folder, experiment="zo-linear", panel="ridge-alpha5", settings="published", n_passes=200):
    """Write a table with runs whose statistics are known: method m has values (m + 1) * (run + 1)."""
    row = EXPERIMENTS[experiment]
    passes = np.linspace(0, n_passes, 6)
    shapes = {(row.id, p.name, s, m.name): Shape(p.measures, passes, 4 * ("musketeer" in m.name))
              for s, panels in row.panels.items() for p in panels for m in p.methods}  # fmt: skip
    table = Table(folder / f"{experiment}.csv", shapes)
    shape = row.panel(panel, settings)
    for m, method in enumerate(shape.methods):
        for run in range(3):
            level = (m + 1) * (run + 1.0)
            curves = [Curve(name, passes, 500 * passes, passes / 100, level * np.exp(-passes / 50))
                      for name in shape.measures]  # fmt: skip
            weights = np.arange(1, 5) / 10 if "musketeer" in method.name else None
            key = Key(experiment, panel, settings, method.name, run)
            table.append(Run(key, curves, np.array([1.0, 3.0, 2.0, 4.0]), weights))
    table.close()
    return [m.name for m in shape.methods]


@pytest.fixture
def page(tmp_path, monkeypatch):
    monkeypatch.delenv("SCGD_PUBLISHED", raising=False)  # whole curves would be laid over ours
    fill(tmp_path)
    fill(tmp_path, settings="paper")
    fill(tmp_path, "zo-networks", "mnist", n_passes=100)
    assert main(["report", str(tmp_path)]) == 0
    return tmp_path / "report.html"


def test_statistics_are_those_of_the_runs(tmp_path):
    methods = fill(tmp_path)
    entry = summary.summarize(EXPERIMENTS["zo-linear"], tmp_path)[0]
    end = np.exp(-200 / 50)
    for rank, (name, row) in enumerate(zip(methods, entry["finals"], strict=True), start=1):
        assert (row["method"], row["rank"], row["runs"]) == (name, rank, 3)
        assert row["mean"] == pytest.approx(rank * 2 * end, rel=1e-6)
        assert row["median"] == pytest.approx(rank * 2 * end, rel=1e-6)
        assert row["std"] == pytest.approx(rank * np.std([1, 2, 3]) * end, rel=1e-6)
        assert row["q25"] == pytest.approx(rank * 1.5 * end, rel=1e-6)
    uniform = next(r for r in entry["finals"] if r["method"] == "uniform")
    assert uniform["published"]["mean"] == pytest.approx(0.0171487)


def test_accuracy_ranks_upwards_and_infinities_rank_last():
    curve = {"seconds": [1.0], "runs": 2, "std": [0.0], "q25": [0.0], "q75": [0.0]}
    values = {"a": 0.5, "b": 0.9, "c": np.nan}
    curves = {m: {name: {**curve, "mean": [v], "median": [v]} for name, v in values.items()}
              for m in ("accuracy", "gap")}  # fmt: skip
    assert [r["method"] for r in summary.finals(curves, "accuracy")] == ["b", "a", "c"]
    assert [r["method"] for r in summary.finals(curves, "gap")] == ["a", "b", "c"]
    assert finding({"gap": curves["gap"]}) == ""


def test_published_figures_only_at_their_own_pass(tmp_path):
    assert summary.published_finals("zo-linear", "ridge-alpha5", 200.0)["gap"]["sphere"]
    assert summary.published_finals("zo-linear", "ridge-alpha5", 8.0) == {}


def test_laws_are_averaged_and_ordered(tmp_path):
    fill(tmp_path)
    found = summary.laws(tmp_path / "zo-linear.weights.csv")
    law = found["ridge-alpha5"]["published"]["musketeer-absolute"]["weight"]
    assert np.allclose(law, 4 * np.array([0.4, 0.2, 0.3, 0.1]))


def test_page_is_one_file_without_network(page):
    text = page.read_text()
    assert text.count("plotly.js v") == 1
    outside = re.findall(r'(?:src|href)="(?!data:|#)([^"]+)"', text.split('id="data"')[0])
    assert outside == []
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1].replace("<\\/", "</"))
    assert set(data["panels"]) == {"zo-linear/ridge-alpha5", "zo-networks/mnist"}
    assert set(data["panels"]["zo-linear/ridge-alpha5"]["curves"]) == {"published", "paper"}


def test_terminal_summary_names_every_method(page):
    text = terminal_summary(EXPERIMENTS["zo-linear"], page.parent, "published", ["ridge-alpha5"])
    for method in EXPERIMENTS["zo-linear"].panel("ridge-alpha5", "published").methods:
        assert re.search(rf"\d {method.name} ", text)


def test_whole_published_curves_from_a_folder(tmp_path):
    stored = np.linspace(2.0, 1.0, 201) * np.ones((20, 1))
    np.savez(tmp_path / "zo_ridge_n1000.npz", **{"p20/uniform": stored, "p50/uniform": 2 * stored})
    passes, values = published_curves("zo-grid", "ridge-n1000-p20", tmp_path)["gap", "uniform"]
    assert passes[-1] == 200 and np.array_equal(values, stored)
    cut = (tmp_path / "zo_ridge_n1000.npz").read_bytes()[:-30]
    for damaged in (b"not an archive", cut):
        (tmp_path / "zo_ridge_n2000.npz").write_bytes(damaged)
        with pytest.raises(CommandError, match=r"cannot read the published curves in .*n2000"):
            published_curves("zo-grid", "ridge-n2000-p20", tmp_path)


def test_numbers_that_are_not_finite_become_null():
    assert plain({"a": np.array([1.23456789, np.inf, np.nan])}) == {"a": [1.2346, None, None]}


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_page_works_in_a_browser(page, tmp_path, width, dark):
    browser = Browser(tmp_path / "profile", width, 900, dark=dark)
    try:
        browser.open(page)
        chart = "document.querySelector('.chart')"
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        assert browser.evaluate("document.documentElement.dataset.theme") == (
            "dark" if dark else "light"
        )
        assert browser.evaluate(f"{chart}._fullLayout.yaxis.type") == "log"
        n_traces = browser.evaluate(f"{chart}.data.length")
        mean = browser.evaluate(f"{chart}.data[1].y[0]")
        click(browser, '[data-set="statistic"][value="median"]')
        click(browser, '[data-set="x"][value="queries"]')
        assert browser.evaluate(f"{chart}.data[1].x[5]") == 100_000
        assert browser.evaluate(f"{chart}.data[1].y[0]") == mean  # 1, 2, 3: median is mean
        assert browser.evaluate(f"{chart}.data[0].y[0]") == 2.5  # upper quartile
        click(browser, '[data-set="y"][value="linear"]')
        assert browser.evaluate(f"{chart}._fullLayout.yaxis.type") == "linear"
        click(browser, '[data-set="published"][value="off"]')
        assert browser.evaluate(f"{chart}.data.length") == n_traces - 6
        click(browser, '[data-method="uniform"]')
        assert browser.evaluate(f"{chart}.data.length") == n_traces - 8
        click(browser, '[data-set="settings"][value="paper"]')
        labels = browser.evaluate(f"{chart}.data.map(t => t.name).join()")
        assert "gaussian" in labels and "sphere" not in labels
        click(browser, "button[data-theme]")
        assert browser.evaluate("document.documentElement.dataset.theme") != (
            "dark" if dark else "light"
        )
        click(browser, "details.laws summary")
        assert browser.evaluate("document.querySelector('.law').data.length") == 6
        click(browser, '[data-measure="accuracy"]')
        second = "document.querySelectorAll('.chart')[1]"
        assert browser.evaluate(f"{second}._fullLayout.yaxis.type") == "linear"
        rows = browser.evaluate("csv(document.querySelector('.card')).trim().split('\\n').length")
        assert rows == 1 + 6 * (6 + 9)
        svg = browser.evaluate(f"Plotly.toImage({chart}, {{format: 'svg'}})")
        assert svg.startswith("data:image/svg+xml")
        assert browser.errors == []
    finally:
        browser.close()


def click(browser: Browser, selector: str) -> None:
    browser.evaluate(f"document.querySelector({selector!r}).click()")
    browser.settle()
