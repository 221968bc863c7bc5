"""The pictures of a run, drawn by plotly."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from html import escape
from typing import Any

import numpy as np

from scgd.plots.data import (
    DARK,
    ERRORS,
    LIGHT,
    MEMBERS,
    OURS,
    Curve,
    Slice,
    Theme,
    core,
    curve,
    dots,
    faded,
    is_log,
    named,
    relevant,
    short,
    slices,
)

N_BARS = 10
SEEN = "Evaluations"
HEIGHT = 300
Panel = tuple[str, Callable[..., None]]
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"


def draw(
    result: Any, *, fun: Callable[..., Any] | None = None, n_inputs: int = 4, dark: bool = False
) -> Any:
    """Return one figure with all panels: two beside each other, the value reached over both."""
    make_subplots = subplots_of_plotly()
    parts = panels(result, fun, n_inputs)
    n_rows = 1 + (len(parts) // 2)
    specs: list[list[Any]] = [[{"colspan": 2}, None], *([[{}, {}]] * (n_rows - 1))]
    if len(parts) % 2 == 0:
        specs[-1] = [{"colspan": 2}, None]
    figure = make_subplots(
        n_rows, 2, specs=specs, subplot_titles=[title for title, _ in parts],
        vertical_spacing=0.28 / n_rows, horizontal_spacing=0.11,
    )  # fmt: skip
    theme = DARK if dark else LIGHT
    for place, (title, add) in enumerate(parts):
        row, column = (1, 1) if place == 0 else ((place + 1) // 2 + 1, (place + 1) % 2 + 1)
        add(figure, row=row, col=column)
        if title == SEEN:
            inside(figure, next(figure.select_xaxes(row=row, col=column)).domain,
                   next(figure.select_yaxes(row=row, col=column)).domain, theme)  # fmt: skip
    dressed(figure, theme)
    figure.update_layout(height=40 + HEIGHT * n_rows)
    return figure


def inside(figure: Any, x: Any, y: Any, theme: Theme) -> None:
    """Put the legend into the upper right corner of a panel."""
    figure.update_layout(
        legend={"x": x[1], "y": y[1], "xanchor": "right", "yanchor": "top",
                "bgcolor": faded(theme.ground, 0.8)},
    )  # fmt: skip


def subplots_of_plotly() -> Callable[..., Any]:
    """Return plotly's function, or say where it comes from."""
    try:
        from plotly.subplots import make_subplots
    except ImportError as error:
        raise ImportError("result.plot() needs plotly; pip install 'scgd[plot]'") from error
    found: Callable[..., Any] = make_subplots
    return found


def panels(result: Any, fun: Callable[..., Any] | None = None, n_inputs: int = 4) -> list[Panel]:
    """Return title and painter of each panel that there is something to show in."""
    if isinstance(n_inputs, bool) or not isinstance(n_inputs, int | np.integer) or n_inputs < 0:
        raise ValueError(f"n_inputs must be a whole number >= 0, got {n_inputs!r}")
    parts: list[Panel] = [("Value reached", partial(add_curve, result))]
    if len(result.evaluations):
        parts.append((SEEN, partial(add_dots, result)))
    if relevant(result, 1):
        parts.append(("Most relevant inputs", partial(add_bars, result)))
    coords = [k for k, *_ in relevant(result, n_inputs)]
    coords = coords or list(range(min(n_inputs, np.size(result.x))))
    for part in slices(result, coords, fun):
        title = f"Slice along {escape(named(result, part.coord))}"
        parts.append((title, partial(add_slice, result, part)))
    return parts


def dressed(figure: Any, theme: Theme) -> None:
    """Give a figure the look of the report."""
    line = {"gridcolor": theme.line, "zerolinecolor": theme.line, "linecolor": theme.line}
    figure.update_xaxes(automargin=True, **line)
    figure.update_yaxes(automargin=True, **line)
    figure.update_annotations(font={"size": 14, "color": theme.ink})
    figure.update_layout(
        paper_bgcolor=theme.ground, plot_bgcolor=theme.ground, hovermode="closest",
        font={"color": theme.soft, "size": 12, "family": FONT},
        margin={"l": 62, "r": 16, "t": 40, "b": 44},
        hoverlabel={"bgcolor": theme.ground, "bordercolor": theme.line,
                    "font": {"color": theme.ink}},
        legend={"itemsizing": "constant", "traceorder": "normal"},
    )  # fmt: skip


