"""``SCGDSearchCV``: scikit-learn's own search API, and its checks."""

import warnings

import numpy as np
import pytest
from joblib import parallel_config
from scipy.stats import loguniform, norm, randint, uniform
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import ParameterGrid, RandomizedSearchCV, cross_val_score
from sklearn.preprocessing import scale
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from scgd import Choice, Float, Int, Space
from scgd.sklearn import SCGDSearchCV

C = {"C": Float(0.1, 10, log=True)}


@pytest.mark.filterwarnings("ignore")  # scikit-learn's own, of fits that are meant to fail
@parametrize_with_checks([
    SCGDSearchCV(Ridge(), {"alpha": Float(0.1, 10, log=True)}, n_iter=2, cv=2, random_state=0),
    SCGDSearchCV(LogisticRegression(), Space(C), n_iter=2, cv=2, random_state=0),
])  # fmt: skip
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    return scale(X) + rng.normal(scale=0.5, size=X.shape), y


SPACE = Space(
    C=Float(1e-3, 1e2, log=True), kernel=Choice("rbf", "linear"),
    gamma=Float(1e-4, 1, log=True, when={"kernel": "rbf"}), cache_size=Int(50, 60),
)  # fmt: skip


def search(**words):
    return SCGDSearchCV(SVC(), SPACE, **{"n_iter": 20, "random_state": 0, "cv": 3, **words})


def test_results_look_as_everybodys(data):
    found = search().fit(*data)
    other = RandomizedSearchCV(SVC(), {"C": [0.1, 1]}, n_iter=2, cv=3).fit(*data)
    mine = {name for name in found.cv_results_ if not name.startswith("param_")}
    assert mine == {name for name in other.cv_results_ if not name.startswith("param_")}
    assert len(found.cv_results_["params"]) == 20
    assert found.best_params_ == found.cv_results_["params"][found.best_index_]
    best = max(found.cv_results_["mean_test_score"])
    assert found.best_score_ == best
    alone = cross_val_score(SVC(**found.best_params_), *data, cv=3).mean()
    assert alone == pytest.approx(found.best_score_)
    assert found.predict(data[0][:3]).shape == (3,)
    for params in found.cv_results_["params"]:
        assert ("gamma" in params) == (params["kernel"] == "rbf")


def test_later_candidates_are_better_than_the_first(data):
    scores = search(n_iter=30).fit(*data).cv_results_["mean_test_score"]
    assert np.median(scores[-10:]) > np.median(scores[:8])


@pytest.mark.parametrize("batch_size", [1, 4])
def test_jobs_change_nothing(data, batch_size):
    one = search(n_iter=9, batch_size=batch_size).fit(*data)
    with parallel_config("threading"):
        two = search(n_iter=9, batch_size=batch_size, n_jobs=2).fit(*data)
    assert one.cv_results_["params"] == two.cv_results_["params"]
    assert len(one.cv_results_["params"]) == 9


def test_several_scores(data):
    both = {"acc": "accuracy", "bal": "balanced_accuracy"}
    found = search(n_iter=4, scoring=both, refit="bal").fit(*data)
    assert found.best_score_ == max(found.cv_results_["mean_test_bal"])
    with pytest.raises(ValueError, match="refit must name the one to search by"):
        search(n_iter=2, scoring=both, refit=False).fit(*data)


