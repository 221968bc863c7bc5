"""The law of a parameter group: what was drawn for the next step, and what is learned from it.

:class:`EntryLaw` knows every single coordinate: one number per coordinate for its gain, in the
precision of the parameters, refreshed at every step (a step is a phase). :class:`UnitLaw` draws
rows, chunks or tensors with the core's sampler and learns the mean gain of each.

Both use the arithmetic of :mod:`scgd.policies.law`. A draw stays pending until its gradients are
learned, so that looking at it first (to reduce gradients across processes) changes nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scgd.policies import Musketeer, Policy, Uniform
from scgd.policies import law as core
from scgd.policies.sumtree import empty_tree
from scgd.random import stream
from scgd.sampler import CoordinateSampler
from scgd.timetable import Mixings
from scgd.torch import kernels
from scgd.torch.draws import draw_distinct, draw_poisson, draw_replacement
from scgd.torch.layout import Layout
from scgd.typing import Floats, Ints

__all__ = ["SAMPLINGS", "Draw", "EntryLaw", "FullLaw", "ProbeLaw", "UnitLaw", "make_law"]

SAMPLINGS = ("poisson", "distinct", "sequential", "replacement")
LEAST = 1e-30
"""What a weight of zero counts as: it is divided by, and never drawn."""
LARGEST = {np.dtype(np.float32): 1e30, np.dtype(np.float64): 1e280}


class Draw(NamedTuple):
    """Coordinates in ascending order and their probabilities per draw; sizes of drawn units."""

    coords: Ints
    probs: Floats
    sizes: Ints | None = None
    order: Ints | None = None


class EntryLaw:
    """A law over single coordinates.

    Parameters
    ----------
    policy
        ``Uniform``, ``Musketeer`` or ``FixedWeights``.
    layout
        The coordinates.
    n_draws
        The (expected) number drawn per step.
    sampling
        One of :data:`SAMPLINGS`.
    seed
        The seed of its draws.
    """

    def __init__(
        self, policy: Policy, layout: Layout, n_draws: int, sampling: str, seed: int
    ) -> None:
        self.policy, self.sampling, self.seed = policy, sampling, seed
        self.n_draws, self.n_coords, self.dtype = n_draws, layout.n_coords, layout.dtype
        self.n_steps = 0
        self.learns = isinstance(policy, Musketeer)
        self.light = isinstance(policy, Uniform) or self.pure
        self.fusible = self.light and sampling == "poisson"
        self.law = self._fresh()
        self.mixings = Mixings(policy.mixing)
        self.totals = [0.0] * len(layout.params)
        self._offsets = layout.offsets
        self._limit = 0.0
        self.pending: Draw | None = None

    @property
    def pure(self) -> bool:
        """Whether the weights are plain sums of rewards, up to a factor."""
        policy = self.policy
        return (
            isinstance(policy, Musketeer)
            and (policy.normalization, policy.memory) == ("l1", "phase")
            and not policy.rescale
        )

    def _fresh(self) -> core.Law:
        """Return the core's law with gains in the precision of the parameters."""
        policy = self.policy
        if not isinstance(policy, Musketeer):
            kept = policy.init(self.n_coords)  # a fixed law learns nothing, but steps are counted
            law = core.make_law(1, refresh="all")._replace(sums=np.empty(0), extra=np.empty(0))
            return law._replace(**kept._asdict())
        law = core.make_law(
            1,
            gain=policy.gain,
            normalization=policy.normalization,
            memory=policy.memory,
            rescale=policy.rescale,
            sharpness=policy.sharpness,
            refresh="all",
        )
        law.n_coords[0] = self.n_coords
        extra = np.zeros(self.n_coords if policy.memory != "phase" else 0, self.dtype)
        tree, levels = empty_tree(1 if self.light else self.n_coords)
        sums = np.zeros(self.n_coords, self.dtype)
        return law._replace(sums=sums, extra=extra, tree=tree.astype(self.dtype), levels=levels)

    def words(self) -> Any:
        """Return the random words of the next step."""
        return kernels.make_words(self.seed, self.n_steps)

    def line(self) -> tuple[float, float]:
        """Return (a, b) such that a leaf v has weight a v + b, Eq. (7)."""
        if not self.light:
            return core.mixture(self.law)
        total = sum(self.totals) if self.learns else 0.0
        if not total > 0.0:
            return 0.0, 1.0 / self.n_coords
        mixing = self.mixings.at(self.n_steps)
        return (1.0 - mixing) / total, mixing / self.n_coords

    def numbers(self) -> Any:
        """Return what the fused passes read, without the rates."""
        a, b = self.line()
        scale = float(kernels.CERTAIN) * self.n_draws
        floor = max(scale * b, LEAST)
        return np.array([scale * a, floor, scale, 0, 0, 0, 1, kernels.CERTAIN], self.dtype)

    def leaves(self) -> Floats:
        """Return the leaves of all coordinates (none under equal weights)."""
        if isinstance(self.policy, Uniform):
            return np.empty(0, self.dtype)
        if not self.light:
            return self.law.tree[: self.n_coords]
        signed = getattr(self.policy, "gain", "") == "average" and not self.fusible
        return np.abs(self.law.sums) if signed else self.law.sums

    def draw(self) -> Draw:
        """Return the coordinates of the next step."""
        if self.pending is None:
            leaves, words = self.leaves(), self.words()
            if self.sampling == "poisson":
                numbers = self.numbers()
                drawn = draw_poisson(leaves, self.n_coords, numbers, words, self.n_draws)
            else:
                drawn = self._draw_exactly(leaves, words)
            self.pending = Draw(*drawn)
        return self.pending

    def _draw_exactly(self, leaves: Floats, words: Any) -> tuple[Ints, Floats]:
        place = (leaves, self.n_coords, *self.line(), words, self.n_draws)
        if self.sampling == "replacement":
            return draw_replacement(*place)
        coords, probs, weights, tau = draw_distinct(*place, self._limit)
        self._limit = 1.05 * tau if np.isfinite(tau) else 0.0
        return coords, probs if self.sampling == "distinct" else weights

    def factors(self, draw: Draw, importance: str) -> Floats:
        """Return the importance factor of each drawn coordinate."""
        base = self.n_draws if importance == "inverse" else self.n_coords
        return 1.0 / (base * draw.probs)

    def learn(self, draw: Draw, grads: Floats, present: Any) -> None:
        """End the step: add what its gradients earned to the gains."""
        self.n_steps += 1
        self.pending = None
        if not self.learns:
            return
        if present is not None:
            draw, grads = Draw(draw.coords[present], draw.probs[present]), grads[present]
        law = self.law
        if not self.light:
            mixing = self.mixings.at(self.n_steps)
            core.update(law, draw.coords, draw.probs, grads, mixing)
            if not np.isfinite(law.tree[law.levels[-2]]):
                kernels.mend(law.sums, LARGEST[self.dtype])
                core.refill(law)
            return
        self._count(len(draw.coords))
        core.record(law, draw.coords, draw.probs, grads)
        for i, (low, high) in enumerate(zip(self._offsets, self._offsets[1:], strict=False)):
            self.settle(i, float(np.abs(law.sums[low:high]).sum(dtype=np.float64)))

    def settle(self, i: int, total: float) -> None:
        """Note the total of one tensor's gains, mended if an undefined gradient spoiled it."""
        if not np.isfinite(total):
            gains = self.law.sums[self._offsets[i] : self._offsets[i + 1]]
            total = kernels.mend(gains, LARGEST[self.dtype])
        self.totals[i] = total

    def close(self) -> None:
        """End a step that a fused pass has done."""
        self.n_steps += 1
        self._count(self.n_draws)

    def _count(self, n_draws: int) -> None:
        self.law.counts[core.N_PHASES] += 1
        self.law.counts[core.N_DRAWS] += n_draws

    def weights(self) -> Floats:
        """Return the sampling weights in force, one per coordinate."""
        a, b = self.line()
        leaves = np.abs(self.leaves())
        return a * leaves.astype(np.float64) + b if len(leaves) else np.full(self.n_coords, b)

    def state_dict(self) -> dict[str, Any]:
        """Return what it remembers."""
        arrays = {"counts": self.law.counts, "sums": self.law.sums, "extra": self.law.extra}
        return {
            "n_steps": self.n_steps,
            "seed": self.seed,
            "totals": list(self.totals),
            **{name: array.copy() for name, array in arrays.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up what another law of the same kind remembers."""
        self.n_steps, self.seed = int(state["n_steps"]), int(state["seed"])
        for name in ("counts", "sums", "extra"):
            getattr(self.law, name)[...] = state[name]
        self.totals = [float(total) for total in state["totals"]]
        self.pending = None
        if self.learns and not self.light and self.n_steps > 0:
            self.law.mixing[0] = self.mixings.at(self.n_steps)
            core.refill(self.law)


class UnitLaw:
    """A law over rows, chunks or tensors: the core's sampler on units."""

    fusible = False
    pending = None

    def __init__(
        self, policy: Policy, layout: Layout, n_draws: int, sampling: str, seed: int
    ) -> None:
        self.policy, self.sampling, self.seed = policy, sampling, seed
        self.layout, self.n_draws = layout, n_draws
        self.n_steps = 0
        words = stream(np.random.SeedSequence(seed))
        replace = sampling == "replacement"
        self.sampler = CoordinateSampler(policy, layout.n_units, words, n_draws, replace)
        self.gain = getattr(policy, "gain", "absolute")

    def draw(self) -> Draw:
        """Return the coordinates of the next step."""
        units, probs = self.sampler.block()
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
        self.n_steps += 1
        if present is not None:
            grads = np.where(present, grads, 0.0)
        self.sampler.record(self.unit_grads(draw, grads))

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
        return self.sampler.weights()

    def state_dict(self) -> dict[str, Any]:
        """Return what it remembers."""
        return {"n_steps": self.n_steps, "seed": self.seed, "sampler": self.sampler.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up what another law of the same kind remembers."""
        self.n_steps, self.seed = int(state["n_steps"]), int(state["seed"])
        self.sampler.load_state_dict(state["sampler"])


class ProbeLaw(UnitLaw):
    """A law that hands out single coordinates: of the units drawn, one random entry each."""

    def draw(self) -> tuple[list[int], Floats]:  # type: ignore[override]
        """Return the coordinates of the next step and their probabilities per draw."""
        units, probs = self.sampler.block()
        starts = self.layout.starts
        if starts is None:
            return units.tolist(), probs
        sizes = starts[units + 1] - starts[units]
        chances = kernels.units(kernels.make_words(self.seed, self.n_steps), len(units))
        return (starts[units] + (chances * sizes).astype(np.int64)).tolist(), probs / sizes

    def record(self, grads: Floats) -> None:
        """End the step: a unit earns the gain of the entry seen."""
        self.n_steps += 1
        sampler = self.sampler
        for j, grad in enumerate(grads):
            sampler.grads[sampler.position + j] = grad
        sampler.advance(len(grads))

    def factor(self, prob: float, importance: str) -> float:
        """Return the importance factor of a coordinate."""
        base = self.n_draws if importance == "inverse" else self.layout.n_coords
        return 1.0 / (base * prob)


class FullLaw:
    """The law that takes everything there is: a counter and the seed of its directions."""

    sampling = "distinct"
    fusible = False
    pending = None

    def __init__(self, layout: Layout, seed: int) -> None:
        self.n_coords, self.seed, self.n_steps = layout.n_coords, seed, 0
        self.thresholds: list[float] | None = None

    def weights(self) -> Floats:
        """Return equal weights."""
        return np.full(self.n_coords, 1.0 / max(1, self.n_coords))

    def state_dict(self) -> dict[str, Any]:
        """Return what it remembers."""
        return {"n_steps": self.n_steps, "seed": self.seed, "thresholds": self.thresholds}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up what another law of the same kind remembers."""
        self.n_steps, self.seed = int(state["n_steps"]), int(state["seed"])
        self.thresholds = state["thresholds"]


def make_law(
    policy: Policy, layout: Layout, n_draws: int, sampling: str, seed: int
) -> EntryLaw | UnitLaw:
    """Return the law of a group."""
    kind = EntryLaw if layout.starts is None else UnitLaw
    return kind(policy, layout, n_draws, sampling, seed)
