"""Train the paper's networks, with forward passes only or with gradients of sampled coordinates."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from scgd.estimators import GaussianSmoothing, SphereSmoothing
from scgd.policies import Musketeer
from scgd.torch import SCGD, ZeroOrderSCGD
from scgd.typing import Floats
from scgd_paper.datasets import N_CLASSES, load, scaled
from scgd_paper.files import write_whole
from scgd_paper.forward_loss import ForwardLoss
from scgd_paper.network_rows import CONVOLUTIONS, NetworkProblem
from scgd_paper.rows import Experiment, Job, Panel
from scgd_paper.table import Curve, Run, Shape

__all__ = ["cost", "execute", "illustrate", "shape"]

RUNS_PER_JOB = 1
RADIUS = 0.01
SGD_RATE = 0.01
N_SAMPLES = 12
"""Samples per class on the picture of a data set."""
CHUNK = 500
"""Test images seen at once where each is judged by itself: convolutions of all leave the cache."""
LOOKS_PER_PASS = 10
"""How often a first-order run is looked at per normalised pass."""
EPOCH_COST = {"directions": 3.0, "coordinates": 1.0, "gradients": 3.5}
"""Rough time of an epoch."""
DIRECTIONS = {"sphere": SphereSmoothing(unbiased=False), "gaussian": GaussianSmoothing()}


def cost(job: Job) -> float:
    """Return the work of a job, roughly in epochs of coordinate steps."""
    kind = "gradients" if job.method.order else "coordinates"
    kind = "directions" if job.method.directions else kind
    return EPOCH_COST[kind] * n_epochs(job) * len(job.runs)


def n_epochs(job: Job) -> int:
    """Return how often a run sees the data."""
    per_pass = job.method.per_pass or job.panel.problem.epochs_per_pass
    return int(job.panel.n_passes * per_pass)


def shape(panel: Panel, method: Any) -> Shape:
    """Return which rows a run has."""
    # A pass of the zeroth-order networks is one epoch, looked at once, as published.
    looks = LOOKS_PER_PASS if panel.problem.epochs_per_pass > 1 else 1
    passes = np.arange(1, panel.n_passes * looks + 1) / looks
    layers = panel.problem.layers
    learns = isinstance(method.policy, Musketeer) and not isinstance(layers, str)
    return Shape(panel.measures, passes, layers[0] if learns else 0)


def execute(job: Job) -> Iterator[Run]:
    """Return trained runs."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for run in job.runs:
            yield train(job, run)
    finally:
        torch.set_num_threads(threads)


@lru_cache(maxsize=1)
def tensors(problem: NetworkProblem, folder: str | None) -> tuple[torch.Tensor, ...]:
    """Return training and test images and labels."""
    images = load(problem.dataset, folder)
    n = len(images.train) if problem.n_train is None else problem.n_train
    m = len(images.test) if problem.n_train is None else problem.n_train
    x = torch.from_numpy(scaled(images.train[:n], problem.dataset))
    x_test = torch.from_numpy(scaled(images.test[:m], problem.dataset))
    y, y_test = torch.from_numpy(images.train_labels[:n]), torch.from_numpy(images.test_labels[:m])
    if problem.layers == CONVOLUTIONS:
        x, x_test = x.view(-1, 3, 32, 32), x_test.view(-1, 3, 32, 32)
    return x, y, x_test, y_test


class ColoursInside(nn.Module):
    """Lay the colours of a pixel side by side, where torch pools four times as fast."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the same images."""
        return images.contiguous(memory_format=torch.channels_last)


