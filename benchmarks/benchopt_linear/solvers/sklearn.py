"""scikit-learn's solver of each problem: coordinate descent, Cholesky, saga and lbfgs."""

import warnings

import numpy as np
from benchopt import BaseSolver
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LogisticRegression, Ridge


class Solver(BaseSolver):
    """One fit with at most as many iterations as benchopt asks for."""

    name = "sklearn"
    sampling_strategy = "iteration"
    requirements = ["scikit-learn"]

    def set_objective(self, X, y, loss, penalty, alpha):
        """Make the estimator; its penalty is written in its own units."""
        self.X, self.y = X, y
        n = len(y)
        if loss == "logistic":
            share, solver = (1.0, "saga") if penalty == "l1" else (0.0, "lbfgs")
            self.model = LogisticRegression(
                C=1.0 / (n * alpha), l1_ratio=share, solver=solver, fit_intercept=False, tol=1e-12
            )
        elif penalty == "l1":
            self.model = Lasso(alpha=alpha, fit_intercept=False, tol=1e-12)
        else:
            self.model = Ridge(alpha=n * alpha, fit_intercept=False, solver="cholesky")

    def run(self, n_iter):
        """Make so many iterations from zero."""
        self.beta = np.zeros(self.X.shape[1])
        if n_iter > 0:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                fit = self.model.set_params(max_iter=n_iter).fit(self.X, self.y)
            self.beta = fit.coef_.ravel()

    def get_result(self):
        """Return the coefficients."""
        return {"beta": self.beta}
