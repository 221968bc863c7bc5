"""Linear models: a compiled engine for experiments, and scikit-learn estimators.

``solve`` and ``block_data`` serve experiments; :class:`SCGDRegressor` and :class:`SCGDClassifier`
fit models. The estimators import scikit-learn when they are first asked for.
"""

from typing import TYPE_CHECKING, Any

from scgd.linear.losses import LOSSES
from scgd.linear.plan import LinearResult
from scgd.linear.problems import BlockData, block_data
from scgd.linear.solver import solve

if TYPE_CHECKING:
    from scgd.linear.estimators import SCGDClassifier, SCGDRegressor

__all__ = [
    "LOSSES",
    "BlockData",
    "LinearResult",
    "SCGDClassifier",
    "SCGDRegressor",
    "block_data",
    "solve",
]


def __getattr__(name: str) -> Any:
    if name in ("SCGDClassifier", "SCGDRegressor"):
        from scgd.linear import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'scgd.linear' has no attribute {name!r}")
