"""scikit-learn's own checks, with their number asserted."""

from collections import Counter

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from scgd.linear import SCGDClassifier, SCGDRegressor

LEAST = {"SCGDRegressor": 60, "SCGDClassifier": 65}  # of 1.6, the oldest supported
MODELS = [
    SCGDRegressor(random_state=0),
    SCGDClassifier(random_state=0),
    SCGDClassifier("multinomial", random_state=0),
]
mark = parametrize_with_checks(MODELS)
CHECKS = list(mark.args[1])  # pytest wants a list where scikit-learn gives a generator


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(mark.args[0], CHECKS, **mark.kwargs)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_all_checks_are_made():
    counts = Counter(type(getattr(c, "values", c)[0]).__name__ for c in CHECKS)
    assert all(counts[name] >= least for name, least in LEAST.items()), counts
