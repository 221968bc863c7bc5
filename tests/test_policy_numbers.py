"""Numbers of policies that follow from their formulas by hand: rounds, weights, distributions, trees."""

import numpy as np
import pytest
from scipy import sparse

import scgd
from scgd.policies.adaptive import begin_round, draw_visits, part, top_up
from scgd.policies.base import draw, kernels_of, update, weights
from scgd.policies.distribution import make_distribution
from scgd.policies.fixed import coordinate_smoothness, fixed_distribution
from scgd.policies.softmax import REBUILDS, SIZE
from scgd.policies.sumtree import empty_tree
from scgd.random import stream


def words(seed=0):
    return stream(np.random.SeedSequence(seed))


def drawn(policy, state, n, block=1, replace=True, seed=0):
    coords, probs = np.zeros(n, np.int64), np.zeros(n)
    policy.draw(state, words(seed), coords, probs, block, replace)
    return coords, probs


# ---- rounds of shuffled visits -------------------------------------------------------------------


def test_two_rounds_are_plain_and_the_third_follows_the_gains():
    policy = scgd.Adaptive()
    state = policy.init(4)
    state.scores[:] = [100.0, 0.0, 0.0, 0.0]
    for n_round in (1, 2):
        assert sorted(drawn(policy, state, 4)[0].tolist()) == [0, 1, 2, 3]
        assert state.place.tolist() == [4, 4, n_round]
    # least + (1 - least) 4 = 3.625 visits against .125 of each of the others
    coords, probs = drawn(policy, state, 1)
    np.testing.assert_allclose(state.shares, np.array([3.625, 0.125, 0.125, 0.125]) / 4.0)
    assert probs[0] == state.shares[coords[0]]


def test_what_a_round_is_unless_told():
    assert (scgd.Adaptive().least, scgd.Adaptive().most, scgd.Adaptive().forget) == (0.125, 4, 0.5)
    assert scgd.Adaptive(most=1).most == 1.0
    with pytest.raises(ValueError, match="most must be finite and at least 1"):
        scgd.Adaptive(most=0.99)


def test_the_first_coordinate_can_be_the_nearest_to_a_visit():
    credits, queue = np.array([0.9, 0.1, 0.2]), np.zeros(3, np.int64)
    assert top_up(credits, queue, 0, 0, 1) == 1 and queue[0] == 0


def test_only_the_block_that_was_begun_is_parted():
    queue = np.array([7, 7, 3, 7, 4])
    part(queue, 1, 2, 5)
    assert queue.tolist() == [7, 3, 7, 7, 4]


def test_a_round_is_topped_up_to_a_block_beside_what_was_left():
    state = scgd.Adaptive().init(4)
    state.scores[:] = [100.0, 0.0, 0.0, 0.0]
    state.queue[3], state.place[:] = 2, (3, 4, 2)  # one visit left, two rounds begun
    begin_round(state, words(), 3, 0.125, 1.0)  # the gains alone would fill one place
    assert state.place.tolist() == [0, 1 + 3, 3] and state.queue[0] == 2
    assert len(set(state.queue[:3].tolist())) == 3


def test_a_round_is_begun_when_the_next_block_needs_it_and_not_before():
    state = scgd.Adaptive().init(4)
    drawn(scgd.Adaptive(), state, 4, block=2, replace=False)
    assert state.place.tolist() == [4, 4, 1]


@pytest.mark.parametrize("block, replace", [(2, True), (3, True), (2, False), (3, False)])
def test_blocks_are_distinct_where_that_was_asked_for(block, replace):
    policy, ours = scgd.Adaptive(), scgd.Adaptive().init(6)
    theirs = policy.init(6)
    for state in (ours, theirs):
        state.scores[:] = [50.0, 1.0, 0.0, 0.0, 0.0, 0.0]
        state.place[2] = 2
    coords, _ = drawn(policy, ours, 12, block, replace)
    expected, probs = np.zeros(12, np.int64), np.zeros(12)
    how = (1, policy.least, policy.most) if replace else (block, policy.least, 1.0)
    draw_visits(theirs, words(), expected, probs, *how)
    assert coords.tolist() == expected.tolist()
    repeats = any(len(set(part)) < block for part in coords.reshape(-1, block).tolist())
    assert repeats is replace


# ---- weights that are given, or come from a gradient ---------------------------------------------


def test_a_single_weight_is_a_law():
    assert scgd.FixedWeights((2.0,)).values == (2.0,)
    dist = fixed_distribution(np.array([1.0, 3.0]))
    assert dist.tree[dist.levels[-2]] == 1.0 and dist.mixing.tolist() == [0.0]


@pytest.mark.parametrize("kind", [list, np.array, sparse.csr_matrix])
def test_smoothness_of_any_layout(kind):
    X = [[1.0, 2.0, 0.0], [1.0, 0.0, 3.0]]
    found = coordinate_smoothness(kind(X), curvature=0.25, l2=0.5)
    np.testing.assert_allclose(found, [0.75, 1.0, 1.625])


