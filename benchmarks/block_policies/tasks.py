"""Small transformers that have learned digits and must change at the bottom, at the top, or all over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F

SIZES = {"small": (48, 6, 4), "tiny": (32, 4, 2)}  # width, layers, heads
WHERE = ("bottom", "top", "all")


class Layer(nn.Module):
    """Attention and a perceptron, normalised before each."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.qkv, self.out = (
            nn.LayerNorm(width),
            nn.Linear(width, 3 * width),
            nn.Linear(width, width),
        )
        self.norm2, self.up, self.down = (
            nn.LayerNorm(width),
            nn.Linear(width, 2 * width),
            nn.Linear(2 * width, width),
        )
        self.heads = heads

    def forward(self, x: Tensor) -> Tensor:
        """Return the states after the layer."""
        n, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, d)
        x = x + self.out(seen)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """Reads a digit of 8 x 8 pixels row by row."""

    def __init__(self, size: str = "small") -> None:
        super().__init__()
        width, depth, heads = SIZES[size]
        self.embedding = nn.Linear(8, width)
        self.place = nn.Parameter(0.02 * torch.randn(8, width))
        self.layers = nn.ModuleList([Layer(width, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        x = self.embedding(x.view(-1, 8, 8)) + self.place
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1))


@dataclass
class Task:
    """A trained model, batches of what it is to learn, and a test."""

    model: Transformer
    train: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]
    seed: int

    def batches(self, size: int = 32) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield random batches for ever."""
        generator = torch.Generator().manual_seed(1000 + self.seed)
        x, y = self.train
        while True:
            rows = torch.randint(0, len(x), (size,), generator=generator)
            yield x[rows], y[rows]

    @torch.no_grad()
    def score(self) -> tuple[float, float]:
        """Return loss and accuracy on the test rows."""
        logits = self.model(self.test[0])
        right = (logits.argmax(1) == self.test[1]).float().mean()
        return float(F.cross_entropy(logits, self.test[1])), float(right)


def digits() -> tuple[Tensor, Tensor]:
    """Return scikit-learn's digits in an order of their own."""
    data = load_digits()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(7))
    return torch.tensor(data.data / 16, dtype=torch.float32)[order], torch.tensor(data.target)[
        order
    ]


def trained(seed: int, size: str, x: Tensor, y: Tensor, folder: Path) -> Transformer:
    """Return a transformer trained for fifteen epochs of Adam, kept in a file."""
    torch.manual_seed(seed)
    model, path = Transformer(size), folder / f"digits-{size}-{seed}.pt"
    if path.exists():
        model.load_state_dict(torch.load(path, weights_only=True))
        return model
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for _ in range(15):
        for rows in torch.randperm(len(x)).split(50):
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), path)
    return model


def make(where: str, seed: int, folder: Path, size: str = "small") -> Task:
    """Return a task: inputs inverted, mirrored and noisy; labels permuted; or both."""
    x, y = digits()
    model = trained(seed, size, x[:1300], y[:1300], folder)
    if where in ("bottom", "all"):
        noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed))
        x = 1 - x.view(-1, 8, 8).flip(2).reshape(len(x), 64) + 0.1 * noise
    if where in ("top", "all"):
        y = (3 * y + 1) % 10
    return Task(model, (x[:1300], y[:1300]), (x[1300:], y[1300:]), seed)


def adapt(model: Any) -> None:
    """Freeze a transformer but for its norm, its head and new factors of rank 4 of every matrix."""
    from peft import LoraConfig, inject_adapter_in_model

    names = ["qkv", "out", "up", "down"]
    inject_adapter_in_model(LoraConfig(r=4, lora_alpha=8, target_modules=names), model)
    for part in (model.norm, model.head):
        part.requires_grad_(True)
