"""Traps that users of block training have met elsewhere, one row each."""

import copy

import pytest
import torch
from block_models import BlockOptimizer, Stack, flat, loss_of, stack, train
from torch import nn

from scgd.torch.blocks import Cyclic, InverseCost, UniformBlocks


def test_freezing_by_an_optimizer_leaves_nothing_outside_the_next_one():
    model = stack()
    first = BlockOptimizer(model, policy="cyclic", lr=0.01)
    again = BlockOptimizer(model, policy="cyclic", lr=0.01)  # as when a notebook cell runs twice
    assert list(again.blocks) == list(first.blocks) and len(again.blocks) == 6


def by_file(model, folder):
    torch.save(model, folder / "model.pt")
    return torch.load(folder / "model.pt", weights_only=False)


@pytest.mark.parametrize("duplicate", [lambda m, _: copy.deepcopy(m), by_file])
def test_copies_and_files_of_the_model_have_all_blocks(duplicate, tmp_path):
    model = stack()
    model.layers[1].requires_grad_(False)
    first = BlockOptimizer(model, policy="cyclic", never=["embeddings"], lr=0.01)
    twin = duplicate(model, tmp_path)
    second = BlockOptimizer(twin, policy="cyclic", lr=0.01)
    assert list(second.blocks) == ["embeddings", *first.blocks] and len(second.blocks) == 5
    part = duplicate(model.layers, tmp_path)
    assert list(BlockOptimizer(part, policy="cyclic", lr=0.01).blocks) == ["0", "2", "3"]
    second.release()
    frozen = [n for n, p in twin.named_parameters() if not p.requires_grad]
    assert frozen == ["layers.1.weight", "layers.1.bias"]
    assert not model.embeddings.weight.requires_grad  # the original is still held


def test_what_another_optimizer_froze_can_always_train():
    model = stack()
    first = BlockOptimizer(model, policy="cyclic", never=["head"], lr=0.01)
    second = BlockOptimizer(model, policy="cyclic", always=["head"], lr=0.01)
    before = model.head.weight.clone()
    train(model, second, 1)
    assert "head" not in first.blocks and not torch.equal(model.head.weight, before)


def test_parameters_the_user_froze_stay_frozen():
    model = stack()
    model.layers[1].requires_grad_(False)
    before = model.layers[1].weight.clone()
    optimizer = BlockOptimizer(model, policy="cyclic", period=1, lr=0.1)
    assert "layers.1" not in optimizer.blocks
    train(model, optimizer, 12)
    assert torch.equal(model.layers[1].weight, before)


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize("kind", ["reentrant", "other"])
@pytest.mark.parametrize("never", [[], ["embeddings"]])
@pytest.mark.parametrize("always", [[], ["head"]])
def test_checkpointing_gives_the_same_gradients(kind, never, always):
    order = Cyclic("ascending")
    settings = {"policy": order, "period": 2, "lr": 0.01, "never": never, "always": always}
    plain, saved = stack(), stack(checkpointing=kind)
    one, other = (BlockOptimizer(m, **settings) for m in (plain, saved))
    losses = train(plain, one, 20)
    if kind == "reentrant" and always:
        # The head hides the missing gradient from the output: one step is lost before it is seen.
        train(saved, other, 20)
        assert other.input_hooks
        for mine, untrained in zip(saved.layers, stack().layers, strict=True):
            assert not torch.equal(mine.weight, untrained.weight)
    else:
        assert train(saved, other, 20) == losses
        assert torch.equal(flat(plain), flat(saved))
    assert len(other.book.blocks) == len(one.book.blocks)


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
def test_reentrant_checkpointing_of_a_model_without_embeddings():
    class Floats(Stack):
        def forward(self, x):
            return self.head(
                torch.utils.checkpoint.checkpoint(self.layers[0], x, use_reentrant=True)
            )

    torch.manual_seed(0)
    model = Floats(n_layers=1)
    del model.embeddings
    optimizer = BlockOptimizer(model, policy="top", first=["layers"], blocks="module", lr=0.1)
    before = model.layers[0].weight.clone()
    optimizer.zero_grad()
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
    assert not torch.equal(model.layers[0].weight, before)


class Unused(Stack):
    """A model with a part that the output does not depend on."""

    def __init__(self):
        super().__init__()
        self.pooler = nn.Linear(8, 8)

    def forward(self, tokens):
        self.pooler(torch.zeros(1, 8))
        return super().forward(tokens)


