"""Stochastic gradient descent with coordinate sampling."""

from scgd.estimators import (
    ESTIMATORS,
    SPSA,
    CentralDifference,
    FirstOrder,
    ForwardDifference,
    GaussianSmoothing,
    SphereSmoothing,
)
from scgd.checkpoint import Checkpoint, CheckpointError
from scgd.minimize import minimize
from scgd.optimizer import Optimizer
from scgd.policies import (
    POLICIES,
    FixedWeights,
    Full,
    GaussSouthwell,
    GradientWeights,
    Musketeer,
    Uniform,
    coordinate_smoothness,
)
from scgd.recipes import RECIPES, Recipe
from scgd.schedules import SCHEDULES, Constant, InverseLog, InverseTime, Linear, SqrtOf
from scgd.steps import RMS, SGD, STEPS, Adam, Momentum

__version__ = "0.1.0"
