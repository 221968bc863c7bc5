r"""Compiled losses of a stack of linear layers, and of the stack with single entries changed.

One changed weight changes one unit of its layer, so the next layer moves by a rank-one term,

.. math:: z_{l+1}' = z_{l+1} + W_{l+1}[:, i]\, (\sigma(z_l') - \sigma(z_l))_i ,

and the large product with the inputs, which torch makes, is not repeated. Layers are kept with
units along the rows and samples along the columns: a unit is one stretch of memory. Losses are
summed in double precision.
"""

import numpy as np

from scgd.compiling import njit
from scgd.estimators import sides
from scgd_paper.activations import activate, exponential

__all__ = ["LOSSES", "differences", "forward", "forward_moved", "labels_fit", "loss_of", "room"]

LOSSES = ("cross-entropy", "cross-entropy over the batch", "squares")
ROWS, COLUMNS, SQUARES = range(3)
# Rows of the working memory: inputs and outputs of all activations, and the same with an entry
# moved.
Z, OUT, Z_MOVED, OUT_MOVED = range(4)
# Columns of the table of parameters: first coordinate, layer, whether it is a weight.
FIRST, LAYER, IS_WEIGHT = range(3)


@njit(cache=True)
def room(work, kind, layer, weights):  # type: ignore[no-untyped-def]
    """Return the place of a layer in the working memory, (units, samples)."""
    n_units, start = 0, 0
    for above in range(len(weights)):
        if above < layer:
            start += len(weights[above])
        n_units += len(weights[above])
    n_samples = work.shape[1] // n_units
    stop = start + len(weights[layer])
    return work[kind, start * n_samples : stop * n_samples].reshape(-1, n_samples)


@njit(cache=True, error_model="numpy")
def shift(z, bias):  # type: ignore[no-untyped-def]
    """Add a number to each row."""
    for i in range(len(bias)):
        row, size = z[i], bias[i]
        for s in range(len(row)):
            row[s] += size


@njit(cache=True, error_model="numpy")
def forward(weights, biases, codes, work):  # type: ignore[no-untyped-def]
    """Fill the inputs and outputs of all activations, given the product with the inputs."""
    for layer in range(len(weights)):
        z, out = room(work, Z, layer, weights), room(work, OUT, layer, weights)
        if layer > 0:
            np.dot(weights[layer], room(work, OUT, layer - 1, weights), z)
        shift(z, biases[layer])
        activate(codes[layer], z.reshape(-1), out.reshape(-1))


@njit(cache=True, error_model="numpy")
def forward_moved(layer, i, j, delta, x, weights, biases, codes, work):  # type: ignore[no-untyped-def]
    """Fill the moved outputs as if weight (i, j) of a layer, or bias i (j < 0), were moved."""
    z, out = room(work, Z, layer, weights), room(work, OUT, layer, weights)
    change, step = np.empty(z.shape[1], z.dtype), z.dtype.type(delta)
    if j < 0:
        change[:] = z[i] + step
    elif layer == 0:
        change[:] = z[i] + step * x[:, j]
    else:
        change[:] = z[i] + step * room(work, OUT, layer - 1, weights)[j]
    activate(codes[layer], change, change)
    change -= out[i]
    if layer == len(weights) - 1:
        last = room(work, OUT_MOVED, layer, weights)
        last[:] = out
        last[i] += change
        return
    add_rank_one(layer + 1, i, change, weights, codes, work)
    for deeper in range(layer + 2, len(weights)):
        z, out = room(work, Z_MOVED, deeper, weights), room(work, OUT_MOVED, deeper, weights)
        below = room(work, OUT_MOVED, deeper - 1, weights)
        np.dot(weights[deeper], below, z)
        shift(z, biases[deeper])
        activate(codes[deeper], z.reshape(-1), out.reshape(-1))


@njit(cache=True, error_model="numpy")
def add_rank_one(layer, i, change, weights, codes, work):  # type: ignore[no-untyped-def]
    """Fill a moved layer from the change of the i-th unit below it."""
    old, new = room(work, Z, layer, weights), room(work, Z_MOVED, layer, weights)
    for k in range(len(new)):
        slope, before, after = weights[layer][k, i], old[k], new[k]
        for s in range(len(change)):
            after[s] = before[s] + slope * change[s]
    out = room(work, OUT_MOVED, layer, weights)
    activate(codes[layer], new.reshape(-1), out.reshape(-1))


