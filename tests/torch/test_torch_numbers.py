"""Numbers of the kernels, draws, rules and samplers for networks, each against plain Python."""

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from scgd import Uniform  # noqa: E402
from scgd.torch import rules  # noqa: E402
from scgd.torch.draws import (  # noqa: E402
    Draw,
    arrivals,
    check_enough,
    draw_distinct,
    draw_poisson,
    draw_replacement,
    part_of,
    visits_in_turn,
)
from scgd.torch.kernels import (  # noqa: E402
    CERTAIN,
    DECAY,
    FLOOR,
    N_NUMBERS,
    ONE,
    RATE,
    RATE_BY_PROB,
    SLOPE,
    TOP,
    make_words,
    mend,
    sgd_uniform,
    unit,
    units,
)
from scgd.torch.layer_sampler import Layer, LayerSampler  # noqa: E402
from scgd.torch.layout import Layout  # noqa: E402

M32, M64 = 2**32 - 1, 2**64 - 1


# ---- random numbers ------------------------------------------------------------------------------


def mixed(x):
    """SplitMix64 (Steele, Lea and Flood) in whole numbers."""
    x = (x + 0x9E3779B97F4A7C15) & M64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & M64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & M64
    return x ^ (x >> 31)


def hashed(k, words):
    """Return 30 bits of a coordinate and two words, in whole numbers."""
    h = ((k ^ int(words[0])) * 0x85EBCA6B) & M32
    h ^= int(words[1])
    h ^= h >> 15
    return ((h * 0xC2B2AE35) & M32) >> 2


@pytest.mark.parametrize("seed, n", [(0, 1), (7, 123456), (2**40, 3)])
def test_words_and_numbers_are_those_of_the_hash(seed, n):
    word = mixed(mixed(seed) ^ n)
    words = make_words(seed, n)
    assert words.tolist() == [word >> 32, word & M32]
    with np.errstate(over="ignore"):
        found = units(words, 20)
        assert unit(5, words[0], words[1]) == found[5]
    np.testing.assert_array_equal(found, [(hashed(k, words) + 0.5) / 2**30 for k in range(20)])


def test_gains_are_mended():
    gains = np.array([np.nan, np.inf, -np.inf, 2.0, -3.0])
    assert mend(gains, 10.0) == 25.0
    assert gains.tolist() == [0.0, 10.0, -10.0, 2.0, -3.0]


def numbers(**given):
    out = np.zeros(N_NUMBERS)
    out[ONE], out[TOP] = 1.0, CERTAIN
    for name, value in given.items():
        out[{"slope": SLOPE, "floor": FLOOR, "rate": RATE, "by_prob": RATE_BY_PROB,
             "decay": DECAY}[name]] = value  # fmt: skip
    return out


def test_a_uniform_step_moves_what_is_below_the_threshold():
    words = make_words(3, 1)
    draws = [hashed(k, words) for k in range(5, 15)]
    threshold = sorted(draws)[4]  # the fifth is not taken: the comparison is strict
    theta, grads = np.linspace(1.0, 2.0, 10), np.linspace(-1.0, 1.0, 10)
    given = numbers(floor=float(threshold), rate=0.1, by_prob=0.2 * threshold, decay=0.5)
    expected = [
        x - (0.3 * (g + 0.5 * x) if u < threshold else 0.0)
        for x, g, u in zip(theta, grads, draws, strict=True)
    ]
    with np.errstate(over="ignore"):
        sgd_uniform(theta, grads, 5, words, given)
    np.testing.assert_allclose(theta, expected)


# ---- draws ---------------------------------------------------------------------------------------

LEAVES = np.array([0.3, 0.05, 0.2, 0.01, 0.14, 0.25, 0.05])


