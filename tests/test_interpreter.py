"""A strategy of the user's own: what it may yield, what it is sent, and how it is resumed."""

import numpy as np
import pytest

import scgd
from scgd.checkpoint import CheckpointError
from scgd.descent import CoordinateDescent
from scgd.strategies.asks import Along, Gradient, Outcome, Report, Steps, Wait

P = 3
CENTRE = np.array([1.0, -2.0, 0.5])


def bowl(x):
    return float(np.sum((x - CENTRE) ** 2))


def run(strategy, fun=bowl, x0=(0.0, 0.0, 0.0), **words):
    words = {"method": strategy, "max_evals": 100, "seed": 1, **words}
    return scgd.minimize(fun, np.array(x0), **words)


# ---- what it yields and is sent ------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, map], ids=["inline", "map"])
def test_points_are_answered_in_their_shape(workers):
    seen = {}

    def strategy(problem, budget, rng):
        seen["point"] = yield problem.x0
        seen["rows"] = yield np.stack([problem.x0, CENTRE])
        seen["blocks"] = yield np.stack([np.zeros((4, P)), np.ones((4, P))])
        seen["replicates"] = yield np.broadcast_to(CENTRE, (5, 1, P))
        seen["along"] = yield Along(problem.x0, np.array([0, 2]), np.array([1.0, 0.5]))
        seen["single"] = yield Along(problem.x0, [1], [-2.0], single=True)
        seen["spent"] = budget.spent, budget.left, budget.total

    result = run(strategy, workers=workers)
    assert seen["point"] == 5.25 and isinstance(seen["point"], float)
    assert seen["rows"].tolist() == [5.25, 0.0]
    assert seen["blocks"].tolist() == [[5.25] * 4, [9.25] * 4]
    assert seen["replicates"].tolist() == [[0.0]] * 5
    assert seen["along"].tolist() == [4.25, 5.0]
    assert seen["single"] == 1.25 and isinstance(seen["single"], float)
    assert seen["spent"] == (19, 81, 100)
    assert result.nfev >= 19 and np.array_equal(result.x, CENTRE)


def test_rows_share_a_sample_and_blocks_have_their_own():
    def strategy(problem, budget, rng):
        rows = yield np.zeros((4, P))
        blocks = yield np.zeros((6, 2, P))
        assert len(set(rows.tolist())) == 1
        assert np.array_equal(blocks[:, 0], blocks[:, 1])
        assert len(set(blocks[:, 0].tolist())) == 6
        yield Report(x=CENTRE, values=blocks[:, 0])

    result = run(strategy, lambda x, xi: xi + bowl(x), sample=lambda rng: float(rng.random()))
    assert np.array_equal(result.x, CENTRE) and result.fun_error > 0


def test_reports_reach_the_result():
    def strategy(problem, budget, rng):
        yield problem.x0
        yield Report(solver="mine", message="It is a bowl.")
        values = yield np.tile(CENTRE, (3, 1))
        yield Report(x=CENTRE, values=np.add(values, [0.0, 1.0, 2.0]))
        yield Report(relevance=(np.array([0.5, 0.25, 0.25]), np.zeros(P)))
        return Outcome(converged=True)

    result = run(strategy)
    assert dict(result.members) == {"strategy": 1, "mine": 3}
    assert "It is a bowl." in result.message and result.status == 9
    assert np.array_equal(result.x, CENTRE) and result.fun == 1.0
    assert result.relevance.tolist() == [0.5, 0.25, 0.25]


def test_partial_derivatives_where_there_are_some():
    def strategy(problem, budget, rng):
        yield problem.x0
        slopes = yield Gradient(problem.x0, np.array([0, 2]))
        assert slopes.tolist() == [-2.0, -1.0]
        yield CENTRE

    result = run(strategy, jac=lambda x, coords: 2 * (x - CENTRE)[coords])
    assert np.array_equal(result.x, CENTRE)


def test_the_engine_takes_steps_for_it():
    def strategy(problem, budget, rng):
        seed = np.random.SeedSequence(3)
        engine = CoordinateDescent(scgd.SCGD(), problem, problem.x0, seed, budget=60)
        stage = yield Steps(engine, 60)
        assert stage.n_evals == 60 and stage.fell
        values = yield np.tile(stage.x, (2, 1))
        yield Report(x=stage.x, values=values)

    result = run(strategy, scale=1.0)
    assert dict(result.members)["SCGD"] == 60 and bowl(result.x) < 0.5 * bowl(np.zeros(P))


@pytest.mark.parametrize("place", range(1, 6))
@pytest.mark.parametrize("workers", [1, map], ids=["inline", "map"])
def test_a_failed_evaluation_costs_one_value(place, workers):
    """NaN and infinity are NaN to a strategy; the other values are as ever."""
    values = []

    def strategy(problem, budget, rng):
        yield problem.x0
        values.append((yield np.arange(15.0).reshape(5, P)))

    calls = []

    def fun(x):
        calls.append(1)
        return [np.nan, np.inf][place % 2] if len(calls) == place + 1 else bowl(x)

    result = run(strategy, fun, workers=workers)
    assert np.flatnonzero(np.isnan(values[0])).tolist() == [place - 1]
    assert result.n_failed == 1


