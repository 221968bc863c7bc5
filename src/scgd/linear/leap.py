r"""Coefficients in use among themselves: where few are left, their products say it all.

On the set *S* of non-zero coefficients the model of the risk is
:math:`\frac12 d^\top G d + g_S^\top d` with
:math:`G = X_S^\top D X_S - q_S q_S^\top / Q + \lambda_2`. Once :math:`G` is there, a sweep over *S*
reads no data. A leap makes such sweeps, and where they are slow (correlated columns) a Newton step
between them: while no sign changes the l1 penalty is linear. It goes as far as the first
coefficient that would change its sign, which then becomes zero.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from scgd.compiling import njit
from scgd.linear.data import REASSOCIATE, Data
from scgd.linear.newton import factored
from scgd.linear.sweeps import correlate
from scgd.linear.task import Task
from scgd.typing import Floats, Ints

MOST_IN_USE = 1000
MOST_ENTRIES = 1_000_000
SWEEPS, ROUNDS = 20, 10


def sweeps_before_leap(task: Task, n_used: int) -> float:
    """Return after how many sweeps a leap costs no more than they did; infinite if never."""
    if not 0 < n_used <= MOST_IN_USE or n_used * task.design.n_samples > MOST_ENTRIES:
        return np.inf
    return 2 + n_used / 40


class Products:
    """Columns times the roots of curvatures, written out, and their products with each other.

    Parameters
    ----------
    task, means, columns
        Whose columns, what is taken from each, and those at hand.
    curve, total
        Curvatures of the samples, and their sum or, without an intercept, 0.
    """

    def __init__(
        self, task: Task, means: Floats, columns: Data, curve: Floats, total: float
    ) -> None:
        self.task, self.means, self.columns, self.total = task, means, columns, total
        self.root = np.sqrt(curve)
        self.forget()

    def forget(self) -> None:
        """Start anew."""
        self.place = np.full(self.task.design.n_features, -1)
        self.rows, self.gram = np.empty((0, len(self.root))), np.empty((0, 0))

    def meet(self, used: Ints) -> Ints:
        """Make the products of these columns known; return where they are."""
        if len(self.gram) > max(2 * len(used), MOST_IN_USE):
            self.forget()
        new, known = used[self.place[used] < 0], len(self.gram)
        if len(new) > 0:
            rows = self.task.design.column_rows(new, self.columns)
            rows -= self.means[new, None]
            rows *= self.root  # then a product with itself takes half the work
            gram = np.empty((known + len(new),) * 2)
            gram[:known, :known] = self.gram
            gram[known:, :known] = rows @ self.rows.T
            gram[:known, known:] = gram[known:, :known].T
            gram[known:, known:] = rows @ rows.T
            self.place[new] = known + np.arange(len(new))
            self.rows, self.gram = np.concatenate([self.rows, rows]), gram
        return np.asarray(self.place[used])

    def changes(self, where: Ints, moved: Floats) -> Floats:
        """Return what moves along the columns at ``where`` add to the slopes."""
        moves = np.zeros(len(self.rows))
        moves[where] = moved
        return np.asarray(self.root * (moves @ self.rows))


def leap(
    known: Products, used: Ints, w: Floats, slopes: Floats, offset: float, enough: float
) -> float:
    """Leap over ``used``, changing ``w`` and ``slopes`` in place; return the slopes' new offset."""
    task, where, total = known.task, known.meet(used), known.total
    gram = known.gram[np.ix_(where, where)]
    gram[np.diag_indices_from(gram)] += task.l2
    gradient = np.empty(len(used))
    correlate(*known.columns, known.means, used, slopes, gradient)
    gradient += task.l2 * w[used]
    if total > 0.0:
        products = (known.rows @ known.root)[where]
        gram -= np.outer(products, products / total)
        gradient += offset * products
    here = w[used]
    settle(gram, gradient, here, task.l1, enough)
    moved = here - w[used]
    w[used] = here
    slopes += known.changes(where, moved)
    return offset - float(products @ moved) / total if total > 0.0 else offset


def settle(gram: Floats, slope: Floats, w: Floats, l1: float, enough: float) -> None:
    """Minimise the model from ``w``, in place, until a sweep gains no more than ``enough``.

    A Newton step comes before it ends: sweeps along correlated columns gain little everywhere.
    """
    for n in range(ROUNDS):
        if settling_sweeps(gram, slope, w, l1, SWEEPS, enough) and n > 0:
            return
        stopped = True
        while stopped:  # by a coefficient that changes its sign, and is zero then
            left = np.flatnonzero(w)
            if len(left) == 0:
                return
            block = np.asfortranarray(gram[np.ix_(left, left)])
            force = slope[left] + l1 * np.sign(w[left])
            move = -linalg.cho_solve(factored(block), force, check_finite=False)
            there = bounded(w[left], move, block, force, l1) if l1 > 0.0 else w[left] + move
            slope += gram[:, left] @ (there - w[left])
            w[left] = there
            stopped = bool(np.any(there == 0.0))


def bounded(w: Floats, move: Floats, block: Floats, force: Floats, l1: float) -> Floats:
    """Return where a Newton step may go: no sign changes.

    All coefficients that would change theirs become zero if that is better than going only as far
    as the first of them.
    """
    whole, there = w + move, w + move
    crossed = w * whole < 0.0
    if crossed.any():
        lengths = np.where(crossed, -w / np.where(crossed, move, 1.0), np.inf)
        first = int(lengths.argmin())
        part = float(lengths[first])
        there = w + part * move
        there[first] = 0.0
        whole[crossed] = 0.0
        step = whole - w
        # force is the gradient of the model and of the penalty, which is linear without a change
        if force @ step + 0.5 * step @ block @ step < part * (1.0 - 0.5 * part) * (force @ move):
            return whole
    return there


@njit(cache=True, error_model="numpy", fastmath=REASSOCIATE, nogil=True)
def settling_sweeps(gram, slope, w, l1, most, enough):  # type: ignore[no-untyped-def]
    """Sweep with the products alone; tell whether the last sweep gained little."""
    for _ in range(most):
        gain = 0.0
        for k in range(len(w)):
            bend = gram[k, k]
            if bend <= 0.0:
                continue
            goal, cut = w[k] - slope[k] / bend, l1 / bend
            goal = max(goal - cut, 0.0) + min(goal + cut, 0.0)
            move = goal - w[k]
            if move != 0.0:
                w[k] = goal
                gain += 0.5 * bend * move * move
                for i in range(len(w)):
                    slope[i] += move * gram[k, i]
        if gain <= enough:
            return True
    return False
