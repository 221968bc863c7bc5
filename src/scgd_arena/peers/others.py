"""Nevergrad, Optuna and torchzero."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import numpy as np

from scgd.spaces import Choice, Int, Space
from scgd.typing import Floats, Ints
from scgd_arena.oracle import Method, Oracle, Spent

__all__ = ["nevergrad", "optuna", "torchzero"]


def nevergrad(name: str) -> Method:
    """Return a Nevergrad optimiser by name; it moves by a fifth of the box's width at first."""

    def run(oracle: Oracle, seed: int) -> Floats:
        import nevergrad as ng

        start = ng.p.Array(init=oracle.task.x0).set_mutation(sigma=0.2 * oracle.task.width)
        start.random_state.seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            optimizer = ng.optimizers.registry[name](start, budget=oracle.budget)
            with contextlib.suppress(Spent):
                for _ in range(oracle.budget):
                    candidate = optimizer.ask()
                    optimizer.tell(candidate, oracle(candidate.value))
            return oracle.answer(optimizer.provide_recommendation().value)

    return run


def optuna(sampler: str) -> Method:
    """Return an Optuna study (``tpe``, ``gp``, ``cmaes``) over the box; x0 is its first trial."""

    def run(oracle: Oracle, seed: int) -> Floats:
        import optuna as package

        package.logging.set_verbosity(package.logging.ERROR)
        x0, (low, high) = oracle.task.x0, oracle.task.box
        names = [str(k) for k in range(x0.size)]

        if (space := oracle.task.space) is not None:
            return in_space(oracle, space, package, sampler, seed)

        def objective(trial: Any) -> float:
            suggested = zip(names, low, high, strict=True)
            return oracle(np.array([trial.suggest_float(*each) for each in suggested]))

        with warnings.catch_warnings(), contextlib.suppress(Spent):
            warnings.simplefilter("ignore")
            study = package.create_study(sampler=chosen(package, sampler, seed))
            study.enqueue_trial(dict(zip(names, np.clip(x0, low, high).tolist(), strict=True)))
            study.optimize(objective, n_trials=oracle.budget)
        return np.array([study.best_params[name] for name in names])

    return run


def chosen(package: Any, sampler: str, seed: int) -> Any:
    """Return a sampler by its short name; Optuna calls GP's noise-free setting deterministic."""
    names = {"tpe": "TPESampler", "gp": "GPSampler", "cmaes": "CmaEsSampler"}
    return getattr(package.samplers, names[sampler])(seed=seed)


def in_space(oracle: Oracle, space: Space, package: Any, sampler: str, seed: int) -> Floats:
    """Run a study over a space; conditions are told by asking only for what has an effect."""
    seen: list[tuple[float, Floats]] = []

    def suggest(trial: Any, name: str, parameter: Any) -> Any:
        if isinstance(parameter, Choice):
            return trial.suggest_categorical(name, list(parameter.options))
        kind = trial.suggest_int if isinstance(parameter, Int) else trial.suggest_float
        return kind(name, parameter.low, parameter.high, log=parameter.log)

    def objective(trial: Any) -> float:
        params: dict[str, Any] = {}
        for name, parameter in space.parameters.items():
            asked = (parameter.when or {}).items()
            if all(params.get(n) in (v if isinstance(v, tuple) else (v,)) for n, v in asked):
                params[name] = suggest(trial, name, parameter)
        x = space.encode(params)
        seen.append((oracle.at(x, None), x))
        return seen[-1][0]

    with warnings.catch_warnings(), contextlib.suppress(Spent):
        warnings.simplefilter("ignore")
        study = package.create_study(sampler=chosen(package, sampler, seed))
        study.enqueue_trial(space.start)
        study.optimize(objective, n_trials=oracle.budget)
    return min(seen, key=lambda pair: pair[0])[1]


def torchzero(oracle: Oracle, seed: int, rate: float = 0.01) -> Floats:
    """Run torchzero's SPSA with Adam, one sample per step."""
    import torch
    import torchzero as tz

    torch.manual_seed(seed)
    parameter = torch.nn.Parameter(torch.tensor(oracle.task.x0, requires_grad=False))
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
