"""First order: ordinary gradients, but only sampled coordinates move (section 3 of the paper)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from scgd.checks import number
from scgd.policies import Musketeer, Policy
from scgd.torch import kernels
from scgd.torch.base import CoordinateOptimizer, watchable
from scgd.torch.distributed import Team
from scgd.torch.draws import part_of
from scgd.torch.entry_sampler import SAMPLINGS, EntrySampler
from scgd.torch.layout import GRANULARITIES, Layout, is_plain, real_entries
from scgd.torch.samplers import UnitSampler
from scgd.typing import Array


class SCGD(CoordinateOptimizer):
    r"""Stochastic coordinate gradient descent on the gradients that ``backward`` leaves.

    Each step draws a fraction of the coordinates from the policy's weights :math:`d_n`, moves only
    those, :math:`\theta^{(k)} \leftarrow \theta^{(k)} - \gamma g^{(k)}` (Eq. 3), and learns from
    their gradients which coordinates to draw next (Eq. 7).

    Parameters
    ----------
    params
        Parameters, named parameters or groups; every keyword below may be set per group, and each
        group has a sampler of its own.
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
    half_life
        After how many steps a learned gain counts half, so that the sampler follows gradients that
        change; ``None`` is the paper's sum of all gains. Used by l1 weights over coordinates.
    rule
        What a gradient becomes on the coordinates drawn: ``"sgd"``, ``"rms"`` (divided by the root
        of the mean square) or ``"adam"``; moments count a coordinate's own visits.
    momentum, dampening, nesterov
        For ``"sgd"``, as in :class:`torch.optim.SGD`.
    betas, eps, amsgrad
        For ``"adam"``, as in :class:`torch.optim.Adam`; ``"rms"`` uses ``betas[1]`` and ``eps``.
    weight_decay, decoupled_weight_decay
        Coefficient of an l2 penalty, part of the gradient of the coordinates drawn; decoupled, they
        shrink by ``lr * weight_decay`` instead and the gains do not see it.
    maximize
        Climb instead of descending.
    seed
        Seed of the draws; ``None`` takes a fresh one, the same in all processes where
        torch.distributed runs. Global generators are never used.
    fused
        ``None``: one compiled pass does the whole step where it can; ``False``: never; ``True``:
        refuse settings for which there is no such pass.
    foreach, capturable, differentiable
        Accepted where they ask for nothing, refused otherwise.
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

    own = ("fraction", "sampling", "half_life", "fused")

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
        half_life: float | None = 1000.0,
        rule: str = "sgd",
        momentum: float = 0.0,
        dampening: float = 0.0,
        nesterov: bool = False,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        amsgrad: bool = False,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        maximize: bool = False,
        seed: int | None = None,
        process_group: Any = None,
        check_every: int = 100,
        fused: bool | None = None,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
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
            number(group["fraction"], "fraction", 0, 1, ends="(]")
        if group["half_life"] is not None:
            number(group["half_life"], "half_life", 0, ends="()")
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

    def n_draws(self, group: dict[str, Any], layout: Layout) -> int:
        """Return how many coordinates or units a group draws."""
        if group["block_size"] is not None:
            n_draws: int = group["block_size"]
        else:
            number(group["fraction"], "fraction", 0, 1, ends="(]")
            n_draws = max(1, int(group["fraction"] * layout.n_units))
        if n_draws > layout.n_units and group["sampling"] != "replacement":
            raise ValueError(
                f"block_size must be at most the {layout.n_units} coordinates or units of the "
                f"group, got {n_draws}"
            )
        return n_draws

    def make_sampler(
        self, group: dict[str, Any], layout: Layout, seed: int
    ) -> EntrySampler | UnitSampler:
        """Return the sampler of a group."""
        given = group["policy"], layout, self.n_draws(group, layout), group["sampling"], seed
        single = layout.starts is None
        sampler = EntrySampler(*given, group["half_life"]) if single else UnitSampler(*given)
        if group["fused"] and not (sampler.fusible and is_plain_sgd(group)):
            raise ValueError(
                "fused=True needs plain SGD on single coordinates, sampling='poisson' and l1 or "
                "uniform weights; leave fused out to take the fastest way there is"
            )
        return sampler

    @watchable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move the coordinates drawn for this step; return what the closure returned."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        groups = self.prepare()
        for g, group in groups:
            views = self._fused_views(g, group)
            if views is not None:
                self._step_fused(g, group, views)
            else:
                self._step_gathered(g, group)
            if self.samplers[g].n_steps == 1:
                self.publish(g)
        self.team.check(self)
        return loss

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a pickle's dictionary, or the groups and state of a loaded state dict."""
        self._views = {}
        super().__setstate__(state)

    def _fused_views(self, g: int, group: dict[str, Any]) -> list[Array] | None:
        """Return the parameters as flat arrays where one pass can do the whole step."""
        sampler, layout = self.samplers[g], self.layouts[g]
        if not (sampler.fusible and is_plain_sgd(group) and sampler.pending is None):
            return None
        if self.team.group is not None or group["fused"] is False:
            return None
        views = self._views.get(g)
        # The layout compares sizes, strides and addresses before every step.
        if views is None or views[0] is not layout.places:
            views = self._views[g] = layout.places, flat_views(layout.params, layout)
        return views[1]

    def _step_fused(self, g: int, group: dict[str, Any], views: list[Array]) -> None:
        sampler, layout = self.samplers[g], self.layouts[g]
        found = list(map(flat_gradient, layout.params, layout.shapes, views))
        words, numbers = sampler.words(), sampler.numbers()
        sign = -1.0 if group["maximize"] else 1.0
        rates(group, sampler, sign, numbers)
        expected, everywhere, bounds = 0.0, True, layout.bounds
        learn = kernels.LEARNING[sampler.policy.gain] if sampler.learns else None
        for i, (theta, grads) in enumerate(zip(views, found, strict=True)):
            if grads is None:
                everywhere = False
            elif learn is not None:
                gains = sampler.distribution.sums[bounds[i] : bounds[i + 1]]
                total, chances = learn(theta, grads, gains, bounds[i], words, numbers)
                expected += chances
                sampler.settle(i, total)
            else:
                kernels.sgd_uniform(theta, grads, bounds[i], words, numbers)
        sampler.close(expected if everywhere else None)

    @torch.no_grad()
    def _step_gathered(self, g: int, group: dict[str, Any]) -> None:
        """Draw, gather the gradients drawn, move those coordinates, put them back."""
        sampler, layout = self.samplers[g], self.layouts[g]
        draw = sampler.draw()
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
            part = part_of(draw, present)
            moved = grads[present]
            self.move(g, part, moved)
            grads[present] = moved
        else:
            present = None
            self.move(g, draw, grads)
        sampler.learn(draw, grads, present)


