"""The diagrams of the pages: ``python docs/images/draw.py`` writes choosing, auto and core as SVG.

The colours are those of the library's pictures, and follow the light or dark look of the page.
"""

import sys
from html import escape
from pathlib import Path

from scgd.plots.data import LIGHT, OURS

sys.path.insert(0, str(Path(__file__).parent.parent))
from pictures import adaptive

HERE = Path(__file__).parent
PALE, INK, GREY = LIGHT.line, LIGHT.ink, "#858d97"
HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {} 1200 {}" role="img" '
    'aria-label="{}" font-family="system-ui, sans-serif">\n'
    '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="5" '
    f'markerHeight="5" orient="auto"><path d="M0 0L10 5L0 10z" fill="{GREY}"/></marker></defs>\n'
)


def box(x, y, width, lines, ours=False, height=None, size=26):
    """Return a box with lines of text; the first in bold."""
    height = height or 28 + 38 * len(lines)
    fill, ink = (OURS, "#ffffff") if ours else (PALE, INK)
    parts = [f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="10" fill="{fill}"/>']
    top = y + height / 2 - 19 * (len(lines) - 1) + 10
    for i, line in enumerate(lines):
        bold = ' font-weight="600"' if i == 0 else ""
        parts.append(
            f'<text x="{x + width / 2}" y="{top + 38 * i}" font-size="{size}"{bold} fill="{ink}" '
            f'text-anchor="middle">{escape(line)}</text>'
        )
    return "\n".join(parts)


def arrow(x, y, to_x, to_y, word="", dx=0, dy=-10):
    """Return an arrow with a word beside its middle."""
    text = ""
    if word:
        text = (
            f'<text x="{(x + to_x) / 2 + dx}" y="{(y + to_y) / 2 + dy}" font-size="26" '
            f'fill="{GREY}" text-anchor="middle">{escape(word)}</text>'
        )
    return (
        f'<path d="M{x} {y}L{to_x} {to_y}" stroke="{GREY}" stroke-width="4" fill="none" '
        f'marker-end="url(#tip)"/>{text}'
    )


def choosing():
    """Which front door."""
    questions = [
        (10, "Rows, columns?", ["scgd.linear"]),
        (250, "A network?", ["scgd.torch"]),
        (490, "Choices, integers?", ["scgd.Space"]),
        (750, "Noise repeatable?", ["sample="]),
    ]
    parts = []
    for i, (x, question, answer) in enumerate(questions):
        width = 200 if i < 2 else 220 if i == 2 else 210
        words = question.split(" ", 1)
        parts.append(box(x, 120, width, words, height=130))
        parts.append(box(x, 400, width, answer, ours=True, height=80))
        middle = x + width / 2
        parts.append(arrow(middle, 254, middle, 392, "yes", dx=34, dy=8))
        following = questions[i + 1][0] if i < 3 else 1000
        parts.append(arrow(x + width + 2, 185, following - 3, 185, "no", dy=-14))
    parts.append(box(1000, 120, 190, ["minimize", "as it is"], ours=True, height=130))
    return "Which front door: linear, torch, Space, sample or minimize as it is", parts


def auto():
    """What auto does."""
    parts = [
        box(360, 15, 480, ["Is the function noisy?", "points near x0, twice"]),
        box(10, 230, 340, ["Exact", "step, precision, effects"]),
        box(400, 230, 400, ["Repeats with sample=", "length scale"]),
        box(850, 230, 340, ["Independent noise", "radius, screening"]),
        box(10, 425, 340, ["Portfolio", "BFGS, CMA-ES,", "line searches"], ours=True),
        box(400, 425, 400, ["SCGD", "common random numbers,", "blocks of coordinates"], ours=True),
        box(850, 425, 340, ["SPSA, models", "then the best points", "are re-evaluated"], ours=True),
        arrow(430, 125, 200, 222, "no", dx=-30),
        arrow(600, 125, 600, 222, "yes", dx=40, dy=10),
        arrow(770, 125, 1000, 222, "yes", dx=30),
    ]
    parts += [arrow(x, 340, x, 418) for x in (180, 600, 1020)]
    return "auto classifies the noise, measures, and hands over to the strategy that fits", parts


def core():
    """Who does what."""
    parts = [
        box(20, 30, 330, ["minimize, Optimizer", "arguments, limits,", "reporting"]),
        box(435, 30, 330, ["Run", "budget, values, best,", "history, checkpoint"], ours=True),
        box(850, 30, 330, ["Workers", "processes, Dask,", "executors"]),
        box(135, 400, 430, ["Strategy (a generator)", "yields points,", "is sent values"]),
        box(635, 400, 430, ["SCGD", "policy, estimator,", "step rule"]),
        arrow(354, 100, 428, 100),
        arrow(768, 85, 842, 85, "points", dy=-14),
        arrow(846, 125, 772, 125, "values", dy=38),
        arrow(400, 394, 520, 182, "points", dx=-60, dy=0),
        arrow(580, 182, 460, 394, "values", dx=62, dy=10),
        arrow(568, 470, 630, 470, "steps", dy=-14),
        arrow(850, 394, 720, 182, "one step", dx=75, dy=10),
    ]
    return "A run stands between the caller, the workers and a strategy", parts


SIZES = {choosing: (100, 400), auto: (0, 600), core: (0, 600)}
"""Where each diagram begins and how high it is."""

if __name__ == "__main__":
    for draw in (choosing, auto, core):
        label, parts = draw()
        body = "\n".join(parts)
        picture = f"{HEAD.format(*SIZES[draw], escape(label))}{body}\n</svg>\n"
        (HERE / f"{draw.__name__}.svg").write_text(adaptive(picture))
