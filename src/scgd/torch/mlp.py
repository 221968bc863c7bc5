r"""Compiled losses of a stack of linear layers, and of the stack with one entry changed.

One changed weight changes one unit of its layer, so the next layer moves by a rank-one term,

.. math:: z_{l+1}' = z_{l+1} + (\sigma(z_l' ) - \sigma(z_l))_i\, W_{l+1}[:, i] ,

and the large product with the inputs is not repeated. Losses are summed in double precision.
"""

from math import erf, sqrt

import numpy as np

from scgd.compiling import njit

__all__ = ["ACTIVATIONS", "LOSSES", "forward", "forward_moved", "labels_fit", "loss_of"]

ACTIVATIONS = ("identity", "relu", "sigmoid", "tanh", "silu", "gelu")
IDENTITY, RELU, SIGMOID, TANH, SILU, GELU = range(6)
LOSSES = ("cross-entropy", "cross-entropy over the batch", "squares")
ROWS, COLUMNS, SQUARES = range(3)


@njit(cache=True, inline="always")
def activated(code, z):  # type: ignore[no-untyped-def]
    """Return an activation of one number."""
    if code == RELU:
        return z if z > 0 or z != z else 0 * z
    if code == SIGMOID:
        return 1 / (1 + np.exp(-z))
    if code == TANH:
        return np.tanh(z)
    if code == SILU:
        return z / (1 + np.exp(-z))
    if code == GELU:
        return z * (1 + erf(z / sqrt(2.0))) / 2
    return z


@njit(cache=True, error_model="numpy")
def activate(code, z, out):  # type: ignore[no-untyped-def]
    """Apply an activation to a matrix."""
    flat_in, flat_out = z.reshape(-1), out.reshape(-1)
    for i in range(len(flat_in)):
        flat_out[i] = activated(code, flat_in[i])


@njit(cache=True, error_model="numpy")
def affine(x, weight, bias, z):  # type: ignore[no-untyped-def]
    """Set z to x W' + b."""
    np.dot(x, weight.T, z)
    for row in range(len(z)):
        for i in range(len(bias)):
            z[row, i] += bias[i]


@njit(cache=True, error_model="numpy")
def forward(x, weights, biases, codes, zs, outs):  # type: ignore[no-untyped-def]
    """Fill the inputs ``zs`` and outputs ``outs`` of all activations."""
    for layer in range(len(weights)):
        affine(x if layer == 0 else outs[layer - 1], weights[layer], biases[layer], zs[layer])
        activate(codes[layer], zs[layer], outs[layer])


@njit(cache=True, error_model="numpy")
def forward_moved(layer, i, j, delta, x, weights, biases, codes, zs, outs, zs_new, outs_new):  # type: ignore[no-untyped-def]
    """Fill ``outs_new[-1]`` as if weight (i, j) of a layer, or bias i (j < 0), were moved."""
    z, out, last = zs[layer], outs[layer], len(weights) - 1
    below = x if layer == 0 else outs[layer - 1]
    change = np.empty(len(z), z.dtype)
    for row in range(len(z)):
        step = delta * below[row, j] if j >= 0 else delta
        change[row] = activated(codes[layer], z[row, i] + z.dtype.type(step)) - out[row, i]
    if layer == last:
        outs_new[layer][:] = out
        outs_new[layer][:, i] += change
        return
    above, weight = zs_new[layer + 1], weights[layer + 1]
    for row in range(len(z)):
        for k in range(len(weight)):
            above[row, k] = zs[layer + 1][row, k] + change[row] * weight[k, i]
    activate(codes[layer + 1], above, outs_new[layer + 1])
    for deeper in range(layer + 2, len(weights)):
        affine(outs_new[deeper - 1], weights[deeper], biases[deeper], zs_new[deeper])
        activate(codes[deeper], zs_new[deeper], outs_new[deeper])


@njit(cache=True)
def labels_fit(labels, n_classes):  # type: ignore[no-untyped-def]
    """Tell whether all labels name an output."""
    for label in labels:
        if not 0 <= label < n_classes:
            return False
    return len(labels) > 0


@njit(cache=True, error_model="numpy")
def log_sum_exp(values):  # type: ignore[no-untyped-def]
    """Return the logarithm of a sum of exponentials, safely."""
    highest, total = values[0], 0.0
    for i in range(len(values)):
        highest = max(highest, values[i])
    for i in range(len(values)):
        total += np.exp(values[i] - highest)
    return highest + np.log(total)


@njit(cache=True, error_model="numpy")
def loss_of(code, out, labels, targets):  # type: ignore[no-untyped-def]
    """Return the mean loss of a batch of outputs."""
    total = 0.0
    if code == ROWS:
        for row in range(len(out)):
            total += log_sum_exp(out[row]) - out[row, labels[row]]
        return total / len(out)
    if code == COLUMNS:
        norms, known = np.empty(out.shape[1]), np.zeros(out.shape[1], np.bool_)
        for row in range(len(out)):
            label = labels[row]
            if not known[label]:
                known[label], norms[label] = True, log_sum_exp(out[:, label])
            total += norms[label] - out[row, label]
        return total / len(out)
    for row in range(len(out)):
        for i in range(out.shape[1]):
            total += (np.float64(out[row, i]) - targets[row, i]) ** 2
    return total / out.size
