"""What both optimizers share: settings of a group, its sampler, and saving and loading them.

Whatever is learned about a parameter lies in ``optimizer.state[p]`` (:mod:`scgd.torch.memory`), so
tools that save, shard or move the state of any torch optimizer find it there. Before every step the
groups are compared with what the samplers were made for: parameters that were swapped, unfrozen,
frozen or resized since are followed, with the memory of all that stayed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

from scgd.checks import count
from scgd.method import check_importance, pick
from scgd.policies import POLICIES
from scgd.torch import rules
from scgd.torch.arguments import (
    check_arguments,
    check_lr,
    check_number,
    check_seed,
)
from scgd.torch.distributed import Team
from scgd.torch.draws import Draw, part_of, visits_in_turn
from scgd.torch.layout import GRANULARITIES, Layout, places_of, trainable
from scgd.torch.memory import sampler_in, saved_states
from scgd.torch.samplers import FullSampler
from scgd.typing import Array

RULES = ("sgd", "rms", "adam")
# Settings of a group.
COMMON = (
    "lr",
    "policy",
    "block_size",
    "importance",
    "granularity",
    "rule",
    "momentum",
    "dampening",
    "nesterov",
    "amsgrad",
    "weight_decay",
    "decoupled_weight_decay",
    "maximize",
)
MOMENTS = ("betas", "eps")
# Settings that are objects, saved in words.
DESCRIBED = ("policy", "estimator")
# Settings that shape a sampler; a state only fits an optimizer that agrees on them.
SHAPING = ("policy", "sampling", "granularity", "estimator", "rule")
# Keywords of torch's optimizers that mean nothing here.
REFUSED = {
    "capturable": "it draws on the processor and cannot run inside a CUDA graph",
    "differentiable": "gradients do not pass through its steps",
}


class CoordinateOptimizer(torch.optim.Optimizer):
    """A torch optimizer whose parameter groups each have a sampler of their coordinates."""

    # What copies and pickles keep besides torch's own; process groups and hooks stay behind.
    carried: ClassVar[tuple[str, ...]] = ("moments",)
    own: ClassVar[tuple[str, ...]] = ()
    """Settings of a group besides the common ones."""

    def __init__(self, params: Any, given: dict[str, Any], team: Team) -> None:
        check_arguments(params, given)
        for name, reason in REFUSED.items():
            if given.get(name):
                raise ValueError(
                    f"{type(self).__name__} does not take {name}={given[name]!r}: {reason}; leave "
                    f"{name} out"
                )
        self.team = team
        defaults = {name: given[name] for name in (*COMMON, *self.own)}
        defaults["seed"] = team.agree(given["seed"], check_seed(given["seed"]))
        # Schedulers that cycle momentum cycle betas instead wherever the defaults have them.
        self.moments = {"betas": given["betas"], "eps": given["eps"]}
        if given["rule"] != "sgd":
            defaults.update(self.moments)
        self.samplers: list[Any] = []
        self.layouts: list[Layout] = []
        super().__init__(params, defaults)
        if not any(trainable(group["params"]) for group in self.param_groups):
            raise ValueError("no parameter requires a gradient; unfreeze some before optimizing")
        if not self.filled_groups():
            raise ValueError("the parameters have no coordinates to move: all of them are empty")

    def filled_groups(self) -> list[tuple[int, dict[str, Any]]]:
        """Return the groups that have something to move, with their numbers."""
        groups = enumerate(self.param_groups)
        return [(g, group) for g, group in groups if self.layouts[g].n_coords > 0]

    def check_group(self, group: dict[str, Any]) -> None:
        """Refuse settings that make no sense; resolve names."""
        for name, value in group.items():
            if isinstance(value, np.generic | Decimal | Fraction):  # files hold plain numbers
                group[name] = value.item() if isinstance(value, np.generic) else float(value)
        check_lr(group["lr"])
        group["policy"] = pick(group["policy"], POLICIES, "policy")
        if getattr(group["policy"], "paced", False):
            raise ValueError(
                f"policy {group['policy']!r} needs to know how much of a budget is over; use "
                "Uniform, Musketeer or FixedWeights"
            )
        if getattr(group["policy"], "needs_gradient", False):
            raise ValueError(
                f"policy {group['policy']!r} needs the whole gradient before it draws; "
                "use Uniform, Musketeer or FixedWeights"
            )
        if group["importance"] is not None and not isinstance(group["importance"], str):
            raise ValueError("importance must be None, 'inverse' or 'relative' here")
        if group["importance"] is not None:
            check_importance(group["importance"])
        if group["block_size"] is not None:
            group["block_size"] = count(group["block_size"], "block_size")
        if group["granularity"] not in (*GRANULARITIES, None):
            raise ValueError(
                f"granularity must be one of {GRANULARITIES}, got {group['granularity']!r}"
            )
        self.check_rule(group)

    @staticmethod
    def check_rule(group: dict[str, Any]) -> None:
        """Refuse bad settings of the update rule."""
        if group["rule"] not in RULES:
            raise ValueError(f"rule must be one of {RULES}, got {group['rule']!r}")
        check_number("weight_decay", group["weight_decay"], 0.0)
        check_number("momentum", group["momentum"], 0.0, 1.0)
        check_number("dampening", group["dampening"], 0.0, 1.0)
        check_number("eps", group["eps"], 0.0)
        betas = group["betas"]
        if not isinstance(betas, tuple | list) or len(betas) != 2:
            raise ValueError(f"betas must be two numbers in [0, 1), got {betas!r}")
        for beta in betas:
            check_number("betas", beta, 0.0, 1.0)
        group["betas"] = tuple(map(float, betas))
        if group["nesterov"] and not group["momentum"] > 0:
            raise ValueError("nesterov needs a positive momentum")
        if group["nesterov"] and group["dampening"]:
            raise ValueError("nesterov needs dampening=0")
        if group["amsgrad"] and group["rule"] != "adam":
            raise ValueError(f"amsgrad needs rule='adam', got rule={group['rule']!r}")

    def make_sampler(self, group: dict[str, Any], layout: Layout, seed: int) -> Any:
        """Return the sampler of a group."""
        raise NotImplementedError

    def n_draws(self, group: dict[str, Any], layout: Layout) -> int:
        """Return how many coordinates or units a group draws, read anew at every step."""
        raise NotImplementedError

    def make_layout(self, group: dict[str, Any]) -> Layout:
        """Return the coordinates of a group's trainable parameters."""
        return Layout(trainable(group["params"]), group["granularity"])

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with settings of its own."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for name, value in self.moments.items():
            group.setdefault(name, value)
        try:
            self.check_group(group)
            made = self._make(group, len(self.samplers))
        except Exception:
            self.param_groups.pop()
            raise
        self.layouts.append(made[0])
        self.samplers.append(made[1])

    def _make(self, group: dict[str, Any], g: int) -> tuple[Layout, Any]:
        """Return coordinates and sampler of a group as its settings say now."""
        layout = self.make_layout(group)
        seed = self.group_seed(group, g)
        filled = layout.n_coords > 0
        sampler = self.make_sampler(group, layout, seed) if filled else FullSampler(layout, seed)
        sampler.settings = self.settings(group)  # type: ignore[union-attr]
        return layout, sampler

    def settings(self, group: dict[str, Any]) -> list[Any]:
        """Return what a sampler was made for."""
        return [group.get(name) for name in SHAPING]

    @staticmethod
    def group_seed(group: dict[str, Any], number: int) -> int:
        """Return the seed of a group's draws, different in each group."""
        words = np.random.SeedSequence([int(group["seed"]), number]).generate_state(1, np.uint64)
        return int(words[0])

    def prepare(self) -> list[tuple[int, dict[str, Any]]]:
        """Make samplers and layouts fit the groups; return those with something to move."""
        for g, group in enumerate(self.param_groups):
            self._follow(g, group)
        return self.filled_groups()

    def _follow(self, g: int, group: dict[str, Any]) -> None:
        """Notice parameters and settings of a group that have changed."""
        layout, sampler = self.layouts[g], self.samplers[g]
        params = trainable(group["params"])
        places = places_of(params)
        if places != layout.places or sampler.settings != self.settings(group):
            same = [place[0] for place in places] == [place[0] for place in layout.places]
            shapes = [place[2:] for place in places] == [place[2:] for place in layout.places]
            if same and shapes and sampler.settings == self.settings(group):
                layout.moved(places)
            else:
                self._remake(g, group, same)
        elif layout.n_coords > 0:
            wanted = self.n_draws(group, layout)
            if wanted != sampler.n_draws:
                sampler.resize(wanted)

    def _remake(self, g: int, group: dict[str, Any], same: bool) -> None:
        """Make a sampler for what a group holds now, with the memory of what stayed."""
        self.check_group(group)
        self.publish(g)
        old, layout = self.layouts[g].params, None
        layout, sampler = self._make(group, g)
        if not same and len(old) == len(layout.params):  # as when a wrapper swaps all of them
            for p, q in zip(old, layout.params, strict=True):
                if q not in self.state and p in self.state:
                    self.state[q] = self.state.pop(p)
        self.layouts[g], self.samplers[g] = layout, sampler
        self.adopt(g)

    def quantities(self, g: int) -> dict[str, Any]:
        """Return what a group remembers of each parameter."""
        group, sampler = self.param_groups[g], self.samplers[g]
        return {**sampler.quantities, **rules.quantities(group, self.layouts[g].dtype)}

    def publish(self, g: int) -> None:
        """Let ``state`` show what a group remembers."""
        sampler = self.samplers[g]
        for name, quantity in self.quantities(g).items():
            sampler.memory.make(name, quantity)
        sampler.memory.publish(self.state, sampler.state_dict())

    def adopt(self, g: int) -> None:
        """Take up what ``state`` holds of a group's parameters."""
        sampler = self.samplers[g]
        sampler.seed = self.group_seed(self.param_groups[g], g)
        sampler.load_state_dict(sampler.memory.adopt(self.state, self.quantities(g)))
        self.publish(g)

    def move(self, g: int, draw: Draw, grads: Array) -> None:
        """Apply the update rule to the entries drawn; weight decay joins the gradients in place."""
        group, sampler, layout = self.param_groups[g], self.samplers[g], self.layouts[g]
        if len(draw.coords) == 0:
            return
        rates: Any = float(group["lr"])
        if group["importance"] is not None:
            rates = rates * sampler.factors(draw, group["importance"])
        rates = np.broadcast_to(np.asarray(rates, grads.dtype), grads.shape)
        if group["weight_decay"] and not group["decoupled_weight_decay"]:
            theta = layout.gather(layout.params, draw.coords, layout.split(draw.coords), draw.sizes)
            with np.errstate(invalid="ignore", over="ignore"):
                grads += group["weight_decay"] * theta
        rounds = visits_in_turn(draw) if sampler.sampling == "replacement" else [slice(None)]
        for which in rounds:
            self._move_once(g, part_of(draw, which), grads[which], rates[which])

    def _move_once(self, g: int, draw: Draw, grads: Array, rates: Array) -> None:
        """Move distinct entries."""
        group, sampler, layout = self.param_groups[g], self.samplers[g], self.layouts[g]
        pieces = layout.split(draw.coords)
        theta = layout.gather(layout.params, draw.coords, pieces, draw.sizes)
        if group["decoupled_weight_decay"]:
            theta *= 1.0 - float(group["lr"]) * group["weight_decay"]
        steps = rules.advance(group, sampler.memory, draw.coords, draw.sizes, grads)
        with np.errstate(invalid="ignore", over="ignore"):
            theta -= rates * steps
        layout.scatter(draw.coords, pieces, theta, draw.sizes)

    def weights(self, group: int = 0) -> Array:
        """Return the sampling weights in force, one per coordinate or unit of a group."""
        return self.samplers[group].weights()  # type: ignore[no-any-return]

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on, as plain values and tensors."""
        self.prepare()
        held = {p for group in self.param_groups for p in group["params"]}
        for p in [p for p in self.state if p not in held]:
            del self.state[p]
        for g, sampler in enumerate(self.samplers):
            if sampler.n_steps > 0:
                self.publish(g)
        state = super().state_dict()
        groups = []
        for group in state["param_groups"]:
            described = {name: repr(group[name]) for name in DESCRIBED if name in group}
            groups.append({**group, **described})
        return {**state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up the state of an optimizer with the same parameters and policy."""
        self.prepare()
        kept = saved_states(state_dict, self.param_groups)
        groups = []
        for g, (mine, theirs) in enumerate(
            zip(self.param_groups, state_dict["param_groups"], strict=False)
        ):
            self._check_settings(mine, theirs)
            sampler = self.samplers[g]
            saved = sampler_in(kept, mine["params"])
            other = saved is not None and not sampler.fits(saved)
            if other or sampler.memory.misfits(kept, self.quantities(g)):
                raise ValueError(
                    f"the state was saved for other parameters than the "
                    f"{self.layouts[g].n_coords} coordinates of this group; make the optimizer for "
                    "the same model"
                )
            # What an older version did not know keeps its setting, objects stay objects.
            objects = {name: mine[name] for name in DESCRIBED if name in mine}
            own = {name: value for name, value in mine.items() if name != "params"}
            groups.append({**own, **theirs, **objects})
        groups += state_dict["param_groups"][len(groups) :]
        super().load_state_dict({**state_dict, "param_groups": groups})
        for p, memory in kept.items():
            self.state[p] = memory  # as it was saved: see scgd.torch.memory
        for g in range(len(self.param_groups)):
            self.layouts[g], self.samplers[g] = self._make(self.param_groups[g], g)
            self.adopt(g)

    @staticmethod
    def _check_settings(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
        """Refuse a state of another kind before anything is changed."""
        if "memory" in theirs:
            raise ValueError("the state was saved by scgd before 0.2, which kept it elsewhere")
        if "policy" not in theirs:
            raise ValueError("the state was saved by another optimizer: it has no policy")
        for name in SHAPING:
            ours = repr(mine[name]) if name in DESCRIBED and name in mine else mine.get(name)
            if name in theirs and theirs[name] != ours:
                raise ValueError(
                    f"the state was saved with {name}={theirs[name]!r} and this optimizer has "
                    f"{name}={ours!r}; make the optimizer with the same settings"
                )

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle or a deep copy keeps."""
        for g, sampler in enumerate(self.samplers):
            if sampler.n_steps > 0:
                self.publish(g)
        return {**{name: self.__dict__[name] for name in self.carried}, **super().__getstate__()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a pickle's dictionary, or the groups and state of a loaded state dict."""
        super().__setstate__(state)
        if "samplers" not in self.__dict__:  # a copy: its samplers are made anew from the state
            self.team = Team(None, 0)
            made = [self._make(group, g) for g, group in enumerate(self.param_groups)]
            self.layouts, self.samplers = [m[0] for m in made], [m[1] for m in made]
            for g in range(len(made)):
                self.adopt(g)


Step = TypeVar("Step", bound=Callable[..., Any])


def watchable(step: Step) -> Step:
    """Return a step that goes through torch's wrapper only where hooks or a profiler ask for it.

    The wrapper, which torch puts around every ``step``, costs as much as a small step itself.
    """
    watched = torch.optim.Optimizer.profile_hook_step(step)

    @functools.wraps(step)
    def either(self: Any, closure: Any = None) -> Any:
        if self._optimizer_step_pre_hooks or self._optimizer_step_post_hooks or is_watched():
            return watched(self, closure)
        return step(self, closure)

    either.hooked = True  # type: ignore[attr-defined]
    return either  # type: ignore[return-value]


def is_watched() -> bool:
    """Whether a profiler runs or hooks for all optimizers are registered."""
    hooks = _global_optimizer_post_hooks or _global_optimizer_pre_hooks
    return bool(hooks) or torch.autograd._profiler_enabled()  # type: ignore[attr-defined]
