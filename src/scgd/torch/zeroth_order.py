"""Zeroth order: train with forward passes only, one or a few coordinates at a time."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

from scgd.estimators import (
    ESTIMATORS,
    CentralDifference,
    ForwardDifference,
    GaussianSmoothing,
    SphereSmoothing,
)
from scgd.estimators import SPSA as CoreSPSA
from scgd.policies import Full, Musketeer, Policy
from scgd.recipes import pick
from scgd.torch.base import NO_BOUNDS, CoordinateOptimizer, check_positive, make_rule
from scgd.torch.directions import MeZO, SparseMeZO, probe_along, small_thresholds
from scgd.torch.distributed import Team
from scgd.torch.evaluation import BACKWARD, Evaluation
from scgd.torch.kernels import splitmix
from scgd.torch.laws import Draw, FullLaw, ProbeLaw, UnitLaw
from scgd.torch.layout import Layout, real_entries
from scgd.typing import Array

__all__ = ["ZeroOrderSCGD"]

DIFFERENCES = (ForwardDifference, CentralDifference)
DIRECTIONS = (GaussianSmoothing, SphereSmoothing, CoreSPSA)
NAMES = {name: made for name, made in ESTIMATORS.items() if name != "first-order"}
NAMES |= {"mezo": MeZO, "sparse-mezo": SparseMeZO}
# Above this many coordinates the default law knows chunks: a law of single coordinates would need
# more memory than the parameters.
MOST_SINGLE = 1 << 20
Probed = tuple[float, Callable[[], None]]
"""The loss at the parameters and what makes the move."""


class ZeroOrderSCGD(CoordinateOptimizer):
    r"""Stochastic coordinate descent that sees only losses (Algorithm 1 of the paper).

    A step draws one or a few coordinates, asks the closure for the loss with each of them moved by
    the radius, and moves them along the difference quotients (Example 2 of the paper),

    .. math:: g^{(k)} = \frac{f(\theta + h e_k, \xi) - f(\theta, \xi)}{h} .

    Entries are changed in place and their saved values copied back, so nothing drifts in any
    precision; ``.grad`` is never used.

    Parameters
    ----------
    params
        Parameters, named parameters or groups with settings of their own; frozen ones stay.
    lr
        Learning rate.
    radius
        The smoothing parameter *h*, in units of the parameters.
    estimator
        ``"forward"`` (1 + m losses per step) or ``"central"`` (2 m) for single coordinates;
        ``"gaussian"``, ``"sphere"``, ``"spsa"``, ``"mezo"`` or ``"sparse-mezo"`` (2 losses) along a
        random direction; or an estimator object.
    policy
        How coordinates are drawn: default ``"musketeer"`` for differences, and ``"full"`` (all
        parameters at once) for directions, which otherwise live on the units drawn.
    block_size
        Coordinates (with directions: units) per step.
    granularity
        What the law knows: ``"coordinates"``, ``"rows"``, ``"chunks"`` of 1024 entries or
        ``"tensors"``; differences then take a random entry of the unit drawn. Default: coordinates
        up to a million of them, chunks above.
    importance, rule, momentum, nesterov, betas, eps, weight_decay, maximize, seed
        As in :class:`~scgd.torch.SCGD`.
    fix_model_rng
        Run all losses of a step from the same state of torch's global generators, so that dropout
        is the same in each.
    keep_copy
        For the full policy: copy the parameters to come back exactly.
    process_group, check_every
        Data parallel training: see :mod:`scgd.torch.distributed`.

    Notes
    -----
    In single precision the loss has a relative error near 1e-7; a radius near 1e-3 to 1e-2 times
    the size of the parameters balances it against the bias. A loss that is not finite raises, with
    the parameters as they were before the step.

    Examples
    --------
    >>> theta = torch.nn.Parameter(torch.ones(3))
    >>> optimizer = ZeroOrderSCGD([theta], lr=0.5, radius=1e-2, estimator="central", seed=0)
    >>> for _ in range(30):
    ...     loss = optimizer.step(lambda: theta.square().sum())
    >>> loss.item() < 1e-3
    True
    """

    carried: ClassVar[tuple[str, ...]] = (
        *CoordinateOptimizer.carried,
        "fix_model_rng",
        "keep_copy",
        "n_forwards",
    )
    own = ("radius", "estimator")

    def __init__(
        self,
        params: Any,
        lr: float | torch.Tensor = 1e-3,
        *,
        radius: float = 1e-3,
        estimator: Any = "forward",
        policy: str | Policy | None = None,
        block_size: int = 1,
        granularity: str | None = None,
        importance: str | None = None,
        rule: str = "sgd",
        momentum: float = 0.0,
        nesterov: bool = False,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        maximize: bool = False,
        seed: int | None = None,
        fix_model_rng: bool = False,
        keep_copy: bool = False,
        process_group: Any = None,
        check_every: int = 100,
    ) -> None:
        self.fix_model_rng, self.keep_copy = fix_model_rng, keep_copy
        self.n_forwards = 0
        super().__init__(params, locals(), Team(process_group, check_every))

    def check_group(self, group: dict[str, Any]) -> None:
        """Refuse settings that make no sense; resolve names."""
        estimator = group["estimator"] = pick(group["estimator"], NAMES, "estimator")
        if not isinstance(estimator, DIFFERENCES + DIRECTIONS):
            raise ValueError(f"estimator must be one of {sorted(NAMES)}, got {estimator!r}")
        if group["policy"] is None:
            group["policy"] = Musketeer() if isinstance(estimator, DIFFERENCES) else Full()
        super().check_group(group)
        check_positive("radius", group["radius"])
        dense = getattr(group["policy"], "dense", False)
        if dense and isinstance(estimator, DIFFERENCES):
            raise ValueError(
                "the full policy needs a direction: use estimator='spsa', 'gaussian', 'sphere', "
                "'mezo' or 'sparse-mezo', or another policy"
            )
        if dense and (group["rule"] != "sgd" or group["momentum"]):
            raise ValueError("the full policy keeps no moments: use rule='sgd' without momentum")
        if isinstance(estimator, SparseMeZO) and not dense:
            raise ValueError("sparse-mezo needs the full policy: it chooses entries by their size")

    def make_layout(self, group: dict[str, Any]) -> Layout:
        """Return the coordinates of a group's trainable parameters."""
        trainable = [p for p in group["params"] if p.requires_grad]
        if any(hasattr(p, "to_local") for p in trainable):
            raise ValueError(
                "ZeroOrderSCGD does not train sharded parameters (FSDP2): every process would see "
                "the others' probes in its losses; replicate the model and pass process_group"
            )
        if group["granularity"] is None:
            n_coords = sum(p.numel() for p in trainable)
            group["granularity"] = "coordinates" if n_coords <= MOST_SINGLE else "chunks"
        layout = Layout(trainable, group["granularity"])
        warn_if_lost(group["radius"], trainable)
        return layout

    def make_law(self, group: dict[str, Any], layout: Layout, seed: int) -> Any:
        """Return the law of a group."""
        policy, block_size = group["policy"], group["block_size"]
        if getattr(policy, "dense", False):
            return FullLaw(layout, seed)
        if block_size > layout.n_units:
            raise ValueError(
                f"block_size must be at most the {layout.n_units} coordinates or units of the "
                f"group, got {block_size}"
            )
        kind = ProbeLaw if isinstance(group["estimator"], DIFFERENCES) else UnitLaw
        return kind(policy, layout, block_size, "distinct", seed)

    def step(self, closure: Callable[[], Any] | None = None) -> torch.Tensor:  # type: ignore[override]
        """Take one step; return the loss at the parameters before it.

        With central differences or two-sided directions it is the mean of the losses around them.
        """
        # torch's wrapper, for hooks and the profiler, costs as much as everything else here.
        if self._optimizer_step_pre_hooks or self._optimizer_step_post_hooks or is_watched():
            return self._watched_step(closure)
        return self._plain_step(closure)

    def _plain_step(self, closure: Callable[[], Any] | None = None) -> torch.Tensor:
        if closure is None:
            raise TypeError("ZeroOrderSCGD.step needs a closure that returns the loss")
        groups = self.filled_groups()
        first = self.layouts[groups[0][0]]
        evaluation, gradient = Evaluation(closure, self.fix_model_rng), first.params[0].grad
        with torch.set_grad_enabled(False):
            # All groups are probed before any moves: if a loss fails, none has moved.
            try:
                seen = [self._probe_group(g, group, evaluation) for g, group in groups]
            except RuntimeError as error:
                if "does not require grad" in str(error):
                    raise RuntimeError(BACKWARD) from error
                raise
            if first.params[0].grad is not gradient and first.params[0].grad is not None:
                raise RuntimeError(BACKWARD)
            for _, move in seen:
                move()
        self.n_forwards += evaluation.n_calls
        self.team.check(self)
        double = first.dtype == np.float64
        return torch.scalar_tensor(seen[0][0], dtype=torch.float64 if double else torch.float32)

    step.hooked = True  # type: ignore[attr-defined]
    _watched_step = torch.optim.Optimizer.profile_hook_step(_plain_step)

    def _probe_group(self, g: int, group: dict[str, Any], evaluation: Evaluation) -> Probed:
        """Return the loss of a group's probes, and what makes its move."""
        for p in self.layouts[g].params:
            if not p.requires_grad:
                raise RuntimeError(
                    f"a parameter of shape {tuple(p.shape)} was frozen after the optimizer was "
                    "made; unfreeze it or make a new optimizer"
                )
        if isinstance(group["estimator"], DIFFERENCES):
            return self._probe_coordinates(g, group, evaluation)
        if getattr(group["policy"], "dense", False):
            return self._probe_dense(g, group, evaluation)
        return self._probe_units(g, group, evaluation)

    def _probe_coordinates(self, g: int, group: dict[str, Any], evaluation: Evaluation) -> Probed:
        """Probe the coordinates drawn one by one."""
        law, layout = self.laws[g], self.layouts[g]
        central = isinstance(group["estimator"], CentralDifference)
        coords, probs = law.draw()
        spots = [layout.spot(coord) for coord in coords]
        values, widths = evaluation.differences(layout, coords, spots, group["radius"], central)
        if self.team.group is not None:
            values = self.team.mean_of(np.array(values)).tolist()
        sign = -1.0 if group["maximize"] else 1.0
        grads = []
        for j, width in enumerate(widths):
            low, high = (
                (values[2 * j], values[2 * j + 1]) if central else (values[0], values[1 + j])
            )
            grads.append(sign * (high - low) / width if width else 0.0)
        loss = sum(values) / len(values) if central else values[0]
        return loss, partial(self._move_coordinates, g, group, coords, spots, probs, grads)

    def _move_coordinates(
        self,
        g: int,
        group: dict[str, Any],
        coords: list[int],
        spots: list[Any],
        probs: Array,
        grads: list[float],
    ) -> None:
        """Apply the update rule and learn; weight decay joins the gradients in place."""
        law, rule = self.laws[g], make_rule(group)
        slots, lr, decay = self.slots_for(g, rule), float(group["lr"]), group["weight_decay"]
        importance, hyper = group["importance"], rule.hyper
        for j, (entries, index) in enumerate(spots):
            here = entries[index]
            grads[j] += decay * here
            rate = lr if importance is None else lr * law.factor(probs[j], importance)
            entries[index] = here - rule.kernel(coords[j], grads[j], rate, hyper, slots)
        law.record(grads)

    def _probe_units(self, g: int, group: dict[str, Any], evaluation: Evaluation) -> Probed:
        """Probe the units drawn along a random direction in them."""
        law, layout, estimator = self.laws[g], self.layouts[g], group["estimator"]
        draw = law.draw()
        pieces = layout.split(draw.coords)
        saved = layout.gather(layout.params, draw.coords, pieces)
        rng = np.random.default_rng([law.seed, law.n_steps])
        radii = np.full(len(saved), group["radius"])
        support = np.arange(len(saved))
        theta = saved.astype(np.float64)
        probes = estimator.probe(theta, support, radii, NO_BOUNDS, NO_BOUNDS, rng)
        values = np.empty(len(probes))
        try:
            for j in range(len(probes)):
                layout.scatter(draw.coords, pieces, probes.entries[j].astype(layout.dtype))
                probes.entries[j] = layout.gather(layout.params, draw.coords, pieces)
                values[j] = evaluation()
        finally:
            layout.scatter(draw.coords, pieces, saved)
        grads, loss = estimator.gradient(probes, self.team.mean_of(values))
        grads = grads.astype(layout.dtype) * (-1 if group["maximize"] else 1)
        return loss, partial(self._move_units, g, draw, grads)

    def _move_units(self, g: int, draw: Draw, grads: Array) -> None:
        """Apply the update rule and learn."""
        self.move(g, draw, grads)
        self.laws[g].learn(draw, grads, None)

    def _probe_dense(self, g: int, group: dict[str, Any], evaluation: Evaluation) -> Probed:
        """Probe all parameters along one random direction."""
        law, layout, estimator = self.laws[g], self.layouts[g], group["estimator"]
        thresholds = law.thresholds
        if isinstance(estimator, SparseMeZO) and thresholds is None:
            thresholds = small_thresholds(layout, estimator.kept)
        sign = -1.0 if group["maximize"] else 1.0
        loss, move = probe_along(
            estimator,
            layout,
            lambda: sign * evaluation(),
            splitmix(law.seed ^ law.n_steps),
            lr=float(group["lr"]),
            radius=group["radius"],
            weight_decay=group["weight_decay"],
            thresholds=thresholds,
            keep_copy=self.keep_copy,
            return_first=len(self.param_groups) > 1,
            reduce=lambda values: self.team.mean_of(np.array(values)).tolist(),
        )

        def finish() -> None:
            move()
            law.n_steps += 1
            law.thresholds = thresholds

        return sign * loss, finish

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a pickle's dictionary, or the groups and state of a loaded state dict."""
        super().__setstate__(state)
        self.__dict__.setdefault("team", Team(None, 0))


def is_watched() -> bool:
    """Whether a profiler runs or hooks for all optimizers are registered."""
    hooks = _global_optimizer_pre_hooks or _global_optimizer_post_hooks
    return bool(hooks) or torch.autograd._profiler_enabled()


def warn_if_lost(radius: float, params: list[torch.Tensor]) -> None:
    """Warn if some entries are too large for the radius to change them."""
    for p in params:
        entries = real_entries(p)
        if entries.numel() == 0:
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
