"""One seed, one trajectory: every stream of a run follows from it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from scgd.checks import natural, shown
from scgd.typing import Array

__all__ = ["Seed"]

SEARCHES, SAMPLES = range(2)


class Seed:
    """The seed of a run.

    Parameters
    ----------
    seed
        None, a whole number, a sequence of them, or a ``SeedSequence`` (which is not advanced).

    Examples
    --------
    >>> Seed(7).text
    '7 []'
    """

    def __init__(self, seed: Any = None) -> None:
        self.given = seed is not None
        if not (seed is None or isinstance(seed, np.random.SeedSequence) or natural(seed)):
            raise ValueError(
                f"seed must be None, a whole number >= 0 or a SeedSequence, got {shown(seed)}"
            )
        root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        self._set(root.entropy, root.spawn_key)

    def _set(self, entropy: Any, spawn_key: Any) -> None:
        self.text = f"{json.dumps(entropy, default=as_plain)} {json.dumps(list(spawn_key))}"
        self.entropy, self.spawn_key = entropy, tuple(spawn_key)

    def child(self, *key: int) -> np.random.SeedSequence:
        """Return a sequence of our own, by key and not by spawn(), which would count elsewhere."""
        return np.random.SeedSequence(self.entropy, spawn_key=(*self.spawn_key, *key))

    @property
    def searches(self) -> np.random.SeedSequence:
        """Where searches take their streams from."""
        return self.child(SEARCHES)

    @property
    def sample_key(self) -> Array:
        """The key of the samples."""
        return self.child(SAMPLES).generate_state(2, np.uint64)

    def take_up(self, text: str) -> None:
        """Become the seed of a saved run."""
        decoder = json.JSONDecoder()
        entropy, end = decoder.raw_decode(text)
        spawn_key = json.loads(text[end:])
        np.random.SeedSequence(entropy, spawn_key=tuple(spawn_key))
        self._set(entropy, spawn_key)


def as_plain(value: Any) -> Any:
    """Return whole numbers of NumPy as JSON has them."""
    return np.asarray(value).tolist()
