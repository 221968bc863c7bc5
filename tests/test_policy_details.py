"""Single numbers and refusals of policies, and the generator's words, each against plain Python."""

import numpy as np
import pytest

import scgd
from scgd.policies.adaptive import part, top_up
from scgd.policies.base import check_alike, draw, kernels_of, update, update_and_draw, weights
from scgd.policies.distinct import merge, rank, wide_leaves
from scgd.policies.distribution import L1Distribution, make_distribution
from scgd.policies.fixed import fixed_distribution
from scgd.policies.mixture import check_tree
from scgd.policies.recomputed import RecomputedDistribution
from scgd.policies.softmax import HEAVY, SIZE, SoftmaxDistribution
from scgd.policies.sumtree import empty_tree, refresh, refresh_above, split_uniform
from scgd.random import below, stream, uniform

P = 12
MASK = 2**64 - 1


def rotated(word, by):
    return ((word << by) | (word >> (64 - by))) & MASK


def xoshiro(state):
    """xoshiro256++ (Blackman and Vigna), in whole numbers; return a word and the next state."""
    s0, s1, s2, s3 = state
    word = (rotated((s0 + s3) & MASK, 23) + s0) & MASK
    t = (s1 << 17) & MASK
    s2, s3 = s2 ^ s0, s3 ^ s1
    s1, s0 = s1 ^ s2, s0 ^ s3
    return word, [s0, s1, s2 ^ t, rotated(s3, 45)]


@pytest.mark.parametrize("seed", range(3))
def test_words_are_those_of_xoshiro(seed):
    ours = stream(np.random.SeedSequence(seed))
    state = [int(word) for word in ours]
    with np.errstate(over="ignore"):
        for n in (3, 10, 1000) * 10:
            word, state = xoshiro(state)
            assert uniform(ours) == (word >> 11) * 2.0**-53
            word, state = xoshiro(state)
            assert below(ours, n) == int((word >> 11) * 2.0**-53 * n)
            assert [int(word) for word in ours] == state


def words(seed=0):
    return stream(np.random.SeedSequence(seed))


# ---- descriptions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"gain": "largest"}, {"normalization": "l2"}, {"memory": "none"}, {"sharpness": 0.0},
        {"length": 0}, {"length": 2.5}, {"mixing": 0.0}, {"mixing": 1.5}, {"mixing": -0.1},
        {"mixing": 1.5, "normalization": "softmax"}, {"mixing": -0.1, "normalization": "softmax"},
    ],
)  # fmt: skip
def test_a_musketeer_refuses(settings):
    with pytest.raises(ValueError, match=f"{next(iter(settings))} must"):
        scgd.Musketeer(**settings)


def test_a_musketeer_takes_the_ends():
    assert scgd.Musketeer().sharpness == 1.0 == scgd.Musketeer(mixing=1).mixing
    assert scgd.Musketeer(normalization="softmax", mixing=0).mixing == 0.0
    assert scgd.Musketeer(normalization="softmax", mixing=1).mixing == 1.0
    assert scgd.Musketeer(length=1).phase_length(100) == 1
    assert [scgd.Musketeer().phase_length(n) for n in (1, 3, 4, 99, 100)] == [1, 1, 2, 9, 10]


@pytest.mark.parametrize("replace", [True, False])
def test_a_musketeer_keeps_the_law_that_its_draws_need(replace):
    assert isinstance(scgd.Musketeer().init(P, replace), L1Distribution)
    dist = scgd.Musketeer(normalization="softmax").init(P, replace)
    assert isinstance(dist, SoftmaxDistribution if replace else RecomputedDistribution)
    assert dist.sharpness[0] == 1.0 if replace else True


@pytest.mark.parametrize("values", [[[1.0, 2.0]], [], [1.0, np.nan], [-1.0, 2.0], [0.0, 0.0], "ab"])
def test_fixed_weights_refuse(values):
    with pytest.raises((TypeError, ValueError), match="values must"):
        scgd.FixedWeights(values)


def test_fixed_weights_may_be_zero_here_and_there():
    policy = scgd.FixedWeights([0.0, 1, 3])
    assert policy.values == (0.0, 1.0, 3.0)
    np.testing.assert_array_equal(policy.weights(policy.init(3)), [0.0, 0.25, 0.75])