@pytest.mark.parametrize("always", [[], ["head"]])
def test_a_block_that_no_gradient_reaches_is_given_up_with_a_warning(always):
    torch.manual_seed(0)
    model = Unused()
    optimizer = BlockOptimizer(model, policy="cyclic", period=2, lr=0.01, always=always)
    with pytest.warns(UserWarning, match=r"no gradient reaches \['pooler'\]"):
        train(model, optimizer, 240)
    assert optimizer.probabilities()["pooler"] == 0.0
    state = optimizer.state_dict()
    torch.manual_seed(0)
    again = BlockOptimizer(Unused(), policy="cyclic", period=2, lr=0.01, always=always)
    again.load_state_dict(state)
    assert again.probabilities() == optimizer.probabilities()


def test_a_head_drawn_at_random_can_go_first_or_always():
    for settings in ({"first": ["head"]}, {"always": ["head"]}):
        model = stack()
        optimizer = BlockOptimizer(
            model, policy=UniformBlocks(first_cycle=False), seed=1, lr=0.01, **settings
        )
        before = model.head.weight.clone()
        train(model, optimizer, 1)
        assert not torch.equal(model.head.weight, before)


def test_names_match_whole_parts():
    model = stack(n_layers=12)
    optimizer = BlockOptimizer(model, policy="cyclic", lr=0.01, never=["layers.1"])
    assert "layers.1" not in optimizer.blocks
    assert {"layers.10", "layers.11"} <= set(optimizer.blocks)


def test_states_hold_order_and_position():
    model = stack()
    optimizer = BlockOptimizer(model, policy="shuffled", period=3, seed=5, lr=0.01)
    train(model, optimizer, 7)
    other = BlockOptimizer(stack(), policy="shuffled", period=3, seed=6, lr=0.01)
    other.load_state_dict(optimizer.state_dict())
    assert other.active_blocks == optimizer.active_blocks
    assert other.book.memory == optimizer.book.memory and other.meter.steps == 1


def test_tied_weights_are_one_tensor_under_every_name():
    model = stack(tied=True)
    optimizer = BlockOptimizer(model, policy="cyclic", period=1, lr=0.01)
    assert next(iter(optimizer.blocks)) == "embeddings" and "head" not in optimizer.blocks
    frozen = BlockOptimizer(stack(tied=True), never=["head"], lr=0.01)
    assert "embeddings" not in frozen.blocks
    with pytest.raises(ValueError, match="tied tensors have several names"):
        BlockOptimizer(stack(tied=True), never=["embeddings"], always=["head"], lr=0.01)
    chosen = BlockOptimizer(stack(tied=True), first=["head"], lr=0.01)
    assert chosen.active_blocks == ["embeddings"]


def test_copies_of_the_model_do_not_carry_the_optimizer():
    model = stack()
    optimizer = BlockOptimizer(model, policy="cyclic", period=1, lr=0.01)
    twin = copy.deepcopy(model)
    twin.requires_grad_(False)
    twin(torch.zeros(2, 5, dtype=torch.long))  # its hook is idle: nothing is dropped
    assert len(optimizer.book.blocks) == 6
    with pytest.raises(TypeError, match="save state_dict"):
        copy.deepcopy(optimizer)


def test_no_block_waits_longer_than_stated():
    model = stack()
    policy = InverseCost(coverage=2)
    cost = {name: 1e-6 if name == "head" else 1.0 for name in BlockOptimizer(model, lr=1.0).blocks}
    optimizer = BlockOptimizer(model, policy=policy, period=1, seed=0, cost=cost, lr=1e-3)
    train(model, optimizer, 100)
    for name in optimizer.blocks:
        visits = [row["visit"] for row in optimizer.history if name in row["blocks"]]
        gaps = [b - a for a, b in zip([-1, *visits], [*visits, optimizer.book.visit], strict=True)]
        assert max(gaps) <= 12


def test_validation_in_the_middle_of_a_visit_changes_nothing():
    runs = []
    for validate in (False, True):
        model = stack()
        optimizer = BlockOptimizer(model, policy="musketeer", period=3, seed=2, lr=0.01)

        def look(model=model):
            model.eval()
            with torch.no_grad():
                loss_of(model, 999)
            model.train()

        train(model, optimizer, 40, each=look if validate else None)
        runs.append(flat(model))
    assert torch.equal(*runs)
