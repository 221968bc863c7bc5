"""Cutting a model into blocks, and finding parameters by the names users know.

Patterns are those of :mod:`scgd.torch.arguments`; a tied tensor answers to each of its names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from scgd.torch.arguments import as_patterns, finds
from scgd.typing import Array

Cut = str | Mapping[str, str] | Callable[[str], str | None]


def has_parameters(module: nn.Module) -> bool:
    """Whether anything in a module can be trained."""
    return next(module.parameters(), None) is not None


def containers(model: nn.Module) -> set[str]:
    """Return the names of the outermost lists of layers; sequences count where there are none."""
    for kind in (nn.ModuleList, nn.Sequential):
        found: set[str] = set()
        for name, module in model.named_modules():
            inside = any(not outer or name.startswith(f"{outer}.") for outer in found)
            layers = [child for child in module.children() if has_parameters(child)]
            if not inside and isinstance(module, kind) and len(layers) > 1:
                found.add(name)
        if found:
            return found
    return set()


def layer_of(name: str, lists: set[str]) -> str:
    """Return the layer a parameter belongs to, or the part of the model that holds it."""
    parts = name.split(".")
    paths = [".".join(parts[:i]) for i in range(len(parts))]
    for i, path in enumerate(paths):
        if path in lists:
            return ".".join(parts[: i + 1])
    # Outside the layers: the first part that is not on the way to a list of layers.
    for i, path in enumerate(paths[1:], start=1):
        if not any(outer.startswith(f"{path}.") or outer == path for outer in lists):
            return ".".join(parts[:i])
    return paths[-1] or name


def by_layer(model: nn.Module, names: Sequence[str]) -> dict[str, str]:
    """One block per layer; embeddings, head and the like are blocks of their own."""
    lists = containers(model)
    return {name: layer_of(name, lists) for name in names}


def by_module(model: nn.Module, names: Sequence[str]) -> dict[str, str]:
    """One block per module that owns parameters: a weight with its bias."""
    return {name: name.rpartition(".")[0] or name for name in names}


def by_tensor(model: nn.Module, names: Sequence[str]) -> dict[str, str]:
    """One block per parameter."""
    return {name: name for name in names}


CUTS: dict[str, Callable[[nn.Module, Sequence[str]], dict[str, str]]] = {
    "layer": by_layer,
    "module": by_module,
    "tensor": by_tensor,
}


def by_pattern(patterns: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """One block per pattern; what no pattern finds stays frozen."""
    placed: dict[str, str] = {}
    for block, given in patterns.items():
        (pattern,) = as_patterns(f"blocks[{block!r}]", [given])
        hits = [name for name in names if finds(pattern, name)]
        if not hits:
            raise ValueError(f"blocks[{block!r}] = {pattern!r} finds no parameter that is trained")
        for name in hits:
            if name in placed:
                raise ValueError(
                    f"the parameter {name!r} is in two blocks, {placed[name]!r} and {block!r}; "
                    "make the patterns of blocks= exclude each other"
                )
            placed[name] = block
    return {name: placed[name] for name in names if name in placed}


def cut(model: nn.Module, blocks: Cut, names: Sequence[str]) -> dict[str, str]:
    """Return the block of each parameter that has one, in the order of the model."""
    if isinstance(blocks, str):
        if blocks not in CUTS:
            raise ValueError(
                f"blocks must be one of {tuple(CUTS)}, a mapping of names to patterns or a function"
                f" from a parameter's name to its block's, got {blocks!r}"
            )
        return CUTS[blocks](model, names)
    if isinstance(blocks, Mapping):
        return by_pattern(blocks, names)
    if not callable(blocks):
        raise ValueError(f"blocks must be a name, a mapping or a function, got {blocks!r}")
    placed = {name: blocks(name) for name in names}
    return {name: str(block) for name, block in placed.items() if block is not None}


@dataclass(frozen=True)
class Parts:
    """The parameters of a model by role: those of each block, and those always trained."""

    blocks: dict[str, list[str]]
    always: list[str]
    params: dict[str, Tensor]
    aliases: dict[str, list[str]]

    def names(self) -> Iterator[str]:
        """Iterate over the parameters that may be trained, in the order of the model."""
        trained = {name for block in self.blocks.values() for name in block} | set(self.always)
        return (name for name in self.params if name in trained)

    def members(self) -> list[dict[str, Tensor]]:
        """Return the parameters of each block, and those always trained if there are any."""
        named = [*self.blocks.values(), *([self.always] if self.always else [])]
        return [{name: self.params[name] for name in names} for names in named]

    def pick(self, argument: str, patterns: Iterable[str]) -> list[int]:
        """Return the numbers of the blocks that patterns find, in the order of the patterns."""
        names, numbers = list(self.blocks), []
        for pattern in patterns:
            hits = [i for i, name in enumerate(names) if self._is_found(pattern, name)]
            if not hits:
                raise ValueError(f"{argument}={pattern!r} finds no block; the blocks are {names}")
            numbers += [i for i in hits if i not in numbers]
        return numbers

    def _is_found(self, pattern: str, block: str) -> bool:
        everywhere = (alias for name in self.blocks[block] for alias in self.aliases[name])
        return finds(pattern, block) or any(finds(pattern, alias) for alias in everywhere)


def names_of(model: nn.Module) -> tuple[dict[str, Tensor], dict[str, list[str]]]:
    """Return each parameter once under its first name, and all names of each."""
    params: dict[str, Tensor] = dict(model.named_parameters())
    first = {id(p): name for name, p in params.items()}
    aliases: dict[str, list[str]] = {name: [] for name in params}
    for name, p in model.named_parameters(remove_duplicate=False):
        aliases[first[id(p)]].append(name)
    return params, aliases


def divide(model: nn.Module, blocks: Cut, always: Any, never: Any, frozen: set[Tensor]) -> Parts:
    """Cut a model into blocks and set aside what is always or never trained."""
    params, aliases = names_of(model)
    roles: dict[str, set[str]] = {"always": set(), "never": set()}
    for role, given in (("always", always), ("never", never)):
        for pattern in as_patterns(role, given):
            hits = {n for n in params if any(finds(pattern, alias) for alias in aliases[n])}
            if not hits:
                raise ValueError(
                    f"{role}={pattern!r} finds no parameter; names begin {list(params)[:8]}"
                )
            roles[role] |= hits
    both = roles["always"] & roles["never"]
    if both:
        raise ValueError(
            f"{sorted(both)} are found by always= and by never= (tied tensors have several names); "
            "drop one of the two"
        )
    free = [n for n, p in params.items() if p not in frozen and n not in roles["never"]]
    placed = cut(model, blocks, [n for n in free if n not in roles["always"]])
    parts: dict[str, list[str]] = {}
    for name, block in placed.items():
        parts.setdefault(block, []).append(name)
    if not parts:
        raise ValueError(
            "no block is left to train; unfreeze parameters, shorten never= or mend blocks="
        )
    return Parts(parts, [n for n in free if n in roles["always"]], params, aliases)


def count_costs(model: nn.Module, parts: Parts) -> Array:
    r"""Return the multiplications of a step per token, by block.

    A matrix of n entries takes n in the forward pass, n for the gradient of its input if backward
    goes below it, and n for its own gradient if it is trained. Embeddings are looked up and vectors
    added: they take nothing. Layers that use a weight at several places (convolutions) count as if
    they used it once; ``cost="time"`` measures them.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
    >>> count_costs(model, divide(model, "layer", (), (), set())).tolist()  # 64 + 32 + 32, 64 + 32
    [128.0, 96.0]
    """
    looked_up = {p for m in model.modules() for p in lookups(m)}
    work = {p: 0 if p in looked_up or p.ndim < 2 else p.numel() for p in parts.params.values()}
    order = {p: i for i, p in enumerate(work)}
    each = np.array(list(work.values()), float)
    lowest_always = min((order[parts.params[name]] for name in parts.always), default=len(each))
    costs = []
    for names in parts.blocks.values():
        own = [order[parts.params[name]] for name in names]
        lowest = min(*own, lowest_always)
        costs.append(each.sum() + each[lowest + 1 :].sum() + each[own].sum())
    return np.array(costs) + float(not each.any())


def lookups(module: Any) -> list[Tensor]:
    """Return the parameters that a module looks up rows of."""
    tables = isinstance(module, nn.Embedding | nn.EmbeddingBag)
    return list(module.parameters(recurse=False)) if tables else []
