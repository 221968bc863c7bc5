"""Loops one by one: against ask and tell, cut in the middle, by rooms and phases."""

import numpy as np
import pytest

import scgd
from asking import Plain, accepted, in_pieces, run_with, same_run, same_state, steps_of, told
from registry import P
from scgd.descent.blocks import BlockLoop
from scgd.descent.loop import as_float
from scgd.descent.single import SingleLoop
from scgd.run.signals import Stop
from scgd.samples import CHUNK
from test_agreement import (
    BOUNDS,
    VARIANTS,
    normal,
    python_pitted,
    python_quadratic,
    python_rows,
    sampled,
)
from test_agreement import stepping as optimizer

SINGLE = [SingleLoop, Plain]  # the compiled loop runs without compilation here
LOOPS = [
    (SingleLoop, {}),
    (Plain, {}),
    (BlockLoop, {"block_size": 3}),
    (BlockLoop, {"estimator": "spsa", "block_size": 3}),
]


def bowl(x):
    return float(np.sum(x * x))


def both(keywords, **options):
    return (optimizer({"step": "rms", **keywords}, **options) for _ in range(2))


@pytest.mark.parametrize("cls", SINGLE)
@pytest.mark.parametrize("step", ["sgd", "rms"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_loop_is_ask_and_tell(variant, step, cls):
    if cls is Plain and variant == "importance-callable":
        return  # which compiled code cannot ask
    one, two = both({**VARIANTS[variant], "step": step}, max_evals=120)
    by_asking = told(one, python_quadratic)
    for room in (2, 14, 1, 38):
        run_with(cls, two, python_quadratic, room=room)
    while not two.done:
        run_with(cls, two, python_quadratic, by_phase=True)
    same_run(two.result(), by_asking)
    same_state(two, one)


@pytest.mark.parametrize("cls", SINGLE)
@pytest.mark.parametrize("variant", ["plain", "forward", "forward-bounded", "scale-inverse"])
def test_lost_values_cost_one_each(variant, cls):
    one, two = both(VARIANTS[variant], failures="skip", max_evals=240)
    by_asking = told(one, python_pitted)
    run_with(cls, two, python_pitted)
    same_run(two.result(), by_asking)
    same_state(two, one)
    assert two.run.ledger.n_failed > 10


@pytest.mark.parametrize("estimator", ["forward", "central"])
@pytest.mark.parametrize("seed", range(3))
def test_values_are_refused_where_they_were_seen(estimator, seed):
    said = []
    for cls in (None, *SINGLE):
        opt = optimizer({"estimator": estimator, "scale": 1.0, "step": "rms"}, seed=seed)
        told(opt, python_quadratic, until=10 * seed)  # evaluations are counted from the first
        with pytest.raises(FloatingPointError) as caught:
            accepted(opt, python_pitted) if cls is None else run_with(cls, opt, python_pitted)
        said.append((str(caught.value), steps_of(opt).x.tolist()))
        np.testing.assert_array_equal(steps_of(opt).point.buffer, opt.x)
    assert said[0] == said[1] == said[2]


@pytest.mark.parametrize("cls", SINGLE)
def test_rows_and_arguments_reach_it(cls):
    one, two = both({}, max_evals=80, sample=scgd.Rows(50, 3))
    by_asking = told(one, python_rows, (2.0,))
    run_with(cls, two, python_rows, (2.0,), room=30)
    run_with(cls, two, python_rows, (2.0,))
    same_run(two.result(), by_asking)
    same_state(two, one)


@pytest.mark.parametrize("cls, parts", [LOOPS[0], *LOOPS[2:]])
@pytest.mark.parametrize("bounds", [None, BOUNDS], ids=["free", "bounded"])
def test_samples_reach_it(cls, parts, bounds):
    one, two = both({**parts, "bounds": bounds}, sample=normal, max_evals=90)
    by_asking = told(one, sampled)
    run_with(cls, two, sampled)
    same_run(two.result(), by_asking)
    same_state(two, one)


@pytest.mark.parametrize("parts", LOOPS)
def test_a_sum_that_overflows_is_no_loss(parts):
    def high(x):
        return 1e308 + 1e306 * bowl(x)

    one, two = both(parts[1], max_evals=60)
    by_asking = told(one, high)
    run_with(parts[0], two, high)
    same_state(two, one)
    assert by_asking.n_failed == two.run.ledger.n_failed == 0


@pytest.mark.parametrize("cls", SINGLE)
@pytest.mark.parametrize("estimator", ["forward", "central"])
def test_of_two_equal_values_the_first_asked_is_kept(cls, estimator):
    def fun(x):
        return 3.0 if np.count_nonzero(x != 0.25) > 1 else 2.0

    one, two = both({"estimator": estimator}, max_evals=40)
    told(one, fun)
    run_with(cls, two, fun)
    same_state(two, one)
    assert two.run.ledger.best.value == 2.0


@pytest.mark.parametrize("cls", SINGLE)
def test_phases_go_on_over_the_ends_of_chunks(cls):
    """Rates are made for 512 steps at a time, of which a phase of 7 is no part."""
    one, two = both({"policy": scgd.Musketeer(length=7)}, max_evals=1100)
    by_asking = told(one, python_quadratic)
    run_with(cls, two, python_quadratic)
    same_run(two.result(), by_asking)
    same_state(two, one)


def counting():
    """Return a function that rises with every call."""
    seen = []
    return lambda x: float(seen.append(1) or len(seen))


@pytest.mark.parametrize("cls", SINGLE)
def test_a_quotient_over_no_width_is_zero(cls):
    """A coordinate whose bounds meet is asked twice and stays, whatever the values are."""
    bounds = [(0.25, 0.25), *[(-1, 1)] * (P - 1)]
    one, two = (optimizer({"step": "rms", "bounds": bounds}, max_evals=120) for _ in range(2))
    by_asking = told(one, counting())
    run_with(cls, two, counting())
    same_run(two.result(), by_asking)
    same_state(two, one)
    assert two.x[0] == 0.25 and two.run.ledger.n_failed == 0


@pytest.mark.parametrize("cls, parts", LOOPS)
def test_what_is_no_better_is_not_kept(cls, parts):
    one, two = (optimizer({**parts, "step": "rms"}, max_evals=60) for _ in range(2))
    told(one, counting())
    fun = counting()
    for room in (20, 20, 20):
        run_with(cls, two, fun, room=room)
    run_with(cls, two, fun)
    same_state(two, one)
    assert two.run.ledger.best.value == 1.0


@pytest.mark.parametrize("cls, parts", [LOOPS[0], *LOOPS[2:]])
def test_values_are_told_where_somebody_listens(cls, parts):
    opt, seen = optimizer({**parts, "step": "rms"}), []

    def fun(x):
        seen.append(bowl(x))
        return seen[-1]

    body = cls(steps_of(opt), fun, (), opt.run.ledger)
    opt.run.ledger.noted = told_to = []
    body.run(30, Stop(), by_phase=False)
    assert told_to == seen and len(seen) > 12


@pytest.mark.parametrize("n", [1, 2, 7, 50])
@pytest.mark.parametrize("cls", SINGLE)
def test_a_flag_stops_a_loop_after_the_step_in_hand(cls, n):
    opt, stop, seen = optimizer({"step": "rms"}), Stop(), []

    def fun(x):
        seen.append(1)
        if len(seen) == n:
            stop.set()
        return bowl(x)

    run_with(cls, opt, fun, stop=stop)
    whole = n + n % 2
    assert len(seen) == whole == opt.run.nfev and steps_of(opt).t == whole // 2
    assert opt.run.ledger.n_failed == 0
    np.testing.assert_array_equal(steps_of(opt).point.buffer, opt.x)
    rest = optimizer({"step": "rms"})
    told(rest, bowl, until=whole)
    np.testing.assert_array_equal(opt.x, rest.x)


@pytest.mark.parametrize("n", [1, 2, 3, 8])
@pytest.mark.parametrize(
    "cls, parts, cost",
    [(SingleLoop, {}, 2), (BlockLoop, {"block_size": 2}, 4), (BlockLoop, {"estimator": "spsa", "block_size": 3}, 2),
     (BlockLoop, {"block_size": 3, "estimator": "forward"}, 4)],
)  # fmt: skip
def test_an_end_in_the_middle_of_a_step_takes_it_back(cls, parts, cost, n):
    """Time is up during the n-th evaluation: the step that it belongs to has not happened."""
    opt, stop, seen = optimizer({**parts, "step": "rms"}, max_evals=150), Stop(), []

    def fun(x):
        seen.append(x.copy())
        if len(seen) == n:
            stop.end()
        return bowl(x)

    run_with(cls, opt, fun, stop=stop)
    whole = n // cost  # the last evaluation of a step is not cut
    assert len(seen) == n and opt.run.nfev == cost * whole
    search = steps_of(opt)
    assert search.t == search.n_asked == whole
    rest = optimizer({**parts, "step": "rms"}, max_evals=150)
    told(rest, bowl, until=cost * whole)
    np.testing.assert_array_equal(opt.x, rest.x)
    np.testing.assert_array_equal(steps_of(opt).point.buffer, opt.x)
    run_with(cls, opt, bowl)
    told(rest, bowl)
    np.testing.assert_array_equal(opt.x, rest.x)


@pytest.mark.parametrize("cls, parts", LOOPS)
@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_an_error_of_the_function_takes_the_step_back(cls, parts, n):
    opt, seen = optimizer({**parts, "step": "rms", "bounds": BOUNDS}, max_evals=150), []

    def fun(x):
        seen.append(1)
        if len(seen) == n:
            raise KeyError("mine")
        return float(np.sum(x * x))

    with pytest.raises(KeyError, match="mine"):
        run_with(cls, opt, fun)
    search = steps_of(opt)
    cost = search.step_cost
    assert search.t == (n - 1) // cost and opt.run.nfev == cost * search.t
    np.testing.assert_array_equal(steps_of(opt).point.buffer, opt.x)
    run_with(cls, opt, fun)
    rest = optimizer({**parts, "step": "rms", "bounds": BOUNDS}, max_evals=150)
    told(rest, bowl)
    np.testing.assert_array_equal(opt.x, rest.x)


@pytest.mark.parametrize("cls, parts", LOOPS)
def test_a_room_pays_for_whole_steps(cls, parts):
    opt = optimizer({**parts, "step": "rms"})
    search = steps_of(opt)
    for room, n in (
        (search.step_cost - 1, 0),
        (search.step_cost, 1),
        (2 * search.step_cost + 1, 3),
    ):
        run_with(cls, opt, python_quadratic, room=room)
        assert search.t == search.n_asked == n and search.n_evals == n * search.step_cost
    search.until = search.n_evals + 2 * search.step_cost + 1
    run_with(cls, opt, python_quadratic)
    assert search.t == 5
    search.until = 0
    run_with(cls, opt, python_quadratic)
    assert search.t == 5


@pytest.mark.parametrize("cls", SINGLE)
def test_a_body_may_stop_at_the_end_of_a_phase(cls):
    opt = optimizer({"step": "rms"})
    search = steps_of(opt)
    run_with(cls, opt, python_quadratic, room=4)
    run_with(cls, opt, python_quadratic, by_phase=True)
    assert search.sampler.n_phases == 1 and search.sampler.position == 0
    assert search.t == search.sampler.n_draws < CHUNK
    run_with(cls, opt, python_quadratic, by_phase=True)
    assert search.sampler.n_phases == 2


@pytest.mark.parametrize("given", [float, np.float64, np.float32, np.array])
@pytest.mark.parametrize("parts", [{}, {"block_size": 3}, {"estimator": "spsa"}], ids=str)
def test_values_of_any_kind_are_numbers(given, parts):
    one, two = (optimizer({**parts, "step": "rms"}, max_evals=120) for _ in range(2))
    told(one, lambda x: float(given(np.round(np.sum(x * x), 3))))
    in_pieces(two, lambda x: given(np.round(np.sum(x * x), 3)))
    np.testing.assert_allclose(two.x, one.x)
    assert as_float(np.float64(2.5)) == 2.5 and type(as_float(np.float32(0.5))) is float
    with pytest.raises(TypeError, match="one real number"):
        as_float(True)


@pytest.mark.parametrize(
    "parts", [{}, {"estimator": "forward"}, {"block_size": 3}, {"estimator": "spsa"},
              {"block_size": 3, "estimator": "forward"}], ids=str,
)  # fmt: skip
def test_the_best_point_is_one_that_was_asked(parts):
    """The lowest value and the point it was seen at, whichever side of whichever step that was."""
    seen = []

    def fun(x):
        seen.append((float(np.sum((x - 0.4) ** 2) + 0.05 * np.sin(900 * np.sum(x))), x.copy()))
        return seen[-1][0]

    opt = optimizer({**parts, "step": "rms"}, max_evals=240)
    in_pieces(opt, fun)
    value, x = min(seen, key=lambda pair: pair[0])
    best = opt.run.ledger.best
    assert best.value == value
    np.testing.assert_allclose(best.x, x, rtol=0, atol=1e-15)
    assert len(x) == P
