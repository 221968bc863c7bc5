"""One process of a data parallel run with blocks: ``python block_worker.py rank world folder``."""

import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.nn  # before the group is made: imported later, it holds the group for ever
from block_models import BlockOptimizer, Dropping, batch, flat, stack
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from scgd.torch.blocks import BlockMusketeer

STEPS = 1000


def share_of(step, rank, world):
    tokens, labels = batch(step, 16)
    return tokens[rank::world], labels[rank::world]


def loss_on(model, step, rank, world):
    tokens, labels = share_of(step, rank, world)
    return nn.functional.cross_entropy(model(tokens), labels)


def run(rank, world, policy, steps, attach=False, **settings):
    """Train; every process has data and a seed of its own."""
    model = stack()
    wrapped = model
    if world > 1 and not attach:
        wrapped = DistributedDataParallel(model)
    settings = {"period": 5, "seed": 10 + rank, "lr": 0.01, **settings}
    optimizer = BlockOptimizer(wrapped, policy=policy, **settings)
    if world > 1 and attach:
        wrapped = DistributedDataParallel(model)
        optimizer.attach(wrapped)
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_on(wrapped, step, rank, world)
        loss.backward()
        optimizer.tell(loss)
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    return model, optimizer


def accumulated(rank, world):
    model = stack()
    wrapped = DistributedDataParallel(model) if world > 1 else model
    optimizer = BlockOptimizer(wrapped, policy="cyclic", period=3, lr=0.01)
    for step in range(0, 40, 2):
        optimizer.zero_grad()
        if world > 1:
            with wrapped.no_sync():
                (loss_on(wrapped, step, rank, world) / 2).backward()
        else:
            (loss_on(wrapped, step, rank, world) / 2).backward()
        (loss_on(wrapped, step + 1, rank, world) / 2).backward()
        optimizer.step()
    return model


def dropped(rank, world):
    """Layers left out at random, by each process others, below a part that nothing depends on."""
    torch.manual_seed(0)
    model = Dropping(0.4, seed=rank)
    model.pooler = nn.Linear(2, 2)
    optimizer = BlockOptimizer(DistributedDataParallel(model), policy="cyclic", period=4, lr=0.01)
    for step in range(400):
        optimizer.zero_grad()
        loss_on(optimizer.wrapper, step, rank, world).backward()
        optimizer.step()
    return flat(model).numpy(), optimizer.book.alive


def reduced_elements(rank, world):
    """How many numbers DDP reduces at a step of each block."""
    model = DistributedDataParallel(stack())
    counts = {}
    optimizer = BlockOptimizer(model, policy="cyclic", period=2, lr=0.01)

    def count(state, bucket):
        block = optimizer.active_blocks[0]
        counts[block] = bucket.buffer().numel()
        future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        return future.then(lambda done: done.value()[0] / world)

    # DDP compares annotations of hooks with its own types.
    count.__annotations__ = {
        "bucket": dist.GradBucket,
        "return": torch.futures.Future[torch.Tensor],
    }
    model.register_comm_hook(None, count)
    for step in range(12):
        optimizer.zero_grad()
        loss_on(model, step, rank, world).backward()
        optimizer.step()
    return counts


def main(rank, world, folder):
    results = {}
    variants = {
        "measured": ("inverse-cost", STEPS, {}),
        "musketeer": (BlockMusketeer(gain_per="cost", mix=0.2), STEPS, {}),
        "loss": (BlockMusketeer(gain="loss", gain_per="step"), 100, {}),
        "probe": (BlockMusketeer(probe=2, gain_per="step"), 100, {}),
        "attached": ("shuffled", 100, {"attach": True, "seed": 3}),
        "always": ("shuffled", 100, {"always": ["head"], "active": 2, "seed": 3}),
    }
    for name, (policy, steps, settings) in variants.items():
        if world == 1 and name not in ("attached", "always"):
            continue
        model, optimizer = run(rank, world, policy, steps, **settings)
        results[name] = flat(model).numpy()
        results[f"{name} probabilities"] = np.array(list(optimizer.probabilities().values()))
        results[f"{name} visits"] = optimizer.book.counts
    results["accumulated"] = flat(accumulated(rank, world)).numpy()
    if world > 1:
        results["dropped"], results["dropped alive"] = dropped(rank, world)
        for block, count in reduced_elements(rank, world).items():
            results[f"reduced {block}"] = count
    np.savez(Path(folder) / f"blocks-{world}-{rank}.npz", **results)


if __name__ == "__main__":
    rank, world, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    if world > 1:
        dist.init_process_group(
            "gloo",
            init_method=f"file://{folder}/meeting",
            rank=rank,
            world_size=world,
            timeout=timedelta(seconds=120),
        )
    main(rank, world, folder)
    if world > 1:
        dist.barrier()
        dist.destroy_process_group()
