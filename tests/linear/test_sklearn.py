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
OTHERS = [
    kind(loss, penalty=penalty, random_state=0)
    for kind, losses in ((SCGDRegressor, ("squared", "huber")),
                         (SCGDClassifier, ("logistic", "hinge", "squared-hinge", "multinomial")))
    for loss in losses
    for penalty in ("l2", "l1", "elasticnet", None)
]  # fmt: skip
mark = parametrize_with_checks(MODELS)
CHECKS = list(mark.args[1])  # pytest wants a list where scikit-learn gives a generator
ALL = list(parametrize_with_checks(OTHERS).args[1])
WEIGHTS = [pair for pair in ALL if "sample_weight_equivalence" in str(pair)]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(mark.args[0], CHECKS, **mark.kwargs)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(mark.args[0], WEIGHTS, **mark.kwargs)
def test_weights_and_repeated_samples_give_the_same_for_every_loss_and_penalty(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(mark.args[0], ALL, **mark.kwargs)
def test_all_scikit_learn_checks_for_every_loss_and_penalty(estimator, check):
    check(estimator)


def test_all_checks_are_made():
    counts = Counter(type(getattr(c, "values", c)[0]).__name__ for c in CHECKS)
    assert all(counts[name] >= least for name, least in LEAST.items()), counts
    assert len(WEIGHTS) >= 2 * len(OTHERS)
