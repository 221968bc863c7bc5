"""Steps during backward, and what once went wrong with blocks."""

import pytest

torch = pytest.importorskip("torch")

from block_models import BlockOptimizer, Stack, flat, loss_of, stack, train  # noqa: E402
from torch import nn  # noqa: E402

from scgd.torch import SCGD, ZeroOrderSCGD  # noqa: E402


def pair(**settings):
    """Return a model stepped after backward and its twin, stepped during it."""
    made = []
    for in_backward in (False, True):
        model = stack()
        made += [model, BlockOptimizer(model, in_backward=in_backward, seed=0, **settings)]
    return made


@pytest.mark.parametrize(
    "settings",
    [
        {"policy": "cyclic", "period": 3, "lr": 0.01},
        {"policy": "musketeer", "period": 3, "lr": 0.01, "always": ["head"]},
        {"policy": "misa", "blocks": "module", "active": 3, "period": 2, "lr": 0.01},
        {"policy": "cyclic", "warmup": 2, "importance": "relative", "period": 3, "lr": 0.01},
        {"inner": torch.optim.Adafactor, "policy": "shuffled", "period": 4, "lr": 0.01},
    ],
    ids=str,
)
def test_steps_during_backward_are_those_after_it(settings):
    model, after, twin, during = pair(**settings)
    train(model, after, 30)
    train(twin, during, 30)
    assert after.history == during.history
    torch.testing.assert_close(flat(model), flat(twin))


def test_no_gradient_outlives_the_backward_that_made_it():
    model = stack()
    optimizer = BlockOptimizer(
        model, torch.optim.Adafactor, period=2, in_backward=True, always=["head"], lr=1e-3
    )
    for step in range(8):
        loss_of(model, step).backward()
        assert all(p.grad is None for p in model.parameters())
        optimizer.step()
    assert len(optimizer.history) == 5


def test_all_of_a_model_can_be_one_block():
    model = stack()
    optimizer = BlockOptimizer(model, blocks={"all": ".*"}, policy="top", in_backward=True, lr=0.02)
    losses = train(model, optimizer, 60)
    assert sum(losses[-10:]) < 0.7 * sum(losses[:10])


def test_a_run_with_steps_during_backward_resumes():
    settings = {"policy": "shuffled", "period": 4, "in_backward": True, "seed": 0, "lr": 0.01}
    model = stack()
    optimizer = BlockOptimizer(model, **settings)
    train(model, optimizer, 6)
    again = stack(seed=1)
    again.load_state_dict(model.state_dict())
    resumed = BlockOptimizer(again, **settings)
    resumed.load_state_dict(optimizer.state_dict())
    train(model, optimizer, 9, start=6)
    train(again, resumed, 9, start=6)
    assert torch.equal(flat(model), flat(again))


def test_accumulation_is_refused_during_backward():
    model = stack()
    optimizer = BlockOptimizer(model, policy="cyclic", in_backward=True, lr=0.01)
    with pytest.raises(RuntimeError, match=r"call optimizer.step\(\) after each backward"):
        for step in range(2):
            loss_of(model, step).backward()
    optimizer.release()


def test_hooks_go_with_the_optimizer():
    model = stack()
    optimizer = BlockOptimizer(model, policy="cyclic", in_backward=True, lr=0.01)
    optimizer.release()
    loss_of(model, 0).backward()
    assert all(p.grad is not None for p in model.parameters())


def test_one_seed_one_trajectory_without_any_costs_given():
    runs = []
    for _ in range(2):
        model = stack()
        optimizer = BlockOptimizer(model, policy="inverse-cost", seed=0, lr=1e-2, period=2)
        train(model, optimizer, 60)
        runs.append((optimizer.history, flat(model)))
    assert runs[0][0] == runs[1][0] and torch.equal(runs[0][1], runs[1][1])


def test_upper_blocks_and_small_ones_cost_less():
    optimizer = BlockOptimizer(stack(), policy="inverse-cost", lr=0.1)
    distribution = optimizer.probabilities()
    assert (
        distribution["layers.0"]
        < distribution["layers.1"]
        < distribution["layers.3"]
        < distribution["head"]
    )


