"""A sampler of single coordinates, one number each, learned in the pass that moves them.

The gains have the precision of the parameters and are refreshed at every step (a step is a phase).
"""

from __future__ import annotations

from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np

from scgd.policies import Musketeer, Policy, Uniform
from scgd.policies.base import update
from scgd.policies.distribution import make_distribution
from scgd.policies.mixture import mixture
from scgd.policies.recomputed import N_DRAWS, N_PHASES, record, refill
from scgd.policies.sumtree import empty_tree
from scgd.timetable import Mixings
from scgd.torch import kernels
from scgd.torch.draws import Draw, draw_distinct, draw_poisson, draw_replacement
from scgd.torch.layout import Layout
from scgd.torch.memory import Memory, Sampler
from scgd.typing import Floats, Ints

SAMPLINGS = ("poisson", "distinct", "sequential", "replacement")
LEAST = 1e-30
"""What a weight of zero counts as: it is divided by, and never drawn."""
MOST = 1e6
"""How much probabilities may grow where others are cut at one."""
LARGEST = {np.dtype(np.float32): 1e30, np.dtype(np.float64): 1e280}


class EntrySampler(Sampler):
    """A sampler of single coordinates.

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
    half_life
        After how many steps a gain counts half (``None``: it never fades).
    """

    def __init__(
        self,
        policy: Policy,
        layout: Layout,
        n_draws: int,
        sampling: str,
        seed: int,
        half_life: float | None = None,
    ) -> None:
        self.policy, self.sampling, self.seed = policy, sampling, seed
        self.n_draws, self.n_coords, self.dtype = n_draws, layout.n_coords, layout.dtype
        self.memory = Memory(layout)
        self.learns = isinstance(policy, Musketeer)
        self.light = isinstance(policy, Uniform) or self.pure
        self.fusible = self.light and sampling == "poisson"
        self.distribution = self._fresh()
        self.mixings = Mixings(policy.mixing)
        self.fade = fading(half_life) if self.learns and self.pure else 1.0
        self.totals = [0.0] * len(layout.params)
        self.boost = 1.0
        self.sharded = any(hasattr(p, "to_local") for p in layout.params)
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

    def _fresh(self) -> Any:
        """Return the core's distribution with gains in the precision of the parameters."""
        policy = self.policy
        if not isinstance(policy, Musketeer):
            kept = policy.init(self.n_coords)  # fixed weights learn nothing, but steps are counted
            dist: Any = make_distribution(1, refresh="all")
            dist = dist._replace(sums=np.empty(0), extra=np.empty(0))
            return dist._replace(**kept._asdict())
        dist = make_distribution(
            1,
            gain=policy.gain,
            normalization=policy.normalization,
            memory=policy.memory,
            rescale=policy.rescale,
            sharpness=policy.sharpness,
            refresh="all",
        )
        dist.n_coords[0] = self.n_coords
        tree, levels = empty_tree(1 if self.light else self.n_coords)
        dist = dist._replace(tree=tree.astype(self.dtype), levels=levels)
        arrays = {name: self.memory.array(name, *kind) for name, kind in self.quantities.items()}
        extra = arrays.get("gains_extra", np.zeros(0, self.dtype))
        return dist._replace(sums=arrays["gains"], extra=extra)

    @property
    def quantities(self) -> dict[str, tuple[Any, bool]]:
        """What it remembers of each coordinate."""
        if not self.learns:
            return {}
        names = ["gains"] if self.policy.memory == "phase" else ["gains", "gains_extra"]  # type: ignore[attr-defined]
        return {name: (self.dtype, False) for name in names}

    def words(self) -> Any:
        """Return the random words of the next step."""
        return kernels.make_words(self.seed, self.n_steps)

    def resize(self, n_draws: int) -> None:
        """Draw another number of coordinates from now on."""
        self.n_draws, self.pending, self.boost = n_draws, None, 1.0

    def line(self) -> tuple[float, float]:
        """Return (a, b) such that a leaf v has weight a v + b, Eq. (7)."""
        if not self.light:
            return mixture(self.distribution)  # type: ignore[no-any-return]
        total = sum(self.totals) if self.learns else 0.0
        if not total > 0.0:
            return 0.0, 1.0 / self.n_coords
        mixing = self.mixings.at(self.n_steps)
        return (1.0 - mixing) / total, mixing / self.n_coords

    def numbers(self) -> Any:
        r"""Return what the fused passes read, without the rates.

        A coordinate is in with probability :math:`\pi_k = \min(1, s\,m\,d_k)`, where the boost *s*
        makes up for what the minimum takes away: see :meth:`balance`.
        """
        a, b = self.line()
        scale = float(kernels.CERTAIN) * self.n_draws
        floor = max(self.boost * scale * b, LEAST)
        if self.n_draws >= self.n_coords:
            floor = float(kernels.CERTAIN)
        slope = self.boost * scale * a
        numbers = [slope, floor, scale, 0, 0, 0, 1, kernels.CERTAIN, self.fade]
        return np.array(numbers, self.dtype)

    def balance(self, expected: float) -> None:
        """Choose the boost of the next step from the sum of the probabilities of this one.

        Where some were cut at one the others grow until the whole is the number asked for.
        """
        if self.boost > 1.0 or expected < 0.999 * self.n_draws:
            self.boost = min(max(self.boost * self.n_draws / max(expected, LEAST), 1.0), MOST)

    def _rebalance(self) -> None:
        """Find the boost that the gains ask for, as steps do one after the other."""
        if self.sampling != "poisson" or self.n_steps == 0 or self.n_draws >= self.n_coords:
            return
        weights = self.n_draws * self.weights()
        for _ in range(20):
            before = self.boost
            self.balance(float(np.minimum(1.0, before * weights).sum()))
            if abs(self.boost - before) < 1e-6 * before:
                break

    def leaves(self) -> Floats:
        """Return the leaves of all coordinates (none under equal weights)."""
        if isinstance(self.policy, Uniform):
            return np.empty(0, self.dtype)
        if not self.light:
            return self.distribution.tree[: self.n_coords]  # type: ignore[no-any-return]
        signed = getattr(self.policy, "gain", "") == "average" and not self.fusible
        return np.abs(self.distribution.sums) if signed else self.distribution.sums  # type: ignore[no-any-return]

    def draw(self) -> Draw:
        """Return the coordinates of the next step."""
        if self.pending is None:
            leaves, words = self.leaves(), self.words()
            if self.sampling == "poisson":
                numbers = self.numbers()
                *drawn, expected = draw_poisson(leaves, self.n_coords, numbers, words, self.n_draws)  # type: ignore[no-untyped-call]
                self._expected = expected
            else:
                drawn = self._draw_exactly(leaves, words)
            self.pending = Draw(*drawn)
        return self.pending

    def _draw_exactly(self, leaves: Floats, words: Any) -> tuple[Ints, Floats]:
        place = (leaves, self.n_coords, *self.line(), words, self.n_draws)
        if self.sampling == "replacement":
            return draw_replacement(*place)  # type: ignore[no-any-return]
        coords, probs, weights, tau = draw_distinct(*place, self._limit)  # type: ignore[no-untyped-call]
        self._limit = 1.05 * tau if np.isfinite(tau) else 0.0
        return coords, probs if self.sampling == "distinct" else weights

    def factors(self, draw: Draw, importance: str) -> Floats:
        """Return the importance factor of each drawn coordinate."""
        base = self.n_draws if importance == "inverse" else self.n_coords
        return 1.0 / (base * draw.probs)

    def learn(self, draw: Draw, grads: Floats, present: Any) -> None:
        """End the step: add what its gradients earned to the gains."""
        self.memory.step += 1
        self.pending = None
        if not self.learns:
            return
        if self.sampling == "poisson":
            self.balance(self._expected)
        if present is not None:
            draw, grads = Draw(draw.coords[present], draw.probs[present]), grads[present]
        dist = self.distribution
        if not self.light:
            mixing = self.mixings.at(self.n_steps)
            update(dist, draw.coords, draw.probs, grads, mixing)
            if not np.isfinite(dist.tree[dist.levels[-2]]):
                kernels.mend(dist.sums, LARGEST[self.dtype])
                refill(dist)
            return
        self._count(len(draw.coords))
        if self.fade != 1.0:
            np.multiply(dist.sums, dist.sums.dtype.type(self.fade), out=dist.sums)
        record(dist, draw.coords, draw.probs, grads)
        for i, (low, high) in enumerate(zip(self._offsets, self._offsets[1:], strict=False)):
            self.settle(i, float(np.abs(dist.sums[low:high]).sum(dtype=np.float64)))

    def settle(self, i: int, total: float) -> None:
        """Note the total of one tensor's gains, mended if an undefined gradient spoiled it."""
        if not isfinite(total):
            gains = self.distribution.sums[self._offsets[i] : self._offsets[i + 1]]
            total = kernels.mend(gains, LARGEST[self.dtype])
        self.totals[i] = total

    def close(self, expected: float | None) -> None:
        """End a step of a fused pass, with the sum of its probabilities if all are known."""
        self.memory.step += 1
        self._count(self.n_draws)
        if self.learns and expected is not None:
            self.balance(expected)

    def _count(self, n_draws: int) -> None:
        self.distribution.counts[N_PHASES] += 1
        self.distribution.counts[N_DRAWS] += n_draws

    def weights(self) -> Floats:
        """Return the sampling weights in force, one per coordinate."""
        a, b = self.line()
        leaves = np.abs(self.leaves())
        return a * leaves.astype(np.float64) + b if len(leaves) else np.full(self.n_coords, b)

    def state_dict(self) -> dict[str, Any]:
        """Return what it remembers of the group as a whole.

        Processes that hold shards differ in it, and a distributed checkpoint keeps one of them
        only: they find it anew in their gains.
        """
        if not self.learns or self.sharded:
            return {}
        return {
            "counts": self.distribution.counts.copy(),
            "totals": np.array(self.totals),
            "sizes": np.diff(self._offsets),
            "boost": float(self.boost),
        }

    def fits(self, state: dict[str, Any]) -> bool:
        """Whether a state belongs to the same kind of sampler."""
        return not self.learns or "totals" in state

    def load_state_dict(self, state: dict[str, Any] | None) -> None:
        """Go on with the gains in memory, and what another sampler of the same kind remembers."""
        self.pending = None
        if not self.learns:
            return
        sums, bounds = self.distribution.sums, self._offsets
        if state is not None and np.array_equal(state["sizes"], np.diff(bounds)):
            self.distribution.counts[...] = state["counts"]
            self.totals, self.boost = state["totals"].tolist(), float(state["boost"])
        else:
            parts = [sums[low:high] for low, high in pairwise(bounds)]
            self.totals = [kernels.mend(part, LARGEST[self.dtype]) for part in parts]
            self.distribution.counts[...] = self.n_steps, self.n_steps * self.n_draws
            self._rebalance()
        if not self.light and self.n_steps > 0:
            self.distribution.mixing[0] = self.mixings.at(self.n_steps)
            refill(self.distribution)


def fading(half_life: float | None) -> float:
    """Return what a gain is multiplied with at every step.

    Examples
    --------
    >>> fading(1.0), fading(None)
    (0.5, 1.0)
    """
    return 1.0 if half_life is None else 0.5 ** (1.0 / half_life)
