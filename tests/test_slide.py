"""Lines or BFGS down to the noise: where it stands, when it is misled, and what a run makes of it."""

from dataclasses import replace

import numpy as np
import pytest

import scgd
from scgd.problem import Problem
from scgd.questions import Point
from scgd.searches import Footing, Slide
from scgd.searches import slide as module
from scgd.searches.arms.grain import Grain

FOOTING = Footing(
    radius=0.5, deviation=0.01, base=36.0, signal=200.0, seen=True, rough=False, farthest=1.0
)


def slide(p=4, budget=200, x0=3.0, footing=FOOTING, **words):
    problem = Problem.check(np.full(p, x0), **words)
    return Slide(problem, Point(problem.x0), np.random.SeedSequence(1), budget, footing)


def run(search, fun):
    """Answer until it ends; return how many evaluations that took."""
    count = 0
    while not search.finished:
        question = search.pose()
        points = [question.at(j) for j in range(len(question))]
        search.take(question, np.array([fun(x) for x in points]))
        count += len(points)
    return count


def test_lengths_and_grain_come_from_the_ladder():
    """A third of the pair's length, and what f changes over it."""
    newton = slide(x0=6.0, scale=2.0).newton
    assert newton.s == pytest.approx(0.35 * 0.5 * 2.0) and newton.f == 36.0
    assert newton.grain == Grain(0.01, pytest.approx(0.35 * 200.0 * 0.01))
    np.testing.assert_allclose(newton.x, 3.0)


def test_it_goes_down_to_the_noise_and_stands_where_bfgs_does():
    rng = np.random.default_rng(0)
    search = slide(budget=400, footing=replace(FOOTING, base=180.0))
    count = run(search, lambda x: float(x @ x + x.sum() ** 2) + 0.01 * rng.standard_normal())
    assert search.finding().smoothly and count < 200 and search.lines is None
    assert float(search.point.x @ search.point.x) < 0.1
    np.testing.assert_allclose(search.point.x, 3.0 * search.newton.x)  # in units of x0
    assert search.best == search.newton.f == search.standing.values[0]
    assert not search.standing.exact
    assert search.members == {"measuring": 3, "slide": count - 3}  # no sum, after one question


def test_lines_of_a_sum_are_searched_however_badly_scaled():
    """Parabolas: two sides and a vertex each; the second sweep finds nothing to search."""
    rng, bend = np.random.default_rng(0), np.logspace(0, 6, 4)
    base = float(bend.sum() * 9)
    search = slide(budget=400, footing=replace(FOOTING, base=base))
    count = run(search, lambda x: float(bend @ x**2) + 0.01 * rng.standard_normal())
    assert search.finding().smoothly and search.members == {"measuring": 9, "lines": count - 9}
    assert count <= 9 + 3 * 4
    assert float(bend @ search.point.x**2) < 0.01
    np.testing.assert_allclose(search.point.x, 3.0 * search.lines.x)  # in units of x0
    assert search.best == search.lines.best == search.standing.values[0] < 0.03


def test_lines_on_which_a_parabola_tells_nothing_are_searched_once():
    def ripples(x):
        return float(np.sum((x - 1) ** 2 + 3 * (1 - np.cos(5 * (x - 1)))))

    start = ripples(np.full(4, 3.0))
    search = slide(budget=2000, footing=replace(FOOTING, base=start, signal=1e4))
    count = run(search, ripples)
    assert ripples(search.point.x) < 0.05 and search.members["lines"] == count - 9
    assert count < 4 * (4 + 40 + 14 + 2)  # a parabola, a line, its polish


def test_lines_end_with_the_budget():
    search = slide(budget=14, footing=replace(FOOTING, base=90.0))
    assert run(search, lambda x: float(np.arange(1, 5) @ x**2)) == 14  # 9, a parabola, a pair


def test_what_tells_a_sum(monkeypatch):
    asked = []

    def is_additive(x, f, s, rng, box, grain, clear):
        asked.append((x.tolist(), f, s, grain, clear))
        return False
        yield

    monkeypatch.setattr(module, "is_additive", is_additive)
    search = slide(x0=6.0, scale=2.0)
    newton = search.newton
    assert asked == [([3.0] * 4, 36.0, newton.s, newton.grain, 0.01)]


