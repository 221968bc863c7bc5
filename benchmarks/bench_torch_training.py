"""Train on MNIST with the published settings: ``python benchmarks/bench_torch_training.py``.

Needs a folder with ``mnist/`` in it, named by the environment variable ``SCGD_DATA``. Prints test
accuracies, median and range over seeds, next to the published mean and spread (read from
``SCGD_PUBLISHED`` if given). The published networks normalise over the batch (``LogSoftmax`` along
axis 0, in training and in testing); each run is repeated with the right axis, and plain SGD is also
given the same number of passes over the data. Seeds 1, 2, 3 see the authors' order of the data.
"""

import argparse
import gzip
import itertools
import os
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import scgd
from scgd.torch import SCGD, ZeroOrderSCGD
from scgd_paper.forward_loss import ForwardLoss

BATCH = 32


def read_idx(folder: Path, name: str) -> np.ndarray:
    """Read one file of the MNIST distribution, packed or not."""
    path = folder / name
    raw = path.read_bytes() if path.exists() else gzip.open(f"{path}.gz").read()
    n_axes = raw[3]
    shape = np.frombuffer(raw, ">i4", n_axes, 4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * n_axes).reshape(shape)


def mnist(folder: Path) -> tuple[torch.Tensor, ...]:
    """Return normalised training and test images (flat) and labels."""
    parts = []
    for part in ("train", "t10k"):
        images = read_idx(folder, f"{part}-images-idx3-ubyte").reshape(-1, 784)
        labels = read_idx(folder, f"{part}-labels-idx1-ubyte").astype(np.int64)
        scaled = (torch.from_numpy(images.copy()).float() / 255 - 0.1307) / 0.3081
        parts += [scaled, torch.from_numpy(labels)]
    return tuple(parts)


def network(widths: tuple[int, ...], axis: int) -> nn.Sequential:
    """Return the authors' perceptron with sigmoid activations."""
    layers: list[nn.Module] = []
    for n_in, n_out in itertools.pairwise(widths):
        layers += [nn.Linear(n_in, n_out), nn.Sigmoid()]
    return nn.Sequential(*layers[:-1], nn.LogSoftmax(axis))


def epoch_order(n_rows: int) -> torch.Tensor:
    """Return the order of an epoch, drawn as torch 1.7's loader did from the global generator."""
    for _ in range(2):
        torch.empty((), dtype=torch.int64).random_()
    return torch.randperm(n_rows)


@torch.no_grad()
def accuracy(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    """Return the test accuracy; with axis 0 it is that of the whole test set at once."""
    return float((model(x).argmax(1) == y).float().mean())


def train(data, method: str, seed: int, n_epochs: int, axis: int) -> list[float]:  # type: ignore[no-untyped-def]
    """Return the test accuracy after each epoch."""
    x, y, x_test, y_test = data
    torch.manual_seed(seed)
    zeroth = method.startswith("zo")
    model = network((784, 32, 32, 64) if zeroth else (784, 64, 64, 10), axis)
    optimizer = make_optimizer(method, model, seed)
    accuracies = []
    for _ in range(n_epochs):
        order = epoch_order(len(x))
        for start in range(0, len(x), BATCH):
            rows = order[start : start + BATCH]
            xs, ys = x[rows], y[rows]
            if zeroth:
                optimizer.step(ForwardLoss(model, F.nll_loss, xs, ys))
            else:
                optimizer.zero_grad()
                F.nll_loss(model(xs), ys).backward()
                optimizer.step()
        torch.empty((), dtype=torch.int64).random_()
        accuracies.append(accuracy(model, x_test, y_test))
    return accuracies


def make_optimizer(method: str, model: nn.Module, seed: int) -> torch.optim.Optimizer:
    """Return an optimizer by its name in the tables."""
    if method == "sgd":
        return torch.optim.SGD(model.parameters(), 0.01)
    if method.startswith("fo"):
        sharpness = float(method.split("=")[1])
        return SCGD.published(model.parameters(), 0.01, sharpness=sharpness, seed=seed)
    gain = method.split("-")[1]
    policy = scgd.Uniform()
    if gain != "uniform":
        policy = scgd.Musketeer(gain=gain, memory="run", length=234)
    return ZeroOrderSCGD(
        model.parameters(), 10.0, radius=0.01, policy=policy, seed=seed, estimator="forward"
    )


# method, epochs, axis of the softmax, where its published accuracies are, name there
ROWS = [
    ("fo eta=1", 40, 0, "fo_mnist", "eta1"),
    ("fo eta=2", 40, 0, "fo_mnist", "eta2"),
    ("fo eta=10", 40, 0, "fo_mnist", "eta10"),
    ("fo eta=10", 40, 1, None, None),
    ("sgd", 4, 0, "fo_mnist", "sgd"),
    ("sgd", 4, 1, None, None),
    ("sgd", 40, 0, None, None),
    ("sgd", 40, 1, None, None),
    ("zo-absolute", 100, 0, "zo_mnist", "musketeer-absolute"),
    ("zo-absolute", 100, 1, None, None),
    ("zo-uniform", 100, 0, "zo_mnist", "uniform"),
    ("zo-uniform", 100, 1, None, None),
]


def published(file: str | None, name: str | None) -> np.ndarray | None:
    """Return the published accuracies, one row per seed."""
    folder = os.environ.get("SCGD_PUBLISHED")
    if file is None or folder is None:
        return None
    return np.load(Path(folder) / f"{file}.npz")[f"accuracy/{name}"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one epoch of one seed")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="methods whose name contains this")
    options = parser.parse_args()
    if "SCGD_DATA" not in os.environ:
        print("set SCGD_DATA to a folder with mnist/ in it; nothing done")
        return
    torch.set_num_threads(1)
    data = mnist(Path(os.environ["SCGD_DATA"]) / "mnist")
    for method, n_epochs, axis, file, name in ROWS:
        if options.only not in method:
            continue
        n_epochs = 1 if options.quick else n_epochs
        start = time.perf_counter()
        seeds = range(1, 2 if options.quick else 1 + options.seeds)
        runs = np.array([train(data, method, seed, n_epochs, axis) for seed in seeds])
        seconds = (time.perf_counter() - start) / len(runs)
        final = runs[:, -1]
        line = f"{method:<14} axis {axis} {n_epochs:4d} epochs: median {np.median(final):.4f}"
        line += f" ({final.min():.4f} to {final.max():.4f}), {seconds:.0f} s per run"
        theirs = published(file, name)
        if theirs is not None and not options.quick:
            line += f"; published {theirs[:, -1].mean():.4f} (sd {theirs[:, -1].std():.4f})"
        print(line, flush=True)


if __name__ == "__main__":
    main()
