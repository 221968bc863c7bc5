"""Small matrices are for one thread: what a search spends on them must not depend on who else runs."""

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info

from scgd.blas import one_thread
from scgd.searches import regression
from scgd.searches.arms.population import Population
from scgd.searches.mixed import gaussian
from scgd.spaces import Float, Space


def threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    """Let BLAS have two, whatever the environment says."""
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        if threads() != {2}:
            pytest.skip("BLAS cannot be told how many threads to use")
        yield
        assert threads() == {2}  # and it has them again


def test_one_thread_ends_with_its_block_and_with_an_error(two_threads):
    with one_thread():
        assert threads() == {1}
    with pytest.raises(RuntimeError), one_thread():
        raise RuntimeError("lost")


def test_who_leaves_last_gives_threads_back(two_threads):
    """Two runs in threads of their own may overlap: each alone would restore what it had found."""
    first, second = one_thread(), one_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert threads() == {1}
    second.__exit__(None, None, None)
    assert threads() == {2}


def noted(monkeypatch, where, name):
    """Note how many threads there are whenever a function is called."""
    seen, real = [], getattr(where, name)

    def noting(*args, **words):
        seen.append(threads())
        return real(*args, **words)

    monkeypatch.setattr(where, name, noting)
    return seen


def test_a_quadratic_is_fitted_and_minimised_by_one(two_threads, monkeypatch):
    factors = noted(monkeypatch, regression, "cho_factor")
    bends = noted(monkeypatch, np.linalg, "eigh")
    rng = np.random.default_rng(0)
    points = rng.standard_normal((40, 3))
    regression.fit(points, np.sum(points**2, axis=1), 0.01).minimiser(1.0)
    assert len(factors) > 5 and bends and all(each == {1} for each in [*factors, *bends])


def test_the_axes_of_a_population_are_found_by_one(two_threads, monkeypatch):
    seen = noted(monkeypatch, np.linalg, "eigh")
    Population(np.zeros(3), 1.0, np.random.default_rng(0)).sample()
    assert seen == [{1}]


def test_a_gaussian_process_is_for_one(two_threads, monkeypatch):
    model = gaussian.GaussianProcess(Space(x=Float(0, 1, size=2)).grid)
    seen = noted(monkeypatch, gaussian.GaussianProcess, "gaps")
    points = np.random.default_rng(0).random((6, 2))
    for call in (
        lambda: model.optimise(points, points.sum(axis=1), np.ones(6)),
        lambda: model.condition(points, points.sum(axis=1), np.ones(6)),
        lambda: model.predict(points),
    ):
        seen.clear()
        call()
        assert seen and all(each == {1} for each in seen)
