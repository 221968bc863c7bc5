"""Evaluations and time of ``quadratic_model`` against NEWUOA, BOBYQA, Py-BOBYQA and COBYQA.

For each function and dimension: evaluations until the value is within 1e-6 of the minimum (of the
start's gap, where that is larger than 1), and seconds of processor time for each evaluation, that
of f taken off. The last lines are medians of ratios, ours to the best and to each peer.
Run: OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_quadratic_model.py [--quick]
"""

import argparse
import time
import warnings

import numpy as np

from scgd.strategies.box import Box
from scgd.strategies.quadratic_model import quadratic_model

TARGET, RADIUS, PER_COORDINATE = 1e-6, 0.5, 400
DIMENSIONS = (2, 5, 10, 20, 50)


def functions(n):
    """Return name, function, start and minimum (None: the best value of any method)."""
    rng = np.random.default_rng(n)
    centre, scales = rng.standard_normal(n), 10 ** (4 * np.arange(n) / max(n - 1, 1))
    turn = np.linalg.qr(rng.standard_normal((n, n)))[0]
    turned = turn @ np.diag(scales) @ turn.T
    i = np.arange(1, n + 1)
    chained = 1.4 + 0.1 * np.cos(i)

    def tridiagonal(x):
        left, right = np.concatenate([[0], x[:-1]]), np.concatenate([x[1:], [0]])
        return (3 - 2 * x) * x - left - 2 * right + 1

    def trigonometric(x):
        return n - np.cos(x).sum() + i * (1 - np.cos(x)) - np.sin(x)

    def variably(x):
        s = i @ (x - 1)
        return (x - 1) @ (x - 1) + s**2 + s**4

    def brown(x):
        return np.append(x[:-1] + x.sum() - (n + 1), np.prod(x) - 1)

    def brown_exponents(x):
        a, b = x[:-1] ** 2, x[1:] ** 2
        return (a ** (b + 1) + b ** (a + 1)).sum()

    ones = np.ones(n)
    return [
        ("sphere", lambda x: (x - centre) @ (x - centre), 0 * ones, 0.0),
        ("ellipsoid", lambda x: scales @ (x - centre) ** 2, 0 * ones, 0.0),
        ("turned", lambda x: (x - centre) @ turned @ (x - centre), 0 * ones, 0.0),
        ("rosenbrock", lambda x: 100 * ((x[1:] - x[:-1] ** 2) ** 2).sum() + ((1 - x[:-1]) ** 2).sum(), 0 * ones, 0.0),
        ("arwhead", lambda x: ((x[:-1] ** 2 + x[-1] ** 2) ** 2 - 4 * x[:-1] + 3).sum(), ones, 0.0),
        ("chrosen", lambda x: (4 * chained[1:] * (x[:-1] - x[1:] ** 2) ** 2 + (1 - x[1:]) ** 2).sum(), -ones, 0.0),
        ("tridiagonal", lambda x: (tridiagonal(x) ** 2).sum(), -ones, 0.0),
        ("trigonometric", lambda x: (trigonometric(x) ** 2).sum(), ones / n, None),
        ("variably", variably, 1 - i / n, 0.0),
        ("brown-linear", lambda x: (brown(x) ** 2).sum(), 0.5 * ones, None),
        ("brown-exponents", brown_exponents, np.where(i % 2, -1.0, 1.0), 0.0),
    ]  # fmt: skip


class Budget(Exception):
    """No evaluations are left."""


class Counted:
    """A function that remembers when its values fell, and its own time."""

    def __init__(self, fun, most):
        self.fun, self.most = fun, most
        self.n_evals, self.seconds, self.falls, self.low = 0, 0.0, [], np.inf

    def __call__(self, x, *_):
        """Return a value."""
        if self.n_evals >= self.most:
            raise Budget
        began = time.process_time()
        with np.errstate(all="ignore"):
            value = float(self.fun(np.asarray(x)))
        value = value if np.isfinite(value) else 1e300
        self.n_evals += 1
        if value < self.low:
            self.low = value
            self.falls.append((self.n_evals, value))
        self.seconds += time.process_time() - began
        return value

    def reached(self, target):
        """Return the evaluations until a value was met."""
        return next((n for n, value in self.falls if value <= target), np.inf)


