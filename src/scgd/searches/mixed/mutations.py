"""Dynamically dimensioned search: mutations of the best point, of fewer coordinates as time goes.

After Tolson and Shoemaker (2007), on a grid; with races between the best point and its challenger
where f is noisy.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from scgd.searches.mixed.base import Seeker
from scgd.searches.mixed.mutation import mutated
from scgd.typing import Floats

__all__ = ["Mutations"]

SPREAD, NARROWING = 0.2, 2.0
"""A mutation's spread is SPREAD exp(-NARROWING U), with U uniform."""
TRIES = 8


class Mutations(Seeker):
    r"""Mutate the best point, fewer coordinates at a time as time goes.

    At the t-th of T evaluations each of D coordinates moves with probability

    .. math:: \max(1 / D, 1 - \log t / \log T).

    A point as good as the best takes its place, so the search drifts
    over plateaus. Of a noisy function a point that looks better is evaluated until it has as many
    values as the best one or a higher mean, and the best one is evaluated again whenever it
    changes; with samples of the user's, both see the same ones.

    Parameters
    ----------
    problem, point
        The space as a box of steps, and where to begin.
    rng
        Where mutations come from.
    budget
        Evaluations to plan for.
    sampled
        Whether the function takes samples.
    """

    name: ClassVar[str] = "mutations"
    memory: ClassVar[tuple[str, ...]] = (*Seeker.memory, "holder", "rival", "owed")

    def begin(self) -> None:
        """No race is on."""
        self.holder = self.rival = -1  # of a noisy function: the best point, and its challenger
        self.owed = False  # whether the holder is to be evaluated again

    @property
    def paired(self) -> bool:
        """Races are run on common samples, where there are any."""
        return self.sampled

    @property
    def suspicious(self) -> bool:
        """After the opening one repeat tells whether f is noisy."""
        return self.archive.best >= 0

    def propose(self) -> Floats | None:
        """Return a mutation of the best point, or a point of a race."""
        raced = self._raced() if self.noisy else None
        return self._mutation() if raced is None else raced

    def _raced(self) -> Floats | None:
        """Return the point whose value a race waits for."""
        archive = self.archive
        if self.rival >= 0 and archive.asked(self.rival) < archive.asked(self.holder):
            return np.array(archive.points[self.rival])
        if self.owed and self.rival < 0:
            self.owed = False
            return np.array(archive.points[self.holder])
        return None

    def _mutation(self) -> Floats | None:
        best = self.favourite()
        if best < 0:
            return self.anything()
        parents = np.repeat(self.archive.points[[best]], TRIES, axis=0)
        last = math.log(max(self.budget, self.n_evals + 2, 3))
        chance = max(1.0 / self.n_coords, 1.0 - math.log(max(self.n_evals, 1)) / last)
        spread = SPREAD * np.exp(-NARROWING * self.rng.random(TRIES))
        found = self.fresh(mutated(self.grid, parents, chance, spread, self.rng))
        return found[0] if len(found) else self.anything()

    # ---- races -----------------------------------------------------------------------------------

    def note(self, row: int, value: float) -> None:
        """Decide the race between the best point and its challenger."""
        if not self.noisy:
            return
        if self.holder < 0:
            self.holder = self.archive.best
        elif row == self.rival:
            self._race(value)
        elif row != self.holder and self.rival < 0 and self._ahead(row):
            self.rival = row
            self._race(value)

    def _race(self, value: float) -> None:
        counts = self.archive.counts
        if value != value or not self._ahead(self.rival):
            self.rival = -1
        elif counts[self.rival] >= counts[self.holder]:
            self.holder, self.rival, self.owed = self.rival, -1, True

    def _ahead(self, row: int) -> bool:
        """Tell whether a point is not behind the best; on the same samples, where there are any."""
        seen, others = self.archive.seen[row], self.archive.seen[self.holder]
        others = others[: len(seen)] if self.paired else others
        return bool(seen) and sum(seen) / len(seen) <= sum(others) / len(others)

    def favourite(self) -> int:
        """Return the best point: of a noisy function the one that has won its races."""
        return self.holder if self.noisy and self.holder >= 0 else self.archive.best

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up another search of the same kind."""
        super().load_state_dict(state)
        if not all(-1 <= row < len(self.archive) for row in (self.holder, self.rival)):
            raise ValueError("a race is between points that were not seen")
