"""Small models that the tests of blocks share."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from scgd import torch as scgd_torch


class BlockOptimizer(scgd_torch.BlockOptimizer):
    """Blocks as most tests want them: layers, one at a time."""

    def __init__(self, model, *args, **settings):
        usual = {"active": 1} if len(args) > 1 else {"blocks": "layer", "active": 1}
        super().__init__(model, *args, **{**usual, **settings})


class Stack(nn.Module):
    """Embeddings, layers and a head, as in a language model."""

    def __init__(self, n_layers=4, width=8, checkpointing=None, tied=False):
        super().__init__()
        self.embeddings = nn.Embedding(11, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(n_layers))
        self.head = nn.Linear(width, 11 if tied else 3, bias=not tied)
        self.checkpointing = checkpointing
        if tied:
            self.head.weight = self.embeddings.weight

    def forward(self, tokens):
        hidden = self.embeddings(tokens)
        for layer in self.layers:
            if self.checkpointing is None:
                hidden = torch.tanh(layer(hidden))
            else:
                reentrant = self.checkpointing == "reentrant"
                hidden = torch.tanh(checkpoint(layer, hidden, use_reentrant=reentrant))
        return self.head(hidden.mean(1))


class Dropping(Stack):
    """Layers that are left out at random (LayerDrop)."""

    def __init__(self, drop, seed=1):
        super().__init__(n_layers=6)
        self.drop, self.random = drop, torch.Generator().manual_seed(seed)

    def forward(self, tokens):
        hidden = self.embeddings(tokens)
        for layer in self.layers:
            if not self.training or torch.rand(1, generator=self.random) >= self.drop:
                hidden = hidden + torch.tanh(layer(hidden))
        return self.head(hidden.mean(1))


def stack(seed=0, **settings):
    torch.manual_seed(seed)
    return Stack(**settings)


def batch(step, size=16):
    drawn = torch.Generator().manual_seed(step)
    tokens = torch.randint(0, 11, (size, 5), generator=drawn)
    return tokens, (tokens < 5).sum(1) // 2


def loss_of(model, step, size=16):
    tokens, labels = batch(step, size)
    return nn.functional.cross_entropy(model(tokens).float(), labels)


def train(model, optimizer, steps, start=0, each=None):
    losses = []
    for step in range(start, start + steps):
        optimizer.zero_grad()
        loss = loss_of(model, step)
        loss.backward()
        if isinstance(optimizer, BlockOptimizer):
            optimizer.tell(loss)
        optimizer.step()
        losses.append(loss.item())
        if each is not None:
            each()
    return losses


def flat(model):
    return torch.cat([p.detach().float().reshape(-1) for p in model.parameters()])


def costs(optimizer_or_names):
    """Made-up costs, so that runs repeat: lower blocks are dearer."""
    names = list(optimizer_or_names)
    return {name: float(len(names) - i) for i, name in enumerate(names)}
