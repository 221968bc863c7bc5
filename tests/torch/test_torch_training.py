"""Training quality on MNIST: the published curves are met with the published settings."""

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "SCGD_DATA" not in os.environ or "SCGD_PUBLISHED" not in os.environ,
        reason="needs MNIST in SCGD_DATA and the published curves in SCGD_PUBLISHED",
    ),
]
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "bench_torch_training.py"
SEEDS = (1, 2, 3)


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("bench_torch_training", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.torch.set_num_threads(1)
    return module


@pytest.fixture(scope="module")
def data(script):
    return script.mnist(Path(os.environ["SCGD_DATA"]) / "mnist")


def assert_within_spread(accuracies, theirs):
    """The mean of three seeds lies within two and a half published standard deviations."""
    mean, spread = theirs.mean(), theirs.std(ddof=1)
    assert abs(np.mean(accuracies) - mean) < 2.5 * spread, (accuracies, mean, spread)


def test_sgd_repeats_the_published_rows(script, data):
    theirs = script.published("fo_mnist", "sgd")
    for seed in SEEDS:
        ours = script.train(data, "sgd", seed, 4, axis=0)
        np.testing.assert_allclose(ours, theirs[seed - 1], atol=5e-4)


@pytest.mark.parametrize(("eta", "n_epochs"), [(1, 10), (2, 10), (10, 40)])
def test_first_order_meets_the_published_accuracies(script, data, eta, n_epochs):
    theirs = script.published("fo_mnist", f"eta{eta}")
    runs = [script.train(data, f"fo eta={eta}", seed, n_epochs, axis=0) for seed in SEEDS]
    for column, epoch in enumerate(range(10, n_epochs + 1, 10)):
        assert_within_spread(np.array(runs)[:, epoch - 1], theirs[:, column])


@pytest.mark.parametrize(
    ("method", "name"), [("zo-absolute", "musketeer-absolute"), ("zo-uniform", "uniform")]
)
def test_zeroth_order_meets_the_published_accuracies(script, data, method, name):
    theirs = script.published("zo_mnist", name)
    runs = np.array([script.train(data, method, seed, 100, axis=0) for seed in SEEDS])
    for epoch in (30, 50, 75, 100):
        assert_within_spread(runs[:, epoch - 1], theirs[:, epoch - 1])
