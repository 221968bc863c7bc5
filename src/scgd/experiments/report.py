"""The report: one self-contained page with every panel's curves, figures and learned laws."""

from __future__ import annotations

import base64
import html
import json
import os
import platform
import sys
import time
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from scgd import __version__
from scgd.errors import CommandError
from scgd.experiments import summary
from scgd.experiments.registry import EXPERIMENTS
from scgd.experiments.rows import MEASURES, Experiment, Panel, method_look
from scgd.experiments.table import read

__all__ = ["build", "terminal_summary"]

LINEAR_MEASURES = ("accuracy", "x", "y")
"""Measures that are drawn on a linear axis."""
PIXELS = 28
"""The side of the images whose pixels a network's law is summed over."""


def build(folder: Path, published: str | None = None) -> Path:
    """Write ``report.html`` from the tables of a folder and return its path."""
    if not folder.is_dir():
        raise CommandError(f"there is no folder {folder}")
    rows = [row for row in EXPERIMENTS.values() if (folder / f"{row.id}.csv").exists()]
    if not rows:
        raise CommandError(f"{folder} holds no table of results; fill it with: scgd run ID")
    sections, panels = [], {}
    for experiment in rows:
        section, payload = experiment_section(experiment, folder, published)
        sections.append(section)
        panels.update(payload)
    page = assemble(rows, sections, panels, folder)
    path = folder / "report.html"
    try:
        partial = path.with_suffix(".tmp")
        partial.write_text(page, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from None
    return path


def experiment_section(
    experiment: Experiment, folder: Path, published: str | None
) -> tuple[str, dict[str, Any]]:
    """Return an experiment's part of the page and what its charts are drawn from."""
    table = read(folder / f"{experiment.id}.csv")
    learned = summary.laws(folder / f"{experiment.id}.weights.csv")
    cards, payload = [], {}
    for name, rows in table.groupby("panel", sort=False, observed=True):
        shape = known_panel(experiment, str(name))
        curves = summary.curves(rows)
        entry = {
            "kind": experiment.kind,
            "curves": curves,
            "published": summary.overlay(experiment.id, str(name), published),
            "laws": learned.get(name, {}),
            "linear": LINEAR_MEASURES,
            "xlabel": shape.xlabel if shape else "",
            "lawlabel": "coordinates, largest column first",
            "picture": PIXELS if "network" in experiment.kind else 0,
        }
        if experiment.kind == "path" and shape is not None:
            entry |= shape.problem.scene()
        payload[f"{experiment.id}/{name}"] = entry
        cards.append(panel_card(experiment, str(name), shape, entry))
    methods = list(dict.fromkeys(table["method"]))
    chips = "".join(chip(name, place) for place, name in enumerate(methods))
    return (
        f'<section id="{experiment.id}"><h2>{esc(experiment.title)}</h2>'
        f'<p class="note">{esc(experiment.paper)} · <code>scgd run {experiment.id}</code></p>'
        f"{pictures(experiment, folder)}"
        f'<div class="chips" role="group" aria-label="methods">{chips}</div>'
        f'<div class="panels">{"".join(cards)}</div>'
        f"{ranking(payload)}{differences(experiment)}</section>"
    ), payload


def known_panel(experiment: Experiment, name: str) -> Panel | None:
    """Return the row of a panel in any setting."""
    every = (panel for panels in experiment.panels.values() for panel in panels)
    return next((panel for panel in every if panel.name == name), None)


def chip(method: str, place: int) -> str:
    """Return the button that shows and hides a method."""
    look = method_look(method, place)
    style = {"solid": "solid", "dash": "dashed", "dot": "dotted"}[look["dash"]]
    return (
        f'<button data-method="{method}" aria-pressed="true">'
        f'<i style="border-top-color:{look["colour"]};border-top-style:{style}"></i>'
        f"{esc(look['label'])}</button>"
    )


def panel_card(
    experiment: Experiment, name: str, shape: Panel | None, entry: dict[str, Any]
) -> str:
    """Return one panel: finding, chart, figures, learned law."""
    title = shape.title if shape else name
    measures = list(dict.fromkeys(m for c in entry["curves"].values() for m in c))
    tabs = "".join(
        f'<button data-measure="{m}" aria-pressed="{"true" if i == 0 else "false"}">{m}</button>'
        for i, m in enumerate(measures)
    )
    switch = f'<span class="switch"><span class="options">{tabs}</span></span>'
    switch = switch if len(measures) > 1 and experiment.kind != "path" else ""
    play = "<button data-play>Play</button>" if experiment.kind == "path" else ""
    figures = "".join(
        figures_box(settings, curves, entry) for settings, curves in entry["curves"].items()
    )
    law = (
        '<details class="laws"><summary>Sampling law learned</summary>'
        '<div class="law"></div></details>'
        if entry["laws"]
        else ""
    )
    return (
        f'<article class="card" data-panel="{experiment.id}/{name}"><h3>{esc(title)}</h3>'
        f'{findings(entry) if experiment.kind != "theory" else ""}<div class="chart"></div>'
        f'<div class="tools">{switch}{play}<button data-export="png">PNG</button>'
        '<button data-export="svg">SVG</button><button data-export="csv">CSV</button></div>'
        f"{law}{figures}</article>"
    )


def findings(entry: dict[str, Any]) -> str:
    """Return, per setting, one sentence on who ends best and by how much."""
    out = ""
    for settings, curves in entry["curves"].items():
        sentence = finding(curves)
        if sentence:
            out += f'<p class="finding" data-settings-only="{settings}">{sentence}</p>'
    return out


def finding(curves: dict[str, dict[str, Any]]) -> str:
    """Say in one sentence how the best method compares with uniform (or SGD)."""
    measure = "accuracy" if "accuracy" in curves else next(iter(curves))
    if measure not in ("gap", "loss", "accuracy"):
        return ""
    rows = {row["method"]: row for row in summary.finals(curves, measure)}
    best = next(iter(rows.values()))
    rival = next((rows[n] for n in ("uniform", "sgd") if n in rows), None)
    label = esc(method_look(best["method"])["label"])
    if rival is None or not np.isfinite(best["median"]):
        return ""
    if rival is best:
        return f"<b>{label}</b> ends best (median over {best['runs']} runs)."
    other = esc(method_look(rival["method"])["label"])
    if measure == "accuracy":
        ahead = 100 * (best["median"] - rival["median"])
        return f"<b>{label}</b> ends best, {ahead:.1f} points above {other}."
    return f"<b>{label}</b> ends best, {rival['median'] / best['median']:.3g} times below {other}."


def figures_box(settings: str, curves: dict[str, Any], entry: dict[str, Any]) -> str:
    """Return the table of final figures of one setting."""
    out = ""
    for measure in curves:
        if measure in ("x", "y"):
            continue
        known = entry["published"].get(measure, {}) if settings == "published" else {}
        head = ["method", "rank", "mean", "std", "median", "quartiles"]
        head += ["published mean", "std"] if known else []
        body = ""
        for row in summary.finals(curves, measure):
            look = method_look(row["method"])
            cells = [str(row["rank"]), fmt(row["mean"]), fmt(row["std"]), fmt(row["median"]),
                     f"{fmt(row['q25'])} to {fmt(row['q75'])}"]  # fmt: skip
            if known:
                final = known.get(row["method"], {}).get("final", {})
                cells += [fmt(final.get("mean")), fmt(final.get("std"))]
            best = ' class="best"' if row["rank"] == 1 else ""
            dot = f'<span class="dot" style="background:{look["colour"]}"></span>'
            body += f"<tr{best}><td>{dot}{esc(look['label'])}</td>"
            body += "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
        runs = max(c["runs"] for c in curves[measure].values())
        out += (
            f'<details data-settings-only="{settings}"><summary>Final {esc(measure)} over {runs} '
            f'runs, {settings} settings</summary><div class="scroll"><table><tr>'
            + "".join(f"<th>{h}</th>" for h in head)
            + f"</tr>{body}</table></div></details>"
        )
    return out


def ranking(payload: dict[str, Any]) -> str:
    """Return the mean rank of every method over the panels of an experiment."""
    ranks: dict[str, list[int]] = {}
    n_panels = 0
    for entry in payload.values():
        for curves in entry["curves"].values():
            measure = "accuracy" if "accuracy" in curves else "gap"
            if measure in curves and len(curves[measure]) > 1:
                n_panels += 1
                for row in summary.finals(curves, measure):
                    ranks.setdefault(row["method"], []).append(row["rank"])
    if n_panels < 2:
        return ""
    order = sorted(ranks, key=lambda m: float(np.mean(ranks[m])))
    body = "".join(
        f"<tr><td>{esc(method_look(m)['label'])}</td><td>{np.mean(ranks[m]):.2f}</td>"
        f"<td>{sum(r == 1 for r in ranks[m])}</td><td>{max(ranks[m])}</td>"
        f"<td>{len(ranks[m])}</td></tr>"
        for m in order
    )
    return (
        "<details open><summary>Ranks by final median, over all panels and settings here</summary>"
        '<div class="scroll"><table><tr><th>method</th><th>mean rank</th><th>times first</th>'
        f"<th>worst rank</th><th>panels</th></tr>{body}</table></div></details>"
    )


def differences(experiment: Experiment) -> str:
    """Return where the settings part from the text, and the choices made where it is silent."""
    notes = "".join(f'<p class="note">{esc(note)}</p>' for note in experiment.notes)
    if not experiment.differences:
        return notes
    body = "".join(
        "<tr>" + "".join(f"<td>{esc(cell)}</td>" for cell in row) + "</tr>"
        for row in experiment.differences
    )
    return (
        "<details><summary>Where the published settings differ from the paper's text</summary>"
        '<div class="scroll"><table class="words"><tr><th>what</th><th>published</th>'
        f"<th>paper</th></tr>{body}</table></div></details>{notes}"
    )


def pictures(experiment: Experiment, folder: Path) -> str:
    """Return the pictures that a run left beside its table."""
    out = ""
    for path in sorted(folder.glob(f"{experiment.id}-*.png")) + sorted(
        folder.glob(f"{experiment.id}-*.gif")
    ):
        data = base64.b64encode(path.read_bytes()).decode()
        kind = path.suffix[1:]
        out += f'<p><img alt="{esc(path.stem)}" src="data:image/{kind};base64,{data}"></p>'
    return out


def environment() -> dict[str, str]:
    """Return what the figures depend on besides the code."""
    packages = {}
    for name in ("numpy", "scipy", "numba", "scikit-learn", "torch"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "scgd": __version__,
        "Python": platform.python_version(),
        **packages,
        "system": f"{platform.system()} {platform.machine()}",
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else
                     os.cpu_count()),
        "written": time.strftime("%Y-%m-%d %H:%M"),
    }  # fmt: skip


