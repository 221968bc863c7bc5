"""The pictures of a run as SVG: no script, nothing but shapes and escaped words."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from scgd.plots.data import MEMBERS, OURS, core, curve, dots, is_log, named, relevant, short
from scgd.typing import Floats

WIDTH, HEIGHT = 640, 240
LEFT, RIGHT, TOP, BOTTOM = 74, 12, 10, 30
ROW = 24
MOST = 600
STYLE = """
.scgd{width:100%;height:auto;display:block;font:12px system-ui,sans-serif}
.scgd text{fill:var(--soft,currentColor)}.scgd .grid{stroke:var(--line,#8885)}
.scgd .band{fill:#0b8f8a;fill-opacity:.18}
.scgd .line{fill:none;stroke:#0b8f8a;stroke-width:2}
"""


class Frame:
    """Axes: where data lie on the picture, and their marks.

    Parameters
    ----------
    last
        The end of the horizontal axis, which begins at 0.
    values
        What the vertical axis must show.
    """

    def __init__(self, last: float, values: Floats) -> None:
        self.last = max(1.0, float(last))
        self.log = is_log(values)
        low, high = core(values)
        if self.log:
            known = values[np.isfinite(values)]
            low, high = float(np.log10(known.min())), float(np.log10(known.max()))
        self.low, self.high = low, high if high > low else low + 1.0

    def across(self, numbers: Any) -> Floats:
        """Return horizontal places."""
        return LEFT + (WIDTH - LEFT - RIGHT) * np.asarray(numbers, np.float64) / self.last

    def down(self, values: Floats) -> Floats:
        """Return vertical places; what lies outside is drawn at the edge."""
        with np.errstate(all="ignore"):
            heights = np.log10(values) if self.log else np.asarray(values, np.float64)
        share = np.clip((heights - self.low) / (self.high - self.low), 0.0, 1.0)
        return np.asarray(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share)

    def marks(self) -> str:
        """Return lines and numbers."""
        out: list[str] = []
        for value in decades(self.low, self.high) if self.log else steps(self.low, self.high):
            y = float(self.down(np.array([value]))[0])
            ends = f'x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"'
            out.append(f'<line class="grid" {ends}/>')
            out.append(word(LEFT - 6, y + 4, f"{value:.4g}", "end"))
        for number in [0.0, *({self.last // 2} - {0.0}), self.last]:
            x = float(self.across(np.array([number]))[0])
            last = number == self.last
            what = f"{number:,.0f}{' evaluations' if last else ''}"
            out.append(word(x, HEIGHT - 10, what, "end" if last else "middle"))
        return "".join(out)


def steps(low: float, high: float) -> list[float]:
    """Return round numbers within a range: three to six of them.

    Examples
    --------
    >>> steps(-0.23, 2.29)
    [0.0, 0.5, 1.0, 1.5, 2.0]
    """
    power = 10.0 ** np.floor(np.log10((high - low) / 3))
    step = next(s * power for s in (5, 2, 1) if s * power <= (high - low) / 3)
    places = np.arange(np.ceil(low / step), np.floor(high / step) + 1)
    return [float(f"{place * step:.12g}") + 0.0 for place in places]  # no -0


def decades(low: float, high: float) -> list[float]:
    """Return powers of ten between two logarithms, with 2 and 5 times these where they are few.

    Examples
    --------
    >>> decades(-1.8, 0.0)
    [0.02, 0.05, 0.1, 0.2, 0.5, 1.0]
    """
    whole = np.arange(np.floor(low), np.ceil(high) + 1)
    some = whole[:: int(np.ceil(len(whole) / 8))] if len(whole) > 4 else whole
    factors = (1, 2, 5) if len(whole) <= 4 else (1,)
    found = [float(f"{f}e{int(k)}") for k in some for f in factors]
    return [value for value in found if low - 1e-9 <= np.log10(value) <= high + 1e-9]


def reached(result: Any, last: float) -> str:
    """Return the value reached against evaluations, with its band."""
    part = curve(result)
    frame = Frame(last, np.append(part.middle, result.fun))
    x = frame.across(part.nfev)
    band = points(np.append(x, x[::-1]), frame.down(np.append(part.high, part.low[::-1])))
    line = points(x, frame.down(part.middle))
    shapes = f'<polygon class="band" points="{band}"/><polyline class="line" points="{line}"/>'
    if np.isfinite(result.fun):
        place = points(frame.across([result.nfev]), frame.down(np.array([result.fun])))
        cx, cy = place.split(",")
        shapes += f'<circle cx="{cx}" cy="{cy}" r="4" fill="{OURS}"/>'
    return picture("value reached against evaluations", frame.marks() + shapes, HEIGHT)


def seen(result: Any, last: float) -> str:
    """Return the evaluations, coloured by the search that asked."""
    part = dots(result.evaluations, MOST)
    frame = Frame(last, part.value)
    shapes, keys = [], []
    for i, member in enumerate(dict.fromkeys(part.member.tolist())):
        mine, colour = part.member == member, MEMBERS[i % len(MEMBERS)]
        places = zip(frame.across(part.number[mine]), frame.down(part.value[mine]), strict=True)
        circles = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2"/>' for x, y in places)
        shapes.append(f'<g fill="{colour}" fill-opacity=".7">{circles}</g>')
        keys.append(f'<span><i style="background:{colour}"></i>{escape(str(member))}</span>')
    chart = picture("evaluations by number", frame.marks() + "".join(shapes), HEIGHT)
    return f'{chart}<p class="keys">{"".join(keys)}</p>'


def bars(result: Any, n: int = 10) -> str:
    """Return the most relevant inputs; nothing where nothing is known."""
    found = relevant(result, n)
    if not found:
        return ""
    widest, left = max(size for _, size, _ in found), 180
    rows = []
    for i, (k, size, error) in enumerate(found):
        y, width = ROW * i + 4, (WIDTH - left - 90) * size / widest
        band = f" ± {error:.2g}" if np.isfinite(error) else ""
        rows.append(
            word(left - 8, y + 13, short(named(result, k)), "end")
            + f'<rect x="{left}" y="{y}" width="{width:.1f}" height="16" fill="{OURS}"/>'
            + word(left + width + 6, y + 13, f"{size:.3g}{band}")
        )
    return picture("most relevant inputs", "".join(rows), ROW * len(found) + 8)


def picture(label: str, shapes: str, height: int) -> str:
    """Return a picture that fits its column."""
    what = f'class="scgd" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}"'
    return f"<svg {what}>{shapes}</svg>"


def word(x: float, y: float, words: str, anchor: str = "start") -> str:
    """Return words at a place, whatever they hold."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def points(x: Floats, y: Floats) -> str:
    """Return the points of a line."""
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