def test_points_are_brought_inside_the_bounds():
    def strategy(problem, budget, rng):
        yield problem.x0
        yield np.full(P, 99.0)
        yield np.full((2, P), -99.0)

    seen = []
    run(strategy, lambda x: seen.append(x.tolist()) or bowl(x), bounds=[(-3, 4)] * P)
    assert seen[:4] == [[0.0] * P, [4.0] * P, [-3.0] * P, [-3.0] * P]


def test_a_strategy_that_recommends_nothing_gets_its_best_point():
    def strategy(problem, budget, rng):
        yield problem.x0
        while budget.left:
            yield rng.standard_normal(P) * 2

    seen = []
    result = run(strategy, lambda x: seen.append(bowl(x)) or seen[-1])
    assert result.fun == bowl(result.x) == min(seen) and result.success


@pytest.mark.parametrize(
    "asked, message",
    [
        (lambda p: np.zeros(2), r"points of 3 coordinates .*got ndarray of shape \(2,\)"),
        (lambda p: 5.0, "got float of shape"),
        (lambda p: "x0", "got str of shape"),
        (lambda p: None, "got NoneType"),
        (lambda p: np.zeros((0, 3)), r"shape \(0, 3\)"),
        (lambda p: np.zeros((1, 1, 1, 3)), r"shape \(1, 1, 1, 3\)"),
    ],
)
def test_other_things_are_refused_with_what_may_be_yielded(asked, message):
    def strategy(problem, budget, rng):
        yield asked(problem)

    with pytest.raises(TypeError, match=message):
        run(strategy)


def test_no_points_have_no_values():
    def strategy(problem, budget, rng):
        yield problem.x0
        assert len((yield Along(problem.x0, [], []))) == 0
        yield CENTRE

    assert np.array_equal(run(strategy).x, CENTRE)


def test_points_must_be_finite():
    def strategy(problem, budget, rng):
        yield np.array([0.0, np.nan, 0.0])

    with pytest.raises(ValueError, match="a point that is not finite"):
        run(strategy)


def test_a_plain_function_is_no_strategy():
    with pytest.raises(TypeError, match=r"must be a generator function.*returns int"):
        run(lambda problem, budget, rng: 5)


def test_an_error_of_a_strategy_is_the_users():
    def strategy(problem, budget, rng):
        yield problem.x0
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        run(strategy)


# ---- the budget ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 7, 10, 23])
def test_a_strategy_that_asks_too_much_is_cut_at_the_budget(n):
    def strategy(problem, budget, rng):
        yield problem.x0
        while True:
            yield rng.standard_normal((10, P))

    calls = []
    result = run(strategy, lambda x: calls.append(1) or bowl(x), max_evals=n)
    assert len(calls) == result.nfev <= n


def counting(problem, budget, rng):
    """Ask random points and wait at the end of each budget."""
    yield problem.x0
    while True:
        while budget.left > 0:
            yield rng.standard_normal(P)
        yield Wait()


def test_more_budget_wakes_a_strategy_that_waits():
    opt = scgd.Optimizer(np.zeros(P), counting, max_evals=10, seed=0)

    def answer():
        while not opt.done:
            for trial in opt.ask():
                opt.tell(trial.id, bowl(trial.x))
        return opt.run.nfev

    assert answer() == 10
    opt.extend(25)
    assert answer() == 25
    opt.extend(26)
    assert answer() == 26


# ---- resuming ------------------------------------------------------------------------------------


class Cut(Exception):
    pass


class Cuts:
    """A function that raises at the n-th call."""

    def __init__(self, n):
        self.left = n

    def __call__(self, x):
        self.left -= 1
        if self.left < 0:
            raise Cut
        return np.nan if x[0] > 3 else bowl(x)


def mixed(problem, budget, rng):
    """All that may be asked: points, rows, blocks, sweeps, steps, reports, and waiting."""
    x, f = problem.x0, (yield problem.x0)
    engine = CoordinateDescent(
        scgd.SCGD(block_size=2), problem, x, np.random.SeedSequence(int(rng.integers(2**60)))
    )
    while True:
        while budget.left >= 25:
            yield Report(solver="rows")
            points = x + rng.standard_normal((4, P))
            values = yield points
            k = int(np.argmin(np.where(np.isnan(values), np.inf, values)))
            if values[k] < f:
                x, f = points[k], values[k]
            yield Report(solver="sweep", message=f"Now at {f:.3f}.")
            yield Along(x, np.arange(P), x + 0.1)
            yield np.broadcast_to(x, (2, 2, P))
            yield Steps(engine, 12)
            yield Report(x=x, values=[f])
        yield Wait()


