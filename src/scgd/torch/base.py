"""What both optimizers share: settings of a group, its law, and saving and loading them.

The memory of a law is not in ``optimizer.state``: loading would cast it to the precision of the
parameters (integers and float32 gains to bfloat16, for one). It travels as plain tensors and
numbers in the parameter groups of ``state_dict``, so files load with ``weights_only=True``.
"""

from __future__ import annotations

from operator import index
from typing import Any, ClassVar

import numpy as np
import torch

from scgd.policies import POLICIES
from scgd.recipes import check_block_size, check_importance, pick
from scgd.steps import RMS, SGD, Adam, Momentum, StepRule, applier
from scgd.torch.distributed import Team
from scgd.torch.laws import Draw, FullLaw
from scgd.torch.layout import GRANULARITIES, Layout
from scgd.typing import Array

__all__ = ["CoordinateOptimizer", "check_number", "check_positive", "make_rule", "pack", "unpack"]

NO_BOUNDS = np.empty(0)
PLAIN = SGD()
RULES = ("sgd", "rms", "adam")
# What a group may set for itself in both optimizers.
COMMON = (
    "lr",
    "policy",
    "block_size",
    "importance",
    "granularity",
    "rule",
    "momentum",
    "nesterov",
    "weight_decay",
    "maximize",
)
# Settings that shape a law; a state only fits an optimizer that agrees on them.
DESCRIBED = ("policy", "estimator")
SHAPING = ("policy", "sampling", "granularity", "estimator", "block_size", "fraction", "rule")


def fresh_seed() -> int:
    """Return a seed from the operating system; the global generators are not touched."""
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])


def check_number(name: str, value: Any, low: float, high: float = np.inf) -> None:
    """Refuse what is not a number in [low, high)."""
    try:
        good = low <= float(value) < high
    except (TypeError, ValueError):
        good = False
    if not good:
        raise ValueError(f"{name} must be a number in [{low}, {high}), got {value!r}")


def check_lr(lr: Any) -> None:
    """Refuse learning rates that are not one positive finite number."""
    if isinstance(lr, torch.Tensor) and lr.numel() != 1:
        raise ValueError(f"Tensor lr must be 1-element, got shape {tuple(lr.shape)}")
    check_positive("lr", lr)


def check_positive(name: str, value: Any) -> None:
    """Refuse what is not a positive finite number."""
    try:
        good = 0 < float(value) < np.inf
    except (TypeError, ValueError):
        good = False
    if not good:
        raise ValueError(f"{name} must be positive and finite, got {value!r}")


def check_seed(seed: Any) -> int:
    """Return a seed as a plain number; refuse what is not a whole number >= 0."""
    try:
        number = fresh_seed() if seed is None else index(seed)
    except TypeError:
        number = -1
    if number < 0:
        raise ValueError(f"seed must be None or a whole number >= 0, got {seed!r}")
    return number


def same_shapes(mine: Any, theirs: Any) -> bool:
    """Whether nested memory holds arrays of the same shapes under the same names."""
    if isinstance(mine, dict):
        if not isinstance(theirs, dict) or mine.keys() != theirs.keys():
            return False
        return all(same_shapes(mine[name], theirs[name]) for name in mine)
    shape = getattr(mine, "shape", None)
    return shape is None or tuple(shape) == tuple(getattr(theirs, "shape", ()))


def make_rule(group: dict[str, Any]) -> StepRule:
    """Return the update rule a group asks for."""
    if group["rule"] == "rms":
        return RMS(group["betas"][1], group["eps"])
    if group["rule"] == "adam":
        return Adam(*group["betas"], group["eps"])
    momentum = group["momentum"]
    return Momentum(momentum, group["nesterov"]) if momentum > 0 else PLAIN


