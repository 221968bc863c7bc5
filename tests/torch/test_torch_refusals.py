"""Settings that make no sense are refused, and leave the optimizer as it was."""

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from scgd.torch import SCGD, ZeroOrderSCGD  # noqa: E402

BAD = [
    ({"lr": -1.0}, "lr must be"),
    ({"lr": float("nan")}, "lr must be"),
    ({"policy": "nonsense"}, "policy must be an object or one of"),
    ({"policy": "gauss-southwell"}, "needs the whole gradient"),
    ({"importance": "twice"}, "importance must be None, 'inverse'"),
    ({"importance": [1.0, 2.0]}, "importance must be None, 'inverse'"),
    ({"block_size": 0}, "block_size must be a whole number"),
    ({"granularity": "columns"}, "granularity must be one of"),
    ({"rule": "lion"}, "rule must be one of"),
    ({"weight_decay": -0.1}, "weight_decay must be finite and not negative"),
    ({"momentum": 1.0}, r"momentum must lie in \[0, 1\)"),
    ({"nesterov": True}, "nesterov needs a positive momentum"),
    ({"nesterov": True, "momentum": 0.9, "dampening": 0.1}, "nesterov needs dampening=0"),
    ({"dampening": 1.5}, r"dampening must lie in \[0, 1\)"),
    ({"amsgrad": True}, "amsgrad needs rule='adam'"),
    ({"betas": (0.9,)}, "betas must be two numbers"),
    ({"betas": 0.9}, "betas must be two numbers"),
    ({"policy": "recent-gains"}, "needs to know how much of a budget"),
    ({"betas": (0.9, 1.0)}, r"betas must lie in \[0, 1\)"),
    ({"eps": -1e-8}, "eps must be finite and not negative"),
]
BAD_FIRST = [
    ({"lr": None}, "lr must be"),
    ({"half_life": 0.0}, "half_life must be positive"),
    ({"fused": True, "momentum": 0.9}, "fused=True needs plain SGD"),
    ({"block_size": 4}, "block_size must be at most the 3"),
    ({"fraction": 0.0}, "fraction must lie in"),
    ({"fraction": "a"}, "fraction must lie in"),
    ({"granularity": None}, "granularity must be one of"),
    ({"fraction": 1.5}, "fraction must lie in"),
    ({"sampling": "magic"}, "sampling must be one of"),
    ({"sampling": "poisson", "granularity": "rows"}, "sampling must be one of"),
    ({"policy": "full"}, "plain torch.optim.SGD"),
]
BAD_ZEROTH = [
    ({"radius": 0.0}, "radius must lie in"),
    ({"radius": 1e-300}, "radius must lie in"),
    ({"radius": float("inf")}, "radius must lie in"),
    ({"radius": "a"}, "radius must lie in"),
    ({"estimator": "first-order"}, "estimator must be an object or one of"),
    ({"policy": "full", "estimator": "forward"}, "needs a direction"),
    ({"policy": "full"}, "draws layers with policy"),
    ({"rule": "adam"}, "finds its own rates"),
    ({"importance": "inverse"}, "needs importance=None"),
    ({"block_size": 4, "estimator": "forward"}, "block_size must be at most the 3"),
    ({"estimator": "spsa", "rule": "adam"}, "keeps no moments but a momentum"),
    ({"estimator": "sparse-mezo", "policy": "uniform"}, "needs the full policy"),
]


@pytest.mark.parametrize(
    ("make", "settings", "words"),
    [(kind, *row) for kind in (SCGD, ZeroOrderSCGD) for row in BAD]
    + [(SCGD, *row) for row in BAD_FIRST]
    + [(ZeroOrderSCGD, *row) for row in BAD_ZEROTH],
)
def test_bad_settings_are_refused(make, settings, words):
    p = nn.Parameter(torch.ones(3))
    with pytest.raises((TypeError, ValueError), match=words):
        make([p], **{"lr": 0.1, **settings})
    optimizer = make([nn.Parameter(torch.ones(3))], 0.1)
    with pytest.raises((TypeError, ValueError), match=words):
        optimizer.add_param_group({"params": [p], **settings})
    assert len(optimizer.param_groups) == len(optimizer.samplers) == 1


@pytest.mark.parametrize("make", [SCGD, ZeroOrderSCGD])
@pytest.mark.parametrize("name", ["capturable", "differentiable"])
def test_keywords_of_torch_are_accepted_where_they_ask_for_nothing(make, name):
    make([nn.Parameter(torch.ones(3))], 0.1, **{name: False})
    with pytest.raises(ValueError, match=f"does not take {name}=True: .*; leave {name} out"):
        make([nn.Parameter(torch.ones(3))], 0.1, **{name: True})


@pytest.mark.parametrize("make", [SCGD, ZeroOrderSCGD])
def test_nothing_to_train_is_refused(make):
    with pytest.raises(ValueError, match="empty parameter list"):
        make([], 0.1)
    frozen = nn.Parameter(torch.ones(3), requires_grad=False)
    with pytest.raises(ValueError, match="no parameter requires a gradient"):
        make([frozen], 0.1)
    with pytest.raises(ValueError, match="no coordinates to move"):
        make([nn.Parameter(torch.empty(0))], 0.1)


def test_flags_are_true_or_false_and_those_of_torch_may_be_none():
    p = torch.nn.Parameter(torch.ones(3))
    SCGD([p], 0.1, fused=None)
    for name, value in (("maximize", None), ("fused", "yes")):
        with pytest.raises(TypeError, match=f"{name} must be True or False"):
            SCGD([p], 0.1, **{name: value})
