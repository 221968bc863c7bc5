"""Evaluations in this process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from scgd.estimators import BASE, Probes
from scgd.typing import Floats

__all__ = ["Evaluator"]

Fun = Callable[..., Any]


class Evaluator:
    """Evaluate probes in this process, poking the optimizer's own x and putting it back.

    Parameters
    ----------
    fun, jac, args
        The user's functions and their extra arguments.
    vectorized
        Whether ``fun`` takes a matrix of points and returns their values.
    """

    n_repeated = 0

    def __init__(
        self, fun: Fun, jac: Fun | None, args: tuple[Any, ...], vectorized: bool = False
    ) -> None:
        self.fun = fun
        self.jac = jac
        self.args = args
        self.vectorized = vectorized
        self._queue: deque[tuple[Probes, int]] = deque()

    def close(self) -> None:
        """Release what was started."""

    def evaluate(self, probes: Probes, theta: Floats) -> list[Any]:
        """Return the values of all probes; ``theta`` is restored whatever happens."""
        extra = sample_of(probes) + self.args
        if probes.kind == "partials":
            assert self.jac is not None
            return [self.jac(probes.theta, probes.support, *extra)]
        if self.vectorized:
            return check_batch(self.fun(probes.points(), *extra), len(probes))
        if probes.joint:
            return self._evaluate_joint(probes, theta, extra)
        return [self._evaluate_one(probes, j, theta, extra) for j in range(len(probes))]

    def submit(self, probes: Probes) -> None:
        """Take evaluations to be made one at a time by :meth:`arrived`."""
        self._queue.extend((probes, j) for j in range(len(probes)))

    def arrived(self) -> list[tuple[int, Any]]:
        """Make the next of the submitted evaluations; return its id and its value."""
        probes, j = self._queue.popleft()
        extra = sample_of(probes) + self.args
        if probes.kind == "partials":
            assert self.jac is not None
            return [(int(probes.ids[j]), self.jac(probes.theta, probes.support, *extra))]
        x = probes.point(j)
        x.flags.writeable = False
        return [(int(probes.ids[j]), self.fun(x, *extra))]

    def _evaluate_one(self, probes: Probes, j: int, theta: Floats, extra: tuple[Any, ...]) -> Any:
        k = probes.coords[j]
        if k == BASE:
            return self.fun(probes.theta, *extra)
        entry = theta[k]
        try:
            theta[k] = probes.entries[j]
            return self.fun(probes.theta, *extra)
        finally:
            theta[k] = entry

    def _evaluate_joint(self, probes: Probes, theta: Floats, extra: tuple[Any, ...]) -> list[Any]:
        everywhere = len(probes.support) == len(theta)
        place: Any = slice(None) if everywhere else probes.support
        saved = theta[place].copy()
        try:
            values = []
            for entries in probes.entries:
                theta[place] = entries
                values.append(self.fun(probes.theta, *extra))
            return values
        finally:
            theta[place] = saved


def sample_of(probes: Probes) -> tuple[Any, ...]:
    """Return the sample argument of the user's function, if there is one."""
    if probes.rows is not None:
        return (probes.rows,)
    return () if probes.draw is None else (probes.xi,)


def check_batch(values: Any, n: int) -> list[Any]:
    """Return the values of a vectorized function as a list."""
    array = np.asarray(values)
    if array.shape != (n,):
        raise TypeError(
            f"a vectorized fun must return {n} values for {n} points, got shape {array.shape}"
        )
    return array.tolist()  # type: ignore[no-any-return]
