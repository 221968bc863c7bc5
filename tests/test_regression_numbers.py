"""The regression under a walk: effects and errors from the primal, climbs and outliers by hand."""

import numpy as np
import pytest
from scipy.linalg import cho_factor

from scgd.searches import regression as module
from scgd.searches.regression import Quadratic, Regression, fit
from test_regression import features, priors


def data(seed=0, count=12, n=3):
    rng = np.random.default_rng(seed)
    return Regression(rng.standard_normal((count, n)), 50 + 7 * rng.standard_normal(count))


SIZES = np.array([0.3, 0.5, -1.0, -0.6, -1.2])


def covariance(found, sizes):
    """Return the features, the priors and the covariance of the values."""
    phi = np.array([features(u) for u in found.points])
    variance = priors(sizes, found.points.shape[1])
    return phi, variance, phi @ np.diag(variance) @ phi.T + np.diag(10.0 ** sizes[4] * found.noise)


# ---- units ---------------------------------------------------------------------------------------


def test_values_are_in_robust_deviations_and_clipped():
    points = np.eye(5)
    found = Regression(points, np.array([1.0, 2.0, 3.0, 4.0, 1e9]))
    assert found.middle == 3.0 and found.spread == pytest.approx(1.4826)
    np.testing.assert_allclose(found.y[:4], np.array([-2.0, -1.0, 0.0, 1.0]) / 1.4826)
    assert found.y[4] == 1e4 and Regression(points, np.array([1.0, 2, 3, 4, -1e9])).y[4] == -1e4
    assert Regression(points, np.full(5, -8.0)).spread == pytest.approx(8e-14)
    assert Regression(points, np.zeros(5)).spread == 1e-290
    assert found.noise.tolist() == [1.0] * 5


def test_nothing_is_likely_where_all_values_are_equal_or_nothing_has_a_size():
    found = Regression(np.eye(5), np.full(5, 3.0))
    likelihood, alpha, factor = found.likelihood(SIZES)
    assert likelihood == -np.inf and factor is None and alpha.tolist() == [0.0] * 5
    found = data()
    found.noise[:] = -1e9  # no covariance
    assert found.likelihood(SIZES)[0] == -np.inf and found.likelihood(SIZES)[2] is None


# ---- effects -------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [SIZES, np.array([0.3, 0.5, 0.9, -0.6, -1.2])])
@pytest.mark.parametrize("seed", [0, 1])
def test_effects_and_errors_are_those_of_the_primal(sizes, seed):
    """Posterior means and covariances of slopes and bends; own bends as wide as the common one."""
    found = data(seed)
    found.noise = np.random.default_rng(seed).uniform(1, 5, 12)
    n = 3
    wide = sizes.copy()
    wide[2] = max(sizes[2], sizes[1] - np.log10(n))
    phi, variance, whole = covariance(found, wide)
    precision = np.diag(1 / variance) + phi.T @ (phi / (10.0 ** wide[4] * found.noise)[:, None])
    posterior = np.linalg.inv(precision)
    mean = posterior @ phi.T @ (found.y / (10.0 ** wide[4] * found.noise))
    scale = found.y @ np.linalg.solve(whole, found.y) / 12
    slopes = np.eye(len(mean))[1 : 1 + n]
    bends = np.zeros((n, len(mean)))
    bends[:, 1 + n] = 2.0
    for k in range(n):
        bends[k, 2 + n + k] = 2.0
        bends[k, 2 + 2 * n + k * n + k] = 2.0
    effects = np.sqrt((slopes @ mean) ** 2 + (bends @ mean) ** 2 / 2)
    errors = [
        np.sqrt(scale * max(a @ posterior @ a, b @ posterior @ b / 2))
        for a, b in zip(slopes, bends, strict=True)
    ]
    model = found.quadratic(sizes)
    np.testing.assert_allclose(model.effects, found.spread * effects, rtol=1e-7)
    np.testing.assert_allclose(model.errors, found.spread * np.array(errors), rtol=1e-7)


def test_errors_are_unknown_without_a_factor_and_never_below_zero():
    found = data()
    e = 10.0**SIZES
    assert found.errors(e, np.zeros(12), None).tolist() == [np.inf] * 3
    tight = cho_factor(1e-9 * np.eye(12), lower=True)  # tells more than there is to know
    assert found.errors(e, found.y, tight).tolist() == [0.0] * 3
    none = cho_factor(1e30 * np.eye(12), lower=True)  # tells nothing: the prior is left
    prior = max(e[0] / 3, 2 * (e[1] / 9 + e[2] / 3 + e[3] / 9))
    expected = np.sqrt(prior * float(found.y @ found.y) / 12)
    np.testing.assert_allclose(found.errors(e, found.y, none), expected)


