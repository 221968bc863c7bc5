r"""Visits of samples: exact steps along one dual variable (Hsieh et al., 2008; Yu et al., 2011).

With :math:`C_i = s_i / \lambda_2` the minimiser is :math:`w = \sum_i \alpha_i y_i x_i` and every
sample has one variable: :math:`0 \le \alpha_i \le C_i` for the hinge, :math:`\alpha_i \ge 0` for
its square, :math:`0 < \alpha_i < C_i` for the logistic loss, kept as
:math:`u_i = \log(\alpha_i / (C_i - \alpha_i))` so that the stationarity
:math:`u_i + y_i x_i^\top w = 0` needs no exponential to be looked at. The intercept is a multiplier
of :math:`\sum_i \alpha_i y_i = 0`, plus a square of weight :math:`s^2`. Indices are unsigned,
which spares numba's test for negative ones; the next sample is fetched ahead.
"""

from __future__ import annotations

from math import exp

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from scgd.compiling import njit

FAST = {"reassoc", "contract", "nsz", "arcp"}
MOST_NEWTON = 20


@intrinsic
def prefetch(typingctx, array, i):  # type: ignore[no-untyped-def]
    """Ask the processor to fetch entry i of an array."""
    signature = types.void(array, i)

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, value=args[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        name = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        place = builder.bitcast(builder.gep(data, [args[1]]), byte)
        builder.call(name, [place, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return signature, codegen


@njit(cache=True, error_model="numpy", fastmath=FAST)
def fetch(indptr, indices, values, i):  # type: ignore[no-untyped-def]
    """Start loading a sparse row."""
    for j in range(indptr[i], indptr[i + 1], 16):
        prefetch(indices, j)
    for j in range(indptr[i], indptr[i + 1], 8):
        prefetch(values, j)


@njit(cache=True, error_model="numpy", fastmath=FAST)
def row_product(dense, indptr, indices, values, i, w):  # type: ignore[no-untyped-def]
    """Return the product of a row with the coefficients."""
    z = 0.0
    if dense is not None:
        for j in range(dense.shape[1]):
            z += dense[i, j] * w[j]
    if indptr is not None:
        for j in range(indptr[i], indptr[i + 1]):
            z += values[j] * w[indices[j]]
    return z


@njit(cache=True, error_model="numpy", fastmath=FAST)
def add_row(dense, indptr, indices, values, i, c, w):  # type: ignore[no-untyped-def]
    """Add a multiple of a row to the coefficients."""
    if dense is not None:
        for j in range(dense.shape[1]):
            w[j] += c * dense[i, j]
    if indptr is not None:
        for j in range(indptr[i], indptr[i + 1]):
            w[indices[j]] += c * values[j]


@njit(cache=True, error_model="numpy", fastmath=FAST)
def logistic_root(v, m, a, cap, start, low, high, h, bend, eps):  # type: ignore[no-untyped-def]
    """Solve v + m + a (cap sigmoid(v) - start) = 0 between ``low`` and ``high`` by safe Newton."""
    e = 0.0
    for _ in range(MOST_NEWTON):
        there = v - h / bend
        v = there if low <= there <= high else 0.5 * (low + high)
        e = 1.0 / (1.0 + exp(-v))
        left = v + m + a * (cap * e - start)
        if abs(left) <= 0.1 * abs(h) or abs(left) < eps:
            break
        if left > 0.0:
            high = v
        else:
            low = v
        bend, h = 1.0 + a * cap * e * (1.0 - e), left
    return v, cap * e


@njit(cache=True, error_model="numpy", fastmath=FAST, nogil=True)
def visit_logistic(  # type: ignore[no-untyped-def]
    dense, indptr, indices, values, y, squares, caps, alpha, u, w, b, scale, order, sizes, eps
):
    """Visit samples; return the intercept, an estimate of the gap and the number of moves.

    ``squares`` include ``scale``, the weight of the intercept's column; ``sizes`` receives how far
    each visit moved the coefficients.
    """
    gap, n_moves, n = 0.0, 0, len(order)
    for t in range(n):
        if indptr is not None:
            fetch(indptr, indices, values, order[min(t + 1, n - 1)])
        i = order[t]
        a, cap, start = squares[i], caps[i], alpha[i]
        m = y[i] * (row_product(dense, indptr, indices, values, i, w) + b)
        if start == 0.0:  # the first visit
            if cap == 0.0:
                sizes[t] = 0.0
                continue
            low, high, v = -m - a * cap, -m, -m
            if a * cap >= 2.0:
                v -= 0.3 * a * cap
            e = 1.0 / (1.0 + exp(-v))
            h, bend = v + m + a * cap * e, 1.0 + a * cap * e * (1.0 - e)
        else:
            v = u[i]
            h, bend = v + m, start * (cap - start) / cap
            gap += 0.5 * bend * h * h
            if abs(h) < eps:
                sizes[t] = 0.0
                continue
            low, high = (-m, v) if h > 0.0 else (v, -m)
            bend = 1.0 + a * bend
        u[i], alpha[i] = logistic_root(v, m, a, cap, start, low, high, h, bend, eps)
        move = (alpha[i] - start) * y[i]
        add_row(dense, indptr, indices, values, i, move, w)
        b += scale * move
        sizes[t] = abs(move) * a**0.5
        n_moves += 1
    return b, gap, n_moves


@njit(cache=True, error_model="numpy", fastmath=FAST, nogil=True)
def visit_hinge(  # type: ignore[no-untyped-def]
    dense, indptr, indices, values, y, squares, caps, bends, alpha, w, b, scale, order, sizes
):
    """Visit samples of the hinge (``bends`` zero) or its square (``caps`` infinite)."""
    gap, n_moves, n = 0.0, 0, len(order)
    for t in range(n):
        if indptr is not None:
            fetch(indptr, indices, values, order[min(t + 1, n - 1)])
        i = order[t]
        start, bend, cap, move = alpha[i], bends[i], caps[i], 0.0
        m = y[i] * (row_product(dense, indptr, indices, values, i, w) + b)
        slope, short = m - 1.0 + bend * start, max(1.0 - m, 0.0)
        loss = cap * short if bend == 0.0 else 0.5 * short * short / bend
        gap += loss + start * (m - 1.0) + 0.5 * bend * start * start
        if squares[i] + bend > 0.0:
            move = min(max(start - slope / (squares[i] + bend), 0.0), cap) - start
        sizes[t] = abs(move) * squares[i] ** 0.5
        if move != 0.0:
            alpha[i] = start + move
            add_row(dense, indptr, indices, values, i, move * y[i], w)
            b += scale * move * y[i]
            n_moves += 1
    return b, gap, n_moves