def test_what_the_user_freezes_stays():
    model = nn.Sequential(*[nn.Linear(3, 3) for _ in range(4)])
    optimizer = BlockOptimizer(model, policy="cyclic", period=1, lr=0.1)
    x = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))

    def run(steps):
        before = [layer.weight.detach().clone() for layer in model]
        for _ in range(steps):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        return [not torch.equal(layer.weight, b) for layer, b in zip(model, before, strict=True)]

    assert optimizer.active_blocks == ["3"]
    model[3].requires_grad_(False)  # in training: it is followed
    optimizer.freeze("1")  # waits for its visit: nothing else could tell
    assert run(12) == [True, False, True, False]
    model[3].requires_grad_(True)
    assert run(12) == [True, False, True, True]
    optimizer.release()
    assert [layer.weight.requires_grad for layer in model] == [True, False, True, True]


def test_freezing_everything_is_refused():
    model = stack()
    optimizer = BlockOptimizer(model, lr=0.1)
    with pytest.raises(RuntimeError, match="every block is frozen"):
        optimizer.freeze(".*")
    with pytest.raises(ValueError, match="finds no parameter"):
        optimizer.freeze("nothing")


@pytest.mark.parametrize(
    ("first", "then", "settings"),
    [
        (torch.float32, torch.float64, {}),
        (torch.float64, torch.float32, {}),
        (torch.float32, torch.bfloat16, {"fp32_copy": False}),
        (torch.float32, torch.bfloat16, {}),
    ],
    ids=str,
)
def test_a_state_is_taken_up_in_another_precision(first, then, settings):
    model = stack().to(first)
    optimizer = BlockOptimizer(model, policy="cyclic", period=50, lr=0.01, **settings)
    train(model, optimizer, 5)
    other = stack().to(then)
    loaded = BlockOptimizer(other, policy="cyclic", period=50, lr=0.01, **settings)
    loaded.load_state_dict(optimizer.state_dict())
    losses = train(other, loaded, 3, start=5)
    assert all(loss == loss for loss in losses)


class Counting(torch.optim.SGD):
    """An optimizer that counts its steps in its groups, as schedule-free ones do."""

    def step(self, closure=None):
        super().step(closure)
        for group in self.param_groups:
            group["k"] = group.get("k", 0) + 1


def test_counters_in_the_groups_go_on_for_what_is_always_trained():
    model = stack()
    optimizer = BlockOptimizer(model, Counting, policy="cyclic", period=3, always=["head"], lr=0.01)

    def seen():
        return [group["k"] for group in optimizer.inner.units[0].optimizer.param_groups]

    train(model, optimizer, 8)
    assert seen() == [2, 8]  # of the block in training, of the head
    again = stack()
    resumed = BlockOptimizer(again, Counting, policy="cyclic", period=3, always=["head"], lr=0.01)
    resumed.load_state_dict(optimizer.state_dict())
    train(again, resumed, 2)
    assert [g["k"] for g in resumed.inner.units[0].optimizer.param_groups] == [1, 10]


def test_muon_says_which_blocks_it_refuses():
    with pytest.raises(ValueError, match=r"refuses \['layers.0.bias'\] .*never="):
        BlockOptimizer(Stack(), torch.optim.Muon, never=["embeddings", "head"], lr=0.1)


def test_a_state_of_another_optimizer_is_refused():
    model = nn.Linear(3, 1)
    adam = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    adam.step()
    with pytest.raises(ValueError, match="saved by another optimizer"):
        SCGD(model.parameters(), 0.1).load_state_dict(adam.state_dict())


def test_parameters_may_get_their_values_later():
    model = nn.Linear(3, 1, device="meta")
    optimizer = ZeroOrderSCGD(model.parameters(), seed=0)
    model.to_empty(device="cpu")
    model.reset_parameters()
    optimizer.param_groups[0]["params"] = list(model.parameters())
    x = torch.ones(4, 3)
    first = optimizer.step(lambda: (model(x) - 1).square().mean())
    for _ in range(100):
        last = optimizer.step(lambda: (model(x) - 1).square().mean())
    assert last < 0.1 * first


def test_foreach_is_accepted():
    model = nn.Linear(3, 1)
    SCGD(model.parameters(), 0.1, foreach=True)
    ZeroOrderSCGD(model.parameters(), foreach=True)
