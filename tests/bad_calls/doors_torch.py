"""What the arguments of scgd.torch take."""

import torch

from scgd.torch import SCGD, BlockOptimizer, ZeroOrderSCGD
from scgd.torch.directions import SparseMeZO


def parameters():
    torch.manual_seed(0)
    return [torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(2, 2))]


def first_order(params=None, **keywords):
    """Take two steps."""
    params = parameters() if params is None else params
    made = SCGD(params, **{"seed": 0, **keywords})
    for _ in range(2):
        made.zero_grad()
        sum((p**2).sum() for p in params).backward()
        made.step()


def zeroth_order(params=None, **keywords):
    params = parameters() if params is None else params
    made = ZeroOrderSCGD(params, **{"seed": 0, **keywords})
    for _ in range(2):
        made.step(lambda: float(sum((p.detach() ** 2).sum() for p in params)))


def by_blocks(model=None, **keywords):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    model = net if model is None else model
    made = BlockOptimizer(model, **{"seed": 0, **keywords})
    for _ in range(2):
        made.zero_grad()
        model(torch.ones(4, 3)).pow(2).sum().backward()
        made.step()


RULE = {
    "rule": "choice", "momentum": "fraction", "dampening": "fraction", "nesterov": "flag",
    "betas": "nothing", "eps": "nonnegative", "amsgrad": "flag", "weight_decay": "nonnegative",
    "decoupled_weight_decay": "flag", "maximize": "flag", "seed": "seeds+none",
    "process_group": "none", "check_every": "natural", "fused": "flag+none", "foreach": "flag+none",
    "capturable": "none", "differentiable": "none",
}  # fmt: skip
DOORS = {
    "SCGD": (first_order, SCGD, {
        **RULE, "params": "none", "lr": "nonnegative", "fraction": "fraction",
        "block_size": "count+none", "policy": "choice", "importance": "none", "sampling": "none",
        "granularity": "choice", "half_life": "limit+none",
    }),
    "ZeroOrderSCGD": (zeroth_order, ZeroOrderSCGD, {
        **RULE, "params": "none", "lr": "nonnegative+none", "radius": "positive+none",
        "estimator": "choice", "only": "none", "policy": "none", "block_size": "count+none",
        "granularity": "none", "importance": "none", "hold_still": "flag", "keep_copy": "flag",
    }),
    "BlockOptimizer": (by_blocks, BlockOptimizer, {
        "model": "none", "inner": "callable", "blocks": "callable", "period": "count",
        "policy": "choice", "always": "patterns", "never": "patterns", "first": "patterns",
        "active": "count", "keep_state": "choice", "cost": "none", "groups": "none+dict",
        "warmup": "natural", "importance": "none", "fp32_copy": "flag",
        "in_backward": "flag", "seed": "seeds+none",
    }),
    "SparseMeZO": (
        lambda **k: zeroth_order(estimator=SparseMeZO(**k)), SparseMeZO, {"kept": "fraction"},
    ),
}  # fmt: skip
