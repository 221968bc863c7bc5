"""What draws the coordinates of a parameter group, and learns from their gradients.

:class:`~scgd.torch.entry_sampler.EntrySampler` knows every single coordinate; :class:`UnitSampler`
draws rows, chunks or tensors with the core's sampler and learns the mean gain of each;
:class:`ProbeSampler` hands out single coordinates for zeroth order; :class:`FullSampler` takes
everything.

All use the arithmetic of :mod:`scgd.policies.distribution`. A draw stays pending until its
gradients are learned, so that looking at it first (to reduce gradients across processes) changes
nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.policies import Policy
from scgd.random import stream
from scgd.sampler import CoordinateSampler
from scgd.torch import kernels
from scgd.torch.draws import Draw
from scgd.torch.layout import Layout
from scgd.torch.memory import Memory, Sampler
from scgd.typing import Floats


class UnitSampler(Sampler):
    """A sampler of rows, chunks or tensors: the core's sampler on units."""

    whole_units = True

    def __init__(
        self, policy: Policy, layout: Layout, n_draws: int, sampling: str, seed: int
    ) -> None:
        self.policy, self.sampling, self.seed = policy, sampling, seed
        self.layout, self.n_draws = layout, n_draws
        self.memory = Memory(layout, self.whole_units)
        words = stream(np.random.SeedSequence(seed))
        replace = sampling == "replacement"
        self.core = CoordinateSampler(policy, layout.n_units, words, n_draws, replace)
        self.gain = getattr(policy, "gain", "absolute")

    def resize(self, n_draws: int) -> None:
        """Draw another number of units from now on, under the weights learned so far."""
        replace, old = self.sampling == "replacement", self.core
        self.core = CoordinateSampler(
            self.policy, self.layout.n_units, old.stream, n_draws, replace
        )
        state = self.core.state_dict()
        self.core.load_state_dict({**state, "distribution": old.state_dict()["distribution"]})
        self.n_draws = n_draws

    def draw(self) -> Draw:
        """Return the coordinates of the next step."""
        units, probs = self.core.block()
        order = np.argsort(units, kind="stable")
        if self.layout.starts is None:
            return Draw(units[order], probs[order], np.ones(len(units), np.int64), order)
        coords, sizes = self.layout.expand(units[order])
        return Draw(coords, np.repeat(probs[order], sizes), sizes, order)

    def factors(self, draw: Draw, importance: str) -> Floats:
        """Return the importance factor of each drawn coordinate."""
        base = self.n_draws if importance == "inverse" else self.layout.n_units
        return 1.0 / (base * draw.probs)

    def learn(self, draw: Draw, grads: Floats, present: Any) -> None:
        """End the step: a unit earns the mean gain of its entries."""
        self.memory.step += 1
        if present is not None:
            grads = np.where(present, grads, 0.0)
        self.core.record(self.unit_grads(draw, grads))

    def unit_grads(self, draw: Draw, grads: Floats) -> Floats:
        """Return one number per drawn unit whose gain is the mean gain of its entries."""
        assert draw.sizes is not None and draw.order is not None
        values = grads
        if self.gain == "absolute":
            values = np.abs(grads)
        elif self.gain == "square":
            values = np.square(grads, dtype=np.float64)
        starts = np.concatenate([[0], np.cumsum(draw.sizes)[:-1]])
        means = np.add.reduceat(values, starts, dtype=np.float64) / draw.sizes
        sorted_back = np.empty(len(means))
        sorted_back[draw.order] = np.sqrt(means) if self.gain == "square" else means
        return sorted_back

    def weights(self) -> Floats:
        """Return the sampling weights in force, one per unit."""
        return self.core.weights()

    def state_dict(self) -> dict[str, Any]:
        """Return what it remembers of the group as a whole; the samplers of shards are not kept."""
        if any(hasattr(p, "to_local") for p in self.layout.params):
            return {}
        return {"sampler": self.core.state_dict()}

    def fits(self, state: dict[str, Any]) -> bool:
        """Whether a state belongs to as many units."""
        return same_shapes(self.core.state_dict(), state["sampler"])

    def load_state_dict(self, state: dict[str, Any] | None) -> None:
        """Take up what another sampler of the same kind remembers."""
        if state is None or not self.fits(state):
            return
        self.core.load_state_dict(state["sampler"])


class ProbeSampler(UnitSampler):
    """A sampler that hands out single coordinates: of the units drawn, one random entry each."""

    whole_units = False

    def draw(self) -> tuple[list[int], Floats]:  # type: ignore[override]
        """Return the coordinates of the next step and their probabilities per draw."""
        units, probs = self.core.block()
        starts = self.layout.starts
        if starts is None:
            return units.tolist(), probs
        sizes = starts[units + 1] - starts[units]
        chances = kernels.units(kernels.make_words(self.seed, self.n_steps), len(units))
        return (starts[units] + (chances * sizes).astype(np.int64)).tolist(), probs / sizes

    def record(self, grads: Floats) -> None:
        """End the step: a unit earns the gain of the entry seen."""
        self.memory.step += 1
        core = self.core
        for j, grad in enumerate(grads):
            core.grads[core.position + j] = grad
        core.advance(len(grads))

    def factor(self, prob: float, importance: str) -> float:
        """Return the importance factor of a coordinate."""
        base = self.n_draws if importance == "inverse" else self.layout.n_coords
        return 1.0 / (base * prob)


class FullSampler(Sampler):
    """The sampler that takes everything there is: a counter and the seed of its directions."""

    def __init__(self, layout: Layout, seed: int) -> None:
        self.n_coords, self.seed = layout.n_coords, seed
        self.n_draws = layout.n_coords
        self.memory = Memory(layout)

    def weights(self) -> Floats:
        """Return equal weights."""
        return np.full(self.n_coords, 1.0 / max(1, self.n_coords))


def same_shapes(mine: Any, theirs: Any) -> bool:
    """Whether nested memory holds arrays of the same shapes under the same names."""
    if isinstance(mine, dict):
        if not isinstance(theirs, dict) or mine.keys() != theirs.keys():
            return False
        return all(same_shapes(mine[name], theirs[name]) for name in mine)
    shape = getattr(mine, "shape", None)
    return shape is None or tuple(shape) == tuple(getattr(theirs, "shape", ()))
