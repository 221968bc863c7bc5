"""One entry point for every coordinate law: what a state can do is looked up by its type.

A law keeps its memory in a named tuple of its own. :func:`register` says which compiled functions
act on it; :func:`draw`, :func:`draw_distinct`, :func:`update` and :func:`weights` then take any
law, from Python and from compiled code alike. Compiled code resolves them by the type of the state
when it is compiled, so that it holds the arithmetic of the law in use and no other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from scgd.compiling import njit, overload
from scgd.typing import Array, Floats, Ints

__all__ = ["Kernels", "draw", "draw_blocks", "draw_distinct", "kernels_of", "register", "update",
           "weights"]  # fmt: skip


class Kernels(NamedTuple):
    """What acts on a law's state: compiled functions, and a check for states from elsewhere.

    Attributes
    ----------
    draw
        ``(law, stream, coords, probs)`` fills both with independent draws and their weights.
    draw_distinct
        The same with distinct coordinates; ``probs`` are inclusion probabilities / their number.
    update
        ``(law, coords, probs, grads, mixing)`` ends a phase: learn, set the weights of the next.
    weights
        ``(law, out)`` writes all current weights.
    end_phase_and_draw
        ``(*law, stream, coords, probs, grads, mixing)``: update and draw in one call, with the law
        in pieces, which numba takes twice as fast from Python as a tuple.
    check
        ``(law, fresh)`` raises ValueError where a law, of the types and shapes of a fresh one, has
        values that could lead a kernel out of an array or into a loop without end.
    draw_block
        ``draw_distinct`` from Python, where another way there compiles less.
    """

    draw: Callable[..., None]
    draw_distinct: Callable[..., None]
    update: Callable[..., None]
    weights: Callable[..., None]
    end_phase_and_draw: Callable[..., None]
    check: Callable[[Any, Any], None]
    draw_block: Callable[..., None] | None = None


FEW = 4
"""Blocks that are drawn one by one: a call from Python costs a few microseconds."""
KERNELS: dict[type, Kernels] = {}


def register(state: type, kernels: Kernels) -> None:
    """Say what acts on states of this type."""
    KERNELS[state] = kernels


def kernels_of(law: Any) -> Kernels:
    """Return what acts on this law."""
    return KERNELS[type(law)]


def draw(law: Any, stream: Array, coords: Ints, probs: Floats) -> None:
    """Fill ``coords`` with independent draws and ``probs`` with their weights."""
    KERNELS[type(law)].draw(law, stream, coords, probs)


def draw_distinct(law: Any, stream: Array, coords: Ints, probs: Floats) -> None:
    """Fill ``coords`` with distinct coordinates, ``probs`` with inclusion probability / number."""
    KERNELS[type(law)].draw_distinct(law, stream, coords, probs)


def update(law: Any, coords: Ints, probs: Floats, grads: Floats, mixing: float) -> None:
    """End a phase: learn from the gradients of its draws and set the weights of the next."""
    KERNELS[type(law)].update(law, coords, probs, grads, mixing)


def weights(law: Any, out: Floats) -> None:
    """Write all current weights into ``out``, O(p)."""
    KERNELS[type(law)].weights(law, out)


@overload(draw)
def compiled_draw(law, stream, coords, probs):  # type: ignore[no-untyped-def]
    """Resolve :func:`draw` in compiled code."""
    kernel = KERNELS[law.instance_class].draw

    def draw(law, stream, coords, probs):  # type: ignore[no-untyped-def]
        kernel(law, stream, coords, probs)

    return draw


@overload(draw_distinct)
def compiled_draw_distinct(law, stream, coords, probs):  # type: ignore[no-untyped-def]
    """Resolve :func:`draw_distinct` in compiled code."""
    kernel = KERNELS[law.instance_class].draw_distinct

    def draw_distinct(law, stream, coords, probs):  # type: ignore[no-untyped-def]
        kernel(law, stream, coords, probs)

    return draw_distinct


@overload(update)
def compiled_update(law, coords, probs, grads, mixing):  # type: ignore[no-untyped-def]
    """Resolve :func:`update` in compiled code."""
    kernel = KERNELS[law.instance_class].update

    def update(law, coords, probs, grads, mixing):  # type: ignore[no-untyped-def]
        kernel(law, coords, probs, grads, mixing)

    return update


def draw_blocks(law: Any, stream: Array, coords: Ints, probs: Floats, block: int) -> None:
    """Fill ``coords`` with blocks of distinct coordinates."""
    if len(coords) > FEW * block:
        draw_many_blocks(law, stream, coords, probs, block)
        return
    # The law's own kernel: a loop around it would be compiled once more.
    kernels = KERNELS[type(law)]
    kernel = kernels.draw_block or kernels.draw_distinct
    for start in range(0, len(coords), block):
        stop = start + block
        kernel(law, stream, coords[start:stop], probs[start:stop])


@njit(cache=True)
def draw_many_blocks(law, stream, coords, probs, block):  # type: ignore[no-untyped-def]
    """Do the same in one call."""
    for start in range(0, len(coords), block):
        stop = start + block
        draw_distinct(law, stream, coords[start:stop], probs[start:stop])
