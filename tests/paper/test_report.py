"""The report: right figures, one self-contained page, and a page that works in a real browser."""

import json
import platform
import re
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest

from browser import CHROMIUM, Browser
from scgd.errors import CommandError
from scgd_paper import provenance, summary
from scgd_paper.commands import main
from scgd_paper.pieces import accuracies, diverged, figures_box, finding
from scgd_paper.provenance import read_note, record, write_note
from scgd_paper.published import published_curves
from scgd_paper.registry import EXPERIMENTS
from scgd_paper.report import build, plain, terminal_summary
from scgd_paper.rows import method_look
from scgd_paper.table import WEIGHT_COLUMNS, Curve, Key, Run, Shape, Table, read


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


def ends(**methods):
    """Return one-point curves from (mean, median, q25, q75)."""
    names = ("mean", "median", "q25", "q75")
    rest = {"seconds": [1.0], "runs": 20, "std": [0.1]}
    return {m.replace("_", "-"): rest | {n: [v] for n, v in zip(names, values, strict=True)}
            for m, values in methods.items()}  # fmt: skip


def test_finding_says_what_it_ranks_by_and_when_it_is_noise():
    clear = ends(uniform=(2, 2, 1.9, 2.1), full=(1, 1, 0.9, 1.1))
    assert finding({"gap": clear}) == (
        "By the median over 20 runs, <b>full</b> ends best, 2 times below uniform."
    )
    noise = ends(uniform=(1.0, 1.01, 0.9, 1.1), sgd=(1.1, 1.0, 0.9, 1.1))
    assert finding({"gap": noise}) == (
        "By the median over 20 runs, sgd is 1.01 times below uniform, within the spread: "
        "quartiles overlap. By the mean, uniform ends best."
    )
    noise["sgd"]["median"] = [1.0099]
    assert finding({"gap": noise}).startswith("By the median over 20 runs, sgd is level with uni")
    for runs, words in ((1, "In a single run, "), (2, "By the median over 2 runs, ")):
        few = {name: curve | {"runs": runs} for name, curve in clear.items()}
        expected = f"{words}full is 2 times below uniform; too few runs to tell."
        assert finding({"gap": few}) == expected
    blown = ends(uniform=(np.inf,) * 4, full=(1, 1, 0.9, 1.1))
    assert finding({"gap": blown}).endswith("<b>full</b> ends best, while uniform diverged.")


def test_what_is_drawn_for_reference_competes_with_no_method():
    curves = ends(sgd_equal=(0.95,) * 4, uniform=(0.77,) * 4, sphere=(0.8,) * 4)
    assert [r["rank"] for r in summary.finals({"accuracy": curves}, "accuracy")] == [None, 1, 2]
    assert finding({"accuracy": curves}) == (
        "By the median over 20 runs, <b>sphere</b> ends best, 3.0 points of accuracy above uniform. "
        "SGD with whole gradients and as much data: 95.0 %."
    )


def test_tables_have_enough_digits_to_tell_methods_apart(tmp_path):
    curves = {"loss": ends(uniform=(2.3026,) * 4, sphere=(2.3014,) * 4)}
    box = figures_box("paper", curves, {"limits": {"paper": {}}, "published": {}})
    assert "<td>2.303<" in box and "<td>2.301<" in box


def test_accuracies_of_all_panels_stand_in_one_table(tmp_path):
    known = {"accuracy": {"eta1": {"final": {"mean": 0.867}}}}
    panels = {
        f"fo-networks/{name}": {"curves": {"published": {"accuracy": ends(**methods)}},
                                "published": known if name == "mnist" else {}}
        for name, methods in {"mnist": {"eta1": (0.88,) * 4, "sgd": (0.8,) * 4},
                              "cifar10": {"sgd": (0.5,) * 4}}.items()
    }  # fmt: skip
    text = accuracies(panels)
    assert "<th>mnist</th><th>cifar10</th>" in text
    ours = '<td class="first">88.0 ± 10.0<small>published 86.7</small></td><td>–</td>'
    assert f"<td>eta1</td>{ours}" in text
    assert '<td>sgd</td><td>80.0 ± 10.0</td><td class="first">50.0 ± 10.0</td>' in text


def test_published_figures_only_at_their_own_pass(tmp_path):
    assert summary.published_finals("zo-linear", "ridge-alpha5", 200.0)["gap"]["sphere"]
    assert summary.published_finals("zo-linear", "ridge-alpha5", 8.0) == {}


