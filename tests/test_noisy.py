"""Independent noise: what auto promises."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import scgd
from noises import Stop

P = 8


class Numbered:
    """Noise that is the same for the n-th value of every run."""

    def __init__(self, true, sigma, start=0):
        self.true, self.sigma, self.n = true, sigma, start

    def __call__(self, x):
        self.n += 1
        return self.true(x) + self.sigma * np.random.default_rng(self.n).standard_normal()


def bowl(x):
    return float(np.arange(1, len(x) + 1) @ (x - 0.7) ** 2)


# ---- the ladder ----------------------------------------------------------------------------------


# ---- the walk ------------------------------------------------------------------------------------


# ---- checks --------------------------------------------------------------------------------------


# ---- the end -------------------------------------------------------------------------------------


def test_far_away_and_little_noise():
    for seed in range(2):
        fun = Numbered(lambda x: float(np.sum((x - 1) ** 2)), 0.1, 1000 * seed)
        result = scgd.minimize(fun, np.full(20, 100.0), max_evals=1000, seed=seed)
        assert fun.true(result.x) < 0.01


def test_a_laboratory():
    weights, ends = np.array([1, 2, 0.5, 1, 0.2, 3]), []
    for seed in range(6):
        fun = Numbered(lambda x: float(np.sum((x - 0.3) ** 2 * weights)), 0.02, 1000 * seed)
        seen = []
        result = scgd.minimize(
            lambda x, fun=fun, seen=seen: seen.append(x.copy()) or fun(x),
            np.full(6, 0.5), bounds=[(0, 1)] * 6, max_evals=120, seed=seed,
        )  # fmt: skip
        assert np.min(seen) >= 0 and np.max(seen) <= 1
        ends.append(fun.true(result.x))
    assert np.median(ends) < 0.02


def test_nothing_but_noise_is_never_probed_far():
    widest = 0.0

    def fun(x):
        nonlocal widest
        widest = max(widest, float(np.abs(x - 3).max()))
        return rng.standard_normal()

    rng = np.random.default_rng(0)
    scgd.minimize(fun, np.full(10, 3.0), max_evals=3000, seed=0)
    assert widest < 100 * 3


@pytest.mark.parametrize("scale", [None, 2.0])
@pytest.mark.parametrize("p", [6, 150])
def test_nothing_but_noise_is_never_probed_far_with_many_evaluations(p, scale):
    """Radii of coordinates that never rise had become 4^7 times wider, untold."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # that nothing shows
        result, widest = looked(lambda x, rng: rng.standard_normal(), np.full(p, 2.0), 5000, scale)
    assert result.farthest == pytest.approx(widest / 2.0) and widest / 2.0 < 50


def test_inputs_that_do_nothing_are_never_probed_far():
    """Radii had grown without end, to 32,777 units; of eight seeds the widest now is 160."""

    def fun(x, rng):
        return float((x[0] - 1) ** 2) + 0.3 * rng.standard_normal()

    result, widest = looked(fun, np.full(6, 3.0), 6000, seed=1)
    assert result.farthest == pytest.approx(widest / 3.0) and widest / 3.0 < 500


def looked(fun, x0, n_evals, scale=None, seed=0):
    """Return the result of a noisy run, and how far from x0 it was seen to look."""
    rng, widest = np.random.default_rng(seed), [0.0]

    def seen(x):
        widest.append(float(np.abs(x - x0).max()))
        return fun(x, rng)

    result = scgd.minimize(seen, x0, max_evals=n_evals, seed=seed, scale=scale)
    return result, max(widest)


def test_nothing_but_noise_is_reported_as_it_is():
    """The lowest of many values is luck; the value at the end was seen by no choice."""
    for seed in range(5, 10):
        rng = np.random.default_rng(seed)
        result = scgd.minimize(
            lambda x, rng=rng: rng.standard_normal(), np.full(6, 2.0), max_evals=600, seed=seed
        )
        assert abs(result.fun) < 4 * result.fun_error


@pytest.mark.parametrize("n_calls", [4, 30, 99, 250, 433, 590])
def test_a_stopped_run_goes_on_bit_for_bit(tmp_path, n_calls):
    path = tmp_path / "run.npz"
    options = {"max_evals": 600, "seed": 3}
    whole = scgd.minimize(Numbered(bowl, 0.5), np.zeros(P), **options)
    scgd.minimize(Stop(Numbered(bowl, 0.5), n_calls), np.zeros(P), checkpoint=path, **options)
    result = scgd.minimize(Numbered(bowl, 0.5, n_calls), np.zeros(P), checkpoint=path, **options)
    np.testing.assert_array_equal(result.x, whole.x)
    assert result.message == whole.message and result.nfev == whole.nfev