@pytest.mark.parametrize("leaves", [LEAVES, np.empty(0)], ids=["weights", "equal"])
def test_a_poisson_draw_takes_what_is_below_its_probability(leaves):
    n, words = 7, make_words(1, 2)
    given = numbers(slope=2.0 * CERTAIN, floor=0.3 * CERTAIN)
    probs = 0.3 + (2.0 * leaves if len(leaves) else np.zeros(n))
    taken = [k for k in range(n) if hashed(k, words) < int(probs[k] * CERTAIN)]
    with np.errstate(over="ignore"):
        coords, chances, expected = draw_poisson(leaves, n, given, words, 2)
    assert coords.tolist() == taken
    np.testing.assert_allclose(chances, probs[taken] / 2)
    assert expected == pytest.approx(probs.sum())


def test_a_poisson_draw_of_more_than_expected_finds_room():
    given = numbers(floor=float(CERTAIN))
    with np.errstate(over="ignore"):
        coords, chances, _ = draw_poisson(np.empty(0), 500, given, make_words(0, 0), 1)
    assert coords.tolist() == list(range(500)) and np.all(chances == 1.0)


def test_a_poisson_draw_may_be_empty():
    with np.errstate(over="ignore"):
        coords, chances, expected = draw_poisson(
            np.empty(0), 50, numbers(floor=0.0), make_words(0, 0), 3
        )
    assert not len(coords) and not len(chances) and expected == 0.0


def times_of(words, weights):
    return np.array(
        [-np.log1p(-(hashed(k, words) + 0.5) / 2**30) / w for k, w in enumerate(weights)]
    )


@pytest.mark.parametrize("step", range(5))
@pytest.mark.parametrize("leaves", [LEAVES, np.empty(0)], ids=["weights", "equal"])
def test_a_distinct_draw_takes_the_first_to_arrive(leaves, step):
    words, a, b = make_words(4, step), 0.5, 0.1
    weights = a * leaves + b if len(leaves) else np.full(7, b)
    times = times_of(words, weights)
    order = np.argsort(times)
    with np.errstate(over="ignore"):
        coords, probs, kept, tau = draw_distinct(leaves, 7, a, b, words, 3)
    assert coords.tolist() == sorted(order[:3].tolist())
    assert tau == pytest.approx(times[order[3]])
    np.testing.assert_allclose(kept, weights[coords])
    np.testing.assert_allclose(probs, -np.expm1(-weights[coords] * tau) / 3)


@pytest.mark.parametrize("a", [0.5, 40.0])
def test_arrivals_before_a_limit(a):
    words = make_words(5, 1)
    times = times_of(words, a * LEAVES + 0.1)
    limit = float(np.sort(times)[4])
    with np.errstate(over="ignore"):
        coords, when = arrivals(LEAVES, 7, a, 0.1, words, limit, 7)
    assert coords.tolist() == np.flatnonzero(times < limit).tolist()
    np.testing.assert_allclose(when, times[coords])


def test_as_many_coordinates_as_have_a_weight_can_be_drawn():
    check_enough(3, 3)
    with pytest.raises(ValueError, match="only 2 coordinates"):
        check_enough(2, 3)


@pytest.mark.parametrize("step", range(5))
@pytest.mark.parametrize("leaves", [LEAVES, LEAVES[:1], np.empty(0)], ids=["seven", "one", "equal"])
def test_independent_draws_walk_along_the_weights(leaves, step):
    words, a, b = make_words(6, step), 0.5, 0.1
    n = len(leaves) or 7
    weights = a * leaves + b if len(leaves) else np.full(7, b)
    spacings = [-np.log((hashed(t, words) + 0.5) / 2**30) for t in range(6)]
    points = np.cumsum(spacings)[:5] / np.sum(spacings) * weights.sum()
    expected = np.minimum(np.searchsorted(np.cumsum(weights), points, side="right"), n - 1)
    with np.errstate(over="ignore"):
        coords, probs = draw_replacement(leaves, n, a, b, words, 5)
    assert coords.tolist() == expected.tolist()
    np.testing.assert_allclose(probs, weights[expected])


