"""The score of `auto`: per class, how far it is from whichever peer happens to be best."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from scgd_arena.cells import Cell
from scgd_arena.grid import crossing
from scgd_arena.oracle import FLOOR
from scgd_arena.peers import OURS
from scgd_arena.rows import Rows

__all__ = [
    "KEPT", "Class", "Score", "behind", "class_table", "classes", "compared", "floored", "scores",
    "worse",
]  # fmt: skip

WORSE, KEPT = 1.25, 1.1
"""Factors by which a cell may be worse than the stored row, and where version 0.1 won."""
COVERED = 0.8
"""A peer speaks for a class if it was run on this share of its cells."""


@dataclass(frozen=True)
class Score:
    """A cell, the median gap of `auto`, and those of its peers."""

    cell: Cell
    gap: float
    peers: dict[str, float]

    @property
    def best(self) -> float:
        """The smallest median gap of a peer."""
        return min(self.peers.values())

    @property
    def rival(self) -> str:
        """The peer that has it."""
        return min(self.peers, key=self.peers.__getitem__)

    @property
    def ratio(self) -> float:
        """`auto` over the best peer."""
        return self.gap / self.best


def floored(gap: float) -> float:
    """Return a gap, but no less than the floor."""
    return max(gap, FLOOR) if gap == gap else gap


def scores(cells: Iterable[Cell], own: Rows, peers: Rows, instances: Sequence[int]) -> list[Score]:
    """Return the scores of all cells that `auto` and at least one peer were run on."""
    found, who = [], peers.by_cell()
    for cell in cells:
        gap = floored(own.gap(cell.own_key, "auto", instances))
        others = {
            name: floored(peers.gap(cell.key, name, instances))
            for name in who.get(cell.key, [])
            if name not in OURS
        }
        others = {name: value for name, value in others.items() if value == value}
        if others and gap == gap:
            found.append(Score(cell, gap, others))
    return found


@dataclass(frozen=True)
class Class:
    """A row of the table: a class of cells.

    Attributes
    ----------
    name, cells
        The class, and how many of its cells have scores.
    gap, peer, peer_gap
        Median gap of `auto`; the best single peer and its median gap.
    within_2, within_10
        Share of the cells in which `auto` is within this factor of the best peer of the cell.
    mean
        Geometric mean of max(1, auto / best peer of the cell).
    n_peers
        Median number of peers run per cell.
    """

    name: str
    cells: int
    gap: float
    peer: str
    peer_gap: float
    within_2: float
    within_10: float
    mean: float
    n_peers: int


def classes(found: Sequence[Score], by: Callable[[Cell], str]) -> list[Class]:
    """Return the table's rows, cells put together by a name."""
    parts: dict[str, list[Score]] = {}
    for score in found:
        parts.setdefault(by(score.cell), []).append(score)
    return [class_of(name, part) for name, part in parts.items()]


def class_of(name: str, part: Sequence[Score]) -> Class:
    """Return one row of the table."""
    ratios = np.array([score.ratio for score in part])
    peer = best_peer(part)
    return Class(
        name,
        len(part),
        float(np.median([score.gap for score in part])),
        peer,
        float(np.median([score.peers[peer] for score in part if peer in score.peers])),
        float(np.mean(ratios <= 2)),
        float(np.mean(ratios <= 10)),
        float(np.exp(np.mean(np.log(np.maximum(1, ratios))))),
        int(np.median([len(score.peers) for score in part])),
    )


def best_peer(part: Sequence[Score]) -> str:
    """Return the single peer that is nearest to the best of every cell, among those run on most."""
    names = {name for score in part for name in score.peers}
    entries = {
        name: [s.peers[name] / min(s.best, s.gap) for s in part if name in s.peers]
        for name in names
    }
    most = max(len(ratios) for ratios in entries.values())
    enough = {
        name: float(np.mean(np.log(ratios)))
        for name, ratios in entries.items()
        if len(ratios) >= COVERED * most
    }
    return min(enough, key=lambda name: (enough[name], name))


def class_table(rows: Sequence[Class]) -> str:
    """Return the table as text that is Markdown too."""
    width = max([len(row.name) for row in rows] + [5])
    head = (
        f"| {'class':{width}} | cells | auto, gap | best peer   |  its gap | in 2x | in 10x |"
        " mean | peers |"
    )
    rule = "|" + "|".join("-" * len(part) for part in head.split("|")[1:-1]) + "|"
    lines = [
        f"| {row.name:{width}} | {row.cells:5d} | {row.gap:9.2g} | {row.peer:11} |"
        f" {row.peer_gap:8.2g} | {row.within_2:5.2f} | {row.within_10:6.2f} | {row.mean:4.3g} |"
        f" {row.n_peers:5d} |"
        for row in rows
    ]
    return "\n".join([head, rule, *lines])


def compared(
    cells: Iterable[Cell], own: Rows, stored: Rows, instances: Sequence[int]
) -> list[Cell]:
    """Return the cells that have a gap of `auto` now and a stored one."""
    gaps = [(c, [r.gap(c.own_key, "auto", instances) for r in (own, stored)]) for c in cells]
    return [cell for cell, both in gaps if not np.isnan(both).any()]


def worse(
    cells: Iterable[Cell],
    own: Rows,
    stored: Rows,
    instances: Sequence[int],
    factor: float = WORSE,
) -> list[tuple[Cell, float, float]]:
    """Return the cells whose gap grew by more than a factor since the stored row."""
    found = []
    for cell in cells:
        now = floored(own.gap(cell.own_key, "auto", instances))
        then = floored(stored.gap(cell.own_key, "auto", instances))
        if now > factor * then:
            found.append((cell, now, then))
    return sorted(found, key=lambda entry: entry[2] / entry[1])


def behind(
    own: Rows, peers: Rows, instances: Sequence[int], without: float = 1.3, rival: float = 2.0
) -> tuple[list[str], int]:
    """Return the lines of the grid's cells that are worse than they may be; and how many there are.

    A cell with bounds, or with samples to be held fixed, may be ``without`` times worse than the
    same cell without them; and every cell ``rival`` times worse than pycma, which may leave samples
    alone.
    """
    lines, n = [], 0
    for name, budget in crossing():
        gap = floored(own.gap(f"{name}@{budget}", "auto", instances))
        n += gap == gap
        plain = name.replace("-sampled", "")
        others = [("auto", name.removesuffix("-box"), own, without), ("auto", plain, own, without)]
        others += [(who, at, peers, rival) for who in ("cma", "cma-sep") for at in (name, plain)]
        for who, at, rows, factor in dict.fromkeys(others):
            other = floored(rows.gap(f"{at}@{budget}", who, instances))
            if gap > factor * other:
                lines.append(f"{name}@{budget}: {gap:.2g}; {who} at {at}: {other:.2g}")
    return lines, n
