"""TuRBO's box shrinks on failures, grows on successes, and begins anew; the best point is kept."""

import numpy as np
import pytest

botorch_fit = pytest.importorskip("botorch.fit")

from scgd_arena.oracle import Oracle  # noqa: E402
from scgd_arena.peers import METHODS  # noqa: E402
from scgd_arena.problems import Task  # noqa: E402


def run(fun, p, budget, monkeypatch, repeats=True):
    """Return the answer of TuRBO in the unit box, from its corner, and all points it tried.

    Length scales stay equal: the model is not fitted.
    """
    monkeypatch.setattr(botorch_fit, "fit_gpytorch_mll", lambda *_, **__: None)
    tried = []

    def seen(x):
        tried.append(np.array(x))
        return float(fun(x))

    bounds = [(0.0, 1.0)] * p
    task = Task(
        "box", np.zeros(p), None, lambda seed: seen, fun, bounds, domain=(0.0, 1.0), repeats=repeats
    )
    return METHODS["turbo"].run(Oracle(task, budget, 1), 1), np.array(tried)


def test_where_nothing_improves_the_box_halves_until_it_is_begun_anew(monkeypatch):
    _, tried = run(lambda x: 1.0, 2, 4 + 7 * 16 + 8, monkeypatch)
    assert not tried[0].any()  # the start comes first, and stays the centre
    for k in range(7):  # 0.8 / 2^7 is below 2^-7; four batches of four points for each side
        part = tried[4 + 16 * k : 4 + 16 * (k + 1)]
        assert 0.5 < part.max() / (0.4 / 2**k) <= 1
    assert tried[-8:-4].max() > 0.4 and tried[-8:].any(axis=1).all()


def test_the_lowest_value_seen_is_the_answer(monkeypatch):
    def bowl(x):
        return np.sum((x - 0.7) ** 2)

    answer, tried = run(bowl, 2, 40, monkeypatch, repeats=False)
    values = [bowl(x) for x in tried]
    assert len(tried) == 40 and answer.tolist() == tried[np.argmin(values)].tolist()
    assert np.median(values[-8:]) < 0.1 * min(values[:4])
    assert len({tuple(x) for x in tried}) == 40
