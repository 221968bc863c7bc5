"""Steps of a recipe by themselves: no budget, no books, looked at whenever one likes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scgd.descent import CoordinateDescent, choose_loop
from scgd.method import SCGD
from scgd.problem import Problem
from scgd.questions import Question
from scgd.run.build import Seed
from scgd.run.ledger import Ledger
from scgd.run.signals import Stop
from scgd.samples import Sample, Samples
from scgd.typing import Floats

__all__ = ["answer", "mover", "steps_of"]


def steps_of(
    method: SCGD, x0: Floats, sample: Sample, seed: np.random.SeedSequence
) -> CoordinateDescent:
    """Return the steps of a recipe from x0."""
    problem, root = Problem.check(x0), Seed(seed)
    samples = Samples.check(sample, 1, root.sample_key)
    return CoordinateDescent(method, problem, problem.x0, root.child(0), samples=samples, owner=0)


def answer(steps: CoordinateDescent, evaluate: Callable[..., Any], jac: Callable[..., Any]) -> None:
    """Have one question answered: ``evaluate(x, *sample)`` or ``jac(x, coords, *sample)``."""
    question = steps.ask()
    assert question is not None and question.sample is not None
    extra = steps.samples.arguments(*question.sample)
    steps.tell(question, values_of(question, extra, evaluate, jac))


def values_of(
    question: Question,
    extra: tuple[Any, ...],
    evaluate: Callable[..., Any],
    jac: Callable[..., Any],
) -> Any:
    """Return the values of a question."""
    if question.kind == "partials":
        return [jac(question.at(0), question.support, *extra)]
    return np.array([evaluate(question.at(j), *extra) for j in range(len(question))])


def mover(
    steps: CoordinateDescent, fun: Callable[..., Any], args: tuple[Any, ...]
) -> Callable[[int], None]:
    """Return a function that takes so many steps, by a loop where there is one."""
    ledger = Ledger("raise", None)
    loop, stop = choose_loop(steps, fun, args, ledger), Stop()

    def advance(n_steps: int) -> None:
        if loop is not None:
            loop.run(n_steps * steps.step_cost, stop, by_phase=False)
            return
        target = steps.t + n_steps
        while steps.t < target:
            answer(steps, lambda x, *sample: fun(x, *sample, *args), fun)

    return advance
