"""What a saved state must look like for a run to take it up.

Compiled loops do not check indices, so a file from elsewhere is checked here: what the optimizer
holds afterwards must be what the file says, and no value may lead outside an array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.checkpoint import CheckpointError
from scgd.course import CHUNK
from scgd.optimizer import MONITOR, Optimizer
from scgd.result import WINDOW, Status

__all__ = ["restore"]

LARGEST = 2**62


def restore(opt: Optimizer, state: dict[str, Any]) -> None:
    """Have the optimizer take up a state, or raise CheckpointError and leave it unusable."""
    try:
        opt.load_state_dict(state)
        check_same(opt.state_dict(), state)
        check_generator(state["rows_rng"])
        check_generator(state["direction_rng"])
        check_counters(state, opt)
    except Exception as error:  # a state from elsewhere can make its readers raise anything
        raise CheckpointError(
            f"the checkpoint does not fit this run ({type(error).__name__}: {error}); delete it to "
            "start afresh"
        ) from None


def require(fine: Any, what: str) -> None:
    """Raise unless something holds."""
    if not fine:
        raise ValueError(what)


def check_same(mine: Any, found: Any, path: str = "") -> None:
    """Check that what was taken up is what was saved: names, types, shapes and values."""
    if isinstance(mine, dict):
        require(isinstance(found, dict) and found.keys() == mine.keys(), f"{path or 'state'} names")
        for name, value in mine.items():
            check_same(value, found[name], f"{path}/{name}".lstrip("/"))
    elif isinstance(mine, np.ndarray):
        require(isinstance(found, np.ndarray), f"{path} is not an array")
        require(found.dtype == mine.dtype, f"{path} is of type {found.dtype}")
        nan = mine.dtype.kind == "f"
        require(np.array_equal(mine, found, equal_nan=nan), f"{path} has shape {found.shape}")
    else:
        require(isinstance(found, type(mine)), f"{path} is {found!r}")
        require(found == mine or found != found, f"{path} is {found!r}")
        if isinstance(mine, int) and "_rng" not in path:
            require(-1 <= found <= LARGEST, f"{path} is {found}")


def check_generator(state: dict[str, Any]) -> None:
    """Check the state of a PCG64 generator, which wraps what is too large."""
    require(state["bit_generator"] == "PCG64", "a generator is of another kind")
    require(all(0 <= word < 2**128 for word in state["state"].values()), "a generator's state")
    require(state["has_uint32"] in (0, 1) and 0 <= state["uinteger"] < 2**32, "a generator's rest")


def check_counters(state: dict[str, Any], opt: Optimizer) -> None:
    """Check what counts and indexes the steps."""
    t, start = state["t"], state["chunk_start"]
    for name in ("t", "nfev", "n_skipped", "leg_start", "reserve"):
        require(state[name] >= 0, f"{name} is {state[name]}")
    require(state["reserve"] <= MONITOR, f"reserve is {state['reserve']}")
    require(start == -1 or start % CHUNK == 0, f"chunk_start is {start}")
    require(start == -1 or start <= t <= start + CHUNK, f"step {t} is not in its chunk")
    require(state["max_evals"] is None or state["max_evals"] >= 1, "max_evals is not positive")
    require(state["status"] in list(Status), f"status is {state['status']}")
    require(np.all(state["scale"] > 0), "scale is not positive")
    require(state["entropy"].isdecimal(), "entropy is not a number")
    n = opt.sampling.sample
    require((state["rows"] is None) == (start == -1 or not isinstance(n, int)), "rows are odd")
    if isinstance(n, int) and start != -1:
        require(state["rows"].shape == (CHUNK, opt.sampling.batch_size), "rows have another shape")
        require(np.all((state["rows"] >= 0) & (state["rows"] < n)), "rows are out of range")
    history = state["history"]
    require(len(history["recent"]) <= WINDOW, "history length")
    require(len(history["nfev"]) == len(history["fun"]) <= opt.history.capacity, "history length")
    require(1 <= history["stride"] and len(history["pending"]) < history["stride"], "stride")
    for name in ("theta", "slots", "average", "scale"):
        require(np.all(np.isfinite(state[name])), f"{name} is not finite")
