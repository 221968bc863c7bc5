"""What is known about the blocks: visits, gains, costs and the probabilities over the run.

Everything a policy remembers is here, as numbers, lists and strings, so a run is resumed from one
line of JSON. Random draws depend on the seed and the number of the visit alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scgd.typing import Array

HISTORY = 512
"""Visits the history keeps; when it is full, every second one is dropped."""
GRACE = 3
"""Steps after which a visit ends if none of them had a gradient for its blocks."""
PATIENCE = 30
"""Steps in a row, over visits, without a gradient after which a block is given up.

An expert that one batch in four asks for is given up wrongly once in 5,000 runs of such steps; a
block that the loss does not depend on wastes these steps in short visits, and hardly any later.
"""
RETRY = 10
"""A block given up is tried again after so many visits times the number of blocks."""


@dataclass
class Ledger:
    """The blocks of a model, from the bottom to the top.

    ``gains`` and ``costs`` are NaN where nothing is known. ``visit`` counts visits begun, ``last``
    is the visit at which a block was trained last (-1: never), ``missed`` counts its last steps
    in a row without a gradient, ``alive`` is 0 if it was given up, ``memory`` is the policy's.
    """

    names: tuple[str, ...]
    sizes: Array
    seed: int
    first: list[int] = field(default_factory=list)
    current: list[int] = field(default_factory=list)
    visit: int = 0
    losses: list[float] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    stride: int = 1
    memory: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.names)
        self.gains = np.full(n, np.nan)
        self.costs = np.full(n, np.nan)
        self.counts = np.zeros(n)
        self.last = np.full(n, -1.0)
        self.alive = np.ones(n)
        self.missed = np.zeros(n)

    @property
    def blocks(self) -> Array:
        """The numbers of the blocks that can be trained."""
        return np.flatnonzero(self.alive)

    def unvisited(self) -> list[int]:
        """Return blocks never trained: those named first, then from the top down."""
        new = [int(b) for b in self.blocks[::-1] if self.counts[b] == 0]
        named = [b for b in self.first if b in new]
        return named + [b for b in new if b not in named]

    def generator(self) -> np.random.Generator:
        """Return the generator of the next draw; nothing but the seed and the visit moves it."""
        return np.random.default_rng([self.seed, self.visit])

    def begin(self, chosen: Sequence[int], probs: Array) -> None:
        """Note that a visit of these blocks begins, drawn with these probabilities."""
        self.current = [int(b) for b in chosen]
        if self.visit % self.stride == 0:
            row = {"visit": self.visit, "blocks": self.current, "probabilities": probs.tolist()}
            self.history.append(row)
        if len(self.history) > HISTORY:
            self.history, self.stride = self.history[::2], 2 * self.stride
        self.last[self.current] = self.visit
        self.counts[self.current] += 1
        self.visit += 1

    def miss(self, reached: set[int], steps: int) -> None:
        """Count the steps of a visit for those of its blocks that no gradient has reached."""
        for b in self.current:
            self.missed[b] = 0.0 if b in reached else self.missed[b] + steps

    def give_up(self) -> list[int]:
        """Set aside the blocks that have missed too many steps, and return them."""
        lost = np.flatnonzero((self.alive == 1) & (self.missed >= PATIENCE))
        self.alive[lost] = 0.0
        return [int(b) for b in lost]

    def revive(self) -> None:
        """Let blocks given up long ago be visited once more."""
        waited = self.visit - self.last >= RETRY * len(self.names)
        again = (self.alive == 0) & waited
        self.alive[again] = 1.0
        self.missed[again] = PATIENCE - GRACE  # one visit decides

    def learn(self, gains: dict[int, float], forget: float) -> None:
        """Blend gains in, ``forget`` being the share of the new; NaN and infinity are ignored."""
        for b, gain in gains.items():
            if np.isfinite(gain):
                old = self.gains[b]
                self.gains[b] = gain if np.isnan(old) else (1 - forget) * old + forget * gain

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, lists and strings."""
        plain = {k: v for k, v in self.__dict__.items() if not isinstance(v, np.ndarray)}
        return {**plain, **{name: list(map(float, getattr(self, name))) for name in ARRAYS}}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take up what :meth:`to_dict` returned for the same blocks."""
        # States saved before missed steps were counted hold no such row.
        arrays = {name: np.array(data[name]) for name in ARRAYS if name in data}
        plain = {k: v for k, v in data.items() if k not in ("names", *ARRAYS)}
        for row in plain["history"]:  # version 0.2 said "law"
            row.setdefault("probabilities", row.pop("law", []))
        self.__dict__.update({**plain, **arrays})

    def share(self) -> Array:
        """Return the numbers on which the processes must agree."""
        last = self.losses[-1:] or [np.nan]
        return np.concatenate([self.gains, self.costs, self.missed, last])

    def accept(self, numbers: Array) -> None:
        """Take the numbers of the first process."""
        parts = (part.copy() for part in np.split(numbers[:-1], 3))
        self.gains, self.costs, self.missed = parts
        self.losses[-1:] = [float(numbers[-1])] if self.losses else []


ARRAYS = ("gains", "costs", "counts", "last", "alive", "missed")
