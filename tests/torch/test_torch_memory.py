"""Where an optimizer keeps what it knows, and what it makes of parameters that change under it."""

import io

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from scgd import Musketeer  # noqa: E402
from scgd.torch import SCGD, ZeroOrderSCGD  # noqa: E402

CHANGES = {
    "fused": {},
    "momentum": {"momentum": 0.9},
    "adam": {"rule": "adam", "sampling": "distinct"},
    "rows": {"granularity": "rows", "fraction": 0.5},
    "softmax": {"policy": Musketeer(normalization="softmax")},
}
ALL = pytest.mark.parametrize("settings", CHANGES.values(), ids=CHANGES)


def some(*shape, **given):
    n = int(np.prod(shape))
    return nn.Parameter(torch.linspace(-1, 1, n).reshape(shape), **given)


def step(optimizer, *params):
    for p in params:
        p.grad = torch.ones_like(p)
    optimizer.step()


def bytes_held(optimizer):
    tensors = [t for kept in optimizer.state.values() for t in kept.values()]
    return sum(t.nbytes for t in tensors if isinstance(t, torch.Tensor))


@ALL
@pytest.mark.parametrize("shape", [(5, 4), (60, 20), (3, 400)])
def test_parameters_that_change_size_are_followed(settings, shape):
    p, q = some(30, 10), some(40)
    optimizer = SCGD([p, q], 0.1, seed=0, **settings)
    step(optimizer, p, q)
    p.grad = None
    p.data = torch.zeros(shape)
    for _ in range(30):
        step(optimizer, p, q)
    assert optimizer.layouts[0].n_coords == p.numel() + 40
    # Gradients of one: every entry that was drawn went down, none is where others were.
    assert (p <= 0).all() and (p < 0).any()
    for name in ("gains", "exp_avg", "momentum_buffer"):
        if name in optimizer.state[p]:
            assert optimizer.state[p][name].shape == p.shape


def test_a_gradient_of_another_shape_is_refused():
    p = some(30, 10)
    optimizer = SCGD([p], 0.1, seed=0)
    step(optimizer, p)
    p.data = torch.zeros(50, 10)
    with pytest.raises(RuntimeError, match=r"gradient of shape \(30, 10\) .* resized after"):
        optimizer.step()


def test_transposed_data_at_the_same_address_moves_the_right_entries():
    p = some(4, 6)
    optimizer = SCGD([p], 1.0, fraction=1.0, policy="uniform")
    step(optimizer, p)
    before = p.detach().clone()
    p.grad = None
    p.data = p.data.t()
    p.grad = torch.arange(24.0).reshape(6, 4)
    optimizer.step()
    torch.testing.assert_close(p.detach(), before.t() - torch.arange(24.0).reshape(6, 4))


@ALL
def test_parameters_swapped_in_the_groups_are_trained(settings):
    old, new = [some(30, 10), some(40)], [some(30, 10), some(40)]
    optimizer = SCGD(old, 0.1, seed=0, **settings)
    optimizer.param_groups[0]["params"] = new
    before = [p.detach().clone() for p in new]
    optimizer.state_dict()
    for _ in range(10):
        step(optimizer, *new)
    assert all(not torch.equal(p, b) for p, b in zip(new, before, strict=True))
    assert torch.equal(old[0], some(30, 10))
    assert set(optimizer.state) == set(new)


def test_a_swap_after_some_steps_keeps_what_was_learned():
    old, new = some(200), some(200)
    optimizer = SCGD([old], 0.0, fraction=0.5, rule="adam", seed=0)
    for _ in range(8):
        step(optimizer, old)
    gains, mean = optimizer.weights(), optimizer.state[old]["exp_avg"].clone()
    optimizer.param_groups[0]["params"] = [new]
    optimizer.state_dict()
    np.testing.assert_allclose(optimizer.weights(), gains)
    assert torch.equal(optimizer.state[new]["exp_avg"], mean) and optimizer.samplers[0].n_steps == 8


