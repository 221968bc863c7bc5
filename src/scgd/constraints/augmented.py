"""Any strategy under constraints: rounds on an augmented Lagrangian, ended by Newton's steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from scgd.constraints.merit import Merit
from scgd.constraints.quadratic import affordable, newton_share, newton_steps, vectors_at
from scgd.problem import Problem
from scgd.strategies.asks import Along, Asking, Report, Stage, Steps, Strategy, Wait
from scgd.strategies.budget import Budget
from scgd.typing import Floats

N_PROBES, PROBE = 8, 0.1
"""Random steps from the start, in units of the scale, whose changes of f and constraints give the
first weights: a median of eight is right to a factor of two."""
MOST_ROUNDS, PER_ROUND = 15, 40
"""Rounds, and evaluations per coordinate that one should have; multipliers settle linearly."""


def constrained(method: Strategy, merit: Merit) -> Strategy:
    r"""Return a strategy that runs another one on the augmented Lagrangian.

    Every evaluation gives a vector: f, the residuals of the constraints, and the distance from the
    polyhedron. What the inner strategy is sent is :math:`L` of it; between rounds the multipliers
    follow from what was measured where the round ended. Where neither f nor the constraints are
    noisy, rounds end with Newton's steps on quadratic models of all of them.
    """

    def strategy(problem: Problem, budget: Budget, rng: np.random.Generator) -> Asking:
        p = problem.n_coords
        merit.reset(problem.x0)  # a run that is resumed begins again
        yield Report(solver="constraints")
        yield from first_weights(problem, budget, rng, merit)
        smooth = bool(len(merit.equal)) and merit.constraints.polyhedron is None
        z, n_newton, k = problem.x0, 0, 0
        while True:
            n_rounds = int(np.clip(budget.total // (PER_ROUND * p), 3, MOST_ROUNDS))
            n_rounds = n_rounds if len(merit.equal) else 1  # a projection has nothing to learn
            n_last = int(np.clip(budget.total // 500, 2, 16))
            while budget.left < p + 5:
                yield Wait()
            share = max(p + 5, budget.left // max(1, n_rounds - k) - n_last)
            part = budget.part(min(share, budget.left))
            z = yield from run_round(method, replace(problem, x0=z), part, rng.spawn(1)[0], merit)
            if budget.left >= 2:
                noisy = yield from update_multipliers(z, min(n_last, budget.left), merit)
                share = newton_share(p, budget.total)
                share = min(budget.left // 2, budget.total // 2 - n_newton, share)
                if smooth and not noisy and affordable(p, share):
                    spent = budget.spent
                    turned = k % 2 == 1
                    z = yield from newton_steps(problem, merit, budget.part(share), turned=turned)
                    n_newton += budget.spent - spent
            yield from report_best(merit)
            k += 1

    return strategy


def first_weights(
    problem: Problem, budget: Budget, rng: np.random.Generator, merit: Merit
) -> Asking:
    """Choose weights by how much f and the constraints change around the start."""
    x0, signs = problem.x0, rng.choice([-1.0, 1.0], (N_PROBES + 1, problem.n_coords))
    steps = PROBE * problem.unit * signs
    steps[0] = 0.0
    points = np.where(problem.clipped(x0 + steps) == x0 + steps, x0 + steps, x0 - steps)
    points = problem.clipped(points[: budget.left])
    merit.vectors = yield from vectors_at(points, merit)
    if len(points) > 1:
        merit.begin(points[1:] - points[0])


def update_multipliers(z: Floats, n: int, merit: Merit) -> Asking:
    """Measure where a round ended, more than twice under noise; return whether there is noise."""
    rows = yield from vectors_at(np.broadcast_to(z, (2, 1, z.size)), merit)
    if n > 2 and not np.array_equal(rows[0], rows[1], equal_nan=True):
        more = yield from vectors_at(np.broadcast_to(z, (n - 2, 1, z.size)), merit)
        rows = np.concatenate([rows, more])
    merit.vectors = rows
    merit.learn(z)
    return bool(merit.noisy[0])


def report_best(merit: Merit) -> Asking:
    """Recommend the best feasible point, or the one that is nearest to being feasible."""
    x, value, _, _ = merit.best
    yield Report(x=x.copy(), values=[value], deterministic=not merit.noisy[0])


def run_round(
    method: Strategy, problem: Problem, budget: Budget, rng: np.random.Generator, merit: Merit
) -> Asking:
    """Run a strategy on the augmented Lagrangian until its budget is used; return its answer.

    That is what it recommends if f is noisy, else the point with the lowest Lagrangian.
    """
    inner = method(problem, budget, rng)
    lowest, best, recommended, exact = np.inf, problem.x0, None, False
    sent: Any = None
    while True:
        try:
            asked = inner.send(sent)
        except StopIteration:
            break
        sent = None
        if isinstance(asked, Wait):
            break
        if isinstance(asked, Report):
            exact = exact if asked.deterministic is None else asked.deterministic
            recommended = recommended if asked.x is None else asked.x
            yield replace(asked, x=None, values=None, deterministic=None)
            continue
        if isinstance(asked, Steps):
            sent = yield from take_steps(asked, budget, merit)
            recommended = sent.x
            continue
        points = np.asarray(asked)
        if points.size // points.shape[-1] > budget.left:
            break
        rows = yield from evaluate_along(asked, points, merit)
        values = merit(rows)
        found = np.where(np.isfinite(values), values, np.inf)
        if found.min() < lowest:
            k = int(found.argmin())
            lowest, best = float(found[k]), points.reshape(-1, points.shape[-1])[k].copy()
        sent = float(values[0]) if points.ndim == 1 else values.reshape(points.shape[:-1])
    inner.close()
    return best if recommended is None or (exact and np.isfinite(lowest)) else recommended


def evaluate_along(asked: Any, points: Floats, merit: Merit) -> Asking:
    """Evaluate what was asked as it was asked; return one vector per point."""
    if not isinstance(asked, Along):
        return (yield from vectors_at(points, merit))
    rows = np.asarray((yield asked)).reshape(-1, merit.size)
    for vector, z in zip(rows, points.reshape(-1, points.shape[-1]), strict=True):
        merit.offer(vector, z)
    return rows


def take_steps(steps: Steps, budget: Budget, merit: Merit) -> Asking:
    """Let SCGD take its steps one by one, and tell it the Lagrangian of what was measured."""
    engine, spent = steps.engine, budget.spent
    engine.begin_stage(min(budget.left, steps.n_evals or budget.left), steps.base)
    while not engine.finished and (question := engine.ask()) is not None:
        points = np.stack([question.at(j) for j in range(len(question))])
        rows = yield from vectors_at(points, merit)
        engine.tell(question, merit(rows))
    stage: Stage = engine.stage(budget.spent - spent)
    return stage
