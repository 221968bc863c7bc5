"""Gaussian data whose columns are correlated and of uneven size."""

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Rows of an autoregressive process times scales that fall as a power of the column."""

    name = "Simulated"
    parameters = {
        "n_samples, n_features": [(500, 100), (100, 1000)],
        "rho": [0.5],
        "decay": [0.5],
        "seed": [0],
    }

    def get_data(self):
        """Return X and y; a tenth of the columns matter."""
        rng = np.random.default_rng(self.seed)
        X = rng.normal(size=(self.n_samples, self.n_features))
        for k in range(1, self.n_features):
            X[:, k] = self.rho * X[:, k - 1] + np.sqrt(1 - self.rho**2) * X[:, k]
        X *= np.arange(1, self.n_features + 1) ** -self.decay
        beta = np.where(rng.random(self.n_features) < 0.1, rng.normal(size=self.n_features), 0.0)
        beta[0] = 1.0
        signal = X @ beta
        return {"X": X, "y": signal + 0.1 * signal.std() * rng.normal(size=self.n_samples)}
