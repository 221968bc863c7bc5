"""A run can be cut at any evaluation, by every way of asking, and goes on as if it had not been."""

import numpy as np
import pytest

from runs import BUDGET, CASES, Cut, P, Stops, check_same, n_accepted, run
from scgd.checkpoint import read

BODIES = (
    "importance",
    "musketeer", "scaled", "bounded", "block", "steps-xi", "steps-rows", "spsa", "auto-noise", "auto-rows",
    "auto-xi", "nested",
)  # fmt: skip
"""Where several evaluations of a step are made without a question; a step that is cut is made again."""
CALLED = [name for name in CASES if name != "compiled"]
"""A compiled function cannot be counted from outside; signals cut it in test_signals.py."""


def cuts(name, n):
    """Return places to cut: the first ones, and a seeded sample of the others."""
    rng = np.random.default_rng([len(name), sum(map(ord, name))])
    return sorted({0, 1, 2, BUDGET - 1} | set(rng.integers(3, BUDGET - 1, n).tolist()))


def cut(name, path, n, **more):
    """Run until n points were seen; return how many were."""
    stops = []

    def wrap(fun):
        stops.append(Stops(fun, n))
        return stops[-1]

    with pytest.raises(Cut):
        run(name, path, wrap, **more)
    return stops[-1].seen


def check_cuts(name, folder, places):
    whole = run(name)
    for n in places:
        if n >= whole.nfev:
            continue
        path = folder / f"{n}.npz"
        seen, made = cut(name, path, n), []

        def count(fun, made=made):
            made.append(Stops(fun, 10**9))
            return made[-1]

        accepted = n_accepted(path)
        check_same(run(name, path, count), whole)
        assert made[0].seen == whole.nfev - accepted  # none is made twice after the resume
        lost = seen - accepted
        assert lost == 0 or (name in BODIES and lost < 2 * P)
        check_same(run(name, path, lambda fun: Stops(fun, 0)), whole)  # read back


@pytest.mark.parametrize("name", CALLED)
def test_cut_anywhere_it_goes_on_to_the_same_bits(name, tmp_path):
    check_cuts(name, tmp_path, cuts(name, 6))


@pytest.mark.faults
@pytest.mark.parametrize("name", CALLED)
def test_cut_at_many_evaluations(name, tmp_path):
    check_cuts(name, tmp_path, cuts(name, 60))


@pytest.mark.parametrize("name", CALLED)
def test_a_larger_budget_anywhere(name, tmp_path):
    """From any place a larger budget is used, is not overdrawn, and does not end higher."""
    exact = CASES[name][0] in (CASES["auto"][0], CASES["vectorized"][0])
    n_whole = run(name).nfev
    for n in [n for n in cuts(name, 2)[1:] if n < n_whole]:
        path = tmp_path / f"{n}.npz"
        cut(name, path, n)
        before = n_accepted(path)
        seen = []

        def count(fun, seen=seen):
            seen.append(Stops(fun, 10**9))
            return seen[-1]

        longer = run(name, path, count, max_evals=3 * BUDGET)
        assert before + seen[0].seen == longer.nfev <= 3 * BUDGET
        assert longer.status in (8, 9) or longer.nfev > 0.9 * 3 * BUDGET
        assert np.isfinite(longer.fun) and np.all(np.isfinite(longer.x))
        if exact and name != "random":
            assert longer.fun < 0.2 * 21  # f(x0) = 21


@pytest.mark.parametrize("name", ["musketeer", "auto", "asynchronous", "jac"])
def test_a_smaller_budget_is_read_back_and_said(name, tmp_path):
    path = tmp_path / "run.npz"
    whole = run(name, path)
    content = read(path)
    smaller = run(name, path, lambda fun: Stops(fun, 0), max_evals=100)
    assert np.array_equal(smaller.x, whole.x) and smaller.nfev == whole.nfev
    assert f"The checkpoint holds {whole.nfev} evaluations, more than max_evals=100" in (
        smaller.message
    )
    np.testing.assert_equal(read(path), content)
    check_same(run(name, path), whole)


def test_open_questions_are_not_paid_from_a_smaller_budget(tmp_path):
    """A batch of 64 points is open; a budget below its end buys none of the rest."""
    import scgd

    path, x0 = tmp_path / "run.npz", np.zeros(40)
    options = {"method": "random", "workers": map, "seed": 1, "checkpoint": path, "scale": 1.0}
    stops = Stops(lambda x: float(np.sum((x - 1) ** 2)), 60)
    with pytest.raises(Cut):
        scgd.minimize(stops, x0, max_evals=2000, **options)
    state = read(path)[1]
    assert state["ledger"]["n_accepted"] == 60 < state["n_issued"]
    result = scgd.minimize(Stops(stops.fun, 0), x0, max_evals=state["n_issued"] - 1, **options)
    assert result.nfev == 60 and "more than max_evals" in result.message