def build(problem: NetworkProblem, seed: int) -> nn.Sequential:
    """Return a freshly initialised network that ends in log-softmax; global draws untouched."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if isinstance(problem.layers, str):
            layers: list[nn.Module] = [
                ColoursInside(),  # pooled before the ReLU: the same values, a quarter as many
                nn.Conv2d(3, 12, 5), nn.MaxPool2d(2), nn.ReLU(),
                nn.Conv2d(12, 16, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(),
                nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
            ]  # fmt: skip
        else:
            layers = []
            for n_in, n_out in zip(problem.layers, problem.layers[1:], strict=False):
                layers += [nn.Linear(n_in, n_out), nn.Sigmoid()]
            layers.pop()
        return nn.Sequential(*layers, nn.LogSoftmax(dim=0 if problem.over_batch else 1))


def accuracy(
    model: nn.Module, images: torch.Tensor, labels: torch.Tensor, at_once: int | None = None
) -> float:
    """Return the test accuracy; a softmax over the batch spans the images taken at once."""
    with torch.no_grad():
        found = [model(part).argmax(dim=1) for part in images.split(at_once or len(images))]
        return float((torch.cat(found) == labels).float().mean())


def train(job: Job, run: int) -> Run:
    """Train once and return loss and accuracy along the way."""
    problem = job.panel.problem
    x, y, x_test, y_test = tensors(problem, job.data)
    seeds = np.random.SeedSequence(job.entropy(run)).generate_state(3)
    model = build(problem, int(seeds[0]))
    order = torch.Generator().manual_seed(int(seeds[1]))
    opt, step = trainer(job, model, int(seeds[2]))
    at_once = None if problem.over_batch else CHUNK
    log = Log(job, lambda: accuracy(model, x_test, y_test, at_once))
    n_batches = len(x) // problem.batch_size
    for _ in range(n_epochs(job)):
        shuffled = torch.randperm(len(x), generator=order)
        for batch in shuffled[: n_batches * problem.batch_size].view(n_batches, -1):
            inputs, targets = x.index_select(0, batch), y.index_select(0, batch)
            log.note(step(inputs, targets), n_batches)
    learned = pixel_law(opt, problem) if isinstance(job.method.policy, Musketeer) else None
    pixels = None if learned is None else -np.arange(len(learned), dtype=np.float64)
    return Run(job.key(run), log.curves(n_batches), pixels, learned)


def trainer(
    job: Job, model: nn.Module, seed: int
) -> tuple[Any, Callable[[torch.Tensor, torch.Tensor], float]]:
    """Return the optimizer and a function that takes one step on a batch and returns its loss."""
    method, problem = job.method, job.panel.problem
    params = list(model.parameters())
    if method.order == 0:
        kind = DIRECTIONS.get(method.directions, "forward")
        zeroth = ZeroOrderSCGD(
            params, problem.lr, radius=RADIUS, estimator=kind, policy=method.policy, seed=seed
        )

        def forward_only(inputs: torch.Tensor, targets: torch.Tensor) -> float:
            return float(zeroth.step(ForwardLoss(model, F.nll_loss, inputs, targets)))

        return zeroth, forward_only
    first: Any
    if method.policy is None:
        first = torch.optim.SGD(params, SGD_RATE, fused=True)  # the same bits as without
    elif method.published:
        first = SCGD.published(params, problem.lr, sharpness=method.policy.sharpness, seed=seed)
    else:
        first = SCGD(
            params,
            problem.lr,
            policy=method.policy,
            sampling="distinct",
            half_life=None,
            seed=seed,
        )

    def with_gradient(inputs: torch.Tensor, targets: torch.Tensor) -> float:
        first.zero_grad()
        loss = F.nll_loss(model(inputs), targets)
        loss.backward()
        first.step()
        return float(loss.detach())

    return first, with_gradient


class Log:
    """What is seen on the way: losses, accuracies and seconds spent training.

    Zeroth-order figures show the loss of the first mini-batch of each epoch, as published;
    first-order ones the mean over the mini-batches since the last look.
    """

    def __init__(self, job: Job, test: Callable[[], float]) -> None:
        self.job, self.test = job, test
        self.zeroth = "zeroth" in job.kind
        self.ends = shape(job.panel, job.method).passes
        self.epochs_per_pass = n_epochs(job) / job.panel.n_passes
        self.n_steps = 0
        self.recent: list[float] = []
        self.losses: list[float] = []
        self.accuracies: list[float] = []
        self.seconds: list[float] = []
        self.spent, self.since = 0.0, time.perf_counter()

    def note(self, loss: float, n_batches: int) -> None:
        """Take the loss of a step; look at the test set when it is time."""
        self.recent.append(loss)
        self.n_steps += 1
        due = self.ends[len(self.losses)] * self.epochs_per_pass * n_batches
        if self.n_steps < round(due):
            return
        self.spent += time.perf_counter() - self.since
        self.losses.append(self.recent[0] if self.zeroth else float(np.mean(self.recent)))
        self.accuracies.append(self.test())
        self.seconds.append(self.spent)
        self.recent.clear()
        self.since = time.perf_counter()

    def curves(self, n_batches: int) -> list[Curve]:
        """Return the curves of the run."""
        per_step = 1 if self.job.method.order else 2
        queries = per_step * self.ends * self.epochs_per_pass * n_batches
        found = {"loss": self.losses, "accuracy": self.accuracies}
        return [
            Curve(name, self.ends, queries, np.array(self.seconds), np.array(found[name]))
            for name in self.job.panel.measures
        ]


def pixel_law(opt: Any, problem: NetworkProblem) -> Floats | None:
    """Return the learned weight of each pixel: the sum over the first layer's weights on it."""
    if isinstance(problem.layers, str):
        return None
    n_inputs, n_hidden = problem.layers[:2]
    first_layer = np.asarray(opt.weights())[: n_hidden * n_inputs]
    sums = first_layer.reshape(n_hidden, n_inputs).sum(axis=0)
    return np.asarray(sums / sums.sum())


def illustrate(experiment: Experiment, panels: Sequence[Panel], options: Any) -> None:
    """Write a picture of samples of each data set, where Pillow is installed."""
    try:
        from PIL import Image
    except ImportError:
        return
    for panel in panels:
        images = load(panel.needs, options.data)
        tiles = np.zeros((N_CLASSES, N_SAMPLES, images.test.shape[1]), np.uint8)
        for label, row in enumerate(tiles):
            samples = images.test[images.test_labels == label][:N_SAMPLES]
            row[: len(samples)] = samples
        sheet = io.BytesIO()
        Image.fromarray(contact_sheet(tiles)).save(sheet, "PNG")
        write_whole(options.out / f"{experiment.id}-{panel.name}.png", sheet.getvalue())


def contact_sheet(pixels: Any) -> Any:
    """Return images (classes, samples, pixels) as one picture, classes along the rows."""
    n_rows, n_columns, size = pixels.shape
    if size == 3072:
        cells = pixels.reshape(n_rows, n_columns, 3, 32, 32).transpose(0, 3, 1, 4, 2)
        return np.ascontiguousarray(cells.reshape(n_rows * 32, n_columns * 32, 3))
    cells = pixels.reshape(n_rows, n_columns, 28, 28).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(cells.reshape(n_rows * 28, n_columns * 28))
