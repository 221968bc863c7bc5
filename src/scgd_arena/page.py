"""One page of results: the score by class, data profiles by class, and every cell."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scgd.plots.data import OURS as TEAL
from scgd.typing import Floats
from scgd_arena.cells import Cell
from scgd_arena.oracle import TOLERANCES
from scgd_arena.rows import Rows, Run
from scgd_arena.score import Class, floored

__all__ = ["cell_table", "data_profiles", "markdown_table", "write_page"]

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:1200px;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;font-size:13px;margin:1rem 0}
td,th{padding:.25rem .5rem;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}
td:first-child,th:first-child,td.name{text-align:left}.best{font-weight:700}
.lost{background:#fdecea}.won{background:#e8f5e9}.wrap{overflow-x:auto}small{color:#666}
"""
OURS = "auto"
PLACES = 121
COVERED = 0.8
Runs = dict[Cell, dict[str, dict[int, Run]]]


def merged(cells: Sequence[Cell], own: Rows, peers: Rows) -> Runs:
    """Return the runs of every method on every cell; our own ones replace stored ones."""
    at: dict[str, dict[str, dict[int, Run]]] = {}
    for source in (peers, own):
        for (key, method), runs in source.runs.items():
            at.setdefault(key, {})[method] = runs
    return {cell: {**at.get(cell.key, {}), **at.get(cell.own_key, {})} for cell in cells}


def ordered(names: Iterable[str]) -> list[str]:
    """Return methods, ours first."""
    return sorted(set(names), key=lambda name: (name != OURS, name))


def data_profiles(runs: Runs, instances: Sequence[int]) -> tuple[Floats, dict[str, Floats]]:
    """Return evaluations per p + 1 and, per method, the share of runs solved within that many.

    One row of shares per tolerance (Moré and Wild, 2009); of several budgets of a problem the
    largest counts. A method is in it if it was run on most of the problems.
    """
    largest: dict[str, Cell] = {}
    for cell in sorted(runs, key=lambda cell: cell.budget):
        largest[cell.name] = cell
    last = max(cell.budget / (cell.shape[0] + 1) for cell in largest.values())
    places = np.logspace(-1, max(0.0, np.log10(last)), PLACES)
    reached: dict[str, list[Floats]] = {}
    for cell in largest.values():
        for method, known in runs[cell].items():
            rows = [known[i].reached for i in instances if i in known and known[i].reached]
            if rows:
                per_coord = np.array(rows) / (cell.shape[0] + 1)
                reached.setdefault(method, []).append(
                    np.mean(per_coord.T[:, :, None] <= places, axis=1)
                )
    most = max((len(parts) for parts in reached.values()), default=0)
    return places, {
        name: np.mean(reached[name], axis=0)
        for name in ordered(reached)
        if len(reached[name]) >= COVERED * most
    }


def line_style(name: str, names: Sequence[str]) -> dict[str, object]:
    """Return how a method is drawn in all charts."""
    from plotly.colors import qualitative

    if name == OURS:
        return {"color": TEAL, "width": 3.5, "shape": "hv"}
    palette = qualitative.Dark24
    return {"color": palette[names.index(name) % len(palette)], "width": 1.5, "shape": "hv"}


def profile_chart(runs: Runs, instances: Sequence[int]) -> Any:
    """Return data profiles: a row per class, a column per tolerance."""
    from plotly.subplots import make_subplots

    groups = list(dict.fromkeys(cell.group for cell in runs))
    titles = [
        f"{group}: {tolerance:g} of the start's gap" for group in groups for tolerance in TOLERANCES
    ]
    figure = make_subplots(
        len(groups), len(TOLERANCES), subplot_titles=titles, shared_yaxes=True,
        vertical_spacing=0.25 / len(groups), horizontal_spacing=0.03,
    )  # fmt: skip
    names = ordered(method for methods in runs.values() for method in methods)
    legend: set[str] = set()
    for row, group in enumerate(groups, 1):
        part = {cell: methods for cell, methods in runs.items() if cell.group == group}
        places, shares = data_profiles(part, instances)
        for name, share in reversed(shares.items()):
            for column, curve in enumerate(share, 1):
                figure.add_scatter(
                    x=places, y=curve, name=name, mode="lines", line=line_style(name, names),
                    legendgroup=name, legendrank=names.index(name), showlegend=name not in legend,
                    row=row, col=column,
                )  # fmt: skip
                legend.add(name)
    figure.update_xaxes(type="log", dtick=1)
    figure.update_xaxes(title="evaluations / (p + 1)", row=len(groups))
    figure.update_yaxes(range=[0, 1.02])
    figure.update_yaxes(title="share of runs", col=1)
    figure.update_annotations(font_size=13)
    figure.update_layout(height=120 + 300 * len(groups), template="plotly_white", font_size=13)
    figure.update_layout(legend={"traceorder": "normal"}, margin={"l": 60, "r": 20, "t": 40})
    return figure


def cell_table(runs: Runs, instances: Sequence[int]) -> str:
    """Return medians (worst cases) of every cell as HTML."""
    names = ordered(method for methods in runs.values() for method in methods)
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    lines = [f"<tr><th>problem</th><th>evals</th>{head}<th>auto/peer</th></tr>"]
    for cell, methods in runs.items():
        entries = {name: middle(known, instances) for name, known in methods.items()}
        entries = {name: entry for name, entry in entries.items() if entry is not None}
        if entries:
            lines.append(cell_line(cell, names, entries))
    return f"<table>{''.join(lines)}</table>"


