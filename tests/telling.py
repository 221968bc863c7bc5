"""Tell a story its findings by hand."""

import numpy as np

from scgd.plans.ground import Ground
from scgd.problem import Problem
from scgd.samples import Samples
from scgd.searches import Length, RoundingError, Verdict

LENGTH, FINE = Length(2.0, 8.0, 0.0), RoundingError(1e-8)
EQUAL, WORSE, BETTER = Verdict(0.0, 1.0), Verdict(5.0, 1.0), Verdict(-5.0, 1.0)


def ground(p=4, total=1000, *, scale=1.0, sample=None, noise=None, **more):
    problem = Problem.check(np.zeros(p), None, scale, noise)
    samples = Samples.check(sample, 1, np.arange(2, dtype=np.uint64))
    return Ground(problem, samples, np.random.SeedSequence(0), total, **more)


def told(telling, where, *script):
    """Tell a story findings, each with the evaluations it took; return all that it asked for."""
    asked = [next(telling)]
    for finding, spent in script:
        where.spent += spent
        try:
            asked.append(telling.send(finding))
        except StopIteration as end:
            asked.append(end.value)
    return asked


def names(asked):
    return [getattr(search, "name", search) for search in asked]
