"""Searches made and answered by hand."""

import numpy as np

from scgd.problem import Problem
from scgd.questions import Point


def problem(p=3, bounds=None, scale=1.0, x0=0.0):
    return Problem.check(np.full(p, x0), bounds, scale)


def made(cls, *more, p=3, bounds=None, scale=1.0, x0=0.0, **words):
    where = problem(p, bounds, scale, x0)
    return cls(where, Point(where.x0), np.random.default_rng(0), *more, **words)


def answer(search, values):
    """Answer the next question; return its points."""
    question = search.ask()
    points = question.points()
    search.tell(question, np.broadcast_to(np.asarray(values, float), (len(question),)).copy())
    return points


def replies(arm, fun):
    """Answer a generator; return the points it asked for and what it returns."""
    points = []
    try:
        asked = next(arm)
        while True:
            points.append(np.array(asked))
            asked = arm.send(fun(asked))
    except StopIteration as end:
        return points, end.value


def each(fun, values=None, most=None):
    """Return what answers single points and many; values go to a list, TimeoutError when full."""

    def told(points):
        if most is not None and len(values) >= most:
            raise TimeoutError
        found = [fun(y) for y in np.atleast_2d(np.asarray(points))]
        if values is not None:
            values.extend(found)
        return found[0] if points.ndim == 1 else np.array(found)

    return told
