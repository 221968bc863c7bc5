"""A picture of a fitted model in a few kilobytes: coefficients and the path."""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np

from scgd.linear.tables.training import Outcome
from scgd.plots.data import LIGHT, OURS
from scgd.typing import Floats

WIDTH, ROW, TOP = 960, 24, 104
NAMES, BARS = 300, (320, 920)
UP, DOWN, GREY, INK = OURS, "#e0701a", LIGHT.soft, LIGHT.ink
CHART = 220
LONGEST = 40
STYLE = f"font-family='system-ui,DejaVu Sans,sans-serif' font-size='13' fill='{INK}'"


def draw(path: Path, outcome: Outcome, title: str) -> None:
    """Write the picture as an SVG file, or as a page that holds it."""
    model, rows = outcome.model, outcome.largest()
    bottom = TOP + ROW * len(rows)
    parts = [text(20, 30, f"{model.target} in {title}", size=18)]
    parts += [text(20, 50, outcome.meaning(), fill=GREY), *bars(rows)]
    height = bottom + 24
    if len(outcome.alphas) > 1:
        parts += curve(outcome, bottom + 50)
        height += CHART + 90
    svg = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' {STYLE} "
        f"role='img' style='max-width:{WIDTH}px;width:100%'>"
        f"<rect width='{WIDTH}' height='{height}' fill='{LIGHT.ground}'/>{''.join(parts)}</svg>"
    )
    if path.suffix.lower() == ".html":
        head = f"<meta charset='utf-8'><title>{escape(model.target)}: a linear model</title>"
        svg = f"<!doctype html><html lang='en'><head>{head}</head><body>{svg}</body></html>"
    path.write_text(svg, encoding="utf-8")


def text(x: float, y: float, words: str, anchor: str = "start", size: int = 13, **more: str) -> str:
    """Return words at a place, whatever they hold."""
    printable = "".join(letter if letter.isprintable() else " " for letter in words)
    others = "".join(f" {name}='{value}'" for name, value in more.items())
    place = f"x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' font-size='{size}'"
    return f"<text {place}{others}>{escape(printable)}</text>"


def bar(start: float, end: float, y: float, fill: str) -> str:
    """Return one bar."""
    low, high = min(start, end), max(start, end)
    return f"<rect x='{low:.1f}' y='{y:.1f}' width='{high - low:.1f}' height='14' fill='{fill}'/>"


def bars(rows: list[tuple[str, float]]) -> list[str]:
    """Return the bars of coefficients, with their names."""
    sizes = np.array([0.0, *(size for _, size in rows)])
    low, high = sizes.min(), sizes.max()
    room = 56.0  # for the figures beside the bars
    left, right = BARS[0] + (room if low < 0 else 0.0), BARS[1] - (room if high > 0 else 0.0)
    zero = left - low / (high - low or 1.0) * (right - left)
    step = (right - left) / (high - low or 1.0)
    parts = [
        text(BARS[0], TOP - 14, "coefficient per standard deviation", fill=GREY),
    ]
    for place, (name, size) in enumerate(rows):
        y = TOP + ROW * place
        short = name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
        end = zero + size * step
        beside, anchor = (end + 6, "start") if size >= 0 else (end - 6, "end")
        parts += [
            f"<g><title>{escape(name)}: {size:.6g}</title>",
            text(NAMES, y + 12, short, "end"),
            bar(zero, end, y, UP if size >= 0 else DOWN),
            text(beside, y + 12, f"{size:.3g}", anchor, 11, fill=GREY),
            "</g>",
        ]
    ends = f"y1='{TOP - 4}' y2='{TOP + ROW * len(rows) - 4}'"
    parts.append(f"<line x1='{zero:.1f}' x2='{zero:.1f}' {ends} stroke='{INK}'/>")
    return parts


def curve(outcome: Outcome, top: float) -> list[str]:
    """Return the mean score along the path with a band of one standard deviation over folds."""
    scores, alphas = outcome.scores, outcome.alphas
    mean, spread = scores.mean(axis=1), scores.std(axis=1)
    known = np.isfinite(mean)
    # A hopeless end of the path must not flatten the rest of it.
    low = max(float(np.min((mean - spread)[known])), float(mean[known].max()) - 1.0)
    high = float(np.max((mean + spread)[known]))
    x = 90 + (WIDTH - 150) * across(np.log(alphas))

    def y(values: Floats) -> Floats:
        inside = np.clip(np.nan_to_num(values, nan=low), low, high)
        return top + 30 + CHART * (high - inside) / (high - low or 1.0)

    upper, lower = y(mean + spread), y(mean - spread)
    area = joined(np.append(x, x[::-1]), np.append(upper, lower[::-1]))
    place = outcome.place
    mx, my = x[place], y(mean)[place]
    at = (len(alphas) - 1) // 2
    marks = [(x[k], f"{alphas[k]:.2g}") for k in sorted({0, at, len(alphas) - 1})]
    bottom = top + 30 + CHART
    return [
        text(90, top + 8, "score in cross-validation along the path of alpha", fill=GREY),
        f"<polygon points='{area}' fill='{UP}' fill-opacity='.15'/>",
        f"<polyline points='{joined(x, y(mean))}' fill='none' stroke='{UP}' stroke-width='2'/>",
        f"<circle cx='{mx:.1f}' cy='{my:.1f}' r='5' fill='{UP}'/>",
        text(mx, my - 12, f"{mean[place]:.3f} at {alphas[place]:.2g}", "middle"),
        f"<line x1='90' x2='{WIDTH - 60}' y1='{bottom}' y2='{bottom}' stroke='{GREY}'/>",
        *(text(at, bottom + 18, label, "middle", 11, fill=GREY) for at, label in marks),
        text(82, top + 34, f"{high:.3g}", "end", 11, fill=GREY),
        text(82, bottom, f"{low:.3g}", "end", 11, fill=GREY),
    ]


def across(values: Floats) -> Floats:
    """Return values moved to the range from 0 to 1."""
    low, high = values.min(), values.max()
    return np.asarray((values - low) / (high - low if high > low else 1.0))


def joined(x: Floats, y: Floats) -> str:
    """Return the points of a line."""
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
