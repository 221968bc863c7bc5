"""Linear models: a compiled engine for experiments, and scikit-learn estimators.

``solve`` and ``block_data`` serve experiments; :class:`SCGDRegressor` and :class:`SCGDClassifier`
fit models, :class:`SCGDRegressorCV` and :class:`SCGDClassifierCV` choose their penalty as well. The
estimators import scikit-learn when they are first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from scgd.linear.losses import LOSSES
from scgd.linear.plan import LinearResult
from scgd.linear.problems import BlockData, block_data
from scgd.linear.solver import solve

if TYPE_CHECKING:
    from scgd.linear.crossvalidated import SCGDClassifierCV, SCGDRegressorCV
    from scgd.linear.estimators import SCGDClassifier, SCGDRegressor

__all__ = [
    "LOSSES",
    "BlockData",
    "LinearResult",
    "SCGDClassifier",
    "SCGDClassifierCV",
    "SCGDRegressor",
    "SCGDRegressorCV",
    "block_data",
    "solve",
]


ESTIMATORS = {
    "SCGDClassifier": "estimators",
    "SCGDClassifierCV": "crossvalidated",
    "SCGDRegressor": "estimators",
    "SCGDRegressorCV": "crossvalidated",
}


def __getattr__(name: str) -> Any:
    if name in ESTIMATORS:
        return getattr(import_module(f"scgd.linear.{ESTIMATORS[name]}"), name)
    raise AttributeError(f"module 'scgd.linear' has no attribute {name!r}")
