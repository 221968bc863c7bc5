"""Steps of SCGD by themselves: units, stages, averages, books of a phase, states."""

import dataclasses

import numpy as np
import pytest

import scgd
from scgd.descent import CoordinateDescent
from scgd.problem import Problem
from scgd.run.build import Seed
from scgd.samples import CHUNK, Samples
from scgd_paper.walking import answer, steps_of

P = 4
CENTRE = np.array([1.0, -1.0, 0.5, 0.0])


def bowl(x):
    return float(np.sum((x - CENTRE) ** 2))


def slopes(x, coords):
    return 2 * (x - CENTRE)[coords]


def recipe(name="uniform", relative_rate=False, relative_radius=False, **parts):
    parts = {"learning_rate": 0.1, "radius": 0.2, "step": "sgd", **parts}
    for name_of, own in (("learning_rate", relative_rate), ("radius", relative_radius)):
        if own:
            parts[name_of] = scgd.Relative(parts[name_of])
    return dataclasses.replace(scgd.METHODS[name], **parts)


def made(own=None, scale=None, budget=None, bounds=None, **parts):
    problem, root = Problem.check(np.zeros(P), bounds, 1.0), Seed(np.random.SeedSequence(1))
    samples = Samples.check(None, 1, root.sample_key)
    own = recipe(**parts) if own is None else own
    scale = None if scale is None else np.asarray(scale, float)
    return CoordinateDescent(
        own, problem, problem.x0, root.child(0), scale=scale, budget=budget, samples=samples
    )


def go(search, n):
    for _ in range(n):
        answer(search, bowl, slopes)


# ---- units and sizes -----------------------------------------------------------------------------

SCALE = [1.0, 2.0, 4.0, 8.0]


@pytest.mark.parametrize(
    "rate, radius, rates, radii",
    [(True, True, SCALE, SCALE), (True, False, SCALE, [1.0] * 4), (False, True, [1.0] * 4, SCALE),
     (False, False, [1.0] * 4, [1.0] * 4)],
)  # fmt: skip
def test_rates_and_radii_are_in_units_where_they_are_relative(rate, radius, rates, radii):
    search = made(scale=SCALE, relative_rate=rate, relative_radius=radius)
    assert search.rate_scale.tolist() == rates and search.radius_scale.tolist() == radii
    assert not search.uniform_scale and made(scale=[2.0] * 4).uniform_scale
    assert made().scale.tolist() == [1.0] * 4
    kept = np.array(SCALE)
    search.set_scale(kept)
    kept[0] = 9.0
    assert search.scale.tolist() == SCALE


@pytest.mark.parametrize("scale", [[2.0] * 4, SCALE])
@pytest.mark.parametrize("importance", [None, "inverse", "relative", (1.0, 2.0, 3.0, 4.0)])
def test_the_sizes_of_consecutive_steps(scale, importance):
    own = recipe(
        learning_rate=scgd.InverseTime(0.5, 3.0), radius=scgd.InverseTime(0.2, 5.0),
        relative_rate=True, relative_radius=True, importance=importance,
    )  # fmt: skip
    search = made(own, scale)
    place = search.prepare()
    coords, probs = np.array([3, 0, 1]), np.array([0.5, 0.25, 0.125])
    for first in (place, place + 2):
        rates, radii = search.step_sizes(first, coords, probs)
        t = first + np.arange(1, 4)
        factor = {None: 1.0, "inverse": 1 / probs, "relative": 1 / (4 * probs)}.get(
            importance, np.array([4.0, 1.0, 2.0])
        )
        unit = np.array(scale)[coords]
        np.testing.assert_allclose(rates, 0.5 / (t + 3) * unit * factor)
        np.testing.assert_allclose(radii, 0.2 / (t + 5) * unit)


def test_the_divisor_of_an_inverse_importance_is_the_block():
    search = made(importance="inverse", block_size=2)
    probs = np.array([0.5, 0.25])
    np.testing.assert_allclose(search.importance(np.arange(2), probs), [1.0, 2.0])
    assert made().importance(np.arange(2), probs) is None
    with pytest.raises(ValueError, match="importance has 3 weights for 4 coordinates"):
        made(importance=(1.0, 2.0, 3.0))


def test_gradients_are_compared_per_unit():
    grads, coords = np.array([3.0, 5.0]), np.array([1, 3])
    search = made(scale=SCALE, relative_rate=True)
    np.testing.assert_array_equal(search.in_units(grads, coords), [6.0, 40.0])
    assert made(scale=[2.0] * 4, relative_rate=True).in_units(grads, coords) is grads
    dense = made(scale=SCALE, relative_rate=True, policy="full")
    assert dense.in_units(grads, coords) is grads


