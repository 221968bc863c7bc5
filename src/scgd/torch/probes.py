"""The four ways of a zeroth-order step: coordinates, units, everything at once, and layers.

Each evaluates the closure around the parameters, puts them back, and returns the loss there with a
function that makes the move: all groups are probed before any of them moves.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from scgd.estimators import CentralDifference
from scgd.questions import Point
from scgd.torch import rules
from scgd.torch.directions import Direction, SparseMeZO, probe_along, small_entries
from scgd.torch.draws import Draw
from scgd.torch.evaluation import Evaluation
from scgd.torch.kernels import splitmix
from scgd.torch.layout import Layout
from scgd.typing import Array

NO_BOUNDS = np.empty(0)
Probed = tuple[float, Callable[[], None]]
"""The loss at the parameters and what makes the move."""


def probe_coordinates(opt: Any, g: int, group: dict[str, Any], evaluation: Evaluation) -> Probed:
    """Probe the coordinates drawn one by one."""
    sampler, layout = opt.samplers[g], opt.layouts[g]
    central = isinstance(group["estimator"], CentralDifference)
    coords, probs = sampler.draw()
    spots = [layout.spot(coord) for coord in coords]
    values, widths = evaluation.differences(layout, coords, spots, group["radius"], central)
    if opt.team.group is not None:
        values = opt.team.mean_of(np.array(values)).tolist()
    sign = -1.0 if group["maximize"] else 1.0
    grads = []
    for j, width in enumerate(widths):
        low, high = (values[2 * j], values[2 * j + 1]) if central else (values[0], values[1 + j])
        grads.append(sign * (high - low) / width if width else 0.0)
    loss = sum(values) / len(values) if central else values[0]
    return loss, partial(move_coordinates, opt, g, group, coords, spots, probs, grads)


def move_coordinates(
    opt: Any,
    g: int,
    group: dict[str, Any],
    coords: list[int],
    spots: list[Any],
    probs: Array,
    grads: list[float],
) -> None:
    """Apply the update rule and learn; weight decay joins the gradients in place."""
    sampler, lr, decay = opt.samplers[g], float(group["lr"]), group["weight_decay"]
    importance, plain = group["importance"], group["rule"] == "sgd" and not group["momentum"]
    here = [entries[index] for entries, index in spots]
    if group["decoupled_weight_decay"]:
        here = [(1.0 - lr * decay) * size for size in here]
    elif decay:
        grads = [grad + decay * size for grad, size in zip(grads, here, strict=True)]
    steps = grads
    if not plain:
        order = np.argsort(coords, kind="stable")
        sorted_grads = np.array(grads, opt.layouts[g].dtype)[order]
        moved = rules.advance(group, sampler.memory, np.array(coords)[order], None, sorted_grads)
        steps = moved[np.argsort(order)].tolist()
    for j, (entries, index) in enumerate(spots):
        rate = lr if importance is None else lr * sampler.factor(probs[j], importance)
        entries[index] = here[j] - rate * steps[j]
    sampler.record(grads)


def probe_units(opt: Any, g: int, group: dict[str, Any], evaluation: Evaluation) -> Probed:
    """Probe the units drawn along a random direction in them."""
    sampler, layout, estimator = opt.samplers[g], opt.layouts[g], group["estimator"]
    draw = sampler.draw()
    pieces = layout.split(draw.coords)
    saved = layout.gather(layout.params, draw.coords, pieces)
    rng = np.random.default_rng([sampler.seed, sampler.n_steps])
    radii = np.full(len(saved), group["radius"])
    support = np.arange(len(saved))
    theta = saved.astype(np.float64)
    probes = estimator.probe(Point(theta), support, radii, NO_BOUNDS, NO_BOUNDS, rng)
    values = np.empty(len(probes.entries))
    try:
        for j in range(len(values)):
            layout.scatter(draw.coords, pieces, probes.entries[j].astype(layout.dtype))
            probes.entries[j] = layout.gather(layout.params, draw.coords, pieces)
            values[j] = evaluation()
    finally:
        layout.scatter(draw.coords, pieces, saved)
    grads, loss = estimator.gradient(probes, opt.team.mean_of(values))
    grads = grads.astype(layout.dtype) * (-1 if group["maximize"] else 1)
    return loss, partial(move_units, opt, g, draw, grads)


def move_units(opt: Any, g: int, draw: Draw, grads: Array) -> None:
    """Apply the update rule and learn."""
    opt.move(g, draw, grads)
    opt.samplers[g].learn(draw, grads, None)


def probe_dense(opt: Any, g: int, group: dict[str, Any], evaluation: Evaluation) -> Probed:
    """Probe all parameters along one random direction."""
    sampler, layout, estimator = opt.samplers[g], opt.layouts[g], group["estimator"]
    masks = masks_of(sampler, layout, estimator)
    sign = -1.0 if group["maximize"] else 1.0
    loss, move = probe_along(
        estimator,
        layout,
        lambda: sign * evaluation(),
        splitmix(sampler.seed ^ sampler.n_steps),
        lr=float(group["lr"]),
        radius=group["radius"],
        weight_decay=group["weight_decay"],
        masks=masks,
        momentum=group["momentum"],
        velocity=lambda: sampler.memory.beside("momentum_buffer"),
        keep_copy=opt.keep_copy,
        return_first=len(opt.param_groups) > 1,
        reduce=lambda values: opt.team.mean_of(np.array(values)).tolist(),
    )

    def finish() -> None:
        move()
        sampler.memory.step += 1

    return sign * loss, finish


def masks_of(sampler: Any, layout: Layout, estimator: Any) -> list[torch.Tensor] | None:
    """Return which entries a sparse estimator trains, settled at the first step."""
    if not isinstance(estimator, SparseMeZO):
        return None
    if "mask" not in sampler.memory.tensors:
        sampler.memory.tensors["mask"] = small_entries(layout.params, estimator.kept)
    return sampler.memory.tensors["mask"]  # type: ignore[no-any-return]


class LayerProbe:
    """One layer, a direction in it, and the losses at plus and perhaps minus the radius."""

    def __init__(self, sampler: Any, group: dict[str, Any], layer: int, seed: int) -> None:
        self.layer = layer
        self.radius = float(group["radius"] or sampler.layers[layer].radius)
        self.params = sampler.params[layer]
        self.direction = Direction(group["estimator"], self.params, seed)
        self.n_sides = 2 if sampler.layers[layer].needs_both_sides else 1

    def run(self, evaluation: Evaluation) -> list[float]:
        """Return the losses; one that is not finite is nan. The layer comes back exactly."""
        entries, values = self.direction.entries, []
        saved = [part.clone() for part in entries]
        try:
            for side in (1.0, -2.0)[: self.n_sides]:
                self.direction.add(side * self.radius)
                try:
                    values.append(evaluation())
                except FloatingPointError:
                    values.append(np.nan)
        finally:
            torch._foreach_copy_(entries, saved)
        return values

    def move(
        self, sampler: Any, group: dict[str, Any], base: float, changes: Array, buffers: Any
    ) -> None:
        """Learn from the changes of the loss and move the layer."""
        step, rate = sampler.learn(self.layer, self.radius, base, changes, float(group["lr"]))
        decay = max(0.0, 1.0 - rate * group["weight_decay"])
        momentum = group["momentum"]
        if momentum:
            torch._foreach_mul_(buffers, momentum)
            self.direction.add(step, onto=buffers)
            self.direction.shrink(decay)
            torch._foreach_add_(self.direction.entries, buffers, alpha=1.0 - momentum)
        else:
            self.direction.add(step, decay)
        sampler.measure(self.layer)


def probe_layers(opt: Any, g: int, group: dict[str, Any], evaluation: Evaluation) -> Probed:
    """Probe the layers drawn, each along a direction of its own."""
    sampler, sign = opt.samplers[g], -1.0 if group["maximize"] else 1.0
    probes = [LayerProbe(sampler, group, *drawn) for drawn in zip(*sampler.draw(), strict=True)]
    n_bases = sampler.n_bases()
    values = evaluation.bases(n_bases) + [v for probe in probes for v in probe.run(evaluation)]
    values = sign * opt.team.mean_of(np.array(values))
    base, changes = float(values[0]), values[n_bases:] - values[0]

    def finish() -> None:
        at, momentum = 0, group["momentum"]
        sampler.rounding = evaluation.rounding
        if n_bases == 2:
            sampler.trend.compare(base, float(values[1]))
        buffers = sampler.memory.beside("momentum_buffer") if momentum else None
        for probe in probes:
            own = buffers and [buffers[i] for i in sampler.members[probe.layer]]
            probe.move(sampler, group, base, changes[at : at + probe.n_sides], own)
            at += probe.n_sides
        sampler.memory.step += 1
        sampler.trend.watch(base, sampler.n_steps)

    return sign * base, finish