def test_candidates_that_fail_count_as_failed(data):
    class Fussy(SVC):
        def fit(self, X, y):
            if self.C > 10:
                raise ValueError("too large")
            return super().fit(X, y)

    space = {"C": Float(1e-1, 1e3, log=True)}
    with pytest.warns(FitFailedWarning, match="a candidate failed"):
        found = SCGDSearchCV(Fussy(), space, n_iter=15, cv=2, random_state=1).fit(*data)
    assert found.best_params_["C"] <= 10
    assert 3 <= len(found.cv_results_["params"]) < 15
    with pytest.raises(ValueError, match="too large"):
        hopeless = {"C": Float(11, 1e3)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            SCGDSearchCV(Fussy(), hopeless, n_iter=30, cv=2, random_state=1).fit(*data)
    with pytest.raises(ValueError, match="too large"):
        SCGDSearchCV(Fussy(), hopeless, cv=2, error_score="raise").fit(*data)


def test_a_small_space_ends_early(data):
    found = SCGDSearchCV(SVC(), {"kernel": Choice("rbf", "linear")}, n_iter=20, cv=2).fit(*data)
    assert 2 <= len(found.cv_results_["params"]) <= 4


def test_it_clones(data):
    again = clone(search(n_iter=3))
    assert again.fit(*data).best_score_ == search(n_iter=3).fit(*data).best_score_


@pytest.mark.parametrize(
    "words, message",
    [
        ({"n_iter": 0}, "The 'n_iter' parameter of SCGDSearchCV must be an int"),
        ({"batch_size": 0.5}, "'batch_size' parameter"),
        ({"method": "tpe"}, "method must be one of"),
        ({"method": "dd"}, "did you mean 'dds'"),
    ],
)
def test_wrong_arguments_are_named(data, words, message):
    with pytest.raises(ValueError, match=message):
        search(**words).fit(*data)


def test_wrong_spaces_are_named(data):
    with pytest.raises(ValueError, match="'space' parameter"):
        SCGDSearchCV(SVC(), 3).fit(*data)
    with pytest.raises(TypeError, match="space must be a dict, or a list of dicts"):
        SCGDSearchCV(SVC(), [1, 2]).fit(*data)
    with pytest.raises(TypeError, match="'C' must be a Float, an Int, a Choice, a list"):
        SCGDSearchCV(SVC(), {"C": 3}).fit(*data)
    with pytest.raises(ValueError, match="Invalid parameter 'D'"):
        SCGDSearchCV(SVC(), {"D": Float(0, 1)}, error_score="raise").fit(*data)


def test_grids_of_scikit_learn_are_taken_as_they_are(data):
    """What GridSearchCV and RandomizedSearchCV take: lists, arrays, distributions, several dicts."""
    given = {"C": loguniform(1e-2, 1e2), "kernel": ["rbf", "linear"], "gamma": np.logspace(-3, 0, 7),
             "tol": norm(1e-3, 1e-5), "cache_size": randint(50, 60), "coef0": uniform(0, 2)}  # fmt: skip
    found = SCGDSearchCV(SVC(), given, n_iter=15, cv=3, random_state=0).fit(*data)
    RandomizedSearchCV(SVC(), given, n_iter=2, cv=3, random_state=0).fit(*data)
    tried = found.cv_results_["params"]
    assert all(set(params) == set(given) for params in tried)
    for params in tried:
        assert 1e-2 <= params["C"] <= 1e2 and params["kernel"] in given["kernel"]
        assert params["gamma"] in given["gamma"] and abs(params["tol"] - 1e-3) < 4e-5
        assert params["cache_size"] in range(50, 60) and 0 <= params["coef0"] <= 2


@pytest.mark.parametrize("wrap", [list, ParameterGrid])
def test_a_candidate_belongs_to_one_of_several_grids(data, wrap):
    grids = [{"kernel": ["linear"], "C": [0.1, 1, 10]}, {"kernel": ["rbf"], "gamma": [0.01, 0.1]}]
    found = SCGDSearchCV(SVC(), wrap(grids), n_iter=20, cv=3, random_state=0).fit(*data)
    tried = [tuple(params.items()) for params in found.cv_results_["params"]]
    every = {tuple(params.items()) for params in ParameterGrid(grids)}
    assert {frozenset(one) for one in tried} == {frozenset(one) for one in every}


def test_numbers_of_a_list_have_an_order_and_words_have_none():
    space = Space(a=[3, 1, 2, 1], b=["x", "y", "z"], c=[True, False], d=np.arange(4))
    assert space.parameters["a"] == Choice(1, 2, 3, ordered=True) and space.start["a"] == 2
    assert space.parameters["b"] == Choice("x", "y", "z") and space.start["b"] == "x"
    assert space.grid.categorical.tolist() == [False, True, True, False]
    again = space.decode(space.encode({"a": 3, "b": "z", "c": False, "d": 0}))
    assert again == {"a": 3, "b": "z", "c": False, "d": 0}
