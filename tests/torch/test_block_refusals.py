"""Cuts of models by name, and arguments that make no sense."""

from dataclasses import dataclass
from functools import partial

import pytest
import torch
from block_models import BlockOptimizer, flat, loss_of, stack, train
from torch import nn

from scgd.torch.blocks import BlockMusketeer, BlockPolicy, Cyclic, InverseCost, TopDown


class Nested(nn.Module):
    """Layers below a wrapper, a head of two linear maps, parameters of the root itself."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.bert = nn.Module()
        self.bert.embeddings = nn.Module()
        self.bert.embeddings.word = nn.Embedding(3, 2)
        self.bert.encoder = nn.Module()
        self.bert.encoder.layer = nn.ModuleList(
            nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)) for _ in range(2)
        )
        self.bert.norm = nn.LayerNorm(2)
        self.head = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))


LAYERS = ["bert.encoder.layer.0", "bert.encoder.layer.1"]


@pytest.mark.parametrize(
    ("blocks", "names"),
    [
        ("layer", ["scale", "bert.embeddings", *LAYERS, "bert.norm", "head"]),
        (
            "module",
            ["scale", "bert.embeddings.word"]
            + [f"{layer}.{i}" for layer in LAYERS for i in (0, 1)]
            + ["bert.norm", "head.0", "head.2"],
        ),
        ({"a": "layer.0", "b": "layer.1|norm"}, ["a", "b"]),
        (lambda name: name.split(".")[0] if "head" not in name else None, ["scale", "bert"]),
    ],
)
def test_cuts(blocks, names):
    assert list(BlockOptimizer(Nested(), blocks=blocks, lr=0.1).blocks) == names


def test_layers_inside_a_mapping_and_layers_of_sequences():
    linear = [nn.Linear(2, 2) for _ in range(5)]
    parts = {"wte": nn.Embedding(3, 2), "h": nn.ModuleList(linear[:3]), "ln": nn.LayerNorm(2)}
    model = nn.Module()
    model.transformer = nn.ModuleDict(parts)
    names = [f"transformer.{part}" for part in ("wte", "h.0", "h.1", "h.2", "ln")]
    assert list(BlockOptimizer(model, lr=0.1).blocks) == names
    stages = {"stem": linear[0], "stage": nn.Sequential(*linear[1:3]), "fc": linear[4]}
    stages = nn.ModuleDict(stages)
    assert list(BlockOptimizer(stages, lr=0.1).blocks) == ["stem", "stage.0", "stage.1", "fc"]


def test_tensors():
    model = stack()
    blocks = BlockOptimizer(model, blocks="tensor", lr=0.1).blocks
    assert blocks == {name: [name] for name, _ in model.named_parameters()}


@dataclass(frozen=True)
class Choosing(BlockPolicy):
    """A policy that chooses what it is told."""

    chosen: object

    def choose(self, book, n_active):
        return self.chosen


class Rateless(torch.optim.Optimizer):
    """Steps along the sign, without a rate unless given one."""

    def __init__(self, params, lr=None):
        super().__init__(params, {} if lr is None else {"lr": lr})

    @torch.no_grad()
    def step(self):
        for p in (p for group in self.param_groups for p in group["params"]):
            if p.grad is not None:
                p -= 0.01 * p.grad.sign()


class Matrices(torch.optim.SGD):
    """Takes matrices only, as Muon (which older versions of torch do not have)."""

    def __init__(self, params, **settings):
        super().__init__(params, **settings)
        if any(p.ndim != 2 for group in self.param_groups for p in group["params"]):
            raise ValueError("only matrices")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"blocks": "rows"}, r"blocks must be one of .*'layer'.* got 'rows'"),
        ({"blocks": 3}, "blocks must be a name"),
        ({"blocks": {"a": "nothing"}}, r"blocks\['a'\] = 'nothing' finds no parameter"),
        ({"blocks": {"a": "head", "b": "head.weight"}}, "'head.weight' is in two blocks"),
        ({"period": 0}, "period must be a whole number >= 1, got 0"),
        ({"period": 2.5}, "period must be a whole number"),
        ({"active": 0}, "active must be a whole number >= 1"),
        ({"active": True}, "active must be a whole number >= 1"),
        ({"warmup": -1}, "warmup must be"),
        ({"keep_state": True}, "keep_state must be False or 'cpu', got True"),
        ({"importance": "inverse"}, "importance must be None or 'relative'"),
        ({"seed": -1}, "seed must be"),
        ({"policy": "best"}, "policy must be one of .*'inverse-cost'.* got 'best'"),
        ({"always": ["neck"]}, "always='neck' finds no parameter"),
        ({"never": ["neck"]}, "never='neck' finds no parameter"),
        ({"first": ["neck"]}, "first='neck' finds no block"),
        ({"always": ["("]}, "no regular expression"),
        ({"never": [".*"]}, "no block is left"),
        ({"groups": {"neck": {"lr": 1.0}}}, "groups.'neck'. finds no parameter"),
        ({"cost": {"head": 1.0}}, "cost must map each of the blocks"),
        ({"inner": 3}, "inner must be an optimizer class"),
        ({"inner": torch.optim.LBFGS}, "inner=LBFGS needs a closure"),
        ({"inner": partial(torch.optim.LBFGS)}, "inner=LBFGS needs a closure"),
        ({"inner": lambda groups, lr: torch.optim.LBFGS(groups[0]["params"])}, "needs a closure"),
        ({"inner": lambda groups, lr: groups}, "inner must make a torch optimizer"),
        ({"inner": Matrices}, "only matrices"),
        ({"blocks": {"a": "("}}, r"blocks\['a'\] holds '\(', no regular .* write a backslash"),
        ({"blocks": {"a": 3}}, r"blocks\['a'\] holds 3, no regular expression \(not a string\)"),
        ({"never": ["(?i)head"]}, r"never holds '\(\?i\)head', no regular expression"),
        ({"groups": {"bias": 0.1}}, r"groups\['bias'\] must map .*\{'lr': 0.1\}\}, got 0.1"),
        ({"groups": {"bias": {"lr": -1.0}}}, r"groups\['bias'\] = .*Invalid learning rate: -1.0"),
        ({"groups": {"bias": {"lr": "x"}}}, r"groups\['bias'\] = \{'lr': 'x'\}"),
        ({"inner": Rateless, "lr": None, "warmup": 3}, "warmup=3 multiplies the rate .* give lr="),
        ({"inner": Rateless, "lr": None, "importance": "relative"}, "importance='relative' mult"),
        ({"policy": Choosing([])}, r"Choosing.*one or more .* 0 to 5 .*, got \[\]"),
        ({"policy": Choosing([6])}, r"Choosing.*from 0 to 5 .*book.blocks.*, got \[6\]"),
        ({"policy": Choosing([-1])}, r"from 0 to 5 .*, got \[-1\]"),
        ({"policy": Choosing([1, 1])}, r"different block numbers .*, got \[1, 1\]"),
        ({"policy": Choosing([0.0])}, r"got \[0.0\]"),
        ({"policy": Choosing(3)}, "must return a list .*, got 3"),
        ({"lr": -1.0}, "Invalid learning rate"),
    ],
)
def test_refusals_leave_the_model_alone(settings, message):
    model = stack()
    with pytest.raises((ValueError, TypeError), match=message):
        BlockOptimizer(model, **{"lr": 0.1, **settings})
    assert all(p.requires_grad for p in model.parameters()) and not model._forward_hooks


def test_unknown_settings_of_the_inner_optimizer_are_its_own_to_refuse():
    model = stack()
    with pytest.raises(TypeError, match="momentum"):
        BlockOptimizer(model, torch.optim.AdamW, momentum=0.9)
    assert all(p.requires_grad for p in model.parameters())


def test_costs_must_be_positive():
    model = stack()
    names = list(BlockOptimizer(model, lr=0.1).blocks)
    with pytest.raises(ValueError, match="positive finite"):
        BlockOptimizer(model, lr=0.1, cost=dict.fromkeys(names, 0.0))


def test_parameters_instead_of_a_model():
    with pytest.raises(ValueError, match="give the model and not its parameters"):
        BlockOptimizer(stack().parameters(), lr=0.1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: BlockMusketeer(gain="cube", gain_per="step"),
        lambda: BlockMusketeer(gain_per="minute"),
        lambda: BlockMusketeer(normalization="l2", gain_per="step"),
        lambda: BlockMusketeer(mix=1.5, gain_per="step"),
        lambda: BlockMusketeer(forget=-0.1, gain_per="step"),
        lambda: BlockMusketeer(gain="loss", probe=3, gain_per="step"),
        lambda: InverseCost(coverage=-1),
        lambda: InverseCost(first_period=0),
        lambda: Cyclic("sideways"),
        lambda: TopDown(patience=0),
    ],
)
def test_policies_refuse_what_makes_no_sense(make):
    with pytest.raises(ValueError):
        make()


def test_policies_that_look_at_the_loss_ask_for_it():
    model = stack()
    optimizer = BlockOptimizer(
        model, policy=BlockMusketeer(gain="loss", gain_per="step"), period=1, lr=0.1
    )
    model(torch.zeros(2, 5, dtype=torch.long)).sum().backward()
    before = model.head.weight.clone()
    with pytest.raises(RuntimeError, match=r"optimizer.tell\(loss\)"):
        optimizer.step()
    assert torch.equal(model.head.weight, before)


def test_attach_takes_the_right_wrapper():
    model = stack()
    optimizer = BlockOptimizer(model, lr=0.1)
    with pytest.raises(ValueError, match="DistributedDataParallel around"):
        optimizer.attach(model)


class NullRate(Rateless):
    """An optimizer whose rate is None, as Hugging Face's Adafactor."""

    def __init__(self, params, lr=None):
        torch.optim.Optimizer.__init__(self, params, {"lr": lr})


