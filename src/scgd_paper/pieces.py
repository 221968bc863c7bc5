"""The pieces of the report's page, as HTML."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scgd_paper import summary
from scgd_paper.rows import REFERENCES, Experiment, Panel, method_look

__all__ = [
    "accuracies",
    "chip",
    "coverage",
    "differences",
    "esc",
    "fmt",
    "known_panel",
    "panel_card",
    "pictures",
    "ranking",
    "toolbar",
]

FEW = 3
"""Runs that it takes to say that a method ends best."""
NO_FINALS = ("x", "y", "step")
"""Measures whose last value says nothing by itself."""


def known_panel(experiment: Experiment, name: str) -> Panel | None:
    """Return the row of a panel in any setting."""
    every = (panel for panels in experiment.panels.values() for panel in panels)
    return next((panel for panel in every if panel.name == name), None)


def chip(method: str) -> str:
    """Return the button that shows and hides a method."""
    look = method_look(method)
    style = {"solid": "solid", "dash": "dashed", "dot": "dotted"}[look["dash"]]
    return (
        f'<button data-method="{esc(method)}" aria-pressed="true">'
        f'<i style="border-top-color:{look["colour"]};border-top-style:{style}"></i>'
        f"{esc(look['label'])}</button>"
    )


def coverage(experiment: Experiment, table: Any) -> str:
    """Say which settings are known at all, and which panels have no runs here."""
    out = ""
    if len(experiment.panels) == 1:
        out += f"Only {next(iter(experiment.panels))} settings exist: no others are known. "
    for settings, rows in table.groupby("settings", sort=False, observed=True):
        every = [panel.name for panel in experiment.panels.get(settings, ())]
        missing = [name for name in every if name not in set(rows["panel"])]
        if missing:
            names = ", ".join(missing) if len(missing) <= 6 else f"{len(missing)} of {len(every)}"
            out += f"Panels without runs here, in {settings} settings: {names}. "
    return f'<p class="note">{esc(out.strip())}</p>' if out else ""


def panel_card(
    experiment: Experiment, name: str, shape: Panel | None, entry: dict[str, Any]
) -> str:
    """Return one panel: finding, chart, figures, learned law."""
    title = shape.title if shape else name
    measures = list(dict.fromkeys(m for c in entry["curves"].values() for m in c))
    tabs = "".join(
        f'<button data-measure="{esc(m)}" aria-pressed="{"true" if i == 0 else "false"}">'
        f"{esc(m)}</button>"
        for i, m in enumerate(measures)
    )
    switch = f'<span class="switch"><span class="options">{tabs}</span></span>'
    switch = switch if len(measures) > 1 and experiment.kind != "path" else ""
    play = slider(entry) if experiment.kind == "path" else ""
    figures = "".join(
        figures_box(settings, curves, entry) for settings, curves in entry["curves"].items()
    )
    law = (
        '<details class="laws"><summary>Sampling distribution learned</summary>'
        '<div class="law"></div></details>'
        if entry["laws"]
        else ""
    )
    praise = "" if experiment.kind == "theory" or entry.get("quick", False) else findings(entry)
    return (
        f'<article class="card" data-panel="{esc(f"{experiment.id}/{name}")}"><h3>{esc(title)}</h3>'
        '<p class="which"></p>'
        f'{praise}<div class="chart"></div>'
        '<p class="outside" hidden></p>'
        f'<div class="tools">{switch}{play}<button data-export="png">PNG</button>'
        '<button data-export="svg">SVG</button><button data-export="csv">CSV</button></div>'
        f"{law}{figures}</article>"
    )


def slider(entry: dict[str, Any]) -> str:
    """Return the button that plays the paths, and the slider over their passes."""
    ways = (way for methods in entry.get("paths", {}).values() for way in methods.values())
    last = fmt(max((float(way["pass"][-1]) for way in ways), default=1.0))
    return (
        '<span class="slider"><button data-play>Play</button>'
        f'<input type="range" data-upto min="0" max="{last}" step="0.5" value="{last}" '
        f'aria-label="passes shown"><output>pass {last}</output></span>'
    )


def findings(entry: dict[str, Any]) -> str:
    """Return, per setting, one sentence on who ends best and by how much."""
    out = ""
    for settings, curves in entry["curves"].items():
        sentence = finding(curves)
        if sentence:
            out += f'<p class="finding" data-settings-only="{esc(settings)}">{sentence}</p>'
    return out


def finding(curves: dict[str, dict[str, Any]]) -> str:
    """Say how the best method compares with uniform (or SGD), and whether the spread allows it."""
    measure = "accuracy" if "accuracy" in curves else next(iter(curves))
    if measure not in ("gap", "loss", "accuracy"):
        return ""
    every = summary.finals(curves, measure)
    rows = {row["method"]: row for row in every if row["rank"]}
    best, *others = rows.values()
    rival = next((rows[n] for n in ("uniform", "sgd") if n in rows), None)
    if rival is None or not others or not np.isfinite(best["median"]):
        return ""
    rival = others[0] if rival is best else rival
    name = esc(method_look(best["method"])["label"])
    n_runs = min(best["runs"], rival["runs"])
    text = f"By the median over {best['runs']} runs, " if best["runs"] > 1 else "In a single run, "
    if n_runs < FEW:
        text += f"{name} is {ahead(best, rival, measure)}; too few runs to tell."
    elif overlap(best, rival):
        text += f"{name} is {ahead(best, rival, measure)}, within the spread: quartiles overlap."
    else:
        text += f"<b>{name}</b> ends best, {ahead(best, rival, measure)}."
    sign = -1 if measure in summary.LARGER_IS_BETTER else 1
    first = min(rows.values(), key=lambda row: sign * row["mean"])
    if first is not best:
        text += f" By the mean, {esc(method_look(first['method'])['label'])} ends best."
    for row in every:
        if not row["rank"] and measure == "accuracy":
            text += f" {REFERENCES[row['method']]}: {100 * row['median']:.1f} %."
    return text


def ahead(best: dict[str, Any], rival: dict[str, Any], measure: str) -> str:
    """Say how far the best median is from another."""
    other = esc(method_look(rival["method"])["label"])
    if measure == "accuracy":
        return f"{100 * (best['median'] - rival['median']):.1f} points of accuracy above {other}"
    if not np.isfinite(rival["median"]):
        return f"while {other} diverged"
    times = f"{rival['median'] / best['median']:.3g}"
    return f"level with {other}" if times == "1" else f"{times} times below {other}"


def overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether the quartiles of two methods overlap."""
    return bool(one["q25"] <= other["q75"] and other["q25"] <= one["q75"])


