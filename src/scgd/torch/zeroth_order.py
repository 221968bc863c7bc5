"""Zeroth order: train with forward passes only."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch

from scgd.estimators import (
    ESTIMATORS,
    CentralDifference,
    ForwardDifference,
    GaussianSmoothing,
    SphereSmoothing,
)
from scgd.estimators import SPSA as CoreSPSA
from scgd.method import pick
from scgd.policies import Full, Musketeer, Policy, Uniform
from scgd.torch.arguments import check_arguments, check_number, select
from scgd.torch.base import (
    COMMON,
    MOMENTS,
    REFUSED,
    CoordinateOptimizer,
    watchable,
)
from scgd.torch.directions import Auto, MeZO, SparseMeZO
from scgd.torch.distributed import Team
from scgd.torch.evaluation import BACKWARD, Evaluation, Stillness
from scgd.torch.layer_sampler import LayerSampler
from scgd.torch.layout import Layout, real_entries, trainable
from scgd.torch.probes import (
    Probed,
    masks_of,
    probe_coordinates,
    probe_dense,
    probe_layers,
    probe_units,
)
from scgd.torch.samplers import FullSampler, ProbeSampler, UnitSampler

DIFFERENCES = (ForwardDifference, CentralDifference)
DIRECTIONS = (GaussianSmoothing, SphereSmoothing, CoreSPSA)
NAMES = {name: made for name, made in ESTIMATORS.items() if name != "first-order"}
NAMES |= {"auto": Auto, "mezo": MeZO, "sparse-mezo": SparseMeZO}
# Above this many coordinates the default sampler knows chunks: one of single coordinates would need
# more memory than the parameters.
MOST_SINGLE = 1 << 20
ZEROTH = (*COMMON, *MOMENTS, *REFUSED, "radius", "estimator", "seed")


class ZeroOrderSCGD(CoordinateOptimizer):
    r"""Training that sees only losses: forward passes and nothing else.

    With the parameters alone a step probes a few layers, each along random signs *u* by a radius
    *h*,

    .. math:: s = \frac{f(\theta + h u, \xi) - f(\theta, \xi)}{h} - \frac h2 C , \qquad
              \theta \leftarrow \theta - \frac{\eta\, c}{C}\, s\, u ,

    where the curvature *C* of the layer, and with it radius and rate, is found on the way
    (:mod:`scgd.torch.layer_sampler`). Other estimators follow the paper (Algorithm 1: one or a few
    coordinates, moved along difference quotients) or are baselines along one direction for all
    parameters. Entries are changed in place and their saved values copied back, so nothing drifts
    in any precision; ``.grad`` is never used.

    Parameters
    ----------
    params
        Parameters, named parameters or groups with settings of their own; frozen ones stay, and
        what is frozen or unfrozen later is followed.
    lr
        ``estimator="auto"``: a factor on the rates found (default 1; above about 7 it changes
        nothing). Otherwise the learning rate (default 1e-3).
    radius
        How far a probe goes, in units of the parameters; ``None`` lets ``"auto"`` find it (others:
        1e-3). Read at every step.
    estimator
        ``"auto"``; ``"forward"`` (1 + m losses per step) or ``"central"`` (2 m) for single
        coordinates; ``"gaussian"``, ``"sphere"``, ``"spsa"``, ``"mezo"`` or ``"sparse-mezo"`` (2
        losses) along a random direction; or an estimator object.
    only
        A regular expression, or several, that must match whole parts of a parameter's dotted name:
        ``layers.1`` finds ``model.layers.1.weight`` and not ``model.layers.10.weight``. Needs
        ``model.named_parameters()``.
    policy
        How layers or coordinates are drawn: ``"musketeer"`` (by what they have brought) or
        ``"uniform"``; for directions ``"full"`` (all parameters at once), which otherwise live on
        the units drawn.
    block_size
        Layers (default 4), coordinates (default 1) or units per step.
    granularity
        What the sampler of coordinates knows: ``"coordinates"``, ``"rows"``, ``"chunks"`` of 1024
        entries or ``"tensors"``; differences then take a random entry of the unit drawn. Default:
        coordinates up to a million of them, chunks above.
    momentum
        A velocity, also for ``"auto"`` (where it leaves the mean step as it is) and for directions;
        it costs a copy of the parameters.
    importance, rule, nesterov, dampening, betas, eps, amsgrad, maximize, seed
        As in :class:`~scgd.torch.SCGD`, for coordinates and units.
    weight_decay, decoupled_weight_decay
        As there; directions and ``"auto"`` decay decoupled in any case.
    hold_still
        Run all losses of a step with the same dropout (from one state of torch's global generators)
        and put BatchNorm's running statistics back after each.
    keep_copy
        For the full policy: copy the parameters to come back exactly.
    process_group, check_every
        Data parallel training: see :mod:`scgd.torch.distributed`.
    foreach, fused, capturable, differentiable
        Accepted where they ask for nothing, refused otherwise.

    Notes
    -----
    A loss that is not finite at the parameters raises, with the parameters as they were before the
    step; ``"auto"`` answers one at a probe with a smaller radius. For other estimators: in single
    precision the loss has a relative error near 1e-7; a radius near 1e-3 to 1e-2 times the size of
    the parameters balances it against the bias.

    Examples
    --------
    >>> theta = torch.nn.Parameter(torch.ones(3))
    >>> optimizer = ZeroOrderSCGD([theta], seed=0)
    >>> for _ in range(60):
    ...     loss = optimizer.step(lambda: theta.square().sum())
    >>> loss.item() < 1e-2
    True

    The algorithm of the paper:

    >>> theta = torch.nn.Parameter(torch.ones(3))
    >>> optimizer = ZeroOrderSCGD([theta], 0.5, radius=1e-2, estimator="central", seed=0)
    >>> for _ in range(30):
    ...     loss = optimizer.step(lambda: theta.square().sum())
    >>> loss.item() < 1e-3
    True
    """

    carried: ClassVar[tuple[str, ...]] = (
        *CoordinateOptimizer.carried,
        "hold_still",
        "keep_copy",
        "n_forwards",
    )
    own = ("radius", "estimator")

    def __init__(
        self,
        params: Any,
        lr: float | torch.Tensor | None = None,
        *,
        radius: float | None = None,
        estimator: Any = "auto",
        only: str | Sequence[str] | None = None,
        policy: str | Policy | None = None,
        block_size: int | None = None,
        granularity: str | None = None,
        importance: str | None = None,
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
        hold_still: bool = True,
        keep_copy: bool = False,
        process_group: Any = None,
        check_every: int = 100,
        foreach: bool | None = None,
        fused: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_arguments(params, locals())
        if fused:
            raise ValueError("ZeroOrderSCGD does not take fused=True: leave fused out")
        self.hold_still, self.keep_copy = hold_still, keep_copy
        self.n_forwards, self.stillness = 0, Stillness()
        given = {name: value for name, value in locals().items() if name in ZEROTH}
        super().__init__(select(params, only), given, Team(process_group, check_every))

    def check_group(self, group: dict[str, Any]) -> None:
        """Refuse settings that make no sense; resolve names and what was left open."""
        estimator = group["estimator"] = pick(group["estimator"], NAMES, "estimator")
        if not isinstance(estimator, DIFFERENCES + DIRECTIONS):
            raise ValueError(f"estimator must be one of {sorted(NAMES)}, got {estimator!r}")
        auto, differences = isinstance(estimator, Auto), isinstance(estimator, DIFFERENCES)
        if group["policy"] is None:
            group["policy"] = Musketeer() if auto or differences else Full()
        for name, found, usual in (("lr", 1.0, 1e-3), ("block_size", 4, 1)):
            if group[name] is None:
                group[name] = found if auto else usual
        if group["radius"] is None and not auto:
            group["radius"] = 1e-3
        super().check_group(group)
        if group["radius"] is not None:
            check_number("radius", group["radius"], 1e-30, 1e30)  # beyond, sums leave float32
        if auto:
            check_auto(group)
            return
        dense = getattr(group["policy"], "dense", False)
        if dense and differences:
            raise ValueError(
                "the full policy needs a direction: use estimator='spsa', 'gaussian', 'sphere', "
                "'mezo' or 'sparse-mezo', or another policy"
            )
        if dense and (group["rule"] != "sgd" or group["nesterov"] or group["dampening"]):
            raise ValueError(
                "the full policy keeps no moments but a momentum: use rule='sgd' without nesterov "
                "and dampening"
            )
        if isinstance(estimator, SparseMeZO) and not dense:
            raise ValueError("sparse-mezo needs the full policy: it chooses entries by their size")

    def make_layout(self, group: dict[str, Any]) -> Layout:
        """Return the coordinates of a group's trainable parameters."""
        params = trainable(group["params"])
        if any(hasattr(p, "to_local") for p in params):
            raise ValueError(
                "ZeroOrderSCGD does not train sharded parameters (FSDP2): every process would see "
                "the others' probes in its losses; replicate the model and pass process_group"
            )
        if group["granularity"] is None:
            n_coords = sum(p.numel() for p in params)
            group["granularity"] = "coordinates" if n_coords <= MOST_SINGLE else "chunks"
        layout = Layout(params, group["granularity"])
        if group["radius"] is not None:
            warn_if_lost(group["radius"], params)
        return layout

    def n_draws(self, group: dict[str, Any], layout: Layout) -> int:
        """Return how many coordinates, units or layers a group draws."""
        if getattr(group["policy"], "dense", False):
            return layout.n_coords  # type: ignore[no-any-return]
        n_draws: int = group["block_size"]
        if n_draws > layout.n_units and not isinstance(group["estimator"], Auto):
            raise ValueError(
                f"block_size must be at most the {layout.n_units} coordinates or units of the "
                f"group, got {n_draws}"
            )
        return n_draws

    def make_sampler(self, group: dict[str, Any], layout: Layout, seed: int) -> Any:
        """Return the sampler of a group."""
        policy, n_draws = group["policy"], self.n_draws(group, layout)
        if isinstance(group["estimator"], Auto):
            return LayerSampler(policy, layout, n_draws, seed)
        if getattr(policy, "dense", False):
            return FullSampler(layout, seed)
        kind = ProbeSampler if isinstance(group["estimator"], DIFFERENCES) else UnitSampler
        return kind(policy, layout, n_draws, "distinct", seed)

    def quantities(self, g: int) -> dict[str, Any]:
        """Return what a group remembers of each parameter."""
        known: dict[str, Any] = {}
        group = self.param_groups[g]
        if isinstance(self.samplers[g], FullSampler | LayerSampler):
            if group["momentum"]:
                known["momentum_buffer"] = (None, False)
            if isinstance(group["estimator"], SparseMeZO):
                known["mask"] = (torch.bool, False)
            return known
        return super().quantities(g)

    @watchable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step; return the loss at the parameters before it.

        With central differences or two-sided directions it is the mean of the losses around them.
        """
        groups = self.prepare()
        if closure is None:
            return self._no_step(groups)
        if not groups:
            raise RuntimeError("every parameter is frozen; unfreeze some before the step")
        first = self.layouts[groups[0][0]]
        stillness = self.stillness if self.hold_still else None
        evaluation = Evaluation(closure, stillness, first.params[0])
        with torch.set_grad_enabled(False):
            # All groups are probed before any moves: if a loss fails, none has moved.
            try:
                seen = [self._probe_group(g, group, evaluation) for g, group in groups]
            except RuntimeError as error:
                if "does not require grad" in str(error):
                    raise RuntimeError(BACKWARD) from error
                raise
            for _, move in seen:
                move()
        self.n_forwards += evaluation.n_calls
        for g, _ in groups:
            if self.samplers[g].n_steps == 1:
                self.publish(g)
        self.team.check(self)
        double = first.dtype == np.float64
        return torch.scalar_tensor(seen[0][0], dtype=torch.float64 if double else torch.float32)

    def _no_step(self, groups: list[tuple[int, dict[str, Any]]]) -> None:
        """Only make the state, as torch.distributed.checkpoint asks with a rate of zero."""
        if any(float(group["lr"]) != 0.0 for group in self.param_groups):
            raise TypeError("ZeroOrderSCGD.step needs a closure that returns the loss")
        for g, group in groups:
            masks_of(self.samplers[g], self.layouts[g], group["estimator"])
            self.publish(g)

    def _probe_group(self, g: int, group: dict[str, Any], evaluation: Evaluation) -> Probed:
        """Return the loss of a group's probes, and what makes its move."""
        estimator = group["estimator"]
        if isinstance(estimator, Auto):
            return probe_layers(self, g, group, evaluation)
        if isinstance(estimator, DIFFERENCES):
            return probe_coordinates(self, g, group, evaluation)
        if getattr(group["policy"], "dense", False):
            return probe_dense(self, g, group, evaluation)
        return probe_units(self, g, group, evaluation)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a pickle's dictionary, or the groups and state of a loaded state dict."""
        super().__setstate__(state)
        self.stillness = Stillness()


def check_auto(group: dict[str, Any]) -> None:
    """Refuse settings that the automatic estimator has no use for."""
    if not isinstance(group["policy"], Musketeer | Uniform):
        raise ValueError(
            f"estimator='auto' draws layers with policy 'musketeer' or 'uniform', got "
            f"{group['policy']!r}"
        )
    if group["rule"] != "sgd" or group["nesterov"] or group["dampening"]:
        raise ValueError(
            "estimator='auto' finds its own rates: use rule='sgd' without nesterov and dampening"
        )
    if group["importance"] is not None:
        raise ValueError("estimator='auto' needs importance=None")


def warn_if_lost(radius: float, params: list[torch.Tensor]) -> None:
    """Warn if some entries are too large for the radius to change them."""
    for p in params:
        entries = real_entries(p)
        if entries.numel() == 0 or entries.is_meta:
            continue
        low, high = entries.aminmax()  # without a temporary of the tensor's size
        largest = max(-float(low), float(high))
        least = torch.finfo(entries.dtype).eps * largest
        if radius < least:
            warnings.warn(
                f"radius={radius} is lost in the rounding of {entries.dtype} entries as large as "
                f"{largest:.3g}; use a radius of at least {4 * least:.1g}",
                stacklevel=4,
            )
            return
