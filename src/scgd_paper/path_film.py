"""The moving picture of the paths: axes, level lines, a counter of passes, names off the path."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from scgd.typing import Floats
from scgd_paper.rows import Panel, method_look

__all__ = ["film"]

WIDTH = 1040
"""Pixels across while drawing; the picture is half as wide, which smooths the lines."""
LEFT, RIGHT, TOP, BOTTOM = 84, 24, 118, 84
"""Margins: for the ticks, and above the plot for names and the counter."""
N_FRAMES = 50
INK, SOFT, LEVEL = "#1c1e21", "#5c636b", "#d6dae0"
Path = tuple[Floats, Floats]
"""Passes, and the points (n, 2) reached at them."""


class Plane:
    """Where a point of the plane lies on the picture."""

    def __init__(self, ranges: Any) -> None:
        (self.x0, self.x1), (self.y0, self.y1) = ranges
        self.unit = (WIDTH - LEFT - RIGHT) / (self.x1 - self.x0)
        self.bottom = TOP + self.unit * (self.y1 - self.y0)
        self.height = int(self.bottom + BOTTOM) // 2 * 2

    def place(self, points: Floats) -> list[tuple[float, float]]:
        """Return the pixels of points (n, 2)."""
        x, y = np.asarray(points).T
        columns, rows = LEFT + self.unit * (x - self.x0), self.bottom - self.unit * (y - self.y0)
        return list(zip(columns.tolist(), rows.tolist(), strict=True))

    @property
    def frame(self) -> list[float]:
        """The rectangle of the plot."""
        return [LEFT, TOP, WIDTH - RIGHT, self.bottom]


def film(panel: Panel, paths: dict[str, Path]) -> bytes:
    """Return the paths, drawn pass by pass, as a GIF."""
    from PIL import Image

    ends = np.linspace(0, panel.n_passes, N_FRAMES)
    frames = [picture(panel, paths, float(end)) for end in ends]
    images = [f.convert("P", palette=Image.Palette.ADAPTIVE) for f in frames]
    out, durations = io.BytesIO(), [90] * (len(images) - 1) + [2500]
    images[0].save(out, "GIF", save_all=True, append_images=images[1:], duration=durations, loop=0)
    return out.getvalue()


def picture(panel: Panel, paths: dict[str, Path], upto: float) -> Any:
    """Return one picture: every path as far as it is after so many passes."""
    from PIL import Image, ImageDraw

    plane = Plane(panel.problem.scene()["range"])
    image = Image.new("RGB", (WIDTH, plane.height), "white")
    draw = ImageDraw.Draw(image)
    for line in level_lines(panel.problem.curvatures):
        draw.line(plane.place(line), fill=LEVEL, width=2)
    for method, (passes, points) in paths.items():
        draw_path(draw, plane.place(points[passes <= upto + 1e-9]), method_look(method)["colour"])
    cover_margins(draw, plane)
    draw_axes(draw, plane)
    words = panel.title.replace("²", "^2")  # the font at hand has no raised 2
    draw.text((LEFT, 14), words, fill=INK, font_size=30)
    draw.text((WIDTH - RIGHT, 14), f"pass {upto:.0f} of {panel.n_passes}", fill=INK, font_size=30,
              anchor="ra")  # fmt: skip
    draw_names(draw, list(paths))
    return image.resize((WIDTH // 2, plane.height // 2), Image.Resampling.LANCZOS)


def draw_path(draw: Any, points: list[tuple[float, float]], colour: str) -> None:
    """Draw a path with a dot where it has come to."""
    if len(points) > 1:
        draw.line(points, fill=colour, width=5, joint="curve")
    x, y = points[-1]
    draw.ellipse([x - 9, y - 9, x + 9, y + 9], fill=colour, outline="white", width=2)


def cover_margins(draw: Any, plane: Plane) -> None:
    """Paint the margins over what left the plot."""
    left, top, right, bottom = plane.frame
    for box in ([0, 0, WIDTH, top], [0, bottom, WIDTH, plane.height], [0, 0, left, plane.height],
                [right, 0, WIDTH, plane.height]):  # fmt: skip
        draw.rectangle(box, fill="white")


def draw_axes(draw: Any, plane: Plane) -> None:
    """Draw the frame with ticks at whole numbers."""
    draw.rectangle(plane.frame, outline=SOFT, width=2)
    for x in range(int(np.ceil(plane.x0)), int(plane.x1) + 1):
        ((column, _),) = plane.place(np.array([[x, 0.0]]))
        draw.line([(column, plane.bottom), (column, plane.bottom + 8)], fill=SOFT, width=2)
        draw.text((column, plane.bottom + 12), str(x), fill=SOFT, font_size=24, anchor="ma")
    for y in range(int(np.ceil(plane.y0)), int(plane.y1) + 1):
        ((_, row),) = plane.place(np.array([[0.0, y]]))
        draw.line([(LEFT - 8, row), (LEFT, row)], fill=SOFT, width=2)
        draw.text((LEFT - 14, row), str(y), fill=SOFT, font_size=24, anchor="rm")
    draw.text(((LEFT + WIDTH - RIGHT) / 2, plane.height - 6), "x", fill=SOFT, font_size=24,
              anchor="md")  # fmt: skip
    draw.text((14, (TOP + plane.bottom) / 2), "y", fill=SOFT, font_size=24, anchor="lm")


def draw_names(draw: Any, methods: list[str]) -> None:
    """Write the names of the methods above the plot, each with its colour."""
    column = float(LEFT)
    for method in methods:
        look = method_look(method)
        draw.line([(column, 84), (column + 44, 84)], fill=look["colour"], width=7)
        draw.text((column + 56, 84), look["label"], fill=INK, font_size=28, anchor="lm")
        column += 56 + draw.textlength(look["label"], font_size=28) + 40


def level_lines(curvatures: tuple[float, float]) -> list[Floats]:
    """Return level lines: circles, or upright lines where y does not matter."""
    if curvatures[1]:
        angle = np.linspace(0, 2 * np.pi, 90)
        circle = np.column_stack([np.cos(angle), np.sin(angle)])
        return [radius * circle for radius in range(1, 7)]
    return [np.array([[x, -10.0], [x, 10.0]]) for x in range(-6, 7)]
