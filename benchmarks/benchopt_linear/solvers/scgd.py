"""scgd's estimators: passes over the coordinates, sampled by the policy."""

import warnings

import numpy as np
from benchopt import BaseSolver
from sklearn.exceptions import ConvergenceWarning

from scgd.linear import SCGDClassifier, SCGDRegressor


class Solver(BaseSolver):
    """One fit with as many passes as benchopt asks for."""

    name = "scgd"
    sampling_strategy = "iteration"
    requirements = ["pip::scgd"]
    parameters = {"policy": ["adaptive", "musketeer", "uniform"]}
    references = [
        'Leluc, R., Portier, F. "SGD with Coordinate Sampling: Theory and Practice". JMLR 23 (2022)'
    ]

    def set_objective(self, X, y, loss, penalty, alpha):
        """Make the estimator."""
        self.X, self.y = X, y
        kind = SCGDRegressor if loss == "squared" else SCGDClassifier
        self.model = kind(
            loss=loss,
            penalty=penalty,
            alpha=alpha,
            fit_intercept=False,
            policy=self.policy,
            tol=0.0,
            random_state=0,
        )

    def warm_up(self):
        """Compile before time is taken."""
        self.run(1)

    def run(self, n_iter):
        """Make so many passes from zero."""
        self.beta = np.zeros(self.X.shape[1])
        if n_iter > 0:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                fit = self.model.set_params(max_iter=n_iter).fit(self.X, self.y)
            self.beta = fit.coef_.ravel()

    def get_result(self):
        """Return the coefficients."""
        return {"beta": self.beta}
