"""Penalised linear models without intercept, as scgd.linear and scikit-learn both state them."""

import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """Mean loss plus (l2) reg / 2 |w|^2 or (l1) reg times its largest useful value times |w|_1."""

    name = "Penalised linear model"
    min_benchopt_version = "1.6"
    parameters = {
        "loss, penalty, reg": [
            ("squared", "l1", 0.1),
            ("squared", "l2", 1e-3),
            ("logistic", "l1", 0.1),
            ("logistic", "l2", 1e-3),
        ]
    }

    def set_data(self, X, y):
        """Take the data; signs of the targets are the labels of logistic regression."""
        self.X = X
        self.y = y if self.loss == "squared" else np.where(y > np.median(y), 1.0, -1.0)
        self.alpha = self.reg
        if self.penalty == "l1":
            slope = 0.5 if self.loss == "logistic" else 1.0
            self.alpha = self.reg * slope * np.abs(X.T @ self.y).max() / len(y)

    def evaluate_result(self, beta):
        """Return the objective."""
        margins = self.X @ beta
        if self.loss == "squared":
            loss = 0.5 * np.mean((margins - self.y) ** 2)
        else:
            loss = np.mean(np.logaddexp(0.0, -self.y * margins))
        norm = np.abs(beta).sum() if self.penalty == "l1" else 0.5 * beta @ beta
        return {"value": loss + self.alpha * norm}

    def get_one_result(self):
        """Return a result of the right shape."""
        return {"beta": np.zeros(self.X.shape[1])}

    def get_objective(self):
        """Return what solvers are given."""
        return {
            "X": self.X,
            "y": self.y,
            "loss": self.loss,
            "penalty": self.penalty,
            "alpha": self.alpha,
        }
