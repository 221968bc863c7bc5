"""A walk through noise and the verdict on it, number by number."""

import numpy as np
import pytest

from by_hand import answer
from scgd.problem import Problem
from scgd.questions import Point
from scgd.searches import Archive, Footing, Judge, Walk
from scgd.searches import walk as module
from scgd.searches.judge import Verdict
from scgd.searches.regression import Quadratic
from scgd.searches.walk import outstanding

# ---- verdicts ------------------------------------------------------------------------------------


def judged(pairs, n=None):
    search = Judge(Point(np.array([1.0, 2.0])), np.array([3.0, 4.0]), n or len(pairs))
    for pair in pairs:
        answer(search, pair)
    return search


def test_worse_and_better_are_beyond_so_many_errors():
    assert Verdict(2.0, 1.0).worse(1.9) and not Verdict(2.0, 1.0).worse(2.0)
    assert Verdict(-2.0, 1.0).better(1.9) and not Verdict(-2.0, 1.0).better(2.0)
    assert Verdict(2.0, 0.5).worse(3.0) and Verdict(-2.0, 0.5).better(3.0)
    assert not Verdict(-2.0, 0.5).worse(3.0) and not Verdict(2.0, 0.5).better(3.0)
    assert not Verdict(0.0, 0.0).worse(1.0) and not Verdict(0.0, 0.0).better(1.0)


@pytest.mark.parametrize(
    "mean, against, outdone",
    [(2.1, 0.0, True), (2.0, 0.0, False), (0.0, 2.1, True), (0.0, 2.0, False), (-1.0, 2.1, True),
     (-1.1, 2.1, False), (-5.0, 9.0, False), (2.1, -9.0, True), (0.0, -9.0, False)],
)  # fmt: skip
def test_outdone_is_worse_by_the_mean_or_by_the_pairs_where_the_mean_is_silent(
    mean, against, outdone
):
    assert Verdict(mean, 1.0, against=against).outdone(2.0) is outdone
    assert Verdict(0.0, 1.0).against == 0.0


@pytest.mark.parametrize(
    "median, lower, worse",
    [(0.5, 0.4, True), (0.0, 0.4, False), (-0.5, 0.4, False), (0.5, 0.5, False), (0.5, 0.9, False),
     (0.5, 0.0, True)],
)  # fmt: skip
def test_worse_by_rank_needs_both(median, lower, worse):
    assert Verdict(0.0, 1.0, median, lower).worse_by_rank is worse
    assert (Verdict(0.0, 1.0).median, Verdict(0.0, 1.0).lower) == (0.0, 0.5)


def test_both_points_are_asked_so_many_times():
    search = judged([], 3)
    assert search.cost == 2 and not search.finished and search.n_lost == 0
    question = search.pose()
    np.testing.assert_array_equal(question.points(), [[1.0, 2.0], [3.0, 4.0]])
    assert question.far
    others = [search.pose(), search.pose()]
    assert search.pose() is None
    search.take(question, np.array([1.0, 2.0]))
    search.take(others[0], np.array([np.nan, 2.0]))
    assert not search.finished and search.n_lost == 1
    search.take(others[1], np.array([2.0, np.nan]))
    assert search.finished and search.n_lost == 2 and search.here == [1.0] and search.there == [2.0]
    np.testing.assert_array_equal(search.standing.values, [1.0])
    np.testing.assert_array_equal(search.standing.x, [1.0, 2.0])


def test_a_verdict_is_the_mean_difference_and_its_standard_error():
    """Differences -1, 3, 4, 0: mean 1.5, variance 17 / 3; medians 3 and 1.5; one is lower."""
    found = judged([[1.0, 2.0], [4.0, 1.0], [5.0, 1.0], [2.0, 2.0]]).finding()
    assert found.mean == 1.5 and found.error == pytest.approx(np.sqrt(17 / 3 / 4))
    assert found.median == 3.0 - 1.5 and found.lower == 0.25
    assert found.against == pytest.approx((2 - 1) / np.sqrt(3))  # a tie is no sign
    one = judged([[5.0, 2.0]]).finding()
    assert (one.mean, one.error, one.median, one.lower) == (3.0, 0.0, 3.0, 0.0)
    assert one.against == 1.0 and judged([[2.0, 2.0]]).finding().against == 0.0


