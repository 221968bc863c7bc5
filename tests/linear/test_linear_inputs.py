"""No input crashes compiled code: it is fitted, or refused with a sentence."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from scgd.linear import SCGDClassifier, SCGDRegressor
from scgd_paper.linear import solve

X, Y = np.random.default_rng(0).normal(size=(12, 4)), np.arange(12.0)
SIGNS = np.where(Y % 3, 1.0, -1.0)


def broken(kind, what):
    """Return a sparse matrix with one array that lies."""
    matrix = kind(X)
    if what == "index":
        matrix.indices[3] = 10**6
    elif what == "negative":
        matrix.indices[3] = -1
    elif what == "pointer":
        matrix.indptr[2] = 10**6
    elif what == "start":
        matrix.indptr[0] = 1
    elif what == "short":
        matrix.indices = matrix.indices[:5]
    return matrix


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("what", ["index", "negative", "pointer", "start", "short"])
def test_damaged_sparse_matrices_are_refused(kind, what):
    for call in (
        lambda X: solve(X, Y),
        lambda X: SCGDRegressor().fit(X, Y),
        lambda X: SCGDClassifier(penalty="l1").fit(X, SIGNS),
        lambda X: SCGDRegressor().partial_fit(X, Y),
        lambda X: SCGDRegressor().fit(sparse.csr_array(np.eye(12, 4)), Y).predict(X),
    ):
        with pytest.raises(ValueError, match="damaged"):
            call(broken(kind, what))


def test_coordinates_out_of_range_are_refused():
    matrix = sparse.coo_array(X)
    matrix.coords[1][0] = 77
    with pytest.raises(ValueError, match="damaged coo matrix: indices up to 77"):
        SCGDRegressor().fit(matrix, Y)
    with pytest.raises(ValueError, match="damaged"):
        solve(matrix, Y)


@pytest.mark.parametrize("value", [-1, 2, 1.0, "yes", None])
def test_the_intercept_is_a_truth_value(value):
    with pytest.raises(ValueError, match="fit_intercept must be True or False"):
        solve(X, Y, fit_intercept=value)


@pytest.mark.parametrize("weights", [[1.0], [1.0] * 3, [1.0] * 5])
def test_importance_has_one_weight_per_coordinate(weights):
    with pytest.raises(ValueError, match="importance must be 4 weights"):
        solve(X, Y, importance=weights)


@pytest.mark.parametrize("parts", [{"n_jobs": -1}, {"n_jobs": 0}, {"record_every": 0}])
def test_counts_count(parts):
    with pytest.raises(ValueError, match=f"{next(iter(parts))} must be None"):
        solve(X, Y, seed=[0, 1], **parts)


@pytest.mark.parametrize("unit", [1e160, 1e-170])
def test_units_beyond_reach_are_said(unit):
    if unit > 1:
        with pytest.raises(ValueError, match="squares overflow"):
            SCGDRegressor().fit(X * unit, Y)
        with pytest.raises(ValueError, match="squares overflow"):
            solve(X * unit, Y)
    else:
        with pytest.raises(ValueError, match="squares vanish"):
            SCGDRegressor(penalty=None).fit(X * unit, Y)


def test_one_seed_sequence_is_one_run():
    seed = np.random.SeedSequence(5)
    first, second = (solve(X, Y, seed=seed, n_passes=3).coef for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, solve(X, Y, seed=5, n_passes=3).coef)


def layouts(matrix):
    """Return a matrix in every layout people have."""
    doubled = sparse.coo_array(
        (np.repeat(matrix.ravel() / 2, 2),
         (np.repeat(np.repeat(np.arange(len(matrix)), matrix.shape[1]), 2),
          np.repeat(np.tile(np.arange(matrix.shape[1]), len(matrix)), 2))), shape=matrix.shape)  # fmt: skip
    unsorted = sparse.csr_array(matrix)
    for i in range(len(matrix)):
        part = slice(unsorted.indptr[i], unsorted.indptr[i + 1])
        unsorted.indices[part], unsorted.data[part] = (
            unsorted.indices[part][::-1].copy(),
            unsorted.data[part][::-1].copy(),
        )
    unsorted.has_sorted_indices = unsorted.has_canonical_format = False
    long = sparse.csr_array(matrix)
    long.indptr, long.indices = long.indptr.astype(np.int64), long.indices.astype(np.int64)
    frozen = matrix.copy()
    frozen.flags.writeable = False
    return {
        "C": matrix, "F": np.asfortranarray(matrix), "strided": np.repeat(matrix, 2, axis=1)[:, ::2],
        "reversed": matrix[::-1][::-1], "frozen": frozen, "list": matrix.tolist(), "unsorted": unsorted,
        "doubled": doubled, "long": long, **{k: getattr(sparse, f"{k}_array")(matrix) for k in ("csr", "csc", "bsr", "lil", "dok", "dia")},
    }  # fmt: skip


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(
    st.integers(1, 9), st.integers(1, 9), st.sampled_from(sorted(layouts(np.eye(2)))),
    st.sampled_from([np.float64, np.float32, np.int8, np.uint16, bool]),
    st.sampled_from(["squared", "huber"]), st.sampled_from(["l2", "l1", "elasticnet", None]),
    st.sampled_from(["none", "ones", "zeros", "huge", "tiny"]), st.booleans(), st.integers(0, 99),
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_any_layout_type_and_weight(n, p, layout, dtype, loss, penalty, weigh, intercept, seed):
    rng = np.random.default_rng(seed)
    matrix = (rng.integers(0, 3, (n, p)) * rng.integers(0, 2, (n, p))).astype(dtype)
    given_X, y = layouts(np.asarray(matrix, np.float64))[layout], rng.normal(size=n)
    if layout in ("C", "F", "csr", "csc"):
        given_X = given_X.astype(dtype)
    weights = {"none": None, "ones": np.ones(n), "zeros": np.eye(n)[0], "huge": np.full(n, 1e300),
               "tiny": np.full(n, 1e-300)}[weigh]  # fmt: skip
    model = SCGDRegressor(loss, penalty=penalty, alpha=0.1, fit_intercept=intercept, max_iter=300)
    coef = model.fit(given_X, y, sample_weight=weights).coef_
    assert coef.shape == (p,) and np.all(np.isfinite(coef))
    plain = np.asarray(matrix, np.float64)
    other = SCGDRegressor(loss, penalty=penalty, alpha=0.1, fit_intercept=intercept, max_iter=300)
    other.fit(plain, y, sample_weight=None if weights is None else weights / weights.max())
    np.testing.assert_allclose(
        model.predict(plain.astype(coef.dtype)), other.predict(plain), atol=0.02
    )


@pytest.mark.faults
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(
    st.integers(2, 9), st.integers(1, 9), st.sampled_from(sorted(layouts(np.eye(2)))),
    st.sampled_from([np.float64, np.float32]), st.sampled_from(["logistic", "hinge", "squared-hinge"]),
    st.sampled_from(["l2", "l1", "elasticnet"]), st.sampled_from(["auto", True, False]),
    st.sampled_from(["adaptive", "musketeer", "uniform"]),
    st.booleans(), st.booleans(), st.integers(0, 99),
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_any_classifier_on_any_layout(
    n, p, layout, dtype, loss, penalty, dual, policy, weigh, intercept, seed
):
    """Rows or columns, dual or not, empty rows and columns, weights of zero: finite numbers."""
    rng = np.random.default_rng(seed)
    matrix = (rng.integers(-2, 3, (n, p)) * rng.integers(0, 2, (n, p))).astype(np.float64)
    given_X = layouts(matrix)[layout]
    if layout in ("C", "F", "csr", "csc"):
        given_X = given_X.astype(dtype)
    y = np.where(np.arange(n) % 2, 1, -1)
    weights = np.where(np.arange(n) < 2, 1.0, rng.integers(0, 2, n)) if weigh else None
    model = SCGDClassifier(loss, penalty=penalty, alpha=0.1, fit_intercept=intercept, dual=dual,
                           policy=policy, max_iter=30, random_state=0)  # fmt: skip
    model.fit(given_X, y, sample_weight=weights)
    assert model.coef_.shape == (1, p) and np.all(np.isfinite(model.coef_))
    assert np.isfinite(model.intercept_).all() and model.dual_gap_ >= 0.0


def line(rows, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(rows, 4))
    return A, A @ [1.0, -2.0, 0.5, 0.0] + 3 + 0.1 * rng.normal(size=rows)


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("policy", ["adaptive", "uniform"])
def test_chunks_of_one_row_do_not_diverge(rows, policy):
    """One or two rows once led to R2 -2e115."""
    model = SCGDRegressor(random_state=0, policy=policy)
    for k in range(1500 // rows):
        model.partial_fit(*line(rows, k))
    assert model.score(*line(500, 9999)) > 0.98


def test_balanced_weights_of_a_chunk_are_refused_with_the_remedy():
    with pytest.raises(ValueError, match="give partial_fit a dict"):
        SCGDClassifier(class_weight="balanced").partial_fit(X, SIGNS, classes=[-1, 1])
    model = SCGDClassifier(class_weight={-1: 2.0, 1: 1.0}, random_state=0)
    model.partial_fit(X[SIGNS > 0], SIGNS[SIGNS > 0], classes=[-1, 1])
    assert model.coef_.shape == (1, 4)


def test_held_out_samples_are_weighted():
    """Samples of weight zero, however wrong, change neither the fit nor when it stops."""
    A, y = line(300, 0)
    spoilt, weight = y.copy(), np.ones(300)
    spoilt[::3], weight[::3] = 1e6, 0.0
    y = np.where(weight > 0, y, 0.0)
    parts = {"early_stopping": True, "random_state": 0, "n_iter_no_change": 2, "tol": 1e-6}
    first, second = (SCGDRegressor(**parts).fit(A, t, sample_weight=weight) for t in (y, spoilt))
    assert first.n_iter_ == second.n_iter_
    np.testing.assert_allclose(first.coef_, second.coef_, rtol=1e-9)


def test_held_out_samples_are_stratified():
    from scgd.linear.base import split

    labels = np.repeat([0, 1], [190, 10])
    for seed in range(20):
        _, held = split(labels, 200, 0.1, np.random.RandomState(seed))
        assert labels[held].sum() == 1
    assert len(split(np.array([0, 1, 1, 1]), 4, 0.5, np.random.RandomState(0))[1]) == 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_hinge_counts_its_passes():
    for penalty in ("l2", "l1"):
        assert SCGDClassifier("hinge", penalty=penalty, max_iter=1).fit(X, SIGNS).n_iter_ == 1


def test_single_precision_stays_single():
    for model, y in ((SCGDRegressor(), Y), (SCGDRegressor(penalty="l1"), Y), (SCGDClassifier(), SIGNS),
                     (SCGDClassifier("hinge", alpha=0.1), SIGNS)):  # fmt: skip
        fitted = model.fit(X.astype(np.float32), y)
        assert fitted.coef_.dtype == fitted.intercept_.dtype == np.float32
        wide = model.fit(X.astype(np.float32).astype(np.float64), y).coef_
        np.testing.assert_allclose(fitted.coef_.astype(np.float64), wide, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_several_targets_are_several_models(penalty):
    targets = np.column_stack([Y, X[:, 0] * 3, -Y])
    model = SCGDRegressor(penalty=penalty, alpha=0.01, tol=1e-9).fit(X, targets)
    assert model.coef_.shape == (3, 4) and model.predict(X).shape == (12, 3)
    for k in range(3):
        alone = SCGDRegressor(penalty=penalty, alpha=0.01, tol=1e-9).fit(X, targets[:, k])
        np.testing.assert_allclose(model.coef_[k], alone.coef_, atol=1e-3)
        np.testing.assert_allclose(model.predict(X)[:, k], alone.predict(X), atol=1e-2)