@pytest.mark.parametrize("inner", [Rateless, NullRate])
def test_inner_optimizers_without_a_rate(inner):
    model = stack()
    optimizer = BlockOptimizer(model, inner, policy="cyclic", period=2)
    before = flat(model)
    train(model, optimizer, 4)
    optimizer.seek(optimizer.position())
    assert not torch.equal(flat(model), before)


@pytest.mark.parametrize("inner", [Matrices, getattr(torch.optim, "Muon", Matrices)])
def test_optimizers_of_matrices_leave_vectors_to_never(inner):
    model = stack()
    optimizer = BlockOptimizer(model, inner, policy="cyclic", never=["bias"], period=1, lr=0.01)
    before = flat(model)
    train(model, optimizer, 6)
    assert len(optimizer.blocks) == 6 and not torch.equal(flat(model), before)


def test_states_made_at_once_are_dropped_after_the_trial():
    model = stack()
    optimizer = BlockOptimizer(model, torch.optim.Adagrad, policy="cyclic", lr=0.01)
    assert not optimizer.state
    train(model, optimizer, 1)
    assert set(optimizer.state) == set(model.head.parameters())


def test_settings_of_groups_for_functions_that_take_no_keywords():
    model = stack()

    def make(groups):
        return torch.optim.SGD(groups, lr=0.1)

    optimizer = BlockOptimizer(model, make, groups={"bias": {"lr": 0.2}})
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.2]


def test_closures_without_a_loss():
    model = stack()
    optimizer = BlockOptimizer(model, policy="cyclic", lr=0.1)
    before = flat(model)
    assert optimizer.step(lambda: loss_of(model, 0).backward()) is None  # as torch's own
    assert not torch.equal(flat(model), before)
    curious = BlockOptimizer(stack(), policy=BlockMusketeer(gain="loss", gain_per="step"), lr=0.1)
    with pytest.raises(RuntimeError, match="give step a closure that returns it"):
        curious.step(lambda: loss_of(curious.model, 0).backward())


@pytest.mark.parametrize("loss", [None, "low", [1.0]])
def test_losses_are_numbers(loss):
    with pytest.raises(TypeError, match=r"loss must be a number or a tensor, got .*backward"):
        BlockOptimizer(stack(), lr=0.1).tell(loss)


@pytest.mark.parametrize("path", ["x", "blocks.txt", 3])
def test_pictures_need_a_suffix(path, tmp_path):
    optimizer = BlockOptimizer(stack(), lr=0.1)
    with pytest.raises(ValueError, match=r"path must end in \.png .*, got"):
        optimizer.picture(path if path == 3 else str(tmp_path / path))
