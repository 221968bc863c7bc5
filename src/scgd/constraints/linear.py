r"""Linear constraints and bounds by projection: whatever a search asks for is evaluated inside.

The search moves freely in R^p and f is evaluated at the nearest point of the polyhedron

.. math:: P(z) = \arg\min_x \{ |x - z| : A_{=} x = b,\ l \le A x \le u,\ \ell \le x \le \upsilon \},

so every evaluation is feasible to rounding, and f(P(z)) has the same minima.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.typing import Array, Floats

FEASIBLE = 1e-9
"""Violation, relative to the size of the numbers, that counts as rounding."""


class Polyhedron:
    """A polyhedron, and the nearest of its points.

    Parameters
    ----------
    rows, low, high
        Linear constraints ``low <= rows @ x <= high``.
    lower, upper
        Bounds of the coordinates, infinite where there are none.

    Examples
    --------
    >>> simplex = Polyhedron(np.ones((1, 3)), [1.0], [1.0], np.zeros(3), np.full(3, np.inf))
    >>> simplex(np.array([2.0, 1.5, -1.0]))
    array([0.75, 0.25, 0.  ])
    """

    def __init__(self, rows: Any, low: Any, high: Any, lower: Floats, upper: Floats) -> None:
        self.rows: Floats = np.asarray(rows, np.float64)
        self.low: Floats = np.asarray(low, np.float64)
        self.high: Floats = np.asarray(high, np.float64)
        self.lower, self.upper = lower, upper
        equal = self.low == self.high
        self.equal, self.goal = self.rows[equal], self.low[equal]
        self.single = len(self.rows) == 1 and bool(self.rows.any())
        self._eliminate(self.rows[~equal], self.low[~equal], self.high[~equal])

    def _eliminate(self, rows: Floats, low: Floats, high: Floats) -> None:
        """Write the polyhedron as x = origin + basis w with inequalities for w."""
        p = self.lower.size
        self.origin, self.basis = np.zeros(p), np.eye(p)
        if len(self.equal):
            self.origin = np.linalg.lstsq(self.equal, self.goal, rcond=None)[0]
            _, sizes, right = np.linalg.svd(self.equal)
            rank = int(np.sum(sizes > 1e-12 * max(sizes.max(initial=0.0), 1e-300)))
            self.basis = right[rank:].T
        eye: Array = np.eye(p)
        normals = np.concatenate([rows, -rows, eye, -eye])
        least = np.concatenate([low, -high, self.lower, -self.upper])
        real = np.isfinite(least)
        self.normals, self.least = normals[real], least[real]
        self.inner = self.normals @ self.basis

    def violation(self, x: Floats) -> float:
        """Return by how much the worst of the constraints is missed."""
        missed = [0.0, *(self.least - self.normals @ x), *np.abs(self.equal @ x - self.goal)]
        return float(max(missed))

    def __call__(self, z: Floats) -> Floats:
        """Return the nearest point; bounds hold exactly, the rest to rounding."""
        x = self._on_one_row(z) if self.single else self._in_general(z)
        return np.clip(x, self.lower, self.upper)

    def _on_one_row(self, z: Floats) -> Floats:
        """Return the nearest point where there is one row: x = clip(z - t a), t by sorting.

        a @ x falls with t, linearly between the values of t at which a coordinate meets a bound.
        """
        a, low, high = self.rows[0], float(self.low[0]), float(self.high[0])
        x: Floats = np.clip(z, self.lower, self.upper)
        if low <= a @ x <= high:
            return x
        b = low if a @ x < low else high
        inside: Floats = z - a * ((a @ z - b) / (a @ a))
        if np.all((inside >= self.lower) & (inside <= self.upper)):
            return inside
        used = a != 0
        with np.errstate(invalid="ignore"):
            meets = np.concatenate([(z - w)[used] / a[used] for w in (self.lower, self.upper)])
        knots = np.sort(meets[np.isfinite(meets)])

        def at(t: float) -> float:
            return float(a @ np.clip(z - t * a, self.lower, self.upper)) - b

        first, last = 0, len(knots)  # knots before first are too small, from last on too large
        while first < last:
            middle = (first + last) // 2
            first, last = (middle + 1, last) if at(knots[middle]) > 0 else (first, middle)
        left = knots[first - 1] if first else knots[0] - 1.0
        right = knots[first] if first < len(knots) else knots[-1] + 1.0
        above, below = at(left), at(right)
        t = left if above == below else left + (right - left) * above / (above - below)
        nearest: Floats = np.clip(z - t * a, self.lower, self.upper)
        return nearest

    def _in_general(self, z: Floats) -> Floats:
        """Return the nearest point by Lawson and Hanson's least-distance programming."""
        from scipy.optimize import nnls

        w = self.basis.T @ (z - self.origin)
        missing = self.least - self.normals @ self.origin - self.inner @ w
        if not len(missing) or missing.max() <= 0:
            return self.origin + self.basis @ w
        size = float(np.abs(missing).max())
        system = np.concatenate([self.inner.T, missing[None] / size])
        goal = np.zeros(len(system))
        goal[-1] = 1.0
        weights, _ = nnls(system, goal, maxiter=30 * len(missing))
        rest = system @ weights - goal
        if rest[-1] >= -1e-14:
            return self.origin + self.basis @ w  # nobody can do better: it is empty
        nearest: Floats = self.origin + self.basis @ (w - size * rest[:-1] / rest[-1])
        return nearest

    def check(self, x0: Floats) -> Floats:
        """Return the start, moved inside; refuse a polyhedron without a point."""
        x = self(x0)
        missed = self.violation(x)
        if missed > FEASIBLE * max(
            1.0, float(np.abs(x).max()), float(np.abs(self.least).max(initial=0))
        ):
            raise ValueError(
                "constraints and bounds leave no point: the nearest one misses them by "
                f"{missed:.3g}; relax one of them"
            )
        return x