def test_a_diverging_method_leaves_the_others_readable():
    passes = np.arange(4.0)
    table = pd.DataFrame(
        [("paper", method, run, "gap", k, k, k, value)
         for method, values in {"tame": [1, 2, 0.5, 0.1], "wild": [1, 1e200, np.inf, np.nan]}.items()
         for run in range(5) for k, value in zip(passes, values, strict=True)],
        columns=["settings", "method", "run", "measure", "pass", "queries", "seconds", "value"],
    )  # fmt: skip
    curves = summary.curves(table)["paper"]
    assert summary.limits(curves) == {"gap": {"log": 200.0, "linear": 6.0}}
    wild = curves["gap"]["wild"]
    assert wild["median"].tolist() == wild["mean"].tolist() == [1, 1e200, np.inf, np.inf]
    assert wild["std"].tolist() == [0, 0, np.inf, np.inf]  # the squares overflow, the spread not
    assert not np.isnan(np.concatenate([wild["below"], wild["above"], wild["q25"]])).any()
    row = summary.finals(curves, "gap")[-1]
    assert row["method"] == "wild" and "diverged" in diverged(row, 200.0)
    assert diverged(row | {"median": 3.0}, 200.0) == ""
    assert diverged(row | {"method": "theorem-4"}, 200.0) == ""  # a bound does not diverge


def test_one_run_that_blew_up_leaves_the_median():
    values = np.array([[1.0, 2.0, 3.0, 4.0, np.inf]])
    assert summary.quartiles(values)[:, 0].tolist() == [2.0, 3.0, 4.0]


def test_paths_are_those_of_run_0(tmp_path):
    fill(tmp_path, "paths-2d", "f", "paper")
    way = summary.paths(read(tmp_path / "paths-2d.csv"))["paper"]["uniform"]
    assert np.allclose(way["x"], 2 * np.exp(-np.linspace(0, 200, 6) / 50))
    assert np.array_equal(way["x"], way["y"])


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


def test_page_explains_whole_published_curves(tmp_path, monkeypatch):
    monkeypatch.delenv("SCGD_PUBLISHED", raising=False)
    fill(tmp_path, "zo-grid", "ridge-n1000-p20")
    stored = np.linspace(2.0, 1.0, 201) * np.ones((20, 1))
    np.savez(tmp_path / "zo_ridge_n1000.npz", **{"p20/uniform": stored})
    assert "dash-dotted" in build(tmp_path, str(tmp_path)).read_text().split("<main>")[0]
    assert "dash-dotted" not in build(tmp_path).read_text().split("<main>")[0]


def test_numbers_that_are_not_finite_become_null():
    assert plain({"a": np.array([1.23456789, np.inf, np.nan])}) == {"a": [1.2346, None, None]}


def test_page_says_what_was_not_run(tmp_path):
    fill(tmp_path, "zo-networks", "mnist", n_passes=100)
    fill(tmp_path, "theory", "bound", "paper")
    (tmp_path / "zo-networks.json").write_text('{"quick": true}')
    text = build(tmp_path).read_text()
    assert "The runs of zo-networks are quick ones" in text
    assert "Panels without runs here, in published settings: fashion-mnist, kmnist." in text
    assert "Only paper settings exist: no others are known." in text
    (tmp_path / "theory.json").write_text("{}")
    with pytest.raises(CommandError, match=r"theory\.json is damaged"):
        build(tmp_path)


@pytest.mark.parametrize("text", ['{"quick": 1}', '{"quick": true, "made": 3}', "[]", "{"])
def test_a_damaged_note_is_named(text, tmp_path):
    (tmp_path / "note.json").write_text(text)
    with pytest.raises(CommandError, match=r"note\.json is damaged"):
        read_note(tmp_path / "note.json")


def test_environment_is_that_of_the_runs(tmp_path, monkeypatch):
    fill(tmp_path)
    note = tmp_path / "zo-linear.json"
    write_note(note, {"quick": False})
    for system in ("elsewhere", "elsewhere", "a cluster"):
        monkeypatch.setattr(provenance, "environment", lambda name=system: {"system": name})
        record(note)
    assert [e["environment"]["system"] for e in read_note(note)["made"]] == [
        "elsewhere",
        "a cluster",
    ]
    text = build(tmp_path).read_text()
    assert "<td>elsewhere</td>" in text and "<td>a cluster</td>" in text
    assert platform.machine() not in text.split("<script")[0]


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda e: e.id)
def test_no_two_methods_of_a_setting_look_the_same(experiment):
    for panels in experiment.panels.values():
        methods = {m.name for panel in panels for m in panel.methods + panel.extras}
        looks = {(look["colour"], look["dash"]) for look in map(method_look, methods)}
        assert len(looks) == len(methods)


