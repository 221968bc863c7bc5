"""What the contract tests run over: every policy, estimator, step rule, and problems with minima."""

import numpy as np

import scgd

P = 12


def policies(p=P):
    yield "uniform", scgd.Uniform()
    for gain in ("average", "absolute", "square"):
        for normalization in ("l1", "softmax"):
            yield (
                f"musketeer-{gain}-{normalization}",
                scgd.Musketeer(gain=gain, normalization=normalization, sharpness=0.5),
            )
    yield "musketeer-run", scgd.Musketeer(memory="run")
    yield "musketeer-rescaled", scgd.Musketeer(normalization="softmax", rescale=True, mixing=0.0)
    yield (
        "musketeer-visits",
        scgd.Musketeer("average", "softmax", memory="visits", rescale=True, mixing=0.0),
    )
    yield "adaptive", scgd.Adaptive()
    yield "fixed", scgd.FixedWeights(tuple(np.arange(1.0, p + 1)))


POLICIES = dict(policies())
GREEDY = {"gauss-southwell": scgd.GaussSouthwell(), "gradient-weights": scgd.GradientWeights(2.0)}
ESTIMATORS = {name: cls() for name, cls in scgd.ESTIMATORS.items() if name != "first-order"}
STEPS = {name: cls() for name, cls in scgd.STEPS.items()}

CURVATURES = 10.0 ** -np.linspace(0, 2, P)
MINIMUM = np.linspace(-1, 1, P)


def quadratic(x):
    return float(CURVATURES @ (x - MINIMUM) ** 2) / 2


def quadratic_gradient(x, coords):
    return CURVATURES[coords] * (x[coords] - MINIMUM[coords])
