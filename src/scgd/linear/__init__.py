"""Linear models: scikit-learn estimators that certify how far from the minimum they are.

:class:`SCGDRegressor` and :class:`SCGDClassifier` fit models, :class:`SCGDRegressorCV` and
:class:`SCGDClassifierCV` choose their penalty as well. Each imports what it needs, numba or
scikit-learn, when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scgd.linear.crossvalidated import SCGDClassifierCV, SCGDRegressorCV
    from scgd.linear.estimators import SCGDClassifier, SCGDRegressor
    from scgd.linear.losses import LOSSES

__all__ = ["LOSSES", "SCGDClassifier", "SCGDClassifierCV", "SCGDRegressor", "SCGDRegressorCV"]


HOMES = {
    "LOSSES": "losses",
    "SCGDClassifier": "estimators",
    "SCGDClassifierCV": "crossvalidated",
    "SCGDRegressor": "estimators",
    "SCGDRegressorCV": "crossvalidated",
}
"""The module of each name."""


def __getattr__(name: str) -> Any:
    if name in HOMES:
        return getattr(import_module(f"scgd.linear.{HOMES[name]}"), name)
    raise AttributeError(f"module 'scgd.linear' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
