r"""Multinomial logistic regression: one softmax over all classes.

.. math:: P(W, b) = \sum_i s_i \Bigl(\log \sum_k e^{z_{ik}} - z_{i y_i}\Bigr)
          + \frac{\lambda_2}{2} \|W\|_2^2 + \lambda_1 \|W\|_1, \qquad z_i = W x_i + b.

With an l2 penalty alone conjugate gradients find Newton's directions; else SciPy's L-BFGS-B runs on
columns of unit size, with positive and negative parts where there is an l1 penalty. The gap is
certified as elsewhere: probabilities :math:`p_i` with the classes' own means
:math:`\sum_i s_i p_i = \sum_i s_i e_{y_i}` bound the minimum from below by
:math:`\sum_i s_i H(p_i) - \Omega^*(-X^\top u)`, :math:`u_i = s_i (p_i - e_{y_i})`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import optimize
from scipy.special import xlogy

from scgd.linear.newton_cg import Descent
from scgd.linear.sweeps import curvatures
from scgd.linear.task import Fit, Task
from scgd.typing import Floats, Ints

EVERY = 5


def fit_multinomial(
    task: Task, codes: Ints, n_classes: int, start: Floats | None = None, b: Any = 0.0
) -> Fit:
    """Minimise the risk of all classes; ``w`` and ``b`` of the result have a row per class.

    Parameters
    ----------
    task
        Data, shares, penalties and limits; its loss and targets are not used.
    codes, n_classes
        The class of each sample, 0 to K-1, and K.
    start, b
        First coefficients, a row per class, and intercepts.
    """
    search = Search(task, codes, n_classes)
    if task.l1 == 0.0 and task.l2 > 0.0:
        W, b = search.newton_cg(start, b)
    else:
        W, b = search.parts(search.run(start, b))
    value, P = search.look(W, b)
    gap = search.gap(value, P)
    p = task.design.n_features
    converged = gap <= task.limit + 2 * task.rounding or search.flat
    return Fit(W, b, search.n_steps, value, gap, bool(converged), np.full(p, 1.0 / p))


class Search:
    """The objective in scaled variables, and its certificate."""

    def __init__(self, task: Task, codes: Ints, n_classes: int) -> None:
        self.task, self.codes = task, codes
        n, p = task.design.n_samples, task.design.n_features
        self.n_classes = n_classes
        self.rows = np.arange(n)
        self.counts = np.bincount(codes, weights=task.shares, minlength=self.n_classes)
        self.means = task.design.correlations(task.shares) * task.intercept
        squares, products = np.empty(p), np.empty(p)
        zeros = np.zeros(p)
        curvatures(*task.design.columns, zeros, task.shares, np.arange(p), squares, products)
        spread = np.sqrt(np.maximum(squares - self.means**2, 1e-14 * squares))
        self.unit = np.where(spread > 0.0, spread, 1.0)
        self.lower, self.n_steps, self.flat = -np.inf, 0, False
        self.signed = task.l1 > 0.0

    def parts(self, v: Floats) -> tuple[Floats, Floats]:
        """Return coefficients and intercepts, a row per class, of the search's variables."""
        K, p = self.n_classes, len(self.unit)
        V = v[: K * p].reshape(K, p)
        if self.signed:
            V = V - v[K * p : 2 * K * p].reshape(K, p)
        W = V / self.unit
        centred = v[-K:] if self.task.intercept else np.zeros(K)
        return W, centred - W @ self.means

    def look(self, W: Floats, b: Floats) -> tuple[float, Floats]:
        """Return the objective and the probabilities of all samples."""
        risk, P = self.risk(np.asarray(self.task.design.margins(W.T)) + b)
        return risk + sum(self.task.penalty(w) for w in W), P

    def risk(self, Z: Floats) -> tuple[float, Floats]:
        """Return the risk and the probabilities at margins."""
        Z = Z - Z.max(axis=1, keepdims=True)
        P = np.exp(Z)
        sums = P.sum(axis=1)
        risk = float(self.task.shares @ (np.log(sums) - Z[self.rows, self.codes]))
        return risk, P / sums[:, None]

    def excess(self, P: Floats) -> Floats:
        """Return the probabilities less the labels, times the shares."""
        U = P.copy()
        U[self.rows, self.codes] -= 1.0
        return np.asarray(U * self.task.shares[:, None])

    def __call__(self, v: Floats) -> tuple[float, Floats]:
        """Return the objective and its gradient in the search's variables."""
        task, (W, b) = self.task, self.parts(v)
        value, P = self.look(W, b)
        U = self.excess(P)
        totals = U.sum(axis=0)
        slopes = np.asarray(task.design.X.T @ U).T - np.outer(totals, self.means) + task.l2 * W
        slopes, cut = slopes / self.unit, np.broadcast_to(task.l1 / self.unit, W.shape)
        pieces = (
            [slopes.ravel()]
            if not self.signed
            else [(slopes + cut).ravel(), (cut - slopes).ravel()]
        )
        if task.intercept:
            pieces.append(totals)
        return value, np.concatenate(pieces)

    def newton_cg(self, start: Floats | None, b: Any) -> tuple[Floats, Floats]:
        """Return coefficients and intercepts, a row per class, found by Newton's method."""
        task, W = self.task, None if start is None else start.T - start.mean(axis=0)[:, None]
        first = np.log(np.maximum(self.counts, 1e-12)) if start is None else np.array(b, float)
        first = first - first.mean()
        shares = task.shares[:, None]

        def look(Z: Floats) -> tuple[float, Floats, Any, Floats]:
            risk, P = self.risk(Z)

            def bend(T: Floats) -> Floats:
                PT = P * T
                return np.asarray(shares * (PT - P * PT.sum(axis=1, keepdims=True)))

            return risk, self.excess(P), bend, shares * (P * (1.0 - P))

        def closed() -> bool:
            value, P = self.look(descent.W.T, descent.plain_b)
            return self.gap(value, P) <= task.limit

        descent = Descent(task, look, W, np.asarray(first))
        descent.direct = False
        descent.run(closed, np.inf)
        self.n_steps = descent.n_passes
        return descent.W.T.copy(), descent.plain_b

    def run(self, start: Floats | None, b: Any) -> Floats:
        """Search until the gap is closed, the steps are used or nothing changes."""
        K, p, task = self.n_classes, len(self.unit), self.task
        V = np.zeros((K, p)) if start is None else start * self.unit
        pieces = (
            [V.ravel()]
            if not self.signed
            else [np.maximum(V, 0).ravel(), np.maximum(-V, 0).ravel()]
        )
        bounds: list[tuple[int | None, None]]
        bounds = [(0, None)] * (2 * K * p) if self.signed else [(None, None)] * (K * p)
        if task.intercept:
            centred = (
                np.log(np.maximum(self.counts, 1e-12)) if start is None else b + start @ self.means
            )
            pieces.append(centred)
            bounds += [(None, None)] * K
        options = {"maxiter": task.max_passes, "maxfun": 10 * task.max_passes + 100, "ftol": 0.0,
                   "gtol": 0.0, "maxcor": 20}  # fmt: skip
        done = optimize.minimize(self, np.concatenate(pieces), jac=True, method="L-BFGS-B",
                                 bounds=bounds, callback=self.watch, options=options)  # fmt: skip
        self.flat = task.l1 == task.l2 == 0.0 and done.nit < task.max_passes
        return np.asarray(done.x)

    def watch(self, v: Floats) -> None:
        """Count a step; end the search when the gap is closed."""
        self.n_steps += 1
        if self.n_steps % EVERY == 0:
            W, b = self.parts(v)
            value, P = self.look(W, b)
            if self.gap(value, P) <= self.task.limit:
                raise StopIteration

    def gap(self, value: float, P: Floats) -> float:
        """Bound the distance to the minimum."""
        task = self.task
        if task.intercept:  # mix with one law for all samples, so that the classes' means are right
            held = task.shares @ P
            mix = float(np.max(1.0 - self.counts / np.maximum(held, 1e-300), initial=0.0))
            if mix > 0.0:
                law = np.maximum(self.counts - (1.0 - mix) * held, 0.0)
                P = (1.0 - mix) * P + law
        sizes = np.abs(np.asarray(task.design.X.T @ self.excess(P)))
        largest, dual_penalty = float(sizes.max()), 0.0
        if task.l2 > 0.0:
            dual_penalty = float(np.sum(np.maximum(sizes - task.l1, 0.0) ** 2)) / (2.0 * task.l2)
        elif largest > task.l1:
            scale = task.l1 / largest
            P = scale * P
            P[self.rows, self.codes] += 1.0 - scale
        if task.l2 > 0.0 or task.l1 > 0.0:
            entropy = -float(task.shares @ xlogy(P, P).sum(axis=1))
            self.lower = max(self.lower, entropy - dual_penalty)
        return max(value - self.lower, 0.0) + task.rounding
