r"""Quadratic models of f and of every constraint, and the minimum of one under the others.

With a step :math:`h_k` along each coordinate, the values at :math:`x`, :math:`x \pm h_k e_k` and
:math:`x + h_k e_k + h_l e_l` give slopes and second derivatives of everything that an evaluation
measures: :math:`1 + 2p + p(p-1)/2` evaluations, whatever the number of constraints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scgd.typing import Array, Floats

__all__ = ["Surface", "n_points", "pattern"]

ACTIVE = 1e-6
"""Residuals above minus this, in units of their slope, may push back."""
FLATTEST = 1e-8
"""The least curvature that counts, in units of the largest."""


def n_points(p: int) -> int:
    """Return the evaluations of a model.

    Examples
    --------
    >>> n_points(10)
    66
    """
    return 1 + 2 * p + p * (p - 1) // 2


def pattern(p: int) -> Floats:
    """Return where to evaluate, in steps: the centre, both sides of it, and the pairs.

    Examples
    --------
    >>> pattern(2)
    array([[ 0.,  0.],
           [ 1.,  0.],
           [ 0.,  1.],
           [-1., -0.],
           [-0., -1.],
           [ 1.,  1.]])
    """
    eye: Floats = np.eye(p)
    first, second = np.triu_indices(p, 1)
    return np.concatenate([np.zeros((1, p)), eye, -eye, eye[first] + eye[second]])


@dataclass(frozen=True)
class Surface:
    """Models of f (first) and of residuals, in steps from the centre.

    Attributes
    ----------
    values, slopes, bends
        What was measured at the centre, and the derivatives.
    equal
        Which residuals must be zero; the others must not be positive.
    """

    values: Floats
    slopes: Floats
    bends: Floats
    equal: Array

    @classmethod
    def fitted(cls, measured: Floats, p: int, equal: Array) -> Surface:
        """Return the models through measurements at the points of :func:`pattern`."""
        centre, plus, minus, pairs = np.split(measured, [1, 1 + p, 1 + 2 * p])
        bends = np.zeros((measured.shape[1], p, p))
        first, second = np.triu_indices(p, 1)
        mixed = pairs - plus[first] - plus[second] + centre
        bends[:, first, second] = bends[:, second, first] = mixed.T
        bends[:, range(p), range(p)] = (plus + minus - 2 * centre).T
        return cls(centre[0], (0.5 * (plus - minus)).T, bends, equal)

    def at(self, d: Floats) -> Floats:
        """Return f and the residuals, as the models have them."""
        bent = self.bends @ d
        return np.asarray(self.values + self.slopes @ d + 0.5 * bent @ d, np.float64)

    def slope(self, d: Floats) -> Floats:
        """Return their derivatives."""
        return np.asarray(self.slopes + self.bends @ d, np.float64)

    def step(self, low: Floats, high: Floats) -> Floats:
        """Return where f is lowest within a box and the residuals are as they must be."""
        from scipy.optimize import minimize

        width = float(np.maximum(-low, high).max())
        size = np.abs(self.slopes).sum(axis=1) + 0.5 * np.abs(self.bends).sum(axis=(1, 2)) * width
        size = np.where(size > 0, size * width, 1.0)

        def part(which: Any, sign: float) -> dict[str, Any]:
            def fun(u: Floats) -> Floats:
                return np.asarray(sign * (self.at(width * u) / size)[1:][which])

            def jac(u: Floats) -> Floats:
                return np.asarray(sign * width * (self.slope(width * u) / size[:, None])[1:][which])

            return {"type": "eq" if sign > 0 else "ineq", "fun": fun, "jac": jac}

        limits = [part(self.equal, 1.0)] if self.equal.any() else []
        limits += [part(~self.equal, -1.0)] if (~self.equal).any() else []
        with np.errstate(all="ignore"):
            found = minimize(
                lambda u: float(self.at(width * u)[0] - self.values[0]) / size[0],
                np.zeros(len(low)), jac=lambda u: width * self.slope(width * u)[0] / size[0],
                method="SLSQP", bounds=list(zip(low / width, high / width, strict=True)),
                constraints=limits, options={"ftol": 1e-15, "maxiter": 100},
            )  # fmt: skip
        d = np.clip(width * found.x, low, high)
        return d if np.isfinite(d).all() else np.zeros(len(low))

    def multipliers(self, d: Floats) -> Floats:
        """Return how hard each residual pushes back at d, as if that were the minimum."""
        from scipy.optimize import nnls

        values, slopes = self.at(d)[1:], self.slope(d)
        size = np.abs(slopes[1:]).sum(axis=1) + 1e-300
        pushing = self.equal | (values >= -ACTIVE * size)
        found = np.zeros(len(values))
        if pushing.any():  # equations push either way
            columns = np.concatenate([slopes[1:][pushing], -slopes[1:][self.equal]]).T
            pushes, _ = nnls(columns, -slopes[0], maxiter=50 * columns.shape[1])
            found[pushing] = pushes[: int(pushing.sum())]
            found[self.equal] -= pushes[int(pushing.sum()) :]
        return found

    def metric(self, d: Floats, multipliers: Floats, *, turned: bool) -> Floats:
        """Return directions, as columns, along which the Lagrangian bends alike; 1 is the longest.

        Parameters
        ----------
        d, multipliers
            Where, and how much each residual counts.
        turned
            Whether directions may be others than the coordinates'.
        """
        bends = self.bends[0] + np.tensordot(multipliers, self.bends[1:], 1)
        if not turned:
            bends = np.diag(np.diag(bends))
        sizes, directions = np.linalg.eigh(bends)
        sizes = np.abs(sizes)
        sizes = np.maximum(sizes, FLATTEST * max(float(sizes.max()), 1e-300))
        if not turned:
            sizes, directions = np.diag(directions @ np.diag(sizes) @ directions.T), np.eye(len(d))
        return np.asarray(directions * np.sqrt(sizes.min() / sizes), np.float64)
