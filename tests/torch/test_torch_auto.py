"""Zeroth order that finds its own radius and rate."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from networks import batch, perceptron  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from scgd.torch import ForwardLoss, SparseMeZO, ZeroOrderSCGD  # noqa: E402
from scgd.torch import layer_law as law_module  # noqa: E402
from scgd.torch.blocks.partition import cut  # noqa: E402
from scgd.torch.layer_law import BEND, RADIUS, SQUARE, VISITS, LayerLaw  # noqa: E402
from scgd.torch.layout import Layout  # noqa: E402


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
def test_slope_curvature_radius_and_step_of_a_parabola(bend):
    p, closure = quadratic(bend)
    optimizer = ZeroOrderSCGD([p], lr=1e-9, block_size=1, seed=0)
    for _ in range(200):
        optimizer.step(closure)
    table = optimizer.laws[0].table[:, 0]
    assert table[BEND] == pytest.approx(64 * bend, rel=1e-6)
    assert table[SQUARE] == pytest.approx(64 * bend**2, rel=0.3)
    assert table[RADIUS] == pytest.approx(0.5 * np.sqrt(table[SQUARE]) / table[BEND], rel=1e-6)
    damping = optimizer.laws[0].shared[law_module.DAMPING]
    rate = optimizer.laws[0].rate(0, 1.0)
    assert 0.5 < damping <= 1.0
    assert rate == pytest.approx(damping * 0.15 / (64 * bend), rel=1e-6)
    assert optimizer.laws[0].step(0, 2 * bend, 1.0) == pytest.approx(-2 * bend * rate)
    assert optimizer.laws[0].step(0, 1e9 * bend, 1.0) == pytest.approx(
        -3 * np.sqrt(table[SQUARE]) * rate
    )


def test_the_size_of_a_layer_bounds_steps_that_no_curvature_does():
    p = nn.Parameter(torch.full((100, 100), 0.02))
    law = LayerLaw(None, Layout([p]), 1, 0)
    law.table[SQUARE, 0], law.table[BEND, 0], law.table[RADIUS, 0] = 4.0, 1.0, 0.02
    farthest = 100 * 0.02 / 100  # tau w / sqrt(n)
    assert law.paces()[0] == pytest.approx(farthest, rel=1e-4)
    assert law.rate(0, 1.0) == pytest.approx(0.5 * 0.15 * farthest / 2.0, rel=1e-4)
    assert law.step(0, 1.0, 1.0) == pytest.approx(-law.rate(0, 1.0))
    law.widen(0, 1.0)
    assert law.table[RADIUS, 0] == pytest.approx(0.5 * farthest, rel=1e-4)
    law.table[BEND, 0] = 1e6  # now the parabola does
    assert law.paces()[0] == pytest.approx(2.0 / 1e6)
    fresh = LayerLaw(None, Layout([nn.Parameter(torch.zeros(4, 4))]), 1, 0)
    fresh.table[SQUARE, 0], fresh.table[BEND, 0] = 4.0, 1e-3
    assert fresh.paces()[0] == pytest.approx(2000.0)  # entries of zero have no size


def test_one_sided_probes_know_the_curvature():
    p, _ = quadratic(2.0)
    law = LayerLaw(None, Layout([p]), 1, 0)
    law.table[BEND, 0] = 128.0
    # Along signs u: f(h u) - f(0) = -h sum(u) bend + h^2 bend n / 2.
    h, total = 0.1, 8.0
    up = -h * total * 2.0 + h**2 * 64
    assert law.see(0, h, 64.0, up, None) == pytest.approx(-2.0 * total)
    assert law.see(0, h, 64.0, up, up + 4 * h * total) == pytest.approx(-2.0 * total)
    assert law.table[VISITS, 0] == 2


def test_layers_are_drawn_by_what_a_probe_is_worth():
    small, large = (nn.Parameter(torch.zeros(8, 8)) for _ in range(2))
    optimizer = ZeroOrderSCGD([small, large], lr=1e-6, seed=0)
    drawn = np.zeros(2)
    for step in range(400):
        optimizer.step(lambda: 100 + 3 * large.sum() + small.sum() + large.square().sum()
                       + small.square().sum())  # fmt: skip
        if step > 20:
            drawn += np.bincount(optimizer.laws[0].draw()[0], minlength=2)
    weights = optimizer.weights()
    worth = optimizer.laws[0].table[SQUARE] / optimizer.laws[0].table[BEND]
    np.testing.assert_allclose(weights, 0.7 * worth / worth.sum() + 0.15)
    assert weights[1] > 0.65
    assert drawn[1] / drawn.sum() == pytest.approx(weights[1], abs=0.1)


def test_every_layer_is_seen_first():
    params = [nn.Parameter(torch.ones(3, 3)) for _ in range(7)]
    optimizer = ZeroOrderSCGD(params, seed=0)
    for _ in range(4):
        optimizer.step(lambda: sum(p.square().sum() for p in params))
    assert optimizer.laws[0].table[VISITS].min() >= 2


def test_a_matrix_takes_the_vectors_behind_it():
    shapes = [(3,), (4, 3), (4,), (4,), (2, 4), (0,)]
    params = [nn.Parameter(torch.zeros(shape)) for shape in shapes]
    assert law_module.layers_of(params) == [[0], [1, 2, 3], [4]]


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
    before = float(optimizer.laws[0].table[RADIUS, 0])
    for _ in range(3):
        optimizer.step(closure)
    assert torch.isfinite(p).all() and optimizer.laws[0].table[RADIUS, 0] < before
    with pytest.raises(FloatingPointError, match="returned nan"):
        optimizer.step(lambda: p.sum() * torch.nan)


def watched(losses, cost=0.0):
    """Return a law that has seen some losses, after steps that cost as much each."""
    law = LayerLaw(None, Layout([nn.Parameter(torch.zeros(3))]), 1, 0)
    for loss in losses:
        law.shared[law_module.COST] += cost
        law.watch(loss)
        law.memory.step += 1
    return law


@pytest.mark.parametrize(("cost", "low", "high"), [(0.0, 1.0, 1.0), (0.015, 0.9, 1.0),
                                                   (0.03, 0.0, 0.1)])  # fmt: skip
def test_steps_recover_while_the_loss_falls_by_more_than_they_cost(cost, low, high):
    noise = 0.1 * np.random.default_rng(0).normal(size=600)
    losses = 20.0 - 0.02 * np.arange(600) + noise
    law = watched(losses, cost)
    quick = slow = 0.0
    damping = 0.5
    for n, loss in enumerate(losses, start=1):
        quick += max(1 / n, 0.05) * (loss + n * cost - quick)
        slow += max(1 / n, 0.0125) * (loss + n * cost - slow)
        damping = min(1.0, damping * (1.003 if quick <= slow or n <= 20 else 0.99))
    assert law.shared[law_module.DAMPING] == pytest.approx(damping)
    assert low <= damping <= high


def test_the_cost_of_a_step_is_that_of_its_parabola():
    law = LayerLaw(None, Layout([nn.Parameter(torch.ones(3))]), 1, 0)
    law.table[SQUARE, 0], law.table[BEND, 0] = 4.0, 8.0
    steps = [law.step(0, slope, 1.0) for slope in (1.0, -2.0)]
    assert steps == pytest.approx([-0.5 * 0.15 / 8.0, 2 * 0.5 * 0.15 / 8.0])
    cost = 0.5 * 8.0 * (steps[0] ** 2 + steps[1] ** 2)
    assert law.shared[law_module.COST] == pytest.approx(cost)


def test_rising_losses_halve_the_steps():
    law = watched(10.0 - 0.02 * np.arange(300))
    rng = np.random.default_rng(0)
    assert law.shared[law_module.DAMPING] == 1.0
    for step in range(6):
        law.watch(2.0 ** (step + 1))  # growing too fast for a running variance to notice
        law.memory.step += 1
    assert law.shared[law_module.DAMPING] < 0.6
    for _ in range(60):  # rising by less than a scatter at a time
        law.watch(70.0 + law.n_steps - 300 + 0.1 * rng.normal())
        law.memory.step += 1
    assert law.shared[law_module.DAMPING] < 0.1


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
    with pytest.raises(ValueError, match="only must be regular expressions"):
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
    estimator = SparseMeZO(kept=0.25)
    optimizer = ZeroOrderSCGD([theta], 2e-4, radius=1e-3, estimator=estimator, seed=0)
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


@pytest.mark.parametrize("n_groups", [1, 2])
def test_probes_in_one_pass_see_the_losses_of_single_ones(n_groups):
    one, two = (perceptron(torch.float64, widths=(6, 16, 3)) for _ in range(2))
    x, y = batch(torch.float64)

    def halves(model):
        params = list(model.parameters())
        return [{"params": params[:2]}, {"params": params[2:]}] if n_groups == 2 else params

    together, singly = ZeroOrderSCGD(halves(one), seed=0), ZeroOrderSCGD(halves(two), seed=0)
    calls = []

    def loss(out, target):
        calls.append(out)
        return F.cross_entropy(out, target)

    for _ in range(20):
        a = together.step(ForwardLoss(one, loss, x, y))
        b = singly.step(lambda: F.cross_entropy(two(x), y))
        torch.testing.assert_close(a, b, rtol=1e-9, atol=0)
    for p, q in zip(one.parameters(), two.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-9)
    assert len(calls) == 20 * n_groups
    # A base loss per group, at the first step two.
    assert together.n_forwards - singly.n_forwards == 21 * (n_groups - 1)


def test_models_that_cannot_be_mapped_take_the_usual_path():
    class Branching(nn.Linear):
        def forward(self, x):
            return super().forward(x) if float(self.weight.sum()) > -1e9 else x

    model = Branching(3, 1)
    x = torch.ones(4, 3)
    optimizer = ZeroOrderSCGD(model.parameters(), seed=0)
    first = optimizer.step(ForwardLoss(model, F.mse_loss, x, x[:, :1]))
    for _ in range(60):
        last = optimizer.step(ForwardLoss(model, F.mse_loss, x, x[:, :1]))
    assert last < 0.5 * first


def test_dropout_is_the_same_in_one_pass():
    model = nn.Sequential(nn.Linear(5, 50), nn.Dropout(0.5), nn.Linear(50, 1))
    x = torch.randn(8, 5, generator=torch.Generator().manual_seed(0))
    optimizer = ZeroOrderSCGD(model.parameters(), lr=0.0, radius=1e-6, seed=0)
    outputs = []

    def loss(out, target):
        outputs.append(out)
        return out.square().mean()

    before = torch.get_rng_state()
    optimizer.step(ForwardLoss(model, loss, x, None))
    slopes = optimizer.laws[0].table[SQUARE]
    assert len(outputs) == 1 and slopes.max() < 1e4  # masks that differ would give 1e10
    assert not torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("frozen", [True, False])
def test_statistics_stay_when_all_losses_are_one_pass(frozen):
    """Below trained layers a model can be mapped; one whose BatchNorm is trained fails there."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.BatchNorm1d(8), nn.Linear(8, 1)
    )
    model[:4].requires_grad_(not frozen)
    x = torch.randn(32, 5) + 1
    buffers = {name: b.clone() for name, b in model.named_buffers()}
    optimizer = ZeroOrderSCGD(model.parameters(), seed=0)
    first = optimizer.step(ForwardLoss(model, F.mse_loss, x, x[:, :1]))
    for _ in range(20):
        last = optimizer.step(ForwardLoss(model, F.mse_loss, x, x[:, :1]))
    assert last < first
    for name, b in model.named_buffers():
        assert torch.equal(b, buffers[name]), name


def test_dropout_is_the_same_where_one_pass_fails():
    """The pass stops at the statistics, before the dropout, which the usual losses then run."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 50), nn.BatchNorm1d(50), nn.Dropout(0.5), nn.Linear(50, 1))
    x = torch.randn(8, 5)
    optimizer = ZeroOrderSCGD(model.parameters(), lr=0.0, radius=1e-6, seed=0)
    for _ in range(2):
        optimizer.step(ForwardLoss(model, lambda out, _: out.square().mean(), x, None))
    assert optimizer.laws[0].table[SQUARE].max() < 1e4  # masks that differ would give 1e10
