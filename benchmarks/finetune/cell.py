"""Train once with one method, rate and seed, in a process of its own; print the row.

    python benchmarks/finetune/cell.py METHOD RATE SEED SECONDS [only-measure] [shifted]

Seconds are CPU seconds of this process on one thread, so a busy machine does not shorten a run. The
rate falls linearly to zero over them. Memory is the peak of the process above what it holds when
training begins (model, data, optimizer).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from methods import METHODS
from minilm import Classifier
from sentences import splits
from torch.nn import functional as F

BATCH = 8


def bytes_of(optimizer: Any, model: torch.nn.Module) -> int:
    """Return the bytes of gradients and of the optimizer's state."""
    grads = sum(p.grad.nbytes for p in model.parameters() if p.grad is not None)
    if not grads:  # steps in backward: one gradient at a time
        grads = max(p.nbytes for p in model.parameters() if p.requires_grad)
    found = [v for state in optimizer.state.values() for v in state.values()]
    found += [w for v in found if hasattr(v, "ortho_matrix") for w in vars(v).values()]  # GaLore
    return grads + sum(v.nbytes for v in found if torch.is_tensor(v))


class Peak:
    """The peak memory of this process from now on (Linux), above what it holds now."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")
        self.before = self._kilobytes("VmRSS")

    def _kilobytes(self, name: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(name + ":"))

    def megabytes(self) -> float:
        """Return how far the process has gone above its beginning."""
        return (self._kilobytes("VmHWM") - self.before) * 1024 / 1e6


class Saved:
    """Counts the bytes that backward keeps, each storage once and no parameters."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.seen = {p.untyped_storage().data_ptr() for p in model.parameters()}
        self.total = 0

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        """Count a tensor that is kept."""
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self.seen:
            self.seen.add(storage.data_ptr())
            self.total += storage.nbytes()
        return tensor


def fit(
    model: torch.nn.Module, optimizer: Any, loss_of: Callable[[], torch.Tensor], seconds: float
) -> dict[str, Any]:
    """Train for CPU seconds, ``loss_of`` drawing the batches; return the steps and peaks of memory."""
    base = [group["lr"] for group in optimizer.param_groups]
    spent, steps, peak, saved_peak, seen = 0.0, 0, 0, 0, set()
    memory = Peak()
    while spent < seconds:
        start = time.process_time()
        for group, lr in zip(optimizer.param_groups, base, strict=True):
            group["lr"] = lr * (1 - spent / seconds)
        active = tuple(getattr(optimizer, "active_blocks", ()))
        if active in seen:
            loss = loss_of()
        else:
            saved = Saved(model)
            with torch.autograd.graph.saved_tensors_hooks(saved.pack, lambda t: t):
                loss = loss_of()
        loss.backward()
        if hasattr(optimizer, "tell"):
            optimizer.tell(loss)
        optimizer.step()
        if active not in seen:
            seen.add(active)
            peak = max(peak, bytes_of(optimizer, model))
            saved_peak = max(saved_peak, saved.total)
        optimizer.zero_grad()
        spent += time.process_time() - start
        steps += 1
    return {
        "steps": steps,
        "gradients_state_mb": round(peak / 1e6, 2),
        "activations_mb": round(saved_peak / 1e6, 1),
        "process_mb": round(memory.megabytes()),
    }


def train(
    method: str,
    rate: float,
    seed: int,
    seconds: float,
    judged: bool = True,
    shifted: bool = False,
) -> dict[str, Any]:
    """Return what came out of one run, without accuracy and loss unless it is judged."""
    data, test = splits(seed, shifted)
    torch.manual_seed(seed)
    model, optimizer = METHODS[method].build(Classifier(seed).train(), rate, seed)
    batches = drawn(len(data[0]), torch.Generator().manual_seed(seed))

    def loss_of() -> torch.Tensor:
        batch = next(batches)
        return F.cross_entropy(model(data[0][batch], data[1][batch]), data[2][batch])

    measured = fit(model, optimizer, loss_of, seconds)
    row = {"method": method, "rate": rate, "seed": seed, "seconds": seconds, **measured}
    if judged:
        accuracy, loss = judge(model, test)
        row |= {"accuracy": round(accuracy, 4), "loss": round(loss, 4)}
    if hasattr(optimizer, "book"):
        row["visits"] = json.dumps(visits(optimizer))
    return row


def drawn(n_rows: int, order: torch.Generator) -> Iterator[torch.Tensor]:
    """Return batches of all rows in random order, again and again."""
    while True:
        yield from torch.randperm(n_rows, generator=order).split(BATCH)


def visits(optimizer: Any) -> dict[str, int]:
    """Return the visits of each layer (of its modules together)."""
    counts: dict[str, int] = {}
    for name, times in zip(optimizer.book.names, optimizer.book.counts, strict=True):
        layer = name.partition("layer.")[2].partition(".")[0]
        counts[layer] = counts.get(layer, 0) + int(times)
    return counts


@torch.no_grad()
def judge(model: torch.nn.Module, test: Any) -> tuple[float, float]:
    """Return accuracy and loss on the test sentences."""
    model.eval()
    scores = torch.cat(
        [model(t, m) for t, m in zip(test[0].split(64), test[1].split(64), strict=True)]
    )
    right = (scores.argmax(1) == test[2]).double().mean()
    return float(right), float(F.cross_entropy(scores, test[2]))


if __name__ == "__main__":
    torch.set_num_threads(1)
    name, rate, seed, seconds, *words = sys.argv[1:]
    chosen = {"judged": "only-measure" not in words, "shifted": "shifted" in words}
    print("ROW " + json.dumps(train(name, float(rate), int(seed), float(seconds), **chosen)))
