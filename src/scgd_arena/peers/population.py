"""Populations: pycma in its variants, with restarts; augmented random search; random search."""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.typing import Floats
from scgd_arena.oracle import Method, Oracle, Spent

__all__ = ["ars", "cma", "cma_integers", "random_search"]

NEVER = {"tolfun": 0, "tolx": 0, "tolflatfitness": 10**9, "tolstagnation": 10**9}


def inside(oracle: Oracle, rng: np.random.Generator, share: float = 0.8) -> Floats:
    """Return a random point of the inner part of the peers' box."""
    low, high = oracle.task.box
    return 0.5 * (low + high) + 0.5 * share * (high - low) * rng.uniform(-1, 1, low.size)


def cma(variant: str, sigma: float = 0.2, handler: bool = False) -> Method:
    """Return pycma: ``full``, ``sep`` or ``vkd``, first step ``sigma`` times the box's width.

    Where f repeats it restarts with twice the population from a random point and the best seen is
    its answer; under noise it goes on to the end, and its mean is. Samples are shared within a
    generation. With ``handler`` its noise handler sets the number of repeats.
    """

    def run(oracle: Oracle, seed: int) -> Floats:
        rng = np.random.default_rng([seed, 31])
        mean, popsize = oracle.task.x0, None
        try:
            while True:
                es = strategy(oracle, variant, sigma, mean, popsize, int(rng.integers(1, 2**31)))
                generations(es, oracle, handler)
                mean, popsize = inside(oracle, rng), 2 * es.popsize
        except Spent:
            return oracle.answer(np.asarray(es.mean))

    return run


def cma_integers(oracle: Oracle, seed: int) -> Floats:
    """Run pycma with its own handling of integers: levels are whole numbers, told as such."""
    import cma as pycma

    assert oracle.task.space is not None
    grid = oracle.task.space.grid
    whole = grid.discrete & ~grid.logarithmic
    sizes = np.where(whole, grid.n_levels, 1.0)
    shift = np.where(whole, 0.5, 0.0)  # the first level lies at zero
    rng, popsize = np.random.default_rng([seed, 34]), None
    mean = oracle.task.x0 * sizes - shift
    try:
        while True:
            options: dict[str, Any] = {
                "seed": int(rng.integers(1, 2**31)), "verbose": -9, "verb_log": 0,
                "bounds": [(-shift).tolist(), (sizes - shift).tolist()], "CMA_stds": sizes,
                "integer_variables": np.flatnonzero(whole).tolist(),
            }  # fmt: skip
            options |= {} if popsize is None else {"popsize": popsize}
            es = pycma.CMAEvolutionStrategy(mean, 0.2, options)
            while not es.stop():
                points = es.ask()
                places = [np.clip((np.asarray(y) + shift) / sizes, 0.0, 1.0) for y in points]
                es.tell(points, [oracle.at(x, None) for x in places])
            mean, popsize = inside(oracle, rng) * sizes - shift, 2 * es.popsize
    except Spent:
        return oracle.answer(oracle.task.x0)


def strategy(
    oracle: Oracle, variant: str, sigma: float, mean: Floats, popsize: int | None, seed: int
) -> Any:
    """Return pycma's strategy; it stops by itself only where a restart can help."""
    import cma as pycma

    options: dict[str, Any] = {"seed": seed, "verbose": -9, "verb_log": 0}
    options |= {} if oracle.task.repeats else NEVER
    if popsize is not None:
        options["popsize"] = popsize
    if oracle.task.space is not None:
        options["bounds"] = [0.0, 1.0]
    if oracle.task.bounds is not None:
        options["bounds"] = np.transpose(oracle.task.bounds).tolist()
    if variant == "sep":
        options["CMA_diagonal"] = True
    if variant == "vkd":
        from cma.restricted_gaussian_sampler import GaussVkDSampler

        options = GaussVkDSampler.extend_cma_options(options)
    return pycma.CMAEvolutionStrategy(mean, sigma * oracle.task.width, options)


def generations(es: Any, oracle: Oracle, handler: bool) -> None:
    """Run generations until the strategy stops."""
    import cma as pycma

    noise = pycma.NoiseHandler(oracle.task.x0.size, [1, 1, 30]) if handler else None
    while not es.stop():
        rows = oracle.rows(10)
        points = es.ask()
        values = [oracle.at(np.asarray(x), rows) for x in points]
        es.tell(points, values)
        if noise is not None:
            es.sigma *= noise(points, values, oracle, es.ask)


def random_search(oracle: Oracle, seed: int) -> Floats:
    """Draw uniformly in the peers' box; the start is one of the points."""
    rng, (low, high) = np.random.default_rng([seed, 32]), oracle.task.box
    best, lowest = oracle.task.x0, np.inf
    point = oracle.task.x0
    try:
        while True:
            value = oracle(point)
            if value < lowest:
                best, lowest = point, value
            point = rng.uniform(low, high)
    except Spent:
        return best


def ars(
    oracle: Oracle, seed: int, step: float = 0.05, radius: float = 0.1, n: int = 8, top: int = 4
) -> Floats:
    """Run augmented random search (Mania, Guy and Recht, 2018; version 1 with top directions)."""
    rng, x = np.random.default_rng([seed, 33]), oracle.task.x0.copy()
    try:
        while True:
            moves = rng.standard_normal((n, x.size))
            pairs = np.array([[oracle(x + s * radius * move) for s in (1, -1)] for move in moves])
            chosen = np.argsort(pairs.min(axis=1))[:top]
            spread = float(pairs[chosen].std()) or 1.0
            slopes = pairs[chosen, 0] - pairs[chosen, 1]
            x -= step / (top * spread) * slopes @ moves[chosen]
    except Spent:
        return oracle.answer(x)
