"""The arena's report: one HTML page with the table, data and performance profiles and times."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scgd.compare.arena import TOLERANCES, Row, summary
from scgd.typing import Floats

__all__ = ["data_profiles", "markdown_table", "profiles", "write_report"]

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:1200px;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;font-size:13px;margin:1rem 0}
td,th{padding:.25rem .5rem;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}
td:first-child,th:first-child{text-align:left}.best{font-weight:700}.lost{background:#fdecea}
.won{background:#e8f5e9}.wrap{overflow-x:auto}small{color:#666}
"""
OURS = "auto"
LEGEND = {
    "traceorder": "normal",
    "orientation": "h",
    "yref": "container",
    "y": 0,
    "yanchor": "bottom",
}


def ordered(rows: Sequence[Row]) -> list[str]:
    """Return the methods, ours first."""
    names = dict.fromkeys(row.method for row in rows)
    return sorted(names, key=lambda name: (name != OURS, name))


def best_peer(methods: dict[str, tuple[float, float, int]]) -> tuple[str, float]:
    """Return the peer with the smallest median gap."""
    peers = {name: cell[0] for name, cell in methods.items() if name not in (OURS, "musketeer")}
    name = min(peers, key=lambda peer: peers[peer], default="")
    return name, peers.get(name, float("nan"))


def markdown_table(rows: Sequence[Row]) -> str:
    """Return medians (worst cases) as a Markdown table, with the ratio of auto to the best peer."""
    names = ordered(rows)
    lines = ["| problem | evals | " + " | ".join(names) + " | auto / best peer |"]
    lines.append("|---" * (len(names) + 3) + "|")
    for (problem, budget), methods in summary(rows).items():
        cells = [
            f"{methods[name][0]:.2g} ({methods[name][1]:.2g})" if name in methods else "-"
            for name in names
        ]
        peer, value = best_peer(methods)
        ratio = "-"
        if OURS in methods and value == value:
            ratio = f"{ratio_of(methods[OURS][0], value):.2g} vs {peer}"
        lines.append(f"| {problem} | {budget:g} | " + " | ".join(cells) + f" | {ratio} |")
    return "\n".join(lines)


def ratio_of(ours: float, theirs: float) -> float:
    """Return ours / theirs, 1 where both are as good as zero."""
    return 1.0 if max(ours, theirs) < 1e-12 else ours / max(theirs, 1e-300)


def profiles(rows: Sequence[Row]) -> tuple[Floats, dict[str, Floats]]:
    """Return factors and, per method, the share of cells within that factor of the best median."""
    factors = np.logspace(0, 6, 121)
    cells = summary(rows)
    shares = {}
    for name in ordered(rows):
        ratios = []
        for methods in cells.values():
            if name in methods:
                best = max(min(cell[0] for cell in methods.values()), 1e-12)
                ratios.append(max(methods[name][0], 1e-12) / best)
        shares[name] = np.array([np.mean(np.array(ratios) <= f) for f in factors])
    return factors, shares


def data_profiles(rows: Sequence[Row]) -> tuple[Floats, dict[str, Floats]]:
    """Return evaluations per p + 1 and, per method, the share of runs solved within that many.

    One row of shares per tolerance (Moré and Wild, 2009); of several budgets the largest counts.
    """
    last = max(row.budget / (row.n_coords + 1) for row in rows)
    places = np.logspace(-1, max(0.0, np.log10(last)), 201)
    largest: dict[tuple[str, str, int], Row] = {}
    for row in sorted(rows, key=lambda row: row.budget):
        largest[row.problem, row.method, row.seed] = row
    shares = {}
    for name in ordered(rows):
        runs = [row for row in largest.values() if row.method == name]
        per_coord = np.array([row.reached for row in runs]) / [[row.n_coords + 1] for row in runs]
        shares[name] = np.mean(per_coord.T[:, :, None] <= places, axis=1)
    return places, shares


def line_style(name: str, names: Sequence[str]) -> dict[str, object]:
    """Return how a method is drawn in all charts."""
    from plotly.colors import qualitative

    colour = qualitative.Dark24[names.index(name) % 24]
    return {"color": colour, "width": 4 if name == OURS else 1.5, "shape": "hv"}


