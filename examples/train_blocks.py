"""
Training one block at a time
============================

Adapt a trained network to inverted digits with a fraction of AdamW's memory.

A network of eight layers has learned scikit-learn's digits; now they come as negatives.
``BlockOptimizer`` trains one layer at a time: gradients and AdamW's state exist for that layer
alone, and backward stops there. Both get the same processor seconds. Half a minute on one
core::

    pip install scgd[torch] matplotlib
    python examples/train_blocks.py

It is not executed when this site is built, because seconds decide it. It writes
train_blocks.svg:

.. image:: /images/gallery/train_blocks.svg
   :alt: accuracy against seconds: one block at a time arrives with AdamW, with less memory
   :class: picture
"""
# sphinx_gallery_thumbnail_path = 'images/gallery/train_blocks.svg'

import copy
import time

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

from scgd.torch import BlockOptimizer

WIDTH, LAYERS, SECONDS, SEEDS, N_TRAIN = 256, 8, 2.0, range(3), 1300
images, digits = load_digits(return_X_y=True)
X, y = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits)


class Network(nn.Module):
    """Layers that each add to what comes in, and a head."""

    def __init__(self):
        super().__init__()
        self.entry = nn.Linear(64, WIDTH)
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x):
        x = self.entry(x)
        for layer in self.layers:
            x = x + torch.relu(layer(x)) / LAYERS
        return self.head(x)


def batch_loss(model, x, generator):
    rows = torch.randint(0, N_TRAIN, (64,), generator=generator)
    return nn.functional.cross_entropy(model(x[rows]), y[rows])


def pretrained():
    """Return a network that reads the digits as they are."""
    torch.manual_seed(0)
    model, generator = Network(), torch.Generator().manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(400):
        optimizer.zero_grad()
        batch_loss(model, X, generator).backward()
        optimizer.step()
    return model


def adapted(model, optimizer, seed):
    """Return seconds and accuracies on negatives, and the most bytes of gradients and state."""
    generator, seen, spent, most = torch.Generator().manual_seed(seed), [], 0.0, 0
    while spent < SECONDS:
        start = time.process_time()
        for _ in range(10):
            optimizer.zero_grad()
            batch_loss(model, 1 - X, generator).backward()
            optimizer.step()
        spent += time.process_time() - start
        most = max(most, held(model, optimizer))
        with torch.no_grad():
            right = (model(1 - X[N_TRAIN:]).argmax(1) == y[N_TRAIN:]).float().mean()
        seen.append((spent, float(right)))
    return np.transpose(seen), most


def held(model, optimizer):
    """Return the bytes of gradients and of the optimizer's state."""
    tensors = [weight.grad for weight in model.parameters() if weight.grad is not None]
    for state in optimizer.state.values():
        tensors += [part for part in state.values() if torch.is_tensor(part)]
    return sum(tensor.nbytes for tensor in tensors)


def ours(model, seed):
    return BlockOptimizer(model, torch.optim.AdamW, blocks="layer", active=1, seed=seed, lr=2e-3)


def everything(model, seed):
    return torch.optim.AdamW(model.parameters(), lr=1e-3)


def main():
    torch.set_num_threads(1)
    trained = pretrained()
    plt.style.use("scgd.plots.slide")
    figure, ax = plt.subplots()
    grid, bytes_of = np.linspace(0.1, SECONDS, 40), {}
    for name, make in {"one block at a time": ours, "AdamW": everything}.items():
        curves = []
        for seed in SEEDS:
            model = copy.deepcopy(trained)
            (times, scores), bytes_of[name] = adapted(model, make(model, seed), seed)
            curves.append(np.interp(grid, times, scores))
        middle = 100 * np.median(curves, axis=0)
        print(f"{name}: {middle[-1]:.1f} % after {SECONDS:g} s, {bytes_of[name] / 1e6:.2f} MB")
        ax.plot(grid, middle, label=f"{name}, {bytes_of[name] / 1e6:.1f} MB")
    ax.legend(loc="lower right")
    ax.set_ylim(0, 100)
    ax.set_xlabel("processor seconds, median of 3 seeds")
    ax.set_ylabel("accuracy on negatives, %")
    share = bytes_of["AdamW"] / bytes_of["one block at a time"]
    figure.suptitle(
        f"Gradients and optimizer state: {share:.0f} times less memory", x=0.02, ha="left"
    )
    figure.savefig("train_blocks.svg")


if __name__ == "__main__":
    main()
