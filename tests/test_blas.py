"""Small matrices are for one thread: what a search spends on them must not depend on who else runs."""

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info

import scgd
from scgd.blas import one_thread


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


def test_points_beside_those_of_a_waiting_method_take_one_thread(two_threads, monkeypatch):
    """With 500 open trials on a busy machine a trial took 1.2 ms of CPU, for 0.07."""
    seen, solve = set(), np.linalg.solve
    monkeypatch.setattr(np.linalg, "solve", lambda *args: seen.update(threads()) or solve(*args))
    opt = scgd.Optimizer(np.zeros(20), max_evals=5000, seed=0)
    for trial in opt.ask(150):
        opt.tell(trial.id, float(np.sum((trial.x - 1) ** 2)))
        opt.ask(1)
    assert seen == {1}
