"""Evaluations in this process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from scgd.calling import calls_user
from scgd.compiling import is_compiled
from scgd.questions import Open, Question
from scgd.workers.tasks import MOST_COPIED, WRITTEN, Job, looks


def private(fun: Any) -> Any:
    """Return a function that calls the user's, which cannot change the run's own x.

    Whatever can be reached from a read-only array (``x.base``, a tensor that shares its memory), it
    is a copy of x; the same piece of memory every time. For larger x the first call, and so few
    others that it costs the same per call, are compared with a copy, and a function that writes is
    refused. Compiled functions see an array that the compiler does not let them write.
    """
    if fun is None or is_compiled(fun):
        return fun
    user: Callable[..., Any] = fun
    mine = view = np.empty(0)
    n_calls = 0

    @calls_user
    def call(x: Any, *rest: Any) -> Any:
        nonlocal mine, view, n_calls
        if x.size > MOST_COPIED:
            n_calls += 1
            if n_calls % looks(x.size) != 1:
                return user(x, *rest)
        if mine.shape != x.shape:
            mine = np.empty(x.shape)
            view = mine.view()
            view.flags.writeable = False
        mine[...] = x
        if x.size <= MOST_COPIED:
            return user(view, *rest)
        value = user(x, *rest)
        if not np.array_equal(mine, x):
            raise ValueError(WRITTEN)
        return value

    return call


WIDEST = 2**22
"""Numbers, at most, in a matrix of points for a vectorized function."""


class Evaluator:
    """Evaluate questions in this process, in the buffer of the point they are about.

    Parameters
    ----------
    job
        The user's functions and their extra arguments.
    vectorized
        Whether ``fun`` takes a matrix of points and returns their values.
    """

    n_repeated = 0
    inline = True
    """Whether the user's function may be called from a body."""

    def __init__(self, job: Job, vectorized: bool = False) -> None:
        if self.inline and not vectorized:
            job = replace(job, fun=private(job.fun), jac=private(job.jac))
        self.job = job
        self.vectorized = vectorized
        self.inline = self.inline and not vectorized
        self._queue: deque[tuple[Open, int]] = deque()

    def close(self) -> None:
        """Release what was started."""

    def answers(self, opened: Open) -> Iterator[list[tuple[int, Any]]]:
        """Make the evaluations that are missing; yield numbers and values as they are made."""
        places = opened.missing
        if self.vectorized and opened.question.kind == "values":
            n = max(1, WIDEST // opened.question.point.x.size)
            for i in range(0, len(places), n):
                some = places[i : i + n]
                values = self._batch(opened.question, some)
                yield [(opened.first + j, v) for j, v in zip(some, values, strict=True)]
        else:
            for j in places:
                yield [(opened.first + j, self._value(opened.question, j))]

    def submit(self, opened: Open) -> None:
        """Take evaluations to be made one at a time by :meth:`arrived`."""
        self._queue.extend((opened, j) for j in opened.missing)

    def arrived(self) -> list[tuple[int, Any]]:
        """Make the next of the submitted evaluations; return its number and its value."""
        if not self._queue:
            raise ValueError(
                "asynchronous: these are not the events of this run; hand in result.events of a "
                "run with the same arguments"
            )
        opened, j = self._queue[0]
        value = self._value(opened.question, j)
        self._queue.popleft()
        return [(opened.first + j, value)]

    def _extra(self, question: Question) -> tuple[Any, ...]:
        assert question.sample is not None
        return (*self.job.samples.arguments(*question.sample), *self.job.args)

    @calls_user
    def _batch(self, question: Question, places: list[int]) -> list[Any]:
        """Evaluate some points as the rows of a matrix."""
        found = self.job.fun(question.points(places), *self._extra(question))
        values = np.asarray(found)
        if np.ma.is_masked(found):
            values = np.where(np.ma.getmaskarray(found), np.nan, values)
        if values.shape != (len(places),):
            raise TypeError(
                f"a vectorized fun must return {len(places)} values for {len(places)} points, got "
                f"shape {values.shape}"
            )
        return values.tolist()  # type: ignore[no-any-return]

    @calls_user
    def _value(self, question: Question, j: int) -> Any:
        """Evaluate one point; the buffer is as it was, whatever happens."""
        fun, extra, point = self.job.fun, self._extra(question), question.point
        if question.base is not None:
            x = question.at(j)
            x.flags.writeable = False
            return self._at(x, question, extra)
        if question.kind == "partials":
            return self._at(point.view, question, extra)
        place = question.place(j)
        if place is None:
            return fun(point.view, *extra)
        try:
            point.buffer[place] = question.entries[j]
            return fun(point.view, *extra)
        finally:
            point.buffer[place] = point.x[place]

    @calls_user
    def _at(self, x: Any, question: Question, extra: tuple[Any, ...]) -> Any:
        """Evaluate whatever the question is about at a point."""
        if question.kind == "values":
            return self.job.fun(x, *extra)
        assert self.job.jac is not None
        return self.job.jac(x, question.support.copy(), *extra)
