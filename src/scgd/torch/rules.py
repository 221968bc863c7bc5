"""Update rules on the coordinates drawn, all at once.

The arithmetic is that of :mod:`scgd.steps`, which goes one coordinate at a time (a test pins the
two together), with what torch's optimizers have besides: ``dampening``, ``amsgrad`` and decoupled
weight decay. Moments are averages over a coordinate's own visits. Visits are counted per unit of
the sampler where all coordinates of a unit move together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scgd.torch.memory import Memory
from scgd.typing import Array

VISITS = "visits"


@dataclass(frozen=True)
class Rule:
    """Which quantities a rule remembers, and the function that makes the move."""

    names: tuple[str, ...]
    counts_visits: bool
    move: Any


def momentum(group: dict[str, Any], grads: Array, kept: dict[str, Array], visits: Array) -> Array:
    """Move along a velocity that forgets; the first visit is not dampened."""
    beta, dampening = group["momentum"], group["dampening"]
    new = grads if dampening == 0 else np.where(visits == 1, grads, (1 - dampening) * grads)
    velocity = beta * kept["momentum_buffer"] + new
    kept["momentum_buffer"] = velocity
    return grads + beta * velocity if group["nesterov"] else velocity  # type: ignore[no-any-return]


def rms(group: dict[str, Any], grads: Array, kept: dict[str, Array], visits: Array) -> Array:
    """Divide by the root mean square of the gradients seen here."""
    weight = np.maximum(1.0 / visits, 1.0 - group["betas"][1]).astype(grads.dtype)
    square = kept["square_avg"]
    square = square + weight * (grads * grads - square)
    kept["square_avg"] = square
    return np.where(square > 0, grads / (np.sqrt(square) + group["eps"]), 0)


def adam(group: dict[str, Any], grads: Array, kept: dict[str, Array], visits: Array) -> Array:
    """Adam with its bias correction counted in visits."""
    beta1, beta2 = group["betas"]
    mean = beta1 * kept["exp_avg"] + (1 - beta1) * grads
    square = beta2 * kept["exp_avg_sq"] + (1 - beta2) * grads * grads
    kept["exp_avg"], kept["exp_avg_sq"] = mean, square
    if group["amsgrad"]:
        square = kept["max_exp_avg_sq"] = np.maximum(kept["max_exp_avg_sq"], square)
    whole1, whole2 = (-np.expm1(visits * np.log(beta)) if beta else 1.0 for beta in (beta1, beta2))
    root = np.sqrt(square / whole2) + group["eps"]
    return np.where(square > 0, mean / whole1 / root, 0)


RULES = {
    "sgd": Rule((), False, None),
    "momentum": Rule(("momentum_buffer",), False, momentum),
    "dampened": Rule(("momentum_buffer",), True, momentum),
    "rms": Rule(("square_avg",), True, rms),
    "adam": Rule(("exp_avg", "exp_avg_sq"), True, adam),
    "amsgrad": Rule(("exp_avg", "exp_avg_sq", "max_exp_avg_sq"), True, adam),
}


def chosen(group: dict[str, Any]) -> Rule:
    """Return the update rule a group asks for."""
    name = group["rule"]
    if name == "adam" and group["amsgrad"]:
        name = "amsgrad"
    elif name == "sgd" and group["momentum"] > 0:
        name = "dampened" if group["dampening"] else "momentum"
    return RULES[name]


def quantities(group: dict[str, Any], dtype: Any) -> dict[str, tuple[Any, bool]]:
    """Return what the rule of a group remembers: types, and whether it is per unit."""
    rule = chosen(group)
    known: dict[str, tuple[Any, bool]] = {name: (dtype, False) for name in rule.names}
    if rule.counts_visits:
        known[VISITS] = (np.int32, True)
    return known


def advance(
    group: dict[str, Any], memory: Memory, coords: Array, sizes: Array | None, grads: Array
) -> Array:
    """Return what is to be subtracted, per unit of the rate, and remember.

    ``coords`` are distinct; ``sizes`` are the lengths of the units drawn, if units were drawn.
    """
    rule = chosen(group)
    if rule.move is None:
        return grads
    dtype, known = grads.dtype, quantities(group, grads.dtype)
    arrays = {name: memory.array(name, *kind) for name, kind in known.items()}
    visits = _visit(arrays.pop(VISITS), memory, coords, sizes) if VISITS in arrays else coords
    kept = {name: array[coords] for name, array in arrays.items()}
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        moved = rule.move(group, grads, kept, visits)
    for name, array in arrays.items():
        array[coords] = kept[name]
    return np.asarray(moved, dtype)


def _visit(visits: Array, memory: Memory, coords: Array, sizes: Array | None) -> Array:
    """Count a visit of each coordinate or unit; return how often each coordinate was visited."""
    if not memory.whole_units:
        visits[coords] += 1
        return visits[coords]
    assert sizes is not None and memory.layout.starts is not None
    firsts = coords[np.concatenate([[0], np.cumsum(sizes)[:-1]])]
    units = np.searchsorted(memory.layout.starts, firsts)
    visits[units] += 1
    return np.repeat(visits[units], sizes)