def test_as_many_lost_pairs_as_seen_are_the_worst_verdict():
    worst = Verdict(np.inf, 0.0, np.inf, 0.0, np.inf)
    lost = [np.nan, 1.0]
    assert judged([lost]).finding() == worst == judged([[1.0, 2.0], lost]).finding()
    assert judged([lost, lost, [1.0, 2.0]]).finding() == worst
    some = judged([[1.0, 2.0], lost, [1.0, 2.0]]).finding()
    assert (some.mean, some.error, some.lower) == (-1.0, 0.0, 1.0)
    assert worst.worse(9.0) and worst.worse_by_rank


# ---- walks ---------------------------------------------------------------------------------------


def walking(p=2, scale=2.0, moving=None, archive=None, bounds=None, **footing):
    where = Problem.check(np.zeros(p), bounds, scale)
    words = {"radius": 0.5, "deviation": 1.0, "base": 3.0, "signal": 5.0, "seen": True,
             "rough": False, "farthest": 4.0, **footing}  # fmt: skip
    point = Point(where.x0)
    return Walk(where, point, np.random.default_rng(0), Footing(**words), archive, moving)


def test_a_walk_begins_as_its_footing_says():
    walk = walking()
    assert (walk.radius, walk.reach, walk.deviation) == (0.5, 0.5, 1.0)
    assert (walk.signal, walk.trust, walk.best_value, walk.best_values) == (5.0, 1.0, 3.0, [3.0])
    assert walk.until == 0 and walk.finished and walk.pose() is None and walk.cost == 2
    assert np.isnan(walk.sizes).all() and walk.effects.shape == (2, 2)
    assert len(walk.archive) == 0 and walk.moving.tolist() == [1.0, 1.0]
    assert walk.relevance is None and walk.weights is None
    assert walking(rough=True).best_value == np.inf and walking(rough=True).best_values == [3.0]
    assert walking(base=np.inf).best_values == []


def test_a_walk_takes_its_pairs_and_no_more():
    walk = walking().begin(3, 0.0, 0.1, 0.0)
    assert walk.until == 6 and not walk.finished
    questions = [walk.pose() for _ in range(3)]
    assert walk.pose() is None
    for n, question in enumerate(questions):
        assert not walk.finished and question.far
        np.testing.assert_allclose(np.abs(question.points()), 1.0)  # half a unit of 2
        np.testing.assert_array_equal(question.points()[0], -question.points()[1])
        walk.take(question, np.array([1.0, 1.0]))
        assert walk.n_evals == 2 * n + 2 and walk.share == pytest.approx(0.1 * (n + 1))
    assert walk.finished
    walk.begin(1, 0.5, 0.1, 0.0)
    assert walk.until == 8 and walk.levels == [] and walk.share == 0.5


def test_what_stays_is_never_moved():
    walk = walking(p=3, moving=np.array([1.0, 0.0, 1.0]), bounds=[(0, 9)] * 3, archive=None)
    walk.begin(1, 0.0, 0.1, 0.0)
    points = walk.pose().points()
    assert points[:, 1].tolist() == [0.0, 0.0]  # on its wall, where the others are centred
    np.testing.assert_allclose(points[:, 0].mean(), 1.0)
    assert walk.places.tolist() == [0, 2]


def adam(gradients, shares, falls, rate, reach, unit, start):
    """Return the point after steps of Adam with falling lengths, from the formulas."""
    x, mean, square = start.copy(), 0.0, 0.0
    for n, (gradient, share) in enumerate(zip(gradients, shares, strict=True), 1):
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.99 * square + 0.01 * gradient**2
        left = max(0.0, 1 - share) * np.exp(-falls * share)
        x -= rate * reach * left * unit * (mean / (1 - 0.9**n)) / np.sqrt(square / (1 - 0.99**n))
    return x


