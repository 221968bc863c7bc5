r"""Interpolation by the quadratic whose Hessian changes least, kept by updates of an inverse.

Among the quadratics :math:`q` that have given values at m points, n + 2 to (n + 1)(n + 2) / 2, take
the one whose Hessian differs least from that of the model before, in the Frobenius norm. The change
is :math:`c + g^T y + \frac12 \sum_j \lambda_j (y_j^T y)^2`, where

.. math::

    \begin{pmatrix} A & 1 & Y \\ 1^T & 0 & 0 \\ Y^T & 0 & 0 \end{pmatrix}
    \begin{pmatrix} \lambda \\ c \\ g \end{pmatrix} = \begin{pmatrix} r \\ 0 \\ 0 \end{pmatrix},
    \qquad A_{ij} = \tfrac12 (y_i^T y_j)^2,

and r are the values less those of the model before. Columns of the inverse hold the Lagrange
functions. A new point changes one row and one column of the matrix, so its inverse changes by a
matrix of rank two (Powell, Mathematical Programming 100, 2004).
"""

from __future__ import annotations

import numpy as np

from scgd.typing import Floats

__all__ = ["Interpolation"]


class Interpolation:
    """Points, their values, and the quadratic through them.

    Parameters
    ----------
    base
        The origin: points and the quadratic are given relative to it.
    points
        One per row, relative to the base.
    values
        Finite values.

    Attributes
    ----------
    slope, hessian
        The gradient at the base, and the second derivatives.
    best
        The row of the lowest value.

    Examples
    --------
    >>> points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> model = Interpolation(np.zeros(2), points, (points - 0.5) ** 2 @ np.array([1.0, 2.0]))
    >>> model.gradient().round(9), np.diagonal(model.hessian).round(9)
    (array([-1., -2.]), array([2., 4.]))
    """

    def __init__(self, base: Floats, points: Floats, values: Floats) -> None:
        self.base, self.points, self.values = base, points, values
        n = base.size
        self.slope, self.hessian = np.zeros(n), np.zeros((n, n))
        self.best = int(values.argmin())
        self.sound = self.factorise()

    @property
    def at(self) -> Floats:
        """The best point, relative to the base."""
        at: Floats = self.points[self.best]
        return at

    @property
    def lowest(self) -> float:
        """The lowest value."""
        return float(self.values[self.best])

    def factorise(self) -> bool:
        """Invert the matrix anew and let the model meet all values; tell whether that worked."""
        y, m = self.points, len(self.points)
        matrix = np.zeros((m + 1 + y.shape[1],) * 2)
        matrix[:m, :m] = 0.5 * (y @ y.T) ** 2
        matrix[:m, m] = matrix[m, :m] = 1.0
        matrix[:m, m + 1 :], matrix[m + 1 :, :m] = y, y.T
        unit = np.ones(len(matrix))
        for _ in range(3):  # rows of about equal size: points may lie at very different distances
            size = np.abs(matrix * unit).max(axis=1) * unit
            unit /= np.sqrt(np.where(size > 0, size, 1.0))
        try:
            inverse = np.linalg.inv(unit[:, None] * matrix * unit)
        except np.linalg.LinAlgError:
            return False
        inverse = unit[:, None] * inverse * unit
        self.inverse = 0.5 * (inverse + inverse.T)
        self.add(self.values - self.lowest - self.rise(y))
        return bool(np.isfinite(self.inverse).all() and np.isfinite(self.hessian).all())

    def add(self, residuals: Floats) -> None:
        """Add the quadratic of least Hessian with these values at the points."""
        m = len(self.points)
        change = self.inverse[:, :m] @ residuals
        self.slope = self.slope + change[m + 1 :]
        self.hessian = self.hessian + (self.points.T * change[:m]) @ self.points

    def gradient(self) -> Floats:
        """Return the gradient of the quadratic at the best point."""
        return self.slope + self.hessian @ self.at

    def rise(self, y: Floats) -> Floats:
        """Return by how much the quadratic lies above its value at the best point."""
        d = y - self.at
        rise: Floats = d @ self.gradient() + 0.5 * ((d @ self.hessian) * d).sum(axis=-1)
        return rise

    def move_base(self) -> None:
        """Let the best point be the origin: less is lost to rounding near it."""
        at = self.at.copy()
        self.slope = self.slope + self.hessian @ at
        self.base, self.points = self.base + at, self.points - at
        self.sound = self.factorise()

    def lagrange(self, t: int) -> tuple[Floats, Floats]:
        """Return the gradient at the best point, and the Hessian, of a Lagrange function.

        It is 1 at point t and 0 at all others.
        """
        m = len(self.points)
        hessian = (self.points.T * self.inverse[:m, t]) @ self.points
        return self.inverse[m + 1 :, t] + hessian @ self.at, hessian

    def least_gradient(self) -> Floats:
        """Return the gradient at the best point of the interpolant with the least Hessian."""
        m = len(self.points)
        change = self.inverse[:, :m] @ (self.values - self.lowest)
        slope: Floats = change[m + 1 :] + self.points.T @ (change[:m] * (self.points @ self.at))
        return slope

    def forget(self) -> None:
        """Take the interpolant with the least Hessian as the model."""
        self.slope, self.hessian = np.zeros_like(self.slope), np.zeros_like(self.hessian)
        self.add(self.values - self.lowest)

    def denominators(self, y: Floats) -> tuple[Floats, Floats, float]:
        """Return what each point's exchange for y divides by, and what :meth:`replace` needs.

        For t these are alpha beta + tau^2, where tau is the value of its Lagrange function at y;
        the larger, the better the set after it. Beyond rounding none is below tau^2.
        """
        m = len(self.points)
        w = np.concatenate([0.5 * (self.points @ y) ** 2, [1.0], y])
        image = self.inverse @ w
        beta = 0.5 * float(y @ y) ** 2 - float(w @ image)
        return np.diagonal(self.inverse)[:m] * beta + image[:m] ** 2, image, beta

    def replace(self, t: int, y: Floats, value: float, image: Floats, beta: float) -> None:
        """Exchange point t for y, whose value is known."""
        m = len(self.points)
        error = value - self.lowest - float(self.rise(y))
        alpha, tau = self.inverse[t, t], image[t]
        column, other = self.inverse[:, t].copy(), -image
        other[t] += 1.0
        pair = np.stack([other, column])
        middle = np.array([[alpha, tau], [tau, -beta]]) / (alpha * beta + tau * tau)
        self.inverse += pair.T @ (middle @ pair)
        self.points[t], self.values[t] = y, value
        change = error * self.inverse[:, t]
        self.slope = self.slope + change[m + 1 :]
        self.hessian = self.hessian + (self.points.T * change[:m]) @ self.points
        if value < self.lowest:
            self.best = t
