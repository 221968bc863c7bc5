"""Rows of the network experiments: zo-networks and fo-networks.

What is odd in the published settings is here and nowhere else: log-softmax over the batch instead
of over the classes, in training and in testing, and 64 outputs for ten classes in the zeroth-order
network.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from scgd.policies import Musketeer, Uniform
from scgd.schedules import InverseLog
from scgd_paper.rows import Experiment, Panel

__all__ = ["EXPERIMENTS", "NetworkMethod", "NetworkProblem"]

CONVOLUTIONS = "convolutions"
TITLES = {
    "mnist": "MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "kmnist": "KMNIST",
    "cifar10": "CIFAR-10",
}


@dataclass(frozen=True)
class NetworkProblem:
    """A network to train.

    Parameters
    ----------
    dataset
        A key of :data:`scgd_paper.datasets.DATASETS`.
    layers
        Sizes of a sigmoid network, input first, or the name of the convolutional one.
    over_batch
        Take log-softmax over the batch, as published, instead of over the classes.
    lr
        The learning rate of the sampled methods.
    epochs_per_pass
        Data epochs of a sampled method per normalised pass (10 when a tenth of the coordinates
        moves at a time).
    n_train
        Use only so many training images (quick runs).
    """

    dataset: str
    layers: tuple[int, ...] | str
    over_batch: bool
    lr: float
    epochs_per_pass: int = 1
    n_train: int | None = None
    batch_size: int = 32
    quick_passes: int = 1

    def quick(self) -> NetworkProblem:
        """Return the same with few images."""
        return replace(self, n_train=640)


@dataclass(frozen=True)
class NetworkMethod:
    """A way to train a network.

    ``order`` is 0 (forward passes only) or 1; ``policy`` None is plain SGD (order 1) or random
    directions (order 0, ``directions`` naming them); ``per_pass`` overrides the problem's data
    epochs per normalised pass.
    """

    name: str
    order: int
    policy: Any = None
    directions: str = ""
    per_pass: int | None = None
    published: bool = False


def zo_methods(settings: str) -> tuple[NetworkMethod, ...]:
    """Return the methods of the zeroth-order figures, and SGD with as much data."""
    memory = "run" if settings == "published" else "phase"
    offset = 3.0 if settings == "published" else 0.0
    l1 = Musketeer(mixing=InverseLog(offset), memory=memory, length=234)  # type: ignore[arg-type]
    soft = replace(l1, normalization="softmax", mixing=0.2, sharpness=5.0)
    directions = "sphere" if settings == "published" else "gaussian"
    return (
        NetworkMethod("uniform", 0, Uniform()),
        NetworkMethod(directions, 0, directions=directions),
        *(
            NetworkMethod(f"musketeer-{gain}{suffix}", 0, replace(policy, gain=gain))
            for policy, suffix in ((l1, ""), (soft, "-softmax"))
            for gain in ("average", "absolute", "square")
        ),
        NetworkMethod("sgd-equal", 1),
    )


def zo_networks(settings: str) -> Iterable[Panel]:
    """Return the panels of Figures 2 and 3 and of appendix D."""
    published = settings == "published"
    layers = (784, 32, 32, 64) if published else (784, 64, 64, 10)
    for dataset in ("mnist", "fashion-mnist", "kmnist"):
        lr = 15.0 if dataset == "kmnist" else 10.0
        yield Panel(
            dataset,
            f"{TITLES[dataset]}, {'-'.join(map(str, layers))}",
            NetworkProblem(dataset, layers, published, lr),
            zo_methods(settings),
            n_passes=100,
            n_runs=10,
            measures=("loss", "accuracy"),
            xlabel="epochs",
            needs=dataset,
        )


def fo_methods(settings: str) -> tuple[NetworkMethod, ...]:
    """Return SGD, Musketeer with three sharpnesses, and SGD with as much data as those."""
    published = settings == "published"
    policy = Musketeer(gain="average", normalization="softmax", mixing=0.0)
    return (
        NetworkMethod("sgd", 1, per_pass=1),
        *(
            NetworkMethod(
                f"eta{eta}", 1, replace(policy, sharpness=float(eta)), published=published
            )
            for eta in (1, 2, 10)
        ),
        NetworkMethod("sgd-equal", 1),
    )


def fo_networks(settings: str) -> Iterable[Panel]:
    """Return the network panels of appendix E."""
    for dataset in ("mnist", "fashion-mnist", "cifar10"):
        convolutional = dataset == "cifar10"
        layers: Any = CONVOLUTIONS if convolutional else (784, 64, 64, 10)
        over_batch = settings == "published" and not convolutional
        yield Panel(
            dataset,
            TITLES[dataset],
            NetworkProblem(dataset, layers, over_batch, 0.01, epochs_per_pass=10),
            fo_methods(settings),
            n_passes=5 if convolutional else 4,
            n_runs=10,
            measures=("loss", "accuracy"),
            xlabel="normalised passes (p coordinate moves)",
            needs=dataset,
        )


ZO_DIFFERENCES = (
    (
        "Network",
        "784-32-32-64 (64 outputs for ten classes), p = 28,288",
        "784-64-64-10, p = 55,050",
    ),
    ("Softmax of the loss", "over the batch, in training and in testing", "over the classes"),
    ("Gains", "never reset", "reset at each phase"),
    ("λ for l1", "1/log(n + 3)", "1/log n, read as 1 while log n < 1"),
    ("Random directions", "unit sphere", "Gaussian"),
    ("Loss drawn", "first mini-batch of each epoch", "the same"),
)
FO_DIFFERENCES = (
    ("Softmax of the loss (not CIFAR-10)", "over the batch", "over the classes"),
    ("Gains", "running mean of g/d per visit, divided by the largest", "reset at each phase"),
    ("Coordinates per step", "p/10 without replacement, weights refreshed every step", "p/10"),
)
NOTES = (
    "sgd equal is SGD with as many passes over the data as the sampled methods: at equal passes it "
    "reads at the same place on the axis, at equal wall time on the seconds axis.",
)
EXPERIMENTS = tuple(
    Experiment(
        id, title, paper, kind, {s: tuple(panels(s)) for s in ("published", "paper")}, rows, NOTES
    )
    for id, title, paper, kind, panels, rows in (
        ("zo-networks", "Networks trained with forward passes only",
         "Figures 2 and 3, appendix D", "zeroth-order network", zo_networks, ZO_DIFFERENCES),
        ("fo-networks", "Networks, first order", "Appendix E", "first-order network", fo_networks,
         FO_DIFFERENCES),
    )
)  # fmt: skip