def by_point(x):
    """Noise that depends on the point alone, so that it is the same in any process."""
    return bowl(x) + 0.3 * np.sin(1e6 * float(np.sum(x * np.arange(1, len(x) + 1))))


def test_workers_do_not_change_the_road():
    options = {"max_evals": 500, "seed": 1}
    alone = scgd.minimize(by_point, np.zeros(P), **options)
    with ThreadPoolExecutor(2) as pool:
        together = scgd.minimize(by_point, np.zeros(P), workers=pool, **options)
    np.testing.assert_array_equal(alone.x, together.x)
    flying = scgd.minimize(by_point, np.zeros(P), workers=scgd.Workers(asynchronous=12), **options)
    assert bowl(flying.x) < 0.1 * bowl(np.zeros(P))


# ---- noise= --------------------------------------------------------------------------------------


def test_known_noise_is_believed():
    fun = Numbered(bowl, 0.5)
    result = scgd.minimize(fun, np.zeros(P), noise=0.5, max_evals=400, seed=0)
    assert "noise test" not in result.message
    assert bowl(result.x) < 0.1 * bowl(np.zeros(P))


def test_no_noise_is_believed():
    result = scgd.minimize(bowl, np.zeros(P), noise=0, max_evals=400, seed=0)
    assert "noise test" not in result.message
    assert result.fun < 1e-10 and result.fun_error == 0


def test_noise_is_part_of_what_a_run_is(tmp_path):
    path = tmp_path / "run.npz"
    options = {"max_evals": 100, "seed": 0, "checkpoint": path}
    scgd.minimize(bowl, np.zeros(P), noise=0.5, **options)
    with pytest.raises(ValueError, match=r"its noise is '0.5' there and '0.6' here"):
        scgd.minimize(bowl, np.zeros(P), noise=0.6, **options)


# ---- values that stop repeating ------------------------------------------------------------------


class Sometimes:
    """One call in ten is far off, downwards as often as upwards."""

    def __init__(self, seed, share=0.1):
        self.rng, self.share = np.random.default_rng(seed), share

    def __call__(self, x):
        off = 100 * self.rng.standard_normal() if self.rng.random() < self.share else 0.0
        return bowl(x) + off