def test_pairs_are_steps_of_adam_that_fall():
    """Slopes odd / radius along the signs; the first eight are not clipped."""
    walk = walking()
    walk.begin(8, 0.2, 0.1, 2.0)
    seen, gradients, shares = [], [], []
    for odd in (1.0, -2.0, 3.0, 0.5, -0.25, 4.0, 1.0, 2.0):
        points = answer(walk, [5.0 + odd, 5.0 - odd])
        seen.append(odd)
        signs = np.sign(points[0] - points[1])
        gradients.append(odd / 0.5 * signs)
        shares.append(0.2 + 0.1 * len(seen))
        expected = adam(gradients, shares, 2.0, 0.3, 0.5, 2.0, np.zeros(2))
        np.testing.assert_allclose(walk.point.x, expected, rtol=1e-9)
    assert walk.odds == seen and walk.levels == [5.0] * 8
    assert walk.slopes == [abs(odd) / 0.5 for odd in seen]
    before = walk.point.x.copy()
    walk.begin(1, 0.95, 0.1, 0.0)
    answer(walk, [9.0, 1.0])  # nothing is left of the walk
    np.testing.assert_array_equal(walk.point.x, before)


def test_a_lost_pair_is_no_step_but_takes_its_time():
    for values in ([np.nan, 1.0], [1.0, np.inf], [np.nan, np.nan]):
        walk = walking()
        walk.begin(2, 0.0, 0.1, 0.0)
        answer(walk, values)
        assert walk.share == 0.1 and walk.odds == walk.levels == [] and walk.n_mean == 0
        np.testing.assert_array_equal(walk.point.x, 0.0)


def test_the_radius_of_a_pair_is_that_of_its_question():
    walk = walking()
    walk.begin(2, 0.0, 0.0, 0.0)
    question = walk.pose()
    walk.radius = 5.0
    walk.take(question, np.array([2.0, 1.0]))
    assert walk.slopes == [1.0]  # .5 over .5
    np.testing.assert_allclose(np.abs(walk.mean), 0.1 * 1.0)


def test_slopes_are_clipped_at_three_medians_of_the_last_fifty():
    walk = walking()
    for k in range(7):
        assert walk._clipped(1.0 + k) == 1.0 + k
    assert walk._clipped(-100.0) == -100.0 and len(walk.slopes) == 8
    assert walk._clipped(100.0) == 3 * 5.0  # 1 to 7 and 100 twice
    assert walk._clipped(-100.0) == -3 * 5.5 and walk._clipped(2.0) == 2.0
    for k in range(60):
        walk._clipped(float(k))
    assert walk.slopes == [float(k) for k in range(10, 60)]


def test_thirty_pairs_are_remembered_and_ten_are_a_level():
    walk = walking()
    walk.begin(40, 0.0, 0.0, 0.0)
    for k in range(35):
        assert np.isnan(walk.level) == (k < 10)
        answer(walk, [float(k), float(k)])
    assert walk.odds == [0.0] * 30 and walk.levels == [float(k) for k in range(5, 35)]
    assert walk.level == 29.5
    np.testing.assert_array_equal(walk.reached.values, np.arange(25.0, 35.0))
    np.testing.assert_array_equal(walk.reached.x, walk.point.x)
    walk.levels = [1.0] * 9
    assert np.isnan(walk.level)


@pytest.mark.parametrize(
    "signal, per_pair, rate",
    [(5.0, 1e-4, 0.3), (3.0, 1e-4, 0.3), (1.5, 1e-4, 0.15), (0.0, 1e-4, 0.02), (0.1, 1e-4, 0.02),
     (0.0, 0.04, 0.3), (0.0, 0.01, 0.2)],
)  # fmt: skip
def test_the_rate_is_patient_where_little_shows(signal, per_pair, rate):
    """A tenth per deviation up to .3, but 2 over the root of the number of pairs at least."""
    walk = walking(signal=signal)
    walk.begin(1, 0.0, per_pair, 0.0)
    assert walk.rate == pytest.approx(rate)


