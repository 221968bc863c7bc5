"""The books of a run: the best point seen, and what was lost."""

import itertools

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import scgd
from asking import Recorded, in_pieces, told
from registry import CURVATURES, EVERY_METHOD, MINIMUM, STEPS, P, quadratic
from scgd.questions import Point, here, joint, single
from scgd.run.ledger import Best, Ledger


def same_best(ledger, fun):
    """Check the ledger against every point that was evaluated."""
    value, x = fun.best()
    assert ledger.best.value == value
    np.testing.assert_array_equal(ledger.best.x, x)


def rippled(x):
    """A quadratic with ripples, so that the best is seldom where the run ends."""
    return quadratic(x) + 0.3 * float(np.sin(300.0 * np.sum(x)))


def pitted(x):
    """The same with values that are lost; some of the lowest stand beside one of those."""
    place = np.sin(1e4 * np.sum(x))
    if place > 0.95:
        return np.nan
    if place > 0.9:
        return np.inf
    return -np.inf if place < -0.95 else rippled(x)


PARTS = {
    "forward": {"estimator": "forward"},
    "central": {},
    "forward-block": {"estimator": "forward", "block_size": 4},
    "central-block": {"block_size": 4},
    "central-full": {"policy": "full"},
    "spsa-single": {"estimator": "spsa"},
    "spsa-block": {"estimator": "spsa", "block_size": 4},
    "spsa-full": {"estimator": "spsa", "policy": "full"},
    "gaussian": {"estimator": "gaussian", "block_size": 4},
    "scouting": {"policy": "gauss-southwell"},
    "average": {"average": True},
}
BODILESS = ("gaussian", "scouting", "average")


def optimizer(parts, **options):
    options = {"max_evals": 500, "seed": 1, "scale": 1.0, **options}
    recipe = scgd.SCGD(step="rms", **PARTS[parts])
    return scgd.Optimizer(np.zeros(P), recipe, **options)


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("bounds", [None, [(-0.4, 0.6)] * P], ids=["free", "bounded"])
@pytest.mark.parametrize("inner", [rippled, pitted])
def test_best_is_that_of_all_points_evaluated(parts, bounds, inner):
    fun = Recorded(inner)
    opt = optimizer(parts, bounds=bounds, failures="skip")
    told(opt, fun)
    same_best(opt.run.ledger, fun)


@pytest.mark.parametrize("parts", [name for name in PARTS if name not in BODILESS])
@pytest.mark.parametrize("bounds", [None, [(-0.4, 0.6)] * P], ids=["free", "bounded"])
@pytest.mark.parametrize("inner", [rippled, pitted])
def test_best_of_a_body_is_that_of_all_points_evaluated(parts, bounds, inner):
    fun = Recorded(inner)
    opt = optimizer(parts, bounds=bounds, failures="skip")
    in_pieces(opt, fun)
    same_best(opt.run.ledger, fun)


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("lost", [0, 1])
@pytest.mark.parametrize("body", [False, True], ids=["asked", "body"])
def test_a_value_counts_whose_partner_was_lost(parts, lost, body):
    """Every other value is lost, and every one that is not is lower than all before."""
    if body and parts in BODILESS:
        return
    fun = Recorded(lambda x: np.nan if len(fun.values) % 2 == lost else -float(len(fun.values)))
    opt = optimizer(parts, failures="skip")
    (in_pieces if body else told)(opt, fun)
    same_best(opt.run.ledger, fun)


@numba.njit
def every_other(x, n, lost, points):
    points[n[0]] = x
    n[0] += 1
    return np.nan if (n[0] - 1) % 2 == lost else -float(n[0])


@pytest.mark.parametrize("lost", [0, 1])
@pytest.mark.parametrize("estimator", ["forward", "central"])
def test_a_compiled_value_counts_whose_partner_was_lost(lost, estimator):
    n, points = np.zeros(1, np.int64), np.empty((500, P))
    opt = optimizer(estimator, failures="skip")
    in_pieces(opt, every_other, (n, lost, points))
    last = 499 - lost if lost == 0 else 498
    assert opt.run.ledger.best.value == -(last + 1)
    np.testing.assert_array_equal(opt.run.ledger.best.x, points[last])


N_SEEN = 3000


@numba.njit
def compiled(x, curvatures, minimum, n, points, values, holes):
    """Ripples as above, and a record of what was evaluated."""
    total, place = 0.0, 0.0
    for k in range(x.size):
        total += 0.5 * curvatures[k] * (x[k] - minimum[k]) ** 2
        place += x[k]
    value = total + 0.3 * np.sin(300.0 * place)
    if holes:
        place = np.sin(1e4 * place)
        if place > 0.9:
            value = np.nan if place > 0.95 else np.inf
        elif place < -0.95:
            value = -np.inf
    points[n[0]] = x
    values[n[0]] = value
    n[0] += 1
    return value


