"""What a saved state must look like before a run takes it up.

Compiled loops do not check indices, so a file from elsewhere is checked here, completely: the same
names, types and shapes as a fresh run's own state, and values that cannot lead outside an array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.checkpoint import CheckpointError
from scgd.optimizer import CHUNK, Optimizer
from scgd.policies.law import Law
from scgd.policies.softmax import HEAVY, SIZE
from scgd.policies.sumtree import refresh
from scgd.result import Status
from scgd.scale import ScaleSearch

__all__ = ["check_state"]

GROWING = {"last_phase", "history/pending", "history/nfev", "history/fun"}
GROWING |= {"search/slopes", "search/bends"}
"""Arrays whose length is not fixed."""
FINITE = ("theta", "slots", "average", "scale", "sampler/coords", "sampler/probs", "sampler/grads")
LARGEST = 2**62


def check_state(state: dict[str, Any], opt: Optimizer) -> None:
    """Raise CheckpointError unless the optimizer can safely take up this state."""
    try:
        check_like(state, expected(state, opt))
        check_generator(state["rows_rng"])
        check_generator(state["direction_rng"])
        check_counters(state, opt)
        check_sampler(state["sampler"], opt)
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise CheckpointError(
            f"the checkpoint does not fit this run ({error}); delete it to start afresh"
        ) from None


def require(fine: Any, what: str) -> None:
    """Raise unless something holds."""
    if not fine:
        raise ValueError(what)


def expected(state: dict[str, Any], opt: Optimizer) -> dict[str, Any]:
    """Return the run's own state, with what comes and goes during a run as the file has it."""
    mine = opt.state_dict()
    rows = isinstance(opt.sampling.sample, int) and state["chunk_start"] != -1
    mine["rows"] = np.zeros((CHUNK, opt.sampling.batch_size), np.int64) if rows else None
    for name, value in (
        ("scouted", np.zeros(opt.n_coords)),
        ("max_evals", 1),
        ("search", ScaleSearch(opt.n_coords).state_dict()),
    ):
        mine[name] = None if state[name] is None else value
    return mine


def check_like(found: Any, mine: Any, path: str = "") -> None:
    """Compare names, types and shapes."""
    if isinstance(mine, dict):
        require(isinstance(found, dict) and found.keys() == mine.keys(), f"{path or 'state'} names")
        for name, value in mine.items():
            check_like(found[name], value, f"{path}/{name}".lstrip("/"))
    elif isinstance(mine, np.ndarray):
        require(isinstance(found, np.ndarray), f"{path} is not an array")
        require(found.dtype == mine.dtype, f"{path} is of type {found.dtype}")
        same = found.ndim == 1 if path in GROWING else found.shape == mine.shape
        require(same, f"{path} has shape {found.shape}")
        require(path not in FINITE or np.all(np.isfinite(found)), f"{path} is not finite")
    elif isinstance(mine, float):
        require(type(found) in (float, int), f"{path} is {found!r}")
    else:
        require(type(found) is type(mine), f"{path} is {found!r}")
        if isinstance(mine, int):
            require(-1 <= found <= LARGEST or "_rng" in path, f"{path} is {found}")


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
    require(start == -1 or start % CHUNK == 0, f"chunk_start is {start}")
    require(start == -1 or start <= t <= start + CHUNK, f"step {t} is not in its chunk")
    require(state["max_evals"] is None or state["max_evals"] >= 1, "max_evals is not positive")
    require(state["status"] in list(Status), f"status is {state['status']}")
    require(np.all(state["scale"] > 0), "scale is not positive")
    require(state["entropy"].isdecimal(), "entropy is not a number")
    if state["rows"] is not None:
        n = opt.sampling.sample
        require(np.all((state["rows"] >= 0) & (state["rows"] < n)), "rows are out of range")
    history = state["history"]
    require(len(history["nfev"]) == len(history["fun"]) <= opt.history.capacity, "history length")
    require(1 <= history["stride"] and len(history["pending"]) < history["stride"], "stride")
    if state["search"] is not None:
        require(0 < state["search"]["h"] < np.inf, "search/h is not positive")
        require(0 <= state["search"]["n_asked"] < ScaleSearch.cost, "search/n_asked")


def check_sampler(state: dict[str, Any], opt: Optimizer) -> None:
    """Check the phase in progress and the law it was drawn from."""
    sampler = opt.sampler
    position = state["position"]
    require(0 <= position < sampler.n_draws, f"position is {position}")
    require(position % sampler.block_size == 0, f"position is {position}")
    require(state["n_phases"] >= 0, f"n_phases is {state['n_phases']}")
    coords, probs = state["coords"], state["probs"]
    require(np.all((coords >= 0) & (coords < opt.n_coords)), "coords are out of range")
    require(np.all((probs > 0) & (probs <= 1)), "probs are not probabilities")
    require(np.any(state["stream"] != 0), "stream is zero")
    if isinstance(sampler.state, Law):
        check_law(state["law"], sampler.state, opt.n_coords)


def check_law(found: dict[str, Any], mine: Any, n_coords: int) -> None:
    """Check that no draw from this law can leave the range of coordinates."""
    require(np.array_equal(found["codes"], mine.codes), "the law is of another kind")
    require(np.array_equal(found["levels"], mine.levels), "the tree has another shape")
    require(found["params"][0] == mine.params[0], "the law has another sharpness")
    require(0 <= found["params"][1] <= 1, "the mixing is not a share")
    require(np.all(found["counts"] >= 0), "the law counts below zero")
    for name in ("sums", "extra", "tree"):
        require(np.all(np.isfinite(found[name])), f"the law's {name} are not finite")
    tree = found["tree"]
    padding = tree[n_coords : mine.levels[1]] if len(tree) > n_coords else tree[:0]
    require(np.all(tree >= 0) and not np.any(padding), "the tree has weights out of place")
    again = tree.copy()
    refresh(again, mine.levels)
    require(np.allclose(again, tree, rtol=1e-9, atol=0.0), "the tree does not add up")
    heavy = found["heavy"]
    if len(heavy):
        require(0 <= heavy[SIZE] <= len(heavy) - HEAVY, "the heavy set has no room")
        members = heavy[HEAVY : HEAVY + heavy[SIZE]]
        require(np.all((members >= 0) & (members < n_coords)), "heavy members are out of range")