def test_frozen_parameters_do_not_count_and_get_no_state():
    frozen, trained = some(1000, requires_grad=False), some(120)
    optimizer = SCGD([frozen, trained], 0.1, fraction=0.1, sampling="distinct", seed=0)
    for _ in range(5):
        before = trained.detach().clone()
        step(optimizer, trained)
        assert int((trained.detach() != before).sum()) == 12
    assert set(optimizer.state) == {trained}


@pytest.mark.parametrize("make", [SCGD, ZeroOrderSCGD])
def test_unfreezing_and_freezing_later_are_followed(make):
    a, b = some(50), some(60, requires_grad=False)
    optimizer = make([a, b], 0.5, seed=0)

    def closure():
        loss = (a.square().sum() if a.requires_grad else 0) + (b - 3).square().sum()
        if make is SCGD:
            optimizer.zero_grad()
            if loss.requires_grad:
                loss.backward()
        return loss

    def moved(n):
        before = [a.detach().clone(), b.detach().clone()]
        for _ in range(n):
            optimizer.step(closure)
        return not torch.equal(a, before[0]), not torch.equal(b, before[1])

    assert moved(5) == (True, False)
    b.requires_grad_(True)
    assert moved(20) == (True, True)
    a.requires_grad_(False)
    a.grad = None
    assert moved(20) == (False, True)


def test_adam_on_chunks_takes_ten_bytes_per_parameter():
    p = some(100_000)
    optimizer = SCGD([p], 0.1, rule="adam", granularity="chunks", fraction=0.2, seed=0)
    for _ in range(3):
        step(optimizer, p)
    distribution = sum(
        t.nbytes for t in optimizer.state[p]["sampler"]["sampler"].values() if hasattr(t, "nbytes")
    )
    assert bytes_held(optimizer) + distribution <= 10 * p.numel()
    assert optimizer.state[p]["visits"].numel() == 98


def test_settings_of_a_group_may_be_scheduled():
    p = some(10_000)
    optimizer = SCGD([p], 1.0, fraction=0.1, sampling="distinct", seed=0)
    for fraction in (0.1, 0.5, 0.02):
        optimizer.param_groups[0]["fraction"] = fraction
        before = p.detach().clone()
        step(optimizer, p)
        assert int((p.detach() != before).sum()) == round(fraction * 10_000)
    optimizer.param_groups[0]["fraction"] = 1.5
    with pytest.raises(ValueError, match="fraction must lie in"):
        step(optimizer, p)
    rows = some(40, 3)
    units = SCGD([rows], 1.0, granularity="rows", fraction=0.1, seed=0)
    for fraction in (0.1, 0.5):
        units.param_groups[0]["fraction"] = fraction
        before = rows.detach().clone()
        step(units, rows)
        assert int((rows.detach() != before).any(1).sum()) == round(fraction * 40)


def test_weights_learned_survive_another_number_of_draws():
    p = some(40, 3)
    optimizer = SCGD([p], 0.1, granularity="rows", fraction=0.5, seed=0)
    gradient = torch.zeros(40, 3)
    gradient[7] = 1.0
    for fraction, n_steps in ((0.5, 40), (0.1, 1)):
        optimizer.param_groups[0]["fraction"] = fraction
        for _ in range(n_steps):
            p.grad = gradient.clone()
            optimizer.step()
        weights = optimizer.weights()
        assert weights.argmax() == 7 and weights[7] > 2 * np.median(weights)


def test_a_policy_set_later_is_used():
    p = some(1000)
    optimizer = SCGD([p], 0.0, fraction=0.5, seed=0)
    for _ in range(10):
        p.grad = torch.arange(1000.0)
        optimizer.step()
    assert np.ptp(optimizer.weights()) > 0
    optimizer.param_groups[0]["policy"] = "uniform"
    step(optimizer, p)
    assert np.ptp(optimizer.weights()) == 0


