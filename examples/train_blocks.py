"""
Training one block at a time
============================

Train a small language model one block at a time and draw the law that was learned.

It learns to write like the docstrings of Python's own library. Half a minute on one core::

    pip install scgd[torch]
    python examples/train_blocks.py [picture.png]

prints ::

    step    0  loss 4.737  training head
    step  100  loss 2.800  training head
    step  200  loss 2.702  training head
    step  300  loss 2.479  training layers.1
    step  400  loss 2.342  training head
    step  500  loss 2.613  training head
    step  600  loss 2.439  training head
    law: {'positions': 0.019, 'embeddings': 0.019, 'layers.0': 0.18, 'layers.1': 0.155,
    'layers.2': 0.196, 'head': 0.43}

Seconds decide the law of ``gain_per="second"``, so yours will differ a little.

.. image:: /images/gallery/train_blocks.png
   :alt: what this program draws
"""
# sphinx_gallery_thumbnail_path = 'images/gallery/train_blocks-thumb.png'

import argparse
import sys
import textwrap
import unittest.case
import unittest.mock

import torch
from torch import nn
from torch.nn import functional as F

from scgd.torch import BlockOptimizer
from scgd.torch.blocks import BlockMusketeer

WIDTH, CONTEXT, STEPS = 32, 32, 600


class Model(nn.Module):
    """Characters, three transformer layers and a head."""

    def __init__(self, n_characters: int) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(n_characters, WIDTH)
        self.positions = nn.Parameter(torch.zeros(CONTEXT, WIDTH))
        layer = {"dim_feedforward": 64, "dropout": 0.0, "batch_first": True, "norm_first": True}
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(WIDTH, 4, **layer) for _ in range(3))
        self.head = nn.Linear(WIDTH, n_characters)

    def forward(self, tokens):
        """Return the scores of the next character at each place."""
        hidden = self.embeddings(tokens) + self.positions
        mask = nn.Transformer.generate_square_subsequent_mask(CONTEXT)
        for layer in self.layers:
            hidden = layer(hidden, src_mask=mask, is_causal=True)
        return self.head(hidden)


def docstrings(*modules):
    """Return the docstrings of modules, of their classes and of the methods of those."""
    found = []
    for module in modules:
        things = [module, *vars(module).values()]
        for thing in things:
            found += [thing.__doc__, *(getattr(part, "__doc__", "") for part in parts_of(thing))]
    plain = "\n".join(text for text in found if isinstance(text, str))
    return "".join(c for c in plain if c.isascii())


def parts_of(thing):
    return vars(thing).values() if isinstance(thing, type) else ()


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    text = docstrings(argparse, textwrap, unittest.mock, unittest.case)
    characters = sorted(set(text))
    tokens = torch.tensor([characters.index(c) for c in text])
    model = Model(len(characters))
    policy = BlockMusketeer(gain_per="second")
    optimizer = BlockOptimizer(
        model, blocks="layer", active=1, policy=policy, period=10, seed=0, lr=3e-3
    )
    for step in range(STEPS + 1):
        start = torch.randint(0, len(tokens) - CONTEXT - 1, (16,))
        rows = torch.stack([tokens[i : i + CONTEXT + 1] for i in start])
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        loss.backward()
        if step % 100 == 0:
            print(f"step {step:4d}  loss {loss:.3f}  training {optimizer.active_blocks[0]}")
        optimizer.step()
        optimizer.zero_grad()
    print("law:", {name: round(p, 3) for name, p in optimizer.law().items()})
    picture = sys.argv[1] if len(sys.argv) > 1 else "block-law.png"
    optimizer.picture(picture)
    print(f"the law over the run is in {picture}")


if __name__ == "__main__":
    main()
