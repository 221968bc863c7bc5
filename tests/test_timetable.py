"""What schedules are worth at each step: stages, passes, chunks, and weights by phase."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import scgd
from asking import answer, begin, run_loop, same_state, steps_of, told
from registry import P, quadratic
from scgd.samples import CHUNK
from scgd.timetable import Mixings, Timetable, resolved


def values(table, n, first=0):
    """Return rates, radii and progress of steps first + 1, ..., one cover each."""
    lines = []
    for step in range(first, first + n):
        place = table.cover(step)
        lines.append((table.rates[place], table.radii[place], table.progress[place]))
    return np.array(lines).T


def test_a_leg_falls_from_its_first_step_to_its_last():
    table = Timetable(scgd.Linear(2.0), scgd.Linear(0.5, end=0.1), n_coords=3, total=10)
    rates, radii, progress = values(table, 12)
    steps = np.minimum(np.arange(1, 13), 10)
    np.testing.assert_allclose(rates, 2.0 * (1 - steps / 10), atol=1e-15)
    np.testing.assert_allclose(radii, 0.5 * np.maximum(0.1, 1 - steps / 10), atol=1e-15)
    np.testing.assert_allclose(progress, np.minimum(np.arange(12), 10) / 10, atol=1e-15)


def test_a_second_leg_begins_where_it_is_told_to():
    table = Timetable(scgd.Linear(2.0), scgd.Constant(0.5), n_coords=3, total=10)
    values(table, 10)
    table.begin(10, 30)
    rates, _, progress = values(table, 20, first=10)
    np.testing.assert_allclose(rates, 2.0 * (1 - np.arange(1, 21) / 20), atol=1e-15)
    np.testing.assert_allclose(progress, np.arange(20) / 20, atol=1e-15)


def test_a_schedule_with_an_end_of_its_own_keeps_it():
    own = scgd.Linear(2.0, total=7)
    assert resolved(own, 3, 100, 2.0) is own
    assert resolved(scgd.Constant(1.0), 3, 100, 2.0) == scgd.Constant(1.0)


def test_without_an_end_a_fall_is_an_inverse_root_of_passes():
    """2 sqrt(10 / (passes + 10)), passes counted as parts from the beginning of the stage."""
    table = Timetable(scgd.Linear(2.0), scgd.Constant(0.5), n_coords=4, start=0, total=None)
    rates, _, progress = values(table, 50)
    expected = 2.0 * np.sqrt(10 / (np.arange(1, 51) / 4.0 + 10))
    np.testing.assert_allclose(rates, expected, rtol=1e-12)
    later = Timetable(scgd.Linear(2.0), scgd.Constant(0.5), n_coords=4, start=600, total=None)
    np.testing.assert_allclose(values(later, 50, first=600)[0], rates, rtol=1e-12)
    assert np.all((progress >= 0) & (progress < 1))


@pytest.mark.parametrize("inner", [
    scgd.Linear(4.0), scgd.InverseTime(4.0, 10.0, per="pass"), scgd.InverseTime(4.0, 10.0),
    scgd.Constant(4.0), scgd.SqrtOf(scgd.Linear(16.0)),
])  # fmt: skip
def test_a_square_root_has_the_index_and_the_leg_of_what_is_under_it(inner):
    table = Timetable(scgd.SqrtOf(inner), inner, n_coords=5, start=20, total=80)
    roots, whole, _ = values(table, 60, first=20)
    np.testing.assert_allclose(roots, np.sqrt(whole), rtol=1e-12)
    assert isinstance(inner, scgd.Constant) or whole[0] > whole[-1]


def test_passes_are_whole():
    rate = scgd.InverseTime(1.0, 10.0, per="pass")
    table = Timetable(rate, scgd.SqrtOf(rate), n_coords=5, n_draws=2)
    rates, radii, _ = values(table, 40)
    passes = np.floor(np.arange(1, 41) / 2.5)
    np.testing.assert_allclose(rates, 1 / (passes + 10), rtol=1e-14)
    np.testing.assert_allclose(radii, 1 / np.sqrt(passes + 10), rtol=1e-14)


def test_every_step_may_be_a_pass():
    rate = scgd.InverseTime(1.0, 10.0, per="pass")
    table = Timetable(rate, rate, n_coords=1, n_draws=2)
    assert table.rates.size == table.radii.size == table.progress.size == 0
    for first in (0, CHUNK):
        assert table.cover(first + 3) == 3
        passes = 2.0 * np.arange(first + 1, first + CHUNK + 1)
        np.testing.assert_allclose(table.rates, 1 / (passes + 10), rtol=1e-14)
        np.testing.assert_array_equal(table.radii, table.rates)


def test_before_a_leg_without_an_end_its_first_value_holds():
    """A chunk begins at a multiple of its length, the stage inside it."""
    table = Timetable(scgd.Linear(2.0), scgd.Constant(0.5), n_coords=4, start=CHUNK + 88)
    table.cover(CHUNK + 88)
    np.testing.assert_array_equal(table.rates[:88], 2.0)
    np.testing.assert_allclose(table.rates[88:90], 2.0 * np.sqrt(10 / (np.array([1, 2]) / 4 + 10)))


def test_a_leg_has_a_step_at_least():
    for total in (5, 6):
        table = Timetable(scgd.Linear(2.0), scgd.Constant(0.5), n_coords=4, start=5, total=total)
        np.testing.assert_array_equal(values(table, 3, first=4)[0], [2.0, 0.0, 0.0])
    assert resolved(scgd.Linear(2.0), 5, 3, 1.0).total == 6


@pytest.mark.parametrize("name, make", [
    ("learning_rate", lambda bad: (bad, scgd.Constant(1.0))),
    ("radius", lambda bad: (scgd.Constant(1.0), bad)),
])  # fmt: skip
def test_the_first_negative_value_is_named(name, make):
    table = Timetable(
        *make(lambda t: np.where(t == 3, -0.5, np.where(t == 4, -7.0, 0.5))), n_coords=3
    )
    with pytest.raises(ValueError, match=rf"{name} must not be negative, got -0\.5 from"):
        table.cover(0)


def test_values_are_made_once_per_chunk():
    calls = []

    def rate(t):
        calls.append(len(t))
        return np.ones(len(t))

    table = Timetable(rate, scgd.Constant(1.0), n_coords=3)
    for step in (0, 1, CHUNK - 1, CHUNK, CHUNK + 1):
        table.cover(step)
    assert calls == [CHUNK, CHUNK]
    table.begin(0, None)
    table.cover(CHUNK + 1)
    assert calls == [CHUNK] * 3  # another stage: anew


def test_shares_are_looked_up_ahead():
    calls = []

    def mixing(n):
        calls.append((int(n[0]), int(n[-1])))
        return 1 / n

    table = Mixings(mixing)
    assert [table.at(n) for n in (1, 1, 2, 256, 1)] == [1.0, 1.0, 0.5, 1 / 256, 1.0]
    assert calls == [(1, 256)]
    assert table.at(257) == 1 / 257 and table.at(257) == 1 / 257
    assert calls == [(1, 256), (257, 512)]


@given(
    steps=st.lists(st.integers(0, 5 * CHUNK), min_size=1, max_size=8),
    start=st.integers(0, 700),
    total=st.one_of(st.none(), st.integers(1, 4000)),
)
def test_chunks_do_not_show(steps, start, total):
    """Whatever was covered before, a step has one value."""
    total = None if total is None else start + total
    make = (scgd.Linear(2.0, power=1.5), scgd.SqrtOf(scgd.InverseTime(1.0, 3.0, per="pass")))
    table = Timetable(*make, n_coords=7, start=start, total=total)
    for step in steps:
        fresh = Timetable(*make, n_coords=7, start=start, total=total)
        step += start
        assert np.array_equal(values(table, 1, step), values(fresh, 1, step))


def test_one_negative_value_among_others_is_named():
    table = Timetable(lambda t: 2.0 - t, scgd.Constant(1.0), n_coords=3)
    with pytest.raises(ValueError, match=r"learning_rate must not be negative, got -1\.0 from"):
        table.cover(0)
    touching = Timetable(lambda t: np.maximum(2.0 - t, 0.0), scgd.Constant(1.0), n_coords=3)
    touching.cover(0)
    assert touching.rates[:3].tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("start, total", [(0, 0), (0, 1), (5, None)])
def test_legs_at_the_edge_can_be_loaded(start, total):
    table = Timetable(scgd.Linear(2.0), scgd.Constant(1.0), n_coords=3)
    table.load_state_dict({"start": start, "total": total})
    assert table.state_dict() == {"start": start, "total": total}
    for bad in ({"start": -1, "total": 3}, {"start": 0, "total": -1}):
        with pytest.raises(ValueError, match="a stage from"):
            table.load_state_dict(bad)


@pytest.mark.parametrize("mixing", [None, 0, 0.0, 0.25, lambda n: 1.5 - n / 2, scgd.InverseTime()])
def test_shares_by_phase(mixing):
    """min(1, max(0, mixing(n))) at n = 1, 2, ..., whatever was looked up before."""

    def share(n):
        value = mixing(np.array([n]))[0] if callable(mixing) else mixing or 0.0
        return min(1.0, max(0.0, float(value)))

    for n in (1, 2, 255, 256, 257, 3, 1):
        assert Mixings(mixing).at(n) == pytest.approx(share(n), rel=1e-14)
    table = Mixings(mixing)
    assert [table.at(n) for n in (1, 300, 2, 256, 257, 258)] == pytest.approx(
        [share(n) for n in (1, 300, 2, 256, 257, 258)], rel=1e-14
    )
    assert table.span(4, 3).tolist() == pytest.approx([share(n) for n in (5, 6, 7)], rel=1e-14)


def test_a_leg_is_saved():
    table = Timetable(scgd.Linear(2.0), scgd.Constant(1.0), n_coords=3, start=5, total=50)
    other = Timetable(scgd.Linear(2.0), scgd.Constant(1.0), n_coords=3)
    other.cover(5)
    other.load_state_dict(table.state_dict())
    assert np.array_equal(values(other, 40, 5), values(table, 40, 5))
    with pytest.raises(ValueError, match="a stage from -1"):
        other.load_state_dict({"start": -1, "total": None})


@pytest.mark.parametrize("estimator, block_size, policy, per_pass", [
    ("forward", 1, "uniform", P), ("central", 4, "uniform", P / 4), ("central", 1, "full", 1),
    ("spsa", 1, "full", P), ("gaussian", 4, "uniform", P), ("sphere", 1, "uniform", P),
])  # fmt: skip
def test_a_pass_of_each_estimator(estimator, block_size, policy, per_pass):
    """Coordinates count, p of them to a pass; so do directions, each of which is one."""
    recipe = scgd.SCGD(
        estimator=estimator, block_size=block_size, policy=policy, radius=0.1,
        learning_rate=scgd.InverseTime(1.0, 10.0, per="pass"),
    )  # fmt: skip
    search = begin(scgd.Optimizer(np.zeros(P), recipe), quadratic)
    assert search.timetable.n_coords / search.timetable.n_draws == per_pass
    search.prepare()
    steps = np.arange(1, 41)
    np.testing.assert_allclose(search.timetable.rates[:40], 1 / (steps // per_pass + 10))


def test_more_budget_is_a_second_leg():
    """A run that is extended falls again, over what is left, from where it is."""
    opt = scgd.Optimizer(np.zeros(P), "uniform", scale=1.0, max_evals=200, seed=0)
    told(opt, quadratic)
    opt.extend(600)
    search = steps_of(opt)
    place = search.prepare()
    rates = search.timetable.rates[place : place + 200]
    np.testing.assert_allclose(rates, 0.3 * (1 - np.arange(1, 201) / 200), atol=1e-15)
    told(opt, quadratic)
    assert opt.run.nfev == 600 and opt.done


def test_a_budget_may_be_lifted_in_the_middle_of_a_chunk():
    opt = scgd.Optimizer(np.zeros(4), "uniform", scale=1.0, max_evals=1200, seed=0)
    told(opt, lambda x: float(np.sum((x - 1) ** 2)))
    opt.extend(None)
    told(opt, lambda x: float(np.sum((x - 1) ** 2)), until=1300)
    search = steps_of(opt)
    steps = np.arange(1, 51) / 4
    np.testing.assert_allclose(
        search.timetable.rates[598 - CHUNK : 648 - CHUNK], 0.3 * np.sqrt(10 / (steps + 10))
    )


# ---- weights by phase ----------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [
    {}, {"estimator": "forward"}, {"block_size": 3}, {"block_size": 3, "estimator": "spsa"},
    {"policy": "full"}, {"estimator": "gaussian", "block_size": 3},
    {"policy": "gauss-southwell"}, {"average": True},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("body", [False, True], ids=["asked", "by minimize"])
def test_weights_by_phase_are_those_of_every_phase(parts, body):
    """W_t is a function of the phase 0, 1, ..., in bodies and by ask and tell alike."""
    phases = []

    def weights(phase):
        phases.append(phase)
        return np.full(P, 1.0 + phase)

    recipe = scgd.SCGD(
        **{"policy": "uniform", **parts}, learning_rate=1e-3, radius=0.1, importance=weights
    )
    opt = scgd.Optimizer(np.zeros(P), recipe, max_evals=400, seed=0)
    if body:
        result = scgd.minimize(quadratic, np.zeros(P), method=recipe, max_evals=400, seed=0)
        per_step = 2 if recipe.policy.needs_gradient else 1  # questions
        n = result.nit // per_step // steps_of(opt).sampler.n_steps
    else:
        told(opt, quadratic)
        n = steps_of(opt).sampler.n_phases
    assert n > 5
    phases = list(dict.fromkeys(phases))  # where a gradient is scouted first, asked twice
    assert phases == list(range(len(phases))) and len(phases) in (n, n + 1)


@pytest.mark.parametrize("parts", [{}, {"block_size": 3}, {"estimator": "spsa"}], ids=str)
def test_weights_by_phase_scale_the_step(parts):
    """Weights that are 0.5 in phase 0 and 2 later halve and then double every move."""

    def run(importance):
        recipe = scgd.SCGD(
            policy="uniform", learning_rate=1e-2, radius=0.1, importance=importance, **parts
        )
        opt, moves = scgd.Optimizer(np.zeros(P), recipe, seed=0), []
        begin(opt, quadratic)
        for _ in range(2 * steps_of(opt).sampler.n_steps):
            steps_of(opt).point.put(np.zeros(P))
            answer(opt, quadratic)
            moves.append(opt.x)
        return np.array(moves)

    plain = run(None)
    scaled = run(lambda phase: np.full(P, 2.0 if phase else 0.5))
    half = len(plain) // 2
    np.testing.assert_allclose(scaled[:half], 0.5 * plain[:half], rtol=1e-12)
    np.testing.assert_allclose(scaled[half:], 2.0 * plain[half:], rtol=1e-12)


def test_weights_by_phase_of_the_wrong_length_are_named():
    with pytest.raises(ValueError, match=r"importance returned 2 weights for 12 coordinates"):
        scgd.minimize(
            quadratic,
            np.zeros(P),
            method=scgd.SCGD(learning_rate=0.1, radius=0.1, importance=lambda n: [1, 2]),
        )


def test_weights_by_phase_go_on_after_a_resume(tmp_path):
    recipe = scgd.SCGD(
        policy="uniform",
        learning_rate=0.1,
        radius=0.1,
        importance=lambda n: np.linspace(1, 2, P) / (n + 1),
    )
    whole, half, other = (
        scgd.Optimizer(np.zeros(P), recipe, max_evals=300, seed=0) for _ in range(3)
    )
    told(whole, quadratic)
    run_loop(half, quadratic, (), 104)  # in the middle of a phase
    half.save(tmp_path / "run")
    assert other.resume(tmp_path / "run")
    run_loop(other, quadratic)
    same_state(other, whole)