@pytest.mark.parametrize("deviation, lines", [(0.1, True), (10.0, False)])
def test_a_sum_shows_up_to_noise_of_a_hundredth(deviation, lines):
    def fun(x):
        return 100.0 * float(x @ x)

    footing = replace(FOOTING, base=3600.0, deviation=deviation)
    search = slide(footing=footing)
    run(search, fun)
    assert (search.lines is not None) is lines


def test_ripples_mislead_it_and_it_goes_back():
    def rippled(x):
        return float(x @ x + 20 * np.sum(1 - np.cos(9 * x)))

    search = slide(budget=400)
    count = run(search, rippled)
    assert not search.finding().smoothly and search.misled
    np.testing.assert_array_equal(search.point.x, np.full(4, 3.0))
    assert count < 60


def test_three_steps_are_judged_by_their_median_and_by_where_they_lead():
    search = slide(scale=1.0)
    newton = search.newton
    newton.x = search.start + 1.0
    for agreement, misled in (
        ([0.1, 0.1], False), ([0.5, 0.34, 0.1], True), ([0.1, 0.36, 0.5], False),
        ([0.5, 0.5, 0.5, 0.1, 0.1], False),
    ):  # fmt: skip
        newton.agreement = agreement
        assert search.misled is misled
    newton.agreement = [0.5] * 3
    newton.x = search.start + np.array([0.49 * newton.s, 0, 0, 0])
    assert search.misled
    newton.x = search.start + np.array([0.51 * newton.s, 0, 0, 0])
    assert not search.misled
    scaled = slide(x0=6.0, scale=2.0)  # units of x
    scaled.newton.agreement, scaled.newton.x = [0.5] * 3, np.full(4, 3.0)
    assert scaled.misled


def test_it_ends_where_no_gradient_can_be_paid():
    rng = np.random.default_rng(0)
    bend = np.logspace(0, 3, 4)
    search = slide(budget=30)
    count = run(search, lambda x: float(bend @ x**2 + x.sum() ** 2) + 0.01 * rng.standard_normal())
    assert count <= 30 and search.left <= 4


def little_noise(relative, seed, p=8, max_evals=800):
    """Return the part of the start's gap that is left in a bent valley, and who ran."""
    rng = np.random.default_rng(seed)
    x0 = rng.uniform(-2.0, 2.0, p)

    def fun(x):
        return float(100 * np.sum((x[1:] - x[:-1] ** 2) ** 2) + np.sum((1 - x[:-1]) ** 2))

    size = relative * fun(x0)
    result = scgd.minimize(
        lambda x: fun(x) + size * rng.standard_normal(), x0, max_evals=max_evals, seed=seed
    )
    return fun(result.x) / fun(x0), dict(result.recipe.members)


def test_little_noise_is_slid_down_to():
    """The walk alone leaves .0006 to .002 of it."""
    gaps, members = zip(*(little_noise(1e-7, seed) for seed in range(5)), strict=True)
    assert np.median(gaps) < 2e-4
    assert all("slide" in each for each in members)


def test_much_noise_is_not_slid_down_to_nor_where_few_evaluations_are_left():
    assert "slide" not in little_noise(0.3, 0)[1]
    assert "slide" not in little_noise(1e-7, 0, max_evals=8 * 25)[1]


def test_noise_that_falls_with_f_is_slid_down_to_again():
    rng = np.random.default_rng(0)
    bend = np.logspace(0, 2, 6)

    def fun(x):
        return float(bend @ x**2) * (1 + 1e-4 * rng.standard_normal())

    result = scgd.minimize(fun, np.full(6, 2.0), max_evals=600, seed=0)
    assert float(bend @ result.x**2) < 1e-5 * float(bend.sum() * 4)


def test_a_badly_scaled_sum_with_useless_inputs_is_brought_down_to_the_noise():
    """Under noise of .1 BFGS alone leaves .6 in the median, and 1,900 once."""
    bend, gaps = np.logspace(0, 6, 6), []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x0, used = rng.standard_normal(20), rng.permutation(20)[:6]

        def fun(x, used=used):
            return float(bend @ x[used] ** 2)

        result = scgd.minimize(
            lambda x, fun=fun, rng=rng: fun(x) + 0.1 * rng.standard_normal(), x0,
            max_evals=700, seed=seed,
        )  # fmt: skip
        gaps.append(fun(result.x))
        assert dict(result.recipe.members)["lines"] > 20
    assert np.median(gaps) < 0.05