def cell_line(cell: Cell, names: list[str], entries: dict[str, Any]) -> str:
    """Return one row of the table of cells."""
    best = min(entry[0] for entry in entries.values())
    peers = [entry[0] for name, entry in entries.items() if name != OURS]
    ratio, mark = "-", ""
    if OURS in entries and peers:
        value = floored(entries[OURS][0]) / floored(min(peers))
        ratio, mark = f"{value:.2g}", "won" if value <= 0.5 else "lost" if value > 2 else ""
    parts = "".join(entry_html(entries.get(name), best) for name in names)
    told = html.escape(cell.name + (" +bounds" if cell.bounds else ""))
    first, last = f"<td>{told}</td><td>{cell.budget:g}</td>", f"<td class='{mark}'>{ratio}</td>"
    return f"<tr>{first}{parts}{last}</tr>"


def entry_html(entry: tuple[float, float] | None, best: float) -> str:
    """Return one entry of the table of cells."""
    if entry is None:
        return "<td>-</td>"
    bold = " class=best" if entry[0] <= best else ""
    return f"<td{bold}>{entry[0]:.2g} <small>({entry[1]:.2g})</small></td>"


def middle(known: dict[int, Run], instances: Sequence[int]) -> tuple[float, float] | None:
    """Return the median and the worst gap; None unless all instances are there."""
    gaps = [known[i].gap for i in instances if i in known]
    return (float(np.median(gaps)), max(gaps)) if len(gaps) == len(instances) else None


def markdown_table(runs: Runs, instances: Sequence[int]) -> str:
    """Return medians (worst cases) of every cell as a Markdown table."""
    names = ordered(method for methods in runs.values() for method in methods)
    lines = ["| problem | evals | " + " | ".join(names) + " |", "|---" * (len(names) + 2) + "|"]
    for cell, methods in runs.items():
        entries = [middle(methods.get(name, {}), instances) for name in names]
        texts = ["-" if entry is None else f"{entry[0]:.2g} ({entry[1]:.2g})" for entry in entries]
        lines.append(f"| {cell.name} | {cell.budget:g} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def class_html(rows: Sequence[Class]) -> str:
    """Return the score by class as HTML."""
    head = "<tr><th>class</th><th>cells</th><th>auto, gap</th><th>best peer</th><th>its gap</th>"
    head += "<th>within 2x</th><th>within 10x</th><th>geometric mean</th><th>peers</th></tr>"
    lines = []
    for row in rows:
        mark = "won" if row.mean <= 1.5 else "lost" if row.mean > 2.5 else ""
        lines.append(
            f"<tr><td>{html.escape(row.name)}</td><td>{row.cells}</td><td>{row.gap:.2g}</td>"
            f"<td class=name>{html.escape(row.peer)}</td><td>{row.peer_gap:.2g}</td>"
            f"<td>{row.within_2:.2f}</td><td>{row.within_10:.2f}</td>"
            f"<td class='{mark}'>{row.mean:.3g}</td><td>{row.n_peers}</td></tr>"
        )
    return f"<table>{head}{''.join(lines)}</table>"


INTRO = (
    "<p>Every method gets the same number of evaluations. A cell is a function, a dimension and a "
    "budget; its gap f(x) - f* is the median over instances, floored at 1e-8. Within 2x: share of "
    "cells where auto is within a factor of 2 of whichever peer is best in that cell; geometric "
    "mean: of max(1, auto / best peer of the cell). Peers know the domain; auto knows the start, "
    "and the bounds where it says so.</p>"
)
PROFILES = (
    "<h2>Data profiles</h2><p>Share of runs that came down to a tenth, a hundredth and a "
    "thousandth of the start's gap after so many evaluations per p + 1. Where f repeats itself, "
    "the best value seen counts; under noise, points are looked at 20 times per decade, and the "
    "one recommended. Methods run on less than four fifths of a class are not in its panel.</p>"
)


def write_page(
    path: Path,
    cells: Sequence[Cell],
    own: Rows,
    peers: Rows,
    instances: Sequence[int],
    found: Sequence[Class] = (),
    title: str = "Peer arena",
    each: bool = True,
) -> None:
    """Write the page; plotly's script is inside it, so it can be read anywhere."""
    runs = merged(cells, own, peers)
    chart = profile_chart(runs, instances).to_html(
        full_html=False, include_plotlyjs="inline", config={"displayModeBar": False}
    )
    table = ""
    if each:
        unfolded = " open" if len(cells) < 40 else ""
        table = f"<details{unfolded}><summary>All cells: median gap (worst)</summary>"
        table += f"<div class=wrap>{cell_table(runs, instances)}</div></details>"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"<!doctype html><meta charset=utf-8><title>{html.escape(title)}</title>"
        f"<meta name=viewport content='width=device-width'><style>{STYLE}</style>"
        f"<h1>{html.escape(title)}</h1>{INTRO}{class_html(found) if found else ''}"
        f"{PROFILES}{chart}{table}"
    )