# ---- where it is lowest --------------------------------------------------------------------------


def test_the_minimiser_is_the_vertex_or_lies_on_the_sphere():
    bowl = Quadratic(0.0, np.array([-2.0, -8.0]), np.diag([2.0, 4.0]), np.zeros(5))
    np.testing.assert_allclose(bowl.minimiser(9.0), [1.0, 2.0], rtol=1e-12)
    assert bowl(np.array([1.0, 2.0])) == -9.0
    plane = Quadratic(1.0, np.array([3.0, 4.0]), np.zeros((2, 2)), np.zeros(5))
    np.testing.assert_allclose(plane.minimiser(2.0), [-1.2, -1.6], rtol=1e-9)
    saddle = Quadratic(0.0, np.array([0.0, 1.0]), np.diag([1.0, -3.0]), np.zeros(5))
    np.testing.assert_allclose(saddle.minimiser(2.0), [0.0, -2.0], rtol=1e-9)
    nothing = Quadratic(1.0, np.zeros(2), np.zeros((2, 2)), np.zeros(5))
    np.testing.assert_array_equal(nothing.minimiser(2.0), [0.0, 0.0])
    for unit in (1e-200, 1e200):
        scaled = Quadratic(0.0, unit * bowl.slope, unit * bowl.bend, np.zeros(5))
        np.testing.assert_allclose(scaled.minimiser(9.0), [1.0, 2.0], rtol=1e-9)
    narrow = Quadratic(0.0, np.full(2, 1e-150), np.diag([1e200, 1e200]), np.zeros(5))
    np.testing.assert_array_equal(narrow.minimiser(9.0), [0.0, 0.0])
    steep = Quadratic(0.0, np.array([-2e9, 0.0]), np.diag([2.0, 4.0]), np.zeros(5))
    np.testing.assert_allclose(steep.minimiser(3.0), [3.0, 0.0], rtol=1e-9)


# ---- climbs --------------------------------------------------------------------------------------


class Hill(Regression):
    """A likelihood that is given, and what was tried."""

    def __init__(self, height):
        super().__init__(np.eye(3), np.array([1.0, 2.0, 4.0]))
        self.height, self.tried = height, []

    def likelihood(self, sizes):
        self.tried.append(sizes.tolist())
        return self.height(sizes), None, None


def test_sizes_are_tried_in_order_and_one_way_is_enough():
    hill = Hill(lambda sizes: -abs(sizes[4] - 2.0) - abs(sizes[3] + 1.0))
    best, sizes = hill.climb(np.zeros(5), (1.0,))
    assert best == 0.0 and sizes.tolist() == [0.0, 0.0, 0.0, -1.0, 2.0]
    places = [tried[4] for tried in hill.tried[:4]]
    assert places == [0.0, 1.0, 2.0, 3.0]  # upwards; not back, since that helped
    assert hill.tried[4][1] == 1.0 and hill.tried[5][1] == -1.0  # then the common curvature
    assert [tried[3] for tried in hill.tried[6:9]] == [1.0, -1.0, -2.0]
    assert [tried[0] for tried in hill.tried[9:11]] == [1.0, -1.0]
    assert [tried[2] for tried in hill.tried[11:]] == [1.0, -1.0] and len(hill.tried) == 13


def test_sizes_stay_between_their_ends_and_gains_must_count():
    best, sizes = Hill(lambda sizes: float(sizes.sum())).climb(np.zeros(5), (1.0,))
    assert sizes.tolist() == [5.0] * 5 and best == 25.0
    best, sizes = Hill(lambda sizes: -float(sizes.sum())).climb(np.zeros(5), (1.0,))
    assert sizes.tolist() == [-9.0] * 5
    for gain, moved in ((0.06, True), (0.04, False)):
        _, sizes = Hill(lambda sizes, gain=gain: gain * float(sizes.sum())).climb(
            np.zeros(5), (1.0,)
        )
        assert bool(sizes.any()) is moved
    _, sizes = Hill(lambda sizes: -abs(sizes[0] - 2.5)).climb(np.zeros(5), (2.0, 0.5))
    assert sizes[0] == 2.5


def test_no_step_of_equal_likelihood():
    assert Hill(lambda sizes: -np.inf).climb(np.ones(5), (1.0,))[1].tolist() == [1.0] * 5


# ---- outliers ------------------------------------------------------------------------------------


class Residuals(Regression):
    """Leave-one-out residuals that are given: the inverse of the covariance is the identity."""

    def __init__(self, residuals):
        residuals = np.asarray(residuals, float)
        super().__init__(np.eye(len(residuals)), np.arange(float(len(residuals))))
        self.residuals = residuals

    def likelihood(self, sizes):
        return 0.0, self.residuals, cho_factor(np.eye(len(self.residuals)), lower=True)


