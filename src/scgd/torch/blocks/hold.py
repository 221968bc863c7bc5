"""Freezing parameters so that later optimizers know which of them the user had not frozen.

The mark is an attribute of the module that owns the parameter, so it travels with copies and files
of the model or of its parts, as the frozen parameters themselves do.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

MARK = "_scgd_held"


def owned(model: nn.Module) -> Iterator[tuple[nn.Module, str, Tensor]]:
    """Iterate over modules and the parameters of their own; a tied tensor comes several times."""
    for module in model.modules():
        for name, p in module.named_parameters(recurse=False, remove_duplicate=False):
            yield module, name, p


def held(model: nn.Module) -> set[Tensor]:
    """Return the parameters that a block optimizer, of this model or of the original, has frozen.

    >>> import copy
    >>> model = nn.Linear(2, 1)
    >>> hold(model, {model.bias})
    >>> twin = copy.deepcopy(model)
    >>> held(twin) == {twin.bias}
    True
    """
    return {p for module, name, p in owned(model) if name in module.__dict__.get(MARK, ())}


def hold(model: nn.Module, params: set[Tensor]) -> None:
    """Freeze parameters, and remember that the user had not."""
    for module, name, p in owned(model):
        if p in params:
            p.requires_grad_(False)
            module.__dict__[MARK] = {*module.__dict__.get(MARK, ()), name}


def forget(model: nn.Module, params: set[Tensor]) -> None:
    """Note that the user wants these parameters frozen."""
    for module, name, p in owned(model):
        if p in params and name in module.__dict__.get(MARK, ()):
            module.__dict__[MARK] = module.__dict__[MARK] - {name}


def give_back(model: nn.Module) -> None:
    """Let all parameters that are held require gradients again."""
    for p in held(model):
        p.requires_grad_(True)
    for module in model.modules():
        module.__dict__.pop(MARK, None)