def test_a_walk_remembers_values_that_were_not_lost():
    walk = walking(archive=Archive.empty(2, 9))
    walk.note(np.array([[2.0, -12.0], [1.0, 1.0]]), np.array([5.0, np.nan]))
    assert len(walk.archive) == 1 and walk.archive.values[0] == 5.0
    walk.note(np.ones((1, 2)), np.ones(1))
    assert len(walk.archive) == 2


# ---- proposals -----------------------------------------------------------------------------------


def filled(n, p=4, moving=None):
    width = p if moving is None else int(np.count_nonzero(moving))
    archive = Archive.empty(width, 400)
    rng = np.random.default_rng(1)
    archive.add(rng.uniform(-1, 1, (n, width)), rng.standard_normal(n))
    return walking(p=p, archive=archive, moving=moving)


def test_a_quadratic_needs_half_as_many_points_as_coordinates_and_five():
    assert not filled(7).fits and filled(8).fits
    assert filled(7).propose() is None
    some = np.array([1.0, 0.0, 1.0, 0.0])
    assert not filled(6, moving=some).fits and filled(7, moving=some).fits
    wide = np.zeros(300)
    wide[:201] = 1.0
    assert not filled(300, p=300, moving=wide).fits
    wide[200] = 0.0
    assert filled(300, p=300, moving=wide).fits


def proposing(monkeypatch, u, moving=None, trust=1.0):
    walk, asked = filled(20, moving=moving), []

    class Fit(Quadratic):
        def minimiser(self, radius):
            asked.append(radius)
            return np.asarray(u, float)

    def fit(points, values, noise, sizes):
        asked.append((points, values, noise, sizes))
        n = points.shape[1]
        return Fit(
            0.0, np.zeros(n), np.zeros((n, n)), np.arange(5.0), np.arange(float(n)), np.ones(n)
        )

    monkeypatch.setattr(module, "fit", fit)
    walk.trust, walk.point.x[:] = trust, 0.1
    walk.archive.points[:] *= 0.5
    return walk, asked, walk.propose()


def test_a_proposal_is_where_a_quadratic_around_the_point_is_lowest(monkeypatch):
    """p = 4, radius .5 in units of 2, so one length is 1; the region reaches 2 lengths times trust."""
    walk, asked, (x, inner) = proposing(monkeypatch, [0.5, -0.5, 1.0, 0.0])
    (points, values, noise, sizes), radius = asked
    assert radius == 2.0 and noise == 1.0 and sizes is None and inner
    np.testing.assert_allclose(x, 0.1 + np.array([0.5, -0.5, 1.0, 0.0]))
    assert len(values) == len(points) == 20
    np.testing.assert_allclose(
        np.sort(points, axis=0), np.sort(walk.archive.points[:20] - 0.1, axis=0)
    )
    assert walk.sizes.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    np.testing.assert_array_equal(walk.effects, [[0.0, 1.0, 2.0, 3.0], [1.0] * 4])
    walk.propose()
    assert asked[2][3].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]  # from where the last one ended


@pytest.mark.parametrize("length, trust, inner", [(1.79, 1.0, True), (1.81, 1.0, False),
                                                  (0.89, 0.5, True), (0.91, 0.5, False)])  # fmt: skip
def test_a_proposal_is_inside_below_nine_tenths_of_the_region(monkeypatch, length, trust, inner):
    _, asked, (_, found) = proposing(monkeypatch, [length, 0.0, 0.0, 0.0], trust=trust)
    assert found is inner and asked[1] == 2.0 * trust


def test_a_proposal_moves_what_may_move(monkeypatch):
    moving = np.array([0.0, 1.0, 0.0, 1.0])
    walk, asked, (x, _) = proposing(monkeypatch, [0.5, -0.25], moving=moving)
    np.testing.assert_allclose(x, [0.1, 0.6, 0.1, -0.15])
    assert asked[1] == pytest.approx(np.sqrt(2.0))
    np.testing.assert_array_equal(walk.effects, [[np.nan, 0.0, np.nan, 1.0], [np.nan, 1.0] * 2])


