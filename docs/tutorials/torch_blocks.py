"""
PyTorch, a tutorial
===================

A model whose gradients and optimizer state do not fit can be trained one block at a time; where
there is no backward pass at all, forward passes do.
"""

import matplotlib.pyplot as plt
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


def kilobytes(model, optimizer):
    """Return what gradients and the optimizer's state take."""
    tensors = [weight.grad for weight in model.parameters() if weight.grad is not None]
    for state in optimizer.state.values():
        tensors += [part for part in state.values() if torch.is_tensor(part)]
    return sum(tensor.nbytes for tensor in tensors) / 1000


def train(model, optimizer, steps=600):
    """Return the mean loss of the last 25 steps, and the most kilobytes held."""
    losses, most = [], 0
    for step in range(steps):
        rows = torch.arange(step * 64, step * 64 + 64) % len(X)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(X[rows]), y[rows])
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
        most = max(most, kilobytes(model, optimizer))
    return sum(losses[-25:]) / 25, most


# %%
# ``BlockOptimizer`` wraps any optimizer. Gradients and state exist for the block in turn alone, and
# the backward pass stops at it. Printed are the probabilities of the next draw: ``shuffled`` visits
# every block once per round, so a block that has had its visit in this round has 0.

model = network()
blocks = scgd.torch.BlockOptimizer(
    model, torch.optim.AdamW, active=1, period=25, policy="shuffled", lr=3e-3, seed=0
)
by_block = train(model, blocks)
print({name: round(float(weight), 3) for name, weight in blocks.probabilities().items()})

# %%
# What it saves is memory: gradients and state of one layer instead of all. After equally many steps
# the loss of AdamW on all layers is lower, because every layer has moved at each step. Use blocks
# where all at once does not fit, or compare at equal seconds: the gallery does.

model = network()
at_once = train(model, torch.optim.AdamW(model.parameters(), lr=3e-3))
held = {}
for name, (loss, size) in {"one block at a time": by_block, "AdamW": at_once}.items():
    print(f"{name}: loss {loss:.3f}, gradients and state {size:.0f} kB")
    held[name] = size

plt.style.use("scgd.plots.slide")
figure, ax = plt.subplots()
ax.barh(list(held), list(held.values()), color=["#0b8f8a", "#858d97"])
ax.grid(axis="x")
ax.grid(visible=False, axis="y")
ax.set_xlabel("gradients and optimizer state, kB")
factor = held["AdamW"] / held["one block at a time"]
figure.suptitle(f"One block at a time: {factor:.1f} times less memory", x=0.02, ha="left")
figure.savefig("torch_blocks.svg")

# %%
# Forward passes only, no rate to choose:

model = network()
optimizer = scgd.torch.ZeroOrderSCGD(model.parameters(), seed=0)
for _ in range(300):
    last = optimizer.step(lambda: nn.functional.cross_entropy(model(X[:512]), y[:512]))
print(f"loss after 300 steps without a backward pass: {float(last):.3f}")
