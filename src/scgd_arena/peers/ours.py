"""The methods of this library, as a user calls them."""

from __future__ import annotations

import warnings

import numpy as np

from scgd import minimize
from scgd.typing import Floats, Ints
from scgd_arena.oracle import Method, Oracle

__all__ = ["scgd_method"]


def scgd_method(method: str) -> Method:
    """Return a recipe of this library; its answer is the point it returns, not the best it saw."""

    def run(oracle: Oracle, seed: int) -> Floats:
        task = oracle.task
        sampled = task.sample is not None
        if (space := task.space) is not None:
            found = minimize(
                lambda params: oracle.at(space.encode(params), None), space, method=method,
                max_evals=oracle.budget, seed=seed,
            )  # fmt: skip
            return np.asarray(found.x)

        def fun(x: Floats, *rows: Ints) -> float:
            return oracle.at(x, rows[0] if sampled else None)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            result = minimize(
                fun,
                task.x0,
                method=method,
                sample=task.sample,
                bounds=task.bounds,
                scale=task.scale,
                max_evals=oracle.budget,
                failures="skip",  # as every rival does
                seed=seed,
            )
        return np.asarray(result.x)

    return run
