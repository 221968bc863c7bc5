"""Cuts of models by name, and arguments that make no sense."""

import pytest
import torch
from block_models import stack
from torch import nn

from scgd.torch import BlockOptimizer
from scgd.torch.blocks import BlockMusketeer, Cyclic, InverseCost, TopDown


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
        ({"inner": torch.optim.LBFGS}, "needs a closure"),
        ({"lr": -1.0}, "Invalid learning rate"),
    ],
)
def test_refusals_leave_the_model_alone(settings, message):
    model = stack()
    with pytest.raises(ValueError, match=message):
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
        lambda: BlockMusketeer(gain="cube"),
        lambda: BlockMusketeer(gain_per="minute"),
        lambda: BlockMusketeer(normalization="l2"),
        lambda: BlockMusketeer(mix=1.5),
        lambda: BlockMusketeer(forget=-0.1),
        lambda: BlockMusketeer(gain="loss", probe=3),
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
    optimizer = BlockOptimizer(model, policy="blockllm", period=1, lr=0.1)
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
