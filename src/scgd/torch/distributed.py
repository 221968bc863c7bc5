"""Data parallel training: all processes draw the same coordinates, so only those are reduced.

Every process computes gradients (or losses) on its own part of the data. Drawing from a shared seed
with gains learned from reduced values only, all processes draw alike: no indices are sent, and a
step puts m values on the wire instead of p (zeroth order: one number per probe). The paper's
remark on parallelisation, at the level of the optimizer:

    model = DistributedDataParallel(model)
    optimizer = SCGD(model.parameters(), lr, process_group=dist.group.WORLD)
    with model.no_sync():               # the optimizer reduces what it needs
        loss(model(x), y).backward()
    optimizer.step()

:func:`reduce_sampled` does the same inside DDP's own reduction. The state of an optimizer does not
depend on the number of processes, so a checkpoint may be resumed with another.
"""

import zlib
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from scgd.checks import whole
from scgd.torch.layout import real_entries
from scgd.typing import Array


class Team:
    """The processes that train together, or this one alone.

    Parameters
    ----------
    group
        A process group, or ``None`` for a single process.
    check_every
        How many steps lie between two comparisons of the processes' parameters (0: never).
    """

    def __init__(self, group: Any, check_every: int) -> None:
        if group is not None and not dist.is_initialized():
            raise ValueError("process_group needs torch.distributed.init_process_group first")
        self.group = group
        self.check_every = whole(check_every, "check_every", 0, "be a whole number of steps")
        self.n_steps, self.n_bytes = 0, 0

    def agree(self, given: Any, seed: int) -> int:
        """Return the seed of the first process, or the one that all were given.

        Without a group, a fresh seed is still agreed on where torch.distributed runs: under DDP all
        processes must draw alike. The first process to ask leaves its seed in the store, the others
        find it there; nobody waits.
        """
        if self.group is None:
            alone = given is not None or not dist.is_available() or not dist.is_initialized()
            return seed if alone else int(shared_word(seed))
        return int(from_first(np.array([seed & ((1 << 63) - 1)]), self.group)[0])

    def mean(self, values: Array) -> None:
        """Replace values by their mean over the processes, in place."""
        if self.group is None or len(values) == 0:
            return
        tensor = wire(values, self.group)
        self._reduce(tensor, dist.ReduceOp.SUM)
        values[...] = tensor.cpu().numpy() / dist.get_world_size(self.group)

    def mean_of(self, values: Array) -> Array:
        """Return the mean of values over the processes."""
        self.mean(values)
        return values

    def _reduce(self, tensor: torch.Tensor, operation: Any) -> None:
        self.n_bytes += tensor.nbytes
        try:
            dist.all_reduce(tensor, op=operation, group=self.group)
        except RuntimeError as error:
            raise RuntimeError(
                f"the reduction of step {self.n_steps + 1} failed: another process has died or "
                "hangs; start again from the last checkpoint (any number of processes will do)"
            ) from error

    def check(self, optimizer: Any) -> None:
        """Compare the parameters of the processes after the first step and now and then."""
        self.n_steps += 1
        if self.group is None or self.check_every == 0:
            return
        if self.n_steps > 1 and self.n_steps % self.check_every:
            return
        digest = checksum(optimizer)
        both = wire(np.array([digest, -digest]), self.group)
        self._reduce(both, dist.ReduceOp.MAX)
        if both[0] != -both[1]:
            raise RuntimeError(
                f"the processes' parameters differ after step {self.n_steps}; start all of them "
                "from the same parameters and change them through this optimizer only"
            )


def wire(values: Array, group: Any) -> torch.Tensor:
    """Return values where the group's backend can send them from."""
    tensor = torch.from_numpy(values)
    return tensor.cuda() if "nccl" in str(dist.get_backend(group)) else tensor


def from_first(values: Array, group: Any) -> Array:
    """Return what the first process of a group has, bit for bit."""
    tensor = wire(values, group)
    first = 0 if group is None else dist.get_global_rank(group, 0)
    dist.broadcast(tensor, src=first, group=group)
    return np.asarray(tensor.cpu().numpy())


N_AGREED = [0]
"""How many seeds this process has agreed on: optimizers are matched by their order."""


def shared_word(word: int) -> str:
    """Return the word that the first process to come here left in the store."""
    store = dist.distributed_c10d._get_default_store()
    N_AGREED[0] += 1
    found = store.compare_set(f"scgd/seed/{N_AGREED[0]}", "", str(word & ((1 << 63) - 1)))
    return found.decode() if isinstance(found, bytes) else str(found)


def checksum(optimizer: Any) -> int:
    """Return a number that differs when parameters do."""
    digest = 0
    for group in optimizer.param_groups:
        for p in group["params"]:
            entries = real_entries(p).contiguous().cpu().view(-1)
            digest = zlib.crc32(entries.view(torch.uint8).numpy().data, digest)
    return digest


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
        words = np.ascontiguousarray(numbers).view(np.int64).copy()
        return from_first(words, self.group).view(numbers.dtype)


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


# DDP compares these annotations with its own types, so they must not be strings.
def reduce_sampled(optimizer: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:  # type: ignore[name-defined]
    """Reduce the gradients that the next step draws, as a communication hook of DDP.

    ``model.register_comm_hook(optimizer, reduce_sampled)``, with an optimizer made without
    ``process_group`` (the seed is agreed on). The other entries keep the gradients of
    their own process; the optimizer does not look at them. The default process group is used.

    Parameters
    ----------
    optimizer
        A :class:`SCGD` over the parameters of the model.
    bucket
        What DDP hands to a hook: some parameters and their gradients.

    Examples
    --------
    >>> model = torch.nn.parallel.DistributedDataParallel(net)  # doctest: +SKIP
    >>> optimizer = SCGD(model.parameters(), lr=0.1)  # doctest: +SKIP
    >>> model.register_comm_hook(optimizer, reduce_sampled)  # doctest: +SKIP
    """
    slots = []
    for p, gradient in zip(bucket.parameters(), bucket.gradients(), strict=True):
        index = drawn_entries(optimizer, p)
        if index is not None:
            slots.append((gradient.view(-1), torch.from_numpy(index).to(gradient.device)))
    whole: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    if not slots:
        whole.set_result(bucket.buffer())
        return whole
    values = torch.cat([flat[index] for flat, index in slots]) / dist.get_world_size()
    sent = dist.all_reduce(values, async_op=True).get_future()

    def put_back(done: Any) -> torch.Tensor:
        parts = done.value()[0].split([len(index) for _, index in slots])
        for (flat, index), part in zip(slots, parts, strict=True):
            flat[index] = part
        return bucket.buffer()  # type: ignore[no-any-return]

    return sent.then(put_back)  # type: ignore[no-any-return]


def drawn_entries(optimizer: Any, param: torch.Tensor) -> Array | None:
    """Return which entries of a parameter the next step draws."""
    for sampler, layout in zip(optimizer.samplers, optimizer.layouts, strict=True):
        for i, p in enumerate(layout.params):
            if p is param:
                coords = sampler.draw().coords
                low, high = np.searchsorted(coords, layout.offsets[i : i + 2])
                return coords[low:high] - layout.bounds[i] if high > low else None
    return None
