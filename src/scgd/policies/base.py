"""What a coordinate policy is, and the common ground of those that live in compiled code.

A policy speaks twice per phase: it draws the coordinates of a phase under fixed weights, and at the
end of the phase it is shown the gradients seen there. It is a frozen dataclass, a pure description;
all memory is in a state of arrays that the caller owns and the policy updates in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from scgd.compiling import njit, overload
from scgd.schedules import Schedule
from scgd.typing import Array, Floats, Ints


class Kernels(NamedTuple):
    """What acts on a distribution: compiled functions, and a check for states from elsewhere.

    Attributes
    ----------
    draw
        ``(dist, stream, coords, probs)`` fills both with independent draws and their weights.
    draw_distinct
        The same with distinct coordinates; ``probs`` are inclusion probabilities / their number.
    update
        ``(dist, coords, probs, grads, mixing)`` ends a phase: learn, set the weights of the next.
    weights
        ``(dist, out)`` writes all current weights.
    check
        ``(dist, fresh)`` raises ValueError where a distribution, of the types and shapes of a fresh
        one, has values that could lead a kernel out of an array or into a loop without end.
    """

    draw: Callable[..., None]
    draw_distinct: Callable[..., None]
    update: Callable[..., None]
    weights: Callable[..., None]
    check: Callable[[Any, Any], None]


KERNELS: dict[type, Kernels] = {}


def register(state: type, kernels: Kernels) -> None:
    """Say what acts on states of this type."""
    KERNELS[state] = kernels


def kernels_of(dist: Any) -> Kernels:
    """Return what acts on this distribution."""
    return KERNELS[type(dist)]


def draw(dist: Any, stream: Array, coords: Ints, probs: Floats) -> None:
    """Fill ``coords`` with independent draws and ``probs`` with their weights."""
    KERNELS[type(dist)].draw(dist, stream, coords, probs)


def draw_distinct(dist: Any, stream: Array, coords: Ints, probs: Floats) -> None:
    """Fill ``coords`` with distinct coordinates, ``probs`` with inclusion probability / number."""
    KERNELS[type(dist)].draw_distinct(dist, stream, coords, probs)


def update(dist: Any, coords: Ints, probs: Floats, grads: Floats, mixing: float) -> None:
    """End a phase: learn from the gradients of its draws and set the weights of the next."""
    KERNELS[type(dist)].update(dist, coords, probs, grads, mixing)


def weights(dist: Any, out: Floats) -> None:
    """Write all current weights into ``out``, O(p)."""
    KERNELS[type(dist)].weights(dist, out)


def resolve(function: Callable[..., None]) -> None:
    """Have compiled code call the kernel of a distribution's type in the place of a function."""

    def resolved(dist, *rest):  # type: ignore[no-untyped-def]
        kernel = getattr(KERNELS[dist.instance_class], function.__name__)

        def run(dist, *rest):  # type: ignore[no-untyped-def]
            kernel(dist, *rest)

        return run

    overload(function)(resolved)


for public in (draw, draw_distinct, update):
    resolve(public)


@njit(cache=True)
def update_and_draw(dist, stream, coords, probs, grads, mixing):  # type: ignore[no-untyped-def]
    """End a phase and draw the next, in one call."""
    update(dist, coords, probs, grads, mixing)
    draw(dist, stream, coords, probs)


@njit(cache=True)
def draw_blocks(dist, stream, coords, probs, block):  # type: ignore[no-untyped-def]
    """Fill ``coords`` with blocks of distinct coordinates."""
    for start in range(0, len(coords), block):
        stop = start + block
        draw_distinct(dist, stream, coords[start:stop], probs[start:stop])


class UniformDistribution(NamedTuple):
    """The number of coordinates, as an array of one entry."""

    n_coords: Ints