def figures_box(settings: str, curves: dict[str, Any], entry: dict[str, Any]) -> str:
    """Return the table of final figures of one setting."""
    out = ""
    for measure in curves:
        if measure in NO_FINALS:
            continue
        top = entry["limits"][settings].get(measure, {}).get("log", np.inf)
        known = entry["published"].get(measure, {}) if settings == "published" else {}
        head = ["method", "rank", "mean<small>± std</small>", "median<small>quartiles</small>"]
        head += ["published<small>± std</small>"] if known else []
        rows = summary.finals(curves, measure, entry.get("quick", False))
        n = digits([row["median"] for row in rows])
        body = "".join(figures_row(row, known, n, top) for row in rows)
        runs = max(c["runs"] for c in curves[measure].values())
        words = esc(f"Final {measure} over {runs} runs, {settings} settings")
        out += (
            f'<details data-settings-only="{esc(settings)}"><summary>{words}</summary>'
            '<div class="scroll"><table class="figures"><tr>'
            + "".join(f"<th>{h}</th>" for h in head)
            + f"</tr>{body}</table></div></details>"
        )
    return out


def figures_row(row: dict[str, Any], known: dict[str, Any], n: int, top: float) -> str:
    """Return a method's row of final figures, with n digits."""
    look = method_look(row["method"])
    quartiles = f"{fmt(row['q25'], n)} to {fmt(row['q75'], n)}"
    cells = [str(row["rank"] or "–"), with_spread(row, n)]
    cells.append(f"{fmt(row['median'], n)}<small>{quartiles}</small>")
    if known:
        cells.append(with_spread(known.get(row["method"], {}).get("final", {}), n))
    best = ' class="best"' if row["rank"] == 1 else ""
    dot = f'<span class="dot" style="background:{look["colour"]}"></span>'
    name = f"<td>{dot}{esc(look['label'])}{diverged(row, top)}</td>"
    return f"<tr{best}>{name}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def with_spread(figures: dict[str, float], n: int) -> str:
    """Return a mean with its standard deviation, as far as they are known."""
    if "mean" not in figures:
        return "–"
    spread = f"<small>±\u00a0{fmt(figures['std'])}</small>" if "std" in figures else ""
    return fmt(figures["mean"], n) + spread


def accuracies(payload: dict[str, Any]) -> str:
    """Return one table per setting: final accuracy of every method on every panel, in percent."""
    out = ""
    for settings in dict.fromkeys(s for entry in payload.values() for s in entry["curves"]):
        panels = {name.split("/", 1)[1]: entry for name, entry in payload.items()
                  if "accuracy" in entry["curves"].get(settings, {})}  # fmt: skip
        if not panels:
            continue
        finals = {}
        for name, entry in panels.items():
            rows = summary.finals(entry["curves"][settings], "accuracy", entry.get("quick", False))
            finals[name] = {row["method"]: row for row in rows}
        body = ""
        for method in dict.fromkeys(m for rows in finals.values() for m in rows):
            cells = ""
            for name, entry in panels.items():
                known = entry["published"].get("accuracy", {}) if settings == "published" else {}
                cells += accuracy_cell(
                    finals[name].get(method), known.get(method, {}).get("final", {})
                )
            body += f"<tr><td>{esc(method_look(method)['label'])}</td>{cells}</tr>"
        head = "".join(f"<th>{esc(name)}</th>" for name in panels)
        note = "; published figures below ours" if "<small>" in body else ""
        out += (
            f"<details open><summary>Final test accuracy in percent, mean ± std, {esc(settings)} "
            f'settings{note}</summary><div class="scroll"><table class="accuracies">'
            f"<tr><th>method</th>{head}</tr>{body}</table></div></details>"
        )
    return out


