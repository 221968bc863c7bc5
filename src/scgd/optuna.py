"""For those who have an Optuna study: ``optuna.create_study(sampler=SCGDSampler())``."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from scgd.bridge import Bridge
from scgd.checks import choice, count, shown, whole
from scgd.spaces import Space
from scgd.trials import Trial

try:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.search_space import IntersectionSearchSpace
    from optuna.study import Study, StudyDirection
    from optuna.trial import FrozenTrial, TrialState
except ImportError as error:
    raise ImportError("scgd.optuna needs Optuna; pip install 'scgd[optuna]'") from error

__all__ = ["SCGDSampler"]

ENDED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)
LEAST = 10
"""Trials to plan for, at least."""
AGAIN = 5
"""Points in a row whose value is known already that are passed over, at most."""


class SCGDSampler(BaseSampler):  # type: ignore[misc]
    """Let scgd choose the parameters of a study.

    Every trial of the study is learnt from, whoever made it: those of other processes on the same
    storage, and those of an earlier session. A pruned trial counts with its last intermediate
    value; a failed one counts as a failed evaluation. Parameters that not every trial has (under an
    ``if``) are drawn at random.

    Parameters
    ----------
    n_trials
        How many trials to plan for.
    method
        ``"gp"``: local Gaussian processes, ``"dds"``: mutations; by default the first up to
        40 numbers.
    search_space
        The distributions, where they are known before the first trial; else they are read from
        trials that have ended, and the first trial is drawn at random.
    seed
        One seed, one study, where a single process works on it.

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=SCGDSampler(n_trials=30, seed=0))
    >>> study.optimize(lambda trial: trial.suggest_float("x", -5, 5) ** 2, n_trials=30)
    >>> abs(study.best_params["x"]) < 0.5
    True
    """

    def __init__(
        self,
        n_trials: int = 100,
        *,
        method: str | None = None,
        search_space: dict[str, BaseDistribution] | None = None,
        seed: int | None = None,
    ) -> None:
        self.n_trials = max(LEAST, count(n_trials, "n_trials"))
        self.method = None if method is None else choice(method, "method", ("gp", "dds"))
        self.seed = None if seed is None else whole(seed, "seed")
        if self.seed is not None and self.seed >= 2**32:  # NumPy's older generators, inside Optuna
            raise ValueError(f"seed must be below 2**32, got {seed!r}")
        self.search_space = distributions(search_space)
        self._seen = IntersectionSearchSpace()
        self._random = RandomSampler(seed=self.seed)
        self._lock = threading.RLock()  # study.optimize(n_jobs=2) shares a sampler by threads
        self._bridge: Bridge | None = None
        self._distributions: dict[str, BaseDistribution] = {}
        self._out: dict[int, Trial] = {}
        self._told: set[int] = set()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the lock behind, and what is learnt anew from the study."""
        state = self.__dict__.copy()
        del state["_lock"]
        return state | {"_bridge": None, "_distributions": {}, "_out": {}, "_told": set()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take another lock."""
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def reseed_rng(self) -> None:
        """Draw another seed: Optuna asks for it where workers must differ."""
        self._random.reseed_rng()
        if self.seed is not None:
            self.seed = int(np.random.SeedSequence().generate_state(1)[0])

    # ---- what Optuna asks ------------------------------------------------------------------------

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the distributions that all trials share."""
        if len(study.directions) > 1:
            raise ValueError(
                f"SCGDSampler minimises one value, the study has {len(study.directions)} directions"
            )
        with self._lock:
            known = self.search_space or self._seen.calculate(study)
        return {name: kind for name, kind in known.items() if not kind.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return parameters to try."""
        if not search_space:
            return {}
        with self._lock:
            if self._bridge is None or search_space != self._distributions:
                self._open(study, trial, search_space)
            self._learn(study)
            assert self._bridge is not None
            try:
                fetched = self._bridge.fetch()
                for _ in range(AGAIN):  # a bridge that was opened anew may begin where another did
                    known = self._known(study, fetched)
                    if known is None:
                        break
                    self._bridge.tell(fetched.id, known)
                    fetched = self._bridge.fetch()
            except LookupError:  # a small space has been tried all over
                return {}
            self._out[trial.number] = fetched
            assert fetched.params is not None
            return dict(fetched.params)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Draw a parameter at random that not every trial has."""
        return self._random.sample_independent(study, trial, param_name, param_distribution)

    # ---- learning from the study -----------------------------------------------------------------

    def _open(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> None:
        """Begin anew, for these parameters; two processes with one seed must differ."""
        seed = None if self.seed is None else np.random.SeedSequence([self.seed, trial.number])
        self._bridge = Bridge(
            Space(search_space), self.n_trials, method=self.method, seed=seed,
            maximize=study.direction == StudyDirection.MAXIMIZE,
        )  # fmt: skip
        self._distributions = dict(search_space)
        self._out, self._told = {}, set()

    def _learn(self, study: Study) -> None:
        """Bring to the bridge what has ended since the last time."""
        assert self._bridge is not None
        for trial in study.get_trials(deepcopy=False, states=ENDED):
            if trial.number in self._told:
                continue
            self._told.add(trial.number)
            value, fetched = value_of(trial), self._out.pop(trial.number, None)
            if fetched is not None and self._as_fetched(fetched, trial):
                self._bridge.tell(fetched.id, math.nan if value is None else value)
                continue
            if fetched is not None:
                self._bridge.fail(fetched.id)
            params = {name: trial.params.get(name) for name in self._distributions}
            if value is not None and self._inside(trial):
                self._bridge.add(params, value)

    def _known(self, study: Study, fetched: Trial) -> float | None:
        """Return the value of a point that a trial has had already."""
        trials = study.get_trials(deepcopy=False, states=ENDED)
        values = (value_of(trial) for trial in trials if self._as_fetched(fetched, trial))
        return next((value for value in values if value is not None), None)

    def _as_fetched(self, fetched: Trial, trial: FrozenTrial) -> bool:
        assert fetched.params is not None
        return all(trial.params.get(name) == value for name, value in fetched.params.items())

    def _inside(self, trial: FrozenTrial) -> bool:
        """Tell whether a trial has all parameters, within their present ranges."""
        return all(
            name in trial.params and kind._contains(kind.to_internal_repr(trial.params[name]))
            for name, kind in self._distributions.items()
        )


def value_of(trial: FrozenTrial) -> float | None:
    """Return what a trial found; of a pruned one the last intermediate value."""
    value = None
    if trial.state == TrialState.COMPLETE:
        value = trial.value
    elif trial.state == TrialState.PRUNED and trial.intermediate_values:
        value = trial.intermediate_values[max(trial.intermediate_values)]
    return value if value is not None and math.isfinite(value) else None


def distributions(space: Any) -> dict[str, BaseDistribution] | None:
    """Return a search space as it was given, or say what is wrong with it."""
    good = isinstance(space, Mapping) and all(
        isinstance(name, str) and isinstance(value, BaseDistribution)
        for name, value in space.items()
    )
    if space is not None and not (good and space):
        raise TypeError(
            f"search_space must be a dict from names to Optuna's distributions, got {shown(space)}"
        )
    return None if space is None else dict(space)
