"""One process of a data parallel run: ``python parallel_worker.py scenarios rank world folder``."""

import os
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.nn  # before the group is made: imported later, it holds the group for ever
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from scgd import Musketeer
from scgd.torch import SCGD, ZeroOrderSCGD, reduce_sampled

VARIANTS = {
    "poisson": {},
    "distinct adam": {"sampling": "distinct", "rule": "adam"},
    "softmax": {"policy": Musketeer(normalization="softmax"), "sampling": "replacement"},
    "rows": {"granularity": "rows", "fraction": 0.3},
    "rare": {"block_size": 1},
}
N_ROWS = 24


def model_of(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).double()


def share(rank, world):
    x = torch.randn(N_ROWS, 8, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    size = N_ROWS // world
    x = x[rank * size : (rank + 1) * size]
    return x, x[:, :1] - x[:, 1:2] ** 2


def loss_of(model, x, y):
    return (model(x) - y).square().mean()


def flat(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()]).numpy()


def first_order(rank, world, variant, n_steps, optimizer=None, model=None):
    x, y = share(rank, world)
    model = model_of() if model is None else model
    group = dist.group.WORLD if dist.is_initialized() else None
    if optimizer is None:
        settings = VARIANTS[variant]
        optimizer = SCGD(
            model.parameters(), 0.05, seed=3 + 4 * rank, process_group=group, check_every=5,
            **settings,
        )  # fmt: skip
    wrapped = DistributedDataParallel(model) if group else model
    for _ in range(n_steps):
        optimizer.zero_grad()
        if group:
            with wrapped.no_sync():
                loss_of(wrapped, x, y).backward()
        else:
            loss_of(wrapped, x, y).backward()
        optimizer.step()
    return model, optimizer


def agree(rank, world, folder):
    results = {}
    for variant in VARIANTS:
        model, optimizer = first_order(rank, world, variant, 40)
        results[variant] = flat(model)
        results[variant + " weights"] = optimizer.weights()
        results[variant + " bytes"] = optimizer.team.n_bytes
    results["hook"] = hooked(rank, world)
    results["zeroth"], results["zeroth bytes"] = zeroth(rank, world)
    results["resumed"] = resumed(rank, world, folder)
    np.savez(folder / f"agree-{world}-{rank}.npz", **results)


def alone(rank, world, folder):
    """One process with all the data; the reference of the others."""
    results = {}
    for variant in VARIANTS:
        model, optimizer = first_order(0, 1, variant, 40)
        results[variant] = flat(model)
        if variant == "poisson":
            torch.save(optimizer.state_dict(), folder / "state-1-0.pt")
            torch.save(model.state_dict(), folder / "model-1-0.pt")
            results["hook"] = results[variant]
    results["zeroth"], _ = zeroth(0, 1)
    results["resumed"] = resumed(0, 1, folder)
    np.savez(folder / "alone.npz", **results)


def hooked(rank, world):
    x, y = share(rank, world)
    model = DistributedDataParallel(model_of())
    optimizer = SCGD(model.parameters(), 0.05, seed=3)
    model.register_comm_hook(optimizer, reduce_sampled)
    for _ in range(40):
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()
    return flat(model)


def zeroth(rank, world):
    x, y = share(rank, world)
    model = model_of()
    group = dist.group.WORLD if dist.is_initialized() else None
    optimizer = ZeroOrderSCGD(
        model.parameters(), 0.2, radius=1e-3, block_size=2, seed=1, process_group=group,
        check_every=0, estimator="forward",
    )  # fmt: skip
    for _ in range(40):
        optimizer.step(lambda: loss_of(model, x, y))
    return flat(model), optimizer.team.n_bytes


def resumed(rank, world, folder):
    """Go on from a state saved by one process."""
    model = model_of()
    model.load_state_dict(torch.load(folder / "model-1-0.pt", weights_only=True))
    group = dist.group.WORLD if dist.is_initialized() else None
    optimizer = SCGD(model.parameters(), 0.05, seed=99, process_group=group)
    optimizer.load_state_dict(torch.load(folder / "state-1-0.pt", weights_only=True))
    return flat(first_order(rank, world, "poisson", 20, optimizer, model)[0])


def dies(rank, world, folder):
    """Rank 1 leaves without a word after three steps; the others must notice."""
    model = model_of()
    x, y = share(rank, world)
    optimizer = SCGD(model.parameters(), 0.05, process_group=dist.group.WORLD, seed=0)
    for step in range(20):
        if rank == 1 and step == 3:
            os._exit(0)
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        try:
            optimizer.step()
        except RuntimeError as error:
            (folder / f"dies-{rank}.txt").write_text(str(error))
            os._exit(0)