def assemble(
    rows: Sequence[Experiment], sections: Iterable[str], panels: dict[str, Any], folder: Path
) -> str:
    """Put the page together: data, style, script and plotly, once each."""
    from plotly.offline import get_plotlyjs

    settings = list(dict.fromkeys(s for entry in panels.values() for s in entry["curves"]))
    methods = dict.fromkeys(m for e in panels.values() for c in e["curves"].values()
                            for curves in c.values() for m in curves)  # fmt: skip
    looks = {name: method_look(name, place) for place, name in enumerate(methods)}
    payload = {"panels": panels, "methods": looks, "measures": MEASURES}
    data = json.dumps(plain(payload), separators=(",", ":")).replace("</", "<\\/")
    page = files("scgd.experiments").joinpath("page")
    contents = "".join(f'<a href="#{r.id}">{esc(r.title)}</a>' for r in rows)
    facts = "".join(
        f"<tr><td>{esc(k)}</td><td>{esc(v)}</td></tr>" for k, v in environment().items()
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,"><title>SGD with coordinate sampling</title>'
        f"<style>{page.joinpath('page.css').read_text()}</style></head><body>"
        "<header><h1>SGD with coordinate sampling: the paper's experiments</h1>"
        '<p class="lead">Leluc and Portier (JMLR 2022), run again. Curves are the mean with one '
        "standard deviation, as in the paper, or the median with quartiles; diamonds mark "
        f'published final figures.</p><nav class="contents">{contents}</nav></header>'
        f"{toolbar(settings)}<main>{''.join(sections)}</main>"
        '<footer><details><summary>Environment</summary><div class="scroll"><table>'
        f"{facts}</table></div></details></footer>"
        f'<script type="application/json" id="data">{data}</script>'
        f"<script>{get_plotlyjs()}</script><script>{page.joinpath('page.js').read_text()}</script>"
        "</body></html>"
    )


