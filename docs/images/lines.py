"""Pictures of a few curves with their bands, in the style of the gallery."""

import io
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from scgd.plots.data import OURS
from scgd.plots.svg import decades

sys.path.insert(0, str(Path(__file__).parent.parent))
from pictures import adaptive

__all__ = ["OTHER", "OURS", "picture"]

OTHER, ALONE = "#858d97", "#e0701a"
ROOM = 0.075
"""The least distance of two names, as a share of the height."""


def picture(curves, title, note, unit, marks, *, log=False):
    """Return an SVG of curves ``name: (x, low, middle, high, colour)`` over a logarithmic height.

    Names stand at the ends of their curves, the first curve is drawn last. ``marks`` are the
    numbers below, on a logarithmic axis with ``log``. A curve of one point is a dot with its name.
    """
    plt.style.use("scgd.plots.slide")
    figure, ax = plt.subplots()
    ends = []
    for i, (name, (x, low, middle, high, colour)) in reversed(list(enumerate(curves.items()))):
        if len(x) == 1:
            ax.plot(x, middle, "o", color=ALONE, ms=13)
            ax.annotate(name, (x[0], middle[0]), (14, 40), textcoords="offset points", color=ALONE)
            continue
        ax.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
        ax.plot(x, middle, color=colour, lw=3 if i else 6)
        ends.append([middle[-1], name, colour])
    middles = np.log10(np.concatenate([curve[2] for curve in curves.values()]))
    ax.set_yscale("log")
    low, high = middles.min() - 0.3, middles.max() + 0.3
    ax.set_ylim(10**low, 10**high)
    if high - low < 2:
        ax.set_yticks(ticks := decades(low, high), [f"{tick:g}" for tick in ticks])
    if log:
        ax.set_xscale("log")
    ax.set_xticks(marks, [f"{n:,}" for n in marks])
    ax.minorticks_off()
    ax.set_xlabel(unit)
    ax.set_title(note, color=OTHER)
    bottom, top = np.log(ax.get_ylim())
    places = [(np.log(end) - bottom) / (top - bottom) for end, *_ in sorted(ends)]
    for i in range(1, len(places)):  # names that would overlap move up, those at the top down
        places[i] = max(places[i], places[i - 1] + ROOM)
    for i in reversed(range(len(places))):
        places[i] = min(places[i], places[i + 1] - ROOM if i + 1 < len(places) else 1.0)
    for place, (_, name, colour) in zip(places, sorted(ends), strict=True):
        ax.text(1.01, place, name, color=colour, va="center", transform=ax.transAxes)
    figure.suptitle(title, x=0.02, ha="left")
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    plt.close(figure)
    return adaptive(text.getvalue())
