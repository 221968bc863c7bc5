"""The methods compared: each row says how a model becomes one with an optimizer.

The head starts at random, so every method trains it all the time, at the same rate.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from blockllm import BlockLLM
from torch import nn

from scgd.torch import BlockOptimizer
from scgd.torch.blocks import BlockMusketeer, Cyclic, UniformBlocks

HEAD_RATE, PERIOD = 1e-3, 10


@dataclass(frozen=True)
class Method:
    """A way to train, and the rates tried on the tuning seed."""

    build: Callable[[nn.Module, float, int], tuple[nn.Module, torch.optim.Optimizer]]
    rates: tuple[float, ...]


def with_head(model: nn.Module, lr: float) -> list[dict[str, Any]]:
    """Return the parameters in training, the head in a group of its own."""
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    return [
        {"params": [p for n, p in named if "head" not in n], "lr": lr},
        {"params": [p for n, p in named if "head" in n], "lr": HEAD_RATE},
    ]


def adamw(model: nn.Module, lr: float, seed: int) -> Any:
    """All parameters."""
    return model, torch.optim.AdamW(with_head(model, lr))


def lora(model: nn.Module, lr: float, seed: int) -> Any:
    """Rank 8 on every query, key and value matrix and both dense ones (peft)."""
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=8,
        lora_alpha=16,
        lora_dropout=0.0,
        target_modules=["query", "key", "value", "dense"],
        modules_to_save=["head"],
    )
    model = get_peft_model(model, config)
    return model, torch.optim.AdamW(with_head(model, lr))


def blocks(**settings: Any) -> Any:
    """Return a maker of block optimizers; embeddings stay frozen unless the row says otherwise."""
    one = {"blocks": "layer", "active": 1}
    chosen = {**one, "period": PERIOD, "never": ["embeddings"], "always": ["head"], **settings}

    def build(model: nn.Module, lr: float, seed: int) -> Any:
        own = {"head": {"lr": HEAD_RATE}}
        return model, BlockOptimizer(model, groups=own, seed=seed, lr=lr, **chosen)

    return build


def defaults(**settings: Any) -> Any:
    """Return a maker of block optimizers with what they have by default."""
    return blocks(**{"blocks": "module", "active": 6, **settings})


def eight_bit(model: nn.Module, lr: float, seed: int) -> Any:
    """AdamW with two moments of eight bits each (bitsandbytes)."""
    import bitsandbytes

    return model, bitsandbytes.optim.AdamW8bit(with_head(model, lr))


def projected(package: str, name: str, **settings: Any) -> Any:
    """Return a maker of optimizers that keep moments of projected gradients of the matrices."""

    def build(model: nn.Module, lr: float, seed: int) -> Any:
        make = getattr(__import__(package), name)
        rest, head = with_head(model, lr)
        matrices = [p for p in rest["params"] if p.ndim == 2]
        rest["params"] = [p for p in rest["params"] if p.ndim != 2]
        low = {"params": matrices, "lr": lr, "rank": 32, "update_proj_gap": 200, "scale": 1.0}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            return model, make([rest, head, {**low, "proj_type": "std", **settings}])

    return build


PER_COST = BlockMusketeer(gain_per="cost")
FULL = BLOCK = (5e-5, 1e-4, 2e-4, 4e-4)
NEAR = (1e-4, 2e-4)  # policies of one block: where top-2 and inverse-cost are best, worse beside it
WIDE = (5e-5, 1e-4, 2e-4, 4e-4, 8e-4)
METHODS: dict[str, Method] = {
    "adamw": Method(adamw, FULL),
    "top-2": Method(blocks(policy="top", active=2), BLOCK),
    "lora": Method(lora, (2.5e-4, 5e-4, 1e-3, 2e-3)),
    "inverse-cost": Method(blocks(policy="inverse-cost"), BLOCK),
    "musketeer/s": Method(blocks(policy=BlockMusketeer(gain_per="cost")), NEAR),
    "musketeer": Method(blocks(policy="musketeer"), NEAR),
    "badam": Method(blocks(policy="shuffled"), NEAR),
    "top-down": Method(blocks(policy="top-down"), NEAR),
    "uniform": Method(blocks(policy="uniform"), NEAR),
    "misa": Method(blocks(policy="misa", blocks="module", active=6), WIDE),
    "lisa": Method(
        blocks(
            policy=UniformBlocks(first_cycle=False, coverage=0),
            never=[],
            always=["head", "embeddings"],
        ),
        WIDE,
    ),
    "default": Method(defaults(), WIDE),
    "per cost": Method(defaults(policy=PER_COST), WIDE),
    "per cost, adafactor": Method(
        defaults(policy=PER_COST, inner=torch.optim.Adafactor, in_backward=True), (2e-3, 5e-3)
    ),
    "adafactor in backward": Method(
        defaults(
            inner=torch.optim.Adafactor,
            in_backward=True,
            blocks={"all": ".*"},
            policy="top",
            always=[],
        ),
        (2e-3, 5e-3),
    ),
    "adamw, 8 bits": Method(eight_bit, FULL),
    "galore": Method(projected("galore_torch", "GaLoreAdamW"), FULL),
    "apollo": Method(
        projected("apollo_torch", "APOLLOAdamW", proj="random", scale_type="channel"), FULL
    ),
    "probe/s": Method(blocks(policy=BlockMusketeer(gain_per="cost", probe=6)), BLOCK),
    "top-1": Method(blocks(policy="top"), BLOCK),
    "inverse-cost, 2": Method(blocks(policy="inverse-cost", active=2), BLOCK),
    "inverse-cost, kept": Method(blocks(policy="inverse-cost", keep_state="cpu"), BLOCK),
    "inverse-cost, long": Method(blocks(policy="inverse-cost", period=50), BLOCK),
    "descending": Method(blocks(policy=Cyclic("descending")), BLOCK),
    "blockllm": Method(blocks(policy=BlockLLM()), BLOCK),
}
LEADERS, RIVALS, FURTHER = list(METHODS)[:4], list(METHODS)[4:11], list(METHODS)[18:]
"""The order of the runs: what decides most comes first."""