def toolbar(settings: Sequence[str]) -> str:
    """Return the switches."""
    switches = [
        switch("Curve", "statistic", {"mean": "mean ± std", "median": "median, quartiles"}),
        switch("x", "x", {"pass": "passes", "queries": "queries", "seconds": "seconds"}),
        switch("x scale", "xscale", {"linear": "linear", "log": "log"}),
        switch("y scale", "y", {"log": "log", "linear": "linear"}),
    ]
    if "published" in settings:
        switches.append(switch("Published", "published", {"on": "shown", "off": "hidden"}))
    if len(settings) > 1:
        switches.append(switch("Settings", "settings", {s: s for s in settings}))
    theme = '<span class="switch"><span class="options"><button data-theme>light / dark</button></span></span>'
    return f'<div class="bar"><div>{"".join(switches)}{theme}</div></div>'


def switch(label: str, name: str, options: dict[str, str]) -> str:
    """Return a row of buttons of which one is pressed."""
    buttons = "".join(
        f'<button data-set="{name}" value="{value}" aria-pressed="{"true" if i == 0 else "false"}">'
        f"{esc(text)}</button>"
        for i, (value, text) in enumerate(options.items())
    )
    return (
        f'<span class="switch" role="group" aria-label="{esc(label)}"><span>{esc(label)}</span>'
        f'<span class="options">{buttons}</span></span>'
    )


