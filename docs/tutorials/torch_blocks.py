"""
PyTorch, a tutorial
===================

A model whose gradients and optimizer state do not fit can be trained one block at a time; where
there is no backward pass at all, forward passes do.
"""

import plotly.graph_objects as go
import torch
from torch import nn

import scgd.torch

torch.manual_seed(0)
X = torch.randn(2000, 20)
y = (X[:, :5].prod(1) > 0).long()


def network():
    """Return a small network with four layers."""
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(),
        nn.Linear(64, 2),
    )  # fmt: skip


def train(model, optimizer, steps=600):
    """Return the loss of each step."""
    losses = []
    for step in range(steps):
        rows = torch.arange(step * 64, step * 64 + 64) % len(X)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(X[rows]), y[rows])
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


# %%
# ``BlockOptimizer`` wraps any optimizer. Gradients and state exist for the block in turn alone, and
# the backward pass stops at it. Printed are the probabilities of the next draw: ``shuffled`` visits
# every block once per round, so a block that has had its visit in this round has 0.

model = network()
blocks = scgd.torch.BlockOptimizer(
    model, torch.optim.AdamW, active=1, period=25, policy="shuffled", lr=3e-3, seed=0
)
by_block = train(model, blocks)
print({name: round(float(weight), 3) for name, weight in blocks.law().items()})

# %%
# All at once, for comparison. Steps are equal here, and seconds and memory are not: each step of
# the blocks moves one layer of four, with the gradients and the state of that layer alone. After as
# many steps every layer has moved a quarter as often, and the loss is higher. Use blocks where all
# at once does not fit, or compare at equal seconds (the table in :doc:`/blocks`).

model = network()
at_once = train(model, torch.optim.AdamW(model.parameters(), lr=3e-3))

figure = go.Figure()
for name, losses in (("one block at a time", by_block), ("AdamW, all at once", at_once)):
    smooth = torch.tensor(losses).unfold(0, 25, 5).mean(1).tolist()
    figure.add_scatter(x=list(range(25, 601, 5)), y=smooth, name=name)
figure.update_layout(
    template="plotly_white", height=360, xaxis_title="step", yaxis_title="loss, mean of 25 steps"
)
figure.write_html("torch_blocks.html", config={"displayModeBar": False})

# %%
# Forward passes only, no rate to choose:

model = network()
optimizer = scgd.torch.ZeroOrderSCGD(model.parameters(), seed=0)
for _ in range(300):
    last = optimizer.step(lambda: nn.functional.cross_entropy(model(X[:512]), y[:512]))
print(f"loss after 300 steps without a backward pass: {float(last):.3f}")
