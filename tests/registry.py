"""What the contract tests run over: every policy, estimator, step rule, and problems with minima.

Policies and step rules come from the library's own tables, so a new row is tested without a line
here; options that deserve their own run are listed below.
"""

import itertools

import numpy as np
import pytest

import scgd

P = 12

POLICY_OPTIONS = {
    "musketeer": {
        f"{gain}-{normalization}": {
            "gain": gain,
            "normalization": normalization,
            "sharpness": 0.5,
        }
        for gain, normalization in itertools.product(
            ("average", "absolute", "square"), ("l1", "softmax")
        )
    }
    | {
        "constant": {"mixing": lambda n: 0.2},
        "run": {"memory": "run"},
        "rescaled": {"normalization": "softmax", "rescale": True, "mixing": 0.0},
        "visits": {
            "gain": "average",
            "normalization": "softmax",
            "memory": "visits",
            "rescale": True,
            "mixing": 0.0,
        },
        "visits-l1": {"memory": "visits", "mixing": 0.3, "length": 5},
        "run-square": {"gain": "square", "memory": "run", "rescale": True},
    },
    "recent-gains": {"": {}, "quick": {"beta": 0.5, "mixing": 0.3}},
    "fixed-weights": {"": {"values": tuple(np.arange(1.0, P + 1))}},
    "gradient-weights": {"": {"power": 2.0}},
}
STEP_OPTIONS = {
    "momentum": {"": {}, "nesterov": {"nesterov": True, "beta": 0.7}},
    "rms": {"": {}, "epsilon": {"epsilon": 0.5, "beta": 0.6}},
    "adam": {"": {}, "epsilon": {"epsilon": 0.5, "beta1": 0.5, "beta2": 0.8}},
    "learned": {
        "": {},
        "limits": {"shortest": -0.5, "longest": 0.4, "gain": 0.3, "beta": 0.7},
        "shared": {"shared_gain": 0.3, "shortest": -0.2, "longest": 0.6},
    },
    "wiener": {
        "": {},
        "shrunk": {"beta": 0.95, "beta2": 0.9, "shrinkage": 3.0},
        "limits": {"longest": 0.1, "shared_gain": 0.05},
        "plain": {"shrinkage": 0.0, "beta": 0.8},
    },
}


def rows(registry, options):
    """Yield every registered class with each of its options."""
    for name, cls in registry.items():
        for label, settings in options.get(name, {"": {}}).items():
            yield f"{name}-{label}".strip("-"), cls(**settings)


EVERY_POLICY = dict(rows(scgd.POLICIES, POLICY_OPTIONS))
GREEDY = {name: policy for name, policy in EVERY_POLICY.items() if policy.needs_gradient}
POLICIES = {
    name: policy
    for name, policy in EVERY_POLICY.items()
    if not policy.needs_gradient and not policy.dense
}
ESTIMATORS = {name: cls() for name, cls in scgd.ESTIMATORS.items() if name != "first-order"}
STEPS = {name: cls() for name, cls in scgd.STEPS.items()}
EVERY_STEP = dict(rows(scgd.STEPS, STEP_OPTIONS))

CURVATURES = 10.0 ** -np.linspace(0, 2, P)
MINIMUM = np.linspace(-1, 1, P)


def quadratic(x):
    return float(CURVATURES @ (x - MINIMUM) ** 2) / 2


def quadratic_gradient(x, coords):
    return CURVATURES[coords] * (x[coords] - MINIMUM[coords])


EVERY_METHOD = [
    pytest.param(name, marks=pytest.mark.slow) if name == "gp" else name for name in scgd.METHODS
]
"""Methods by name; the Gaussian process takes seconds and has tests of its own (tests/spaces)."""