class Policy:
    """How coordinates are chosen: a description without memory.

    A subclass implements :meth:`draw`, and what else differs from the defaults here. ``state`` is a
    NamedTuple of arrays made by :meth:`init` and changed in place by the others, so that it can be
    checkpointed as it is.
    """

    needs_gradient: ClassVar[bool] = False
    """Whether ``choose(gradient, stream, coords, probs, replace)`` is called instead of draw."""
    dense: ClassVar[bool] = False
    """Whether every step takes all coordinates, in order."""
    mixing: float | Schedule | None = None
    """Weight of the uniform distribution after phase n = 1, 2, ... (None: not used)."""

    def phase_length(self, n_coords: int) -> int:
        """Return the number of draws between two updates."""
        return max(1, int(np.sqrt(n_coords)))

    def init(self, n_coords: int, replace: bool = True) -> Any:
        """Return a fresh state (here: the number of coordinates)."""
        return UniformDistribution(np.array([n_coords]))

    def draw(
        self, state: Any, stream: Array, coords: Ints, probs: Floats, block: int, replace: bool
    ) -> None:
        """Fill ``coords`` and ``probs`` with blocks of draws under the current weights."""
        raise NotImplementedError

    def update(self, state: Any, coords: Ints, probs: Floats, grads: Floats, mixing: float) -> None:
        """End a phase: learn from the gradients seen at the drawn coordinates (here: nothing)."""

    def weights(self, state: Any) -> Floats:
        """Return the sampling weights in force, one per coordinate (here: all alike)."""
        n_coords = int(state.n_coords[0])
        return np.full(n_coords, 1.0 / n_coords)

    def pace(self, state: Any, progress: float) -> None:
        """Learn, before a phase, which part of the budget is used (here: nothing)."""

    @property
    def paced(self) -> bool:
        """Whether this policy listens to :meth:`pace`, which not every engine can call."""
        return type(self).pace is not Policy.pace

    def check_state(self, state: Any, n_coords: int, replace: bool = True) -> None:
        """Raise ValueError where a state from elsewhere does not fit this policy.

        The arrays must have the types and shapes of a fresh state, and a compiled distribution has
        its own check. Override it, calling this first, where a value of the state is used as an
        index or ends a loop.

        Examples
        --------
        >>> from scgd import Uniform
        >>> Uniform().check_state(Uniform().init(5), 4)
        Traceback (most recent call last):
        ...
        ValueError: the n_coords of the distribution are another policy's
        """
        fresh = self.init(n_coords, replace)
        check_alike(state, fresh)
        if type(fresh) in KERNELS:
            kernels_of(fresh).check(state, fresh)


def check_alike(state: Any, fresh: Any) -> None:
    """Raise ValueError unless two states have arrays of the same types and shapes."""
    if type(state) is not type(fresh):
        raise ValueError(f"the state is a {type(state).__name__}, not a {type(fresh).__name__}")
    for name, mine, found in zip(fresh._fields, fresh, state, strict=True):
        check_array(name, found, mine)


def check_array(name: str, found: Any, mine: Array) -> None:
    """Raise ValueError unless an array is of the same type and shape as another."""
    if not isinstance(found, np.ndarray):
        raise ValueError(f"{name} is {type(found).__name__}, not an array")
    if found.dtype != mine.dtype or found.shape != mine.shape:
        raise ValueError(
            f"{name} has {found.dtype} of shape {found.shape}, not {mine.dtype} of shape "
            f"{mine.shape}"
        )


class CompiledPolicy(Policy):
    """A policy whose arithmetic is compiled: its state is a registered distribution.

    Subclasses implement :meth:`init` with a state of a type known to
    :mod:`scgd.policies.base`; the linear-model engine and the compiled black-box loop call the
    same functions on the same state.
    """

    def draw(
        self, state: Any, stream: Array, coords: Ints, probs: Floats, block: int, replace: bool
    ) -> None:
        """Fill ``coords`` and ``probs`` with blocks of draws under the current weights."""
        if replace or block == 1:
            draw(state, stream, coords, probs)
        else:
            draw_blocks(state, stream, coords, probs, block)

    def update(self, state: Any, coords: Ints, probs: Floats, grads: Floats, mixing: float) -> None:
        """End a phase: learn from the gradients seen at the drawn coordinates."""
        update(state, coords, probs, grads, mixing)

    def weights(self, state: Any) -> Floats:
        """Return the sampling weights in force, one per coordinate."""
        out = np.empty(state.n_coords[0])
        weights(state, out)
        return out
