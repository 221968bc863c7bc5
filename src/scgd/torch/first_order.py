"""First order: ordinary gradients, but only sampled coordinates move (section 3 of the paper)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from scgd.policies import Musketeer, Policy
from scgd.policies.law import GAINS
from scgd.torch import kernels
from scgd.torch.base import CoordinateOptimizer, check_positive
from scgd.torch.distributed import Team
from scgd.torch.laws import SAMPLINGS, Draw, EntryLaw, UnitLaw, make_law
from scgd.torch.layout import FLOATS, GRANULARITIES, Layout, is_plain, real_entries
from scgd.typing import Array

__all__ = ["SCGD"]


class SCGD(CoordinateOptimizer):
    r"""Stochastic coordinate gradient descent on the gradients that ``backward`` leaves.

    Each step draws a fraction of the coordinates from the policy's weights :math:`d_n`, moves only
    those, :math:`\theta^{(k)} \leftarrow \theta^{(k)} - \gamma g^{(k)}` (Eq. 3), and learns from
    their gradients which coordinates to draw next (Eq. 7).

    Parameters
    ----------
    params
        Parameters, named parameters or groups; every keyword below may be set per group, and each
        group has a law of its own.
    lr
        Learning rate.
    fraction, block_size
        How much is drawn per step: a fraction of the coordinates (or units), or a number of them.
    policy
        ``"musketeer"``, ``"uniform"`` or an object such as ``scgd.Musketeer(gain="square")``.
    importance
        ``None``; ``"inverse"``: steps divided by the inclusion probability, so that they average to
        the gradient; ``"relative"``: divided by :math:`p\,d^{(k)}`, the paper's ADAPTIVE.
    sampling
        ``"poisson"`` (default): every coordinate decides for itself, in one fused pass; the number
        drawn varies. ``"distinct"``: exactly m without replacement. ``"sequential"``: that draw,
        gains divided by the single-draw weight as in the authors' code. ``"replacement"``: m
        independent draws, repeats add up. Units are drawn ``"distinct"`` or with ``"replacement"``.
    granularity
        What is drawn: ``"coordinates"``, ``"rows"``, ``"chunks"`` of 1024 entries or ``"tensors"``.
    rule
        What a gradient becomes on the coordinates drawn: ``"sgd"`` (with ``momentum`` and
        ``nesterov``), ``"rms"`` (mean square with ``betas[1]``) or ``"adam"``; moments count a
        coordinate's own visits.
    weight_decay
        Coefficient of an l2 penalty, part of the gradient of the coordinates drawn.
    maximize
        Climb instead of descending.
    seed
        Seed of the draws; ``None`` takes a fresh one. Global generators are never used.
    process_group, check_every
        Data parallel training: see :mod:`scgd.torch.distributed`.

    Notes
    -----
    With single coordinates every step is a phase, so a policy's ``length`` has no effect; with
    units it has. Coordinates whose ``grad`` is ``None`` stay and learn nothing. A coordinate drawn
    with a NaN gradient becomes NaN, as with any torch optimizer, and earns nothing.

    Examples
    --------
    >>> theta = torch.nn.Parameter(torch.ones(1000))
    >>> optimizer = SCGD([theta], lr=0.5, seed=0)
    >>> for _ in range(400):
    ...     optimizer.zero_grad()
    ...     loss = theta.square().sum() / 2
    ...     loss.backward()
    ...     _ = optimizer.step()
    >>> loss.item() < 1.0  # from 500, moving a tenth of the coordinates per step
    True
    """

    own = ("fraction", "sampling")

    def __init__(
        self,
        params: Any,
        lr: float | torch.Tensor = 1e-3,
        *,
        fraction: float = 0.1,
        block_size: int | None = None,
        policy: str | Policy = "musketeer",
        importance: str | None = None,
        sampling: str | None = None,
        granularity: str = "coordinates",
        rule: str = "sgd",
        momentum: float = 0.0,
        nesterov: bool = False,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        maximize: bool = False,
        seed: int | None = None,
        process_group: Any = None,
        check_every: int = 100,
    ) -> None:
        self._views: dict[int, Any] = {}
        super().__init__(params, locals(), Team(process_group, check_every))

    @classmethod
    def published(
        cls, params: Any, lr: float = 0.01, *, sharpness: float = 10.0, **settings: Any
    ) -> SCGD:
        r"""Return the optimizer behind the published network curves.

        A tenth of the coordinates without replacement; gains are running means of
        :math:`g^{(k)}/d^{(k)}` over a coordinate's visits, divided by the largest; softmax weights
        with :math:`\eta` = ``sharpness`` (1, 2 and 10 in the paper) and no uniform part.
        """
        policy = Musketeer(
            gain="average",
            normalization="softmax",
            sharpness=sharpness,
            mixing=0.0,
            memory="visits",
            rescale=True,
        )
        return cls(params, lr, policy=policy, sampling="sequential", **settings)

    def check_group(self, group: dict[str, Any]) -> None:
        """Refuse settings that make no sense; resolve names."""
        super().check_group(group)
        if group["granularity"] is None:
            raise ValueError(f"granularity must be one of {GRANULARITIES}, got None")
        if group["block_size"] is None:
            check_positive("fraction", group["fraction"])
            if group["fraction"] > 1:
                raise ValueError(f"fraction must lie in (0, 1], got {group['fraction']!r}")
        if getattr(group["policy"], "dense", False):
            raise ValueError("the full policy is plain torch.optim.SGD; use that, or fraction=1.0")
        single = group["granularity"] == "coordinates"
        if group["sampling"] is None:
            group["sampling"] = "poisson" if single else "distinct"
        known = SAMPLINGS if single else ("distinct", "replacement")
        if group["sampling"] not in known:
            raise ValueError(
                f"sampling must be one of {known} with granularity={group['granularity']!r}, "
                f"got {group['sampling']!r}"
            )

    def make_law(self, group: dict[str, Any], layout: Layout, seed: int) -> EntryLaw | UnitLaw:
        """Return the law of a group."""
        n_draws = group["block_size"] or max(1, int(group["fraction"] * layout.n_units))
        if n_draws > layout.n_units and group["sampling"] != "replacement":
            raise ValueError(
                f"block_size must be at most the {layout.n_units} coordinates or units of the "
                f"group, got {n_draws}"
            )
        return make_law(group["policy"], layout, n_draws, group["sampling"], seed)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move the coordinates drawn for this step; return what the closure returned."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for g, group in self.filled_groups():
            views = self._fused_views(g, group)
            if views is not None:
                self._step_fused(g, group, views)
            else:
                self._step_gathered(g, group)
        self.team.check(self)
        return loss

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a pickle's dictionary, or the groups and state of a loaded state dict."""
        super().__setstate__(state)
        self._views = {}
        self.__dict__.setdefault("team", Team(None, 0))

    def _fused_views(self, g: int, group: dict[str, Any]) -> list[Array] | None:
        """Return the parameters as flat arrays where one pass can do the whole step."""
        law = self.laws[g]
        plain = group["rule"] == "sgd" and not group["momentum"]
        if not (law.fusible and plain and law.pending is None) or self.team.group is not None:
            return None
        places = [p.data_ptr() for p in group["params"]]
        if g not in self._views or self._views[g][0] != places:
            self._views[g] = places, flat_views(group["params"], self.layouts[g])
        return self._views[g][1]

    def _step_fused(self, g: int, group: dict[str, Any], views: list[Array]) -> None:
        law, layout = self.laws[g], self.layouts[g]
        words, numbers = law.words(), law.numbers()
        sign = -1.0 if group["maximize"] else 1.0
        rates(group, law, sign, numbers)
        gain = GAINS.index(law.policy.gain) if law.learns else 0
        for i, (p, theta) in enumerate(zip(group["params"], views, strict=True)):
            if p.grad is None:
                continue
            grads, offset = flat_gradient(p, layout), layout.bounds[i]
            if law.learns:
                gains = law.law.sums[offset : layout.bounds[i + 1]]
                total = kernels.sgd_learning(theta, grads, gains, offset, words, numbers, gain)
                law.settle(i, total)
            else:
                kernels.sgd_uniform(theta, grads, offset, words, numbers)
        law.close()

    def _step_gathered(self, g: int, group: dict[str, Any]) -> None:
        """Draw, gather the gradients drawn, move those coordinates, put them back."""
        law, layout = self.laws[g], self.layouts[g]
        draw = law.draw()
        pieces = layout.split(draw.coords)
        alone = self.team.group is None
        params = layout.params
        seen = [(i, where) for i, where in pieces if params[i].grad is not None]
        # In a team a gradient that is missing here may be there elsewhere, unless it is frozen.
        moving = seen if alone else [piece for piece in pieces if params[piece[0]].requires_grad]
        found = [checked(p) for p in params]
        grads = layout.gather(found, draw.coords, seen, draw.sizes)
        self.team.mean(grads)
        if group["maximize"]:
            np.negative(grads, out=grads)
        if len(moving) < len(pieces):
            present = np.zeros(len(grads), bool)
            for _, where in moving:
                present[where] = True
            part = Draw(draw.coords[present], draw.probs[present])
            moved = grads[present]
            self.move(g, part, moved)
            grads[present] = moved
        else:
            present = None
            self.move(g, draw, grads)
        law.learn(draw, grads, present)


