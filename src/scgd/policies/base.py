"""What a coordinate policy is, and the common ground of those that live in compiled code.

A policy speaks twice per phase: it draws the coordinates of a phase under fixed weights, and at the
end of the phase it is shown the gradients seen there. It is a frozen dataclass, a pure description;
all memory is in a state of arrays that the caller owns and the policy updates in place.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from scgd.compiling import njit
from scgd.policies import law as laws
from scgd.schedules import Schedule
from scgd.typing import Array, Floats, Ints

__all__ = ["LawPolicy", "Policy"]


@runtime_checkable
class Policy(Protocol):
    """How coordinates are chosen: a description without memory.

    ``state`` is a NamedTuple of arrays made by :meth:`init` and changed in place by the others, so
    that it can be checkpointed as it is.
    """

    needs_gradient: ClassVar[bool]
    dense: ClassVar[bool]
    paced: ClassVar[bool]

    @property
    def mixing(self) -> float | Schedule | None:
        """Weight of the uniform law after phase n = 1, 2, ... (None: not used)."""

    def phase_length(self, n_coords: int) -> int:
        """Return the number of draws between two updates."""

    def init(self, n_coords: int, replace: bool = True) -> Any:
        """Return a fresh state."""

    def draw(
        self, state: Any, stream: Array, coords: Ints, probs: Floats, block: int, replace: bool
    ) -> None:
        """Fill ``coords`` and ``probs`` with blocks of draws under the current weights."""

    def update(self, state: Any, coords: Ints, probs: Floats, grads: Floats, mixing: float) -> None:
        """End a phase: learn from the gradients seen at the drawn coordinates."""

    def weights(self, state: Any) -> Floats:
        """Return the sampling weights in force, one per coordinate."""


class LawPolicy:
    """A policy whose arithmetic is a compiled :class:`~scgd.policies.law.Law`.

    Subclasses implement :meth:`law`; the linear-model engine and the compiled black-box loop call
    the same functions of :mod:`scgd.policies.law` on the same state.
    """

    needs_gradient: ClassVar[bool] = False
    dense: ClassVar[bool] = False
    paced: ClassVar[bool] = False
    mixing: float | Schedule | None = None

    def law(self, n_coords: int, replace: bool = True) -> laws.Law:
        """Return a fresh law for this policy."""
        raise NotImplementedError

    def phase_length(self, n_coords: int) -> int:
        """Return the number of draws between two updates."""
        return max(1, int(np.sqrt(n_coords)))

    def init(self, n_coords: int, replace: bool = True) -> laws.Law:
        """Return a fresh state."""
        return self.law(n_coords, replace)

    def draw(
        self, state: laws.Law, stream: Array, coords: Ints, probs: Floats, block: int, replace: bool
    ) -> None:
        """Fill ``coords`` and ``probs`` with blocks of draws under the current weights."""
        if replace or block == 1:
            laws.draw(state, stream, coords, probs)
        else:
            draw_blocks(state, stream, coords, probs, block)

    def update(
        self, state: laws.Law, coords: Ints, probs: Floats, grads: Floats, mixing: float
    ) -> None:
        """End a phase: learn from the gradients seen at the drawn coordinates."""
        laws.update(state, coords, probs, grads, mixing)

    def turn(
        self,
        state: laws.Law,
        stream: Array,
        coords: Ints,
        probs: Floats,
        grads: Floats,
        mixing: float,
        block: int,
    ) -> None:
        """Update and draw the next phase in one compiled call (``block`` 0: independent draws)."""
        if block == 0:
            turn(*state, stream, coords, probs, grads, mixing)
        else:
            turn_blocks(state, stream, coords, probs, grads, mixing, block)

    def weights(self, state: laws.Law) -> Floats:
        """Return the sampling weights in force, one per coordinate."""
        out = np.empty(state.codes[laws.N_COORDS])
        laws.weights(state, out)
        return out


@njit(cache=True)
def draw_blocks(law, stream, coords, probs, block):  # type: ignore[no-untyped-def]
    """Fill ``coords`` with blocks of distinct coordinates."""
    for start in range(0, len(coords), block):
        stop = start + block
        laws.draw_distinct(law, stream, coords[start:stop], probs[start:stop])


@njit(cache=True)
def turn(  # type: ignore[no-untyped-def]
    codes, params, counts, sums, extra, tree, levels, heavy, stream, coords, probs, grads, mixing
):
    """End a phase and draw the next; the law comes in pieces, which numba takes 3x faster."""
    law = laws.Law(codes, params, counts, sums, extra, tree, levels, heavy)
    laws.update(law, coords, probs, grads, mixing)
    laws.draw(law, stream, coords, probs)


@njit(cache=True)
def turn_blocks(law, stream, coords, probs, grads, mixing, block):  # type: ignore[no-untyped-def]
    """End a phase and draw the next in blocks of distinct coordinates."""
    laws.update(law, coords, probs, grads, mixing)
    draw_blocks(law, stream, coords, probs, block)
