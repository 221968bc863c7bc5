"""Zeroth order that finds its own radius and rate."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from networks import batch, perceptron  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from scgd.torch import ZeroOrderSCGD  # noqa: E402
from scgd.torch.blocks.partition import cut  # noqa: E402
from scgd.torch.layer_sampler import LossTrend, layers_of  # noqa: E402


def task(seed=0, scale=1.0):
    """Return a network away from its optimum and its loss on fresh batches."""
    model = perceptron(torch.float32, widths=(6, 16, 16, 3))
    generator = torch.Generator().manual_seed(seed)
    teacher = torch.randn(6, 3, generator=generator)
    x = torch.randn(512, 6, generator=generator)
    y = (x @ teacher).argmax(1)

    def loss(rows=slice(None)):
        return scale * F.cross_entropy(model(x[rows]), y[rows])

    return model, loss


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("settings", [{}, {"policy": "uniform"}, {"momentum": 0.9}], ids=str)
def test_parameters_alone_are_enough_whatever_the_units_of_the_loss(settings, scale):
    model, loss = task(scale=scale)
    before = loss().item()
    optimizer = ZeroOrderSCGD(model.parameters(), seed=0, **settings)
    for step in range(300):
        rows = torch.randint(0, 512, (64,), generator=torch.Generator().manual_seed(step))
        optimizer.step(lambda: loss(rows))  # noqa: B023
    assert loss().item() < 0.5 * before


@pytest.mark.parametrize(
    "lr",
    [
        1e-4,
        pytest.param(1e-2, marks=pytest.mark.slow),
        1.0,
        pytest.param(10.0, marks=pytest.mark.slow),
        1e2,
    ],
)
def test_no_rate_makes_it_diverge(lr):
    model, loss = task()
    before = loss().item()
    optimizer = ZeroOrderSCGD(model.parameters(), lr, seed=0)
    for step in range(300):
        generator = torch.Generator().manual_seed(step)
        rows = torch.randint(0, 512, (64,), generator=generator)
        optimizer.step(lambda: loss(rows))  # noqa: B023
    after = loss().item()
    assert np.isfinite(after) and after < 1.2 * before
    assert all(torch.isfinite(p).all() for p in model.parameters())


def quadratic(bend, n=64):
    """Return one parameter and f = bend/2 |p - 1|^2, of slope^2 = bend^2 n and trace bend n."""
    p = nn.Parameter(torch.zeros(n, dtype=torch.float64))
    return p, lambda: 0.5 * bend * (p - 1).square().sum()


@pytest.mark.parametrize("bend", [1e-3, 1.0, 1e5])
def test_slope_curvature_and_radius_of_a_parabola(bend):
    p, closure = quadratic(bend)
    optimizer = ZeroOrderSCGD([p], lr=1e-9, block_size=1, seed=0)
    for _ in range(200):
        optimizer.step(closure)
    layer = optimizer.samplers[0].layers[0]
    assert layer.curvature == pytest.approx(64 * bend, rel=1e-6)
    assert layer.slope_square == pytest.approx(64 * bend**2, rel=0.3)
    assert layer.radius == pytest.approx(0.5 * layer.slope / layer.curvature, rel=1e-6)
    assert layer.rate(1.0) == pytest.approx(1.0 / layer.curvature)
    assert layer.step(2 * bend, 1.0) == pytest.approx(-2 * bend / layer.curvature)
    assert -layer.step(1e9 * bend, 1.0) < 5 * layer.pace  # one wild slope


STARTS = [0.0, 1e-6, 1e-3, 0.02, 0.1]


def test_no_start_of_a_quadratic_is_too_small():
    ends = []
    for start in STARTS:
        p = nn.Parameter(torch.full((20,), start))
        optimizer = ZeroOrderSCGD([p], seed=0)
        while optimizer.n_forwards < 1500:
            loss = optimizer.step(lambda: (p - 3).square().sum()).item()  # noqa: B023
        ends.append(loss)
    assert max(ends) < 0.1 and max(ends) / min(ends) < 1.5  # from 180


def test_no_start_of_a_logistic_regression_is_too_small():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(512, 8, generator=generator)
    y = (x @ torch.randn(8, 4, generator=generator)).argmax(1)
    ends = []
    for start in STARTS:
        model = nn.Linear(8, 4)
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(start * torch.randn(p.shape, generator=torch.Generator().manual_seed(1)))
        optimizer = ZeroOrderSCGD(model.parameters(), seed=0)
        while optimizer.n_forwards < 1000:
            optimizer.step(lambda: F.cross_entropy(model(x), y))  # noqa: B023
        ends.append(F.cross_entropy(model(x), y).item())
    assert max(ends) < 0.5 and max(ends) / min(ends) < 1.5  # from 1.39


def test_500_forwards_teach_a_logistic_regression_much():
    learned = []
    for seed in range(10):
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(512, 16, generator=generator)
        y = (x @ torch.randn(16, 4, generator=generator)).argmax(1)
        model = nn.Linear(16, 4)
        for p in model.parameters():
            nn.init.zeros_(p)
        optimizer = ZeroOrderSCGD(model.parameters(), seed=seed)
        before = F.cross_entropy(model(x), y).item()
        while optimizer.n_forwards < 500:
            rows = torch.randint(0, 512, (64,), generator=generator)
            optimizer.step(lambda: F.cross_entropy(model(x[rows]), y[rows]))  # noqa: B023
        learned.append(F.cross_entropy(model(x), y).item() < 0.6 * before)
    assert sum(learned) >= 9


@pytest.mark.parametrize("target", [1e4, -1e-4])
def test_a_minimum_in_other_units_than_the_start_is_found(target):
    p = nn.Parameter(torch.zeros(10, dtype=torch.float64))
    optimizer = ZeroOrderSCGD([p], seed=0)
    for _ in range(1500):
        loss = optimizer.step(lambda: (p / target - 1).square().sum())
    assert loss < 1e-2  # from 10


def test_a_layer_scale_of_1e_6_moves():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.gamma = nn.Parameter(torch.full((6,), 1e-6))
            self.inside = nn.Linear(6, 6)

        def forward(self, x):
            return x + self.gamma * self.inside(x)

    torch.manual_seed(0)
    x = torch.randn(128, 6)
    model = Scaled()
    optimizer = ZeroOrderSCGD(model.parameters(), seed=0)
    first = optimizer.step(lambda: F.mse_loss(model(x), -x))
    for _ in range(500):
        last = optimizer.step(lambda: F.mse_loss(model(x), -x))
    assert model.gamma.abs().mean() > 0.01 and last < 0.5 * first


@pytest.mark.parametrize(("shape", "size"), [((8,), 1.0), ((3, 4), 0.5)])
def test_where_nothing_bends_a_probe_goes_as_far_as_a_fresh_layer_is_large(shape, size):
    p = nn.Parameter(torch.zeros(shape, dtype=torch.float64))
    seen = []

    def loss():
        seen.append(p.detach().abs().max().item())
        return p.sum()

    optimizer = ZeroOrderSCGD([p], 1e-9, seed=0)
    for _ in range(30):
        optimizer.step(loss)
    assert max(seen) == pytest.approx(size, rel=1e-6)


def test_layers_are_drawn_by_what_a_probe_is_worth():
    small, large = (nn.Parameter(torch.zeros(8, 8)) for _ in range(2))
    optimizer = ZeroOrderSCGD([small, large], lr=1e-6, seed=0)
    drawn = np.zeros(2)
    for step in range(400):
        optimizer.step(lambda: 100 + 3 * large.sum() + small.sum() + large.square().sum()
                       + small.square().sum())  # fmt: skip
        if step > 20:
            drawn += np.bincount(optimizer.samplers[0].draw()[0], minlength=2)
    weights = optimizer.weights()
    assert weights[1] > 0.6
    assert drawn[1] / drawn.sum() == pytest.approx(weights[1], abs=0.1)


def test_every_layer_is_seen_first():
    params = [nn.Parameter(torch.ones(3, 3)) for _ in range(7)]
    optimizer = ZeroOrderSCGD(params, seed=0)
    for _ in range(4):
        optimizer.step(lambda: sum(p.square().sum() for p in params))
    assert min(layer.n_probes for layer in optimizer.samplers[0].layers) >= 2


def test_a_matrix_takes_the_vectors_behind_it():
    shapes = [(3,), (4, 3), (4,), (4,), (2, 4), (0,)]
    params = [nn.Parameter(torch.zeros(shape)) for shape in shapes]
    assert layers_of(params) == [[0], [1, 2, 3], [4]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_probes_leave_no_trace(dtype):
    model = perceptron(dtype)
    x, y = batch(dtype)
    before = copy.deepcopy(model.state_dict())
    optimizer = ZeroOrderSCGD(model.parameters(), lr=0.0, seed=0)
    for _ in range(20):
        optimizer.step(lambda: F.cross_entropy(model(x), y))
    after = model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_forward_passes_are_counted_and_most_probes_are_one_sided():
    model, loss = task()
    optimizer = ZeroOrderSCGD(model.parameters(), seed=0)
    calls = 0

    def counted():
        nonlocal calls
        calls += 1
        return loss()

    for _ in range(200):
        optimizer.step(counted)
    assert optimizer.n_forwards == calls
    assert calls / 200 < 1 + 4 * 1.25


def test_probes_that_are_not_finite_are_taken_closer():
    p = nn.Parameter(torch.zeros(4, 4))

    def closure():
        reach = p.abs().max()
        return torch.where(reach > 1e-4, torch.nan, 1.0) + p.sum() + p.square().sum()

    optimizer = ZeroOrderSCGD([p], radius=None, lr=1e-3, seed=0)
    before = 1e-3
    for _ in range(3):
        optimizer.step(closure)
    assert torch.isfinite(p).all() and optimizer.samplers[0].layers[0].radius < before
    with pytest.raises(FloatingPointError, match="returned nan"):
        optimizer.step(lambda: p.sum() * torch.nan)


def watched(losses, cost=0.0, start=0.2):
    """Return what a sampler thinks of some losses, after steps that cost as much each."""
    trend = LossTrend(boldness=start)
    for n, loss in enumerate(losses, start=1):
        trend.cost += cost
        trend.watch(loss, n)
    return trend


@pytest.mark.parametrize(("cost", "low", "high"), [(0.0, 1.0, 1.0), (0.03, 0.0, 0.1)])
def test_steps_recover_while_the_loss_falls_by_more_than_they_cost(cost, low, high):
    noise = 0.1 * np.random.default_rng(0).normal(size=600)
    assert low <= watched(20.0 - 0.02 * np.arange(600) + noise, cost).boldness <= high


def test_rising_losses_shorten_the_steps_and_falling_ones_bring_them_back():
    trend = watched(np.r_[10.0 - 0.02 * np.arange(300), 2.0 ** np.arange(1, 7)], start=1.0)
    assert trend.boldness < 0.6  # growing too fast for a running variance to notice
    trend = watched(1.0 + 1e-3 * np.arange(3000))
    low = trend.boldness
    assert low < 1e-3
    for n in range(3000):
        trend.watch(4.0 - 1e-3 * n, 3001 + n)
    assert trend.boldness > 100 * low


def test_parameters_chosen_by_name():
    model = nn.ModuleDict({f"layers{i}": nn.Linear(3, 3) for i in (1, 10)})
    optimizer = ZeroOrderSCGD(model.named_parameters(), only=r"layers1\..*", seed=0)
    names = optimizer.param_groups[0]["param_names"]
    assert names == ["layers1.weight", "layers1.bias"]
    both = ZeroOrderSCGD(model.named_parameters(), only=[r".*1\.weight", r".*10\.bias"])
    assert both.param_groups[0]["param_names"] == ["layers1.weight", "layers10.bias"]
    with pytest.raises(ValueError, match=r"no whole part of a name; there are layers1\.weight, "):
        ZeroOrderSCGD(model.named_parameters(), only="layers")
    with pytest.raises(ValueError, match=r"pass model.named_parameters\(\)"):
        ZeroOrderSCGD(model.parameters(), only="layers1.*")
    with pytest.raises(ValueError, match="no regular expression"):
        ZeroOrderSCGD(model.named_parameters(), only="(")
    groups = [{"params": list(model.named_parameters()), "lr": 0.5}]
    assert ZeroOrderSCGD(groups, only=".*bias").param_groups[0]["lr"] == 0.5


@pytest.mark.parametrize(
    "pattern", ["layers.[45].*", "layers.[45]", "encoder.layers.(4|5)", "[45]"]
)
def test_patterns_match_whole_parts_of_names_as_those_of_blocks(pattern):
    layers = nn.ModuleList([nn.Linear(2, 2, bias=False) for _ in range(9)])
    model = nn.ModuleDict({"encoder": nn.ModuleDict({"layers": layers}), "head": nn.Linear(2, 1)})
    optimizer = ZeroOrderSCGD(model.named_parameters(), only=pattern, seed=0)
    found = optimizer.param_groups[0]["param_names"]
    assert found == ["encoder.layers.4.weight", "encoder.layers.5.weight"]
    names = [name for name, _ in model.named_parameters()]
    assert list(cut(model, {"some": pattern}, names)) == found


def test_low_rank_adapters():
    peft = pytest.importorskip("peft")
    torch.manual_seed(0)
    base = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
    model = peft.get_peft_model(base, peft.LoraConfig(r=2, target_modules=["0", "2"]))
    x = torch.randn(64, 6)
    y = (x[:, 0] > 0).long()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = ZeroOrderSCGD(model.parameters(), seed=0)
    first = F.cross_entropy(model(x), y).item()
    for _ in range(150):
        optimizer.step(lambda: F.cross_entropy(model(x), y))
    assert F.cross_entropy(model(x), y).item() < 0.8 * first
    for name, p in model.named_parameters():
        assert torch.equal(p, before[name]) != ("lora" in name)
    assert all(p.requires_grad for p in optimizer.state)


def test_batch_norm_and_dropout_are_held_still():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
    x = torch.randn(32, 5)
    buffers = {name: b.clone() for name, b in model.named_buffers()}
    seen = []

    def closure():
        out = model(x)
        seen.append(out.detach().clone())
        return out.square().mean()

    optimizer = ZeroOrderSCGD(model.parameters(), lr=0.0, radius=1e-6, seed=0)
    for _ in range(3):
        optimizer.step(closure)
        for out in seen[1:]:
            torch.testing.assert_close(out, seen[0], rtol=0, atol=1e-3)  # the same mask
        seen.clear()
        for name, b in model.named_buffers():
            assert torch.equal(b, buffers[name])
    loose = ZeroOrderSCGD(model.parameters(), lr=0.0, radius=1e-6, seed=0, hold_still=False)
    loose.step(closure)
    assert not torch.equal(seen[0], seen[1])
    assert any(not torch.equal(b, buffers[name]) for name, b in model.named_buffers())


def test_steps_differ_in_their_dropout():
    masks = []
    theta = nn.Parameter(torch.ones(50))

    def closure():
        masks.append(F.dropout(torch.ones(50), 0.5))
        return (theta * masks[-1]).sum()

    optimizer = ZeroOrderSCGD([theta], 0.1, radius=1e-2, estimator="forward", seed=0)
    optimizer.step(closure)
    optimizer.step(closure)
    assert torch.equal(masks[0], masks[1]) and not torch.equal(masks[1], masks[2])


def test_sparse_mezo_keeps_its_share():
    torch.manual_seed(0)
    theta = nn.Parameter(0.1 * torch.randn(40, 50))
    target = torch.randn(40, 50)
    optimizer = ZeroOrderSCGD([theta], 2e-4, radius=1e-3, estimator="sparse-mezo", seed=0)
    start, share = theta.detach().clone(), []
    for step in range(600):
        before = theta.detach().clone()
        optimizer.step(lambda: (theta - target).square().sum())
        if step % 100 == 0:
            share.append((theta.detach() - before).abs().gt(1e-9).float().mean().item())
    assert share == pytest.approx([0.25] * 6, abs=0.01)
    moved = (theta.detach() - start).abs() > 1e-4
    assert moved.float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert start[moved].abs().max() <= start[~moved].abs().min() + 1e-4


def test_momentum_of_a_direction_is_torchs():
    theta = nn.Parameter(torch.zeros(30, dtype=torch.float64))
    twin = nn.Parameter(torch.zeros(30, dtype=torch.float64))
    ours = ZeroOrderSCGD([theta], 0.1, radius=1e-3, estimator="mezo", momentum=0.9, seed=0)
    plain = ZeroOrderSCGD([twin], 0.1, radius=1e-3, estimator="mezo", seed=0)
    slope = torch.linspace(-1, 1, 30, dtype=torch.float64)
    velocity = torch.zeros(30, dtype=torch.float64)
    expected = torch.zeros(30, dtype=torch.float64)
    for _ in range(6):
        before = twin.detach().clone()
        plain.step(lambda: (twin * slope).sum())
        ours.step(lambda: (theta * slope).sum())
        velocity = 0.9 * velocity + (before - twin.detach()) / 0.1
        expected -= 0.1 * velocity
        torch.testing.assert_close(theta.detach(), expected, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(ours.state[theta]["momentum_buffer"], velocity, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("estimator", ["auto", "forward", "mezo", "spsa", "sphere", "gaussian"])
def test_a_closure_refused_after_its_losses_leaves_parameters_in_place(estimator):
    theta = nn.Parameter(torch.linspace(-1, 1, 20, dtype=torch.float64))
    optimizer = ZeroOrderSCGD([theta], 0.1, radius=1e-2, estimator=estimator, seed=0)

    @torch.enable_grad()
    def closure():
        loss = theta.square().sum()
        loss.backward()
        return loss.detach()

    with pytest.raises(RuntimeError, match="called backward"):
        optimizer.step(closure)
    expected = torch.linspace(-1, 1, 20, dtype=torch.float64)
    torch.testing.assert_close(theta.detach(), expected, rtol=0, atol=1e-15)
