"""The numbers of the race's arms, against the formulas they are taken from."""

import numpy as np
import pytest

from by_hand import replies
from scgd.searches.arms.box import Box
from scgd.searches.arms.ending import Ending
from scgd.searches.arms.falling import Fall, falling_length
from scgd.searches.arms.lines import Line, polish, sides, try_parabola, wall
from scgd.searches.arms.population import Population, default_size, population
from scgd.searches.arms.quasinewton import QuasiNewton

# ---- walls and ends ------------------------------------------------------------------------------


def test_a_point_on_a_wall_stays_there():
    box = Box(np.ones(3), np.zeros(3), np.array([np.inf, 2.0, 2.0]), np.inf)
    with np.errstate(all="raise", invalid="ignore"):
        np.testing.assert_array_equal(box.reflect(np.array([0.0, 2.0, 2.5])), [0.0, 2.0, 1.5])
        np.testing.assert_array_equal(box.reflect(np.array([5.0, 0.0, -0.5])), [5.0, 0.0, 0.5])
    tight = Box(np.ones(1), np.ones(1), np.ones(1), np.inf)
    np.testing.assert_array_equal(tight.reflect(np.array([7.0])), [1.0])


def test_a_box_doubles_beyond_its_half_and_its_parts_with_it():
    box = Box(np.zeros(2), np.full(2, -30.0), np.full(2, 30.0), 10.0)
    part = box.part(np.array([True, False]))
    box.note(np.array([5.0, 0.0]))
    assert box.upper[0] == 10.0
    box.note(np.array([5.1, 0.0]))
    assert box.upper[0] == 20.0 == part.upper[0] and part.lower[0] == -20.0
    box.note(np.array([0.0, 19.0]))
    assert box.lower[0] == -30.0 == part.lower[0]


def test_restarts_end_when_two_more_agree_than_fail_or_many_failed():
    ending = Ending(1e-3, first=101.0)
    ending.note("descent", 1.0, 1.0 + 0.9)  # within ten times the worth: 1e-3 of the gain of 100
    assert ending.n_agreed == 1 and not ending.over
    ending.note("descent", 1.0, 1.0 + 1.1)
    assert ending.n_agreed == 1 and ending.failed["descent"] == 1
    ending.note("population", 1.0, 1.0 - 0.05)  # no gain that counts
    assert ending.n_agreed == 2 and not ending.over
    ending.note("population", 1.0, 1.0)
    assert ending.n_agreed == 3 and ending.over
    ending.note("population", 1.0, 1.0 - 0.2)
    assert ending.n_agreed == 0 and ending.failed == {"descent": 0, "population": 0}
    for _ in range(60):
        ending.note("descent", 1.0, 50.0)
    for n in range(7):
        assert not ending.over
        ending.note("population", 1.0, 50.0)
        assert ending.failed["population"] == n + 1
    assert ending.over
    ending.tol = 0.0
    assert not ending.over
    assert Ending(1.0, 1.0).worth(5.0) == 0.0 and Ending(0.5, 3.0).worth(1.0) == 1.0


# ---- how far f falls -----------------------------------------------------------------------------


def lengths(points, x):
    return np.array([np.linalg.norm(point - x) for point in points])


@pytest.mark.parametrize("budget, low, n_ways", [(399, -3, 1), (400, -6, 3)])
def test_decades_are_tried_both_ways_then_along_others(budget, low, n_ways):
    """F never falls: every length is looked at, and the answer is a third of .1, about."""
    x = np.zeros(4)
    arm = falling_length(x, 1.0, budget, np.random.default_rng(0))
    points, (length, best, value) = replies(arm, lambda point: 2.0)
    first = np.repeat(10.0 ** np.arange(1, low - 1, -1), 2)  # no farther without a fall
    start = 10.0**low
    others = [h for h in 10.0 ** np.arange(low, 5) if 1.5 * start < h <= min(1.1e4 * start, 11.0)]
    others = [h for h in others if h <= (100.0 if budget < 400 else 1e4)]
    near = 0.1 / 2.2 ** np.arange(6)
    n_near = 1 if budget < 400 else 4
    expected = [
        *first,
        *np.tile(np.repeat(others, 2), n_ways),
        *np.tile(np.repeat(near, 2), n_near),
    ]
    np.testing.assert_allclose(lengths(points, x), expected, rtol=1e-12)
    assert length == pytest.approx(0.035) and value == 1.0 and best is x


