"""The methods of the arena: scgd's own and real packages, each given the same counted function.

A method is a function of (oracle, seed) that returns the point it recommends. The oracle counts
evaluations and raises :class:`Spent` when the budget is used up, so nobody gets more than the
others. Where the sample can be held fixed, methods that know how to use that may.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from scgd import minimize
from scgd.compare.problems import Task
from scgd.compiling import njit
from scgd.typing import Floats, Ints

__all__ = ["METHODS", "Oracle", "Spent", "spsa_adam"]


class Spent(Exception):
    """The budget is used up."""


class Oracle:
    """A task's function for one run: counted, with fresh samples where the task has samples."""

    def __init__(self, task: Task, budget: int, seed: int) -> None:
        self.task, self.budget = task, budget
        self.count = 0
        self.fun = task.make(seed)
        self.rng = np.random.default_rng([seed, 5])

    def rows(self, n: int = 1) -> Ints | None:
        """Draw samples to hold fixed; None where the task has none."""
        return None if self.task.sample is None else self.rng.integers(0, self.task.sample, n)

    def at(self, x: Floats, rows: Ints | None) -> float:
        """Evaluate with given samples (one evaluation each)."""
        n = 1 if rows is None else len(rows)
        if self.count + n > self.budget:
            raise Spent
        self.count += n
        if rows is None:
            return self.fun(x)
        if n == 1:
            return self.fun(x, rows)
        return float(np.mean([self.fun(x, rows[i : i + 1]) for i in range(n)]))

    def __call__(self, x: Any) -> float:
        """Evaluate with a fresh sample."""
        return self.at(np.asarray(x, np.float64), self.rows())


Method = Callable[[Oracle, int], Floats]


def scgd_method(method: str) -> Method:
    """Return a recipe of this library as a method of the arena."""

    def run(oracle: Oracle, seed: int) -> Floats:
        task = oracle.task
        sampled = task.sample is not None

        def fun(x: Floats, *rows: Ints) -> float:
            return oracle.at(x, rows[0] if sampled else None)

        result = minimize(
            fun,
            task.x0,
            method=method,
            sample=task.sample,
            bounds=task.bounds,
            scale=task.scale,
            max_evals=oracle.budget,
            seed=seed,
        )
        return np.asarray(result.x)

    return run


@njit(cache=True)
def adam_step(x, mean, square, signs, slope, rate, beta2, t):  # type: ignore[no-untyped-def]
    """Move along Adam's direction for the gradient slope * signs."""
    correct1, correct2 = 1.0 - 0.9**t, 1.0 - beta2**t
    for k in range(len(x)):
        grad = slope * signs[k]
        mean[k] += 0.1 * (grad - mean[k])
        square[k] += (1.0 - beta2) * (grad * grad - square[k])
        if square[k] > 0.0:
            x[k] -= rate * (mean[k] / correct1) / np.sqrt(square[k] / correct2)


def spsa_adam(oracle: Oracle, seed: int, rate: float, radius: float, beta2: float = 0.99) -> Floats:
    """Run SPSA with common samples, Adam and linear decay."""
    x = oracle.task.x0.copy()
    mean, square = np.zeros_like(x), np.zeros_like(x)
    rng = np.random.default_rng([seed, 9])
    n_steps = oracle.budget // 2
    for t in range(n_steps):
        signs = rng.integers(0, 2, x.size) * 2.0 - 1.0
        rows = oracle.rows()
        change = oracle.at(x + radius * signs, rows) - oracle.at(x - radius * signs, rows)
        decayed = rate * (1 - t / n_steps)
        adam_step(x, mean, square, signs, change / (2 * radius), decayed, beta2, t + 1.0)
    return x


def cma(variant: str) -> Method:
    """Return pycma (``full``, ``sep`` or ``vkd``); samples are shared within a generation."""

    def run(oracle: Oracle, seed: int) -> Floats:
        import cma as pycma

        task = oracle.task
        options = {"seed": seed, "verbose": -9, "maxfevals": oracle.budget, "tolfun": 0}
        options.update(tolx=0, tolflatfitness=10**9, tolstagnation=10**9)
        if variant == "sep":
            options["CMA_diagonal"] = True
        if variant == "vkd":
            from cma.restricted_gaussian_sampler import GaussVkDSampler

            options = GaussVkDSampler.extend_cma_options(options)
        es = pycma.CMAEvolutionStrategy(task.x0, 0.3, options)
        try:
            while True:
                rows = oracle.rows(10)
                points = es.ask()
                es.tell(points, [oracle.at(np.asarray(x), rows) for x in points])
        except Spent:
            return np.asarray(es.mean)

    return run


