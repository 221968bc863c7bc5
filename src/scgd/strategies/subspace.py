"""Search some coordinates while the others stay as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from scgd.strategies.asks import Along, Asking, Gradient, Report, Wait
from scgd.strategies.restarts import Shared
from scgd.typing import Array, Floats, Ints

LOOK_AGAIN = 0.05
"""Part of the budget after which inactive coordinates are tried again."""


def in_active(
    inner: Asking, part: Shared, share: Shared, x: Floats, s: float, active: Array
) -> Asking:
    """Run a search of the active coordinates; return whether the others matter after all.

    They are moved now and then at the best point: a coordinate may do nothing at x0 only. ``part``
    is what solvers of the active coordinates share, ``share`` has all of them.
    """
    best, budget = share.best, share.budget

    def matters() -> Asking:
        best.x, best.f = x.copy(), part.best.f
        best.x[active] = part.best.x
        y = best.x.copy()
        y[~active] += s * share.rng.standard_normal(int((~active).sum()))
        value = yield share.box.reflect(y)
        return abs(value - best.f) > share.precision.level(best.f)

    due, values = budget.spent + LOOK_AGAIN * budget.total, None
    searching = on_coordinates(inner, x, np.flatnonzero(active), tells=True)
    while True:
        try:
            asked = searching.send(values)
        except StopIteration:  # nothing is left to gain, unless others matter here
            return (yield from share.member("measuring", matters()).finish())
        values = yield asked
        if budget.spent >= due and isinstance(asked, np.ndarray | Along):
            due = budget.spent + LOOK_AGAIN * budget.total
            if (yield from share.member("measuring", matters()).finish()):
                return True


def on_coordinates(inner: Asking, x: Floats, places: Ints, *, tells: bool = False) -> Asking:
    """Run a search of some coordinates; the others stay as they are in x.

    What it ``tells`` of relevance is passed on only where nobody knows more.
    """
    embed, sent = Embedding(x, places), None
    while True:
        try:
            asked = inner.send(sent)
        except StopIteration as end:
            return end.value
        if isinstance(asked, Report) and not tells:
            asked = replace(asked, relevance=None)
        sent = yield embed(asked)


class Embedding:
    """Points of some coordinates as points of all, the others being as in x.

    What many points have in common is embedded once: solvers never change what they have asked.
    """

    def __init__(self, x: Floats, places: Ints) -> None:
        self.x, self.places = x, places
        self.inner: Floats | None = None
        self.base = x

    def __call__(self, points: Any) -> Any:
        """Return points of all coordinates."""
        x, places = self.x, self.places
        if isinstance(points, Wait):
            return points
        if isinstance(points, Report):
            shares, end = points.relevance, None if points.x is None else self(points.x)
            if shares is not None:
                both = np.zeros((2, x.size))
                both[:, places] = shares
                shares = both[0], both[1]
            return replace(points, x=end, relevance=shares)
        if isinstance(points, Gradient | Along):
            if points.x is not self.inner:
                self.inner, self.base = points.x, x.copy()
                self.base[places] = points.x
            if isinstance(points, Gradient):
                return Gradient(self.base, places[points.coords])
            if points.single:
                alone = [int(places[points.coords[0]])]
                return Along(self.base, alone, points.entries, single=True)
            return Along(self.base, places[points.coords], points.entries)
        whole = np.broadcast_to(x, (*points.shape[:-1], x.size)).copy()
        whole[..., places] = points
        return whole