def differs(rank, world, folder):
    """Processes that do not start alike must be told."""
    model = model_of(seed=rank)
    x, y = share(rank, world)
    optimizer = SCGD(model.parameters(), 0.05, process_group=dist.group.WORLD)
    loss_of(model, x, y).backward()
    try:
        optimizer.step()
    except RuntimeError as error:
        (folder / f"differs-{rank}.txt").write_text(str(error))


def unseeded(rank, world, folder):
    """Plain DDP, no seed and no process group: the processes must draw alike all the same."""
    results = {}
    for name, settings in {"fused": {}, "adam": {"rule": "adam"}, "rows": VARIANTS["rows"]}.items():
        x, y = share(rank, world)
        model = DistributedDataParallel(model_of())
        optimizer = SCGD(model.parameters(), 0.05, **settings)
        for _ in range(20):
            optimizer.zero_grad()
            loss_of(model, x, y).backward()
            optimizer.step()
        results[name] = flat(model)
        results[name + " seed"] = optimizer.param_groups[0]["seed"]
    np.savez(folder / f"unseeded-{rank}.npz", **results)


def sharded_checkpoint(rank, world, folder):
    """Sampler and moments of shards go through a distributed checkpoint, in shards."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint import state_dict as tools
    from torch.distributed.fsdp import fully_shard

    x, y = (t.float() for t in share(rank, world))

    def train(model, optimizer, n_steps):
        losses = []
        for _ in range(n_steps):
            optimizer.zero_grad()
            loss = loss_of(model, x, y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    # A Poisson draw corrects its size from step to step; shards find that correction anew.
    cases = [("sgd", "distinct", 1e-6), ("adam", "distinct", 1e-6), ("adam", "poisson", 1e-2)]
    for rule, sampling, rtol in cases:
        settings = {"fraction": 0.3, "rule": rule, "sampling": sampling, "seed": 0}
        model = fully_shard(model_of().float())
        optimizer = SCGD(model.parameters(), 0.02, **settings)
        train(model, optimizer, 6)
        whole = tools.get_state_dict(model, optimizer)
        place = folder / f"sharded-{rule}-{sampling}"
        dcp.save({"model": whole[0], "optimizer": whole[1]}, checkpoint_id=place)
        other = fully_shard(model_of(seed=9).float())
        fresh = SCGD(other.parameters(), 0.02, **settings)
        wanted = tools.get_state_dict(other, fresh)
        loaded = {"model": wanted[0], "optimizer": wanted[1]}
        dcp.load(loaded, checkpoint_id=place)
        tools.set_state_dict(
            other,
            fresh,
            model_state_dict=loaded["model"],
            optim_state_dict=loaded["optimizer"],
        )
        kept = next(iter(fresh.state.values()))["gains"]
        assert type(kept).__name__ == "DTensor", type(kept)
        one, two = train(model, optimizer, 5), train(other, fresh, 5)
        assert np.allclose(one, two, rtol=rtol), (settings, one, two)


def frozen(rank, world, folder):
    """A frozen parameter stays, weight decay or not."""
    model = model_of()
    still = next(iter(model.parameters())).requires_grad_(False)
    before, (x, y) = still.clone(), share(rank, world)
    optimizer = SCGD(
        model.parameters(), 0.1, fraction=0.5, weight_decay=0.1, process_group=dist.group.WORLD
    )
    for _ in range(5):
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()
    assert torch.equal(still, before)
    pairs = zip(optimizer.param_groups[0]["params"], model_of().parameters(), strict=True)
    assert any(not torch.equal(now, then) for now, then in pairs)


def shards(rank, world, folder):
    """Sharded parameters: every process moves entries of its own shard."""
    from torch.distributed.fsdp import fully_shard

    model = fully_shard(model_of().float())
    x, y = (t.float() for t in share(rank, world))
    optimizer = SCGD(model.parameters(), 0.05, fraction=0.3, seed=0)
    try:
        ZeroOrderSCGD(model.parameters(), 0.05, radius=1e-2, estimator="forward")
        raise AssertionError("probes of shards would mix")
    except ValueError as error:
        assert "sharded" in str(error)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = loss_of(model, x, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    n_local = sum(p.to_local().numel() for p in model.parameters())
    assert optimizer.layouts[0].n_coords == n_local
    np.savez(folder / f"shards-{rank}.npz", losses=losses)


if __name__ == "__main__":
    scenarios, rank, world, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    torch.set_num_threads(1)
    if world > 1:
        dist.init_process_group(
            "gloo",
            init_method=f"file://{folder}/meeting-{world}",
            rank=rank,
            world_size=world,
            timeout=timedelta(seconds=60),
        )
    for scenario in scenarios.split(","):
        globals()[scenario](rank, world, Path(folder))
    if world > 1:
        dist.barrier()
        dist.destroy_process_group()