def test_a_method_has_one_colour_on_the_whole_page(tmp_path):
    fill(tmp_path)
    fill(tmp_path, "theory", "phase-length", "paper")
    text = build(tmp_path).read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
    for method in ("T=1", "T=100", "uniform"):
        colour = data["methods"][method]["colour"]
        label = data["methods"][method]["label"]
        assert re.search(rf'data-method="{method}"[^>]*><i style="border-top-color:{colour}', text)
        dots = re.findall(rf'class="dot" style="background:(#\w+)"></span>{label}<', text)
        assert set(dots) == {colour}


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_page_works_in_a_browser(page, tmp_path, width, dark):
    browser = Browser(tmp_path / "profile", width, 900, dark=dark)
    try:
        browser.open(page)
        chart = "document.querySelector('.chart')"
        line = f"{chart}.data.filter(t => t.meta === 'method')[0]"
        band = f"{chart}.data.filter(t => t.meta === 'band')[0]"
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        assert browser.evaluate("document.documentElement.dataset.theme") == (
            "dark" if dark else "light"
        )
        # Nothing of the toolbar lies left of where one can scroll to.
        assert browser.evaluate("document.querySelector('.bar .switch').offsetLeft") >= 0
        if width >= 1280:
            tops = "[...document.querySelectorAll('.bar .switch')].map(s => s.offsetTop)"
            assert len(set(browser.evaluate(tops))) == 1  # the toolbar stands on one line
        assert browser.evaluate(f"{chart}._fullLayout.yaxis.type") == "log"
        n_traces = browser.evaluate(f"{chart}.data.length")
        kinds = browser.evaluate(f"{chart}.data.map(t => t.meta)")
        assert kinds[:12] == ["band"] * 6 + ["method"] * 6  # no band is painted over a line
        mean = browser.evaluate(f"{line}.y[0]")
        click(browser, '[data-set="statistic"][value="median"]')
        click(browser, '[data-set="x"][value="queries"]')
        assert browser.evaluate(f"{line}.x[5]") == 100_000
        assert browser.evaluate(f"{line}.y[0]") == mean  # 1, 2, 3: median is mean
        assert browser.evaluate(f"{band}.y[0]") == 2.5  # upper quartile
        click(browser, '[data-set="y"][value="linear"]')
        assert browser.evaluate(f"{chart}._fullLayout.yaxis.type") == "linear"
        click(browser, '[data-set="published"][value="off"]')
        assert browser.evaluate(f"{chart}.data.length") == n_traces - 6
        click(browser, '[data-method="uniform"]')
        assert browser.evaluate(f"{chart}.data.length") == n_traces - 8
        click(browser, '[data-set="settings"][value="paper"]')
        shown = browser.evaluate("[...document.querySelectorAll('.which')].map(p => p.textContent)")
        assert shown == ["paper settings", "published settings (no paper run here)"]
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
        figure = "Plotly.toImage(exportFigure(document.querySelector('.card')), {format: 'svg'})"
        svg = unquote(browser.evaluate(figure))
        assert svg.startswith("data:image/svg+xml")
        # Alone and from a dark page: title, legend, white ground, no serifs.
        for words in ("Ridge, α = 5", "paper settings", "gaussian", "rgb(255, 255, 255)", "Arial"):
            assert words in svg
        assert "inherit" not in svg
        assert browser.errors == []
    finally:
        browser.close()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_a_diverging_curve_leaves_through_the_top(tmp_path):
    fill(tmp_path, settings="paper")
    path = tmp_path / "zo-linear.csv"
    lines = path.read_text().splitlines()
    for i, line in enumerate(lines):
        cells = line.split(",")
        if cells[3] == "gaussian" and float(cells[5]) > 0:
            cells[8] = "inf" if float(cells[5]) > 100 else "1e200"
            lines[i] = ",".join(cells)
    path.write_text("\n".join(lines) + "\n")
    browser = Browser(tmp_path / "profile", 1280, 900)
    try:
        browser.open(build(tmp_path))
        chart = "document.querySelector('.chart')"
        top = browser.evaluate(f"10 ** {chart}._fullLayout.yaxis.range[1]")
        assert top < 1e4
        wild = f"{chart}.data.filter(t => t.name === 'gaussian')"
        assert browser.evaluate(f"{wild}.every(t => t.y.every(v => v !== null && v < 1e6))")
        assert browser.evaluate(f"{wild}.at(-1).customdata.slice(1, 4)")[::2] == ["1.00e+200", "∞"]
        assert "gaussian (diverged, at ∞)" in browser.evaluate(
            "document.querySelector('.outside').textContent"
        )
        click(browser, '[data-set="xscale"][value="log"]')
        assert browser.evaluate(f"{chart}.data.every(t => t.x.every(v => v > 0))")
        assert browser.errors == []
    finally:
        browser.close()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_zero_is_not_drawn_on_a_log_axis(tmp_path):
    fill(tmp_path, "theory", "weights", "paper")
    path = tmp_path / "theory.csv"
    path.write_text(re.sub(r",0,0,0,[\d.]+,distance", ",0,0,0,0,distance", path.read_text()))
    browser = Browser(tmp_path / "profile", 1280, 900)
    try:
        browser.open(build(tmp_path))
        chart = "document.querySelector('.chart')"
        assert browser.evaluate(f"{chart}.data.every(t => t.y.every(v => v > 0))")
        line = f"{chart}.data.filter(t => t.meta === 'method')[0]"
        assert browser.evaluate(f"Math.min(...{line}.x)") == 40
        click(browser, '[data-set="y"][value="linear"]')
        assert browser.evaluate(f"{line}.y[0]") == 0
    finally:
        browser.close()


