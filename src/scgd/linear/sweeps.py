r"""Coordinate descent on a parabola of the risk, the intercept eliminated.

At margins :math:`z` the risk is modelled by the weighted slopes :math:`R_i` and curvatures
:math:`D_i`. A visit of column *j* minimises the model with its penalty along *j* and *b* together:
with :math:`q_j = \sum_i D_i x_{ij}` and :math:`Q = \sum_i D_i` a move :math:`d` of :math:`w_j`
moves *b* by :math:`-d q_j / Q`, the slope is :math:`x_j^\top R` (as :math:`\sum R_i = 0`) and the
curvature :math:`h_j = \sum_i D_i x_{ij}^2 - q_j^2 / Q`. Slopes are kept as :math:`R_i + c D_i`, so
the move of *b* costs nothing, dense or sparse. Dense columns are centred as they are read.
"""

from __future__ import annotations

from math import sqrt

from scgd.compiling import njit
from scgd.linear.data import REASSOCIATE


@njit(cache=True, error_model="numpy", fastmath=REASSOCIATE, nogil=True)
def curvatures(dense, indptr, indices, values, means, D, chosen, squares, products):  # type: ignore[no-untyped-def]
    """Set the sums of D x^2 and D x of the chosen columns."""
    for t in range(len(chosen)):
        k, square, product = chosen[t], 0.0, 0.0
        if dense is not None:
            mean = means[k]
            for i in range(len(D)):
                x = dense[k, i] - mean
                product += D[i] * x
                square += D[i] * x * x
        if indptr is not None:
            for j in range(indptr[k], indptr[k + 1]):
                x = values[j]
                product += D[indices[j]] * x
                square += D[indices[j]] * x * x
        squares[k], products[k] = square, product


@njit(cache=True, error_model="numpy", fastmath=REASSOCIATE, nogil=True)
def correlate(dense, indptr, indices, values, means, chosen, u, out):  # type: ignore[no-untyped-def]
    """Set ``out`` to the products of the chosen columns with ``u``."""
    for t in range(len(chosen)):
        k, total = chosen[t], 0.0
        if dense is not None:
            for i in range(len(u)):
                total += (dense[k, i] - means[k]) * u[i]
        if indptr is not None:
            for j in range(indptr[k], indptr[k + 1]):
                total += values[j] * u[indices[j]]
        out[t] = total


@njit(cache=True, error_model="numpy", fastmath=REASSOCIATE, nogil=True)
def moved_margins(dense, indptr, indices, values, means, chosen, moves, out):  # type: ignore[no-untyped-def]
    """Add the chosen columns times their moves to ``out``."""
    for t in range(len(chosen)):
        k, move = chosen[t], moves[t]
        if move == 0.0:
            continue
        if dense is not None:
            mean = means[k]
            for i in range(len(out)):
                out[i] += move * (dense[k, i] - mean)
        if indptr is not None:
            for j in range(indptr[k], indptr[k + 1]):
                out[indices[j]] += move * values[j]


@njit(cache=True, error_model="numpy", fastmath=REASSOCIATE, nogil=True)
def sweep(  # type: ignore[no-untyped-def]
    dense, indptr, indices, values, means, R, D, bends, products, costs, w, chosen, coords, grads,
    l2, l1, total, offset, damping,
):  # fmt: skip
    """Visit ``chosen[coords]`` in turn; return the offset of the slopes.

    ``total`` is Q, or 0 without an intercept; ``bends`` are the curvatures without the penalty's.
    ``grads`` receives the root of twice each visit's gain, per cost where costs differ.
    """
    for t in range(len(coords)):
        k, slope = chosen[coords[t]], 0.0
        place, bend = w[k], bends[k] + l2
        if bend <= 0.0:
            grads[t] = 0.0
            continue
        if dense is not None:
            mean = means[k]
            for i in range(len(R)):
                slope += (dense[k, i] - mean) * R[i]
        if indptr is not None:
            for j in range(indptr[k], indptr[k + 1]):
                slope += values[j] * R[indices[j]]
        slope += offset * products[k] + l2 * place
        goal, cut = place - slope / bend, l1 / bend
        goal = max(goal - cut, 0.0) + min(goal + cut, 0.0)
        move = damping * (goal - place)
        size = abs(move) * bend
        grads[t] = size / sqrt(bend * costs[k]) if len(costs) > 0 else size / sqrt(bend)
        if move == 0.0:
            continue
        w[k] = place + move
        if dense is not None:
            for i in range(len(R)):
                R[i] += move * D[i] * (dense[k, i] - mean)
        if indptr is not None:
            for j in range(indptr[k], indptr[k + 1]):
                i = indices[j]
                R[i] += move * D[i] * values[j]
        if total > 0.0:
            offset -= move * products[k] / total
    return offset
