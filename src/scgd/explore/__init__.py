"""Bodies: loops that run many steps of a search without an object per step.

A body works on the search's own arrays and leaves them as ``ask`` and ``tell`` would, bit for bit:
for functions written in Python, loops that poke entries of the buffer, evaluate and put them back
(one coordinate, a block of coordinates, or a joint move), and one that tells a story the values of
its points; for functions compiled by numba a compiled loop, which also draws and learns inside.
Steps are cut by a flag between them, or by the user's function, and then the step in hand has not
happened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core.registry import CPUDispatcher

from scgd.estimators import SPSA, CentralDifference, ForwardDifference
from scgd.explore.blocks import BlockBody
from scgd.explore.compiled import CompiledBody
from scgd.explore.joint import JointBody
from scgd.explore.loop import Loop
from scgd.explore.single import SingleBody
from scgd.explore.told import ToldBody, story_of
from scgd.policies import LawPolicy
from scgd.run.ledger import Ledger
from scgd.searches import Search, Stepping
from scgd.searches.base import Body

__all__ = ["BODIES", "BlockBody", "CompiledBody", "JointBody", "SingleBody", "ToldBody", "choose"]


def choose(
    search: Search,
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    ledger: Ledger,
    *,
    sampled: bool = False,
) -> Body | None:
    """Return the fastest body for a search; None when only ask and tell will do."""
    if ledger.on_nonfinite == "worst":  # which the ledger knows, value by value
        return None
    if (story := story_of(search)) is not None:
        return None if sampled or story.n_open else ToldBody(search, story, fun, args, ledger)
    if not isinstance(search, Stepping) or search.n_open or search.gradient.size:
        return None
    if search.policy.needs_gradient or search.recipe.average:
        return None
    block = search.sampler.block_size > 1
    kind = type(search.recipe.estimator)
    body = BODIES.get((kind, block, is_compiled(search, fun))) or BODIES.get((kind, block, False))
    return None if body is None else body(search, fun, args, ledger)


def is_compiled(search: Stepping, fun: Callable[..., Any]) -> bool:
    """Tell whether the whole loop can run in compiled code."""
    return (
        isinstance(fun, CPUDispatcher)
        and isinstance(search.policy, LawPolicy)
        and not callable(search.samples.sample)
        and search.sampler.block_size == 1
        and not callable(search.recipe.importance)
        and not search.policy.paced
        and not search.recipe.step.paced
    )


BODIES: dict[tuple[type, bool, bool], type[Loop]] = {
    (ForwardDifference, False, False): SingleBody,
    (ForwardDifference, False, True): CompiledBody,
    (ForwardDifference, True, False): BlockBody,
    (CentralDifference, False, False): SingleBody,
    (CentralDifference, False, True): CompiledBody,
    (CentralDifference, True, False): BlockBody,
    (SPSA, False, False): JointBody,
    (SPSA, True, False): JointBody,
}
"""Bodies by estimator, whether a step has several coordinates, and whether fun is compiled."""
