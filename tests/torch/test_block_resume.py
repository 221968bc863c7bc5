"""Saved states: bit for bit in the middle of a visit, by torch.save and by DCP; bad ones refused."""

import copy

import pytest
import torch
import torch.distributed.checkpoint as dcp
from block_models import BlockOptimizer, flat, stack, train
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_state_dict,
)

from scgd.torch.blocks import BLOCK_POLICIES, BlockMusketeer, BlockPolicy, Cyclic

NAMES = ["embeddings", "layers.0", "layers.1", "layers.2", "layers.3", "head"]
COST = {name: float(6 - i) for i, name in enumerate(NAMES)}
POLICIES = [
    *BLOCK_POLICIES,
    BlockMusketeer(gain_per="cost", normalization="softmax", eta=0.5),
    BlockMusketeer(probe=2, gain_per="step"),
    BlockMusketeer(gain="loss", gain_per="step"),
    BlockMusketeer(gain="adam", gain_per="step"),
]


def make(policy, **settings):
    model = stack()
    settings = {"period": 5, "seed": 4, "lr": 0.02, "cost": COST, **settings}
    return model, BlockOptimizer(model, policy=policy, **settings)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("stop", [43, 45])  # in the middle of a visit and at a switch
def test_resume_bit_for_bit(policy, stop, tmp_path):
    model, optimizer = make(policy)
    train(model, optimizer, stop)
    torch.save({"m": model.state_dict(), "o": optimizer.state_dict()}, tmp_path / "file.pt")
    straight = train(model, optimizer, 60, start=stop)
    saved = torch.load(tmp_path / "file.pt", weights_only=True)
    again, resumed = make(policy, seed=99)
    again.load_state_dict(saved["m"])
    resumed.load_state_dict(saved["o"])
    assert train(again, resumed, 60, start=stop) == straight
    assert torch.equal(flat(again), flat(model))
    assert (
        resumed.probabilities() == optimizer.probabilities()
        and resumed.history == optimizer.history
    )


@pytest.mark.parametrize("settings", [{"keep_state": "cpu"}, {"active": 2}, {"warmup": 4}])
def test_resume_with_other_settings(settings):
    model, optimizer = make("uniform", **settings)
    train(model, optimizer, 33)
    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    straight = train(model, optimizer, 40, start=33)
    again, resumed = make("uniform", **settings)
    again.load_state_dict(saved[0])
    resumed.load_state_dict(saved[1])
    assert train(again, resumed, 40, start=33) == straight


def test_resume_in_bfloat16_keeps_moments_and_copies_in_float32():
    runs = []
    for stop in (40, 18):
        model = stack().bfloat16()
        optimizer = BlockOptimizer(model, policy="cyclic", period=4, lr=1e-3)
        train(model, optimizer, stop)
        if stop < 40:
            saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
            model = stack(1).bfloat16()
            optimizer = BlockOptimizer(model, policy="cyclic", period=4, lr=1e-3)
            model.load_state_dict(saved[0])
            optimizer.load_state_dict(saved[1])
            state = optimizer.state[model.layers[0].weight if stop == 18 else model.head.weight]
            assert state["exp_avg"].dtype == torch.float32
            train(model, optimizer, 40 - stop, start=stop)
        runs.append(flat(model))
    assert torch.equal(*runs)


def test_measured_costs_travel_with_the_state():
    model, optimizer = make("inverse-cost", cost="time")
    train(model, optimizer, 40)
    assert (optimizer.book.costs > 0).all()
    again, resumed = make("inverse-cost", cost="time")
    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    straight = train(model, optimizer, 40, start=40)
    again.load_state_dict(saved[0])
    resumed.load_state_dict(saved[1])
    assert train(again, resumed, 40, start=40) == straight


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
@pytest.mark.parametrize("flatten", [False, True])
@pytest.mark.parametrize("settings", [{}, {"groups": {"bias": {"lr": 0.1}}}])
def test_distributed_checkpoint_by_names(flatten, settings, tmp_path):
    options = StateDictOptions(flatten_optimizer_state_dict=flatten)
    model, optimizer = make("shuffled", **settings)
    train(model, optimizer, 17)
    weights, state = get_state_dict(model, optimizer, options=options)
    rows = {"model": weights, "optimizer": state, "position": optimizer.position()}
    dcp.save(rows, checkpoint_id=tmp_path)
    straight = train(model, optimizer, 30, start=17)

    again, resumed = make("shuffled", seed=77, **settings)
    place = {"position": ""}
    dcp.load(place, checkpoint_id=tmp_path)
    resumed.seek(place["position"])
    weights, state = get_state_dict(again, resumed, options=options)
    dcp.load({"model": weights, "optimizer": state}, checkpoint_id=tmp_path)
    set_state_dict(
        again, resumed, model_state_dict=weights, optim_state_dict=state, options=options
    )
    assert train(again, resumed, 30, start=17) == straight
    assert torch.equal(flat(again), flat(model))


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
@pytest.mark.parametrize("settings", [{}, {"keep_state": "cpu"}])
def test_distributed_checkpoint_of_the_state_itself(settings, tmp_path):
    model, optimizer = make("shuffled", **settings)
    train(model, optimizer, 17)
    rows = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    dcp.save({**rows, "position": optimizer.position()}, checkpoint_id=tmp_path)
    straight = train(model, optimizer, 40, start=17)
    again, resumed = make("shuffled", seed=77, **settings)
    place = {"position": ""}
    dcp.load(place, checkpoint_id=tmp_path)
    resumed.seek(place["position"])
    rows = {"model": again.state_dict(), "optimizer": resumed.state_dict()}
    dcp.load(rows, checkpoint_id=tmp_path)
    resumed.load_state_dict(rows["optimizer"])
    assert train(again, resumed, 40, start=17) == straight


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_kept_states_that_dcp_drops_are_missed():
    model, optimizer = make("shuffled", keep_state="cpu")
    train(model, optimizer, 17)
    weights, state = get_state_dict(model, optimizer)
    before = flat(model)
    with pytest.raises(ValueError, match="skip frozen ones"):
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=state)
    assert torch.equal(flat(model), before)


def test_the_steps_that_dcp_makes_to_create_state_do_not_count():
    model, optimizer = make("cyclic", period=1)
    before = flat(model)
    get_state_dict(model, optimizer)
    assert optimizer.active_blocks == ["head"] and optimizer.meter.steps == 0
    assert torch.equal(flat(model), before)


class Mine(BlockPolicy):
    """A policy as a user would write it."""

    def choose(self, book, n_active):
        return [book.visit % 2]


def test_a_policy_of_ones_own():
    model, optimizer = make(Mine())
    names = []
    train(model, optimizer, 15, each=lambda: names.append(optimizer.active_blocks[0]))
    assert names[4::5] == ["layers.0", "embeddings", "layers.0"]


def test_states_that_do_not_fit_are_refused_and_change_nothing():
    model, optimizer = make("cyclic")
    train(model, optimizer, 7)
    good = copy.deepcopy(optimizer.state_dict())
    others = {
        "policy": BlockOptimizer(stack(), policy=Cyclic("ascending"), lr=0.02).state_dict(),
        "blocks": BlockOptimizer(stack(), policy="cyclic", never=["head"], lr=0.02).state_dict(),
        "not saved by": torch.optim.AdamW(model.parameters(), lr=0.1).state_dict(),
    }
    for message, state in others.items():
        with pytest.raises(ValueError, match=message):
            optimizer.load_state_dict(state)
    assert repr(optimizer.state_dict()) == repr(good)
