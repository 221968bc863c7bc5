"""
Training by forward passes
==========================

Train a network on digits without a backward pass, and without choosing a rate.

``ZeroOrderSCGD`` sees losses alone. The alternative, MeZO (one random direction per step, a
fixed rate), needs the right rate: of four tried here one is as good, and one diverges. Every
method sees the same number of forward passes. With a backward pass AdamW reaches 0.92 in half a
second: use this where there is none. Needs ``pip install scgd[torch] matplotlib`` and writes
forward_passes.svg.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from torch import nn

from scgd.torch import ZeroOrderSCGD

PASSES, EVERY, N_TRAIN, RADIUS = 6000, 500, 1300, 1e-3
RATES = (0.001, 0.003, 0.01, 0.03)
images, digits = load_digits(return_X_y=True)
X, y = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits)


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def accuracy(model):
    """Return the accuracy on the 497 images that are kept apart."""
    return float((model(X[N_TRAIN:]).argmax(1) == y[N_TRAIN:]).float().mean())


def batches(model):
    """Yield the loss on one batch of 64 after another, as a function of nothing."""
    generator = torch.Generator().manual_seed(0)
    while True:
        rows = torch.randint(0, N_TRAIN, (64,), generator=generator)
        yield lambda rows=rows: nn.functional.cross_entropy(model(X[rows]), y[rows])


@torch.no_grad()
def ours():
    """Return passes and accuracies."""
    model = network()
    optimizer, seen = ZeroOrderSCGD(model.parameters(), seed=0), []
    for loss in batches(model):
        optimizer.step(loss)
        if optimizer.n_forwards >= EVERY * (len(seen) + 1):
            seen.append((optimizer.n_forwards, accuracy(model)))
        if optimizer.n_forwards >= PASSES:
            return seen


@torch.no_grad()
def mezo(rate):
    """Return the same for a gradient estimate of two passes along one random direction."""
    model, seen = network(), []
    generator = torch.Generator().manual_seed(1)
    weights = list(model.parameters())
    for step, loss in enumerate(batches(model), start=1):
        along = [torch.randn(weight.shape, generator=generator) for weight in weights]
        losses = []
        for sign in (1, -1):
            for weight, part in zip(weights, along, strict=True):
                weight += sign * RADIUS * part
            losses.append(float(loss()))
            for weight, part in zip(weights, along, strict=True):
                weight -= sign * RADIUS * part
        slope = (losses[0] - losses[1]) / (2 * RADIUS)
        for weight, part in zip(weights, along, strict=True):
            weight -= rate * slope * part
        if 2 * step % EVERY == 0:
            seen.append((2 * step, accuracy(model)))
        if 2 * step >= PASSES:
            return seen


def main():
    torch.set_num_threads(1)
    plt.style.use("scgd.plots.slide")
    figure, ax = plt.subplots()
    for rate in RATES:
        passes, scores = zip(*mezo(rate), strict=True)
        print(f"MeZO, rate {rate:<6g} accuracy {scores[-1]:.2f}")
        ax.plot(passes, scores, color="#858d97", lw=3)
        below = {0.01: 0.03, 0.003: 0.06}.get(rate, 0)  # room between the names
        ax.text(PASSES * 1.02, scores[-1] - below, f"MeZO {rate:g}", color="#858d97", va="center")
    passes, scores = zip(*ours(), strict=True)
    print(f"ZeroOrderSCGD    accuracy {scores[-1]:.2f}")
    ax.plot(passes, scores, color="#0b8f8a", lw=6)
    ax.text(PASSES * 1.02, scores[-1] + 0.03, "scgd", color="#0b8f8a", va="center")
    ax.set_ylim(0, 1)
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_xlabel("forward passes of 64 images; no backward pass")
    ax.set_ylabel("accuracy, unseen digits")
    figure.suptitle(
        f"No gradients, no rate to choose: {100 * scores[-1]:.0f} % of digits read",
        x=0.02, ha="left",
    )  # fmt: skip
    figure.savefig("forward_passes.svg")


if __name__ == "__main__":
    main()