@pytest.mark.parametrize(
    "reach, asked", [(0.5, [10.0, 10.0, 1.0, 1.0, 0.1]), (50.0, [10.0, 100.0, 100.0])]
)
def test_the_widest_decade_is_looked_for_from_ten_units(reach, asked):
    """Outwards while f falls, else inwards; the way back is asked only where the way did not fall."""
    x = np.zeros(2)
    fall = Fall(x, 1.0, np.random.default_rng(0), Box.around(x))
    arm = fall.widest(10.0 ** np.arange(-3, 3))
    points, found = replies(arm, lambda y: 0.5 if np.linalg.norm(y) < reach else 2.0)
    np.testing.assert_allclose(lengths(points, x), asked)
    assert found == pytest.approx(10.0 ** np.floor(np.log10(reach)))


@pytest.mark.parametrize("budget, n", [(159, 1), (160, 2)])
def test_below_160_evaluations_one_direction_tells_the_length(budget, n):
    drawn = Directions()
    arm = falling_length(np.zeros(1), 1.0, budget, drawn)
    _, (length, best, value) = replies(arm, lambda y: 0.5 if abs(y[0]) < 5.0 else 2.0)
    assert drawn.n == (1 if n == 1 else 3) and value == 0.5 and abs(best[0]) == 1.0
    assert length == pytest.approx(0.35 if n == 1 else 0.35 * 2.2**2, rel=0.6)


class Directions:
    """Counts the directions it draws."""

    n = 0

    def standard_normal(self, size):
        self.n += 1
        return np.ones(size)


def test_a_fall_is_followed_outwards_by_factors():
    fall = Fall(np.zeros(2), 1.0, np.random.default_rng(0), Box.around(np.zeros(2)))

    def reach(point):
        return 0.5 if np.linalg.norm(point) < 5.0 else 2.0

    points, found = replies(fall.farthest(1.0), reach)
    assert found == pytest.approx(2.2**2)  # 1, 2.2, 4.84; 10.6 does not fall, either way
    np.testing.assert_allclose(lengths(points, 0.0), [1.0, 2.2, 2.2**2, 2.2**3, 2.2**3])


# ---- a population (Hansen, The CMA evolution strategy: a tutorial, 2016) -------------------------


@pytest.mark.parametrize("n, size", [(2, None), (10, None), (10, 200), (40, 12)])
def test_the_constants_of_a_population(n, size):
    state = Population(np.zeros(n), 1.0, np.random.default_rng(0), size)
    lam = size or 4 + int(3 * np.log(n))
    assert default_size(n) == 4 + int(3 * np.log(n)) and state.size == lam
    raw = np.log((lam + 1) / 2) - np.log(np.arange(1, lam + 1))  # (49)
    mu = lam // 2
    mu_eff = raw[:mu].sum() ** 2 / (raw[:mu] ** 2).sum()  # (8)
    assert state.mu_eff == pytest.approx(mu_eff)
    c_sigma = (mu_eff + 2) / (n + mu_eff + 5)  # (55)
    assert state.c_sigma == pytest.approx(c_sigma)
    damping = 1 + 2 * max(0, np.sqrt((mu_eff - 1) / (n + 1)) - 1) + c_sigma
    assert state.damping == pytest.approx(damping)
    assert state.c_path == pytest.approx((4 + mu_eff / n) / (n + 4 + 2 * mu_eff / n))  # (56)
    c_one = 2 / ((n + 1.3) ** 2 + mu_eff)  # (57)
    c_mu = min(1 - c_one, 2 * (0.25 + mu_eff + 1 / mu_eff - 2) / ((n + 2) ** 2 + mu_eff))  # (58)
    assert state.c_one == pytest.approx(c_one) and state.c_mu == pytest.approx(c_mu)
    minus = raw[mu:]
    mu_minus = minus.sum() ** 2 / (minus**2).sum()
    most = min(1 + c_one / c_mu, 1 + 2 * mu_minus / (mu_eff + 2),
               (1 - c_one - c_mu) / (n * c_mu))  # fmt: skip
    np.testing.assert_allclose(state.weights[mu:], most * minus / np.abs(minus).sum())
    np.testing.assert_allclose(state.weights[:mu], raw[:mu] / raw[:mu].sum())
    assert state.chi == pytest.approx(np.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2)))


