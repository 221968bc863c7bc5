"""Ask and tell for other libraries, which may bring measurements of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

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


class Bridge:
    """Ask and tell for those who have measurements that nobody asked for.

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
    >>> bridge.know({"x": 0.9}, 0.81)
    >>> for _ in range(30):
    ...     trial = bridge.fetch()
    ...     bridge.bring(trial, trial.params["x"] ** 2)
    >>> abs(bridge.best["x"]) < 0.05
    True
    """

    def __init__(
        self,
        space: Space,
        n_trials: int,
        *,
        method: str | None = None,
        maximize: bool = False,
        seed: Any = None,
    ) -> None:
        self.space, self.maximize = space, maximize
        if method is None:
            method = "gp" if space.n_coords <= LARGEST_MODEL else "dds"
        self.opt = Optimizer(
            space, method, max_evals=n_trials, seed=seed, maximize=maximize, failures="skip"
        )

    def fetch(self) -> Trial:
        """Return parameters to try; beyond the plan the plan is doubled.

        Raises LookupError where there is nothing left to try, or until more is known.
        """
        run = self.opt.run
        if run.max_evals is not None and not self.opt.queue and run.strategy.cost > run.room:
            self.opt.extend(2 * run.max_evals)
        found = [] if run.done else self.opt.ask(1)
        if not found:
            raise LookupError("every point of the space has been tried")
        return found[0]

    def bring(self, trial: Trial, value: float | None) -> None:
        """Hand in a value; None or NaN for one that failed."""
        if value is None or not np.isfinite(value):
            self.opt.fail(trial.id)
        else:
            self.opt.tell(trial.id, float(value))

    def know(self, params: Mapping[str, Any], value: float) -> None:
        """Hand in a measurement that was not fetched here."""
        self.opt.add(self.space.encode(params), float(value))

    @property
    def best(self) -> dict[str, Any]:
        """The parameters that are recommended."""
        return self.space.decode(self.opt.x)
