"""Pictures of a few curves with their bands: twice as wide as high, on white and on black."""

import numpy as np

from scgd.plots.svg import decades

__all__ = ["OTHER", "OURS", "picture"]

OURS, OTHER, LINE = "#2563eb", "#64748b", "#7a8594"
LEFT, RIGHT, TOP, BOTTOM = 130, 880, 104, 500


def words(x, y, text, size=26, fill=LINE, anchor="start", more=""):
    """Return words at a place."""
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="{fill}" '
        f'text-anchor="{anchor}"{more}>{text}</text>'
    )


def picture(curves, title, note, unit, marks, *, log=False):
    """Return an SVG of curves ``name: (x, low, middle, high, colour)`` over a logarithmic height.

    Names stand at the ends of their curves, the first curve is drawn last. ``marks`` are the
    numbers below, on a logarithmic axis with ``log``.
    """
    middles = np.concatenate([curve[2] for curve in curves.values()])
    low, high = np.floor(np.log10(middles.min()) * 2) / 2, np.ceil(np.log10(middles.max()) * 2) / 2
    scale = np.log if log else float
    first, last = scale(marks[0]), scale(marks[-1])

    def across(n):
        return LEFT + (scale(n) - first) / (last - first) * (RIGHT - LEFT)

    def down(value):
        return TOP + np.clip((high - np.log10(value)) / (high - low), 0, 1) * (BOTTOM - TOP)

    parts = [words(20, 42, title, 32, more=' font-weight="600"'), words(20, TOP - 26, note)]
    for value in decades(low, high):
        line = f'stroke="{LINE}" stroke-opacity="0.3"'
        parts.append(f'<path d="M{LEFT} {down(value):.0f}H{RIGHT}" {line}/>')
        parts.append(words(LEFT - 12, down(value) + 9, f"{value:g}", anchor="end"))
    parts += [words(across(n), BOTTOM + 38, f"{n:,}", anchor="middle") for n in marks]
    parts.append(words((LEFT + RIGHT) / 2, BOTTOM + 80, unit, anchor="middle"))
    ends = []
    for i, (name, (x, *band, colour)) in reversed(list(enumerate(curves.items()))):
        sides = [
            [f"{across(n):.0f} {down(v):.0f}" for n, v in zip(x, b, strict=True)] for b in band
        ]
        around, width = "L".join([*sides[0], *sides[2][::-1]]), 4 if i else 7
        parts.append(
            f'<path d="M{around}Z" fill="{colour}" fill-opacity="0.15"/>'
            f'<path d="M{"L".join(sides[1])}" fill="none" stroke="{colour}" '
            f'stroke-width="{width}" stroke-linejoin="round"/>'
        )
        ends.append([down(band[1][-1]), name, colour, "" if i else ' font-weight="600"'])
    ends.sort()
    for i in range(1, len(ends)):  # labels that would overlap move down, those at the foot up
        ends[i][0] = max(ends[i][0], ends[i - 1][0] + 32)
    for i in reversed(range(len(ends))):
        ends[i][0] = min(ends[i][0], ends[i + 1][0] - 32 if i + 1 < len(ends) else BOTTOM)
    parts += [words(RIGHT + 16, y + 9, name, 28, fill, more=bold) for y, name, fill, bold in ends]
    body = "\n".join(parts)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1200 600" role="img" '
        f'aria-label="{title}" font-family="system-ui, sans-serif">\n{body}\n</svg>\n'
    )