@pytest.mark.parametrize("share", [0.1, 0.01])
def test_a_function_that_repeats_itself_mostly_is_solved(share):
    for seed in range(4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            result = scgd.minimize(Sometimes(seed, share), np.zeros(P), max_evals=1500, seed=seed)
        assert bowl(result.x) < 1e-20


class Outliers:
    """A function of which a part of the calls is off by anything, up or down."""

    def __init__(self, seed, fun=bowl, share=0.2, size=1.0):
        self.rng, self.fun, self.share = np.random.default_rng(seed), fun, share
        self.size = size

    def __call__(self, x):
        off = self.size * self.rng.standard_cauchy()
        return 5 + self.fun(x) + (off if self.rng.random() < self.share else 0.0)


def test_rare_outliers_do_not_keep_a_function_from_being_solved():
    ends = []
    for seed in range(5):
        fun = Outliers(seed, size=10.0)
        result = scgd.minimize(fun, np.zeros(P), max_evals=1500, seed=seed)
        ends.append(bowl(result.x))
    assert np.max(ends) < 1e-9


def crashed(fun, value, share, seed, n_evals=2000):
    """Return the result where a part of the calls return always the same, and f at its point."""
    rng = np.random.default_rng(seed)
    result = scgd.minimize(
        lambda x: value if rng.random() < share else fun(x), np.full(P, 4.0), max_evals=n_evals,
        seed=seed,
    )  # fmt: skip
    return result, fun(result.x)


def coupled(x):
    return float(np.sum((x - 1) ** 2) + x[0] * x[1] + 5)


@pytest.mark.parametrize("value, share", [(0.0, 0.1), (-1000.0, 0.05), (1e6, 0.1)])
def test_outliers_that_are_equal_are_not_believed(value, share):
    """Two crashes at a point had been an agreement: x was anywhere, and fun was 0 or -1000."""
    for seed in range(4):
        result, end = crashed(coupled, value, share, seed)
        assert end == result.fun < 0.1 * coupled(np.full(P, 4.0))


def test_steps_with_outliers_that_are_equal():
    """Values of steps are the same at many points, and believed: they were never outvoted."""
    for seed in range(3):
        result, end = crashed(
            lambda x: float(np.sum(np.floor(np.abs(x - 1) * 4))), -7.0, 0.05, seed
        )
        assert end == result.fun == 0.0


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_race_on_values_that_came_twice_ends_as_others_do(seed):
    """After values that seemed to repeat it had ended with another status, 8."""
    result = scgd.minimize(
        Outliers(seed, size=10.0, share=0.05), np.zeros(P), max_evals=4000, seed=seed
    )
    assert result.status == 9 and "evaluations were not needed" in result.message


def test_values_that_agree_at_the_start_alone_are_not_taken_for_exact():
    rng = np.random.default_rng(0)

    def fun(x):  # no noise at x0
        return bowl(x) + 0.02 * np.abs(x).sum() * rng.standard_normal()

    result = scgd.minimize(fun, np.zeros(P), max_evals=1200, seed=2)
    assert bowl(result.x) < 0.05 * bowl(np.zeros(P))


@pytest.mark.parametrize(("p", "n"), [(5, 200), (5, 1000), (20, 500)])
def test_nothing_but_noise_keeps_x0(p, n):
    x0, moved = np.full(p, 0.3), 0
    for seed in range(8):
        noise = Numbered(lambda x: 0.0, 1.0, start=10_000 * seed)
        moved += not np.array_equal(scgd.minimize(noise, x0, max_evals=n, seed=seed).x, x0)
    assert moved <= 3  # chance: one in twenty


class FewMatter(Numbered):
    """Six of many inputs matter, one more than the next."""

    def __init__(self, p, sigma, seed):
        super().__init__(self.value, sigma, start=10_000 * seed)
        rng = np.random.default_rng(seed)
        self.where, self.goal = rng.permutation(p)[:6], rng.uniform(-0.8, 0.8, 6)

    def value(self, x):
        return float(np.logspace(0, 1, 6) @ (x[self.where] - self.goal) ** 2)


@pytest.mark.parametrize("n", [2000, 3000])
def test_two_hundred_inputs_of_which_six_matter(n):
    ends = []
    for seed in range(3):
        fun = FewMatter(200, 0.5, seed)
        result = scgd.minimize(fun, np.zeros(200), max_evals=n, seed=seed)
        ends.append(fun.value(result.x))
        assert len(set(np.argsort(-result.relevance)[:6]) & set(fun.where)) >= 5
    assert np.median(ends) < 0.02


def test_screened_inputs_with_many_evaluations():
    fun = FewMatter(1000, 0.3, 0)
    result = scgd.minimize(fun, np.zeros(1000), max_evals=6000, seed=0)
    assert fun.value(result.x) < 0.05


def test_a_failed_value_costs_one_value():
    """Where values of the first tests fail, nothing is believed: neither that f has no noise, nor
    that a radius was too large."""
    for seed in range(15):
        fun, rng = Numbered(bowl, 0.1, 1000 * seed), np.random.default_rng(seed)
        result = scgd.minimize(
            lambda x, fun=fun, rng=rng: np.nan if rng.random() < 0.3 else fun(x),
            np.zeros(6), max_evals=80, seed=seed, failures="skip",
        )  # fmt: skip
        assert bowl(result.x) < 0.5 * bowl(np.zeros(6))


@pytest.mark.parametrize("sigma", [0.0, 1e-6])
def test_teeth_that_stand_on_the_start(sigma):
    """Nothing falls near x0, and f jumps at x0 itself: the unit is the length to look over."""
    for seed in range(2):
        fun = Numbered(
            lambda x: float(np.sum(np.abs(x - 1) + 3 * np.mod(7 * x, 1))), sigma, 2000 * seed
        )
        result = scgd.minimize(fun, np.zeros(10), max_evals=1000, seed=seed)
        assert fun.true(result.x) < 3


def test_a_valley_far_above_the_noise():
    for seed in range(2, 5):
        fun = Numbered(
            lambda x: float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)),
            1e-4, 3000 * seed,
        )  # fmt: skip
        result = scgd.minimize(fun, np.zeros(10), max_evals=2000, seed=seed)
        assert fun.true(result.x) < 0.5
