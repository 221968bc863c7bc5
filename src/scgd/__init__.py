"""Stochastic gradient descent with coordinate sampling."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from scgd.checkpoint import Checkpoint, CheckpointError
from scgd.estimators import (
    ESTIMATORS,
    SPSA,
    CentralDifference,
    FirstOrder,
    ForwardDifference,
    GaussianSmoothing,
    SphereSmoothing,
)
from scgd.method import SCGD
from scgd.methods import METHODS
from scgd.minimize import minimize
from scgd.optimizer import Optimizer
from scgd.options import Failures, Reporting, Rows, Workers
from scgd.policies import (
    POLICIES,
    Adaptive,
    FixedWeights,
    Full,
    GaussSouthwell,
    GradientWeights,
    Musketeer,
    RecentGains,
    Uniform,
    coordinate_smoothness,
)
from scgd.schedules import SCHEDULES, Constant, InverseLog, InverseTime, Linear, Relative, SqrtOf
from scgd.scipy import scipy_method
from scgd.screen import Screening, screen
from scgd.spaces import Choice, Float, Int, Space
from scgd.steps import RMS, SGD, STEPS, Adam, Learned, Momentum, Wiener
from scgd.strategies.screening import Screen
from scgd.trials import Trial

__all__ = [
    "ESTIMATORS",
    "METHODS",
    "POLICIES",
    "RMS",
    "SCGD",
    "SCHEDULES",
    "SGD",
    "SPSA",
    "STEPS",
    "Adam",
    "Adaptive",
    "CentralDifference",
    "Checkpoint",
    "CheckpointError",
    "Choice",
    "Constant",
    "Failures",
    "FirstOrder",
    "FixedWeights",
    "Float",
    "ForwardDifference",
    "Full",
    "GaussSouthwell",
    "GaussianSmoothing",
    "GradientWeights",
    "Int",
    "InverseLog",
    "InverseTime",
    "Learned",
    "Linear",
    "Momentum",
    "Musketeer",
    "Optimizer",
    "RecentGains",
    "Relative",
    "Reporting",
    "Rows",
    "Screen",
    "Screening",
    "Space",
    "SphereSmoothing",
    "SqrtOf",
    "Trial",
    "Uniform",
    "Wiener",
    "Workers",
    "coordinate_smoothness",
    "minimize",
    "scipy_method",
    "screen",
]

__version__ = "0.3.0"

ROOMS = ("linear", "optuna", "sklearn", "theory", "torch")
"""Public modules that load when they are first asked for: some need what not everybody has."""


if TYPE_CHECKING:
    from scgd import linear as linear
    from scgd import optuna as optuna
    from scgd import sklearn as sklearn
    from scgd import theory as theory
    from scgd import torch as torch
else:

    def __getattr__(name: str) -> Any:
        if name in ROOMS:
            return import_module(f"scgd.{name}")
        raise AttributeError(f"module 'scgd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *ROOMS, "__version__"]
