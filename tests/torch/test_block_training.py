"""The block optimizer in training loops: what is trained, freed, kept and scheduled."""

import copy

import pytest
import torch
from block_models import BlockOptimizer, Stack, flat, loss_of, stack, train
from torch import nn

from scgd.torch.blocks import BLOCK_POLICIES, BlockMusketeer, Top

LAYERS = ["layers.0", "layers.1", "layers.2", "layers.3"]
ALL = ["embeddings", *LAYERS, "head"]
COST = {name: float(6 - i) for i, name in enumerate(ALL)}


def with_grads(model):
    return [name for name, p in model.named_parameters() if p.grad is not None]


@pytest.mark.parametrize("inner", [torch.optim.AdamW, torch.optim.SGD])
def test_all_blocks_active_is_the_inner_optimizer(inner):
    settings = {"lr": 0.01, "weight_decay": 0.1}
    mine, plain = stack(), stack()
    optimizer = BlockOptimizer(mine, inner, policy="top", active=6, period=3, **settings)
    reference = inner(plain.parameters(), **settings)
    assert train(mine, optimizer, 12) == train(plain, reference, 12)
    assert torch.equal(flat(mine), flat(plain))


def test_one_block_moves_as_under_the_inner_optimizer_and_the_others_stay():
    mine, plain = stack(), stack()
    optimizer = BlockOptimizer(mine, policy="cyclic", period=4, lr=0.01)
    for block in reversed(ALL):
        params = [p for n, p in plain.named_parameters() if n.startswith(block + ".")]
        reference = torch.optim.AdamW(params, lr=0.01)  # new state at each switch
        assert optimizer.active_blocks == [block]
        for step in range(4):
            for model, one in ((mine, optimizer), (plain, reference)):
                model.zero_grad()
                loss_of(model, step).backward()
                one.step()
            assert torch.equal(flat(mine), flat(plain))


def test_gradients_and_state_exist_for_the_active_block_only():
    model = stack()
    optimizer = BlockOptimizer(model, policy="cyclic", period=3, lr=0.01)
    for step in range(9):
        active = optimizer.active_blocks[0]
        optimizer.zero_grad()
        loss_of(model, step).backward()
        assert all(name.startswith(active + ".") for name in with_grads(model))
        assert with_grads(model)
        optimizer.step()
        switched = step % 3 == 2
        assert len(optimizer.state) == (0 if switched else len(optimizer.blocks[active]))
        if switched:
            assert with_grads(model) == [] and optimizer.active_blocks != [active]


def test_a_visit_takes_ten_steps_unless_told_otherwise():
    model = stack()
    optimizer = BlockOptimizer(model, policy="cyclic", lr=0.01)
    train(model, optimizer, 9)
    assert optimizer.active_blocks == ["head"]
    train(model, optimizer, 1)
    assert optimizer.active_blocks == ["layers.3"]


def test_backward_stops_at_the_lowest_active_block():
    model = stack()
    BlockOptimizer(model, policy="top", active=2, lr=0.01)
    recorded = []
    for layer in model.layers:
        layer.register_forward_hook(lambda m, a, output: recorded.append(output.requires_grad))
    loss_of(model, 0).backward()
    assert recorded == [False, False, False, True]


def test_kept_state_comes_back():
    kept, plain = stack(), stack()
    optimizer = BlockOptimizer(kept, policy="cyclic", period=2, keep_state="cpu", lr=0.01)
    reference = {
        block: torch.optim.AdamW(
            [p for n, p in plain.named_parameters() if n.startswith(block + ".")], lr=0.01
        )
        for block in ALL
    }
    for step in range(24):
        block = optimizer.active_blocks[0]
        for model, one in ((kept, optimizer), (plain, reference[block])):
            model.zero_grad()
            loss_of(model, step).backward()
            one.step()
    assert torch.equal(flat(kept), flat(plain))
    assert len(optimizer.state) == len(list(kept.parameters()))