def test_the_radius_may_be_scheduled():
    theta, seen = nn.Parameter(torch.zeros(3)), []
    optimizer = ZeroOrderSCGD([theta], 0.0, radius=1e-2, estimator="forward", seed=0)

    def closure():
        seen.append(theta.abs().max().item())
        return theta.sum()

    for radius in (1e-2, 1e-3):
        optimizer.param_groups[0]["radius"] = radius
        optimizer.step(closure)
    assert seen == pytest.approx([0, 1e-2, 0, 1e-3])


@pytest.mark.parametrize("make", [SCGD, ZeroOrderSCGD])
def test_a_rate_of_zero_moves_nothing(make):
    p = some(50)
    optimizer = make([p], lr=0.0, seed=0)
    p.grad = torch.ones_like(p)
    optimizer.step(lambda: p.square().sum())
    assert torch.equal(p, some(50))


def test_states_without_newer_settings_load():
    p = some(50)
    optimizer = SCGD([p], 0.1, seed=0)
    step(optimizer, p)
    state = optimizer.state_dict()
    for name in ("maximize", "amsgrad", "half_life"):
        del state["param_groups"][0][name]
    fresh = SCGD([p], 0.1, maximize=True, seed=0)
    fresh.load_state_dict(state)
    assert fresh.param_groups[0]["maximize"] is True
    state["param_groups"][0]["memory"] = {}
    with pytest.raises(ValueError, match=r"before 0\.2"):
        fresh.load_state_dict(state)


CHECKPOINTED = {
    "fused": (SCGD, {}),
    "adam": (SCGD, {"rule": "adam", "amsgrad": True}),
    "rows": (SCGD, {"granularity": "rows", "rule": "adam", "fraction": 0.3}),
    "published": (SCGD.published, {}),
    "auto": (ZeroOrderSCGD, {}),
    "forward": (ZeroOrderSCGD, {"estimator": "forward", "radius": 1e-2}),
    "mezo": (ZeroOrderSCGD, {"estimator": "mezo", "radius": 1e-2, "momentum": 0.9}),
}


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("variant", CHECKPOINTED)
def test_distributed_checkpoints_hold_sampler_and_moments(variant, flat, tmp_path):
    dcp = pytest.importorskip("torch.distributed.checkpoint")
    from torch.distributed.checkpoint import state_dict as tools

    make, settings = CHECKPOINTED[variant]
    options = tools.StateDictOptions(flatten_optimizer_state_dict=flat)
    x = torch.randn(8, 6, generator=torch.Generator().manual_seed(0))

    def build():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2))
        return model, make(model.parameters(), 0.05, seed=3, **settings)

    def train(model, optimizer, n):
        def closure():
            loss = model(x).square().mean()
            if make is not ZeroOrderSCGD:
                optimizer.zero_grad()
                loss.backward()
            return loss

        return [optimizer.step(closure).item() for _ in range(n)]

    model, optimizer = build()
    train(model, optimizer, 7)
    optimizer.zero_grad()
    state = tools.get_optimizer_state_dict(model, optimizer, options=options)
    dcp.save({"model": model.state_dict(), "optimizer": state}, checkpoint_id=tmp_path)
    other, fresh = build()
    wanted = tools.get_optimizer_state_dict(other, fresh, options=options)
    loaded = {"model": other.state_dict(), "optimizer": wanted}
    dcp.load(loaded, checkpoint_id=tmp_path)
    other.load_state_dict(loaded["model"])
    tools.set_optimizer_state_dict(other, fresh, loaded["optimizer"], options=options)
    assert train(model, optimizer, 6) == train(other, fresh, 6)


def test_files_are_as_large_as_what_is_learned():
    p = some(100_000)
    optimizer = SCGD([p], 0.1, seed=0)
    step(optimizer, p)
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    assert file.tell() < 4.1 * p.numel()
