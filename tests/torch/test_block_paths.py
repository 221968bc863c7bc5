"""Forwards without a path to the active block: skipped, given up after many, tried again."""

import dataclasses
import warnings
from collections import namedtuple

import pytest
import torch
from block_models import BlockOptimizer, Dropping, Stack, flat, loss_of, stack, train
from torch import nn

from scgd.torch.blocks import BlockMusketeer
from scgd.torch.blocks.ledger import GRACE, PATIENCE, RETRY


class Routed(Stack):
    """One of the layers, drawn at random, between embeddings and head."""

    def forward(self, tokens):
        expert = self.layers[torch.randint(len(self.layers), (1,)).item()]
        return self.head(torch.tanh(expert(self.embeddings(tokens))).mean(1))


class Gated(Stack):
    """A pooler that the output depends on when the gate is open."""

    def __init__(self):
        super().__init__()
        self.pooler, self.open = nn.Linear(3, 3), False

    def forward(self, tokens):
        output = super().forward(tokens)
        return self.pooler(output) if self.open else output


def gated(**settings):
    torch.manual_seed(0)
    model = Gated()
    return model, BlockOptimizer(model, **{"policy": "cyclic", "lr": 0.01, **settings})


@pytest.mark.parametrize("make", [lambda: Dropping(0.2), lambda: Dropping(0.5), Routed])
@pytest.mark.parametrize("always", [[], ["head"]])
def test_random_paths_give_up_no_block(make, always):
    torch.manual_seed(0)
    model = make()
    before = [layer.weight.clone() for layer in model.layers]
    optimizer = BlockOptimizer(model, policy="uniform", seed=0, lr=0.01, always=always)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        losses = train(model, optimizer, 300)
    assert optimizer.book.alive.all() and (optimizer.book.counts > 0).all()
    for layer, weight in zip(model.layers, before, strict=True):
        assert not torch.equal(layer.weight, weight)
    assert sum(losses[-50:]) < 0.9 * sum(losses[:50])


def test_evaluation_with_gradients_on_is_no_affair_of_the_optimizer():
    class Classes(Stack):
        def forward(self, tokens):
            self.calls = getattr(self, "calls", 0) + 1
            output = super().forward(tokens)
            return output if self.training else output.detach()

    torch.manual_seed(0)
    model = Classes()
    optimizer = BlockOptimizer(model, policy="cyclic", lr=0.01)
    place = optimizer.position()
    tokens = torch.zeros(2, 5, dtype=torch.long)
    for _ in range(2 * PATIENCE):
        assert not model.eval()(tokens).requires_grad
    assert model.calls == 2 * PATIENCE and optimizer.position() == place
    model.train().forward = lambda tokens: tokens.argmax(1)  # no floats: not judged
    model(tokens)
    optimizer.step()
    assert optimizer.book.alive.all()


@pytest.mark.parametrize("inner", [torch.optim.AdamW, torch.optim.SGD])
def test_a_missing_gradient_skips_the_step_for_the_block(inner):
    extra = {"momentum": 0.9} if inner is torch.optim.SGD else {}
    settings = {"policy": "top", "weight_decay": 0.1, "period": 50, **extra}
    model, optimizer = gated(inner=inner, **settings)
    model.open = True
    train(model, optimizer, 2)
    state = {p: s.get("step", 0) for p, s in optimizer.state.items()}
    before, model.open = flat(model), False
    train(model, optimizer, GRACE + 2)
    assert torch.equal(flat(model), before)  # neither momentum nor weight decay moves it
    assert {p: s.get("step", 0) for p, s in optimizer.state.items()} == state
    assert optimizer.active_blocks == ["pooler"] and optimizer.meter.steps == GRACE + 4
    model.open = True
    train(model, optimizer, 1)
    assert not torch.equal(flat(model), before)


def test_what_always_trains_goes_on_while_the_block_is_missed():
    model, optimizer = gated(always=["head"], policy="top")
    before = model.head.weight.clone(), model.pooler.weight.clone()
    train(model, optimizer, 1)
    assert not torch.equal(model.head.weight, before[0])
    assert torch.equal(model.pooler.weight, before[1])


