"""SCGD: the engine, and loops that run many of its steps without an object per step.

A loop works on the engine's own arrays and leaves them as ``ask`` and ``tell`` would, bit for bit:
for functions written in Python, loops that set entries of the buffer, evaluate and put them back
(one coordinate, a block of coordinates, or a joint move); for functions compiled by numba a
compiled loop, which also draws and learns inside. Steps are cut by a flag between them, or by the
user's function, and then the step in hand has not happened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from scgd import compiling
from scgd.descent.engine import CoordinateDescent
from scgd.estimators import SPSA, CentralDifference, ForwardDifference
from scgd.policies import CompiledPolicy

if TYPE_CHECKING:
    from scgd.descent.loop import Loop
    from scgd.run.ledger import Ledger

__all__ = ["CoordinateDescent", "choose_loop"]


def choose_loop(
    engine: CoordinateDescent, fun: Callable[..., Any], args: tuple[Any, ...], ledger: Ledger
) -> Loop | None:
    """Return the fastest loop for an engine; None when only ask and tell will do."""
    from scgd.descent.blocks import BlockLoop
    from scgd.descent.compiled import CompiledLoop
    from scgd.descent.single import SingleLoop

    if ledger.on_nonfinite == "worst":  # which the ledger knows, value by value
        return None
    if engine.n_open or engine.gradient.size:
        return None
    if engine.policy.needs_gradient or engine.method.average:
        return None
    kind = type(engine.method.estimator)
    if kind not in (SPSA, CentralDifference, ForwardDifference):
        return None
    loop: type[Loop] = BlockLoop
    if kind is not SPSA and engine.sampler.block_size == 1:
        loop = CompiledLoop if fully_compiled(engine, fun) else SingleLoop
    return loop(engine, fun, args, ledger)


def fully_compiled(engine: CoordinateDescent, fun: Callable[..., Any]) -> bool:
    """Tell whether the whole loop can run in compiled code."""
    return (
        compiling.is_compiled(fun)
        and isinstance(engine.policy, CompiledPolicy)
        and not callable(engine.samples.sample)
        and engine.sampler.block_size == 1
        and not callable(engine.method.importance)
        and not engine.policy.paced
        and not engine.method.step.paced
    )
