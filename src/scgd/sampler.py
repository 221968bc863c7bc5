"""The coordinate sampler: a policy, its memory, its random stream and the phase in progress.

Draws are made once per phase, under the weights in force, and kept in a buffer. A phase may be cut
anywhere (budget, checkpoint, evaluations that arrive late) and continued: the buffer is part of the
state, so the law of the draws does not change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.policies import Policy
from scgd.schedules import as_schedule
from scgd.typing import Array, Floats, Ints

__all__ = ["CoordinateSampler"]

LOOKAHEAD = 256
"""How many phases' mixing values are computed at a time."""


class CoordinateSampler:
    """Hand out blocks of coordinates and take back the gradients seen there.

    Parameters
    ----------
    policy
        How coordinates are chosen.
    n_coords
        Their number.
    stream
        Where randomness comes from (:func:`scgd.random.stream`).
    block_size
        Coordinates per step; a phase is a whole number of steps.
    replace
        Whether a block may hold a coordinate twice.

    Examples
    --------
    >>> from scgd.policies import Musketeer
    >>> from scgd.random import stream
    >>> sampler = CoordinateSampler(Musketeer(), 9, stream(np.random.SeedSequence(0)))
    >>> coords, probs = sampler.block()
    >>> probs
    array([0.11111111])
    >>> sampler.record(np.array([2.0]))
    False
    """

    def __init__(
        self,
        policy: Policy,
        n_coords: int,
        stream: Array,
        block_size: int = 1,
        replace: bool = True,
    ) -> None:
        if policy.dense:
            block_size = n_coords
        if not 1 <= block_size <= n_coords and not (replace and block_size >= 1):
            raise ValueError(
                f"block_size must lie between 1 and the {n_coords} coordinates, got {block_size}"
            )
        self.policy = policy
        self.n_coords = n_coords
        self.stream = stream
        self.block_size = block_size
        self.replace = replace or block_size == 1
        self._distinct = 0 if self.replace else block_size
        self.state: Any = policy.init(n_coords, self.replace)
        self.n_steps = -(-policy.phase_length(n_coords) // block_size)
        size = self.n_steps * block_size
        self.coords: Ints = np.zeros(size, np.int64)
        self.probs: Floats = np.ones(size)
        self.grads: Floats = np.zeros(size)
        self.position = 0  # in draws
        self.n_phases = 0
        self.ahead = False  # blocks are drawn one by one, before those in the buffer are recorded
        mixing = policy.mixing
        self._schedule = None if mixing is None or mixing == 0 else as_schedule(mixing, "mixing")
        self._mixings: list[float] = []
        self._mixings_from = 0
        self._turn = getattr(policy, "turn", None)
        self._draw()

    @property
    def n_draws(self) -> int:
        """The number of draws in a phase."""
        return len(self.coords)

    def _draw(self) -> None:
        """Draw a new phase (policies that see a gradient first draw in :meth:`block`)."""
        if not self.policy.needs_gradient:
            self.policy.draw(
                self.state, self.stream, self.coords, self.probs, self.block_size, self.replace
            )

    def block(self, gradient: Floats | None = None) -> tuple[Ints, Floats]:
        """Return the coordinates of the next step and their probabilities per draw."""
        if self.ahead:
            coords, probs = np.zeros(self.block_size, np.int64), np.ones(self.block_size)
            size, replace = self.block_size, self.replace
            self.policy.draw(self.state, self.stream, coords, probs, size, replace)
            return coords, probs
        here = slice(self.position, self.position + self.block_size)
        coords, probs = self.coords[here], self.probs[here]
        if self.policy.needs_gradient:
            choose = self.policy.choose  # type: ignore[attr-defined]
            choose(gradient, self.stream, coords, probs, self.replace)
        return coords, probs

    def place(self, coords: Ints, probs: Floats) -> None:
        """Put a block that was drawn ahead where its gradients will be recorded."""
        here = slice(self.position, self.position + self.block_size)
        self.coords[here], self.probs[here] = coords, probs

    def record(self, grads: Floats) -> bool:
        """Take the gradients seen at the last block; tell whether that ended the phase."""
        self.grads[self.position : self.position + self.block_size] = grads
        return self.advance(self.block_size)

    def advance(self, n_draws: int) -> bool:
        """Count draws whose gradients are in the buffer; learn and draw anew when it is full."""
        self.position += n_draws
        if self.position < len(self.coords):
            return False
        self.position = 0
        self.n_phases += 1
        mixing = self.mixing(self.n_phases)
        buffers = self.coords, self.probs, self.grads
        if self._turn is not None:
            self._turn(self.state, self.stream, *buffers, mixing, self._distinct)
        else:
            self.policy.update(self.state, *buffers, mixing)
            if not self.policy.dense:  # whose phases are all alike
                self._draw()
        return True

    def mixing(self, n: int) -> float:
        """Return the uniform share of the weights made at the end of phase ``n`` (from 1)."""
        if self._schedule is None:
            return 0.0
        i = n - self._mixings_from
        if not 0 <= i < len(self._mixings):
            self._mixings_from, i = n, 0
            values = np.asarray(self._schedule(np.arange(n, n + LOOKAHEAD)), np.float64)
            self._mixings = np.clip(values, 0.0, 1.0).tolist()
        return self._mixings[i]

    def weights(self) -> Floats:
        """Return the sampling weights in force."""
        return self.policy.weights(self.state)

    def state_dict(self) -> dict[str, Any]:
        """Return everything that is needed to go on as if never stopped."""
        return {
            "law": {name: array.copy() for name, array in self.state._asdict().items()},
            "stream": self.stream.copy(),
            "coords": self.coords.copy(),
            "probs": self.probs.copy(),
            "grads": self.grads.copy(),
            "position": self.position,
            "n_phases": self.n_phases,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up the state of another sampler with the same configuration."""
        for name, array in self.state._asdict().items():
            if name in ("codes", "levels") and not np.array_equal(array, state["law"][name]):
                raise ValueError(f"the {name} of the law are another policy's")
            array[...] = state["law"][name]
        for name in ("stream", "coords", "probs", "grads"):
            getattr(self, name)[...] = state[name]
        self.position = int(state["position"])
        self.n_phases = int(state["n_phases"])
