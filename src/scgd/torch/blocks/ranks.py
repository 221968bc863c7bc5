"""Several processes: the first one's numbers count, and DDP reduces the active block alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from scgd.typing import Array

__all__ = ["Ranks", "narrow"]


class Ranks:
    """The processes that train one model; alone when torch.distributed is not initialised."""

    def __init__(self, group: Any = None) -> None:
        self.group = group

    @property
    def several(self) -> bool:
        """Whether there is anyone to agree with."""
        usable = dist.is_available() and dist.is_initialized()
        return usable and dist.get_world_size(self.group) > 1

    def agree(self, numbers: Array) -> Array:
        """Return the first process's numbers, bit for bit."""
        if not self.several:
            return numbers
        wire = torch.from_numpy(np.ascontiguousarray(numbers).view(np.int64).copy())
        if "nccl" in str(dist.get_backend(self.group)):
            wire = wire.cuda()
        first = 0 if self.group is None else dist.get_global_rank(self.group, 0)
        dist.broadcast(wire, src=first, group=self.group)
        shared: Array = wire.cpu().numpy().view(numbers.dtype)
        return shared


def narrow(model: DistributedDataParallel) -> None:
    """Let DDP reduce the parameters that require gradients now, and wait for no others.

    The reducer is made again as DDP itself does after unpickling; parameters are not sent.
    """
    if model.static_graph:
        raise ValueError("blocks change which gradients exist; make DDP without static_graph=True")
    ddp: Any = model
    parameters, sparse = ddp._build_params_for_reducer()
    names = ddp._build_debug_param_to_name_mapping(parameters)
    ddp._ddp_init_helper(parameters, sparse, names, False)
    for hook, state in ddp._comm_hooks:
        dist._register_comm_hook(ddp.reducer, state, hook)  # type: ignore[attr-defined]