@pytest.mark.parametrize(
    "settings", [{"mixing": 0.0}, {"mixing": 1.1}, {"beta": 1.0}, {"beta": -1}]
)
def test_recent_gains_refuse(settings):
    with pytest.raises(ValueError, match=f"{next(iter(settings))} must lie"):
        scgd.RecentGains(**settings)


# ---- draws ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy", [scgd.Uniform(), scgd.Musketeer(), scgd.FixedWeights(range(1, 13))]
)
@pytest.mark.parametrize("block, replace", [(1, True), (1, False), (4, True), (4, False)])
def test_independent_draws_and_distinct_ones(policy, block, replace):
    """Blocks with replacement, and single draws, are plain draws; others never repeat."""
    state = policy.init(P, replace)
    coords, probs = np.zeros(40, np.int64), np.zeros(40)
    plain, chances, ours, theirs = coords.copy(), probs.copy(), words(), words()
    for again in (False, True):
        if again:
            policy.update(state, coords, probs, np.ones(40), 0.5)
        policy.draw(state, ours, coords, probs, block, replace)
        if replace or block == 1:
            draw(state, theirs, plain, chances)
            np.testing.assert_array_equal(coords, plain)
            np.testing.assert_array_equal(probs, chances)
            assert any(len(set(part.tolist())) < 4 for part in coords.reshape(-1, 4))
        else:
            assert all(len(set(part.tolist())) == 4 for part in coords.reshape(-1, 4))


@pytest.mark.parametrize(
    "make", [lambda: scgd.Uniform().init(P), lambda: fixed_distribution(np.ones(P))]
)
def test_laws_that_never_change_draw_anew(make):
    dist, ours, theirs = make(), words(), words()
    coords, probs = np.zeros(30, np.int64), np.zeros(30)
    plain, chances = coords.copy(), probs.copy()
    update_and_draw(dist, ours, coords, probs, np.ones(30), 0.3)
    draw(dist, theirs, plain, chances)
    np.testing.assert_array_equal(coords, plain)
    assert len(set(coords.tolist())) > 5
    np.testing.assert_allclose(probs, 1 / P)


def test_every_coordinate_may_come_last_in_the_first_sweep():
    policy, last = scgd.RecentGains(), set()
    for seed in range(100):
        coords, probs = np.zeros(3, np.int64), np.zeros(3)
        policy.draw(policy.init(3), words(seed), coords, probs, 1, True)
        last.add(tuple(coords.tolist()))
    assert len(last) == 6


# ---- gradients and gains -------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 2, 5, P])
def test_gauss_southwell_takes_the_largest(block):
    rng = np.random.default_rng(block)
    for _ in range(20):
        gradient = rng.standard_normal(P)
        chosen = np.flatnonzero(scgd.GaussSouthwell().weights_for(gradient, block))
        assert set(chosen.tolist()) == set(np.argsort(-np.abs(gradient))[:block].tolist())
    assert np.count_nonzero(scgd.GaussSouthwell().weights_for(gradient)) == 1


def test_gradient_weights_are_powers():
    gradient = np.array([1.0, -2.0, 0.0, 3.0])
    for power in (0.5, 2.0, 3.0):
        sizes = np.abs(gradient) ** power
        found = scgd.GradientWeights(power).weights_for(gradient)
        np.testing.assert_allclose(found, sizes / sizes.sum(), rtol=1e-12)
    policy = scgd.GradientWeights()
    np.testing.assert_allclose(policy.weights(policy.init(4)), 0.25)


@pytest.mark.parametrize("replace", [True, False])
def test_gradient_weights_repeat_only_with_replacement(replace):
    coords, probs, repeated, ours = np.zeros(3, np.int64), np.zeros(3), 0, words()
    for _ in range(50):
        scgd.GradientWeights().choose(np.array([9.0, 1, 1, 1]), ours, coords, probs, replace)
        repeated += len(set(coords.tolist())) < 3
    assert (repeated > 25) == replace and (repeated == 0) != replace


