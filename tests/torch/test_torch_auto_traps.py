"""Zeroth order that finds its own radius and rate, where a loss gives little to find them by."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from networks import perceptron  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from scgd.torch import SCGD, ZeroOrderSCGD  # noqa: E402
from scgd.torch.layer_sampler import Layer  # noqa: E402


class Adapted(nn.Module):
    """A frozen linear layer with a low-rank change, one of whose factors starts at zero."""

    def __init__(self, n_in, n_out, rank=4):
        super().__init__()
        self.frozen = nn.Linear(n_in, n_out).requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, n_in) / n_in**0.5)
        self.b = nn.Parameter(torch.zeros(n_out, rank))

    def forward(self, x):
        return self.frozen(x) + x @ self.a.T @ self.b.T


def product(x):
    """Return a linear model with one such change, as in the report that found it diverging."""
    a, b = nn.Parameter(0.3 * torch.randn(4, 8)), nn.Parameter(torch.zeros(1, 4))
    w = 0.3 * torch.randn(1, 8)
    return [a, b], lambda: F.mse_loss(x @ w.T + x @ a.T @ b.T, x[:, :1])


def adapted(x):
    """Return a network of two such layers."""
    model = nn.Sequential(Adapted(8, 16), nn.Tanh(), Adapted(16, 1))
    y = x[:, :1] * (1 + x[:, 1:2])
    return model.parameters(), lambda: F.mse_loss(model(x), y)


@pytest.mark.parametrize("make", [product, adapted])
def test_a_factor_that_starts_at_zero_does_not_diverge(make):
    ends = []
    for seed in range(20):
        torch.manual_seed(seed)
        params, loss = make(torch.randn(64, 8))
        start = loss().item()
        optimizer = ZeroOrderSCGD(params, seed=seed)
        for _ in range(300):
            optimizer.step(loss)
        ends.append(loss().item() / start)
    assert max(ends) < 0.8  # before: up to 3e4 and 8e19


def test_no_pace_goes_beyond_the_size_of_a_layer():
    layer = Layer(32, size=0.3, slope_square=4.0, curvature=1e-6)
    assert layer.pace == pytest.approx(0.3)
    assert Layer(10**6, size=0.3, slope_square=4.0, curvature=1e-6).pace == pytest.approx(0.03)
    assert Layer(10**6, size=0.3, slope_square=4.0, curvature=1e6).pace == pytest.approx(2e-6)


def test_a_curvature_that_has_grown_is_noticed_and_replaces_the_old_one():
    layer = Layer(4, 1.0, 0.1, slope_square=1.0, curvature=2.0, n_probes=9, n_curvatures=9)
    assert layer.see(0.0, 50.0, None) == 0.0
    assert layer.needs_both_sides and layer.slope_square == 1.0
    assert layer.see(0.0, 50.02, 49.98) == pytest.approx(0.2)
    assert layer.curvature == pytest.approx(1e4) and not layer.needs_both_sides


def test_one_sided_probes_know_the_curvature():
    layer = Layer(64, 1.0, 0.1, curvature=128.0)
    # Along signs u: f(h u) - f(0) = -h sum(u) bend + h^2 bend n / 2.
    up = -0.1 * 8.0 * 2.0 + 0.1**2 * 64
    assert layer.see(0.0, up, None) == pytest.approx(-2.0 * 8.0)
    assert layer.see(0.0, up, up + 4 * 0.1 * 8.0) == pytest.approx(-2.0 * 8.0)


@pytest.mark.parametrize("size", [1.0, 0.0])
@pytest.mark.parametrize("loss", [0.0, 1.0, 1e6])
def test_a_flat_loss_moves_nothing_and_radii_stay_bounded(loss, size):
    p = nn.Parameter(torch.full((4, 4), size))
    optimizer = ZeroOrderSCGD([p], seed=0)
    for _ in range(300):
        optimizer.step(lambda: torch.tensor(loss))
    assert torch.equal(p, torch.full((4, 4), size))
    assert optimizer.samplers[0].layers[0].radius <= 1.0


def test_a_layer_that_the_loss_ignores_is_seldom_probed():
    torch.manual_seed(0)
    model, unused = perceptron(torch.float32, widths=(6, 16, 3)), nn.Linear(16, 16)
    before = unused.weight.detach().clone()
    x = torch.randn(128, 6)
    y = (x @ torch.randn(6, 3)).argmax(1)
    optimizer = ZeroOrderSCGD([*model.parameters(), *unused.parameters()], seed=0)
    first = optimizer.step(lambda: F.cross_entropy(model(x), y)).item()
    for _ in range(200):
        last = optimizer.step(lambda: F.cross_entropy(model(x), y)).item()
    assert last < 0.3 * first
    assert optimizer.weights()[2] == pytest.approx(0.1)  # the uniform part
    assert torch.equal(unused.weight, before)


@pytest.mark.parametrize(("sd", "limit"), [(1e-4, 1e-4), (1e-2, 5e-3), (1.0, 0.5)])
def test_noise_that_cannot_be_held_still(sd, limit):
    rng = np.random.default_rng(0)
    p = nn.Parameter(torch.ones(20))
    optimizer = ZeroOrderSCGD([p], seed=0)
    for _ in range(600):
        optimizer.step(lambda: p.square().sum() + sd * rng.normal())
    assert p.square().sum().item() < limit  # from 20; before it stayed near there
    assert optimizer.samplers[0].trend.noise == pytest.approx(sd**2, rel=0.7)


def test_losses_are_repeated_seldom():
    p = nn.Parameter(torch.ones(5))
    optimizer, repeats = ZeroOrderSCGD([p], lr=0.0, seed=0), 0
    for _ in range(300):
        repeats += optimizer.samplers[0].n_bases() - 1
        optimizer.step(lambda: p.square().sum())
    assert 5 < repeats < 20


def test_of_a_noisy_slope_its_own_share_counts():
    layer = Layer(4, 1.0, slope_square=4.0, slope_noise=3.0, curvature=100.0)
    assert layer.rate(1.0) == pytest.approx((1.0 / 4.0) / 100.0)
    assert layer.needs_both_sides
    layer.slope_noise = 5.0
    assert layer.rate(1.0) == 0.0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_losses_in_half_precision(dtype):
    torch.manual_seed(1)
    x = torch.randn(128, 6).to(dtype)
    y = (x.float() @ torch.randn(6, 3)).argmax(1)
    model = perceptron(dtype, widths=(6, 16, 3))
    optimizer = ZeroOrderSCGD(model.parameters(), seed=0)
    first = optimizer.step(lambda: F.cross_entropy(model(x), y)).item()
    for _ in range(300):
        last = optimizer.step(lambda: F.cross_entropy(model(x), y)).item()
    assert last < 0.5 * first
    assert optimizer.samplers[0].rounding == torch.finfo(dtype).eps


@pytest.mark.parametrize("estimator", ["auto", "forward", "mezo"])
@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (None, TypeError, "got None; does it end without a return"),
        ({"loss": 1.0}, TypeError, "must return the loss, got {'loss'"),
        (torch.tensor(1j), ValueError, "a real number, got torch.complex64; take its .abs"),
        (torch.tensor(float("nan")), FloatingPointError, "returned nan; the parameters are as"),
    ],
    ids=str,
)
def test_closures_that_return_no_loss_are_told_so(estimator, value, error, message):
    p = nn.Parameter(torch.ones(3))
    optimizer = ZeroOrderSCGD([p], estimator=estimator, seed=0)
    with pytest.raises(error, match=message):
        optimizer.step(lambda: value)
    assert torch.equal(p, torch.ones(3))


@pytest.mark.parametrize("settings", [{}, {"granularity": "rows"}, {"rule": "adam"}], ids=str)
def test_sparse_gradients_are_refused_in_words(settings):
    embedding = nn.Embedding(5, 3, sparse=True)
    optimizer = SCGD(embedding.parameters(), 0.1, seed=0, **settings)
    embedding(torch.tensor([1, 2])).sum().backward()
    with pytest.raises(RuntimeError, match="sparse gradients; use sparse=False"):
        optimizer.step()
