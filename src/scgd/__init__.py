"""Stochastic gradient descent with coordinate sampling."""

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
from scgd.minimize import minimize
from scgd.optimizer import Optimizer, Trial
from scgd.plans import METHODS
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
from scgd.recipes import RECIPES, Recipe
from scgd.schedules import SCHEDULES, Constant, InverseLog, InverseTime, Linear, SqrtOf
from scgd.scipy import scipy_method
from scgd.spaces import Choice, Float, Int, Space
from scgd.steps import RMS, SGD, STEPS, Adam, Learned, Momentum, Wiener

__all__ = [
    "ESTIMATORS",
    "METHODS",
    "POLICIES",
    "RECIPES",
    "RMS",
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
    "Recipe",
    "Space",
    "SphereSmoothing",
    "SqrtOf",
    "Trial",
    "Uniform",
    "Wiener",
    "coordinate_smoothness",
    "minimize",
    "scipy_method",
]

__version__ = "0.2.0"
