"""Lines, falls, populations and the end of restarts at their borders."""

import numpy as np
import pytest

from by_hand import replies
from scgd.searches.arms import lines
from scgd.searches.arms.box import Box
from scgd.searches.arms.ending import Ending
from scgd.searches.arms.falling import Fall, falling_length
from scgd.searches.arms.lines import Line, polish, search_line, sweep_lines, widen
from scgd.searches.arms.population import Population

EPS = 2.0**-52
# ---- when restarts end ---------------------------------------------------------------------------


def test_what_a_gain_is_worth_where_nothing_or_everything_was_gained():
    assert Ending(0.5, 3.0).worth(3.0) == 0.0 and Ending(0.5, np.inf).worth(3.0) == 0.0
    assert Ending(0.5, 3.0).worth(-np.inf) == 0.0 and Ending(0.5, 3.0).worth(2.0) == 0.5
    assert Ending(0.0, 3.0).over is False


@pytest.mark.parametrize(
    "tol, value, agrees",
    [(0.125, 3.5, True), (0.125, 3.5 + 4 * EPS, False), (1e-20, 1 + 0.9e-11, True),
     (1e-20, 1 + 1.5e-11, False), (0.125, 0.75, True), (0.125, 1.0, True)],
)  # fmt: skip
def test_a_restart_comes_back_within_ten_worths_or_rounding(tol, value, agrees):
    """From 3 to 1, at an eighth: a worth of 1 / 4; where tol is tiny, 1e-11 of the value."""
    ending = Ending(tol, first=3.0)
    ending.note("descent", 1.0, value)
    assert ending.n_agreed == agrees and ending.failed["descent"] == (not agrees)


def test_coming_back_to_the_value_at_the_start_says_nothing():
    ending = Ending(0.125, first=1.0)
    ending.note("descent", 1.0, 1.0)
    assert ending.n_agreed == 0 and ending.failed == {"descent": 1, "population": 0}


# ---- how far f falls -----------------------------------------------------------------------------


def falling(upper=np.inf):
    box = Box(np.zeros(1), np.array([-np.inf]), np.array([upper]), np.inf)
    return Fall(np.zeros(1), 1.0, np.random.default_rng(0), box)


@pytest.mark.parametrize(
    "value, fallen", [(1 - 1e-12, 0.0), (1 - 1.5e-12, 2.0), (1.0, 0.0), (0.5, 2.0)]
)
def test_a_fall_is_more_than_rounding(value, fallen):
    fall = falling()
    points, found = replies(fall.falls(2.0, np.ones(1)), lambda x: value)
    assert found == fallen and len(points) == (1 if fallen else 2)
    assert fall.value == value and (fall.best is fall.x) is (value == 1.0)


def test_a_fall_goes_no_farther_than_a_wall():
    fall = falling(upper=0.75)
    _, found = replies(fall.falls(2.0, np.ones(1)), lambda x: 1.0 - float(x[0]))
    assert found == 0.75 and fall.best.tolist() == [0.75] and fall.value == 0.25


class Ways:
    """Draws the directions it is given."""

    def __init__(self, *ways):
        self.ways = iter(ways)

    def standard_normal(self, n):
        return np.full(n, next(self.ways))


def test_other_directions_are_looked_at_up_to_ten_thousand_times_the_fall():
    """A wall at 10 / 11000 ends every fall: ten units away is just looked at."""
    wall = 10 / 1.1e4
    assert 1.1e4 * wall == 10.0
    box = Box(np.zeros(1), np.array([-np.inf]), np.array([wall]), np.inf)
    arm = falling_length(np.zeros(1), 1.0, 200, Ways(1.0, -1.0, 1.0), box)
    points, (length, best, _) = replies(arm, lambda x: 1.0 - float(x[0]))
    below = [-float(point[0]) for point in points if point[0] < 0]
    np.testing.assert_allclose(below, 10.0 ** np.arange(-2, 2))
    assert best.tolist() == [wall] and length == pytest.approx(0.35 * wall)


def test_falls_shorter_than_a_unit_tell_the_length():
    """From a tenth by factors of 2.2: .484 still falls, 1.06 does not."""
    arm = falling_length(np.zeros(1), 1.0, 200, Ways(1.0, -1.0, 1.0))
    _, (length, _, _) = replies(arm, lambda x: 0.5 if 0 < x[0] < 0.5 else 2.0)
    assert length == pytest.approx(0.35 * 0.1 * 2.2**2)