@pytest.mark.parametrize(
    ("step", "holes", "estimator"),
    [*itertools.product(["sgd"], [False, True], ["forward", "central"]),
     *((step, True, "central") for step in STEPS if step != "sgd")],
)  # fmt: skip
def test_best_of_the_compiled_loop_is_that_of_all_points_evaluated(step, holes, estimator):
    n, points, values = np.zeros(1, np.int64), np.empty((N_SEEN, P)), np.empty(N_SEEN)
    recipe = scgd.SCGD(step=step, estimator=estimator)
    opt = scgd.Optimizer(np.zeros(P), recipe, scale=1.0, max_evals=2400, seed=1, failures="skip")
    in_pieces(opt, compiled, (CURVATURES, MINIMUM, n, points, values, holes))
    assert n[0] == opt.run.nfev == 2400
    fun = Recorded(None)
    fun.points, fun.values = list(points[:2400]), values[:2400].tolist()
    same_best(opt.run.ledger, fun)


@pytest.mark.parametrize("method", EVERY_METHOD)
@pytest.mark.parametrize("inner", [quadratic, rippled])
def test_best_of_every_method_is_that_of_all_points_evaluated(method, inner):
    fun = Recorded(inner)
    opt = scgd.Optimizer(np.zeros(P), method, max_evals=700, seed=0)
    told(opt, fun)
    same_best(opt.run.ledger, fun)


@pytest.mark.parametrize("seed", range(5))
def test_best_of_open_questions_told_in_any_order(seed):
    rng = np.random.default_rng(seed)
    fun = Recorded(rippled)
    opt = scgd.Optimizer(np.zeros(P), "uniform", scale=1.0, max_evals=300, seed=seed)
    out = []
    while not opt.done:
        out += opt.ask(6)
        rng.shuffle(out)
        for trial in [out.pop() for _ in range(rng.integers(1, len(out) + 1))]:
            opt.tell(trial.id, fun(trial.x))
        same_best(opt.run.ledger, fun)


def test_there_is_no_best_where_samples_differ():
    opt = scgd.Optimizer(np.zeros(P), "uniform", sample=10, scale=1.0, max_evals=50, seed=0)
    told(opt, lambda x, rows: quadratic(x))
    assert opt.run.ledger.best is None


@given(
    moves=st.lists(
        st.tuples(
            st.sampled_from(["one", "joint", "here", "move", "put", "other", "detached"]),
            st.integers(0, 4),
            st.floats(-5, 5),
        ),
        max_size=40,
    )
)
def test_best_follows_a_point_that_moves(moves):
    """A copy of the point at every better value is what the ledger holds."""
    points, best = [Point(np.zeros(5)), Point(np.ones(5))], Best(np.zeros(5))
    lowest, where, now = np.inf, None, 0
    for n, (kind, k, entry) in enumerate(moves):
        point = points[now]
        if kind == "move":
            point.move(k, entry)
        elif kind == "put":
            point.put(np.full(5, entry))
        elif kind == "other":
            now = 1 - now
        else:
            question = {
                "one": lambda p, k=k, entry=entry: single(p, [k], [entry]),
                "joint": lambda p, k=k, entry=entry: joint(
                    p, np.array([k, (k + 1) % 5]), np.array([[entry, -entry]])
                ),
                "here": lambda p: here(p, 1),
                "detached": lambda p, k=k, entry=entry: single(p, [k], [entry]),
            }[kind](point)
            expected = question.at(0)
            if kind == "detached":
                question.detach()
                point.move((k + 2) % 5, entry + 1)
            value = float(np.cos(1.0 + n) + entry)
            if value < lowest:
                best.offer(value, question, 0)
                lowest, where = value, expected
        if where is not None:
            assert best.value == lowest
            np.testing.assert_array_equal(best.x, where)


def test_minus_infinity_is_refused_even_far_out():
    ledger = Ledger("raise", Best(np.zeros(2)))
    ledger.failed(np.nan, 4, lambda: np.zeros(2), may_fail=True)
    ledger.failed(np.inf, 1, lambda: np.zeros(2), may_fail=True)
    with pytest.raises(FloatingPointError, match=r"-inf at evaluation 2, x = \[0\. 0\.\]"):
        ledger.failed(-np.inf, 2, lambda: np.zeros(2), may_fail=True)
    with pytest.raises(FloatingPointError, match="nan at evaluation 3"):
        ledger.failed(np.nan, 3, lambda: np.zeros(2), may_fail=False)
    assert ledger.n_failed == 2