def test_roles():
    model = stack()
    optimizer = BlockOptimizer(
        model, policy="uniform", period=1, seed=0, lr=0.01,
        always=["head"], never=["embeddings"], first=["layers.1"],
    )  # fmt: skip
    assert list(optimizer.blocks) == LAYERS
    assert optimizer.active_blocks == ["layers.1"]
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    assert not model.embeddings.weight.requires_grad
    train(model, optimizer, 1)
    moved = [n for n, p in model.named_parameters() if not torch.equal(p, before[n])]
    assert moved == ["layers.1.weight", "layers.1.bias", "head.weight", "head.bias"]
    train(model, optimizer, 10)
    assert torch.equal(model.embeddings.weight, before["embeddings.weight"])
    assert {p for p in optimizer.state} >= set(model.head.parameters())  # never emptied
    assert all(s["step"] == 11 for p, s in optimizer.state.items() if p is model.head.bias)


def test_several_blocks_at_once():
    model = stack()
    optimizer = BlockOptimizer(model, policy="cyclic", period=2, active=2, lr=0.01)
    seen = [optimizer.active_blocks]
    for _ in range(2):
        train(model, optimizer, 2)
        seen.append(optimizer.active_blocks)
    assert seen == [["head", "layers.3"], ["layers.2", "layers.1"], ["layers.0", "embeddings"]]


@pytest.mark.parametrize("name", BLOCK_POLICIES)
def test_every_policy_trains(name):
    model = stack()
    optimizer = BlockOptimizer(
        model, policy=name, period=4, seed=3, cost=COST, always=["head.bias"], lr=0.03
    )
    start = sum(loss_of(model, 1000 + i).item() for i in range(8)) / 8
    train(model, optimizer, 240)
    end = sum(loss_of(model, 1000 + i).item() for i in range(8)) / 8
    assert end < start - 0.01
    distribution = optimizer.probabilities()
    assert list(distribution) == list(optimizer.blocks) and sum(
        distribution.values()
    ) == pytest.approx(1.0)


def test_rates_of_schedulers_and_groups_reach_the_inner_optimizer():
    model = stack()
    optimizer = BlockOptimizer(
        model, torch.optim.SGD, policy="top", active=6, lr=1.0, groups={"head": {"lr": 0.5}}
    )
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.1)
    for factor in (1.0, 0.1, 0.01):
        before = copy.deepcopy(dict(model.named_parameters()))
        optimizer.zero_grad()
        loss_of(model, 0).backward()
        optimizer.step()
        schedule.step()
        for name, p in model.named_parameters():
            rate = factor * (0.5 if name.startswith("head") else 1.0)
            torch.testing.assert_close(p, before[name] - rate * p.grad, rtol=1e-5, atol=1e-7)


def test_onecycle_moves_betas_of_the_inner_optimizer():
    model = stack()
    optimizer = BlockOptimizer(model, policy="cyclic", period=3, lr=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=20)
    train(model, optimizer, 4, each=schedule.step)
    loss_of(model, 0).backward()
    optimizer.step()
    ours, theirs = optimizer.param_groups[0], optimizer.inner.units[0].optimizer.param_groups[0]
    assert ours["betas"] == theirs["betas"] != (0.9, 0.999) and ours["lr"] == theirs["lr"]


def moves(factors, **settings):
    """The lengths of a few SGD steps relative to rate times gradient."""
    model = stack()
    optimizer = BlockOptimizer(model, torch.optim.SGD, lr=0.1, cost=COST, seed=0, **settings)
    for factor in factors:
        before, active = copy.deepcopy(model).state_dict(), optimizer.active_blocks
        optimizer.zero_grad()
        loss_of(model, 0).backward()
        grads = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
        optimizer.step()
        expected = factor(active[0], optimizer) if callable(factor) else factor
        for name, grad in grads.items():
            step = before[name] - model.state_dict()[name]
            torch.testing.assert_close(step, 0.1 * expected * grad, rtol=1e-4, atol=1e-6)


def test_warm_up_of_each_visit():
    moves([0.25, 0.5, 0.75, 1.0, 1.0, 0.25, 0.5], policy="cyclic", period=5, warmup=4)


def test_importance_acts_on_the_rate():
    total = sum(1 / c for c in COST.values())
    moves(
        [lambda b, _: COST[b] * total / 6] * 8,
        policy="inverse-cost",
        period=1,
        importance="relative",
    )