def rates(group: dict[str, Any], sampler: EntrySampler, sign: float, numbers: Array) -> None:
    """Write the rates of a fused pass; probabilities there are in units of 2^-30."""
    lr, importance = sign * float(group["lr"]), group["importance"]
    numbers[kernels.DECAY] = sign * group["weight_decay"]
    if importance is None:
        numbers[kernels.RATE] = lr
    else:
        share = sampler.n_draws / sampler.n_coords if importance == "relative" else 1.0
        numbers[kernels.RATE_BY_PROB] = lr * share * kernels.CERTAIN


def checked(p: torch.Tensor) -> torch.Tensor | None:
    """Return a parameter's gradient, if any; refuse a sparse one."""
    if p.grad is not None and p.grad.layout != torch.strided:
        raise RuntimeError(
            "SCGD does not support sparse gradients; use sparse=False in the embedding, "
            "or torch.optim.SparseAdam for these parameters"
        )
    if p.grad is None:
        return None
    if p.grad.shape != p.shape:
        raise RuntimeError(
            f"a gradient of shape {tuple(p.grad.shape)} belongs to a parameter of shape "
            f"{tuple(p.shape)}: the parameter was resized after backward; run backward again"
        )
    return p.grad.resolve_conj()


def flat_views(params: list[torch.Tensor], layout: Layout) -> list[Array] | None:
    """Return parameters as flat arrays sharing their memory, or None if some cannot be."""
    wanted = torch.float64 if layout.dtype == np.float64 else torch.float32
    views = []
    for p in params:
        if p.dtype != wanted or not is_plain(p):
            return None
        views.append(p.detach().numpy().reshape(-1))
    return views


def flat_gradient(p: torch.Tensor, shape: torch.Size, theta: Array) -> Array | None:
    """Return a gradient as a flat array like ``theta``, the flat entries of its parameter."""
    if type(p.grad) is torch.Tensor:
        try:
            grad = p.grad.numpy()
        except (RuntimeError, TypeError):  # sparse, conjugated, or part of a graph itself
            return plain_gradient(p)
        if grad.shape == shape and grad.dtype == theta.dtype:
            return grad.reshape(-1)  # a copy where it is not contiguous
    return plain_gradient(p)


def plain_gradient(p: torch.Tensor) -> Array | None:
    """Return any gradient as a flat array of its parameter's precision and length."""
    grad = checked(p)
    return None if grad is None else real_entries(grad).to(p.dtype).contiguous().numpy().reshape(-1)


def is_plain_sgd(group: dict[str, Any]) -> bool:
    """Whether a group moves along its gradients and remembers no moments."""
    decoupled = group["decoupled_weight_decay"] and group["weight_decay"]
    return group["rule"] == "sgd" and not group["momentum"] and not decoupled