@pytest.mark.parametrize("pace", [0.1, 0.8, 1.5, 4.0])
def test_a_generation_by_the_formulas(pace):
    """One step of a population that has already a path, in plain words."""
    n, rng = 3, np.random.default_rng(1)
    state = Population(np.ones(n), 0.5, rng)
    state.path_sigma, state.path = np.full(n, pace), np.full(n, 0.2)
    normal, steps = state.sample()
    np.testing.assert_allclose(np.abs(steps), np.abs(normal @ state.axes.T))
    values = rng.permutation(state.size).astype(float)
    order, mu = np.argsort(values), state.parents
    weights, c, covariance = state.weights, state.c_sigma, np.eye(n)
    step = state.positive @ steps[order[:mu]]
    path_sigma = (1 - c) * pace + np.sqrt(c * (2 - c) * state.mu_eff) * step
    length = np.linalg.norm(path_sigma)
    steady = length < (1.4 + 2 / (n + 1)) * state.chi * np.sqrt(1 - (1 - c) ** 2)
    path = (1 - state.c_path) * np.full(n, 0.2)
    path = path + steady * np.sqrt(state.c_path * (2 - state.c_path) * state.mu_eff) * step
    scaled = weights.copy()
    scaled[mu:] *= n / np.sum(normal[order[mu:]] ** 2, axis=1)
    lost = 0.0 if steady else state.c_path * (2 - state.c_path)
    keep = 1 + state.c_one * lost - state.c_one - state.c_mu * weights.sum()
    covariance = keep * covariance + state.c_one * np.outer(path, path)
    covariance += state.c_mu * sum(
        w * np.outer(y, y) for w, y in zip(scaled, steps[order], strict=True)
    )
    state.learn(normal, steps, values)
    np.testing.assert_allclose(state.mean, 1.0 + 0.5 * step)
    np.testing.assert_allclose(state.path, path)
    np.testing.assert_allclose(state.covariance, covariance)
    assert state.sigma == pytest.approx(
        0.5 * np.exp(min(1, c / state.damping * (length / state.chi - 1)))
    )
    assert state.bests == [0.0] and state.medians == [float(mu)] and state.n_evals == state.size


def test_moves_beyond_the_walls_cost_twice_the_middle_half_of_values_per_step():
    state = Population(np.zeros(2), 0.5, np.random.default_rng(0))
    state.deviations = np.array([1.0, 3.0])  # mean square 5: a step is 0.25 * 5 = 1.25
    outside = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 2.0], [0.0, -2.0], [0.0, 0.0]])
    values = np.array([4.0, 0.0, 1.0, 3.0, 2.0])  # quartiles 1 and 3
    expected = 2 * (3 - 1) * np.array([0.0, 0.5, 2.5, 2.0, 0.0]) / 1.25
    np.testing.assert_allclose(state.penalties(outside, values), expected)
    lost = np.array([4.0, 0.0, 1.0, 3.0, np.inf])  # of 0, 1, 3, 4: quartiles .75 and 3.25
    np.testing.assert_allclose(state.penalties(outside, lost), 1.25 * expected)
    assert not state.penalties(0 * outside, values).any()
    assert not state.penalties(outside, np.full(5, np.inf)).any()


