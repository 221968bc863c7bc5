"""What the scikit-learn estimators share: parameters, fitting one target, streaming, prediction."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from scgd.linear.data import Problem, transposed
from scgd.linear.descent import Descent, Report, descend
from scgd.linear.inputs import as_problem
from scgd.linear.objective import objective
from scgd.linear.smoothness import inverse_smoothness
from scgd.linear.solver import RECIPE, solve
from scgd.linear.walks import Run, Timetable
from scgd.policies import LawPolicy, Musketeer, Uniform
from scgd.schedules import Constant
from scgd.typing import Floats

__all__ = ["LinearModel"]

FORGETTING = 0.7
# Half of the draws stay uniform: a fit must get every coordinate right, not only those that pay.
NAMED = {"musketeer": Musketeer(mixing=0.5), "uniform": Uniform()}
FLOATS = (np.float64, np.float32)


class LinearModel(SparseCoefMixin, BaseEstimator):
    """A linear model with one row of coefficients per target."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [StrOptions({"l2", "l1", "elasticnet"}), None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "fit_intercept": ["boolean"],
        "policy": [StrOptions(set(NAMED)), LawPolicy],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "learning_rate": [
            StrOptions({"auto"}),
            Interval(Real, 0, None, closed="neither"),
            callable,
        ],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }

    def __sklearn_tags__(self) -> Any:
        """Declare sparse input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_X(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, accept_sparse=["csr", "csc"], dtype=FLOATS)

    def _check_Xy(self, X: Any, y: Any, *, reset: bool, y_numeric: bool) -> tuple[Any, Any]:
        return validate_data(
            self, X, y, reset=reset, accept_sparse=["csr", "csc"], y_numeric=y_numeric, dtype=FLOATS
        )

    def _problem(self, X: Any, y: Floats, weights: Any) -> Problem:
        share = {"l1": 1.0, "l2": 0.0, "elasticnet": self.l1_ratio}.get(self.penalty)
        l2, l1 = (0.0, 0.0) if share is None else (1.0 - share, share)
        epsilon = self.epsilon if self.loss == "huber" else None
        return as_problem(
            X, y, loss=self.loss, sample_weight=weights, epsilon=epsilon,
            l2=self.alpha * l2, l1=self.alpha * l1,
        )  # fmt: skip

    def _fit_targets(self, X: Any, targets: list[Floats], weights: list[Any]) -> None:
        """Fit one model per target; they become the rows of the coefficients."""
        rng = check_random_state(self.random_state)
        seeds = rng.randint(np.iinfo(np.int32).max, size=len(targets))
        kept, held = np.arange(X.shape[0]), None
        if self.early_stopping:
            kept, held = train_test_split(
                kept, test_size=self.validation_fraction, random_state=rng.randint(2**31 - 1)
            )
        train = X if held is None else X[kept]
        columns = transposed(train)

        def fit_one(place: int) -> Descent:
            y, weight = targets[place], weights[place]
            problem = self._problem(train, y[kept], None if weight is None else weight[kept])
            problem = problem._replace(columns=columns)
            watch = None if held is None else self._problem(X[held], y[held], None)
            start = self._start(place, X.shape[1])
            if self.batch_size is not None:
                return self._fit_sampled(problem, train, start, int(seeds[place]))
            return descend(
                problem, start, self._policy(), tol=self.tol,
                max_passes=self.max_iter, seed=int(seeds[place]),
                fit_intercept=self.fit_intercept, report=self._report(watch),
            )  # fmt: skip

        with ThreadPoolExecutor(min(len(targets), os.cpu_count() or 1)) as pool:
            descents = list(pool.map(fit_one, range(len(targets))))
        self._store([d.theta for d in descents], [d.weights for d in descents], X.shape[1])
        self.n_iter_ = max(d.n_passes for d in descents)
        self._stream: dict[str, Any] = {"n_calls": 0, "laws": [None] * len(targets)}
        if not all(d.converged for d in descents):
            warnings.warn(
                f"no convergence to tol={self.tol} in {self.max_iter} passes; "
                "raise max_iter, standardise the columns or penalise more",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _policy(self) -> Any:
        return NAMED[self.policy] if isinstance(self.policy, str) else self.policy

    def _start(self, place: int, n_features: int) -> Floats | None:
        """Return the last solution of a warm start, or nothing."""
        if not (self.warm_start and hasattr(self, "coef_")):
            return None
        coefs, intercepts = self._rows()
        if place >= len(coefs) or coefs.shape[1] != n_features:
            return None
        return np.append(coefs[place], intercepts[place : place + int(self.fit_intercept)])

    def _rows(self) -> tuple[Floats, Floats]:
        """Return the coefficients as dense rows, and the intercepts."""
        coefs = self.coef_.toarray() if sparse.issparse(self.coef_) else self.coef_
        return np.atleast_2d(coefs), np.atleast_1d(self.intercept_)

    def _report(self, watch: Problem | None) -> Report:
        """Return what is done at each stopping test: print, and watch the held-out loss."""
        best, waited = np.inf, 0

        def report(n_passes: int, gain: float, theta: Floats) -> bool:
            nonlocal best, waited
            if self.verbose:
                print(f"pass {n_passes}: possible gain {gain:.3g} of the best constant's loss")
            if watch is None:
                return False
            loss = float(objective(watch._replace(l2=0.0, l1=0.0), theta[None])[0])
            waited = 0 if loss < best * (1.0 - self.tol) else waited + 1
            best = min(best, loss)
            return waited >= self.n_iter_no_change

        return report

    def _fit_sampled(self, problem: Problem, X: Any, start: Floats | None, seed: int) -> Descent:
        """Run all passes with mini-batches; there is no stopping test under noise."""
        weights = problem.weights if len(problem.weights) > 0 else None
        result = solve(
            X, problem.targets, loss=self.loss, l2=problem.l2, l1=problem.l1, seed=seed,
            sample_weight=weights, fit_intercept=self.fit_intercept, epsilon=problem.epsilon,
            policy=self._policy(), learning_rate=self.learning_rate,
            batch_size=self.batch_size, n_passes=self.max_iter, record_every=None, start=start,
        )  # fmt: skip
        theta = np.append(result.coef, result.intercept if self.fit_intercept else [])
        return Descent(theta, self.max_iter, True, result.weights)

    def _stream_targets(self, X: Any, targets: list[Floats], weights: list[Any]) -> None:
        r"""Make one pass over the coordinates of a chunk with steps damped by :math:`t^{-0.7}`."""
        n_coords = X.shape[1] + int(self.fit_intercept)
        stream = self._stream
        stream["n_calls"] += 1
        columns = transposed(X)
        recipe = RECIPE.override(
            policy=self._policy(), learning_rate=Constant(stream["n_calls"] ** -FORGETTING)
        )
        rng = check_random_state(self.random_state)
        seeds = rng.randint(np.iinfo(np.int32).max, size=len(targets))
        coefs, intercepts = self._rows()
        thetas, laws = [], []
        for place, (y, weight) in enumerate(zip(targets, weights, strict=True)):
            problem = self._problem(X, y, weight)._replace(columns=columns)
            if self.loss == "hinge":
                problem = problem._replace(epsilon=0.1)
            start = np.append(coefs[place], intercepts[place : place + int(self.fit_intercept)])
            scale = inverse_smoothness(problem, n_coords, np.empty(0))
            seed = np.random.SeedSequence([int(seeds[place]), stream["n_calls"]])
            run = Run(problem, recipe, 0, True, start, seed, scale, True)
            if stream["laws"][place] is not None:
                run.state = stream["laws"][place]
            run.advance(
                Timetable(recipe, n_coords, n_coords, 1), 0, n_coords, n_coords,
                np.empty((0, n_coords)),
            )  # fmt: skip
            thetas.append(run.walk.theta)
            laws.append(run.state)
        stream["laws"] = laws
        policy = recipe.policy
        self._store(thetas, [policy.weights(law) for law in laws], X.shape[1])
        self.n_iter_ = 1

    def _store(self, thetas: list[Floats], weights: list[Floats], n_features: int) -> None:
        """Keep coefficients, intercepts and sampling weights, one row per target."""
        theta, law = np.stack(thetas), np.stack(weights)
        if not np.all(np.isfinite(theta)):
            raise FloatingPointError("the fit diverged; lower learning_rate or standardise X")
        self.coef_ = theta[:, :n_features]
        has = theta.shape[1] > n_features
        self.intercept_ = theta[:, n_features] if has else np.zeros(len(theta))
        self.sampling_weights_ = law[:, :n_features]
