"""Accuracy against forward passes: ZeroOrderSCGD(params), tuned MeZO, FZOO and forward gradients.

``python benchmarks/forward_only/front.py`` tunes three rates for each rival on seed 100 and judges
the best on other seeds; ours gets nothing but the parameters. A row that stands in ``front.csv`` is
not run again. A forward gradient (a directional derivative) counts as two forward passes.
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
sys.path.insert(0, str(HERE.parent / "block_laws"))
from tasks import digits, make  # noqa: E402

FIELDS = ("task", "method", "rate", "seed", "forwards", "loss", "accuracy")
TUNING, AT = 100, (500, 1500, 3000)


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
    if task == "transformer, labels permuted":
        return make("top", seed, cache, "tiny").model, x, new
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
    params = [p.detach() for p in model.parameters()]

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
    held = {name: p.detach() for name, p in model.named_parameters()}

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

    return step


METHODS: dict[str, tuple[Any, tuple[float | None, ...]]] = {
    "ZeroOrderSCGD(params)": (zeroth_order, (None,)),
    "MeZO": (partial(zeroth_order, estimator="mezo", radius=1e-3), (1e-3, 1e-2, 3e-2)),
    "FZOO, 8 signs": (fzoo, (1e-3, 1e-2, 3e-2)),
    "forward gradient": (forward_gradient, (1e-3, 1e-2, 3e-2)),
}
TASKS = ("logistic regression", "convolutions, labels permuted", "transformer, labels permuted")


def run(given: Any, task: str, method: str, rate: float | None, seed: int) -> None:
    """Run one cell unless its rows are there."""
    key = (task, method, "" if rate is None else f"{rate:g}", str(seed))
    if key in {tuple(row[name] for name in FIELDS[:4]) for row in rows(given.rows)}:
        return
    model, x, y = model_of(task, seed, given.cache)
    step = METHODS[method][0](model, rate, seed)
    drawn = torch.Generator().manual_seed(1000 + seed)
    spent, seen = 0, []
    for at in AT:
        while spent < at:
            picked = torch.randint(0, 1300, (64,), generator=drawn)
            batch = x[picked], y[picked]
            loss = lambda: F.cross_entropy(model(batch[0]), batch[1])  # noqa: E731, B023
            try:
                spent += step(loss, *batch) if method == "forward gradient" else step(loss)
            except FloatingPointError:
                spent = AT[-1]
        with torch.no_grad():
            logits = model(x[1300:])
            right = (logits.argmax(1) == y[1300:]).float().mean()
            seen.append((at, F.cross_entropy(logits, y[1300:]).item(), right.item()))
    new = not given.rows.exists()
    with given.rows.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([FIELDS] if new else [])
        writer.writerows((*key, at, f"{loss:.4f}", f"{right:.4f}") for at, loss, right in seen)


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows so far."""
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def best(path: Path, task: str, method: str) -> float | None:
    """Return the rate of the best last accuracy on the tuning seed; None if there is one only."""
    if len(METHODS[method][1]) == 1:
        return METHODS[method][1][0]
    key = (task, method, str(TUNING), str(AT[-1]))
    names = ("task", "method", "seed", "forwards")
    tried = [r for r in rows(path) if tuple(r[name] for name in names) == key]
    return float(max(tried, key=lambda row: float(row["accuracy"]))["rate"])


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, default=HERE / "front.csv")
    parser.add_argument("--cache", type=Path, default=Path("results/block_laws"))
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for task in TASKS:
        for method, (_, rates) in METHODS.items():
            for rate in rates if len(rates) > 1 else ():
                run(given, task, method, rate, TUNING)
        for method in METHODS:
            for seed in range(given.seeds):
                run(given, task, method, best(given.rows, task, method), seed)


if __name__ == "__main__":
    main()
