"""What a type checker knows of public results. `make lint` reads it; nothing here runs."""

from typing import Any, assert_type

import numpy as np

import scgd
from scgd.linear import SCGDClassifier, SCGDClassifierCV, SCGDRegressor, SCGDRegressorCV
from scgd.results import Result
from scgd.typing import Floats


def of_runs(optimizer: scgd.Optimizer) -> None:
    result = scgd.minimize(lambda x: float(x @ x), np.zeros(2))
    assert_type(result, Result)
    assert_type(result.x, Floats)
    assert_type(result.fun, float)
    assert_type(result.params, dict[str, Any])
    assert_type(optimizer.result(), Result)
    assert_type(optimizer.ask(), list[scgd.Trial])


def of_fits(X: Floats, y: Floats) -> None:
    assert_type(SCGDRegressor().fit(X, y), SCGDRegressor)
    assert_type(SCGDClassifier().fit(X, y), SCGDClassifier)
    assert_type(SCGDRegressorCV().fit(X, y), SCGDRegressorCV)
    assert_type(SCGDClassifierCV().fit(X, y), SCGDClassifierCV)
    assert_type(SCGDRegressor().fit(X, y).predict(X), Floats)