def test_effects_are_kept_that_told_inputs_apart_more_clearly():
    walk = walking(p=3)
    places = np.arange(3)
    clear = np.array([[1.0, 1.0, 9.0], [1.0, 1.0, 1.0]])
    walk.learn(places, clear)
    walk.learn(places, np.array([[1.0, 1.0, 8.9], [1.0, 1.0, 1.0]]))
    np.testing.assert_array_equal(walk.effects, clear)
    level = np.array([[2.0, 2.0, 10.0], [1.0, 1.0, 1.0]])
    walk.learn(places, level)  # as clear: the later one
    np.testing.assert_array_equal(walk.effects, level)


@pytest.mark.parametrize("largest, known", [(4.9, False), (5.0, False), (5.1, True)])
def test_relevance_is_told_by_what_stands_out_four_errors(largest, known):
    walk = walking(p=3)
    walk.effects = np.array([[1.0, 1.0, largest], [0.5, 0.5, 1.0]])
    if not known:
        assert walk.relevance is None and walk.weights is None
        return
    shares, errors = walk.relevance
    np.testing.assert_allclose(shares, [0.0, 0.0, 1.0])  # 2 errors may be noise
    np.testing.assert_allclose(errors, np.array([0.5, 0.5, 1.0]) / largest)
    np.testing.assert_array_equal(walk.weights, shares)
    walk.effects[1, 0] = 0.3  # of 3.3 errors, more than sqrt(2 log 30)
    total = 1.0 + largest
    np.testing.assert_allclose(walk.relevance[0], [1 / total, 0.0, largest / total])
    walk.effects[0, 2] = np.inf
    assert walk.relevance is None


def test_by_how_many_errors_the_clearest_effect_stands_out():
    assert outstanding(np.array([[1.0, 2.0, 4.0], [1.0, 1.0, 0.5]])) == 4.0
    assert outstanding(np.array([[1.0, 2.0, 4.0], [1.0, 1.0, 0.0]])) == np.inf
    assert outstanding(np.array([[2.0, 2.0, 2.0], [0.0, 0.0, 0.0]])) == 0.0
    assert outstanding(np.array([[1.0, np.nan, 4.0], [1.0, 1.0, 1.0]])) == 1.5
    assert outstanding(np.full((2, 3), np.nan)) == 0.0
    assert outstanding(np.array([[-3.0, -3.0, -5.0], [1.0, 0.0, 0.0]])) == 0.0


# ---- what a check does ---------------------------------------------------------------------------


def test_going_elsewhere_forgets_momentum_and_going_back_the_sizes_too():
    walk = walking()
    walk.begin(3, 0.0, 0.0, 0.0)
    for _ in range(3):
        answer(walk, [2.0, 1.0])
    square = walk.square.copy()
    walk.go(np.array([7.0, 8.0]))
    assert walk.point.x.tolist() == [7.0, 8.0] and walk.mean.tolist() == [0.0, 0.0]
    assert (walk.n_mean, walk.n_square) == (0, 3)
    np.testing.assert_array_equal(walk.square, square)
    walk.keep(1.5, np.array([1.0, 2.0]))
    assert walk.best.tolist() == [7.0, 8.0] and walk.best_value == 1.5
    assert walk.best_values == [1.0, 2.0] == walk.standing.values.tolist()
    walk.point.put(np.zeros(2))
    assert walk.standing.x.tolist() == [7.0, 8.0]
    walk.go_back()
    assert walk.point.x.tolist() == [7.0, 8.0] and walk.square.tolist() == [0.0, 0.0]
    assert (walk.n_mean, walk.n_square, walk.reach, walk.radius) == (0, 0, 0.25, 0.25)
    walk.radius = 0.1
    walk.go_back()
    assert (walk.reach, walk.radius) == (0.125, 0.1)