def test_a_population_asks_inside_the_walls_and_learns_from_what_it_costs_outside(monkeypatch):
    """The mean is brought inside; what is returned is the lowest value, without any penalty."""
    learned, over = [], iter([False, True])

    def learn(self, normal, steps, values):
        learned.append(values)
        self.mean = np.array([5.0, -5.0])

    monkeypatch.setattr(Population, "learn", learn)
    monkeypatch.setattr(Population, "over", lambda self, values, narrowest: next(over))
    monkeypatch.setattr(Population, "penalties", lambda self, outside, values: outside.sum(1))
    box = Box(np.zeros(2), np.full(2, -1.0), np.full(2, 1.0))
    arm = population(np.zeros(2), 1e3, np.random.default_rng(0), 6, box=box)
    twin = Population(np.zeros(2), 1e3, np.random.default_rng(0), 6)
    points, values = next(arm), np.arange(3.0, 9.0)
    wanted = 1e3 * twin.sample()[1]
    np.testing.assert_array_equal(points, np.clip(wanted, -1, 1))
    points = arm.send(values)
    np.testing.assert_allclose(learned[0], values + (wanted - np.clip(wanted, -1, 1)).sum(1))
    twin.mean = np.array([1.0, -1.0])
    np.testing.assert_array_equal(points, np.clip(twin.mean + 1e3 * twin.sample()[1], -1, 1))
    with pytest.raises(StopIteration) as end:
        arm.send(values + 1)
    assert end.value.value == 3.0


def test_two_flat_generations_in_a_row_end_a_population():
    """Flat: the best has the value of the fifth of six, three quarters down the order."""
    state = Population(np.zeros(2), 1.0, np.random.default_rng(0))
    nearly = np.where(np.arange(6) < 4, 0.0, np.arange(6.0))
    flat = np.where(np.arange(6) < 5, 0.0, np.arange(6.0))
    for values, n_flat in ((flat, 1), (nearly, 0), (flat, 1), (flat, 2)):
        state.learn(*state.sample(), values)
        assert state.n_flat == n_flat and bool(state.over(values, 1e-11)) is (n_flat == 2)


def aged(n_generations, bests, medians=None):
    state = Population(np.ones(2), 1.0, np.random.default_rng(0))  # six points, two coordinates
    state.n_generations = n_generations
    state.bests, state.medians = list(bests), list(medians or bests)
    return state


VALUES = np.arange(6.0)


def test_when_a_population_is_over():
    """120 + 30 * 2 / 6 = 130 generations; a fifth of them, 26, is compared with the first fifth."""
    falling = list(np.linspace(5.0, 4.0, 131))
    assert not aged(131, falling).over(VALUES, 1e-11)
    risen = [*falling[:-26], *[9.0] * 26]
    assert aged(131, risen).over(VALUES, 1e-11) is True
    assert aged(130, risen).over(VALUES, 1e-11) is False
    assert not aged(131, falling, risen)._stagnates() and not aged(131, risen, falling)._stagnates()
    ten = Population(np.ones(10), 1.0, np.random.default_rng(0))  # 120 + 30 * 10 / 10
    ten.bests = ten.medians = [*falling, *[9.0] * 40]
    for ten.n_generations, over in ((150, False), (151, True)):
        assert ten._stagnates() is over
    level = 20  # 10 + 30 * 2 / 6
    assert aged(level + 1, [3.0] * level).over(np.full(6, 3.0), 1e-11) is True
    assert aged(level, [3.0] * level).over(np.full(6, 3.0), 1e-11) is False
    assert aged(level + 1, [3.0] * level).over(VALUES + 3, 1e-11) is False
    for sigma, over in ((2e-11, False), (0.9e-11, True), (1.1e6, True), (0.9e6, False)):
        state = aged(1, [3.0])
        state.sigma, state.mean = sigma, np.zeros(2)
        assert state.over(VALUES, 1e-11) is over
    state = aged(1, [3.0])
    state.sigma, state.mean = 1e-10, np.full(2, 1e6)  # below rounding of the mean
    assert state.over(VALUES, 1e-11) is True
    state = aged(1, [3.0])
    state.deviations = np.array([1.0, 1.1e7])
    state.sigma = 1e-3
    assert state.over(VALUES, 1e-11) is True


