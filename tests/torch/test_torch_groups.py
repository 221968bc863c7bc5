"""Several groups, frozen and empty ones, and states of other parameters."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import scgd  # noqa: E402
from scgd.torch import SCGD, ZeroOrderSCGD  # noqa: E402


def some(n=6, **settings):
    return nn.Parameter(torch.linspace(-1, 1, n), **settings)


@pytest.mark.parametrize("estimator", ["forward", "central", "sphere", "mezo", "spsa"])
@pytest.mark.parametrize("keep_copy", [False, True])
def test_a_loss_that_fails_in_a_later_group_moves_no_group(estimator, keep_copy):
    a, b = some(), some(4)
    optimizer = ZeroOrderSCGD(
        [{"params": [a]}, {"params": [b]}], 0.1, radius=1e-2, estimator=estimator,
        keep_copy=keep_copy, seed=0,
    )  # fmt: skip
    before, calls = [a.detach().clone(), b.detach().clone()], 0

    def fails():
        nonlocal calls
        calls += 1
        return torch.tensor(float("nan")) if calls == 4 else a.square().sum() + b.sum()

    with pytest.raises(FloatingPointError, match="as before the step"):
        optimizer.step(fails)
    exact = 0.0 if keep_copy or estimator in ("forward", "central") else 1e-6
    for p, old in zip((a, b), before, strict=True):
        torch.testing.assert_close(p.detach(), old, rtol=0, atol=exact)
    assert [sampler.n_steps for sampler in optimizer.samplers] == [0, 0]


@pytest.mark.parametrize("make", [SCGD, ZeroOrderSCGD])
def test_empty_and_frozen_groups_are_left_alone(make):
    moving, frozen = some(), some(requires_grad=False)
    groups = [{"params": [frozen]}, {"params": []}, {"params": [moving]}]
    optimizer = make(groups, 0.1, seed=0)
    before = moving.detach().clone()
    for _ in range(20):
        optimizer.zero_grad()
        if make is SCGD:
            moving.square().sum().backward()
            optimizer.step()
        else:
            optimizer.step(lambda: moving.square().sum())
    assert torch.equal(frozen, some()) and not torch.equal(moving, before)
    again = make(
        [{"params": [some(requires_grad=False)]}, {"params": []}, {"params": [some()]}], 0.1
    )
    again.load_state_dict(optimizer.state_dict())


@pytest.mark.parametrize("make", [SCGD, ZeroOrderSCGD])
@pytest.mark.parametrize("settings", [{}, {"momentum": 0.9}])
def test_states_of_other_parameters_are_refused_whole(make, settings):
    saved = make([{"params": [some()]}, {"params": [some(60)]}], 0.1, seed=0, **settings)
    mine = make([{"params": [some()]}, {"params": [some(70)]}], 0.1, seed=5, **settings)
    for optimizer in (saved, mine):
        for group in optimizer.param_groups:
            group["params"][0].grad = torch.ones_like(group["params"][0])
        optimizer.step(lambda: saved.param_groups[0]["params"][0].sum())
    seed = mine.samplers[0].seed
    with pytest.raises(ValueError, match="saved for other parameters"):
        mine.load_state_dict(saved.state_dict())
    assert mine.samplers[0].seed == seed


def test_numbers_of_numpy_make_plain_files(tmp_path):
    optimizer = SCGD([some(60)], np.float64(0.1), fraction=np.float64(0.2), seed=np.int64(3))
    torch.save(optimizer.state_dict(), tmp_path / "state.pt")
    torch.load(tmp_path / "state.pt", weights_only=True)


@pytest.mark.parametrize(("rule", "cycled"), [("sgd", "momentum"), ("adam", "betas")])
def test_schedulers_cycle_what_the_rule_uses(rule, cycled):
    p = some()
    optimizer = SCGD([p], 0.1, rule=rule, momentum=0.9 if rule == "sgd" else 0.0)
    before = optimizer.param_groups[0][cycled]
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=10)
    p.grad = torch.ones_like(p)
    for _ in range(4):
        optimizer.step()
        scheduler.step()
    assert optimizer.param_groups[0][cycled] != before


def test_weights_of_zero_move_nothing_and_leave_nothing_undefined():
    p = nn.Parameter(torch.linspace(-1, 1, 400))
    policy = scgd.Musketeer(mixing=scgd.Linear(total=5))
    optimizer = SCGD([p], 0.01, policy=policy, seed=0)
    for _ in range(12):
        p.grad = p.detach().clone()
        optimizer.step()
    assert torch.isfinite(p).all()


def test_too_few_positive_weights_are_told():
    weights = np.zeros(60)
    weights[:4] = 0.25
    p = some(60)
    p.grad = torch.ones_like(p)
    policy = scgd.FixedWeights(weights)
    SCGD([p], 0.1, policy=policy, sampling="distinct", block_size=4, seed=0).step()
    assert (p.detach() != some(60)).sum() == 4
    optimizer = SCGD([p], 0.1, policy=policy, sampling="distinct", block_size=6, seed=0)
    with pytest.raises(ValueError, match="only 4 coordinates have a positive weight"):
        optimizer.step()


def test_a_closure_with_gradients_of_its_own_is_refused():
    p = some()
    optimizer = ZeroOrderSCGD([p], 0.1, radius=1e-2, estimator="forward")

    @torch.enable_grad()
    def closure():
        loss = p.square().sum()
        loss.backward()
        return loss.detach()

    with pytest.raises(RuntimeError, match="called backward"):
        optimizer.step(closure)
    assert torch.equal(p.detach(), some())


def test_sparse_mezo_decays_what_it_trains_and_takes_any_tensor():
    p = nn.Parameter(torch.linspace(-1, 1, 100, dtype=torch.float64))
    empty = nn.Parameter(torch.empty(0, dtype=torch.float64))
    estimator = scgd.torch.directions.SparseMeZO(kept=0.3)
    optimizer = ZeroOrderSCGD(
        [p, empty], 0.1, radius=1e-3, estimator=estimator, weight_decay=0.1, seed=0
    )
    before = p.detach().clone()
    optimizer.step(lambda: p.square().sum())
    moved = (p.detach() - before).abs() > 1e-12
    assert moved.sum() == 30 and before[moved].abs().max() < before[~moved].abs().min()


def test_losses_keep_the_precision_of_the_parameters():
    p = nn.Parameter(torch.ones(3, dtype=torch.float64))
    assert (
        ZeroOrderSCGD([p], 0.1, radius=1e-3, estimator="forward").step(lambda: p.sum()).dtype
        == torch.float64
    )
    optimizer = ZeroOrderSCGD([p], 0.1, radius=1e-3, estimator="mezo")
    assert optimizer.weights() == pytest.approx([1 / 3] * 3)


def test_lazily_conjugated_gradients():
    z = nn.Parameter(torch.ones(4, dtype=torch.complex64))
    (z.conj() * torch.tensor([1, 1j, 2, -1j])).real.sum().backward()
    SCGD([z], 0.1, fraction=1.0).step()
    assert torch.isfinite(torch.view_as_real(z.detach())).all()


def test_groups_hold_plain_numbers():
    given = {"momentum": np.float32(0.5), "fraction": Fraction(1, 4)}
    group = SCGD([some()], Decimal("0.5"), **given).param_groups[0]
    found = [group["lr"], group["momentum"], group["fraction"]]
    assert found == [0.5, 0.5, 0.25] and {type(number) for number in found} == {float}
    group = SCGD([some()], 0.1, block_size=np.int64(2)).param_groups[0]
    assert group["block_size"] == 2 and type(group["block_size"]) is int


def test_a_number_of_coordinates_takes_the_place_of_the_fraction():
    p = some(20)
    optimizer = SCGD([p], 0.1, fraction=None, block_size=3, sampling="distinct", seed=0)
    p.grad = torch.ones(20)
    optimizer.step()
    assert int((p.detach() != some(20).detach()).sum()) == 3
    with pytest.raises(TypeError, match="fraction must lie in"):
        SCGD([some()], 0.1, fraction=None)