def test_an_undefined_gradient_counts_as_zero():
    for gain in ("average", "absolute", "square"):
        found = []
        for odd in (np.nan, 0.0):
            dist, out = make_distribution(3, gain=gain), np.empty(3)
            update(dist, np.array([0, 1]), np.full(2, 1 / 3), np.array([odd, 2.0]), 0.1)
            weights(dist, out)
            found.append(out)
        np.testing.assert_array_equal(*found)


def test_signed_sums_keep_their_sign():
    dist = make_distribution(3, gain="average")
    for grad in (2.0, -0.5, -3.0):
        update(dist, np.array([0]), np.array([0.5]), np.array([grad]), 0.1)
    assert dist.signed.tolist() == [-3.0, 0.0, 0.0] and dist.tree[0] == 3.0


# ---- parts ---------------------------------------------------------------------------------------


def test_visits_are_lent_to_those_nearest_to_one():
    credits, queue = np.array([0.2, 0.9, 0.5, 0.6]), np.array([1, 0, 0, 0, 0])
    assert top_up(credits, queue, 0, 1, 3) == 3
    assert queue[:3].tolist() == [1, 3, 2]
    np.testing.assert_allclose(credits, [0.2, 0.9, -0.5, -0.4])


def test_a_block_that_spans_two_rounds_holds_none_twice():
    queue = np.array([4, 2, 2, 0, 4, 1, 3])
    part(queue, 2, 4, 7)
    assert queue[:2].tolist() == [4, 2] and len(set(queue[:4].tolist())) == 4
    assert sorted(queue.tolist()) == [0, 1, 2, 2, 3, 4, 4]
    queue = np.array([4, 2, 0, 1])
    part(queue, 2, 4, 4)
    assert queue.tolist() == [4, 2, 0, 1]


def test_merging_and_ranking():
    left, right = np.array([1, 4, 9]), np.array([0, 5])
    assert merge(left, right).tolist() == [0, 1, 4, 5, 9] == merge(right, left).tolist()
    assert [rank(left, bound) for bound in (0, 1, 2, 4, 5, 9, 10)] == [0, 0, 1, 1, 2, 2, 3]


def test_wide_leaves_are_those_above_the_spacing():
    tree, levels = empty_tree(20)
    tree[:20] = 0.01
    tree[[3, 17]] = 0.5
    refresh(tree, levels)
    found = wide_leaves(tree, levels, 20, 1.0, 0.0, np.empty(0, np.int64), 0.4, 5)
    assert found.tolist() == [3, 17]
    tree[3] = 0.0  # as a draw does with those that are certain
    refresh(tree, levels)
    with_floor = wide_leaves(tree, levels, 20, 1.0, 0.4, np.array([3]), 0.4, 20)
    assert with_floor.tolist() == [k for k in range(20) if k != 3]


