"""A page with the pictures of a run: one file, without anything from the network."""

from __future__ import annotations

import json
from dataclasses import asdict
from html import escape
from typing import Any

from scgd.plots.figure import HEIGHT, dressed, panels, subplots_of_plotly
from scgd.plots.style import DARK, LIGHT

__all__ = ["page"]

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
        add(figure, 1, 1)
        dressed(figure, LIGHT)
        figure.update_layout(height=HEIGHT, margin={"t": 12})
        figure.update_layout(legend={"y": 1.02, "yref": "paper", "yanchor": "bottom"})
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
