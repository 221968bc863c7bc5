"""The ladder under noise, by hand from its sentences."""

import numpy as np
import pytest

from scgd.problem import Problem
from scgd.questions import Point
from scgd.searches import Archive, Ladder


def ladder(budget=1000, bounds=None, noise=None, p=2, archive=None):
    where = Problem.check(np.zeros(p), bounds, 1.0, noise)
    return Ladder(where, Point(where.x0), np.random.default_rng(0), budget, archive)


def answer(search, values):
    question = search.pose()
    search.take(question, np.broadcast_to(np.asarray(values, float), (len(question),)).copy())
    return question.points()


@pytest.mark.parametrize(
    "budget, noise, n_repeats, n_pairs, levels",
    [(8, None, 2, 1, 1), (39, None, 3, 1, 8), (40, None, 3, 2, 4), (600, None, 10, 2, None),
     (1999, None, 10, 2, None), (2000, None, 10, 3, None), (99, 1.0, 1, 2, 11), (250, 1.0, 2, 2, None)],
)  # fmt: skip
def test_how_a_ladder_spends_its_budget(budget, noise, n_repeats, n_pairs, levels):
    search = ladder(budget, noise=noise)
    assert search.n_repeats == search.cost == n_repeats and search.n_pairs == n_pairs
    if levels is not None:
        assert search.most_levels == levels  # half of a tiny budget in pairs, less one level


def test_pairs_lie_at_the_radius_and_are_kept():
    kept = Archive.empty(2, 50)
    search = ladder(100, archive=kept)
    answer(search, [1.0, 2.0, 3.0])
    assert search.base == 2.0 and len(kept) == 3 and search.journal == [(3, 2.0)]
    radius = search.radius
    points = answer(search, [1.5, 2.5, 1.5, 2.5])
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), radius * np.sqrt(2))
    np.testing.assert_allclose(points[0], -points[1])
    assert len(kept) == 7 and search.far == pytest.approx(np.abs(points).max())
    far = search.far
    search.radius = radius / 100
    answer(search, [1.5, 2.5, 1.5, 2.5])
    assert search.far == far
    assert len(ladder().archive) == 0 and ladder().archive.values.size == 0


def judged(odd, even, fell=False, way=0, **more):
    """Sigma is 1 from three repeats; two pairs: errors sqrt(.5 / 2) + 1 / sqrt(3)."""
    search = ladder(**more)
    search.repeats, search.way = [-1.0, 0.0, 1.0], way
    search._judge(odd, even, fell, cramped=False)
    return search


ERROR = np.sqrt(0.25) + 1 / np.sqrt(3)


def test_a_bent_level_goes_down_and_a_straight_one_up():
    start = ladder().radius
    assert judged(0.0, 3 * ERROR + 0.01).radius == start / 2
    assert judged(0.0, 3 * ERROR - 0.01).radius == start * 2
    assert judged(0.0, 3 * ERROR).way == 1  # not more than the noise
    assert judged(5.0, 4.9).way == 1 and judged(4.9, 5.0).way == -1
    assert judged(5.0, 5.0).way == 1
    assert judged(0.0, 9.0).seen and judged(2.2, 0.0).seen and not judged(2.1, 0.0).seen
    assert judged(2.2, 0.0).signal == pytest.approx(2.2)
    assert judged(0.0, 9.0, way=1).finished and judged(0.0, 0.0, way=-1).finished
    assert not judged(0.0, 9.0, way=-1).finished and not judged(0.0, 0.0, way=1).finished


@pytest.mark.parametrize(
    "bends, rough",
    [([10.0, 8.0, 6.0], True), ([10.0, 8.0, 5.5], False), ([10.0, 6.9, 6.0], False),
     ([10.0, 7.1, 5.0], True), ([np.inf, 8.0, 6.0], False), ([8.0, 6.0], False)],
)  # fmt: skip
def test_f_is_rough_where_it_gets_no_smoother_nearer_by(bends, rough):
    search = ladder()
    for even in bends:
        search._go_down(even)
    assert search.rough is rough
    if rough:
        assert search.finished


def test_one_outlier_does_not_make_noise():
    search = ladder()
    search.repeats = [0.0, 1.0, 2.0, 100.0]
    plain = np.std([0.0, 1.0, 2.0, 100.0], ddof=1)
    assert search._plain_deviation() == pytest.approx(plain)
    assert search.deviation == pytest.approx(3 * 1.4826)  # the median of 1.5, .5, .5, 98.5 is 1
    search.repeats = [5.0, 5.0]
    assert search.deviation == pytest.approx(5e-15)