def plain(value: Any) -> Any:
    """Return nested data as JSON can hold it: short numbers, None for what is not finite."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(v) for v in (value.tolist() if isinstance(value, np.ndarray) else value)]
    if isinstance(value, float | np.floating):
        return float(f"{value:.5g}") if np.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


def fmt(value: float | None) -> str:
    """Return a figure with three digits, or a dash.

    Examples
    --------
    >>> fmt(0.0025512), fmt(None)
    ('2.55e-03', '–')
    """
    if value is None or np.isnan(value):
        return "–"
    return f"{value:.3g}" if value == 0 or 0.01 <= abs(value) < 1000 else f"{value:.2e}"


def esc(text: str) -> str:
    """Return text safe to put into the page."""
    return html.escape(str(text))


def terminal_summary(experiment: Experiment, folder: Path, settings: str, limit: int = 8) -> str:
    """Return the final figures as plain text, panel by panel."""
    lines = []
    entries = [e for e in summary.summarize(experiment, folder)
               if e["settings"] == settings and e["measure"] not in ("x", "y")]  # fmt: skip
    for entry in entries[:limit]:
        lines.append(
            f"\n{experiment.id} · {entry['panel']} · {settings} · final {entry['measure']}"
        )
        lines.append(
            f"  {'':2} {'method':<30}{'mean':>10}{'std':>10}{'median':>10}{'published':>11}"
        )
        for row in entry["finals"]:
            published = fmt(row["published"].get("mean"))
            lines.append(
                f"  {row['rank']:>2} {row['method']:<30}{fmt(row['mean']):>10}{fmt(row['std']):>10}"
                f"{fmt(row['median']):>10}{published:>11}"
            )
    if len(entries) > limit:
        lines.append(f"\n... and {len(entries) - limit} more panels in the report")
    return "\n".join(lines)


def say(text: str) -> None:
    """Print to standard output, also where it cannot show every letter."""
    sys.stdout.write(text.encode(sys.stdout.encoding or "utf-8", "replace").decode(
        sys.stdout.encoding or "utf-8") + "\n")  # fmt: skip
