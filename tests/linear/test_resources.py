"""What a fit takes beside its data: memory, threads, and chunks of what does not fit."""

import threading
import tracemalloc

import numpy as np
import pytest

from scgd.linear import SCGDClassifier, SCGDRegressor


def peak(run):
    tracemalloc.start()
    run()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


@pytest.mark.parametrize(
    "model", [SCGDRegressor(alpha=1e-3), SCGDRegressor(penalty="l1", alpha=0.05)]
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_fit_takes_less_than_its_data_again(model, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 60)).astype(dtype)
    y = np.where(X[:, :5].sum(axis=1) + rng.normal(size=len(X)) > 0, 1.0, -1.0)
    model.fit(X, y)  # compiled before memory is measured
    assert peak(lambda: model.fit(X, y)) < 1.5 * X.nbytes


@pytest.mark.slow
def test_large_data_in_single_precision_are_not_copied_in_double():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300_000, 150), dtype=np.float32)
    y = np.where(X[:, 0] + rng.normal(size=len(X)) > 0, 1, -1)
    model = SCGDClassifier().fit(X[:500], y[:500])
    assert peak(lambda: model.fit(X, y)) < 1.5 * X.nbytes
    assert model.dual_gap_ <= 1e-6


def test_threads_are_those_that_n_jobs_asks_for(monkeypatch):
    started, start = [], threading.Thread.start

    def noted(thread):
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 5)), rng.integers(4, size=300)
    alone = SCGDClassifier(random_state=0).fit(X, y)
    assert not started
    together = SCGDClassifier(random_state=0, n_jobs=2).fit(X, y)
    assert started
    np.testing.assert_array_equal(alone.coef_, together.coef_)


def test_blocks_of_a_dask_array_pass_one_by_one():
    array = pytest.importorskip("dask.array")
    n_blocks, rows = 20, 2000
    X = array.random.default_rng(0).normal(size=(n_blocks * rows, 50), chunks=(rows, 50))
    y = (X[:, 0] > 0).astype(int)
    model, again = SCGDClassifier(alpha=1e-5), SCGDClassifier(alpha=1e-5)

    def stream(model):
        for block, labels in zip(X.blocks, y.blocks, strict=True):
            model.partial_fit(block.compute(), labels.compute(), classes=[0, 1])

    stream(again)
    assert peak(lambda: stream(model)) < X.nbytes / 3
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert model.score(X.blocks[0].compute(), y.blocks[0].compute()) > 0.97