def accuracy_cell(row: dict[str, Any] | None, known: dict[str, float]) -> str:
    """Return one accuracy with the published one, if there is one, below it."""
    if row is None:
        return "<td>–</td>"
    text = f"{100 * row['mean']:.1f} ± {100 * row['std']:.1f}"
    if "mean" in known:
        spread = f" ± {100 * known['std']:.1f}" if "std" in known else ""
        text += f"<small>published {100 * known['mean']:.1f}{spread}</small>"
    best = ' class="first"' if row["rank"] == 1 else ""
    return f"<td{best}>{text}</td>"


def diverged(row: dict[str, Any], top: float) -> str:
    """Return a mark for a method whose runs end above what the chart shows; a bound may."""
    if row.get("method") in REFERENCES:
        return ""
    return ' <em class="diverged">diverged</em>' if not row["median"] <= top else ""


def ranking(payload: dict[str, Any]) -> str:
    """Return the mean rank of every method over the panels of an experiment."""
    ranks: dict[str, list[int]] = {}
    n_panels = 0
    for entry in payload.values():
        for curves in entry["curves"].values():
            measure = "accuracy" if "accuracy" in curves else "gap"
            rows = summary.finals(curves, measure) if measure in curves else []
            rivals = [row for row in rows if row["rank"]]  # a bound is no method
            if len(rivals) > 1:
                n_panels += 1
                for row in rivals:
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
    """Return the pictures that a run left beside its table, each with what it shows."""
    out = ""
    for kind in ("png", "gif"):
        for path in sorted(folder.glob(f"{experiment.id}-*.{kind}")):
            data = base64.b64encode(path.read_bytes()).decode()
            words = picture_caption(experiment, path.stem.removeprefix(f"{experiment.id}-"))
            out += (
                f'<figure><img alt="{esc(words)}" src="data:image/{kind};base64,{data}">'
                f"<figcaption>{esc(words)}</figcaption></figure>"
            )
    return f'<div class="pictures">{out}</div>' if out else ""


def picture_caption(experiment: Experiment, name: str) -> str:
    """Say what a picture beside the table shows."""
    panel = known_panel(experiment, name)
    title = panel.title if panel else name
    if experiment.kind == "path":
        return f"{title}. The paths of run 0, pass by pass, over level lines."
    return f"{title.split(',')[0]}: samples of the test images, one row per class."


def toolbar(settings: Sequence[str]) -> str:
    """Return the switches."""
    switches = [
        switch("Curve", "statistic", {"panel": "by panel", "mean": "mean", "median": "median"}),
        switch("x", "x", {"pass": "passes", "queries": "queries", "seconds": "seconds"}),
        switch("x scale", "xscale", {"panel": "by panel", "linear": "linear", "log": "log"}),
        switch("y scale", "y", {"log": "log", "linear": "linear"}),
    ]
    if "published" in settings:
        switches.append(switch("Published", "published", {"on": "on", "off": "off"}))
    if len(settings) > 1:
        switches.append(switch("Settings", "settings", {s: s for s in settings}))
    theme = '<button data-theme aria-label="light or dark" title="light or dark">◐</button>'
    switches.append(f'<span class="switch"><span class="options">{theme}</span></span>')
    return f'<div class="bar"><div>{"".join(switches)}</div></div>'


def switch(label: str, name: str, options: dict[str, str]) -> str:
    """Return a row of buttons of which one is pressed."""
    buttons = "".join(
        f'<button data-set="{name}" value="{esc(value)}" '
        f'aria-pressed="{"true" if i == 0 else "false"}">{esc(text)}</button>'
        for i, (value, text) in enumerate(options.items())
    )
    return (
        f'<span class="switch" role="group" aria-label="{esc(label)}"><span>{esc(label)}</span>'
        f'<span class="options">{buttons}</span></span>'
    )


def digits(values: Sequence[float]) -> int:
    """Return how many digits tell different values apart, from three to five.

    Examples
    --------
    >>> digits([2.3026, 2.3014]), digits([1.0, 2.0])
    (4, 3)
    """
    n_values = len(set(values))
    return next((n for n in (3, 4) if len({fmt(v, n) for v in values}) == n_values), 5)


def fmt(value: float | None, n: int = 3) -> str:
    """Return a figure with n digits, or a dash.

    Examples
    --------
    >>> fmt(0.0025512), fmt(2.3026, 4), fmt(None)
    ('2.55e-03', '2.303', '–')
    """
    if value is None or np.isnan(value):
        return "–"
    if np.isinf(value):
        return "∞"
    return f"{value:.{n}g}" if value == 0 or 0.01 <= abs(value) < 1000 else f"{value:.{n - 1}e}"


def esc(text: str) -> str:
    """Return text safe to put into the page."""
    return html.escape(str(text))
