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
from scgd.policies import recent
from scgd.policies.law import BOUNDED, KIND, RECENT, Law
from scgd.policies.softmax import (
    FIRST,
    HEAVY,
    INCREMENTS,
    LAST,
    LIGHT,
    NORMALISER,
    SHIFT,
    SIZE,
    X,
)
from scgd.policies.sumtree import refresh
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
        check_sampler(state["sampler"], opt)
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


def check_sampler(state: dict[str, Any], opt: Optimizer) -> None:
    """Check the phase in progress and the law it was drawn from."""
    sampler = opt.sampler
    position = state["position"]
    require(0 <= position < sampler.n_draws, f"position is {position}")
    require(position % sampler.block_size == 0, f"position is {position}")
    require(state["n_phases"] >= 0, f"n_phases is {state['n_phases']}")
    coords, probs = state["coords"], state["probs"]
    require(np.all(np.isfinite(state["grads"])), "grads are not finite")
    require(np.all((coords >= 0) & (coords < opt.n_coords)), "coords are out of range")
    require(np.all((probs > 0) & (probs <= 1)), "probs are not probabilities")
    require(np.any(state["stream"] != 0), "stream is zero")
    if isinstance(sampler.state, Law):
        check_law(state["law"], sampler.policy.init(opt.n_coords, sampler.replace), opt.n_coords)


def check_law(found: dict[str, Any], mine: Any, n_coords: int) -> None:
    """Check against a fresh law that no draw from this one can leave the range of coordinates."""
    require(np.array_equal(found["codes"], mine.codes), "the law is of another kind")
    require(np.array_equal(found["levels"], mine.levels), "the tree has another shape")
    if found["codes"][KIND] == RECENT:
        check_sweep(found["heavy"], n_coords)
    else:
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
    if found["codes"][KIND] == BOUNDED:
        check_softmax(found, n_coords)


def check_softmax(law: dict[str, Any], n_coords: int) -> None:
    """Check what an exact softmax law keeps beside its sums: draws are rejected by its bounds."""
    state, heavy, sums = law["extra"], law["heavy"], law["sums"]
    x, first, last, shift = state[X], state[FIRST], state[LAST], state[SHIFT]
    require(0 <= last <= x <= first, "the softmax has left its interval")
    require(0 <= heavy[SIZE] <= len(heavy) - HEAVY, "the heavy set has no room")
    members = heavy[HEAVY : HEAVY + heavy[SIZE]]
    light = np.abs(sums) * (first - last) <= LIGHT
    require(np.array_equal(np.sort(members), np.flatnonzero(~light)), "the heavy set")
    ends = np.where(light, np.where(sums >= 0, first, last), x)
    with np.errstate(over="ignore"):
        bounds, shares = np.exp(sums * ends - shift), np.exp(sums * x - shift)
    require(np.allclose(law["tree"][:n_coords], bounds, rtol=1e-9, atol=0.0), "the bounds")
    require(np.isclose(state[NORMALISER], shares.sum(), rtol=1e-6), "the normaliser")
    require(not np.any(state[INCREMENTS:]), "moments of a phase in progress")


def check_sweep(order: Any, n_coords: int) -> None:
    """Check the order in which a law of recent gradients takes its first pass."""
    require(order[recent.NEXT] >= 0 and order[recent.SHUFFLED] in (0, 1), "the sweep's place")
    everyone = np.sort(order[recent.ORDER :])
    require(np.array_equal(everyone, np.arange(n_coords)), "the sweep's order")