@pytest.mark.parametrize("n", [9, 64, 600, 4000])
def test_refreshing_above_is_refreshing_all(n):
    tree, levels = empty_tree(n)
    tree[:n] = np.random.default_rng(n).random(n)
    refresh(tree, levels)
    changed = np.array([0, n // 2, n - 1])
    tree[changed] = [5.0, 6.0, 7.0]
    whole = tree.copy()
    refresh(whole, levels)
    refresh_above(tree, levels, changed)
    np.testing.assert_array_equal(tree, whole)


@pytest.mark.parametrize("mixing", [0.0, 0.4, 1.0])
def test_one_number_settles_coin_and_place(mixing):
    n, ours, theirs = 50, words(), words()
    coords, targets, order = np.zeros(n, np.int64), np.zeros(n), np.zeros(n, np.int64)
    left = split_uniform(ours, coords, targets, order, mixing, 3.0, 10)
    to_tree = []
    for t in range(n):
        u = uniform(theirs)
        if u < mixing:
            assert coords[t] == int(u * 10 / mixing)
        else:
            to_tree.append(t)
            assert coords[t] == 0
            assert targets[t] == pytest.approx(3.0 * (u - mixing) / (1 - mixing), rel=1e-12)
    assert order[:left].tolist() == to_tree


def test_more_heavy_coordinates_than_there_is_room_for():
    dist, n = (
        make_distribution(60, gain="average", normalization="softmax", sharpness=500.0, length=1),
        60,
    )
    small, out = np.zeros(n), np.empty(n)
    update(dist, np.arange(n), np.full(n, 1 / n), small, 0.1)
    for k in range(n):
        update(dist, np.array([k]), np.full(1, 1 / n), np.array([1.0 + 0.01 * k]), 0.1)
        assert dist.heavy[SIZE] <= len(dist.heavy) - HEAVY
        kernels_of(dist).check(dist, make_distribution(n, gain="average", normalization="softmax",
                                            sharpness=500.0, length=1))  # fmt: skip
    sums = np.array([n * (1.0 + 0.01 * k) for k in range(n)])
    shares = np.exp(500.0 / (2 * n) * (sums - sums.max()))
    weights(dist, out)
    np.testing.assert_allclose(out, 0.9 * shares / shares.sum() + 0.1 / n, rtol=1e-9)


# ---- states from elsewhere -----------------------------------------------------------------------


def test_states_are_compared_by_type_and_shape():
    fresh = make_distribution(4)
    check_alike(make_distribution(4), fresh)
    with pytest.raises(
        ValueError, match="the state is a UniformDistribution, not a L1Distribution"
    ):
        check_alike(scgd.Uniform().init(4), fresh)
    with pytest.raises(ValueError, match="tree has float64 of shape"):
        check_alike(make_distribution(40), fresh)
    with pytest.raises(ValueError, match="mixing is list"):
        check_alike(fresh._replace(mixing=[1.0]), fresh)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"at": 2, "to": -1.0}, "out of place"), ({"at": 25, "to": 0.5}, "add up|place"),
        ({"at": 22, "to": 0.5}, "out of place"), ({"at": 0, "to": 9.0}, "does not add up"),
        ({"at": -8, "to": 9.0}, "does not add up"),
    ],
)  # fmt: skip
def test_trees_from_elsewhere(change, message):
    tree, levels = empty_tree(20)
    tree[:20] = 1.0
    refresh(tree, levels)
    check_tree(tree, levels, np.zeros(1), 20)
    tree[change["at"]] = change["to"]
    with pytest.raises(ValueError, match=message):
        check_tree(tree, levels, np.zeros(1), 20)


@pytest.mark.parametrize("mixing", [-0.1, 1.1, np.nan])
def test_shares_from_elsewhere(mixing):
    tree, levels = empty_tree(3)
    with pytest.raises(ValueError, match="not a share"):
        check_tree(tree, levels, np.array([mixing]), 3)
    for fine in (0.0, 1.0):
        check_tree(tree, levels, np.array([fine]), 3)


def refused(policy, message, n=P, **changes):
    state = policy.init(n)
    policy.check_state(state, n)
    for name, (place, value) in changes.items():
        getattr(state, name)[place] = value
    with pytest.raises(ValueError, match=message):
        policy.check_state(state, n)


def test_odd_numbers_in_states_are_refused():
    refused(scgd.Adaptive(), "scores", scores=(0, -1e-9))
    refused(scgd.Adaptive(), "shares", shares=(0, 0.0))
    refused(scgd.Adaptive(), "shares", shares=(0, 0.5))
    refused(scgd.Adaptive(), "credits", credits=(0, 7.0))
    refused(scgd.RecentGains(), ".", n_swept=(0, -1))
    refused(scgd.RecentGains(), ".", shuffled=(0, 2))
    refused(scgd.RecentGains(), "tree", tree=(0, np.nan))
    refused(scgd.Musketeer("absolute"), "the tree of .* finite", tree=(3, np.inf))
    refused(scgd.Musketeer(memory="run"), "negative", counts=(0, -1))
    refused(scgd.Musketeer("average"), "leaves of the distribution|add up", signed=(0, 1.0))
    refused(scgd.Musketeer(), "add up", tree=(0, 1.0))
    refused(scgd.Musketeer(normalization="softmax"), "heavy|room", heavy=(SIZE, 17))
    refused(scgd.Musketeer(memory="run"), "finite", sums=(0, np.nan))
    refused(scgd.Musketeer(memory="run"), "finite", extra=(0, np.inf))