def nevergrad(name: str) -> Method:
    """Return a Nevergrad optimiser by name."""

    def run(oracle: Oracle, seed: int) -> Floats:
        import nevergrad as ng

        parametrization = ng.p.Array(init=oracle.task.x0)
        parametrization.random_state.seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            optimizer = ng.optimizers.registry[name](parametrization, budget=oracle.budget)
            with contextlib.suppress(Spent):
                for _ in range(oracle.budget):
                    candidate = optimizer.ask()
                    optimizer.tell(candidate, oracle(candidate.value))
            return np.asarray(optimizer.provide_recommendation().value)

    return run


def scipy_method(name: str) -> Method:
    """Return a SciPy minimiser; its best seen point is what it recommends under noise too."""

    def run(oracle: Oracle, seed: int) -> Floats:
        from scipy.optimize import differential_evolution
        from scipy.optimize import minimize as scipy_minimize

        best = [np.inf, oracle.task.x0]

        def fun(x: Floats) -> float:
            value = oracle(x)
            if value < best[0]:
                best[:] = value, np.array(x)
            return value

        x0 = oracle.task.x0
        try:
            if name == "differential evolution":
                box = [(v - 2, v + 2) for v in x0]
                differential_evolution(fun, box, rng=seed, maxiter=10**9, tol=0, x0=x0)
            else:
                big = oracle.budget
                options = {"L-BFGS-B": {"maxfun": big, "maxiter": big}}
                given = options.get(name, {"maxfev": big})
                scipy_minimize(fun, x0, method=name, options=given, tol=1e-14)
        except Spent:
            pass
        return np.asarray(best[1])

    return run


def torchzero(oracle: Oracle, seed: int, rate: float = 0.01) -> Floats:
    """Run torchzero's SPSA with Adam, one sample per step."""
    import torch
    import torchzero as tz

    torch.manual_seed(seed)
    x = torch.tensor(oracle.task.x0, requires_grad=False)
    parameter = torch.nn.Parameter(x)
    modules = (tz.m.SPSA(h=0.1, return_approx_loss=True), tz.m.Adam(), tz.m.LR(rate))
    modular = getattr(tz, "Optimizer", None) or tz.Modular
    optimizer = modular([parameter], *modules)
    current: list[Ints | None] = [None]

    def closure(backward: bool = True) -> Any:
        return torch.tensor(oracle.at(parameter.detach().numpy().copy(), current[0]))

    try:
        while True:
            current[0] = oracle.rows()
            before = parameter.detach().numpy().copy()
            optimizer.step(closure)
    except Spent:
        return before


def optuna(sampler: str) -> Method:
    """Return an Optuna study (``tpe`` or ``cmaes``) over a box around x0."""

    def run(oracle: Oracle, seed: int) -> Floats:
        import optuna as package

        package.logging.set_verbosity(package.logging.ERROR)
        x0 = oracle.task.x0
        samplers = package.samplers
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            chosen = (
                samplers.TPESampler(seed=seed)
                if sampler == "tpe"
                else samplers.CmaEsSampler(seed=seed, sigma0=0.3)
            )
            study = package.create_study(sampler=chosen)

            def objective(trial: Any) -> float:
                names = range(x0.size)
                x = [trial.suggest_float(str(k), x0[k] - 2, x0[k] + 2) for k in names]
                return oracle(np.array(x))

            with contextlib.suppress(Spent):
                study.optimize(objective, n_trials=oracle.budget)
        return np.array([study.best_params[str(k)] for k in range(x0.size)])

    return run


METHODS: dict[str, Method] = {
    "auto": scgd_method("auto"),
    "musketeer": scgd_method("musketeer"),
    "cma": cma("full"),
    "cma-sep": cma("sep"),
    "cma-vkd": cma("vkd"),
    "ngopt": nevergrad("NGOpt"),
    "tbpsa": nevergrad("TBPSA"),
    "ng-noisy": nevergrad("OptimisticNoisyOnePlusOne"),
    "powell": scipy_method("Powell"),
    "l-bfgs-b": scipy_method("L-BFGS-B"),
    "cobyqa": scipy_method("COBYQA"),
    "de": scipy_method("differential evolution"),
    "torchzero": torchzero,
    "optuna-tpe": optuna("tpe"),
    "optuna-cmaes": optuna("cmaes"),
}
