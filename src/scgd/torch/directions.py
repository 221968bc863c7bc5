r"""Zeroth order along one random direction for all parameters: baselines of coordinate sampling.

Gaussian and sphere smoothing, SPSA, MeZO and Sparse-MeZO. The direction is not stored, unless it is
short: it is drawn again from its seed, a chunk at a time, for every pass that adds a multiple of it
to the parameters in place. Coming back that way leaves rounding errors (none with single
coordinates, whose values are saved); ``keep_copy=True`` trades a copy of the parameters for exact
values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from scgd.checks import number, settle
from scgd.estimators import SPSA, GaussianSmoothing, SphereSmoothing, halfway
from scgd.questions import BASE, Point, Question
from scgd.torch.kernels import splitmix
from scgd.torch.layout import Layout, real_entries
from scgd.typing import Floats, Ints

CHUNK = 1 << 18
SHORT = 1 << 20
"""Entries up to which a direction is kept for the step: a few megabytes, a third of the draws."""


@dataclass(frozen=True)
class MeZO(GaussianSmoothing):
    r"""Two-sided Gaussian direction, :math:`g = \frac{f(\theta + hU) - f(\theta - hU)}{2h} U`.

    Examples
    --------
    >>> from scgd.torch import ZeroOrderSCGD
    >>> theta = torch.nn.Parameter(torch.ones(4))
    >>> optimizer = ZeroOrderSCGD([theta], 0.01, estimator="mezo", radius=1e-3, seed=0)
    >>> for _ in range(100):
    ...     loss = optimizer.step(lambda: theta.square().sum())
    >>> bool(loss < 1)  # from 4
    True
    """

    def probe(
        self, point: Point, coords: Ints, radii: Floats, lower: Floats, upper: Floats, rng: Any
    ) -> Question:
        """Return two points on opposite sides; parameters of networks have no bounds."""
        here, moves = point.x[coords], radii * self.direction(len(coords), rng)
        entries = np.stack([here - moves, here + moves])
        return Question(point, coords, np.full(2, BASE), entries, here, radii)

    def gradient(self, question: Question, values: Floats) -> tuple[Floats, float]:
        """Return the directional difference spread over the support, and the mean value."""
        moved, change = question.entries[1] - question.entries[0], values[1] - values[0]
        grads = 0.25 * change * moved / question.radii**2
        return np.asarray(grads), float(halfway(values[0], values[1]))


@dataclass(frozen=True)
class SparseMeZO(MeZO):
    """MeZO on the small entries of each tensor (arXiv 2402.15751).

    Which entries are small is settled at the first step and kept: a mask by present size would
    drain itself, because what is trained grows out of it. Others are neither perturbed nor decayed.

    Parameters
    ----------
    kept
        The fraction of each tensor's entries, the smallest in size, that is perturbed and trained.

    Examples
    --------
    >>> SparseMeZO(kept=0.1).kept
    0.1
    """

    kept: float = 0.25

    def __post_init__(self) -> None:
        settle(self, kept=number(self.kept, "kept", 0, 1, ends="(]"))


@dataclass(frozen=True)
class Auto(SPSA):
    """Random signs in a layer, radius and rate found by :mod:`scgd.torch.layer_sampler`."""


class Direction:
    """A random direction over some tensors: drawn once if it is short, else whenever it is needed.

    Parameters
    ----------
    estimator
        Tells how entries are distributed.
    params
        The tensors.
    seed
        The seed of the direction.
    masks
        Which entries take part (default: all).
    """

    def __init__(
        self,
        estimator: Any,
        params: Sequence[torch.Tensor],
        seed: int,
        masks: list[torch.Tensor] | None = None,
    ) -> None:
        self.estimator, self.seed = estimator, seed
        self.entries = [real_entries(p) for p in params]
        self.masks = None if masks is None else [mask.reshape(-1) for mask in masks]
        size = sum(entries.numel() for entries in self.entries)
        flat = self.draw(size) if size <= SHORT else None
        self.whole = None if flat is None else self.shape(flat)
        self.scale = 1.0
        if isinstance(estimator, SphereSmoothing):
            parts = (u for _, u in self.chunks()) if flat is None else (flat,)
            self.scale = 1.0 / math.hypot(*(float(torch.linalg.vector_norm(u)) for u in parts))

    def draw(self, size: int) -> torch.Tensor:
        """Return the whole direction, drawn in one call."""
        device = self.entries[0].device
        double = any(entries.dtype == torch.float64 for entries in self.entries)
        dtype = torch.float64 if double else torch.float32
        flat = torch.empty(size, dtype=dtype, device=device)
        return self.fill(flat, self.generator(0, device))

    def shape(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """Return the direction in each tensor."""
        parts = flat.split([entries.numel() for entries in self.entries])
        if self.masks is not None:
            parts = tuple(u * m for u, m in zip(parts, self.masks, strict=True))
        return [u.view_as(e).to(e) for u, e in zip(parts, self.entries, strict=True)]

    def chunks(
        self, tensors: list[torch.Tensor] | None = None
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield stretches of tensors (the parameters) and of the direction, drawn afresh."""
        for i, entries in enumerate(self.entries if tensors is None else tensors):
            flat, generator = entries.reshape(-1), self.generator(i, entries.device)
            for start in range(0, flat.numel(), CHUNK):
                part = flat[start : start + CHUNK]
                u = self.fill(torch.empty_like(part), generator)
                if self.masks is not None:
                    u.mul_(self.masks[i][start : start + CHUNK])
                yield part, u
            if flat.data_ptr() != entries.data_ptr():
                entries.copy_(flat.view(entries.shape))

    def generator(self, i: int, device: torch.device) -> torch.Generator:
        """Return the generator of the stretches of one parameter."""
        return torch.Generator(device).manual_seed(splitmix(self.seed ^ i) >> 1)

    def fill(self, u: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Draw a stretch of the direction."""
        if isinstance(self.estimator, SPSA):
            return u.random_(0, 2, generator=generator).mul_(2).sub_(1)
        return u.normal_(generator=generator)

    def add(
        self, multiple: float, decay: float = 1.0, onto: list[torch.Tensor] | None = None
    ) -> None:
        """Add a multiple of the direction to the parameters, shrunk by ``decay`` first.

        ``onto`` are tensors like the parameters to add it to instead.
        """
        multiple *= self.scale
        if onto is None:
            self.shrink(decay)
        if self.whole is not None:
            torch._foreach_add_(self.entries if onto is None else onto, self.whole, alpha=multiple)
            return
        for part, u in self.chunks(onto):
            part.add_(u, alpha=multiple)

    def shrink(self, decay: float) -> None:
        """Multiply the entries that take part."""
        if decay == 1.0:
            return
        if self.masks is None:
            torch._foreach_mul_(self.entries, decay)
            return
        for entries, mask in zip(self.entries, self.masks, strict=True):
            entries.mul_(torch.where(mask, decay, 1.0).to(entries.dtype).view(entries.shape))


def small_entries(params: Sequence[torch.Tensor], kept: float) -> list[torch.Tensor]:
    """Return, per tensor, which entries belong to the fraction of smallest size."""
    sizes = [real_entries(p).abs() for p in params]
    return [size <= threshold(size.reshape(-1), kept) for size in sizes]


def threshold(sizes: torch.Tensor, kept: float) -> float:
    """Return the size below which a fraction of the entries lies."""
    if sizes.numel() == 0:
        return 0.0
    sizes = sizes if sizes.dtype == torch.float64 else sizes.float()
    return float(sizes.kthvalue(max(1, int(kept * sizes.numel()))).values)


def probe_along(
    estimator: Any,
    layout: Layout,
    evaluate: Callable[[], float],
    seed: int,
    *,
    lr: float,
    radius: float,
    weight_decay: float = 0.0,
    masks: list[torch.Tensor] | None = None,
    momentum: float = 0.0,
    velocity: Callable[[], list[torch.Tensor]] | None = None,
    keep_copy: bool = False,
    return_first: bool = False,
    reduce: Callable[[list[float]], list[float]] = list,
) -> tuple[float, Callable[[], None]]:
    """Evaluate along a random direction; return the loss at (or around) theta and what moves it.

    The parameters wait where they were last evaluated, which saves a pass over them, or come back
    first if others are to be probed before they move. If an evaluation fails they are put back
    before its error goes on. With ``momentum`` they follow a ``velocity``.
    """
    direction = Direction(estimator, layout.params, seed, masks)
    saved = [real_entries(p).clone() for p in layout.params] if keep_copy else None
    two_sided = isinstance(estimator, SPSA | MeZO)
    at = 0.0  # where the parameters are, in units of the direction

    def go(stop: float, decay: float = 1.0) -> None:
        nonlocal at
        if saved is not None and stop == 0.0 and decay == 1.0:
            for p, old in zip(layout.params, saved, strict=True):
                real_entries(p).copy_(old)
        elif stop != at or decay != 1.0:
            direction.add(stop - at, decay)
        at = stop

    try:
        values = []
        for stop in (radius, -radius) if two_sided else (0.0, radius):
            go(stop)
            values.append(evaluate())
        values = reduce(values)
    except BaseException:
        go(0.0)
        raise
    width = 2.0 * radius if two_sided else -radius
    unbiased = getattr(estimator, "unbiased", False)
    slope = (values[0] - values[1]) / width * (layout.n_coords if unbiased else 1.0)
    decay = 1.0 - lr * weight_decay
    if saved is not None or return_first or decay != 1.0 or momentum:
        go(0.0)
    loss = 0.5 * (values[0] + values[1]) if two_sided else values[0]

    def drift() -> None:
        assert velocity is not None
        buffers = velocity()
        torch._foreach_mul_(buffers, momentum)
        direction.add(slope, onto=buffers)
        direction.shrink(decay)
        torch._foreach_add_(direction.entries, buffers, alpha=-lr)

    return loss, drift if momentum else lambda: go(-lr * slope, decay)
