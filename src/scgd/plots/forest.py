"""The picture of a screening: the clearest inputs with their intervals, by decision."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from scgd.plots.data import DARK, LIGHT, OURS, short
from scgd.plots.figure import dressed, subplots_of_plotly

if TYPE_CHECKING:
    from scgd.screen import Screening

COLOURS = {"matters": OURS, "cannot say": "#b7791f", "does not": "#94a3b8"}
ROW, MARGIN = 24, 130
"""Points of height for an input, and for what stands around them."""


def draw(screening: Screening, *, n_inputs: int, dark: bool) -> Any:
    """Return a figure with a row per input: its size and confidence limits."""
    figure = subplots_of_plotly()(1, 1)
    some = screening.order[:n_inputs]
    places = np.arange(len(some))[::-1]
    for decision, colour in COLOURS.items():
        mine = screening.decisions[some] == decision
        rows = some[mine]
        size = screening.sizes[rows]
        high = np.where(np.isfinite(screening.high[rows]), screening.high[rows], size)
        figure.add_scatter(
            x=size, y=places[mine], mode="markers", name=decision, showlegend=bool(mine.any()),
            marker={"color": colour, "size": 9},
            error_x={
                "type": "data", "symmetric": False, "array": np.maximum(high - size, 0.0),
                "arrayminus": np.maximum(size - screening.low[rows], 0.0), "color": colour,
                "thickness": 2, "width": 0,
            },
            text=[escape(screening.names[k]) for k in rows],
            hovertemplate="%{text}: %{x:.4g}<extra></extra>",
        )  # fmt: skip
    words = [escape(short(screening.names[k])) for k in some]
    figure.update_yaxes(tickvals=places, ticktext=words, range=[-0.7, len(some) - 0.3])
    level = f"{100 * screening.options.level:g} %"
    figure.update_xaxes(title=f"effect on f (standard deviation, {level} interval)")
    figure.update_xaxes(rangemode="tozero")
    dressed(figure, DARK if dark else LIGHT)
    n = len(screening.matter)
    figure.update_layout(
        title=f"{n} of {len(screening.names):,} inputs matter", height=MARGIN + ROW * len(some),
        margin={"t": 60}, legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
    )  # fmt: skip
    return figure