def test_visits_come_in_turn_and_units_stay_whole():
    single = Draw(np.array([2, 2, 5, 5, 5]), np.ones(5))
    masks = visits_in_turn(single)
    assert [mask.tolist() for mask in masks] == [
        [True, False, True, False, False],
        [False, True, False, True, False],
        [False, False, False, False, True],
    ]
    rows = Draw(np.array([0, 1, 2, 0, 1, 2, 6, 7]), np.arange(8.0), np.array([3, 3, 2]))
    first, second = visits_in_turn(rows)
    assert first.tolist() == [True] * 3 + [False] * 3 + [True] * 2
    some = part_of(rows, first)
    assert some.coords.tolist() == [0, 1, 2, 6, 7] and some.sizes.tolist() == [3, 2]
    assert part_of(rows, second).sizes.tolist() == [3]
    assert part_of(single, slice(2, None)).coords.tolist() == [5, 5, 5]


# ---- rules ---------------------------------------------------------------------------------------


def group(**given):
    usual = {"rule": "sgd", "momentum": 0.9, "dampening": 0.0, "nesterov": False, "amsgrad": False,
             "betas": (0.9, 0.99), "eps": 0.1}  # fmt: skip
    return {**usual, **given}


def test_dampening_spares_the_first_visit():
    grads, visits = np.array([2.0, 2.0]), np.array([1, 2])
    kept = {"momentum_buffer": np.array([1.0, 1.0])}
    moved = rules.momentum(group(dampening=0.25), grads, kept, visits)
    np.testing.assert_allclose(moved, [0.9 + 2.0, 0.9 + 1.5])
    plain = rules.momentum(group(), grads, {"momentum_buffer": np.ones(2)}, visits)
    np.testing.assert_allclose(plain, 2.9)


def test_what_has_no_square_does_not_move():
    zero = np.zeros(2)
    for eps in (0.1, 0.0):
        with np.errstate(all="ignore"):
            still = rules.rms(group(eps=eps), zero, {"square_avg": zero}, np.ones(2, int))
            kept = {"exp_avg": np.ones(2), "exp_avg_sq": zero}
            calm = rules.adam(group(eps=eps), zero, kept, np.ones(2, int))
        assert still.tolist() == [0.0, 0.0] == calm.tolist()


def test_small_squares_move_all_the_same():
    grads = np.array([0.5])
    moved = rules.adam(
        group(), grads, {"exp_avg": np.zeros(1), "exp_avg_sq": np.zeros(1)}, np.ones(1, int)
    )
    np.testing.assert_allclose(moved, 0.5 / (0.5 + 0.1))


@pytest.mark.parametrize(
    "given, name",
    [
        ({"momentum": 0.0}, "sgd"),
        ({}, "momentum"),
        ({"dampening": 0.1}, "dampened"),
        ({"rule": "rms"}, "rms"),
        ({"rule": "adam"}, "adam"),
        ({"rule": "adam", "amsgrad": True}, "amsgrad"),
        ({"rule": "rms", "amsgrad": True}, "rms"),
    ],
)
def test_which_rule_a_group_asks_for_and_what_it_remembers(given, name):
    rule = rules.chosen(group(**given))
    assert rule is rules.RULES[name]
    known = rules.quantities(group(**given), np.float32)
    counted = name in ("dampened", "rms", "adam", "amsgrad")
    assert list(known) == [*rule.names, *(["visits"] if counted else [])]
    assert all(known[kept] == (np.float32, False) for kept in rule.names)
    assert known.get("visits", (np.int32, True)) == (np.int32, True)


