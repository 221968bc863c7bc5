"""What a step on a block costs, counted: the same everywhere, so that a seed repeats itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor, nn

from scgd.torch.blocks.partition import Parts
from scgd.typing import Array

__all__ = ["count_costs"]


def count_costs(model: nn.Module, parts: Parts) -> Array:
    r"""Return the multiplications of a step per token, by block.

    A matrix of n entries takes n in the forward pass, n for the gradient of its input if backward
    goes below it, and n for its own gradient if it is trained. Embeddings are looked up and vectors
    added: they take nothing. Layers that use a weight at several places (convolutions) count as if
    they used it once; ``cost="time"`` measures them.

    Examples
    --------
    >>> from scgd.torch.blocks.partition import divide
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
