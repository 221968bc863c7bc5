"""Where the sample xi of each question comes from.

A sample is a function of the run's key, a owner (who asks) and a number alone. Nothing is drawn in
order and nothing is remembered: a sample can be made wherever the evaluation runs, and an
evaluation that is repeated sees the same one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scgd.calling import calls_user
from scgd.checks import count
from scgd.typing import Array, Ints

Sample = int | Callable[[np.random.Generator], Any] | None
CHUNK = 512
"""Samples of row numbers that are drawn at a time."""


@dataclass(frozen=True)
class Samples:
    """The samples of a run.

    Parameters
    ----------
    sample
        ``n``: a sample is ``batch_size`` row numbers below n; a callable: it is ``sample(rng)``;
        None: there are none.
    batch_size
        Row numbers per sample.
    key
        Two 64-bit words, from the run's seed.

    Examples
    --------
    >>> samples = Samples.check(10, 3, np.arange(2, dtype=np.uint64))
    >>> rows, = samples.arguments(7, 0)
    >>> len(rows), bool(np.all(rows == samples.arguments(7, 0)[0]))
    (3, True)
    """

    sample: Sample
    batch_size: int
    key: Array
    _rows: dict[tuple[int, int], Ints] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def check(cls, sample: Any, batch_size: Any, key: Array) -> Samples:
        """Check the arguments."""
        size = count(batch_size, "batch_size")
        if sample is None or callable(sample):
            return cls(sample, size, key)
        return cls(count(sample, "sample"), size, key)

    @property
    def controlled(self) -> bool:
        """Whether the sample can be held fixed between evaluations."""
        return self.sample is not None

    @property
    def kind(self) -> str:
        """What the samples are, for people and for the identity of a run."""
        if self.sample is None:
            return "none"
        return f"{self.batch_size} of {self.sample} rows" if isinstance(self.sample, int) else "xi"

    @calls_user
    def arguments(self, number: int, owner: int) -> tuple[Any, ...]:
        """Return what the user's function is given beside x."""
        if self.sample is None:
            return ()
        if isinstance(self.sample, int):
            return (self.rows(number // CHUNK, owner)[number % CHUNK],)
        try:
            return (self.sample(self._generator(number, owner)),)
        except StopIteration as end:  # which would end whatever calls us in silence
            raise RuntimeError(
                "sample raised StopIteration; it must return a sample each time it is called"
            ) from end

    def rows_of(self, number: int, n: int, owner: int) -> Ints:
        """Return the row numbers of consecutive samples, one line each."""
        first, last = number // CHUNK, (number + n - 1) // CHUNK
        chunks = np.concatenate([self.rows(chunk, owner) for chunk in range(first, last + 1)])
        return chunks[number - first * CHUNK :][:n]

    def rows(self, chunk: int, owner: int) -> Ints:
        """Return the row numbers of a whole chunk of samples, one line each."""
        if (chunk, owner) not in self._rows:
            if len(self._rows) >= 4:  # steps are taken in order; a few owners take turns
                self._rows.pop(next(iter(self._rows)))
            rng, n = self._generator(chunk, owner), self.sample
            assert isinstance(n, int)
            self._rows[chunk, owner] = rng.integers(0, n, (CHUNK, self.batch_size))
        return self._rows[chunk, owner]

    def _generator(self, number: int, owner: int) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(key=self.key, counter=[0, 0, owner, number]))

    def __getstate__(self) -> dict[str, Any]:
        """Leave the rows at home when the samples travel to a worker."""
        return {**self.__dict__, "_rows": {}}


NO_SAMPLES = Samples(None, 1, np.zeros(2, np.uint64))