@pytest.mark.parametrize("p, length", [(16, 0.8), (5, 0.35 * np.sqrt(5))])
def test_the_length_is_at_most_two_fifths_of_the_width_of_the_box(p, length):
    """A fall up to the corner, the root of p away, tells .35 of that."""
    box = Box(np.zeros(p), np.full(p, -1.0), np.full(p, 1.0), np.inf)
    arm = falling_length(np.zeros(p), 1.0, 100, Ways(1.0, 1.0, 1.0), box)
    _, (found, _, _) = replies(arm, lambda x: 1.0 - float(x.sum()))
    assert found == pytest.approx(length)


# ---- a population --------------------------------------------------------------------------------


def test_generations_are_counted_and_flat_ones_too():
    """Of six, the best and the fifth: one best alone is not flat."""
    state = Population(np.zeros(2), 1.0, np.random.default_rng(0))
    for n, values in enumerate(([0.0, 1.0, 1.0, 1.0, 1.0, 1.0], [1.0] * 6), 1):
        state.learn(*state.sample(), np.array(values))
        assert state.n_generations == n and state.n_evals == 6 * n and state.n_flat == n - 1


@pytest.mark.parametrize(
    "sigma, deviations, over",
    [(1e-11, (1, 1), False), (0.9e-11, (1, 1), True), (1e6, (1, 1), False), (1.1e6, (1, 1), True),
     (1e-12, (1, 100), False), (1e5, (1, 100), True)],
)  # fmt: skip
def test_the_widest_axis_of_a_population_tells_whether_it_is_over(sigma, deviations, over):
    state = Population(np.zeros(2), 1.0, np.random.default_rng(0))
    state.sigma, state.deviations = sigma, np.array(deviations, float)
    state.bests = state.medians = [3.0]
    assert state.over(np.arange(6.0), 1e-11) is over


# ---- lines ---------------------------------------------------------------------------------------


def placed(t, f, width=1.0):
    line = Line(0.0, 0.0, width)
    line.t, line.f = list(t), list(f)
    return line


def asked_on(arm, fun):
    """Answer a search along a line; return where it asked and what it returns."""
    places = []
    try:
        t = next(arm)
        while True:
            places.append(t)
            t = arm.send(float(fun(t)))
    except StopIteration as end:
        return places, end.value


def between(low, high):
    return lambda: (low, high)


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_a_line_widens_by_its_span_where_f_falls_to_an_edge(way):
    free, t = between(-np.inf, np.inf), [-1.0, 0.0, 1.0]
    places, _ = asked_on(widen(placed(t, [way, 0.0, -way]), 99, free), lambda t: -way * t)
    assert places == [way * (2.0**k - 1) for k in range(2, 10)]  # eight times
    places, _ = asked_on(widen(placed(t, [way, 0.0, -way]), 5, free), lambda t: -way * t)
    assert len(places) == 3  # until there are more than five
    walls = between(-5.0, 5.0)
    places, _ = asked_on(widen(placed(t, [way, 0.0, -way]), 99, walls), lambda t: -way * t)
    assert places == [3.0 * way, 5.0 * way]
    level = placed(t, [0.0, 0.0, 5.0][:: int(way)])
    assert asked_on(widen(level, 99, free), lambda t: 0.0)[0] == []
    inside = placed([-1.0, 0.0, 1.0, 2.0], [3.0, 1.0, 2.0, 4.0][:: int(way)])
    assert asked_on(widen(inside, 99, free), lambda t: 0.0)[0] == []


def test_a_line_from_a_wall_has_one_edge_and_one_without_room_none():
    places, found = asked_on(
        search_line(0.0, 1.0, 4.0, 20, between(-9.0, 0.0)), lambda t: (t + 1) ** 2
    )
    assert places[0] == -4.0 and max(places) < 0 and found[0] == pytest.approx(-1.0, abs=1e-5)
    places, found = asked_on(search_line(0.0, 1.0, 4.0, 20, between(0.0, 0.0)), lambda t: 0.0)
    assert places == [] and found == (0.0, 1.0)


def flattest(t, f):
    """Return the middle in which a parabola down to the lowest value is flattest."""
    f = np.array(f)
    f = np.where(np.isfinite(f), f, f[np.isfinite(f)].max())
    roots = np.sqrt(f - f.min() + 1e-9 * np.ptp(f))
    k = int(np.argmin((roots[1:] + roots[:-1]) / np.diff(t)))
    return (t[k] + t[k + 1]) / 2


@pytest.mark.parametrize("seed", range(6))
def test_the_easiest_interval_needs_the_least_curvature(seed):
    rng = np.random.default_rng(seed)
    t, f = np.sort(rng.normal(size=9)).tolist(), (5.0 + rng.exponential(size=9)).tolist()
    f[seed] = np.inf
    assert placed(t, f).easiest() == pytest.approx(flattest(t, f))


