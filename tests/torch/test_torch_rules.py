"""Update rules and draws against torch's own optimizers, and probabilities that add up."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from scgd import Musketeer  # noqa: E402
from scgd.torch import SCGD  # noqa: E402

RIVALS = {
    "SGD": (torch.optim.SGD, {"rule": "sgd"}),
    "Adam": (torch.optim.Adam, {"rule": "adam"}),
    "AdamW": (torch.optim.AdamW, {"rule": "adam", "decoupled_weight_decay": True}),
}
KNOWN = ("lr", "momentum", "dampening", "nesterov", "weight_decay", "maximize", "amsgrad", "betas")


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", RIVALS)
@pytest.mark.parametrize("layout", [{}, {"granularity": "rows"}, {"fused": False}], ids=str)
def test_torchs_own_inputs_give_torchs_own_trajectories(name, layout):
    pytest.importorskip("expecttest")
    common = pytest.importorskip("torch.testing._internal.common_optimizers")
    rival, ours = RIVALS[name]
    info = next(info for info in common.optim_db if info.optim_cls is rival)
    cases = [case.kwargs for case in info.optim_inputs_func(device="cpu")]
    assert len(cases) >= 5
    n_run = 0
    for given in cases:
        if any(given.get(other) for other in ("capturable", "foreach", "differentiable")):
            with pytest.raises(ValueError, match="does not take"):
                SCGD([nn.Parameter(torch.ones(2))], **{**ours, **given})
            continue
        n_run += 1
        mine, theirs = ([nn.Parameter(torch.linspace(-1, 1, 12).view(4, 3))] for _ in range(2))
        usual = {"weight_decay": 0.01} if name == "AdamW" else {}
        settings = {**usual, "lr": 1e-3, **given}
        assert settings.keys() <= {*KNOWN, "capturable", "foreach", "differentiable", "fused"}
        one = SCGD(mine, fraction=1.0, policy="uniform", **{**settings, **ours, **layout})
        two = rival(theirs, **settings)
        for step in range(6):
            for params, optimizer in ((mine, one), (theirs, two)):
                params[0].grad = torch.sin(params[0].detach() * 3 + step)
                optimizer.step()
        torch.testing.assert_close(mine, theirs, rtol=2e-5, atol=1e-6)
    assert n_run >= 5


@pytest.mark.parametrize("policy", ["musketeer", "uniform"])
@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_a_fraction_of_one_moves_everything(policy, momentum):
    p = nn.Parameter(torch.zeros(1000))
    optimizer = SCGD([p], 1.0, fraction=1.0, policy=policy, momentum=momentum, seed=0)
    for step in range(5):
        before = p.detach().clone()
        p.grad = torch.linspace(0.1, 2.0, 1000) ** (step + 1)
        optimizer.step()
        assert int((p.detach() != before).sum()) == 1000


@pytest.mark.parametrize("settings", [{}, {"momentum": 0.5}, {"fused": False}], ids=str)
def test_probabilities_cut_at_one_are_given_to_the_others(settings):
    p = nn.Parameter(torch.zeros(10_000))
    optimizer = SCGD([p], 1.0, fraction=0.1, half_life=None, seed=0, **settings)
    moved = []
    for step in range(40):
        before = p.detach().clone()
        p.grad = torch.ones(10_000)
        if step == 10:
            p.grad[:20] = 1e6
        optimizer.step()
        moved.append(int((p.detach() != before).sum()))
    assert np.mean(moved[:10]) == pytest.approx(1000, rel=0.05)
    assert np.mean(moved[14:]) == pytest.approx(1000, rel=0.03)
    assert optimizer.weights().sum() == pytest.approx(1, abs=1e-4)


def test_gains_are_forgotten():
    for half_life, low, high in ((10.0, 0.0, 2.0), (None, 50.0, np.inf)):
        p = nn.Parameter(torch.zeros(1000))
        optimizer = SCGD([p], 0.0, fraction=0.5, half_life=half_life, seed=0)
        for step in range(200):
            p.grad = torch.ones(1000)
            p.grad[0] = 1e3 if step < 20 else 1.0
            optimizer.step()
        weights = optimizer.weights()
        assert low < weights[0] / np.median(weights) < high


def test_a_half_life_halves_gains_in_both_passes():
    for fused in (None, False):
        p = nn.Parameter(torch.zeros(500))
        optimizer = SCGD([p], 0.0, fraction=0.5, half_life=3.0, fused=fused, seed=0)
        p.grad = torch.linspace(1, 2, 500)
        optimizer.step()
        before = optimizer.state[p]["gains"].clone()
        p.grad = torch.zeros(500)
        for _ in range(3):
            optimizer.step()
        torch.testing.assert_close(optimizer.state[p]["gains"], before / 2)


def test_the_balance_is_part_of_the_state():
    p, q = nn.Parameter(torch.zeros(400)), nn.Parameter(torch.zeros(400))
    one = SCGD([p], 1.0, fraction=0.3, seed=0)
    for _ in range(5):
        p.grad = torch.ones(400)
        p.grad[:5] = 1e6
        one.step()
    assert one.samplers[0].boost > 1.0
    two = SCGD([q], 1.0, fraction=0.3, seed=0)
    two.load_state_dict(one.state_dict())
    assert two.samplers[0].boost == one.samplers[0].boost
    q.data.copy_(p.data)
    for _ in range(3):
        p.grad, q.grad = torch.ones(400), torch.ones(400)
        one.step()
        two.step()
    assert torch.equal(p, q)


def test_decoupled_decay_is_no_part_of_the_gains():
    p = nn.Parameter(torch.full((100,), 10.0))
    optimizer = SCGD(
        [p], 0.1, fraction=0.5, weight_decay=0.5, decoupled_weight_decay=True, seed=0,
        policy=Musketeer(mixing=1.0),
    )  # fmt: skip
    p.grad = torch.zeros(100)
    optimizer.step()
    assert optimizer.state[p]["gains"].abs().sum() == 0
    moved = p.detach()[p.detach() != 10.0]
    torch.testing.assert_close(moved, torch.full_like(moved, 9.5))
