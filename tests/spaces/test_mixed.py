"""The parts of searches over a grid: moves, model, books."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from scgd import Choice, Float, Int, Space
from scgd.searches.mixed.archive import Archive
from scgd.searches.mixed.gaussian import GaussianProcess, expected_improvement
from scgd.searches.mixed.mutation import mutated, stratified
from scgd.searches.mixed.niches import tamed
from skeletons import run_page

SPACE = Space(
    x=Float(0, 1), n=Int(1, 9), m=Int(1, 64, log=True), c=Choice("a", "b", "c"),
    d=Float(0, 1, when={"c": "b"}), e=Choice(1, 2, when={"c": ("b", "c")}), one=Choice(1),
)  # fmt: skip
GRID = SPACE.grid


@given(
    seed=st.integers(0, 1000), chance=st.floats(0, 1), spread=st.floats(1e-6, 1),
    hold=st.sampled_from([None, 0, 3]),
)  # fmt: skip
def test_a_mutation_moves_something_that_has_an_effect(seed, chance, spread, hold):
    rng = np.random.default_rng(seed)
    points = GRID.canonical(rng.random((20, GRID.n_coords)))
    moved = mutated(GRID, points, chance, spread, rng, hold)
    assert np.array_equal(GRID.canonical(moved), moved)
    assert np.all((moved >= 0) & (moved <= 1))
    changed = moved != points
    if hold is None:
        assert changed.any(axis=1).all() or GRID.n_levels[-1] == 1
    if hold is not None:
        assert not changed[:, hold].any()
    before, after = GRID.active(points), GRID.active(moved)
    assert not np.any(changed & ~before & ~after)


def test_levels_move_by_one_at_least_and_choices_become_others():
    grid = Space(n=Int(1, 100), m=Int(1, 64, log=True), c=Choice(*"abcd")).grid
    rng = np.random.default_rng(0)
    points = grid.canonical(rng.random((2000, 3)))
    moved = mutated(grid, points, 1.0, 1e-9, rng)
    steps = np.abs(grid.levels(moved) - grid.levels(points))
    assert np.all(steps[:, :2] == 1) and np.all(steps[:, 2] >= 1)
    to = np.bincount(grid.levels(moved)[grid.levels(points)[:, 2] == 0, 2], minlength=4)
    assert to[0] == 0 and to[1:].min() > 0.25 * to.sum()  # all the others alike


@pytest.mark.parametrize("chance", [0.0, 0.3, 1.0])
def test_each_coordinate_moves_with_the_chance_and_one_at_least(chance):
    grid = Space(x=Float(0, 1, size=10)).grid
    rng = np.random.default_rng(0)
    points = rng.random((4000, 10))
    share = (mutated(grid, points, chance, 0.1, rng) != points).mean()
    expected = chance + (1 - chance) ** 10 / 10
    assert share == pytest.approx(expected, abs=0.01)


def test_the_opening_has_one_point_in_every_part():
    grid = Space(x=Float(0, 1, size=3), c=Choice("a", "b")).grid
    points = stratified(grid, 12, np.random.default_rng(0))
    for k in range(3):
        assert sorted(np.floor(points[:, k] * 12)) == list(range(12))
    assert np.bincount(grid.levels(points)[:, 3]).tolist() == [6, 6]


# ---- the model -----------------------------------------------------------------------------------


def matern(grid, a, b, theta):
    """The kernel from its formula, one pair at a time."""
    kernel = np.empty((len(a), len(b)))
    for i, p in enumerate(a):
        for j, q in enumerate(b):
            square = 0.0
            for k in range(grid.n_coords):
                gap = float(p[k] != q[k]) if grid.categorical[k] else (p[k] - q[k]) ** 2
                square += gap / math.exp(theta[k]) ** 2
            r = math.sqrt(square)
            kernel[i, j] = (1 + math.sqrt(5) * r + 5 * r**2 / 3) * math.exp(-math.sqrt(5) * r)
    return kernel


def model(seed=0, n=12):
    rng = np.random.default_rng(seed)
    grid = Space(x=Float(0, 1), n=Int(1, 9), c=Choice("a", "b", "c")).grid
    process = GaussianProcess(grid)
    process.theta = process.prior + rng.normal(0, 0.3, 4)
    points = grid.canonical(rng.random((n, 3)))
    counts = rng.integers(1, 4, n).astype(float)
    return process, points, rng.standard_normal(n), counts


def test_predictions_are_those_of_the_formula():
    process, points, values, counts = model()
    process.condition(points, values, counts)
    fresh = process.grid.canonical(np.random.default_rng(9).random((5, 3)))
    mean, deviation = process.predict(fresh)
    noisy = matern(process.grid, points, points, process.theta)
    noisy += np.diag(process.nugget / counts)
    cross = matern(process.grid, points, fresh, process.theta)
    weights = np.linalg.solve(noisy, values - values.mean())
    signal = (values - values.mean()) @ weights / len(values)
    np.testing.assert_allclose(mean, values.mean() + cross.T @ weights, rtol=1e-8)
    left = 1 - np.einsum("ij,ij->j", cross, np.linalg.solve(noisy, cross))
    np.testing.assert_allclose(deviation, np.sqrt(signal * left), rtol=1e-6)


def test_the_posterior_is_that_of_the_formula_and_so_is_its_slope():
    process, points, values, counts = model()
    values = values - values.mean()
    gaps, theta = process.gaps(points, points), process.theta

    def reference(theta):
        noisy = matern(process.grid, points, points, theta)
        noisy += np.diag(math.exp(theta[-1]) / counts)
        signal = values @ np.linalg.solve(noisy, values) / len(values)
        likelihood = -0.5 * np.linalg.slogdet(signal * noisy)[1]
        return -likelihood - norm.logpdf(theta, process.prior, process.spread).sum()

    level, slope = process.posterior(theta, gaps, values, counts)
    shifted = theta + 0.1 * np.arange(4)
    assert process.posterior(shifted, gaps, values, counts)[0] - level == pytest.approx(
        reference(shifted) - reference(theta)
    )
    h = 1e-6
    for k, e in enumerate(np.eye(4)):
        expected = (reference(theta + h * e) - reference(theta - h * e)) / (2 * h)
        assert slope[k] == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_fitting_finds_which_parameter_matters_and_whether_there_is_noise():
    rng = np.random.default_rng(0)
    grid = Space(x=Float(0, 1, size=4)).grid
    points = rng.random((80, 4))
    for noise in (0.0, 0.5):
        process, values = GaussianProcess(grid), np.sin(6 * points[:, 2])
        values = values + noise * rng.standard_normal(80)
        for _ in range(4):
            process.optimise(points, values, np.ones(80))
        assert np.argmax(process.relevance) == 2 and process.relevance[2] > 0.8
        assert (process.nugget > 0.05) == (noise > 0)


@given(z=st.floats(-30, 8), deviation=st.floats(1e-3, 1e3))
def test_expected_improvement_is_the_integral(z, deviation):
    found = float(expected_improvement(z * deviation, np.zeros(1), np.full(1, deviation))[0])
    # E (z - Y)^+ = integral of Phi below z, scaled by phi(z) to stay in range
    scale = norm.logpdf(z) if z < 0 else 0.0
    area = quad(lambda t: math.exp(norm.logcdf(z - t) - scale), 0, 40, epsabs=0, limit=200)[0]
    assert found == pytest.approx(math.log(deviation) + scale + math.log(area), abs=1e-6)


def test_disasters_and_failures_do_not_fill_the_model():
    values = tamed(np.array([1.0, 2.0, 3.0, 4.0, 1e12, np.inf]))
    assert values[4] == values[5] == values.max()
    # median of the finite ones 3, best 1: nothing above 5 counts
    np.testing.assert_allclose(np.diff(values[:5]) / (values[1] - values[0]), [1, 1, 1, 1])
    assert values.mean() == pytest.approx(0) and values.std() == pytest.approx(1)
    assert np.array_equal(tamed(np.full(3, 7.0)), np.zeros(3))


# ---- the books -----------------------------------------------------------------------------------


@given(
    told=st.lists(
        st.tuples(st.integers(0, 5), st.floats(-1e3, 1e3) | st.just(math.nan)), max_size=40
    )
)
def test_the_archive_is_what_was_told(told):
    archive = Archive(2)
    for row, value in told:
        row = archive.add(np.array([row, 0.5]))
        archive.waiting[row] += 1
        archive.tell(row, value)
    again = Archive(2)
    again.load_state_dict(archive.state_dict())
    for each in (archive, again):
        rows = list(dict.fromkeys(row for row, _ in told))
        for i, row in enumerate(rows):
            seen = [v for r, v in told if r == row and v == v]
            assert each.seen[i] == seen and each.counts[i] == len(seen)
            assert each.lost[i] == sum(r == row for r, _ in told) - len(seen)
            assert each.means[i] == pytest.approx(np.mean(seen) if seen else math.inf)
        finite = [m for m in each.means if m < math.inf]
        assert (each.best == -1) == (not finite)
        assert not finite or each.means[each.best] == min(finite)
    assert again.means == archive.means and again.best == archive.best


def test_the_page_runs():
    names = run_page(Path(__file__).parents[2] / "docs" / "spaces.md")
    assert names["result"].nfev == 120
