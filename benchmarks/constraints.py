"""Constrained problems: COCO's bbob-constrained against SciPy's COBYQA, and a portfolio against SLSQP.

``python benchmarks/constraints.py [FUNCTION ...]`` runs bbob-constrained functions in 10 dimensions with
10,000 evaluations, instance 4; a point counts as feasible where no constraint is above 1e-8. COBYQA stops
by itself when its trust region is 1e-8 wide, or after 2,000 evaluations (it takes 5 to 10 ms for each).
"""

import sys
import time
import warnings

import cocoex
import numpy as np
import scipy.optimize

import scgd
from scgd_arena.bbob import minimiser

FUNCTIONS = (2, 5, 9, 16, 21, 28, 33, 40, 45, 52)
BUDGET, COBYQA = 10_000, 2_000


class Best:
    """A problem that remembers the lowest feasible value it has seen."""

    def __init__(self, problem):
        self.problem, self.value = problem, np.inf

    def __call__(self, x):
        """Evaluate, and remember."""
        value = float(self.problem(x))
        if self.problem.constraint(x).max() <= 1e-8:
            self.value = min(self.value, value)
        return value


def cells(functions, instance=4):
    suite = cocoex.Suite(
        "bbob-constrained", "",
        f"dimensions: 10 instance_indices: {instance} function_indices: {','.join(map(str, functions))}",
    )  # fmt: skip
    for problem in suite:
        limit = scipy.optimize.NonlinearConstraint(problem.constraint, -np.inf, 0)
        x0, ours, theirs = np.array(problem.initial_solution), Best(problem), Best(problem)
        begun = time.process_time()
        result = scgd.minimize(ours, x0, constraints=limit, max_evals=BUDGET, seed=0)
        seconds = time.process_time() - begun
        options = {"maxfev": COBYQA, "final_tr_radius": 1e-8}
        rival = scipy.optimize.minimize(
            theirs, x0, method="COBYQA", constraints=[limit], options=options
        )
        lowest = float(problem(minimiser(problem)))
        print(
            f"f{problem.id_function:02d} {problem.number_of_constraints:2d} constraints: scgd "
            f"{ours.value:.10g} (violation {result.maxcv:.1g}, {seconds:.1f} s), COBYQA "
            f"{theirs.value:.10g} ({rival.nfev}); gaps {ours.value - lowest:.2g} and "
            f"{theirs.value - lowest:.2g}",
            flush=True,
        )


def portfolio():
    """CVaR minus twice the mean return of 60 assets on the simplex."""
    rng, n, n_days = np.random.default_rng(0), 60, 2000
    factors, loads = rng.standard_normal((n_days, 5)), rng.standard_normal((5, n)) * 0.3
    mean = rng.normal(0.03, 0.05, n)
    returns = mean * 0.2 + 0.1 * (factors @ loads) + 0.1 * rng.standard_normal((n_days, n))

    def objective(w):
        losses = np.sort(-returns @ w)
        return float(losses[-n_days // 20 :].mean() - 2 * np.mean(returns @ w))

    x0, budget = np.full(n, 1 / n), scipy.optimize.LinearConstraint(np.ones(n), 1, 1)
    keywords = {"bounds": [(0, 1)] * n, "constraints": budget}
    for seed in range(3):
        result = scgd.minimize(objective, x0, max_evals=6000, seed=seed, **keywords)
        print(f"portfolio: {result.fun:.6f}, sum - 1 = {result.x.sum() - 1:.1g}", flush=True)
    rival = scipy.optimize.minimize(
        objective, x0, method="SLSQP", options={"maxiter": 500}, **keywords
    )
    print(f"SLSQP: {rival.fun:.6f} after {rival.nfev} evaluations")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    chosen = [int(word) for word in sys.argv[1:]]
    if not chosen:
        portfolio()
    cells(chosen or FUNCTIONS)