@pytest.mark.parametrize("max_evals", [60])
def test_cut_at_every_evaluation_it_goes_on_to_the_same_bits(max_evals, tmp_path):
    whole = run(mixed, Cuts(10**6), max_evals=max_evals, scale=1.0, failures="skip")
    for n in range(whole.nfev):
        path = tmp_path / f"{n}.npz"
        words = {"max_evals": max_evals, "scale": 1.0, "failures": "skip", "checkpoint": path}
        with pytest.raises(Cut):
            run(mixed, Cuts(n), **words)
        again = run(mixed, Cuts(10**6), **words)
        assert np.array_equal(again.x, whole.x) and again.fun == whole.fun
        assert (again.nfev, again.nit, again.n_failed) == (whole.nfev, whole.nit, whole.n_failed)
        assert again.message == whole.message
        np.testing.assert_equal(again.history, whole.history)
        again = run(mixed, Cuts(0), **words)  # read back, with nothing evaluated
        assert np.array_equal(again.x, whole.x) and again.message == whole.message


def test_cut_and_extended_anywhere_it_uses_its_budget(tmp_path):
    for n in (1, 3, 9, 20, 30):
        path = tmp_path / f"{n}.npz"
        words = {"scale": 1.0, "failures": "skip", "checkpoint": path}
        with pytest.raises(Cut):
            run(mixed, Cuts(n), max_evals=60, **words)
        result = run(mixed, Cuts(10**6), max_evals=150, **words)
        assert 125 < result.nfev <= 150


def test_a_strategy_that_asks_other_points_is_refused_with_the_choice_named(tmp_path):
    path = tmp_path / "run.npz"
    length = 1.0

    def strategy(problem, budget, rng):
        yield problem.x0
        for _ in range(20):
            yield length * rng.standard_normal(P)

    with pytest.raises(Cut):
        run(strategy, Cuts(10), checkpoint=path)
    length = 2.0
    with pytest.raises(CheckpointError, match=r"(?s)other points.*known=") as caught:
        run(strategy, Cuts(100), checkpoint=path)
    assert "delete" in str(caught.value)
    x, value = scgd.Checkpoint(path).best()
    assert value == bowl(x) and value <= bowl(np.zeros(P))
    again = run(strategy, bowl, known=[(x, value)], checkpoint=tmp_path / "other.npz")
    assert again.fun <= value


def test_a_strategy_that_returned_begins_again_at_the_best_point_with_a_larger_budget(tmp_path):
    starts = []

    def strategy(problem, budget, rng):
        starts.append(problem.x0.copy())
        x, best = problem.x0, (yield problem.x0)
        while budget.left >= 4:
            points = x + 0.3 * rng.standard_normal((4, P))
            values = yield points
            if values.min() < best:
                x, best = points[values.argmin()], values.min()

    words = {"checkpoint": tmp_path / "run.npz"}
    first = run(strategy, max_evals=50, **words)
    longer = run(strategy, max_evals=90, **words)
    assert np.array_equal(starts[-1], first.x) and 86 < longer.nfev <= 90
    assert longer.fun < first.fun
    longest = run(strategy, max_evals=120, **words)
    assert 116 < longest.nfev <= 120 and longest.fun <= longer.fun
    assert run(strategy, max_evals=120, **words).fun == longest.fun


def test_the_best_point_of_a_saved_run_is_in_the_words_of_the_function(tmp_path):
    path = tmp_path / "run.npz"
    words = {"max_evals": 400, "seed": 0, "checkpoint": path, "maximize": True}
    result = scgd.minimize(lambda x: 3.0 - bowl(x), np.ones(P), **words)
    x, value = scgd.Checkpoint(path).best()
    assert value == result.fun == 3.0 - bowl(x)


def test_a_saved_run_on_samples_gives_the_point_where_it_stood(tmp_path):
    path = tmp_path / "run.npz"
    words = {"max_evals": 400, "seed": 0, "checkpoint": path, "method": "musketeer"}
    result = scgd.minimize(
        lambda x, xi: bowl(x) + xi, np.ones(P), sample=lambda rng: rng.standard_normal(), **words
    )
    x, value = scgd.Checkpoint(path).best()
    np.testing.assert_array_equal(x, result.x)
    assert np.isfinite(value)


# ---- honest success ------------------------------------------------------------------------------


def test_what_lies_above_x0_beyond_its_error_is_no_success():
    def strategy(problem, budget, rng):
        yield np.zeros((4, P))
        values = yield np.full((8, P), 9.0)
        yield Report(x=np.full(P, 9.0), values=values)

    rng = np.random.default_rng(0)
    result = run(strategy, lambda x: bowl(x) + 0.01 * rng.standard_normal(), max_evals=12)
    assert not result.success or bowl(result.x) <= bowl(np.zeros(P))


@pytest.mark.parametrize("block_size", [1, 3])
def test_a_run_that_diverges_stops_and_says_so(block_size):
    method = scgd.SCGD("uniform", learning_rate=3.0, radius=0.1, block_size=block_size)
    result = scgd.minimize(bowl, np.zeros(P), method=method, max_evals=10_000, seed=0)
    assert result.status == 10 and not result.success and result.nfev < 5000
    assert "learning_rate" in result.message