def test_adam_steps_carry_the_importance_too():
    model = stack()
    optimizer = BlockOptimizer(
        model, policy="inverse-cost", period=1, lr=0.1, cost=COST, importance="relative", seed=0
    )
    before, block = flat(model.head), optimizer.active_blocks
    train(model, optimizer, 1)
    expected = 0.1 * COST["head"] * sum(1 / c for c in COST.values()) / 6
    assert block == ["head"]
    assert (flat(model.head) - before).abs().max().item() == pytest.approx(expected, rel=0.05)


def test_accumulation_never_switches_in_between():
    model, plain = stack(), stack()
    optimizer = BlockOptimizer(model, policy="cyclic", period=1, lr=0.01)
    for block in ("head", "layers.3"):
        params = [p for n, p in plain.named_parameters() if n.startswith(block + ".")]
        reference = torch.optim.AdamW(params, lr=0.01)
        for one, net in ((optimizer, model), (reference, plain)):
            net.zero_grad()
            for micro in range(3):
                (loss_of(net, micro) / 3).backward()
                if one is optimizer:
                    assert optimizer.active_blocks == [block]
            one.step()
        assert torch.equal(flat(model), flat(plain))


def test_clipping_before_the_step():
    model = stack()
    optimizer = BlockOptimizer(model, torch.optim.SGD, policy="cyclic", period=2, lr=1.0)
    for step in range(6):
        before = flat(model)
        optimizer.zero_grad()
        loss_of(model, step).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        optimizer.step()
        assert (flat(model) - before).norm().item() == pytest.approx(1e-3, rel=1e-3)