# ---- lines of a quasi-Newton step ----------------------------------------------------------------


def line(fun, slope, p=1):
    """Search along the first axis from 0; return rates asked, and what is found."""
    newton = QuasiNewton(np.zeros(p), fun(0.0), 1.0, 0.0)
    direction = np.eye(p)[0]
    points, found = replies(
        newton._search_line(direction, slope, slope * direction), lambda x: fun(float(x[0]))
    )
    return [float(point[0]) for point in points], found


def test_a_line_search_takes_a_step_that_its_parabola_confirms():
    rates, (best, value, point) = line(lambda t: (t - 1.0) ** 2, -2.0)
    assert rates == [1.0] and best == 1.0 and value == 0.0 and point[0] == 1.0


def test_a_line_search_goes_to_the_vertex_but_no_farther_than_by_its_growth():
    rates, (best, _, _) = line(lambda t: (t - 6.0) ** 2, -12.0)
    assert rates[:2] == [1.0, pytest.approx(6.0)] and best == pytest.approx(6.0)
    rates, _ = line(lambda t: (t - 60.0) ** 2, -120.0)
    assert rates[:2] == [1.0, pytest.approx(10.0)]


def test_a_line_search_comes_back_by_a_half_to_a_twentieth():
    rates, (best, _, _) = line(lambda t: (t - 0.3) ** 2, -0.6)
    assert rates == [1.0, pytest.approx(0.3)] and best == pytest.approx(0.3)
    rates, _ = line(lambda t: (t - 0.01) ** 2, -0.02)
    assert rates[:2] == [1.0, pytest.approx(0.05)]
    rates, _ = line(lambda t: -t if t < 0.2 else np.inf, -1.0)
    assert rates == [1.0, pytest.approx(0.1)]
    rates, (best, value, _) = line(lambda t: abs(t), -1.0)
    assert best == 0.0 and value == 0.0 and min(rates) < 1e-10


def test_a_metric_is_trusted_more_after_long_steps_and_less_after_short_ones():
    newton = QuasiNewton(np.zeros(2), 1.0, 1.0, 0.0)
    newton.trust = 0.5
    newton._judge_metric(1.0)
    assert newton.trust == 0.5  # no memory, no metric
    newton.steps = [np.ones(2)]
    for rate, trust in ((1.0, 0.7), (0.5, 0.7), (0.49, 0.4), (0.4, 0.1), (0.4, 0.0), (2.0, 0.2)):
        newton._judge_metric(rate)
        assert newton.trust == pytest.approx(trust)
    newton.trust = 0.9
    newton._judge_metric(3.0)
    assert newton.trust == 1.0


def test_three_small_gains_end_a_descent_that_looked_both_ways():
    newton = QuasiNewton(np.zeros(2), 1.0, 1.0, 1e-3)
    newton.active = None
    for value in (0.5, 0.4995, 0.499):
        assert not newton._accept(np.full(2, value), value) and not newton.central
    assert newton.n_small == 2 and newton.gains == pytest.approx([0.5, 5e-4, 5e-4])
    assert newton.step_length == pytest.approx(5e-4 * np.sqrt(2))
    assert newton._accept(np.full(2, 0.4985), 0.4985) is False and newton.central  # once more
    for value in (0.498, 0.4975):
        assert not newton._accept(np.full(2, value), value)
    assert newton._accept(np.full(2, 0.497), 0.497) is True
    newton.active, newton.n_small = np.array([True, False]), 2
    assert newton._accept(np.full(2, 0.4965), 0.4965) is False
    assert newton.active is None and newton.first and newton.n_small == 0