EVIL = """<img src=x onerror="window.caught = 1"></script><script>window.caught = 2</script>'\"&amp;%{x}"""


def evil_table(folder):
    """Write a table whose names would run script wherever they stood raw in the page."""
    fill(folder)
    path = folder / "zo-linear.csv"
    table = read(path)
    for column in ("panel", "settings", "method", "measure"):
        names = table[column].astype(str)
        table[column] = f"{EVIL}{column}" + names
    extra = read(path)
    pd.concat([extra, table]).to_csv(path, index=False)
    laws = folder / "zo-linear.weights.csv"
    weights = read(laws, WEIGHT_COLUMNS)
    evil = weights.assign(panel=f"{EVIL}panel" + weights["panel"].astype(str),
                          settings=f"{EVIL}settings" + weights["settings"].astype(str),
                          method=f"{EVIL}method" + weights["method"].astype(str))  # fmt: skip
    pd.concat([weights, evil]).to_csv(laws, index=False)
    (folder / "zo-linear.json").write_text(json.dumps(
        {"quick": False, "made": [{"day": EVIL, "environment": {EVIL: EVIL}}]}))  # fmt: skip


def test_names_of_a_table_stand_escaped_in_the_page(tmp_path, monkeypatch):
    monkeypatch.delenv("SCGD_PUBLISHED", raising=False)
    evil_table(tmp_path)
    text = build(tmp_path).read_text()
    outside = re.sub(r"<script>.*?</script>", "", text, flags=re.S)
    assert "<img src=x" not in outside and "<script>window" not in text
    assert outside.count('onerror="') == 0
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
    assert any(EVIL in name for name in data["panels"])


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_a_page_is_inert_whatever_names_a_table_holds(tmp_path, monkeypatch):
    monkeypatch.delenv("SCGD_PUBLISHED", raising=False)
    evil_table(tmp_path)
    browser = Browser(tmp_path / "profile", 1280, 900)
    try:
        browser.open(build(tmp_path))
        browser.evaluate("window.scrollTo(0, 1e6)")
        browser.settle()
        browser.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
        for button in ('[data-set="settings"]:last-child', "[data-method]:last-child"):
            click(browser, button)
        browser.evaluate("for (const c of cards) draw(c)")
        browser.evaluate(
            "Promise.all(cards.map(c => Plotly.toImage(exportFigure(c), {format: 'svg'})))"
        )
        hover = "Plotly.Fx.hover(document.querySelectorAll('.chart')[1], [{curveNumber: 7, pointNumber: 2}])"
        browser.evaluate(f"void {hover}")
        browser.settle()
        assert browser.evaluate("window.caught === undefined")
        assert browser.evaluate("document.querySelectorAll('img[src=x]').length") == 0
        shown = browser.evaluate("document.querySelector('.chips').textContent")
        assert "<img src=x onerror=" in shown.replace("\u00a0", " ")  # letter by letter
        assert [e for e in browser.errors if "ERR_FILE_NOT_FOUND" not in e] == []
    finally:
        browser.close()


