"""One small run per way of asking, each of which can be stopped and taken up again."""

import numpy as np
from numba import njit

import scgd
from scgd.checkpoint import read

P = 6
BUDGET = 240


def quadratic(x):
    return float(np.sum(np.arange(1, P + 1) * (x - 1.0) ** 2))


@njit
def compiled(x):
    total = 0.0
    for k in range(len(x)):
        total += (k + 1) * (x[k] - 1.0) ** 2
    return total


def partials(x, coords):
    return 2.0 * (coords + 1) * (x[coords] - 1.0)


def vectorized(points):
    return np.array([quadratic(x) for x in points])


def by_rows(x, rows):
    return float(np.mean((1 + rows % 5) * (x[rows % P] - 1.0 - 0.1 * rows) ** 2))


def shifted(x, xi):
    return quadratic(x - xi)


def draw(rng):
    return 0.1 * rng.standard_normal(P)


class Noisy:
    """Noise that nobody controls, yet the same for the n-th accepted value of every run."""

    def __init__(self, start=0):
        self.n = start

    def __call__(self, x):
        self.n += 1
        return quadratic(x) + 0.5 * np.sin(12345.678 * self.n)


def nested(x):
    """The outer variables and, for each of them, the best inner ones: every value is a run."""
    inner = scgd.minimize(quadratic, x, method="auto", max_evals=24, seed=0)
    return float(x @ x) + inner.fun


STEPS = {"method": "musketeer"}
CASES = {
    "musketeer": (quadratic, STEPS),
    "scaled": (quadratic, {**STEPS, "scale": np.arange(1.0, P + 1)}),
    "bounded": (quadratic, {"method": scgd.SCGD(estimator="forward"), "bounds": [(-1, 0.8)]}),
    "block": (quadratic, {"method": scgd.SCGD("uniform", block_size=3)}),
    "compiled": (compiled, STEPS),
    "jac": (quadratic, {"jac": partials}),
    "greedy": (quadratic, {"method": scgd.SCGD("gauss-southwell")}),
    "average": (quadratic, {"method": scgd.SCGD("uniform", average=True)}),
    "importance": (quadratic, {"method": scgd.SCGD(importance=lambda phase, x: 1 / (1 + x**2))}),
    "steps-xi": (shifted, {**STEPS, "sample": draw}),
    "steps-rows": (by_rows, {**STEPS, "sample": scgd.Rows(40, 3)}),
    "spsa": (quadratic, {"method": "spsa"}),
    "sphere": (quadratic, {"method": "sphere"}),
    "vectorized": (vectorized, {"workers": scgd.Workers(vectorized=True)}),
    "vectorized-block": (
        vectorized,
        {"method": scgd.SCGD(block_size=4), "workers": scgd.Workers(vectorized=True)},
    ),
    "asynchronous": (quadratic, {**STEPS, "workers": scgd.Workers(asynchronous=6)}),
    "auto": (quadratic, {}),
    "auto-bounded": (quadratic, {"bounds": [(-1, 0.8)]}),
    "auto-rows": (by_rows, {"sample": scgd.Rows(40, 3)}),
    "auto-xi": (shifted, {"sample": draw}),
    "auto-noise": (Noisy, {}),
    "random": (quadratic, {"method": "random"}),
    "nested": (nested, {**STEPS, "max_evals": 40}),
}


def n_accepted(path):
    """Return the evaluations that a checkpoint holds; 0 where there is none."""
    return read(path)[1]["ledger"]["n_accepted"] if path is not None and path.exists() else 0


def function(name, path=None):
    """Return the function of a case as it goes on from a checkpoint."""
    fun = CASES[name][0]
    return fun(n_accepted(path)) if fun is Noisy else fun


def run(name, path=None, wrap=None, **more):
    """Run a case, from the checkpoint if there is one; ``wrap`` gets between us and the function."""
    fun = function(name, path)
    keywords = {"max_evals": BUDGET, "seed": 5, **CASES[name][1], **more}
    if wrap is not None:
        fun = wrap(fun)
        if "jac" in keywords and hasattr(fun, "of"):
            keywords["jac"] = fun.of(keywords["jac"])
    return scgd.minimize(fun, np.zeros(P), checkpoint=path, **keywords)


class Cut(Exception):
    """Raised by a function that has had enough."""


class Stops:
    """A function that raises instead of its n-th point, and counts the points before."""

    def __init__(self, fun, n):
        self.fun, self.n, self.seen = fun, n, 0

    def __call__(self, x, *rest):
        return self.of(self.fun)(x, *rest)

    def of(self, fun):
        """Return another function that is counted here."""

        def counted(x, *rest):
            n = 1 if np.ndim(x) == 1 else len(x)
            if self.seen + n > self.n:
                raise Cut
            self.seen += n
            return fun(x, *rest)

        return counted


def check_same(one, other):
    """Check that two results are those of one run, bit for bit."""
    assert np.array_equal(one.x, other.x)
    np.testing.assert_equal([one.fun, one.fun_error], [other.fun, other.fun_error])
    assert (one.nfev, one.nit, one.n_failed) == (other.nfev, other.nit, other.n_failed)
    assert (one.status, one.message) == (other.status, other.message)
    np.testing.assert_equal(one.history, other.history)
    np.testing.assert_equal(one.weights, other.weights)