def pack(value: Any) -> Any:
    """Return a copy of nested memory with arrays as tensors (unsigned words as signed)."""
    if isinstance(value, dict):
        return {key: pack(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        signed = value.view(np.int64) if value.dtype == np.uint64 else value
        return torch.from_numpy(signed.copy())
    return value


def unpack(value: Any) -> Any:
    """Undo :func:`pack`."""
    if isinstance(value, dict):
        array = {key: unpack(item) for key, item in value.items()}
        if "stream" in array:
            array["stream"] = array["stream"].view(np.uint64)
        return array
    return value.cpu().numpy() if isinstance(value, torch.Tensor) else value


class CoordinateOptimizer(torch.optim.Optimizer):
    """A torch optimizer whose parameter groups each have a law over their coordinates."""

    # What copies and pickles keep besides torch's own; process groups and hooks stay behind.
    carried: ClassVar[tuple[str, ...]] = ("laws", "layouts", "slots", "moments")
    own: ClassVar[tuple[str, ...]] = ()
    """Settings of a group besides the common ones."""

    def __init__(self, params: Any, given: dict[str, Any], team: Team) -> None:
        self.team = team
        defaults = {name: given[name] for name in (*COMMON, *self.own)}
        defaults["seed"] = team.agree(check_seed(given["seed"]))
        # Schedulers that cycle momentum cycle betas instead wherever the defaults have them.
        self.moments = {"betas": given["betas"], "eps": given["eps"]}
        if given["rule"] != "sgd":
            defaults.update(self.moments)
        self.laws: list[Any] = []
        self.layouts: list[Layout] = []
        self.slots: list[Array | None] = []
        super().__init__(params, defaults)
        if not any(p.requires_grad for group in self.param_groups for p in group["params"]):
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
            if isinstance(value, np.generic):
                group[name] = value.item()  # files hold plain numbers
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
            group["block_size"] = check_block_size(group["block_size"])
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
        check_number("eps", group["eps"], 0.0)
        betas = group["betas"]
        if not isinstance(betas, tuple | list) or len(betas) != 2:
            raise ValueError(f"betas must be two numbers in [0, 1), got {betas!r}")
        for beta in betas:
            check_number("betas", beta, 0.0, 1.0)
        group["betas"] = tuple(map(float, betas))
        if group["nesterov"] and not group["momentum"] > 0:
            raise ValueError("nesterov needs a positive momentum")

    def make_law(self, group: dict[str, Any], layout: Layout, seed: int) -> Any:
        """Return the law of a group."""
        raise NotImplementedError

    def make_layout(self, group: dict[str, Any]) -> Layout:
        """Return the coordinates of a group."""
        return Layout(group["params"], group["granularity"])

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with settings of its own."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for name, value in self.moments.items():
            group.setdefault(name, value)
        try:
            self.check_group(group)
            layout = self.make_layout(group)
            seed = self.group_seed(group, len(self.laws))
            filled = layout.n_coords > 0
            law = self.make_law(group, layout, seed) if filled else FullLaw(layout, seed)
        except Exception:
            self.param_groups.pop()
            raise
        self.layouts.append(layout)
        self.laws.append(law)
        self.slots.append(None)

    @staticmethod
    def group_seed(group: dict[str, Any], number: int) -> int:
        """Return the seed of a group's draws, different in each group."""
        words = np.random.SeedSequence([int(group["seed"]), number]).generate_state(1, np.uint64)
        return int(words[0])

    def slots_for(self, g: int, rule: StepRule) -> Array:
        """Return what the update rule remembers, one row per quantity."""
        slots = self.slots[g]
        if slots is None or len(slots) != rule.n_slots:
            layout = self.layouts[g]
            slots = np.zeros((rule.n_slots, layout.n_coords), layout.dtype)
            self.slots[g] = slots
        return slots

    def move(self, g: int, draw: Draw, grads: Array) -> None:
        """Apply the update rule to the entries drawn; weight decay joins the gradients in place."""
        group, law, layout = self.param_groups[g], self.laws[g], self.layouts[g]
        coords, rule = draw.coords, make_rule(group)
        if len(coords) == 0:
            return
        pieces = layout.split(coords)
        theta = layout.gather(layout.params, coords, pieces, draw.sizes)
        if group["weight_decay"]:
            with np.errstate(invalid="ignore", over="ignore"):
                grads += group["weight_decay"] * theta
        rates: Any = float(group["lr"])
        if group["importance"] is not None:
            rates = rates * law.factors(draw, group["importance"])
        if rule.n_slots == 0 and law.sampling != "replacement":
            with np.errstate(invalid="ignore", over="ignore"):
                theta -= rule.kernel(0, grads, rates, (), ())  # all at once: nothing is remembered
            layout.scatter(coords, pieces, theta, draw.sizes)
            return
        rates = np.broadcast_to(rates, grads.shape)
        first = order = np.arange(len(coords))
        if law.sampling == "replacement":
            _, first, order = np.unique(coords, return_index=True, return_inverse=True)
        slots = self.slots_for(g, rule)
        here, memory = theta[first], slots[:, coords[first]]
        hyper = np.array(rule.hyper)
        applier(rule)(order, grads, rates, hyper, memory, here, NO_BOUNDS, NO_BOUNDS)
        slots[:, coords[first]] = memory
        layout.scatter(coords, pieces, here[order], draw.sizes)

    def weights(self, group: int = 0) -> Array:
        """Return the sampling weights in force, one per coordinate or unit of a group."""
        return self.laws[group].weights()

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on, as plain values and tensors."""
        state = super().state_dict()
        groups = []
        for group, law, slots in zip(state["param_groups"], self.laws, self.slots, strict=True):
            memory = {
                "law": pack(law.state_dict()),
                "slots": None if slots is None else pack(slots),
            }
            described = {name: repr(group[name]) for name in DESCRIBED if name in group}
            groups.append({**group, **described, "memory": memory})
        return {**state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up the state of an optimizer with the same parameters and policy."""
        pairs = zip(self.param_groups, state_dict["param_groups"], strict=False)
        for g, (mine, theirs) in enumerate(pairs):
            for name in SHAPING:
                ours = repr(mine[name]) if name in DESCRIBED and name in mine else mine.get(name)
                if name in theirs and theirs[name] != ours:
                    raise ValueError(
                        f"the state was saved with {name}={theirs[name]!r} and this optimizer has "
                        f"{name}={ours!r}; make the optimizer with the same settings"
                    )
            self._check_sizes(theirs.get("memory"), self.laws[g], self.layouts[g])
        super().load_state_dict(state_dict)

    @staticmethod
    def _check_sizes(memory: Any, law: Any, layout: Layout) -> None:
        """Refuse memory of other parameters before anything is changed."""
        if memory is None:
            return
        slots = memory["slots"]
        fits = slots is None or slots.shape[1] == layout.n_coords
        if not (fits and same_shapes(law.state_dict(), memory["law"])):
            raise ValueError(
                f"the state was saved for other parameters than the {layout.n_coords} coordinates "
                "of this group; make the optimizer for the same model"
            )

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle or a deep copy keeps."""
        return {**{name: self.__dict__[name] for name in self.carried}, **super().__getstate__()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a pickle's dictionary, or the groups and state of a loaded state dict."""
        laws = state.get("laws", self.__dict__.get("laws", []))
        for g, group in enumerate(state["param_groups"]):
            memory = group.pop("memory", None)
            for name in DESCRIBED:
                if isinstance(group.get(name), str):
                    group[name] = self.param_groups[g][name]
            if memory is not None:
                laws[g].load_state_dict(unpack(memory["law"]))
                self.slots[g] = unpack(memory["slots"])
        super().__setstate__(state)
