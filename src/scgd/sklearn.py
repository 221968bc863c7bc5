"""For those who tune scikit-learn's estimators: a search like ``RandomizedSearchCV``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from copy import copy
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import ParameterGrid
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import Interval

from scgd.bridge import Bridge, as_space
from scgd.checks import choice, count, settle, shown
from scgd.spaces import Choice, Parameter, Space
from scgd.trials import Trial

__all__ = ["SCGDSearchCV"]

HOPELESS = 5
"""Candidates of which every fit fails, from the first on, after which a search gives up."""


class SCGDSearchCV(BaseSearchCV):
    """Search the parameters of an estimator by cross-validation.

    Parameters
    ----------
    estimator
        What to tune; a pipeline's parameters are named ``step__parameter``.
    space
        A :class:`scgd.Space`, or what scikit-learn's searches take: a dict from names to lists,
        distributions of ``scipy.stats``, :class:`scgd.Float`, :class:`scgd.Int` or
        :class:`scgd.Choice`; a list of such dicts, of which each candidate belongs to one; a
        ``ParameterGrid``. Three or more numbers in a list count as ordered.
    n_iter
        How many candidates to evaluate.
    batch_size
        Candidates evaluated together, each chosen without the scores of the others; the folds of
        one candidate already run in parallel.
    method
        ``"gp"``, ``"dds"`` or None, as for :class:`scgd.optuna.SCGDSampler`.
    random_state
        One seed, one search.
    scoring, n_jobs, refit, cv, verbose, pre_dispatch, error_score, return_train_score
        As for ``sklearn.model_selection.RandomizedSearchCV``. With several scores ``refit`` names
        the one to search by. A candidate of which every fit fails counts as failed, with a warning
        and is not among the results; five of them at the start end the search.

    Attributes
    ----------
    cv_results_, best_estimator_, best_score_, best_params_, best_index_, scorer_, n_splits_
        As there.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from scgd import Float
    >>> search = SCGDSearchCV(
    ...     LogisticRegression(max_iter=5000), {"C": Float(1e-4, 1e4, log=True)}, n_iter=12,
    ...     random_state=0,
    ... )
    >>> bool(search.fit(*load_iris(return_X_y=True)).best_score_ > 0.97)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseSearchCV._parameter_constraints,
        "space": [Space, Mapping, list, tuple, ParameterGrid],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "method": [str, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        space: Any,
        *,
        n_iter: int = 50,
        batch_size: int = 1,
        method: str | None = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
    ) -> None:
        super().__init__(
            estimator=estimator, scoring=scoring, n_jobs=n_jobs, refit=refit, cv=cv,
            verbose=verbose, pre_dispatch=pre_dispatch, error_score=error_score,
            return_train_score=return_train_score,
        )  # fmt: skip
        self.space = space
        self.n_iter = n_iter
        self.batch_size = batch_size
        self.method = method
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Take several targets where the estimator does."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = get_tags(self.estimator).target_tags.multi_output
        return tags

    def _run_search(self, evaluate_candidates: Callable[[list[dict[str, Any]]], Any]) -> None:
        """Fetch candidates, have them scored, bring the scores back."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        n_iter = count(self.n_iter, "n_iter")
        if self.method is not None:
            choice(self.method, "method", ("gp", "dds"))
        space = joined(self.space)
        bridge = Bridge(space, n_iter, method=self.method, maximize=True, seed=seed)
        left, n_failed = self.n_iter, 0
        while left > 0:
            batch = fetched(bridge, min(left, self.batch_size))
            if not batch:
                return
            left -= len(batch)
            try:
                results = evaluate_candidates([named(trial.params or {}) for trial in batch])
            except ValueError as error:
                # Where every fit of a call fails scikit-learn gives up; another candidate may do.
                n_failed += len(batch)
                if not self._may_go_on(error, n_failed, left):
                    raise
                for trial in batch:
                    bridge.fail(trial.id)
                continue
            for trial, score in zip(batch, self._scores(results)[-len(batch) :], strict=True):
                bridge.tell(trial.id, float(score))
            n_failed = (
                -self.n_iter
            )  # something works: what fails from here on only counts as failed

    def _may_go_on(self, error: ValueError, n_failed: int, left: int) -> bool:
        """Tell whether a candidate whose fits all failed only counts as failed; warn if so."""
        if "fits failed" not in str(error) or n_failed >= HOPELESS or (left <= 0 < n_failed):
            return False
        warnings.warn(f"a candidate failed: {error}", FitFailedWarning, stacklevel=2)
        return True

    def _scores(self, results: Mapping[str, Any]) -> Any:
        """Return the score to search by, of every candidate so far."""
        if "mean_test_score" in results:
            return results["mean_test_score"]
        if not isinstance(self.refit, str):
            raise ValueError(
                "with several scores refit must name the one to search by, got "
                f"refit={self.refit!r}"
            )
        return results[f"mean_test_{self.refit}"]


GRID = "grid"
"""The parameter that says to which of several grids a candidate belongs."""


def joined(given: Any) -> Space:
    """Return one space of what scikit-learn's searches take.

    Parameters of several grids are named ``number:name`` and exist where that grid is chosen.
    """
    grids = given.param_grid if isinstance(given, ParameterGrid) else given
    if not isinstance(grids, list | tuple):
        return as_space(grids)
    if not grids or not all(isinstance(grid, Mapping) for grid in grids):
        raise TypeError(f"space must be a dict, or a list of dicts, got {shown(given)}")
    if len(grids) == 1:
        return as_space(grids[0])
    found: dict[str, Parameter] = {GRID: Choice(*range(len(grids)))}
    for i, grid in enumerate(grids):
        for name, parameter in (as_space(grid).parameters if grid else {}).items():
            if parameter.when is not None:
                raise ValueError(f"{name!r} of a list of dicts must not have when=; give one Space")
            found[f"{i}:{name}"] = part = copy(parameter)
            settle(part, when={GRID: i})
    return Space(found)


def named(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters by the names that the estimator knows."""
    if GRID not in params or not all(":" in name for name in params if name != GRID):
        return dict(params)
    return {name.partition(":")[2]: value for name, value in params.items() if name != GRID}


def fetched(bridge: Bridge, n: int) -> list[Trial]:
    """Return candidates to try; fewer where a small space has been tried all over."""
    batch: list[Trial] = []
    try:
        while len(batch) < n:
            batch.append(bridge.fetch())
    except LookupError:
        pass
    return batch
