"""The augmented Lagrangian: one number for f, constraints and distance from the polyhedron."""

from __future__ import annotations

import numpy as np

from scgd.constraints.given import Constraints
from scgd.typing import Floats

TOLERANCE = 1e-8
"""A violation that counts as none."""
ENOUGH, FIRMER = 0.1, 10.0
"""What a round may leave of a violation, and how a weight grows where it leaves more."""
HEAVIEST = 1e12
"""How much heavier than at first a weight may become."""
NO_VALUE = np.inf


class Merit:
    r"""The augmented Lagrangian (Hestenes, Powell, Rockafellar) of residuals h = 0 and g <= 0.

    .. math::
        L = f + \sum_i \lambda_i h_i + \frac{\mu_i}{2} h_i^2
              + \sum_i \frac{1}{2\mu_i} \left( \max(0, \lambda_i + \mu_i (g_i + s_i))^2
              - \lambda_i^2 \right) + \frac{\mu_0}{2} |z - P(z)|^2

    After every round (a run of the method on L) the residuals at its answer give
    :math:`\lambda_i \leftarrow \lambda_i + \mu_i h_i`, or
    :math:`\max(0, \lambda_i + \mu_i (g_i + s_i))`; a weight :math:`\mu_i` grows where the round
    left too much of a violation, and the margin :math:`s_i` is what was violated last, so that
    answers come to lie inside.

    Parameters
    ----------
    constraints
        What must hold.
    n_coords
        The dimension.

    Attributes
    ----------
    vectors
        What was measured for the question that is being told: f, residuals, distance.
    """

    def __init__(self, constraints: Constraints, n_coords: int) -> None:
        self.constraints, self.equal, self.n_coords = constraints, constraints.equal, n_coords
        self.reset()

    def reset(self, start: Floats | None = None) -> None:
        """Forget everything that was measured; where nothing will be, the start is the answer."""
        m = len(self.equal)
        start = np.zeros(self.n_coords) if start is None else self.constraints.inside(start)
        self.vectors: Floats = np.empty((0, m + 2))
        self.multipliers, self.margins = np.zeros(m), np.zeros(m)
        self.weights, self.first, self.left = np.ones(m + 1), np.ones(m + 1), np.full(m, np.inf)
        self.seen: Floats = np.array([NO_VALUE, np.inf])  # value and violation of the best point
        self.seen_x = start.copy()
        self.answer: Floats = np.array([NO_VALUE, np.inf])  # the same of the best round's answer
        self.answer_x = start.copy()
        self.error: Floats = np.array([np.nan])  # of that value
        self.noisy: Floats = np.zeros(1)

    @property
    def size(self) -> int:
        """Numbers that an evaluation gives."""
        return len(self.equal) + 2

    def __call__(self, vectors: Floats) -> Floats:
        """Return the augmented Lagrangian of measurements, one per row."""
        residuals, mu, lam = vectors[:, 1:-1], self.weights[1:], self.multipliers
        zero = lam * residuals + 0.5 * mu * residuals**2
        push = np.maximum(0.0, lam + mu * (residuals + self.margins))
        below = (push**2 - lam**2) / (2 * mu)
        terms: Floats = np.where(self.equal, zero, below).sum(axis=1)
        total: Floats = vectors[:, 0] + terms + 0.5 * self.weights[0] * vectors[:, -1] ** 2
        return total

    def violations(self, vector: Floats) -> Floats:
        """Return by how much a measurement violates each constraint."""
        residuals = vector[1 : 1 + len(self.equal)]
        return np.asarray(np.where(self.equal, np.abs(residuals), np.maximum(residuals, 0.0)))

    def violation(self, vector: Floats) -> float:
        """Return the largest violation."""
        return float(self.violations(vector).max(initial=0.0))

    def offer(self, vector: Floats, z: Floats) -> None:
        """Take note of a measurement that was made at z."""
        if np.isfinite(vector).all():
            self._keep(self.seen, self.seen_x, float(vector[0]), self.violation(vector), z)

    def _keep(self, best: Floats, x: Floats, value: float, violation: float, z: Floats) -> bool:
        """Keep a point that is feasible and lower, or nearer to being feasible.

        Of two that are as good the first in the order of their numbers is kept, so that the order
        in which workers answer does not matter.
        """
        violation = 0.0 if violation <= TOLERANCE else violation
        found, known = (violation, value), (float(best[1]), float(best[0]))
        if found > known:
            return False
        point = self.constraints.inside(z)
        if found == known and point.tolist() >= x.tolist():
            return False
        best[:], x[:] = (value, violation), point
        return True

    def begin(self, steps: Floats) -> None:
        """Choose weights by how f and the residuals changed over some steps, one per row."""
        with np.errstate(all="ignore"):
            change = np.abs(self.vectors[1:] - self.vectors[0])
            seen = [column[np.isfinite(column)] for column in change.T]
            sizes = np.array([np.median(column) if column.size else 0.0 for column in seen])
        f = sizes[0] if sizes[0] > 0 else max(1.0, abs(float(np.nan_to_num(self.vectors[0, 0]))))
        g = np.where(sizes[1:-1] > 0, sizes[1:-1], 1.0)
        self.weights[1:] = f / g**2
        moved = float(np.median(np.sum(steps**2, axis=1)))
        self.weights[0] = 2 * f / moved if moved > 0 else f
        self.first[:] = self.weights

    def learn(self, z: Floats) -> None:
        """Take the measurements of a round's answer: keep it, change multipliers and weights."""
        vectors = self.vectors[np.isfinite(self.vectors).all(axis=1)]
        if not len(vectors):
            return
        mean, spread = vectors[0], np.zeros(self.size)
        if np.any(vectors != mean):
            mean = vectors.mean(axis=0)
            spread = vectors.std(axis=0, ddof=1) / np.sqrt(len(vectors))
            self.noisy[0] = 1.0
        residuals, errors = mean[1:-1], spread[1:-1]
        doubt = np.where(
            self.equal, np.maximum(0.0, np.abs(residuals) - errors), residuals - errors
        )
        violation = float(doubt.max(initial=0.0))
        if self._keep(self.answer, self.answer_x, float(mean[0]), violation, z):
            self.error[0] = spread[0]
        self._update(residuals, errors)

    def _update(self, residuals: Floats, errors: Floats) -> None:
        mu, lam = self.weights[1:], self.multipliers
        pushed = residuals + np.where(self.equal, 0.0, self.margins)
        left = np.abs(np.where(self.equal, residuals, np.maximum(pushed, -lam / mu)))
        new = lam + mu * pushed
        lam[:] = np.where(self.equal, new, np.maximum(0.0, new))
        slow = (left > ENOUGH * self.left) & (left > TOLERANCE / 10) & (left > errors)
        mu[:] = np.minimum(np.where(slow, FIRMER * mu, mu), HEAVIEST * self.first[1:])
        self.left[:] = left
        self.margins[:] = np.where(self.equal, 0.0, np.maximum(0.0, residuals) + errors)

    @property
    def best(self) -> tuple[Floats, float, float, float]:
        """The recommended point, its value, the standard error of that, and its violation."""
        known = np.isfinite(self.answer[1])
        if (self.noisy[0] and known) or not np.isfinite(self.seen[1]):
            value, violation = map(float, self.answer)
            return self.answer_x, value, float(self.error[0]), violation
        return self.seen_x, float(self.seen[0]), 0.0, float(self.seen[1])

    @property
    def feasible(self) -> bool:
        """Whether the recommended point is feasible."""
        return self.best[3] == 0.0
