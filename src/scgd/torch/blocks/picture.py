"""A picture of the sampling probabilities over the run."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from scgd.torch.blocks.ledger import Ledger

__all__ = ["draw_probabilities"]

WIDTH, ROW, LEFT, TOP, RIGHT, BOTTOM = 900, 26, 210, 34, 60, 40
INK, PALE = (30, 30, 30), (245, 247, 250)
DEEP = (16, 78, 139)


def shade(weight: float, largest: float) -> tuple[int, int, int]:
    """Return a colour from pale to deep."""
    part = 0.0 if largest <= 0 else min(1.0, weight / largest)
    return tuple(round(p + part * (d - p)) for p, d in zip(PALE, DEEP, strict=True))  # type: ignore[return-value]


def check_suffix(path: Any, known: Mapping[str, str]) -> None:
    """Refuse a path whose suffix says no format."""
    if not isinstance(path, str | PathLike) or Path(path).suffix.lower() not in known:
        raise ValueError(f"path must end in .png or another suffix of pictures, got {path!r}")


def draw_probabilities(book: Ledger, path: Any) -> None:
    """Draw one row per block, the top of the model above; visits from left to right.

    The colour is the probability at the draw, a white mark the blocks that were visited.
    """
    try:
        from PIL import Image, ImageDraw
    except ImportError as error:
        raise ImportError("a picture needs pillow: pip install 'scgd[cli]'") from error
    check_suffix(path, Image.registered_extensions())
    rows, n = book.history, len(book.names)
    image = Image.new("RGB", (WIDTH, TOP + n * ROW + BOTTOM), "white")
    pen = ImageDraw.Draw(image)
    largest = max(max(row["probabilities"]) for row in rows)
    span = WIDTH - LEFT - RIGHT
    for i, row in enumerate(rows):
        x0, x1 = (LEFT + span * k // len(rows) for k in (i, i + 1))
        for b in range(n):
            y = TOP + (n - 1 - b) * ROW
            pen.rectangle(
                (x0, y, max(x0, x1 - 1), y + ROW - 3), shade(row["probabilities"][b], largest)
            )
            if b in row["blocks"]:
                middle = y + ROW // 2 - 1
                mark = (x0, middle - 3, max(x0 + 1, x1 - 2), middle + 3)
                pen.rectangle(mark, (255, 170, 60))
    for b, name in enumerate(book.names):
        y = TOP + (n - 1 - b) * ROW
        label = name if len(name) <= 28 else "..." + name[-25:]
        pen.text((8, y + 4), label, INK, font_size=13)
        pen.text((WIDTH - RIGHT + 8, y + 4), f"{int(book.counts[b])}", INK, font_size=13)
    pen.text((LEFT, 8), f"probability (darkest: {largest:.2f}); orange: visited", INK, font_size=14)
    pen.text((WIDTH - RIGHT + 2, 8), "visits", INK, font_size=13)
    pen.text((LEFT, TOP + n * ROW + 8), f"visit 1 to {rows[-1]['visit'] + 1}", INK, font_size=13)
    image.save(Path(path))
