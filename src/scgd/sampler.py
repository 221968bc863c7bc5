"""The coordinate sampler: a policy, its memory, its random stream and the phase in progress.

Draws are made once per phase, under the weights in force, and kept in a buffer. A phase may be cut
anywhere (budget, checkpoint, evaluations that arrive late) and continued: the buffer is part of the
state, so the distribution of the draws does not change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.checks import LARGEST
from scgd.policies import CompiledPolicy, Policy
from scgd.policies.base import check_array, update_and_draw
from scgd.timetable import Mixings
from scgd.typing import Array, Floats, Ints


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
        if not isinstance(policy, Policy):
            raise TypeError(
                f"policy must be a scgd.policies.Policy, got {policy!r}; a class of your own "
                "inherits from it"
            )
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
        self.state: Any = policy.init(n_coords, self.replace)
        self.n_steps = -(-policy.phase_length(n_coords) // block_size)
        size = self.n_steps * block_size
        self.coords: Ints = np.zeros(size, np.int64)
        self.probs: Floats = np.ones(size)
        self.grads: Floats = np.zeros(size)
        self.position = 0  # in draws
        self.n_phases = 0
        self.ahead = False  # blocks are drawn one by one, before those in the buffer are recorded
        self.mixings = Mixings(policy.mixing)
        # Draws of policies in plain Python are looked at: a wrong one would move nobody knows what.
        compiled = isinstance(policy, CompiledPolicy)
        self.trusted = compiled or policy.dense or policy.needs_gradient
        self.at_once = compiled and self.replace  # learns and draws in one compiled call
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
            self._check_draws(self.coords, self.probs)

    def _check_draws(self, coords: Ints, probs: Floats) -> None:
        """Refuse draws that are no coordinates, and blocks that hold one twice where none may."""
        if self.trusted:
            return
        name = type(self.policy).__name__
        if coords.min() < 0 or coords.max() >= self.n_coords:
            raise ValueError(f"{name} drew coordinates outside of 0 to {self.n_coords - 1}")
        if not np.all((probs > 0) & (probs <= 1)):
            raise ValueError(f"{name} gave probabilities outside of (0, 1]")
        blocks = np.sort(coords.reshape(-1, self.block_size), axis=1)
        if not self.replace and np.any(blocks[:, 1:] == blocks[:, :-1]):
            raise ValueError(
                f"{name} drew a block with a coordinate twice where none may be (replace=False); "
                "scgd.policies.draw_without_replacement draws distinct ones"
            )

    def block(self, gradient: Floats | None = None) -> tuple[Ints, Floats]:
        """Return the coordinates of the next step and their probabilities per draw."""
        if self.ahead:
            coords, probs = np.zeros(self.block_size, np.int64), np.ones(self.block_size)
            size, replace = self.block_size, self.replace
            self.policy.draw(self.state, self.stream, coords, probs, size, replace)
            self._check_draws(coords, probs)
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

    def advance(self, n_draws: int, *, drawn: bool = False) -> bool:
        """Count draws whose gradients are in the buffer; learn and draw anew when it is full.

        ``drawn``: compiled code has learnt and drawn already.
        """
        self.position += n_draws
        if self.position < len(self.coords):
            return False
        self.position = 0
        self.n_phases += 1
        if drawn:
            return True
        mixing = self.mixings.at(self.n_phases)
        buffers = self.coords, self.probs, self.grads
        if self.at_once:
            update_and_draw(self.state, self.stream, *buffers, mixing)
            return True
        self.policy.update(self.state, *buffers, mixing)
        if not self.policy.dense:  # whose draws are all alike
            self._draw()
        return True

    def weights(self) -> Floats:
        """Return the sampling weights in force."""
        return self.policy.weights(self.state)

    def state_dict(self) -> dict[str, Any]:
        """Return everything that is needed to go on as if never stopped."""
        return {
            "distribution": {name: array.copy() for name, array in self.state._asdict().items()},
            "stream": self.stream.copy(),
            "coords": self.coords.copy(),
            "probs": self.probs.copy(),
            "grads": self.grads.copy(),
            "position": self.position,
            "n_phases": self.n_phases,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up the state of another sampler with the same configuration.

        Raises
        ------
        ValueError
            The state does not fit, or has values that could lead compiled code out of its arrays;
            this sampler then stays as it was.
        """
        self.check(state)
        for name, array in self.state._asdict().items():
            array[...] = state["distribution"][name]
        for name in ("stream", "coords", "probs", "grads"):
            getattr(self, name)[...] = state[name]
        self.position = int(state["position"])
        self.n_phases = int(state["n_phases"])

    def check(self, state: dict[str, Any]) -> None:
        """Raise ValueError unless a saved state can be taken up."""
        mine = self.state_dict()
        check_names("the state", state, mine)
        check_names("the distribution", state["distribution"], mine["distribution"])
        for name in ("stream", "coords", "probs", "grads"):
            check_array(name, state[name], mine[name])
        for name in ("position", "n_phases"):
            value = state[name]
            if not isinstance(value, int | np.integer) or not 0 <= value <= LARGEST:
                raise ValueError(f"{name} is {value!r}, not a count")
        if state["position"] >= self.n_draws or state["position"] % self.block_size:
            raise ValueError(f"position is {state['position']}, not the start of a step")
        if np.any((state["coords"] < 0) | (state["coords"] >= self.n_coords)):
            raise ValueError(f"coords are outside of the {self.n_coords} coordinates")
        if not np.all((state["probs"] > 0) & (state["probs"] <= 1)):
            raise ValueError("probs are not probabilities")
        if not np.all(np.isfinite(state["grads"])):
            raise ValueError("grads are not finite")
        if not np.any(state["stream"]):
            raise ValueError("stream is zero, of which nothing but zeros can be drawn")
        dist = type(self.state)(**state["distribution"])
        self.policy.check_state(dist, self.n_coords, self.replace)


def check_names(what: str, found: Any, mine: dict[str, Any]) -> None:
    """Raise ValueError unless a dict has the same names as another."""
    if not isinstance(found, dict) or found.keys() != mine.keys():
        raise ValueError(f"{what} of the sampler must have the names {sorted(mine)}")