def performance_chart(rows: Sequence[Row]) -> Any:
    """Return the chart of performance profiles."""
    import plotly.graph_objects as go

    factors, shares = profiles(rows)
    figure = go.Figure()
    for name, share in shares.items():
        line = line_style(name, list(shares))
        figure.add_scatter(x=factors, y=share, name=name, mode="lines", line=line)
    figure.update_xaxes(type="log", title="factor above the best method's median gap")
    figure.update_yaxes(title="share of the cells run", range=[0, 1.02])
    figure.update_layout(height=480, title="Performance profiles")
    return figure


def data_chart(rows: Sequence[Row]) -> Any:
    """Return the chart of data profiles, a row per tolerance."""
    from plotly.subplots import make_subplots

    places, shares = data_profiles(rows)
    titles = [f"gap at most {tolerance:g} of the start's" for tolerance in TOLERANCES]
    figure = make_subplots(len(TOLERANCES), 1, subplot_titles=titles, vertical_spacing=0.1)
    for name, share in shares.items():
        line = line_style(name, list(shares))
        for i, part in enumerate(share):
            figure.add_scatter(
                x=places, y=part, name=name, mode="lines", line=line, legendgroup=name,
                showlegend=i == 0, row=i + 1, col=1,
            )  # fmt: skip
    figure.update_xaxes(type="log")
    figure.update_xaxes(title="evaluations / (p + 1)", row=len(TOLERANCES))
    figure.update_xaxes(matches="x")
    figure.update_yaxes(title="share of runs", range=[0, 1.02])
    figure.update_layout(height=860, title="Data profiles")
    return figure


def write_report(rows: Sequence[Row], path: Path, title: str = "Peer arena") -> None:
    """Write the page; plotly's script is inside it, so it can be read anywhere."""
    charts = ""
    for i, figure in enumerate((data_chart(rows), performance_chart(rows))):
        figure.update_layout(template="plotly_white", font_size=14, legend=LEGEND)
        charts += figure.to_html(
            full_html=False,
            include_plotlyjs="inline" if i == 0 else False,
            config={"displayModeBar": False},
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"<!doctype html><meta charset=utf-8><title>{html.escape(title)}</title>"
        f"<style>{STYLE}</style><h1>{html.escape(title)}</h1>{INTRO}"
        f"<div class=wrap>{table(rows)}</div>{charts}<h2>Time</h2>{times(rows)}"
    )


INTRO = (
    "<p>Median gap f(x) - f* over seeds, worst case in brackets; every method gets the same number "
    "of evaluations. Green: auto is at least 2x below the best peer; red: above it. Losing cells "
    "stay in the table. Runs stopped by the clock count with what they reached. Data profiles look "
    "at the points a method evaluates, 20 times per decade, and at the one it recommends.</p>"
)


def table(rows: Sequence[Row]) -> str:
    """Return the table of medians as HTML."""
    names = ordered(rows)
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    lines = [f"<tr><th>problem</th><th>evals</th><th>start</th>{head}<th>auto/peer</th></tr>"]
    starts = {(row.problem, row.budget): row.start for row in rows}
    for cell, methods in summary(rows).items():
        best = min(entry[0] for entry in methods.values())
        line = "".join(entry_html(methods.get(name), best) for name in names)
        _, value = best_peer(methods)
        ratio = ratio_of(methods[OURS][0], value) if OURS in methods and value == value else 1.0
        mark = "won" if ratio <= 0.5 else "lost" if ratio > 1.05 else ""
        lines.append(
            f"<tr><td>{html.escape(cell[0])}</td><td>{cell[1]:g}</td><td>{starts[cell]:.3g}</td>"
            f"{line}<td class='{mark}'>{ratio:.2g}</td></tr>"
        )
    return f"<table>{''.join(lines)}</table>"


def entry_html(entry: tuple[float, float, int] | None, best: float) -> str:
    """Return one cell of the table."""
    if entry is None:
        return "<td>-</td>"
    mark = " class=best" if entry[0] <= best else ""
    return f"<td{mark}>{entry[0]:.2g} <small>({entry[1]:.2g})</small></td>"


def times(rows: Sequence[Row]) -> str:
    """Return the median microseconds per evaluation of each method, f included."""
    cells = []
    for name in ordered(rows):
        cost = [1e6 * row.seconds / max(1, row.evals) for row in rows if row.method == name]
        cells.append(f"<tr><td>{html.escape(name)}</td><td>{np.median(cost):.3g}</td></tr>")
    return f"<table><tr><th>method</th><th>us per evaluation</th></tr>{''.join(cells)}</table>"