def test_visits_are_counted_by_coordinate_or_by_unit():
    visits, coords = np.zeros(6, np.int32), np.array([1, 4])
    single = SimpleNamespace(whole_units=False)
    assert rules._visit(visits, single, coords, None).tolist() == [1, 1]
    assert rules._visit(visits, single, coords[:1], None).tolist() == [2]
    rows = SimpleNamespace(whole_units=True, layout=SimpleNamespace(starts=np.array([0, 3, 5])))
    visits = np.zeros(3, np.int32)
    coords, sizes = np.array([0, 1, 2, 5, 6]), np.array([3, 2])
    assert rules._visit(visits, rows, coords, sizes).tolist() == [1] * 5
    assert visits.tolist() == [1, 0, 1]
    assert rules._visit(visits, rows, coords[3:], sizes[1:]).tolist() == [2, 2]


# ---- the sampler of layers -----------------------------------------------------------------------


def distribution(n_draws=1, policy=None, n_layers=3):
    torch.manual_seed(0)
    params = [nn.Parameter(torch.randn(2, 2)) for _ in range(n_layers)]
    known = LayerSampler(policy, Layout(params), n_draws, 0)
    known.draw()  # sizes are measured now
    for layer in known.layers:
        layer.slope_square, layer.curvature, layer.n_curvatures, layer.n_probes = 1.0, 10.0, 2, 2
    return known


def test_weights_are_equal_until_every_layer_has_a_curvature():
    known = distribution()
    known.layers[2].slope_square = 4.0
    weights = known.weights()
    assert weights[2] > weights[1] == weights[0] and weights.sum() == pytest.approx(1.0)
    known.layers[1].n_curvatures = 0
    assert known.weights().tolist() == [1 / 3] * 3
    known.layers[1].n_curvatures, known.policy = 2, Uniform()
    assert known.weights().tolist() == [1 / 3] * 3


def test_a_first_round_sees_every_layer_twice():
    known = distribution(n_draws=2)
    for layer, count in zip(known.layers, [2, 1, 0], strict=True):
        layer.n_curvatures = layer.n_probes = count
    assert known.draw()[0] == [2, 1]
    for layer in known.layers:
        layer.n_curvatures = layer.n_probes = 2
    drawn = set()
    for known.memory.step in range(20):
        drawn.update(known.draw()[0])
    assert drawn == {0, 1, 2}  # by their weights from now on


def test_a_curvature_lost_in_rounding_is_not_counted():
    layer = Layer(4, 1.0, 0.5)
    assert layer.see(1e-7, 1e-7, 0.0) == pytest.approx(1e-7)  # (up - down) / (2 radius)
    assert layer.n_curvatures == 0 and layer.n_probes == 1
    layer.see(1e-7, 1e-5, 0.0)
    assert layer.n_curvatures == 1
    assert layer.curvature == pytest.approx(1e-5 / 0.25)


def test_a_curvature_that_should_have_been_seen_is_bounded_by_what_was_not():
    for scatter, count in ((0.1, 1), (0.001, 2)):  # 10 * 0.1**2 is below the blur, and above it
        layer = Layer(4, 1.0, 0.1, curvature=10.0, n_curvatures=1)
        layer.see(scatter, 0.0, 0.0)
        assert layer.n_curvatures == count and (layer.curvature < 10.0) == (count == 2)


@pytest.mark.parametrize("two_sided", [True, False])
def test_the_noise_of_a_slope_is_that_of_its_losses(two_sided):
    rng, slopes = np.random.default_rng(0), []
    for base, up, down in 0.1 * rng.standard_normal((2000, 3)):
        layer = Layer(4, 1.0, 0.5)
        slopes.append(layer.see(0.1, up - base, down - base if two_sided else None))
    assert layer.slope_noise == pytest.approx(np.var(slopes), rel=0.1)


def test_what_is_learned_is_taken_up_by_layers_of_the_same_sizes_only():
    known, other, few = distribution(), distribution(), distribution(n_layers=2)
    known.layers[1].slope_square, known.trend.mean = 7.0, 3.0
    other.load_state_dict(known.state_dict())
    assert other.layers == known.layers and other.trend == known.trend
    few.load_state_dict(known.state_dict())
    assert few.layers == distribution(n_layers=2).layers