def test_lines_that_do_not_fall_are_tried_another_way():
    newton = QuasiNewton(np.zeros(2), 1.0, 1.0, 0.0)
    newton.active, newton.step_length = np.array([True, False]), 1.0
    assert newton._refuse() is False and newton.active is None and newton.n_failed == 0
    assert newton.step_length == pytest.approx(1e-3)
    newton.first = False
    assert newton._refuse() is False and newton.central and newton.first
    newton.steps = [np.ones(2)]
    assert newton._refuse() is False and newton.steps == []
    assert newton.step_length == pytest.approx(1e-6)
    assert newton._refuse() is True  # nothing is left to forget
    newton.steps, newton.n_failed = [np.ones(2)], 2
    assert newton._refuse() is True
    newton.step_length = 1e-12
    newton._shorten()
    assert newton.step_length == 1e-9


# ---- lines ---------------------------------------------------------------------------------------


def asked_on_line(arm, fun):
    """Answer a search along a line, which asks numbers, or several at a time."""
    places = []
    try:
        asked = next(arm)
        while True:
            places.append(asked)
            many = isinstance(asked, tuple)
            asked = arm.send([fun(t) for t in asked] if many else float(fun(asked)))
    except StopIteration as end:
        return places, end.value


def test_both_sides_or_two_places_on_the_side_with_room():
    assert sides(1.0, 0.5, -9.0, 9.0) == (1.5, 0.5)
    assert sides(1.0, 0.5, -9.0, 1.0) == (0.75, 0.5)
    assert sides(1.0, 0.5, 1.0, 9.0) == (1.5, 1.25)
    assert sides(1.0, 0.5, 0.8, 1.2) == (1.2, 0.8)
    assert wall(Box(np.zeros(2), np.array([-1.0, -2.0]), np.array([3.0, 4.0])), 1) == (-2.0, 4.0)


@pytest.mark.parametrize("low, high", [(-9.0, 9.0), (-9.0, 0.0), (0.0, 9.0)])
def test_a_parabola_is_told_from_either_side(low, high):
    """F = 2 (t - 0.3)^2 + 1 from 0: slope -1.2, bend 2; at a wall no farther than the wall."""

    def fun(t):
        return 2.0 * (t - 0.3) ** 2 + 1.0

    places, (t, value, told) = asked_on_line(
        try_parabola(0.0, fun(0.0), 0.5, lambda: (low, high)), fun
    )
    expected = min(0.3, high)
    assert places[1] == pytest.approx(expected) and told
    assert t == pytest.approx(expected) and value == pytest.approx(fun(expected))


def test_a_line_that_is_no_parabola_is_not_told():
    _, (_, value, told) = asked_on_line(try_parabola(0.0, 1.0, 0.5), lambda t: abs(t - 0.4) + 0.6)
    assert not told and value <= 0.7
    assert asked_on_line(try_parabola(0.0, 1.0, 0.5), lambda t: 1.0)[1] == (0.0, 1.0, True)
    places, found = asked_on_line(try_parabola(0.0, 0.0, 0.5), lambda t: -(t**2) - t)
    assert len(places) == 1 and found == (0.5, -0.75, False)  # bent the wrong way


def test_a_line_is_polished_by_a_thousandth_of_its_span_at_least():
    line_ = Line(0.0, 0.0, 1.0)
    line_.t, line_.f = [-1.0, 0.0, 3.0], [1.0, 0.0, 9.0]  # a parabola with its vertex at 0
    asked, _ = asked_on_line(polish(line_, 1.0), lambda t: t**2)
    assert asked[0] == pytest.approx(4e-3)  # into the wider half
    line_ = Line(0.0, 0.0, 1.0)
    line_.t, line_.f = [-3.0, 0.0, 1.0], [9.0, 0.0, 1.0]
    assert next(polish(line_, 1.0)) == pytest.approx(-4e-3)
    line_.t, line_.f = [-1e-11, 0.0, 1e-11], [1.0, 0.0, 1.0]
    assert asked_on_line(polish(line_, 1.0), lambda t: t**2)[0] == []