def rates(group: dict[str, Any], law: EntryLaw, sign: float, numbers: Array) -> None:
    """Write the rates of a fused pass; probabilities there are in units of 2^-30."""
    lr, importance = sign * float(group["lr"]), group["importance"]
    numbers[kernels.DECAY] = sign * group["weight_decay"]
    if importance is None:
        numbers[kernels.RATE] = lr
    else:
        share = law.n_draws / law.n_coords if importance == "relative" else 1.0
        numbers[kernels.RATE_BY_PROB] = lr * share * kernels.CERTAIN


def checked(p: torch.Tensor) -> torch.Tensor | None:
    """Return a parameter's gradient, if any; refuse a sparse one."""
    if p.grad is not None and p.grad.layout != torch.strided:
        raise RuntimeError(
            "SCGD does not support sparse gradients; use sparse=False in the embedding, "
            "or torch.optim.SparseAdam for these parameters"
        )
    return p.grad if p.grad is None else p.grad.resolve_conj()


def flat_views(params: list[torch.Tensor], layout: Layout) -> list[Array] | None:
    """Return parameters as flat arrays sharing their memory, or None if some cannot be."""
    wanted = torch.float64 if layout.dtype == np.float64 else torch.float32
    views = []
    for p in params:
        if p.dtype != wanted or not is_plain(p):
            return None
        views.append(p.detach().numpy().reshape(-1))
    return views


def flat_gradient(p: torch.Tensor, layout: Layout) -> Array:
    """Return a gradient as a flat array of the working precision."""
    grad = checked(p)
    if grad.requires_grad or grad.dtype not in FLOATS or not grad.is_contiguous():
        grad = real_entries(grad).to(p.dtype).contiguous()
    return grad.numpy().reshape(-1)
