"""Search some coordinates while the others stay as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from scgd.strategies.asks import Along, Asking, Gradient, Report, Wait, point_of
from scgd.strategies.restarts import Shared
from scgd.typing import Array, Floats, Ints

__all__ = ["in_active", "on_coordinates"]

LOOK_AGAIN = 0.05
"""Part of the budget after which inactive coordinates are tried again."""


def in_active(inner: Asking, share: Shared, x: Floats, f: float, s: float, active: Array) -> Asking:
    """Run a search of the active coordinates; return whether the others matter after all.

    They are moved now and then at the best point: a coordinate may do nothing at x0 only.
    """
    best, places = share.best, np.flatnonzero(active)
    embed = Embedding(x, places)
    best.x, best.f = x, f

    def matters() -> Asking:
        y = best.x.copy()
        y[~active] += s * share.rng.standard_normal(int((~active).sum()))
        value = yield share.box.reflect(y)
        return abs(value - best.f) > share.precision.level(best.f)

    def due() -> float:
        return share.budget.spent + LOOK_AGAIN * share.budget.total

    values, look = None, due()
    try:
        while True:
            points = inner.send(values)
            asked = embed(points)
            values = yield asked
            if values is None or isinstance(points, Gradient):
                continue
            k = 0 if isinstance(values, float) else int(values.argmin())
            lowest = values if isinstance(values, float) else float(values.flat[k])
            if lowest < best.f:
                best.x, best.f = point_of(asked, k), lowest
            if share.budget.spent >= look:
                look = due()
                if (yield from share.member("measuring", matters()).finish()):
                    return True
    except StopIteration:  # nothing is left to gain, unless others matter here
        return (yield from share.member("measuring", matters()).finish())


def on_coordinates(inner: Asking, x: Floats, places: Ints) -> Asking:
    """Run a search of some coordinates; the others stay as they are in x."""
    embed, sent = Embedding(x, places), None
    try:
        while True:
            asked = inner.send(sent)
            if isinstance(asked, Report):
                end = None if asked.x is None else embed(asked.x)
                asked = replace(asked, x=end, relevance=None)  # who chose them knows more
                sent = yield asked
            else:
                sent = yield embed(asked)
    except StopIteration as end_of_it:
        return end_of_it.value


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
            return self._report(points)
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

    def _report(self, report: Report) -> Report:
        if report.relevance is None:
            return report
        shares, errors = np.zeros((2, self.x.size))
        shares[self.places], errors[self.places] = report.relevance
        return replace(report, relevance=(shares, errors))