@pytest.mark.parametrize("shape", [(3,), (0, 2), (2, 0)])
def test_smoothness_needs_samples_and_coordinates(shape):
    with pytest.raises(ValueError, match="X must have samples and coordinates"):
        coordinate_smoothness(np.ones(shape))


def test_smoothness_of_a_single_column_and_of_one_that_overflows():
    assert coordinate_smoothness(np.full((3, 1), 2.0)).tolist() == [4.0]
    with pytest.raises(ValueError, match="X must be finite"), np.errstate(over="ignore"):
        coordinate_smoothness(np.array([[1.0, 1e200]]))


@pytest.mark.parametrize("seed", range(5))
def test_a_block_without_replacement_takes_all_that_have_weight(seed):
    coords, probs = np.zeros(2, np.int64), np.zeros(2)
    gradient = np.array([1.0, 0.0, 2.0, 0.0])
    scgd.GradientWeights().choose(gradient, words(seed), coords, probs, False)
    assert sorted(coords.tolist()) == [0, 2]


def test_with_replacement_a_coordinate_without_slope_is_never_taken():
    coords, probs = np.zeros(20, np.int64), np.zeros(20)
    scgd.GradientWeights().choose(np.array([0.0, 1.0, 0.0]), words(), coords, probs, True)
    assert set(coords.tolist()) == {1}


def test_powers_of_slopes_of_any_size():
    assert scgd.GradientWeights().power == 1.0 and scgd.GradientWeights().phase_length(9) == 1
    for size in (1e-200, 1.0, 1e200):
        found = scgd.GradientWeights().weights_for(size * np.array([1.0, -3.0]))
        np.testing.assert_allclose(found, [0.25, 0.75])
    with pytest.raises(ValueError, match="power must"):
        scgd.GradientWeights(power=0)


# ---- distributions ----------------------------------------------------------------------------------------


def test_after_its_sweep_a_law_of_recent_gains_draws_by_weight():
    dist = scgd.RecentGains().init(3)
    dist.n_swept[0], dist.mixing[0] = 3, 0.0
    dist.tree[1], dist.tree[dist.levels[-2]] = 2.0, 2.0
    coords, probs = np.zeros(6, np.int64), np.zeros(6)
    draw(dist, words(), coords, probs)
    assert coords.tolist() == [1] * 6 and probs.tolist() == [1.0] * 6


def test_a_recomputed_law_from_elsewhere_must_have_a_whole_tree():
    dist, fresh = (make_distribution(4, refresh="all") for _ in range(2))
    dist.tree[0] = -1.0
    with pytest.raises(ValueError, match=r"weights|tree"):
        kernels_of(dist).check(dist, fresh)


def test_one_draw_is_divided_by_one():
    dist, out = (
        make_distribution(2, refresh="all", gain="absolute", normalization="softmax"),
        np.empty(2),
    )
    update(dist, np.array([0]), np.array([0.5]), np.array([0.75]), 0.0)
    weights(dist, out)
    assert out[0] / out[1] == pytest.approx(np.exp(dist.sums[0])) and dist.sums[0] > 0


def softmax():
    dist = make_distribution(9, gain="average", normalization="softmax", sharpness=9.0, length=3)
    update(dist, np.array([0, 4, 8]), np.full(3, 1 / 9), np.array([1.0, 0.5, -0.2]), 0.0)
    return dist


def test_softmax_draws_one_at_a_time_and_many_have_one_law():
    dist, out = softmax(), np.empty(9)
    weights(dist, out)
    one, many = np.zeros(1, np.int64), np.zeros(300, np.int64)
    ours, theirs = words(1), words(2)
    singles = []
    for _ in range(300):
        draw(dist, ours, one, np.zeros(1))
        singles.append(int(one[0]))
    draw(dist, theirs, many, np.zeros(300))
    for coords in (singles, many.tolist()):
        found = np.bincount(coords, minlength=9) / 300
        np.testing.assert_allclose(found, out, atol=4 * np.sqrt(out.max() * (1 - out.max()) / 300))


def test_what_can_be_moved_is_not_rebuilt():
    dist = softmax()
    before = int(dist.heavy[REBUILDS])
    update(dist, np.empty(0, np.int64), np.empty(0), np.empty(0), 0.0)  # x stays where it began
    assert dist.heavy[REBUILDS] == before
    size = int(dist.heavy[SIZE])
    update(dist, np.array([2]), np.full(1, 1 / 9), np.array([2.0]), 0.0)  # a new heavy one
    assert dist.heavy[SIZE] == size + 1 and dist.heavy[REBUILDS] == before


# ---- trees ---------------------------------------------------------------------------------------


def test_trees_begin_at_a_cache_line():
    assert all(empty_tree(n)[0].ctypes.data % 64 == 0 for n in (1, 3, 20, 100) for _ in range(8))
