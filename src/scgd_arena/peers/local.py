"""Local searches of SciPy, NLopt and Py-BOBYQA, started again when they are done."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable

import numpy as np

from scgd.typing import Floats
from scgd_arena.oracle import Method, Oracle, Spent
from scgd_arena.peers.population import inside

__all__ = ["bobyqa", "evolution", "newuoa", "restarted", "scipy_search"]

Search = Callable[[Oracle, Floats, int], Floats]


def restarted(search: Search) -> Method:
    """Return a method that starts a search again, from random points of the peers' box.

    Where f repeats, the best point seen is its answer; under noise, the search's own one with the
    smallest mean of three further values, which are paid for.
    """

    def run(oracle: Oracle, seed: int) -> Floats:
        rng = np.random.default_rng([seed, 41])
        x, answer, lowest = oracle.task.x0, oracle.task.x0, np.inf
        with contextlib.suppress(Spent), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            while True:
                before = oracle.count
                found = stopped(search, oracle, x, seed)
                if oracle.task.repeats or lowest == np.inf:
                    answer = found
                if oracle.count == before:
                    break
                if not oracle.task.repeats:
                    value = float(np.mean([oracle(found) for _ in range(3)]))
                    answer, lowest = (found, value) if value < lowest else (answer, lowest)
                x = inside(oracle, rng)
        return oracle.answer(answer)

    return run


def stopped(search: Search, oracle: Oracle, x: Floats, seed: int) -> Floats:
    """Run one search; when the budget ends it, its best observed point is what it found."""
    oracle.best = oracle.best if oracle.task.repeats else (np.inf, x)
    try:
        return search(oracle, x, seed)
    except Spent:
        return oracle.best[1]


def scipy_search(name: str) -> Search:
    """Return a minimiser of SciPy with its default settings but a budget, and the task's bounds."""
    limits = {"L-BFGS-B": ("maxfun", "maxiter"), "Powell": ("maxfev",), "COBYQA": ("maxfev",),
              "Nelder-Mead": ("maxfev", "maxiter")}  # fmt: skip

    def search(oracle: Oracle, x: Floats, seed: int) -> Floats:
        from scipy.optimize import minimize

        options: dict[str, float] = dict.fromkeys(limits[name], oracle.budget)
        if name == "COBYQA":
            options["initial_tr_radius"] = 0.1 * oracle.task.width
        tight = 1e-12 if name in ("L-BFGS-B", "Nelder-Mead") and oracle.task.repeats else None
        found = minimize(
            oracle, x, method=name, options=options, tol=tight, bounds=oracle.task.bounds
        )
        return np.asarray(found.x)

    return search


def newuoa(oracle: Oracle, x: Floats, seed: int) -> Floats:
    """Run NLopt's NEWUOA, or BOBYQA where there are bounds; the first radius is .1 of the width."""
    import nlopt

    bounds = oracle.task.bounds
    search = nlopt.opt(nlopt.LN_NEWUOA if bounds is None else nlopt.LN_BOBYQA, x.size)
    if bounds is not None:
        search.set_lower_bounds([low for low, _ in bounds])
        search.set_upper_bounds([high for _, high in bounds])
    search.set_min_objective(lambda point, slope: oracle(point.copy()))
    search.set_initial_step(0.1 * oracle.task.width)
    search.set_xtol_rel(1e-12 if oracle.task.repeats else 1e-3)
    search.set_maxeval(oracle.budget)
    try:
        return np.asarray(search.optimize(x))
    except (nlopt.RoundoffLimited, RuntimeError):
        return oracle.best[1]


def bobyqa(oracle: Oracle, x: Floats, seed: int) -> Floats:
    """Run Py-BOBYQA; under noise with the settings its authors advise."""
    import pybobyqa

    found = pybobyqa.solve(
        oracle,
        x,
        rhobeg=0.1 * oracle.task.width,
        bounds=None if oracle.task.bounds is None else tuple(np.transpose(oracle.task.bounds)),
        maxfun=max(oracle.budget - oracle.count, 2 * x.size + 2),
        objfun_has_noise=not oracle.task.repeats,
        do_logging=False,
    )
    return np.asarray(found.x if found.x is not None else x)


def evolution(oracle: Oracle, x: Floats, seed: int) -> Floats:
    """Run SciPy's differential evolution in the peers' box."""
    from scipy.optimize import differential_evolution

    low, high = oracle.task.box
    box = list(zip(np.minimum(low, x), np.maximum(high, x), strict=True))
    return np.asarray(differential_evolution(oracle, box, rng=seed, maxiter=10**9, tol=0, x0=x).x)
