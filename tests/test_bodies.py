"""Bodies one by one: cuts in the middle, rooms and phases, books of what was done."""

import numba
import numpy as np
import pytest

from asking import in_pieces, told
from registry import P
from scgd.explore import BlockBody, CompiledBody, JointBody, SingleBody
from scgd.explore.loop import as_float
from scgd.samples import CHUNK
from scgd.searches import Stop
from test_agreement import BOUNDS, optimizer, python_quadratic


def run_with(cls, opt, fun, args=(), room=np.inf, by_phase=False, stop=None):
    """Have one kind of body take steps; return it."""
    body = cls(opt.run.plan.active, fun, args, opt.run.ledger)
    stop = Stop() if stop is None else stop
    opt.run.run_body(lambda left: body.run(min(room, left), stop, by_phase=by_phase))
    return body


@numba.njit
def stopping(x, seen, flag, last):
    """Count calls; raise the flag in the last one."""
    seen[0] += 1
    if seen[0] == last:
        flag[0] = 1
    return np.sum(x * x)


NEVER = np.zeros(1, np.int64), np.zeros(1, np.uint8), -1


class Flag:
    """A flag that compiled code can raise."""

    def __init__(self):
        self.over, self.array = [], np.zeros(1, np.uint8)

    @property
    def raised(self):
        return bool(self.array[0])


def stopped_after(cls, n):
    opt, stop, seen = optimizer({"step": "rms"}), Stop(), np.zeros(1, np.int64)
    if cls is CompiledBody:
        stop = Flag()
        run_with(cls, opt, stopping, (seen, stop.array, n), stop=stop)
        return opt, seen

    def fun(x):
        if seen[0] == n - 1:
            stop.set()
        return stopping(x, seen, stop.array, n)

    run_with(cls, opt, fun, stop=stop)
    return opt, seen


@pytest.mark.parametrize("n", [1, 2, 7, 50])
@pytest.mark.parametrize("cls", [CompiledBody, SingleBody])
def test_a_flag_stops_a_loop_after_the_step_in_hand(cls, n):
    opt, seen = stopped_after(cls, n)
    whole = n + n % 2
    assert seen[0] == whole and opt.run.nfev == whole and opt.run.plan.active.t == whole // 2
    assert opt.run.ledger.n_failed == 0
    np.testing.assert_array_equal(opt.run.plan.point.buffer, opt.x)
    rest = optimizer({"step": "rms"})
    told(rest, lambda x: stopping(x, *NEVER), until=whole)
    np.testing.assert_array_equal(opt.x, rest.x)


@pytest.mark.parametrize("n", [1, 2, 3, 8])
@pytest.mark.parametrize(
    "cls, parts, cost",
    [(SingleBody, {}, 2), (BlockBody, {"block_size": 2}, 4), (JointBody, {"estimator": "spsa"}, 2),
     (BlockBody, {"block_size": 3, "estimator": "forward"}, 4)],
)  # fmt: skip
def test_an_end_in_the_middle_of_a_step_takes_it_back(cls, parts, cost, n):
    """Time is up during the n-th evaluation: the step that it belongs to has not happened."""
    opt, stop, seen = optimizer({**parts, "step": "rms"}, max_evals=150), Stop(), []

    def fun(x):
        seen.append(x.copy())
        if len(seen) == n:
            stop.end()
        return float(np.sum(x * x))

    run_with(cls, opt, fun, stop=stop)
    whole = n // cost  # the last evaluation of a step is not cut
    assert len(seen) == n and opt.run.nfev == cost * whole
    search = opt.run.plan.active
    assert search.t == search.n_posed == whole
    rest = optimizer({**parts, "step": "rms"}, max_evals=150)
    told(rest, lambda x: float(np.sum(x * x)), until=cost * whole)
    np.testing.assert_array_equal(opt.x, rest.x)
    np.testing.assert_array_equal(opt.run.plan.point.buffer, opt.x)
    run_with(cls, opt, lambda x: float(np.sum(x * x)))
    told(rest, lambda x: float(np.sum(x * x)))
    np.testing.assert_array_equal(opt.x, rest.x)


@pytest.mark.parametrize(
    "cls, parts",
    [(SingleBody, {}), (BlockBody, {"block_size": 3}), (JointBody, {"estimator": "spsa"})],
)
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
    search = opt.run.plan.active
    cost = search.step_cost
    assert search.t == (n - 1) // cost and opt.run.nfev == cost * search.t
    np.testing.assert_array_equal(opt.run.plan.point.buffer, opt.x)
    run_with(cls, opt, fun)
    rest = optimizer({**parts, "step": "rms", "bounds": BOUNDS}, max_evals=150)
    told(rest, lambda x: float(np.sum(x * x)))
    np.testing.assert_array_equal(opt.x, rest.x)


@pytest.mark.parametrize(
    "cls, parts", [(SingleBody, {}), (CompiledBody, {}), (BlockBody, {"block_size": 3}),
                   (JointBody, {"estimator": "spsa"})]
)  # fmt: skip
def test_a_room_pays_for_whole_steps(cls, parts):
    fun, args = (stopping, NEVER) if cls is CompiledBody else (python_quadratic, ())
    opt = optimizer({**parts, "step": "rms"})
    search = opt.run.plan.active
    for room, n in (
        (search.step_cost - 1, 0),
        (search.step_cost, 1),
        (2 * search.step_cost + 1, 3),
    ):
        run_with(cls, opt, fun, args, room=room)
        assert search.t == search.n_posed == n and search.n_evals == n * search.step_cost
    search.until = search.n_evals + 2 * search.step_cost + 1
    run_with(cls, opt, fun, args)
    assert search.t == 5
    search.until = 0
    run_with(cls, opt, fun, args)
    assert search.t == 5


@pytest.mark.parametrize("cls", [SingleBody, CompiledBody])
def test_a_body_may_stop_at_the_end_of_a_phase(cls):
    fun, args = (stopping, NEVER) if cls is CompiledBody else (python_quadratic, ())
    opt = optimizer({"step": "rms"})
    search = opt.run.plan.active
    run_with(cls, opt, fun, args, room=4)
    run_with(cls, opt, fun, args, by_phase=True)
    assert search.sampler.n_phases == 1 and search.sampler.position == 0
    assert search.t == search.sampler.n_draws < CHUNK
    run_with(cls, opt, fun, args, by_phase=True)
    assert search.sampler.n_phases == 2


@pytest.mark.parametrize("given", [float, np.float64, np.float32, np.array])
@pytest.mark.parametrize("parts", [{}, {"block_size": 3}, {"estimator": "spsa"}], ids=str)
def test_values_of_any_kind_are_numbers(given, parts):
    one, two = (optimizer({**parts, "step": "rms"}, max_evals=120) for _ in range(2))
    told(one, lambda x: float(given(np.round(np.sum(x * x), 3))))
    in_pieces(two, lambda x: given(np.round(np.sum(x * x), 3)))
    np.testing.assert_allclose(two.x, one.x)
    assert as_float(np.float64(2.5)) == 2.5 and type(as_float(np.float32(0.5))) is float


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