@pytest.mark.parametrize("seed", range(6))
def test_an_interval_that_became_two_leaves_the_others_as_they_were(seed):
    """Also where the new value is the lowest, the highest, lost, or outside."""
    rng = np.random.default_rng(seed)
    line = placed([0.0, 1.0, 4.0], [3.0, 1.0, 2.0])
    for n in range(12):
        place, value = rng.uniform(-3, 6), rng.choice([np.inf, rng.normal(2, 1)], p=[0.1, 0.9])
        assert line.easiest() == placed(line.t, line.f).easiest() == flattest(line.t, line.f)
        for _ in (adding := line.add(place if n % 3 == 0 else line.easiest())):
            with pytest.raises(StopIteration):
                adding.send(float(value))


def test_intervals_below_a_billionth_of_the_width_are_left():
    near = placed([0.0, 0.9e-6, 1.0], [0.0, 0.0, 1.0], 1e3)
    assert near.easiest() == pytest.approx(0.5, abs=1e-6)
    assert placed([0.0, 0.9e-6], [0.0, 1.0], 1e3).easiest() is None
    assert placed([0.0, 1.1e-6], [0.0, 1.0], 1e3).easiest() == 0.55e-6
    flat = placed([0.0, 1.0, 3.0, 3.5], [2.0, np.inf, 2.0, 2.0])
    assert flat.easiest() == 2.0  # level but for a wall: into the widest gap beside it
    assert placed([0.0, 1.0, 3.0], [2.0, 2.0, 2.0]).easiest() is None


@pytest.mark.parametrize(
    "sides, n", [((8, 8), 0), ((8, 12), 1), ((12, 8), 1), ((12, 4), 0), ((0, 0), 0)]
)
def test_a_line_is_polished_until_it_is_level_to_rounding(sides, n):
    """Sixteen spacings of one at a value of 4."""
    line = placed([-1.0, 0.0, 1.0], [4 + sides[0] * EPS, 4.0, 4 + sides[1] * EPS])
    arm = polish(line, 1.0)
    assert len(list(zip(range(1), arm, strict=False))) == n


def test_a_line_is_polished_fourteen_times_at_most():
    line = placed([-1.0, 0.0, 1.0], [1.3, 0.3, 0.7])
    places, _ = asked_on(polish(line, 1.0), lambda t: abs(t - 0.3))
    assert len(places) == 14


def test_polishing_goes_by_the_width_of_the_line():
    """Spans below 1e-10 widths are left; a step is 1e-11 widths at least, into the wider half."""
    assert asked_on(polish(placed([-1.0, 0.0, 1.0], [1.0, 0.0, 1.0]), 2.1e10), abs)[0] == []
    assert next(polish(placed([-1.0, 0.0, 1.0], [1.0, 0.0, 1.0]), 1.9e10)) == pytest.approx(-0.19)
    assert 1e-11 * 3.125e10 == 0.3125
    line = placed([-1.0, 0.0, 3.0], [(t + 0.3125) ** 2 for t in (-1.0, 0.0, 3.0)])
    assert next(polish(line, 3.125e10)) == -0.3125  # just as far as the least: where the vertex is


def test_a_vertex_that_rounds_to_a_neighbour_is_none():
    """Half way between numbers without one between them: a least step the other way instead."""
    t = 1 + EPS
    line = placed([t - 900 * EPS, t, t + EPS], [1.0, 0.0, 0.0])
    assert lines.vertex(*line.t, *line.f) == t + EPS
    assert next(polish(line, 1e-6)) == t - EPS


@pytest.mark.parametrize(
    "value, told",
    [(1.0, True), (1.000001, False), (-1.0000005, True), (-1.000002, False)],
)
def test_a_parabola_tells_its_vertex_to_a_millionth_of_what_was_seen(value, told):
    """Sides of 1e6 around zero: an error of 1 above, and of a little more below."""
    arm = lines.try_parabola(0.0, 0.0, 1.0)
    assert next(arm) == (1.0, -1.0) and arm.send([1e6, 1e6]) == 0.0
    with pytest.raises(StopIteration) as end:
        arm.send(value)
    assert end.value.value == (0.0, min(value, 0.0), told)


