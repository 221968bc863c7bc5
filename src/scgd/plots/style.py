"""The look of the pictures: that of the experiments' report, light and dark."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DARK", "ERRORS", "LIGHT", "MEMBERS", "OURS", "Theme", "faded"]

OURS = "#0b8f8a"
"""The colour of the value reached and of bars."""
ERRORS = "#858d97"
"""The colour of standard errors, on a light and on a dark ground."""
MEMBERS = (
    "#8796d8", "#e0701a", "#1f9e63", "#c2448f", "#9a6a3c", "#2aa5a0", "#6f8f2f", "#8a5cc9",
    "#b8860b", "#d9372c",
)  # fmt: skip
"""The colours of searches, in the order in which they first asked."""


@dataclass(frozen=True)
class Theme:
    """The colours of ground, words and lines."""

    ground: str
    ink: str
    soft: str
    line: str


LIGHT = Theme("#ffffff", "#1c1e21", "#5c636b", "#dfe2e6")
DARK = Theme("#1c1f25", "#e8eaed", "#a2a9b3", "#343941")


def faded(colour: str, alpha: float) -> str:
    """Return a colour that lets the ground through.

    Examples
    --------
    >>> faded("#0b8f8a", 0.2)
    'rgba(11,143,138,0.2)'
    """
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:g})"
