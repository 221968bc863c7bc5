"""Steps that read whole rows: a mini-batch of margins, then one partial derivative per coordinate.

A step costs the dot products of its samples and O(1) more per coordinate and sample: the margin
gives the derivative, and the loss moved by a radius along a coordinate, without another product.
With an l1 penalty the policy is shown the prox gradient, (old - new) / step.
"""

from __future__ import annotations

from math import sqrt

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from scgd.compiling import njit
from scgd.linear.losses import difference, slope
from scgd_paper.linear.by_code import compiled_sgd, move
from scgd_paper.linear.inputs import dot, entry

__all__ = ["explore_rows"]

FORWARD, CENTRAL, FIRST = range(3)
# Slots of the codes and params that every kernel reads.
N_FEATURES, LOSS, MODE, BLOCK, SHARED, SCALED = range(6)
EPSILON, L2, L1, DIVISOR, FACTOR = range(5)
LINE, AHEAD = 8, 4


@intrinsic
def prefetch(typingctx, matrix, i, j):  # type: ignore[no-untyped-def]
    """Ask the processor to fetch entry (i, j) of a matrix."""
    signature = types.void(matrix, i, j)

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kind = signature.args[0]
        array = context.make_array(kind)(context, builder, value=args[0])
        shape, strides = (cgutils.unpack_tuple(builder, a, 2) for a in (array.shape, array.strides))
        place = cgutils.get_item_pointer2(
            context, builder, array.data, shape, strides, kind.layout, args[1:]
        )
        byte = ir.IntType(8).as_pointer()
        word = ir.IntType(32)
        name = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [byte, word, word, word]),
            "llvm.prefetch.p0",
        )  # fmt: skip
        hints = [word(0), word(3), word(1)]
        builder.call(name, [builder.bitcast(place, byte), *hints])
        return context.get_dummy_value()

    return signature, codegen


@njit(cache=True, error_model="numpy")
def fetch_ahead(dense, i, n_lines):  # type: ignore[no-untyped-def]
    """Start loading the first cache lines of row ``i``; the hardware follows."""
    for line in range(min(n_lines, dense.shape[1] // LINE)):
        prefetch(dense, i, line * LINE)


@njit(cache=True, error_model="numpy")
def sample_part(mode, loss, epsilon, z, y, x, h):  # type: ignore[no-untyped-def]
    """Return a sample's share in the derivative, or difference quotient, along a coordinate."""
    if mode == FIRST:
        return slope(loss, z, y, epsilon) * x
    if mode == FORWARD:
        return difference(loss, z, h * x, y, epsilon) / h
    return difference(loss, z - h * x, 2.0 * h * x, y, epsilon) / (2.0 * h)


@njit(cache=True, error_model="numpy")
def soft_threshold(goal, cut):  # type: ignore[no-untyped-def]
    """Return the prox of the l1 penalty, the point of least |x| within ``cut`` of ``goal``."""
    return max(goal - cut, 0.0) + min(goal + cut, 0.0)


# Flat arguments: a tuple of arrays costs a reference count per array and access.
@njit(cache=True, error_model="numpy")
def explore_rows(  # type: ignore[no-untyped-def]
    dense, indptr, indices, values, targets, weights, codes, params,
    theta, coords, probs, grads, samples, margins, scale, rule, hyper, slots,
    first, last, rates, radii,
):  # fmt: skip
    """Run steps ``first`` to ``last`` of the current phase."""
    n_features, loss, mode = codes[N_FEATURES], codes[LOSS], codes[MODE]
    block, shared = codes[BLOCK], codes[SHARED] == 1
    epsilon, l2, l1, divisor = params[EPSILON], params[L2], params[L1], params[DIVISOR]
    n_rows, intercept = samples.shape[1], len(theta) > n_features
    batch = n_rows if shared else n_rows // block
    for s in range(first, last):
        h, after = radii[s - first], min(s + 1, len(samples) - 1)
        if dense is not None:
            for j in range(n_rows):
                fetch_ahead(dense, samples[after, j], AHEAD)
        for j in range(n_rows):
            i = samples[s, j]
            z = dot(dense, indptr, indices, values, i, theta)
            margins[j] = z + theta[n_features] if intercept else z
        for c in range(block):
            k, total, offset = coords[s * block + c], 0.0, 0 if shared else c * batch
            for j in range(offset, offset + batch):
                i, x = samples[s, j], 1.0
                if k < n_features:
                    x = entry(dense, indptr, indices, values, i, k)
                part = sample_part(mode, loss, epsilon, margins[j], targets[i], x, h)
                total += part * weights[i] if len(weights) > 0 else part
            total /= batch
            if k < n_features:
                total += l2 * (theta[k] + (0.5 * h if mode == FORWARD else 0.0))
            grads[s * block + c] = total
        for d in range(s * block, (s + 1) * block):
            k, step, place = coords[d], rates[s - first], theta[coords[d]]
            if len(scale) > 0:
                step *= scale[k]
            if divisor > 0.0:
                step /= divisor * probs[d]
            if rule is None:  # inlined, where a call would cost a tenth of the step
                theta[k] = place - compiled_sgd(k, grads[d], step, hyper, slots)
            else:
                theta[k] = place - move(rule, k, grads[d], step, hyper, slots)
            if l1 > 0.0 and k < n_features:
                theta[k] = soft_threshold(theta[k], step * l1)
                grads[d] = (place - theta[k]) / step if step > 0.0 else 0.0
            if codes[SCALED] == 1:
                grads[d] *= sqrt(scale[k])
