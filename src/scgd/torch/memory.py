"""What a sampler and an update rule remember, kept where torch and its tools look: in ``state``.

A quantity is one flat array over the coordinates (or units) of a group, so that compiled passes run
over it, and ``optimizer.state[p][name]`` is the stretch of parameter *p*, sharing its memory. What
belongs to the group as a whole (the counts of a sampler, the random stream of a sampler) is a small
dictionary of tensors and numbers in the state of the group's first parameter.

The values are never cast: ``torch.optim.Optimizer.load_state_dict`` would turn float32 gains of
bfloat16 parameters, and whole numbers too, into bfloat16.
"""

from __future__ import annotations

from itertools import chain
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from scgd.torch.layout import Layout, real_entries
from scgd.typing import Array

STEP, SAMPLER = "step", "sampler"
Quantity = tuple[Any, bool]
"""The type of a quantity, and whether it is one number per unit; a torch type (or None, that of the
parameters) lies beside the parameters, a numpy type in a flat array."""


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
    return local(value).cpu().numpy() if isinstance(value, torch.Tensor) else value


def local(tensor: Any) -> Any:
    """Return the part of a tensor that this process holds."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def saved_states(saved: dict[str, Any], groups: list[dict[str, Any]]) -> dict[Any, Any]:
    """Return the saved memory of each parameter, found by its place in the groups."""
    names = chain.from_iterable(group["params"] for group in saved["param_groups"])
    params = chain.from_iterable(group["params"] for group in groups)
    found = dict(zip(names, params, strict=False))
    return {found[name]: kept for name, kept in saved["state"].items() if name in found}


def sampler_in(state: Any, params: list[torch.Tensor]) -> dict[str, Any] | None:
    """Return what the states of a group's parameters hold of its sampler."""
    for p in params:
        for name in {SAMPLER, "law"} & state.get(p, {}).keys():  # version 0.2 said "law"
            found: dict[str, Any] = unpack(state[p][name])
            return found
    return None


class Memory:
    """What is remembered about the parameters of one group, and its place in ``optimizer.state``.

    Parameters
    ----------
    layout
        The coordinates of the group.
    whole_units
        Whether all coordinates of a unit move together, so that one number serves a unit.
    """

    def __init__(self, layout: Layout, whole_units: bool = False) -> None:
        self.layout = layout
        self.whole_units = whole_units and layout.starts is not None
        self.arrays: dict[str, Array] = {}
        self.tensors: dict[str, list[torch.Tensor]] = {}
        self.per_unit: set[str] = set()
        self.step = np.zeros((), np.int64)

    def array(self, name: str, dtype: Any, per_unit: bool = False) -> Array:
        """Return a flat array, zero when it is asked for the first time."""
        if name not in self.arrays:
            per_unit = per_unit and self.whole_units
            self.arrays[name] = np.zeros(self.sizes(per_unit)[-1], dtype)
            if per_unit:
                self.per_unit.add(name)
        return self.arrays[name]

    def beside(self, name: str, dtype: torch.dtype | None = None) -> list[torch.Tensor]:
        """Return tensors beside the parameters, on their device, zero at first."""
        if name not in self.tensors:
            entries = [real_entries(p) for p in self.layout.params]
            self.tensors[name] = [torch.zeros_like(e, dtype=dtype) for e in entries]
        return self.tensors[name]

    def sizes(self, per_unit: bool) -> list[int]:
        """Return where the parameters begin, in coordinates or units, and the end."""
        return self.layout.unit_bounds if per_unit else self.layout.bounds  # type: ignore[no-any-return]

    def part(self, name: str, i: int) -> torch.Tensor:
        """Return the stretch of one parameter."""
        if name in self.tensors:
            return self.tensors[name][i]
        bounds = self.sizes(name in self.per_unit)
        return torch.from_numpy(self.arrays[name][bounds[i] : bounds[i + 1]])

    def publish(self, state: Any, sampler: dict[str, Any]) -> None:
        """Put everything into ``optimizer.state``."""
        step = torch.from_numpy(self.step)
        for i, p in enumerate(self.layout.params):
            kept = {STEP: step}
            for name in sorted((*self.arrays, *self.tensors)):
                kept[name] = self._shaped(self.part(name, i), i, name)
            if i == 0 and sampler:
                kept[SAMPLER] = pack(sampler)
            state[p] = kept

    def _shaped(self, part: torch.Tensor, i: int, name: str) -> torch.Tensor:
        """Return a stretch in the shape of its parameter, sharded if that is."""
        if name in self.per_unit:
            return part
        p, part = self.layout.params[i], part.view(self.layout.shapes[i])
        if not hasattr(p, "to_local") or p.is_complex() or p.device != part.device:
            return part
        from torch.distributed.tensor import DTensor

        mesh, placements = p.device_mesh, p.placements  # type: ignore[attr-defined]
        return DTensor.from_local(
            part, mesh, placements, run_check=False, shape=p.shape, stride=p.stride()
        )

    def adopt(self, state: Any, names: dict[str, Quantity]) -> dict[str, Any] | None:
        """Take up what ``state`` holds of these parameters; return what it holds of the sampler.

        ``names`` tells the quantities that are known. What does not fit a parameter (one of another
        size by now) starts from zero.
        """
        steps = [0]
        for i, p in enumerate(self.layout.params):
            kept = state.get(p, {})
            steps.append(int(local(kept.get(STEP, 0))))
            for name in names.keys() & kept.keys():
                self.make(name, names[name])
                here, there = self.part(name, i), local(kept[name]).detach()
                if there.numel() == here.numel():
                    here.view(-1).copy_(there.reshape(-1))
        self.step[...] = max(steps)
        return sampler_in(state, self.layout.params)

    def make(self, name: str, quantity: Quantity) -> None:
        """Make room for a quantity."""
        dtype, per_unit = quantity
        if dtype is None or isinstance(dtype, torch.dtype):
            self.beside(name, dtype)
        else:
            self.array(name, dtype, per_unit)

    def misfits(self, state: Any, names: dict[str, Quantity]) -> bool:
        """Whether some saved quantity has another size than its parameter."""
        for i, p in enumerate(self.layout.params):
            for name, (_, per_unit) in names.items():
                kept = state.get(p, {}).get(name)
                bounds = self.sizes(per_unit and self.whole_units)
                if kept is not None and local(kept).numel() != bounds[i + 1] - bounds[i]:
                    return True
        return False


class Sampler:
    """What draws the coordinates of a group; this one learns nothing."""

    sampling = "distinct"
    fusible = False
    learns = False
    pending: Any = None
    whole_units = False
    quantities: Any = MappingProxyType({})
    memory: Memory

    @property
    def n_steps(self) -> int:
        """The number of steps taken."""
        return int(self.memory.step)

    def state_dict(self) -> dict[str, Any]:
        """Return what it remembers of the group as a whole."""
        return {}

    def fits(self, state: dict[str, Any]) -> bool:
        """Whether a state belongs to the same kind of sampler."""
        return not state

    def load_state_dict(self, state: dict[str, Any] | None) -> None:
        """Take up what another sampler of the same kind remembers."""