def test_the_slider_ends_with_the_run(tmp_path):
    assert main(["run", "paths-2d", "--panel", "f", "--quick", "--runs", "1", "--workers", "1",
                 "--no-progress", "--out", str(tmp_path)]) == 0  # fmt: skip
    text = (tmp_path / "report.html").read_text()
    assert 'max="20" step="0.5" value="20"' in text and "<output>pass 20</output>" in text


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_paths_have_a_slider_over_passes(tmp_path):
    assert main(["run", "paths-2d", "--panel", "h", "--runs", "1", "--workers", "1",
                 "--no-progress", "--out", str(tmp_path)]) == 0  # fmt: skip
    browser = Browser(tmp_path / "profile", 1280, 900)
    try:
        browser.open(tmp_path / "report.html")
        chart = "document.querySelector('.chart')"
        lengths = f"{chart}.data.filter(t => t.meta === 'method').map(t => t.x.length)"
        assert browser.evaluate(lengths) == [61, 121, 121]
        browser.evaluate(
            "const s = document.querySelector('[data-upto]'); s.value = 10;"
            "s.dispatchEvent(new Event('input', {bubbles: true}))"
        )
        browser.settle()
        assert browser.evaluate(lengths) == [11, 21, 21]
        assert browser.evaluate("document.querySelector('output').textContent") == "pass 10"
        assert "only x matters" in browser.evaluate(
            "document.querySelector('figcaption').textContent"
        )
        assert browser.errors == []
    finally:
        browser.close()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_published_means_beside_our_medians_are_named(tmp_path, monkeypatch):
    monkeypatch.delenv("SCGD_PUBLISHED", raising=False)
    fill(tmp_path, "fo-linear", "ridge-alpha10", n_passes=100)  # only means were stored
    fill(tmp_path, "zo-linear", "ridge-alpha10", n_passes=200)
    browser = Browser(tmp_path / "profile", 1280, 900)
    try:
        browser.open(build(tmp_path))
        shown = "[...document.querySelectorAll('.which')].map(p => p.textContent)"
        assert not any("means" in words for words in browser.evaluate(shown))
        click(browser, '[data-set="statistic"][value="median"]')
        assert browser.evaluate(shown) == [
            "published settings", "published settings · published figures are means",
        ]  # fmt: skip
        assert browser.errors == []
    finally:
        browser.close()


def test_quick_runs_are_neither_ranked_nor_compared(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("SCGD_PUBLISHED", raising=False)
    for passes, folder in ((100, tmp_path / "same"), (1, tmp_path / "short")):
        folder.mkdir()
        fill(folder, "zo-networks", "mnist", n_passes=passes)
        stored = {"accuracy/uniform": np.full((10, 100), 0.7)}
        np.savez(folder / "zo_mnist.npz", **stored)
        (folder / "zo-networks.json").write_text('{"quick": true}')
        text = build(folder, str(folder)).read_text()
        data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
        assert data["panels"]["zo-networks/mnist"]["published"] == {}
        body = text.split("<main>")[1].split("</main>")[0]
        for praise in ("ends best", "points of accuracy", 'class="best"', 'class="first"',
                       "Ranks by", "published 7"):  # fmt: skip
            assert praise not in body, praise
        words = terminal_summary(EXPERIMENTS["zo-networks"], folder, "published", ["mnist"])
        assert "mean nothing" in words
        methods = EXPERIMENTS["zo-networks"].panel("mnist", "published").methods
        in_order = [method.name for method in methods]
        box = body.split('class="accuracies"')[1].split("</table>")[0]
        assert re.findall(r"<td>([a-z ]+)</td>", box) == [m.replace("-", " ") for m in in_order]
        assert re.findall(r"^ {5}([a-z]+-?[a-z-]*) +[\d.]+", words, re.M) == in_order * 2
        assert not re.search(r"^\s+1 ", words, re.M) and "0.768" not in words
        assert "published\n" not in words.replace("published ·", "")
    (folder / "zo-networks.json").write_text('{"quick": false}')
    assert "ends best" in build(folder).read_text().split("<main>")[1]


def test_medians_are_shown_where_single_runs_decide_the_mean():
    def by_mean(mean, runs=20):
        curve = {"runs": runs, "mean": [mean], "median": [1.0]}
        return summary.fitting_statistic({"published": {"gap": {"uniform": curve}}})

    assert [by_mean(m) for m in (1.0, 2.9, 3.1, 100.0, np.inf)] == [
        "mean", "mean", "median", "median", "mean",
    ]  # fmt: skip
    assert by_mean(100.0, runs=2) == "mean"
    accuracy = {"runs": 20, "mean": [9.0], "median": [1.0]}
    assert summary.fitting_statistic({"p": {"accuracy": {"uniform": accuracy}}}) == "mean"


def click(browser: Browser, selector: str) -> None:
    browser.evaluate(f"document.querySelector({selector!r}).click()")
    browser.settle()