# ---- panels --------------------------------------------------------------------------------------


def add_curve(result: Any, figure: Any, **place: int) -> None:
    """Draw the value reached, its band, and the final value with its error.

    Under noise every evaluation stands behind it: what single values say, and what is known.
    """
    part: Curve = curve(result)
    noisy = not part.exact and len(result.evaluations) > 0
    if noisy:
        seen = dots(result.evaluations)
        figure.add_scattergl(
            x=seen.number + 1, y=seen.value, mode="markers", name="evaluation", showlegend=False,
            marker={"color": ERRORS, "size": 3, "opacity": 0.35}, hoverinfo="skip", **place,
        )  # fmt: skip
    band = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
    figure.add_scatter(x=part.nfev, y=part.low, **band, **place)
    figure.add_scatter(
        x=part.nfev, y=part.high, fill="tonexty", fillcolor=faded(OURS, 0.18), **band, **place
    )
    figure.add_scatter(
        x=part.nfev, y=part.middle, mode="lines", line={"color": OURS, "width": 2.2},
        name="value reached", showlegend=False, hovertemplate="%{x}: %{y:.6g}<extra></extra>",
        **place,
    )  # fmt: skip
    error = result.get("fun_error", np.nan)
    if np.isfinite(result.fun):
        figure.add_scatter(
            x=[result.nfev], y=[result.fun], mode="markers", name="answer", showlegend=False,
            marker={"color": OURS, "size": 10, "symbol": "diamond"},
            error_y={
                "type": "data", "array": [2 * error if np.isfinite(error) else 0.0],
                "color": ERRORS,
            },
            hovertemplate="the answer: %{y:.8g}<extra></extra>", **place,
        )  # fmt: skip
    figure.update_xaxes(title="evaluations", rangemode="tozero", **place)
    ends = [result.fun, result.fun - 2 * np.nan_to_num(error)]  # no logarithm of what may be zero
    if noisy:
        ends = [*ends, *seen.value[len(seen.value) // 2 :]]  # as wide as the later values scatter
    figure.update_yaxes(title="value", **value_axis(np.append(part.middle, ends)), **place)


def value_axis(values: Any) -> dict[str, Any]:
    """Return the axis of values: logarithmic where that pays, without the wildest ones else."""
    if not is_log(values):
        return {"type": "linear", "range": core(values)}
    decades = np.ptp(np.log10(values[np.isfinite(values)]))
    tick = {"dtick": int(np.ceil(decades / 6)), "tickfont": {"size": 10}}
    return {"type": "log", "exponentformat": "power", **tick}


def add_dots(result: Any, figure: Any, **place: int) -> None:
    """Draw the evaluations, coloured by the search that asked."""
    part = dots(result.evaluations)
    for i, member in enumerate(dict.fromkeys(part.member.tolist())):
        mine = part.member == member
        figure.add_scattergl(
            x=part.number[mine] + 1, y=part.value[mine], mode="markers", name=escape(str(member)),
            marker={"color": MEMBERS[i % len(MEMBERS)], "size": 4, "opacity": 0.7},
            hovertemplate="evaluation %{x}: %{y:.6g}<extra></extra>", **place,
        )  # fmt: skip
    figure.update_xaxes(title="evaluations", rangemode="tozero", **place)
    figure.update_yaxes(title="value", **value_axis(part.value), **place)


def add_bars(result: Any, figure: Any, **place: int) -> None:
    """Draw the most relevant inputs with their standard errors."""
    found = relevant(result, N_BARS)[::-1]
    errors = [2 * error if np.isfinite(error) else 0.0 for *_, error in found]
    names = [escape(short(named(result, k))) for k, *_ in found]  # two may look the same
    figure.add_bar(
        x=[size for _, size, _ in found], y=list(range(len(found))),
        orientation="h", marker={"color": OURS}, name="relevance", showlegend=False,
        error_x={"type": "data", "array": errors, "visible": any(errors), "color": ERRORS},
        text=names, textposition="none", hovertemplate="%{text}: %{x:.4g}<extra></extra>", **place,
    )  # fmt: skip
    figure.update_yaxes(tickvals=list(range(len(found))), ticktext=names, **place)
    figure.update_layout(bargap=0.35)
    figure.update_xaxes(title="relevance (share of the changes of f)", rangemode="tozero", **place)


def add_slice(result: Any, part: Slice, figure: Any, **place: int) -> None:
    """Draw values along one input, later ones darker, and the point of the answer."""
    marker = {"color": part.age, "size": 4, "cmin": -0.3, "cmax": 1, "opacity": 0.8,
              "colorscale": [[0, faded(OURS, 0.15)], [1, OURS]]}  # fmt: skip
    numbers = part.at.dtype.kind == "f"
    lines = part.line and numbers
    kind = figure.add_scatter if lines or not numbers else figure.add_scattergl
    kind(
        x=part.at if numbers else [escape(word) for word in part.at], y=part.value,
        mode="lines" if lines else "markers", showlegend=False,
        line={"color": OURS, "width": 2.2} if lines else None,
        marker=None if lines else marker, name="slice",
        hovertemplate="%{x:.6g}: %{y:.6g}<extra></extra>", **place,
    )  # fmt: skip
    if isinstance(part.here, float):
        mark = {"color": "#e0701a", "width": 1.3, "dash": "dot"}
        figure.add_vline(x=part.here, line=mark, **place)
    if numbers and part.log:
        figure.update_xaxes(type="log", exponentformat="power", **place)
    figure.update_yaxes(title="value", **value_axis(part.value), **place)
    figure.update_xaxes(title=escape(short(named(result, part.coord), 40)), **place)


STYLE = """
:root{color-scheme:light dark;--ground:#fff;--ink:#1c1e21;--soft:#5c636b;--line:#dfe2e6}
@media (prefers-color-scheme:dark){:root{--ground:#1c1f25;--ink:#e8eaed;--soft:#a2a9b3;
--line:#343941}}
body{font:16px/1.5 system-ui,sans-serif;margin:1.5rem auto;max-width:1100px;padding:0 1rem;
color:var(--ink);background:var(--ground)}
h1{font-size:1.5rem;overflow-wrap:anywhere}pre{overflow-x:auto;color:var(--soft);
font-size:.85rem}
main{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,30rem),1fr));gap:1rem}
article{min-width:0}article:first-child{grid-column:1/-1}
h2{font-size:1.05rem;margin:.4rem 0 0;overflow-wrap:anywhere}
"""
SCRIPT = """
const looks = JSON.parse(document.getElementById("looks").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
function dress() {
  const look = looks[dark.matches ? "dark" : "light"], axes = {};
  for (const axis of ["xaxis", "yaxis"])
    for (const part of ["gridcolor", "zerolinecolor", "linecolor"])
      axes[`${axis}.${part}`] = look.line;
  for (const chart of document.querySelectorAll(".js-plotly-plot"))
    Plotly.relayout(chart, { ...axes, "font.color": look.soft, paper_bgcolor: look.ground,
      plot_bgcolor: look.ground, "hoverlabel.bgcolor": look.ground,
      "hoverlabel.font.color": look.ink });
}
dark.addEventListener("change", dress);
dress();
"""


def page(result: Any, title: str) -> str:
    """Return a page with every panel of ``result.plot()``, one column on a telephone."""
    make_subplots = subplots_of_plotly()
    from plotly.offline import get_plotlyjs

    cards = []
    for heading, add in panels(result):
        figure = make_subplots(1, 1)
        add(figure, row=1, col=1)
        dressed(figure, LIGHT)
        figure.update_layout(height=HEIGHT, margin={"t": 12})
        legend = {"orientation": "h", "x": 0, "y": 1.02, "yref": "paper", "yanchor": "bottom"}
        figure.update_layout(legend=legend)
        chart = figure.to_html(
            full_html=False, include_plotlyjs=False,
            config={"displayModeBar": False, "responsive": True},
        )  # fmt: skip
        cards.append(f"<article><h2>{heading}</h2>{chart}</article>")
    looks = json.dumps({"light": asdict(LIGHT), "dark": asdict(DARK)})
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title><style>{STYLE}</style>'
        f"<script>{get_plotlyjs()}</script></head><body><h1>{escape(title)}</h1>"
        f"<pre>{escape(repr(result))}</pre><main>{''.join(cards)}</main>"
        f'<script type="application/json" id="looks">{looks}</script>'
        f"<script>{SCRIPT}</script></body></html>"
    )