class Sweeps:
    """Searches along lines that return what they are told, and who notes what was asked."""

    def __init__(self, monkeypatch, results):
        self.asked, self.results = [], iter(results)
        monkeypatch.setattr(lines, "try_parabola", self.parabola)
        monkeypatch.setattr(lines, "search_line", self.line)

    def result(self, here, f):
        yield from ()
        move, gain, *told = next(self.results)
        return (here + move, f - gain, *told)

    def parabola(self, here, f, width, walls, grain):
        self.asked.append(("parabola", here, width))
        return self.result(here, f)

    def line(self, here, f, width, n, walls, grain):
        self.asked.append(("line", here, width, n))
        return self.result(here, f)

    def run(self, n, s=2.0, p=1, **words):
        arm = sweep_lines(np.ones(p), 9.0, s, np.random.default_rng(0), n, np.zeros(p), **words)
        assert replies(arm, lambda x: 0.0) == ([], None)
        return self.asked


def test_later_sweeps_are_narrower_and_shorter(monkeypatch):
    gains = [(1.0, 1.0, False), *[(1.0, 1.0)] * 4, (0.0, 0.0)]
    asked = Sweeps(monkeypatch, gains).run(40)
    assert asked == [("parabola", 1.0, 8.0), ("line", 2.0, 8.0, 40), ("line", 3.0, 4.0, 20),
                     ("line", 4.0, 2.0, 10), ("line", 5.0, 1.0, 8), ("line", 6.0, 0.5, 8)]  # fmt: skip


def test_where_f_still_falls_at_the_end_the_next_parabola_is_wider(monkeypatch):
    moves = [(8.0, 1.0, False), (31.9, 1.0, False), *[(0.0, 0.0, True)] * 9]
    radii = [width for _, _, width in Sweeps(monkeypatch, moves).run(11)]
    np.testing.assert_allclose(radii[:3], [8.0, 32.0, 0.7 * 31.9])


@pytest.mark.parametrize(
    "n, said, asked, n_lines",
    [(40, [False], [3], 1), (40, [True, False], [3, 1], 2), (11, [True, False], [1, 1], 2),
     (40, [True, True, True, False], [3, 1, 3, 1], 3)],
)  # fmt: skip
def test_sweeps_end_where_f_is_a_sum_no_longer(monkeypatch, n, said, asked, n_lines):
    """Asked thrice after a sweep, once after a long line; once after sweeps of parabolas alone."""
    rest, times = iter(said), []

    def goes_on(x, f, n_times):
        times.append(n_times)
        return next(rest)
        yield

    gains = [(1.0, 1.0, False), *[(1.0, 1.0, False) if n < 12 else (1.0, 1.0)] * 9]
    assert len(Sweeps(monkeypatch, gains).run(n, goes_on=goes_on)) == n_lines
    assert times == asked


@pytest.mark.parametrize("most", [1, 2, 4])
def test_there_are_so_many_sweeps_at_most(monkeypatch, most):
    gains = [(1.0, 1.0, False), *[(1.0, 1.0)] * 9]
    assert len(Sweeps(monkeypatch, gains).run(40, most=most)) == most


def test_sweeps_end_where_parabolas_told_that_there_is_nothing_to_gain(monkeypatch):
    assert len(Sweeps(monkeypatch, [(0.0, 0.0, True)]).run(40)) == 1
    asked = Sweeps(monkeypatch, [(0.0, 0.0, False), (0.0, 0.0)]).run(40)
    assert [kind for kind, *_ in asked] == ["parabola", "line"]
    told = [(0.0, 0.0, True), (0.0, 0.0, False), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)]
    asked = Sweeps(monkeypatch, told).run(40, p=2)  # the second sweep leaves one out: a third
    assert [kind for kind, *_ in asked] == ["parabola"] * 2 + ["line"] * 3
    fell = [(1.0, 1.0, True), (0.0, 0.0)]
    assert len(Sweeps(monkeypatch, fell).run(40)) == 2


def test_few_evaluations_go_into_parabolas_that_shrink_to_where_they_led(monkeypatch):
    """Three tenths of the first move, seven of later ones, a tenth to four times the radius."""
    moves = [(10.0, 1.0, True), (1.0, 1.0, True), (0.0, 0.0, True), (1e3, 1.0, True)]
    last = [(0.0, 0.0, True)] * 7
    asked = Sweeps(monkeypatch, [*moves, *last]).run(11)
    radii = [width for _, _, width in asked]
    np.testing.assert_allclose(radii[:5], [8.0, 3.0, 0.7, 0.07, 0.28])
    np.testing.assert_allclose(radii[5:], 0.28 * 0.1 ** np.arange(1, 7))
    assert {kind for kind, *_ in asked} == {"parabola"}  # until they are below 2e-7
    assert Sweeps(monkeypatch, [(1.0, 1.0, False), (0.0, 0.0)]).run(12)[1][0] == "line"
