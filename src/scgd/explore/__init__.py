"""Loops that run many steps without an object per step.

Several bodies for the arithmetic of ``ask`` and ``tell``: for functions written in Python, loops
that poke entries of x, evaluate and put them back (one coordinate, a block of coordinates, or a
joint move), and a compiled loop for functions compiled by numba, which also draws and learns
inside. All work on the optimizer's own buffers, leave it as ``ask`` and ``tell`` would, bit for
bit, and restore x if the function raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core.registry import CPUDispatcher

from scgd.estimators import SPSA, CentralDifference, ForwardDifference
from scgd.explore.blocks import BlockExplorer
from scgd.explore.compiled import CompiledExplorer
from scgd.explore.joint import JointExplorer
from scgd.explore.loop import Loop
from scgd.explore.scout import Scout
from scgd.explore.single import Explorer
from scgd.optimizer import Optimizer
from scgd.policies import LawPolicy

__all__ = ["BlockExplorer", "CompiledExplorer", "Explorer", "JointExplorer", "Scout", "explorer"]


def explorer(opt: Optimizer, fun: Callable[..., Any], args: tuple[Any, ...]) -> Loop | None:
    """Return the fastest loop for the recipe in force; None when only ask and tell will do."""
    recipe = opt.recipe
    if opt.policy.needs_gradient or recipe.average or recipe.adaptive:
        return None
    if isinstance(recipe.estimator, SPSA):
        return JointExplorer(opt, fun, args)
    if not isinstance(recipe.estimator, ForwardDifference | CentralDifference):
        return None
    if opt.sampler.block_size > 1:
        return BlockExplorer(opt, fun, args)
    compiled = (
        isinstance(fun, CPUDispatcher)
        and isinstance(opt.policy, LawPolicy)
        and not callable(opt.sampling.sample)
        and not opt.policy.paced
        and not recipe.step.paced
        and opt.leg_end is None
    )
    return (CompiledExplorer if compiled else Explorer)(opt, fun, args)
