"""A Gaussian process on the unit cube with its levels, with a length per coordinate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from scgd.blas import one_thread
from scgd.spaces import Grid
from scgd.typing import Floats

LENGTH, SPREAD = 0.5, 1.0
"""Prior of a length: log-normal around half the root of the dimension (as distances in a cube
grow), wide enough for a factor of three either way."""
NUGGET, NUGGET_SPREAD = 1e-3, 2.0
"""Prior of the noise, in units of the signal's variance: log-normal; most have hardly any."""
BOUNDS = (math.log(0.02), math.log(50.0))
"""Shorter, and points tell nothing of each other; longer, and the coordinate does nothing."""
NUGGET_BOUNDS = (math.log(1e-6), math.log(2.0))
STEPS = 12
"""Steps of L-BFGS per fit, which begins where the last one ended."""


class GaussianProcess:
    r"""Matérn-5/2 with a length per coordinate and a nugget, fitted by maximum a posteriori.

    .. math:: k(r) = (1 + \sqrt5 r + 5 r^2 / 3)\,e^{-\sqrt5 r}, \quad
              r^2 = \sum_k (a_k - b_k)^2 / \ell_k^2,

    where a choice counts :math:`1 / \ell_k^2` if it differs. The variance of the signal is the one
    that maximises the likelihood, given the rest.

    Parameters
    ----------
    grid
        The cube.

    Attributes
    ----------
    theta
        Logarithms of the lengths and, last, of the nugget: all that is kept from fit to fit.
    fitted
        The mean at the points that were taken in.
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        centre = math.log(LENGTH * math.sqrt(grid.n_coords))
        self.prior: Floats = np.append(np.full(grid.n_coords, centre), math.log(NUGGET))
        self.spread: Floats = np.append(np.full(grid.n_coords, SPREAD), NUGGET_SPREAD)
        self.theta: Floats = self.prior.copy()

    @property
    def nugget(self) -> float:
        """The variance of the noise, in units of the signal's."""
        return math.exp(self.theta[-1])

    @property
    def relevance(self) -> Floats:
        """What share each coordinate has in what the model sees vary."""
        weights = np.exp(-2.0 * self.theta[:-1])
        return np.asarray(weights / weights.sum(), np.float64)

    def gaps(self, a: Floats, b: Floats) -> Floats:
        """Return squared differences by coordinate, one matrix each (flat)."""
        gaps = (a.T[:, :, None] - b.T[:, None, :]) ** 2
        choices = self.grid.categorical
        gaps[choices] = gaps[choices] > 0
        return gaps.reshape(len(gaps), -1)

    @one_thread()
    def optimise(self, points: Floats, values: Floats, counts: Floats) -> None:
        """Fit lengths and nugget to values that are means of so many observations."""
        from scipy.optimize import minimize

        gaps, centred = self.gaps(points, points), values - values.mean()
        limits = [BOUNDS] * self.grid.n_coords + [NUGGET_BOUNDS]
        found = minimize(
            self.posterior, self.theta, (gaps, centred, counts), jac=True, method="L-BFGS-B",
            bounds=limits, options={"maxiter": STEPS, "maxfun": 2 * STEPS},
        )  # fmt: skip
        if np.isfinite(found.x).all():
            self.theta = found.x

    def posterior(
        self, theta: Floats, gaps: Floats, values: Floats, counts: Floats
    ) -> tuple[float, Floats]:
        """Return minus the logarithm of the posterior, and its gradient."""
        from scipy.linalg import lapack

        n, noise = len(values), math.exp(theta[-1])
        weights = np.exp(-2.0 * theta[:-1])
        kernel, falls = (part.reshape(n, n) for part in matern(weights @ gaps))
        kernel[np.diag_indices(n)] += noise / counts
        factor, failed = lapack.dpotrf(kernel, lower=1)
        if failed:
            return 1e25, np.zeros(theta.size)
        inverse, _ = lapack.dpotri(factor, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        alpha = inverse @ values
        signal = max(float(values @ alpha) / n, 1e-300)
        off = (theta - self.prior) / self.spread
        level = 0.5 * n * math.log(signal) + float(np.log(np.diag(factor)).sum())
        # d(posterior)/dK, by which the derivatives of K are weighted
        outer = 0.5 * (inverse - np.outer(alpha, alpha) / signal)
        gradient = np.append(
            weights * (gaps @ (outer * falls).ravel()), noise * (np.diag(outer) / counts).sum()
        )
        return level + 0.5 * float(off @ off), gradient + off / self.spread

    @one_thread()
    def condition(self, points: Floats, values: Floats, counts: Floats) -> None:
        """Take values in, with lengths and nugget as they are."""
        from scipy.linalg import cho_solve, cholesky

        self.points, self.mean = points, float(values.mean())
        kernel, noise = self.kernel(points, points), self.nugget / counts
        kernel[np.diag_indices(len(points))] += noise
        self.factor = cholesky(kernel, lower=True, check_finite=False)
        centred = values - self.mean
        self.alpha = cho_solve((self.factor, True), centred, check_finite=False)
        self.fitted = values - noise * self.alpha
        self.signal = max(float(centred @ self.alpha) / len(points), 1e-300)

    def kernel(self, a: Floats, b: Floats) -> Floats:
        """Return the correlations between points."""
        squares = np.exp(-2.0 * self.theta[:-1]) @ self.gaps(a, b)
        return matern(squares)[0].reshape(len(a), len(b))

    @one_thread()
    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the signal at points."""
        from scipy.linalg import solve_triangular

        kernel = self.kernel(self.points, points)
        half = solve_triangular(self.factor, kernel, lower=True, check_finite=False)
        left = np.maximum(1.0 - (half**2).sum(axis=0), 1e-12)
        return self.mean + kernel.T @ self.alpha, np.sqrt(self.signal * left)


def matern(squares: Floats) -> tuple[Floats, Floats]:
    """Return k at squared distances, and -2 times its derivative by them."""
    root = np.sqrt(5.0 * squares)
    decay = np.exp(-root)
    return (1.0 + root + root**2 / 3.0) * decay, (5.0 / 3.0) * (1.0 + root) * decay


def expected_improvement(best: float, mean: Floats, deviation: Floats) -> Any:
    r"""Return the logarithm of the expected improvement on a value.

    .. math:: E[(b - Y)^+] = \sigma\,(\varphi(z) + z\,\Phi(z)), \quad z = (b - \mu) / \sigma.

    Examples
    --------
    >>> float(np.exp(expected_improvement(0.0, np.zeros(1), np.ones(1)))[0])  # 1 / sqrt(2 pi)
    0.398942...
    """
    from scipy.special import erfcx

    z = np.minimum((best - mean) / deviation, 30.0)  # more is certain, and the next would overflow
    # phi (1 + z Phi / phi): the ratio by the scaled erfc, as both vanish far below the best
    ratio = math.sqrt(math.pi / 2) * erfcx(-z / math.sqrt(2))
    part = np.log(np.maximum(1.0 + z * ratio, 1e-300))
    return np.log(deviation) - 0.5 * z**2 - 0.5 * math.log(2 * math.pi) + part