def test_residuals_are_those_of_each_value_by_the_others():
    found = data(2, 14, 2)
    found.y[5] += 300.0
    sizes = np.array([-1.0, -2.0, -3.0, -2.0, 0.0])  # mostly noise
    _, _, whole = covariance(found, sizes)
    residuals = []
    for i in range(14):
        rest = np.delete(np.arange(14), i)
        told = whole[i, rest] @ np.linalg.solve(whole[np.ix_(rest, rest)], found.y[rest])
        residuals.append(found.y[i] - told)
    usual = 1.4826 * np.median(np.abs(residuals))
    out = np.abs(residuals) > 5 * usual
    assert out[5] and out.mean() < 0.4
    assert found.find_outliers(sizes) is True
    np.testing.assert_allclose(
        found.noise, np.where(out, (np.array(residuals) / usual) ** 2, 1.0), rtol=1e-6
    )


@pytest.mark.parametrize("size, out", [(7.42, True), (7.40, False), (-7.42, True), (-7.40, False)])
def test_five_robust_deviations_are_out(size, out):
    found = Residuals([1.0, -1.0, 1.0, -1.0, 1.0, size])
    assert found.find_outliers(SIZES) is out
    assert found.noise[:5].tolist() == [1.0] * 5
    assert found.noise[5] == pytest.approx((size / 1.4826) ** 2 if out else 1.0)


def test_outliers_are_few_new_and_of_something_usual():
    assert Residuals([1.0] * 7 + [99.0] * 3).find_outliers(SIZES) is True
    assert Residuals([1.0] * 6 + [99.0] * 4).find_outliers(SIZES) is False
    known = Residuals([1.0] * 7 + [99.0] * 3)
    known.noise[7:] = 50.0
    assert known.find_outliers(SIZES) is False and known.noise[9] == 50.0
    assert Residuals([0.0] * 5 + [1.0]).find_outliers(SIZES) is False
    assert Regression(np.eye(3), np.ones(3)).find_outliers(SIZES) is False


# ---- the fit -------------------------------------------------------------------------------------


class Script:
    """Climbs and outliers that are given."""

    spread = 2.0

    def __init__(self, heights, outliers):
        self.heights, self.outliers, self.climbs = iter(heights), iter(outliers), []

    def climb(self, sizes, steps):
        self.climbs.append((np.round(sizes, 12).tolist(), steps))
        return next(self.heights), np.full(5, float(len(self.climbs)))

    def find_outliers(self, sizes):
        self.looked = sizes.tolist()
        return next(self.outliers)

    def quadratic(self, sizes):
        return sizes.tolist()


def fitted(monkeypatch, noise, sizes=None, heights=(1.0, 2.0, 3.0, 4.0, 5.0), outliers=(False,)):
    script = Script(heights, outliers)
    monkeypatch.setattr(module, "Regression", lambda points, values: script)
    return script, fit(np.eye(2), np.ones(2), noise, sizes)


@pytest.mark.parametrize(
    "noise, last", [(2.0, 0.0), (20.0, 2.0), (60.0, 2.0), (0.2, -2.0), (2e-4, -8.0), (1e-9, -8.0),
                    (0.0, -1.0)]
)  # fmt: skip
def test_a_fit_begins_with_two_guesses_and_the_noise_in_units_of_the_spread(
    monkeypatch, noise, last
):
    script, sizes = fitted(monkeypatch, noise)
    steps = (2.0, 1.0, 0.5)
    assert script.climbs == [([0.0, 0.0, -2.0, -1.0, last], steps),
                             ([0.0, 0.0, -2.0, -4.0, last], steps)]  # fmt: skip
    assert sizes == [2.0] * 5  # the likelier one
    assert fitted(monkeypatch, noise, heights=(2.0, 1.0))[1] == [1.0] * 5


def test_a_fit_goes_on_from_known_sizes(monkeypatch):
    script, sizes = fitted(monkeypatch, 2.0, np.full(5, 9.0))
    assert script.climbs == [([9.0] * 5, (1.0, 0.5))] and sizes == [1.0] * 5


def test_outliers_are_looked_for_three_times_at_most(monkeypatch):
    for outliers, n in (
        ((False,), 0),
        ((True, False), 1),
        ((True, True, False), 2),
        ((True,) * 9, 3),
    ):
        script, sizes = fitted(monkeypatch, 2.0, np.full(5, 9.0), outliers=outliers)
        assert [steps for _, steps in script.climbs[1:]] == [(1.0,)] * n
        assert sizes == [1.0 + n] * 5
        assert [start for start, _ in script.climbs[1:]] == [[1.0 + k] * 5 for k in range(n)]
