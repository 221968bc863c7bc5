"""How the estimators behave around a fit: composition, streaming, stopping, bad input."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from scgd.linear import SCGDClassifier, SCGDRegressor

X, Y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)


def test_pipeline_grid_search_clone_and_pickle():
    pipe = make_pipeline(StandardScaler(), SCGDClassifier(random_state=0))
    grid = {"scgdclassifier__alpha": [1e-3, 1e-2], "scgdclassifier__loss": ["logistic", "hinge"]}
    search = GridSearchCV(pipe, grid, cv=2).fit(*load_breast_cancer(return_X_y=True))
    assert search.best_score_ > 0.95
    best = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(best.predict(X), search.best_estimator_.predict(X))
    assert clone(best).get_params()["scgdclassifier__alpha"] == grid_value(search)


def grid_value(search):
    return search.best_params_["scgdclassifier__alpha"]


def test_metadata_routing_carries_sample_weights():
    with config_context(enable_metadata_routing=True):
        model = SCGDClassifier(random_state=0).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=False)
        scores = cross_val_score(
            model, X, Y, cv=2, params={"sample_weight": np.where(Y == 1, 1.0, 2.0)}
        )
    assert scores.min() > 0.9


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_column_names_are_kept_and_compared(library):
    frames = pytest.importorskip(library)
    table = frames.DataFrame({f"column {k}": X[:, k] for k in range(4)})
    model = SCGDClassifier(random_state=0).fit(table, Y)
    assert list(model.feature_names_in_) == [f"column {k}" for k in range(4)]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frames.DataFrame({f"other {k}": X[:, k] for k in range(4)}))


def test_labels_may_be_strings():
    names = np.array(["benign", "malignant"])[Y]
    model = SCGDClassifier(random_state=0).fit(X, names)
    assert model.score(X, names) > 0.97 and set(model.predict(X)) == set(names)


def test_probabilities_belong_to_the_logistic_loss():
    flowers, kinds = load_iris(return_X_y=True)
    shares = SCGDClassifier(random_state=0).fit(flowers, kinds).predict_proba(flowers)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert np.mean(shares.argmax(axis=1) == kinds) > 0.9
    assert not hasattr(SCGDClassifier("hinge"), "predict_proba")


def test_partial_fit_streams_towards_the_fit():
    rng = np.random.default_rng(0)
    truth = np.array([1.0, -2.0, 0.5, 0.0])
    model = SCGDRegressor(alpha=1e-6, random_state=0)
    for _ in range(150):
        chunk = rng.normal(size=(40, 4))
        model.partial_fit(chunk, chunk @ truth + 3 + 0.1 * rng.normal(size=40))
    np.testing.assert_allclose(model.coef_, truth, atol=0.02)
    assert model.intercept_[0] == pytest.approx(3, abs=0.02)


def test_partial_fit_of_a_classifier_needs_all_classes_first():
    model = SCGDClassifier(random_state=0)
    with pytest.raises(ValueError, match="classes must be given"):
        model.partial_fit(X, Y)
    for _ in range(40):
        model.partial_fit(X, Y, classes=[0, 1])
    assert model.score(X, Y) > 0.96
    with pytest.raises(ValueError, match="not announced"):
        model.partial_fit(X, Y + 5)


def test_warm_start_needs_fewer_passes():
    model = SCGDClassifier(alpha=1e-3, warm_start=True, random_state=0, tol=1e-8).fit(X, Y)
    cold = model.n_iter_
    assert model.fit(X, Y).n_iter_ < cold / 3


def test_early_stopping_stops_when_the_held_out_loss_stops_falling():
    parts = {"alpha": 1e-5, "random_state": 0, "tol": 1e-7, "early_stopping": True}
    long = SCGDClassifier(n_iter_no_change=1000, **parts).fit(X, Y)
    short = SCGDClassifier(n_iter_no_change=2, **parts).fit(X, Y)
    assert short.n_iter_ < 0.7 * long.n_iter_ and short.score(X, Y) > 0.95


def test_with_l1_early_stopping_sees_many_steps():
    """A fit that is not watched settles the whole set at once."""
    parts = {"alpha": 1e-3, "penalty": "l1", "random_state": 0, "tol": 1e-7}
    watched = SCGDClassifier(early_stopping=True, n_iter_no_change=1000, **parts).fit(X, Y)
    assert watched.n_iter_ > 2 * SCGDClassifier(**parts).fit(X, Y).n_iter_


def test_class_weights_are_sample_weights():
    parts = {"alpha": 1e-3, "random_state": 0}
    by_class = SCGDClassifier(class_weight={0: 3.0, 1: 1.0}, **parts).fit(X, Y)
    by_sample = SCGDClassifier(**parts).fit(X, Y, sample_weight=np.where(Y == 0, 3.0, 1.0))
    np.testing.assert_array_equal(by_class.coef_, by_sample.coef_)


def test_no_convergence_is_said():
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        SCGDClassifier(alpha=0.0, max_iter=2, tol=1e-12).fit(X, Y)


def test_verbose_prints_progress(capsys):
    told = SCGDClassifier(verbose=1, random_state=0).fit(X, Y)
    assert "gap" in capsys.readouterr().out
    np.testing.assert_array_equal(told.coef_, SCGDClassifier(random_state=0).fit(X, Y).coef_)


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="at least two classes"):
        SCGDClassifier().fit(X, np.zeros(len(X)))


@pytest.mark.parametrize("power", [-12, -6, 6, 12])
@pytest.mark.parametrize(
    "model", [SCGDRegressor(penalty=None), SCGDClassifier(penalty=None, tol=1e-4)]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_units_do_not_matter_without_penalty(model, power):
    model = clone(model).set_params(random_state=0)
    plain = clone(model).fit(X[:, :5], Y)
    scaled = clone(model).fit(X[:, :5] * 10.0**power, Y)
    np.testing.assert_allclose(scaled.coef_ * 10.0**power, plain.coef_, rtol=1e-6)


def test_constant_columns_and_more_features_than_samples():
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(20, 60))
    wide[:, 0] = 7.0
    model = SCGDRegressor(alpha=1e-3).fit(wide, wide[:, 1])
    assert model.coef_[0] == 0.0 and model.score(wide, wide[:, 1]) > 0.99


@settings(deadline=None, max_examples=25)
@given(st.sampled_from([np.nan, np.inf, -np.inf]), st.integers(0, 568), st.integers(0, 29))
def test_numbers_that_are_not_finite_are_refused(bad, row, column):
    spoilt = X.copy()
    spoilt[row, column] = bad
    with pytest.raises(ValueError, match=r"NaN|infinit"):
        SCGDClassifier().fit(spoilt, Y)
    targets = Y.astype(float)
    targets[row] = bad
    with pytest.raises(ValueError, match=r"NaN|infinit"):
        SCGDRegressor().fit(X, targets)


def test_the_global_generator_is_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    SCGDClassifier(random_state=0).fit(X, Y)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