def test_one_micro_batch_with_a_path_is_a_gradient():
    model, optimizer = gated(policy="top")
    plain, reference = gated(policy="top")
    for step in range(4):
        optimizer.zero_grad(), reference.zero_grad()
        for model.open in (False, True, False):
            loss_of(model, step).backward()
        plain.open = True
        loss_of(plain, step).backward()
        optimizer.step(), reference.step()
    assert torch.equal(flat(model), flat(plain)) and optimizer.book.missed.max() == 0


def test_grad_scaler_meets_a_block_without_a_path():
    model, optimizer = gated()
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    for step in range(GRACE):
        optimizer.zero_grad()
        scaler.scale(loss_of(model, step)).backward()
        scaler.step(optimizer)
        scaler.update()
    assert optimizer.active_blocks == ["head"]  # a visit without gradients ends soon


def test_blocks_are_given_up_after_many_steps_in_a_row_and_tried_again():
    model, optimizer = gated(period=4)
    n, lost = len(optimizer.blocks), PATIENCE // GRACE
    with pytest.warns(UserWarning, match=rf"\['pooler'\].* {PATIENCE} steps .* {RETRY * n} visits"):
        train(model, optimizer, (GRACE + 4 * (n - 1)) * lost)
    assert optimizer.probabilities()["pooler"] == 0.0
    assert optimizer.book.counts[-1] == lost
    before, model.open = model.pooler.weight.clone(), True
    train(model, optimizer, 4 * RETRY * n)
    assert not torch.equal(model.pooler.weight, before) and optimizer.book.alive.all()


def test_a_block_tried_again_in_vain_costs_one_visit():
    model, optimizer = gated(period=GRACE)
    n = len(optimizer.blocks)
    with pytest.warns(UserWarning, match="pooler"):
        train(model, optimizer, GRACE * (n * PATIENCE // GRACE + RETRY * n + 2 * n))
    assert optimizer.book.counts[-1] == PATIENCE // GRACE + 1
    assert optimizer.probabilities()["pooler"] == 0.0


def test_only_the_unreached_of_several_blocks_is_given_up():
    model, optimizer = gated(policy="top", active=2, period=GRACE)
    with pytest.warns(UserWarning, match=r"no gradient reaches \['pooler'\]"):
        train(model, optimizer, PATIENCE)
    assert optimizer.active_blocks == ["head", "layers.3"]


def test_a_model_that_reaches_nothing_says_so_and_can_be_mended():
    model = stack()
    optimizer = BlockOptimizer(model, policy="cyclic", lr=0.01)
    model.forward = lambda tokens: torch.zeros(16, 3)
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="no gradient reaches any"):
        train(model, optimizer, 6 * PATIENCE)
    del model.forward
    before = flat(model)
    train(model, optimizer, 4)
    assert optimizer.book.alive.all() and not torch.equal(flat(model), before)


def test_probes_beside_blocks_without_a_path():
    model, optimizer = gated(policy=BlockMusketeer(probe=2, gain_per="step"), period=2, seed=0)
    train(model, optimizer, 20)
    assert optimizer.book.alive.all()


Pair = namedtuple("Pair", "logits name")


@dataclasses.dataclass(frozen=True)
class Record:
    logits: torch.Tensor
    name: str


@pytest.mark.parametrize(
    "wrap",
    [
        lambda t: t,
        lambda t: (t, "x"),
        lambda t: [t, torch.arange(3)],
        lambda t: {"logits": t},
        lambda t: Pair(t, "x"),
        lambda t: Record(t, "x"),
        lambda t: t.expand(2, 4, 3),  # cannot be written to
    ],
)
def test_outputs_of_every_kind_are_bridged(wrap):
    values = torch.tensor([[1.0, -0.5, float("inf")]])

    class Fixed(nn.Linear):
        def forward(self, x):
            return wrap(x)

    model = Fixed(3, 3)
    optimizer = BlockOptimizer(model, lr=0.1)
    output = model(values)
    assert optimizer.seen.bridged
    assert type(output) is type(wrap(values))
    found = getattr(output, "logits", output)
    found = found["logits"] if isinstance(found, dict) else found
    found = found[0] if isinstance(found, tuple | list) else found
    assert found.requires_grad and torch.equal(found.detach(), values.expand(found.shape))
    assert not values.requires_grad
    found.sum().backward()
    assert not any(p.grad.any() for p in optimizer.active_params())
