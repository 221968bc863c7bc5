r"""``partial_fit``: one pass over the rows of a chunk, in their order, with rates per coordinate.

For a sample with slope :math:`s` of the loss the entries :math:`x_j`, divided by the largest seen
in their column, move coefficients by

.. math:: \Delta w_j = -\eta\, \sqrt{t / N}\; \frac{s\, x_j}{\sqrt{G_j}}, \qquad
          G_j = \sum s^2 x_j^2, \quad N = \sum_t \sum_j x_{tj}^2

(normalised adaptive gradients, Ross, Mineiro and Langford, 2013; AdaGrad's rates, free of the
columns' units), shortened so that no sample moves its own margin past the least loss. Penalties
shrink coefficients after each chunk, as many samples' worth as it had. Memory: two numbers per
coefficient, whatever the chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, sqrt

import numpy as np

from scgd.compiling import njit
from scgd.linear.losses import HINGE, curvature, slope
from scgd.linear.task import Task
from scgd.typing import Array, Floats

RATE = 0.5
"""The published default."""
SOFTMAX = -1


@dataclass
class Stream:
    """What is remembered between chunks: rates and scales of the coefficients of each target."""

    squares: dict[int, Floats] = field(default_factory=dict)
    scales: dict[int, Floats] = field(default_factory=dict)
    counts: dict[int, Floats] = field(default_factory=dict)

    def step(
        self, task: Task, place: int, W: Floats, b: Floats, codes: Array | None = None
    ) -> tuple[Floats, Floats]:
        """Make a pass for one target, or with ``codes`` for all classes; a row of W for each.

        Parameters
        ----------
        task
            A chunk, and the penalty.
        place
            Which target it is.
        W, b
            Coefficients and intercepts.
        codes
            The class of each sample where all share one softmax.
        """
        n, p, K = task.design.n_samples, task.design.n_features, len(W)
        if place not in self.scales:
            self.squares[place], self.scales[place] = np.zeros((p + 1, K)), np.zeros(p + 1)
            self.counts[place] = np.zeros(2)
        G, scale, count = self.squares[place], self.scales[place], self.counts[place]
        weights = task.shares * n
        grown(*task.design.rows, weights, scale, bool(task.intercept))
        theta = np.vstack([W.T * scale[:p, None], b[None] * np.ones((1, K))])
        targets = task.y if codes is None else codes.astype(np.float64)
        loss = task.loss if codes is None else SOFTMAX
        bend = 1.0 if loss == HINGE else 0.5 if loss == SOFTMAX else curvature(loss, task.epsilon)
        pass_over_rows(
            *task.design.rows, targets, weights, loss, task.epsilon, bend, theta, G, scale, count,
            bool(task.intercept), RATE,
        )  # fmt: skip
        held = np.where(scale[:p] > 0.0, scale[:p], 1.0)[:, None]
        rates = RATE * sqrt(max(count[0], 1.0) / max(count[1], 1e-300))
        rates = rates / np.sqrt(np.maximum(G[:p], 1e-300)) * weights.sum()
        left = np.maximum(np.abs(theta[:p]) - rates * task.l1 / held, 0.0)
        shrunk = np.sign(theta[:p]) * left / (1.0 + rates * task.l2 / held**2)
        theta[:p] = np.where(G[:p] > 0.0, shrunk, 0.0)
        return (theta[:p] / held).T.copy(), theta[p].copy() * task.intercept


@njit(cache=True, error_model="numpy")
def grown(dense, indptr, indices, values, weights, scale, intercept):  # type: ignore[no-untyped-def]
    """Raise the scales of columns to the largest entries of a chunk."""
    p = len(scale) - 1
    for i in range(len(weights)):
        if weights[i] <= 0.0:
            continue
        if dense is not None:
            for j in range(p):
                scale[j] = max(scale[j], abs(dense[i, j]))
        if indptr is not None:
            for t in range(indptr[i], indptr[i + 1]):
                scale[indices[t]] = max(scale[indices[t]], abs(values[t]))
    if intercept:
        scale[p] = 1.0


@njit(cache=True, error_model="numpy")
def filled(dense, indptr, indices, values, i, scale, places, entries):  # type: ignore[no-untyped-def]
    """Write the scaled entries of a row that are not zero, the intercept's last; count them."""
    p, m = len(scale) - 1, 0
    if dense is not None:
        for j in range(p):
            if dense[i, j] != 0.0:
                places[m], entries[m] = j, dense[i, j] / scale[j]
                m += 1
    if indptr is not None:
        for t in range(indptr[i], indptr[i + 1]):
            if values[t] != 0.0:
                places[m], entries[m] = indices[t], values[t] / scale[indices[t]]
                m += 1
    if scale[p] > 0.0:
        places[m], entries[m] = p, 1.0
        m += 1
    return m


@njit(cache=True, error_model="numpy", nogil=True)
def pass_over_rows(  # type: ignore[no-untyped-def]
    dense, indptr, indices, values, targets, weights, loss, epsilon, bend, theta, G, scale, count,
    intercept, rate,
):  # fmt: skip
    """Visit the rows once; ``theta``, ``G`` and ``count`` are changed in place."""
    K = theta.shape[1]
    places, entries = np.empty(len(theta), np.int64), np.empty(len(theta))
    z, s = np.empty(K), np.empty(K)
    for i in range(len(targets)):
        if weights[i] <= 0.0:
            continue
        m = filled(dense, indptr, indices, values, i, scale, places, entries)
        count[0] += weights[i]
        z[:] = 0.0
        for t in range(m):
            count[1] += weights[i] * entries[t] * entries[t]
            for k in range(K):
                z[k] += theta[places[t], k] * entries[t]
        if loss == SOFTMAX:
            most, total = z.max(), 0.0
            for k in range(K):
                s[k] = exp(z[k] - most)
                total += s[k]
            for k in range(K):
                s[k] = s[k] / total - (1.0 if k == int(targets[i]) else 0.0)
        else:
            s[0] = slope(loss, z[0], targets[i], epsilon)
        common = rate * sqrt(count[0] / count[1]) if count[1] > 0.0 else 0.0
        for k in range(K):
            if s[k] == 0.0:
                continue
            own = 0.0  # how far a unit of slope moves the margin
            for t in range(m):
                G[places[t], k] += weights[i] * (s[k] * entries[t]) ** 2
                if G[places[t], k] > 0.0:
                    own += entries[t] ** 2 / sqrt(G[places[t], k])
            step = weights[i] * common * s[k] / (1.0 + weights[i] * common * own * bend)
            for t in range(m):
                if G[places[t], k] > 0.0:
                    theta[places[t], k] -= step * entries[t] / sqrt(G[places[t], k])