@njit(cache=True)
def labels_fit(labels, n_classes):  # type: ignore[no-untyped-def]
    """Tell whether all labels name an output."""
    for label in labels:
        if not 0 <= label < n_classes:
            return False
    return len(labels) > 0


@njit(cache=True, error_model="numpy")
def mean_cross_entropy(out, labels):  # type: ignore[no-untyped-def]
    """Return the mean of log-sum-exp minus the label's own output, over the columns."""
    n_samples = out.shape[1]
    highest, sums = out[0].copy(), np.zeros(n_samples)
    for k in range(1, len(out)):
        for s in range(n_samples):
            highest[s] = max(highest[s], out[k, s])
    for k in range(len(out)):
        for s in range(n_samples):
            sums[s] += exponential(out[k, s] - highest[s])  # type: ignore[no-untyped-call]
    total = 0.0
    for s in range(n_samples):
        total += np.log(sums[s]) + (np.float64(highest[s]) - out[labels[s], s])
    return total / n_samples


@njit(cache=True, error_model="numpy")
def log_sum_exp(values):  # type: ignore[no-untyped-def]
    """Return the logarithm of a sum of exponentials, safely."""
    highest, total = values[0], 0.0
    for i in range(len(values)):
        highest = max(highest, values[i])
    for i in range(len(values)):
        total += exponential(values[i] - highest)  # type: ignore[no-untyped-call]
    return np.float64(highest) + np.log(total)


@njit(cache=True, error_model="numpy")
def loss_of(code, out, labels, targets):  # type: ignore[no-untyped-def]
    """Return the mean loss of outputs (units, samples)."""
    if code == ROWS:
        return mean_cross_entropy(out, labels)
    total = 0.0
    if code == COLUMNS:
        norms, known = np.empty(len(out)), np.zeros(len(out), np.bool_)
        for s in range(len(labels)):
            label = labels[s]
            if not known[label]:
                known[label], norms[label] = True, log_sum_exp(out[label])
            total += norms[label] - out[label, s]
        return total / len(labels)
    for s in range(len(targets)):
        for k in range(len(out)):
            total += (np.float64(out[k, s]) - targets[s, k]) ** 2
    return total / out.size


@njit(cache=True)
def find(coord, table, weights):  # type: ignore[no-untyped-def]
    """Return layer, row and column (-1 for a bias) of a coordinate."""
    p = 0
    while p + 1 < len(table) and table[p + 1, FIRST] <= coord:
        p += 1
    layer, index = table[p, LAYER], coord - table[p, FIRST]
    if not table[p, IS_WEIGHT]:
        return layer, index, -1
    width = weights[layer].shape[1]
    return layer, index // width, index % width


@njit(cache=True, error_model="numpy")
def differences(coords, table, radius, central, x, weights, biases, codes, work,  # type: ignore[no-untyped-def]
                loss, labels, targets, values, widths):  # fmt: skip
    """Fill the losses around each coordinate, after the base loss, and how far apart they are.

    Forward: one per coordinate; central: (below, above). The product of the first weights with the
    inputs is in the working memory already. Returns whether all labels name an output.
    """
    last = len(weights) - 1
    if loss != SQUARES and not labels_fit(labels, len(weights[last])):
        return False
    rounded = work.dtype.type
    forward(weights, biases, codes, work)
    values[0] = loss_of(loss, room(work, OUT, last, weights), labels, targets)
    moved, filled = room(work, OUT_MOVED, last, weights), 1
    for t in range(len(coords)):
        layer, i, j = find(coords[t], table, weights)
        here = np.float64(biases[layer][i] if j < 0 else weights[layer][i, j])
        down, up = sides(central, here, radius, -np.inf, np.inf)
        down, up = np.float64(rounded(down)), np.float64(rounded(up))
        widths[t] = up - down
        if central:
            forward_moved(layer, i, j, down - here, x, weights, biases, codes, work)
            values[filled] = loss_of(loss, moved, labels, targets)
            filled += 1
        forward_moved(layer, i, j, up - here, x, weights, biases, codes, work)
        values[filled] = loss_of(loss, moved, labels, targets)
        filled += 1
    return True