def test_grad_scaler_skips_what_overflows_and_does_not_count_it():
    model = stack()
    policy = BlockMusketeer(first_period=2, gain_per="step")
    optimizer = BlockOptimizer(model, policy=policy, period=2, lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1000)
    losses = []
    for step in range(6):
        optimizer.zero_grad()
        loss = loss_of(model, step) * (float("inf") if step == 2 else 1.0)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(optimizer.active_blocks[0])
    assert losses == ["head", "layers.3", "layers.3", "layers.3", "layers.2", "layers.2"]
    assert scaler.get_scale() == 2.0
    plain = stack()
    reference = BlockOptimizer(plain, policy=policy, period=2, lr=0.01)
    for step in (0, 1, 3, 4, 5):
        reference.zero_grad()
        loss_of(plain, step).backward()
        reference.step()
    torch.testing.assert_close(flat(model), flat(plain))
    torch.testing.assert_close(optimizer.book.gains, reference.book.gains, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_trained_through_a_float32_copy(dtype):
    model = stack().to(dtype)
    optimizer = BlockOptimizer(model, torch.optim.SGD, policy="cyclic", period=40, lr=1e-4)
    head = model.head.weight.detach().float().clone()
    grads = torch.zeros_like(head)
    for step in range(40):
        optimizer.zero_grad()
        loss_of(model, step).backward()
        grads += model.head.weight.grad.float()
        held = list(optimizer.inner.copies)
        if step < 39:
            assert set(held) == set(model.head.parameters())
        optimizer.step()
    # Each step is below half a unit in the last place of bfloat16, their sum is not.
    assert torch.equal(model.head.weight, (head - 1e-4 * grads).to(dtype)) or torch.allclose(
        model.head.weight.float(), head - 1e-4 * grads, rtol=2**-7
    )
    assert set(optimizer.inner.copies) == set(model.layers[3].parameters())


def test_steps_too_small_for_bfloat16_add_up_in_the_copy_and_are_lost_without():
    results = {}
    for fp32_copy in (True, False):
        model = stack().bfloat16()
        optimizer = BlockOptimizer(
            model, torch.optim.SGD, policy="top", lr=1e-4, fp32_copy=fp32_copy
        )
        before = flat(model)
        train(model, optimizer, 200)
        results[fp32_copy] = (flat(model) - before).norm().item()
    assert results[True] > 3 * results[False]


def test_top_keeps_its_state():
    model = stack()
    optimizer = BlockOptimizer(model, policy=Top(), active=2, period=2, lr=0.01)
    train(model, optimizer, 7)
    assert {float(s["step"]) for s in optimizer.state.values()} == {7.0}


def test_a_step_without_gradients_changes_nothing():
    model = stack()
    optimizer = BlockOptimizer(model, policy="cyclic", period=1, lr=0.01)
    before = flat(model)
    optimizer.step()
    assert torch.equal(flat(model), before) and optimizer.active_blocks == ["head"]


def test_closures():
    model, plain = stack(), stack()
    one = BlockOptimizer(
        model, policy=BlockMusketeer(gain="loss", gain_per="step"), period=2, lr=0.01
    )
    other = BlockOptimizer(
        plain, policy=BlockMusketeer(gain="loss", gain_per="step"), period=2, lr=0.01
    )

    def closure():
        one.zero_grad()
        loss = loss_of(model, 0)
        loss.backward()
        return loss

    for _ in range(8):
        loss = one.step(closure)
        other.zero_grad()
        again = loss_of(plain, 0)
        again.backward()
        other.tell(again)
        other.step()
        assert loss.item() == again.item()
    assert torch.equal(flat(model), flat(plain))


def test_release_gives_the_model_back():
    model = stack()
    model.layers[2].bias.requires_grad_(False)
    optimizer = BlockOptimizer(model, never=["embeddings"], policy="cyclic", lr=0.01)
    optimizer.release()
    frozen = [n for n, p in model.named_parameters() if not p.requires_grad]
    assert frozen == ["layers.2.bias"] and not model._forward_hooks


def test_models_of_one_sequence():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = BlockOptimizer(model, policy="cyclic", lr=0.1)
    assert list(optimizer.blocks) == ["0", "2"]
    assert isinstance(Stack(), nn.Module)


@pytest.mark.parametrize("keep_state", [False, "cpu"])
@pytest.mark.parametrize("write", ["load", "data"])
def test_weights_written_from_outside_are_not_undone_by_the_float32_copy(write, keep_state):
    model, other = stack().bfloat16(), stack(1).bfloat16()
    optimizer = BlockOptimizer(
        model, torch.optim.SGD, policy="cyclic", period=2, keep_state=keep_state, lr=1e-4
    )
    train(model, optimizer, 13)  # every block has had a visit; the head has one step behind it
    if write == "load":
        model.load_state_dict(other.state_dict())
    else:
        for p, q in zip(model.parameters(), other.parameters(), strict=True):
            p.data.copy_(q.data)
    train(model, optimizer, 12)
    assert (flat(model) - flat(other)).abs().max() < 0.01


@pytest.mark.parametrize("policy", ["inverse-cost", BlockMusketeer(gain_per="cost")])
def test_costs_are_measured_in_visits_of_one_step(policy):
    model = stack()
    optimizer = BlockOptimizer(model, policy=policy, period=1, seed=0, cost="time", lr=0.01)
    train(model, optimizer, 12)  # two steps each
    assert (optimizer.book.costs > 0).all() and optimizer.book.visit == 7
    train(model, optimizer, 5)
    assert optimizer.book.visit == 12


def test_groups_added_later_always_train():
    model, outside = stack(), nn.Parameter(torch.ones(3))
    settings = {"policy": "cyclic", "period": 2, "never": ["embeddings"]}
    optimizer = BlockOptimizer(model, torch.optim.SGD, lr=0.1, momentum=0.9, **settings)
    train(model, optimizer, 1)
    momentum = optimizer.state[model.head.bias]["momentum_buffer"]
    optimizer.add_param_group({"params": [outside], "lr": 0.5, "momentum": 0.0})
    optimizer.add_param_group({"params": model.embeddings.parameters()})
    assert optimizer.state[model.head.bias]["momentum_buffer"] is momentum
    for step in range(4):
        before = model.embeddings.weight.clone()
        optimizer.zero_grad()
        (loss_of(model, step) + outside.sum()).backward()
        optimizer.step()
        assert not torch.equal(model.embeddings.weight, before)
    assert torch.equal(outside.detach(), torch.full((3,), -1.0))
    with pytest.raises(ValueError, match="more than one parameter group"):
        optimizer.add_param_group({"params": [model.head.weight]})
    again = BlockOptimizer(stack(), torch.optim.SGD, lr=0.1, momentum=0.9, **settings)
    again.add_param_group({"params": [nn.Parameter(torch.ones(3))]})
    again.add_param_group({"params": again.model.embeddings.parameters()})
    again.load_state_dict(optimizer.state_dict())
    assert again.param_groups[1]["lr"] == 0.5 and again.active_blocks == optimizer.active_blocks
