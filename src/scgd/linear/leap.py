r"""Newton steps on the coefficients in use: where the signs are right, the rest is linear algebra.

On the set *S* of non-zero coefficients the l1 penalty is linear while no sign changes, so the model
is least at the solution of :math:`(X_S^\top D X_S - q_S q_S^\top / Q + \lambda_2) d = -g_S`. A leap
goes there, or as far as the first coefficient that would change its sign, which then becomes zero
and leaves *S*. It saves the many sweeps that correlated columns need.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from scgd.linear.newton import factored
from scgd.linear.task import Task
from scgd.typing import Floats, Ints

__all__ = ["leap", "sweeps_before_leap"]

MOST_IN_USE = 1000
MOST_ENTRIES = 4_000_000
MOST_CORNERS = 10


def sweeps_before_leap(task: Task, n_used: int) -> float:
    """Return after how many sweeps a leap costs no more than they did; infinite if never."""
    if not 0 < n_used <= MOST_IN_USE or n_used * task.design.n_samples > MOST_ENTRIES:
        return np.inf
    return 3 + n_used / 40


def leap(
    task: Task, means: Floats, used: Ints, w: Floats, slopes: Floats, curve: Floats, total: float,
    offset: float,
) -> float:  # fmt: skip
    """Leap over ``used``, changing ``w`` and ``slopes`` in place; return the slopes' new offset."""
    A = task.design.X[:, used]
    A = np.asarray(A.toarray() if task.design.sparse else A, np.float64)
    A = A - means[used]
    products = curve @ A
    gram = (A.T * curve) @ A
    gram[np.diag_indices_from(gram)] += task.l2
    gradient = slopes @ A + offset * products + task.l2 * w[used]
    if total > 0.0:
        gram -= np.outer(products, products / total)
    moved = corners(gram, gradient, w[used], task.l1) - w[used]
    w[used] += moved
    slopes += curve * (A @ moved)
    return offset - float(products @ moved) / total if total > 0.0 else offset


def corners(gram: Floats, gradient: Floats, start: Floats, l1: float) -> Floats:
    """Return the least point of half w'Gw with an l1 penalty that keeps the signs of ``start``."""
    w, left = start.copy(), np.flatnonzero(start)
    for _ in range(MOST_CORNERS):
        slope = gradient + gram @ (w - start)
        block = np.asfortranarray(gram[np.ix_(left, left)])
        move = -linalg.cho_solve(factored(block), slope[left] + l1 * np.sign(w[left]))
        crossing = np.where(w[left] * move < 0.0, -w[left] / np.where(move == 0, 1, move), np.inf)
        first = int(crossing.argmin())
        if crossing[first] >= 1.0:
            w[left] += move
            break
        w[left] += crossing[first] * move
        w[left[first]] = 0.0
        left = np.delete(left, first)
        if len(left) == 0:
            break
    return w
