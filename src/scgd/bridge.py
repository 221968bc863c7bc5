"""Ask and tell for other libraries, which plan for some trials and may go on for ever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scgd.optimizer import Optimizer
from scgd.spaces import Space
from scgd.trials import Trial

LARGEST_MODEL = 40
"""Coordinates up to which a model is worth its while."""


def as_space(space: Any, name: str = "space") -> Space:
    """Return a space, made of a mapping of parameters where it is one."""
    if isinstance(space, Space):
        return space
    if isinstance(space, Mapping):
        return Space(space)
    raise TypeError(
        f"{name} must be a scgd.Space or a dict of scgd.Float, Int and Choice, got "
        f"{type(space).__name__}"
    )


class Bridge(Optimizer):
    """Ask and tell whose plan grows.

    Parameters
    ----------
    space
        What to search.
    n_trials
        How many evaluations to plan for; more may be fetched.
    method
        ``"gp"``, ``"dds"`` or None for whichever suits the size of the space.
    maximize, seed
        As for :class:`~scgd.Optimizer`.

    Examples
    --------
    >>> from scgd import Float
    >>> bridge = Bridge(Space(x=Float(-1, 1)), 30, seed=0)
    >>> bridge.add({"x": 0.9}, 0.81)
    >>> for _ in range(30):
    ...     trial = bridge.fetch()
    ...     bridge.tell(trial.id, trial.params["x"] ** 2)
    >>> abs(bridge.result().params["x"]) < 0.05
    True
    """

    def __init__(
        self, space: Space, n_trials: int, *, method: str | None = None, **more: Any
    ) -> None:
        if method is None:
            method = "gp" if space.n_coords <= LARGEST_MODEL else "dds"
        super().__init__(space, method, max_evals=n_trials, failures="skip", **more)

    def fetch(self) -> Trial:
        """Return parameters to try; beyond the plan the plan is doubled.

        Raises LookupError where there is nothing left to try, or until more is known.
        """
        run = self.run
        if run.max_evals is not None and not self.queue and run.strategy.cost > run.room:
            self.extend(2 * run.max_evals)
        found = [] if run.done else self.ask(1)
        if not found:
            raise LookupError("every point of the space has been tried")
        return found[0]