def ours(fun, x0):
    rng = np.random.default_rng(0)
    search = quadratic_model(x0, fun(x0), RADIUS, Box.around(x0), rng, final_radius=1e-8)
    asked = next(search)
    try:
        while True:
            asked = search.send(
                fun(asked) if asked.ndim == 1 else np.array([fun(x) for x in asked])
            )
    except StopIteration:
        pass


def nlopt(name):
    def solve(fun, x0):
        import nlopt as package

        solver = package.opt(getattr(package, name), x0.size)
        solver.set_min_objective(lambda x, grad: fun(x))
        solver.set_initial_step(RADIUS)
        solver.set_xtol_abs(1e-8)
        solver.optimize(x0)

    return solve


def py_bobyqa(fun, x0):
    import pybobyqa

    pybobyqa.solve(fun, x0, rhobeg=RADIUS, rhoend=1e-8, maxfun=fun.most, do_logging=False)


def cobyqa(fun, x0):
    from scipy.optimize import minimize

    options = {"initial_tr_radius": RADIUS, "final_tr_radius": 1e-8, "maxfev": fun.most}
    minimize(fun, x0, method="COBYQA", options=options)


METHODS = {
    "ours": ours,
    "newuoa": nlopt("LN_NEWUOA"),
    "bobyqa": nlopt("LN_BOBYQA"),
    "pybobyqa": py_bobyqa,
    "cobyqa": cobyqa,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="up to 10 variables, no slow peers")
    parser.add_argument("--peers", default="newuoa,bobyqa,pybobyqa,cobyqa")
    options = parser.parse_args()
    peers = options.peers.split(",")
    names = ["ours"] + (["newuoa", "bobyqa"] if options.quick else peers)
    ratios, costs, lost = [], {name: [] for name in names}, []
    print(f"{'':24}" + "".join(f"{name:>18}" for name in names) + "   evaluations, us each")
    for n in DIMENSIONS[:3] if options.quick else DIMENSIONS:
        for label, fun, x0, lowest in functions(n):
            runs = {}
            for name in names:
                counted = runs[name] = Counted(fun, PER_COORDINATE * n)
                began = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        METHODS[name](counted, np.array(x0, float))
                    except Exception as error:  # peers end in ways of their own
                        if not isinstance(error, Budget) and name == "ours":
                            raise
                spent = time.process_time() - began - counted.seconds
                costs[name].append(1e6 * spent / counted.n_evals)
            least = min(run.low for run in runs.values()) if lowest is None else lowest
            goal = least + TARGET * max(1.0, abs(float(fun(np.array(x0, float))) - least))
            needed = {name: run.reached(goal) for name, run in runs.items()}
            print(
                f"{label + '-' + str(n):24}"
                + "".join(f"{needed[k]:>10}{costs[k][-1]:8.0f}" for k in names),
                flush=True,
            )
            best = min(needed[k] for k in names[1:] if k in ("newuoa", "bobyqa"))
            if np.isfinite(best) or np.isfinite(needed["ours"]):
                ratios.append(needed["ours"] / best if np.isfinite(best) else 0.0)
            if ratios and ratios[-1] > 1.5:
                lost.append(f"{label}-{n}")
    print(
        f"evaluations, ours to the better of NEWUOA and BOBYQA: median {np.median(ratios):.2f}, above 1.5: {lost}"
    )
    for name in names[1:]:
        print(
            f"time of an evaluation, ours to {name}: {np.median(np.array(costs['ours']) / costs[name]):.2f}"
        )


if __name__ == "__main__":
    main()
