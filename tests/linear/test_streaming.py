"""partial_fit: one pass over chunks is as good as a pass of SGD, and holds no more than a chunk."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import SGDClassifier

from scgd.linear import SCGDClassifier, SCGDRegressor


def documents(seed, n, p=5000, n_classes=2):
    """Return sparse unit rows of words as frequent as 1 / rank, and noisy labels."""
    rng = np.random.default_rng(seed)
    law = 1.0 / np.arange(1.0, p + 1)
    indices = rng.choice(p, (n, 40), p=law / law.sum())
    X = sparse.csr_array((np.full(n * 40, 40**-0.5), indices.ravel(), np.arange(0, n * 40 + 1, 40)),
                         shape=(n, p))  # fmt: skip
    X.sum_duplicates()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    truth = np.random.default_rng(1).normal(size=(p, n_classes))
    return X, np.argmax(X @ truth + 0.3 * rng.normal(size=(n, n_classes)), axis=1)


def streamed(model, n_chunks, size, **parts):
    classes = np.arange(parts.get("n_classes", 2))
    for k in range(n_chunks):
        model.partial_fit(*documents(k, size, **parts), classes=classes)
    return model


@pytest.mark.parametrize("size", [100, 1000])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared-hinge", "multinomial"])
def test_one_pass_over_sparse_text_is_as_good_as_sgd(size, loss):
    test = documents(999, 2000)
    ours = streamed(SCGDClassifier(loss, alpha=1e-5), 10_000 // size, size)
    theirs = streamed(
        SGDClassifier(loss="log_loss", alpha=1e-5, random_state=0), 10_000 // size, size
    )
    assert ours.score(*test) >= theirs.score(*test) - 0.01


def test_a_softmax_over_several_classes():
    test = documents(999, 2000, n_classes=4)
    ours = streamed(SCGDClassifier("multinomial", alpha=1e-5), 20, 500, n_classes=4)
    theirs = streamed(
        SGDClassifier(loss="log_loss", alpha=1e-5, random_state=0), 20, 500, n_classes=4
    )
    assert ours.score(*test) >= theirs.score(*test) - 0.01
    np.testing.assert_allclose(ours.predict_proba(test[0]).sum(axis=1), 1.0)


@pytest.mark.parametrize("power", [-6, 6])
def test_units_of_columns_do_not_matter(power):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5))
    y = X @ [1.0, -2.0, 0.5, 0.0, 3.0] + 0.1 * rng.normal(size=2000)
    scaled = X * [10.0**power, 1, 1, 1, 1]
    models = [SCGDRegressor(alpha=0.0) for _ in range(2)]
    for rows in np.split(np.arange(2000), 20):
        for model, matrix in zip(models, (X, scaled), strict=True):
            model.partial_fit(matrix[rows], y[rows])
    np.testing.assert_allclose(models[0].predict(X), models[1].predict(scaled), rtol=1e-6)
    assert models[0].score(X, y) > 0.98


def test_dense_and_sparse_chunks_give_the_same():
    X, y = documents(0, 300, p=50)
    one, two = (SCGDClassifier(penalty="l1", alpha=1e-4) for _ in range(2))
    for rows in np.split(np.arange(300), 3):
        one.partial_fit(X[rows], y[rows], classes=[0, 1])
        two.partial_fit(X[rows].toarray(), y[rows], classes=[0, 1])
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-9, atol=1e-12)


def test_a_stronger_l1_penalty_leaves_fewer_words():
    counts = [
        np.count_nonzero(streamed(SCGDClassifier(penalty="l1", alpha=a), 10, 300).coef_)
        for a in (1e-6, 1e-3, 1e-1)
    ]
    assert counts[0] > counts[1] > counts[2]


def test_data_larger_than_memory_pass_in_chunks():
    """Chunks of 4 MB, 80 MB in all: no more than some chunks are ever held."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=100)
    model = SCGDRegressor(alpha=0.0)
    model.partial_fit(np.ones((2, 100)), [0.0, 0.0])  # compiled before memory is measured
    tracemalloc.start()
    for _ in range(20):
        X = rng.normal(size=(5000, 100))
        model.partial_fit(X, X @ truth + rng.normal(size=5000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6
    X = rng.normal(size=(1000, 100))
    assert model.score(X, X @ truth) > 0.98