@pytest.mark.parametrize(
    "parts, cost, step", [
        ({}, 2, 2), ({"block_size": 3}, 6, 6), ({"block_size": 3, "estimator": "forward"}, 4, 4),
        ({"policy": "gauss-southwell"}, 10, 10), ({"estimator": "spsa", "block_size": 3}, 2, 2),
    ],
)  # fmt: skip
def test_what_a_step_costs(parts, cost, step):
    search = made(**parts)
    assert search.step_cost == step and search.cost == cost
    search.gradient = np.zeros(P)
    assert search.cost == search.method.estimator.n_evals(search.sampler.block_size)


# ---- stages ----------------------------------------------------------------------------------------


def test_schedules_fall_over_what_a_budget_pays_for():
    search = made(learning_rate=scgd.Linear(1.0), budget=20)
    assert (search.timetable.start, search.timetable.total) == (0, 10)
    go(search, 4)
    search.extend(31)
    assert (search.timetable.start, search.timetable.total) == (4, 4 + 23 // 2)
    search.extend(3)
    assert search.timetable.total == 5  # one step at least
    search.extend(None)
    assert search.timetable.total is None
    search.begin_stage(10)
    search.extend(500)
    assert search.timetable.total is None  # the stage comes first


def test_new_schedules_hold_at_once():
    search = made(learning_rate=scgd.Linear(1.0), budget=20)
    place = search.prepare()
    assert search.step_sizes(place, np.arange(1), np.ones(1))[0] == pytest.approx([0.9])
    search.plan_for(200)
    assert search.step_sizes(search.prepare(), np.arange(1), np.ones(1))[0] == pytest.approx([0.99])
    search.replace_schedules(recipe(learning_rate=0.25, radius=0.125))
    place = search.prepare()
    assert search.step_sizes(place, np.arange(1), np.ones(1)) == ([0.25], [0.125])
    assert (search.timetable.start, search.timetable.total) == (0, 100)
    search.set_scale(np.full(P, 2.0))
    own = search.step_sizes(search.prepare(), np.arange(1), np.ones(1))
    assert own == ([0.25], [0.125])  # absolute
    relative = made(relative_rate=True, relative_radius=True)
    relative.prepare()
    relative.set_scale(np.full(P, 2.0))
    sizes = relative.step_sizes(relative.prepare(), np.arange(1), np.ones(1))
    assert sizes == ([pytest.approx(0.2)], [pytest.approx(0.4)])


def test_a_leg_is_over_when_it_does_not_pay_for_another_step():
    search = made()
    assert not search.finished
    go(search, 3)
    search.begin_stage(5, base=2.0)
    assert search.until == 11 and search.base == 2.0
    one = search.ask()
    two = search.ask()
    assert one is not None and two is not None and search.ask() is None
    search.tell(one, np.array([1.0, 1.0]))
    assert not search.finished
    search.tell(two, np.array([1.0, 1.0]))
    assert search.finished and search.n_evals == 10 and search.ask() is None
    search.begin_stage(2)
    assert not search.finished and search.firsts == [] and search.n_phases == 0
    assert len(search.recent) == 0 and np.isnan(search.base)


def test_going_back_keeps_the_stream():
    search = made(policy=scgd.Musketeer(length=3), step="rms")
    go(search, 4)
    search.keep()
    x, slots, state = search.point.x.copy(), search.slots.copy(), search.sampler.state_dict()
    go(search, 5)
    stream = search.sampler.stream.copy()
    assert np.any(stream != state["stream"]) and np.any(search.slots != slots)
    search.go_back()
    np.testing.assert_array_equal(search.point.x, x)
    np.testing.assert_array_equal(search.slots, slots)
    np.testing.assert_array_equal(search.sampler.coords, state["coords"])
    assert search.sampler.position == 1 and search.sampler.n_phases == 1
    np.testing.assert_array_equal(search.sampler.stream, stream)


# ---- ask and tell --------------------------------------------------------------------------------


def test_who_scouts_asks_for_a_whole_gradient_before_each_step():
    search = made(policy="gauss-southwell")
    for _ in range(3):
        scout = search.ask()
        assert len(scout) == 2 * P and scout.role == 1 and search.ask() is None
        values = np.array([bowl(point) for point in scout.points()])
        values[0] = np.nan  # of coordinate 0: nothing is known of it
        search.tell(scout, values)
        assert search.gradient.size == P and search.gradient[0] == 0.0
        np.testing.assert_allclose(search.gradient[1:], slopes(search.point.x, [1, 2, 3]))
        steepest = int(np.argmax(np.abs(search.gradient)))
        step = search.ask()
        assert step.role == 0 and step.support.tolist() == [steepest]
        search.tell(step, np.array([bowl(point) for point in step.points()]))
        assert search.gradient.size == 0
    assert search.t == 3 and search.n_evals == 30


def test_derivatives_alone_are_looked_at_from_time_to_time():
    search = made(recipe().first_order())
    roles = []
    for _ in range(45):
        question = search.ask()
        roles.append(question.role)
        assert search.ask() is None  # they wait for each other
        kind = question.kind == "partials"
        values = [slopes(question.at(0), question.support)] if kind else np.array([7.0])
        search.tell(question, values)
    looks = [k for k, role in enumerate(roles) if role == 2]
    assert looks == [0, 21, 42] and search.t == 42 and search.watched == 40
    assert search.watched == 40 and not search._due()


def test_a_lost_gradient_leaves_its_coordinate_and_the_law_learns_nothing():
    search = made(block_size=2, replace=False)
    question = search.ask()
    k, j = question.support.tolist()
    values = np.array([bowl(point) for point in question.points()])
    values[0] = np.nan
    search.tell(question, values)
    assert search.point.x[k] == 0.0
    np.testing.assert_allclose(search.point.x[j], 0.1 * 2 * CENTRE[j])
    assert search.sampler.n_phases == 1 or search.sampler.grads[0] == 0.0
    np.testing.assert_array_equal(search.point.buffer, search.point.x)


def test_steps_move_by_rate_times_gradient_inside_the_bounds():
    search = made(policy="full", bounds=[(-9, 0.05)] * 4, learning_rate=0.3)
    go(search, 1)
    middle = np.full(4, (0.05 - 0.2) / 2)  # between the sides that there is room for
    expected = np.minimum(0.05, -0.3 * slopes(middle, np.arange(4)))
    np.testing.assert_allclose(search.point.x, expected)


# ---- averages ------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["full", "uniform"])
def test_the_average_is_that_of_the_iterates_after_each_step(policy):
    search = made(policy=policy, average=True)
    assert search.recommended[0] is search.point.x
    iterates = []
    for _ in range(9):
        go(search, 1)
        iterates.append(search.point.x.copy())
    np.testing.assert_allclose(search.recommended[0], np.mean(iterates, axis=0))
    plain = made(policy=policy)
    go(plain, 9)
    np.testing.assert_array_equal(plain.recommended[0], plain.point.x)
    assert plain.average.shape == (2, 0) and search.average.shape == (2, P)


# ---- the books of a phase ------------------------------------------------------------------------


def phase(search, values, n_evals=0):
    """Close a phase in which these values were seen."""
    search.observations[:] = np.nan
    search.observations[: len(values)] = values
    search.n_evals = n_evals
    search.end_phase()


def test_a_phase_is_the_mean_of_what_was_seen():
    search = made(policy=scgd.Musketeer(length=3))
    phase(search, [1.0, 2.0, 6.0], 6)
    phase(search, [np.nan, 2.0, 4.0], 12)
    assert search.journal == [(6, 3.0), (12, 3.0)] and search.n_phases == 2
    assert search.firsts == [3.0, 3.0] == list(search.recent)
    phase(search, [], 18)
    assert search.n_phases == 2 and len(search.journal) == 2
    assert np.isnan(search.observations).all() and np.isnan(search.last_phase).all()
    for k in range(60):
        phase(search, [float(k)])
    assert len(search.firsts) == 50 and search.firsts[-1] == 47.0 and search.n_phases == 62
    assert list(search.recent) == [float(k) for k in range(10, 60)]


def test_the_height_of_probes_is_taken_off_and_goes_with_the_square_of_the_radius():
    search = made(radius=scgd.InverseTime(1.0, 0.0), policy=scgd.Musketeer(length=3))
    search.begin_stage(100, base=2.0)
    search.prepare()
    search.t = 1
    phase(search, [5.0], 2)
    assert search.journal[-1][1] == pytest.approx(2.0)
    search.t = 2  # a radius of one half: a quarter of what the first probes lay above, (3 + 1) / 2
    phase(search, [3.0], 4)
    assert search.journal[-1][1] == pytest.approx(3.0 - 2.0 / 4)


def test_the_radius_of_the_last_step_in_or_outside_of_the_chunk():
    search = made(radius=scgd.InverseTime(1.0, 0.0))
    search.t = 3
    assert search._radius() == pytest.approx(1 / 3)
    search.timetable.cover(CHUNK + 5)
    for search.t in (3, CHUNK, CHUNK + 1, CHUNK + 7, 2 * CHUNK, 2 * CHUNK + 1):
        assert search._radius() == pytest.approx(1 / search.t)
    assert made(radius=lambda t: 0.0 * t)._radius() == 1e-300


@pytest.mark.parametrize("length, n", [(30, 1), (20, 1), (19, 2), (7, 3), (1, 20)])
def test_a_level_is_made_of_twenty_observations_at_least(length, n):
    search = made(policy=scgd.Musketeer(length=length))
    assert len(search.observations) == length
    search.recent.extend([99.0, *range(n - 1)])
    if n > 1:
        assert search.level == pytest.approx((99.0 + sum(range(n - 1))) / n)
    search.recent.append(5.0)
    assert search.level == pytest.approx((5.0 + sum(range(n - 1))) / n)
    search.recent.popleft()
    search.recent.popleft()
    assert n == 1 or np.isnan(search.level)


def test_what_a_search_stands_for():
    search = made(policy=scgd.Musketeer(length=3))
    assert search.recommended[1].size == 3 and np.isnan(search.recommended[1]).all()
    go(search, 2)
    assert np.isfinite(search.recommended[1]).sum() == 2
    go(search, 2)
    assert np.isfinite(search.recommended[1]).all()  # the last whole phase
    np.testing.assert_allclose(search.weights.sum(), 1.0)
    assert made(policy="full").weights is None and made(policy="gauss-southwell").weights is None


# ---- states --------------------------------------------------------------------------------------


def test_a_state_is_taken_up_with_its_units_and_phases():
    search = made(scale=SCALE, relative_rate=True, relative_radius=True, step="rms")
    go(search, 7)
    other = made(relative_rate=True, relative_radius=True, step="rms")
    other.load_state_dict(search.state_dict())
    other.point.put(search.point.x)
    assert other.rate_scale.tolist() == SCALE and not other.uniform_scale
    assert list(other.recent) == list(search.recent) and other.t == 7
    go(search, 5)
    go(other, 5)
    np.testing.assert_array_equal(other.point.x, search.point.x)


def test_importance_may_be_a_number_or_a_schedule_of_the_phase():
    policy = scgd.Musketeer(length=3)
    half = made(policy=policy, importance=0.5)
    falling = made(policy=policy, importance=scgd.InverseTime(2.0))
    for search in (half, falling):
        go(search, 7)  # in the third phase
    assert half.importance_weights.tolist() == [0.5] * 4
    np.testing.assert_allclose(falling.importance_weights, 2.0 / 3.0)


def test_weights_by_phase_are_those_of_the_phase_taken_up():
    def falling(n):
        return np.full(P, 1.0 + n)

    search, other = (made(policy=scgd.Musketeer(length=3), importance=falling) for _ in range(2))
    go(search, 7)
    other.load_state_dict(search.state_dict())
    assert other.importance_weights.tolist() == [3.0] * 4


@pytest.mark.parametrize(
    "name, value, message",
    [("t", -1, "counts"), ("t", 2**62 + 1, "counts"), ("n_phases", -1, "counts"),
     ("scale", np.array([1.0, 0.0, 1.0, 1.0]), "scale is not positive"),
     ("scale", np.array([1.0, np.inf, 1.0, 1.0]), "scale is not positive"),
     ("scale", np.array([1.0, np.nan, 1.0, 1.0]), "scale is not positive"),
     ("scale", np.ones(3), "scale has another shape"),
     ("observations", np.ones(7), "observations has another shape"),
     ("gradient", np.ones(3), "gradient has another size"),
     ("gradient", np.array([1.0, np.nan, 1.0, 1.0]), "gradient is not finite"),
     ("slots", np.full((1, 4), np.nan), "slots is not finite"),
     ("average", np.ones((2, 3)), "average has another shape")],
)  # fmt: skip
def test_a_state_that_leads_astray_is_refused(name, value, message):
    search = made(step="momentum")
    state = search.state_dict()
    with pytest.raises(ValueError, match=message):
        search.load_state_dict({**state, name: value})
    fine = made(step="momentum")
    fine.load_state_dict({**state, "t": 2**62, "gradient": np.ones(P)})
    assert fine.t == 2**62 and fine.gradient.size == P


def test_steps_by_themselves_need_no_budget():
    search = steps_of(recipe(), np.zeros(P), None, np.random.SeedSequence(1))
    assert search.timetable.total is None and search.until == -1 and search.t == 0
