"""The contract of every policy, and what the paper says about them."""

import pickle
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import scgd
from asking import steps_of
from policy_reference import CHOICES, REFERENCES
from registry import CURVATURES, EVERY_POLICY, GREEDY, MINIMUM, POLICIES, P, quadratic
from scgd.policies import Policy
from scgd.random import stream
from scgd.sampler import CoordinateSampler
from skeletons import run_page


def make(policy, seed=0, p=P, **keywords):
    return CoordinateSampler(policy, p, stream(np.random.SeedSequence(seed)), **keywords)


def learn(sampler, n_phases, slopes=None):
    """Show the sampler noisy gradients with given mean slopes."""
    slopes = np.linspace(0.2, 2.0, sampler.n_coords) if slopes is None else slopes
    noise = np.random.default_rng(0)
    for _ in range(n_phases):
        sampler.grads[:] = slopes[sampler.coords] * (
            1 + 0.1 * noise.standard_normal(sampler.n_draws)
        )
        sampler.advance(sampler.n_draws)


def fits(counts, expected):
    keep = expected > 0
    assert np.all(counts[~keep] == 0)
    p_value = stats.chisquare(
        counts[keep], expected[keep] * counts.sum() / expected[keep].sum()
    ).pvalue
    assert p_value > 1e-4


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("n_phases", [0, 3000])
def test_draws_fit_the_weights(name, n_phases):
    sampler = make(POLICIES[name])
    learn(sampler, n_phases)
    weights = sampler.weights()
    assert np.isclose(weights.sum(), 1.0, rtol=1e-12)
    coords, probs = np.zeros(100_000, np.int64), np.zeros(100_000)
    sampler.policy.draw(sampler.state, sampler.stream, coords, probs, 1, True)
    fits(np.bincount(coords, minlength=P), weights)
    np.testing.assert_allclose(probs, weights[coords], rtol=1e-10)


@pytest.mark.parametrize("name", POLICIES)
def test_distinct_blocks_have_the_stated_inclusion(name):
    sampler = make(POLICIES[name], block_size=4, replace=False)
    learn(sampler, 300)
    included, stated = np.zeros(P), np.zeros(P)
    n_blocks = 20_000
    coords, probs = np.zeros(4, np.int64), np.zeros(4)
    for _ in range(n_blocks):
        sampler.policy.draw(sampler.state, sampler.stream, coords, probs, 4, False)
        assert len(set(coords.tolist())) == 4
        included[coords] += 1
        stated[coords] = 4 * probs
    error = np.sqrt(np.maximum(stated * (1 - stated), 1e-12) / n_blocks)
    assert np.all(np.abs(included / n_blocks - stated) < 5 * error + 1e-9)
    assert np.isclose(stated.sum(), 4.0)


def base_name(name):
    return max((n for n in scgd.POLICIES if name.startswith(n)), key=len)


def phases_of(sampler, n_phases, seed=0):
    """Let a sampler learn noisy gradients, now and then all zero, and return what it saw."""
    rng, phases = np.random.default_rng(seed), []
    slopes = rng.normal(size=sampler.n_coords) * 2.0 ** np.arange(sampler.n_coords) / 1e3
    for n in range(n_phases):
        progress = n / n_phases
        sampler.policy.pace(sampler.state, progress)
        coords, probs = sampler.coords.copy(), sampler.probs.copy()
        grads = slopes[coords] * (1 + rng.normal(size=len(coords))) * (n > 1)
        sampler.grads[:] = grads
        sampler.advance(sampler.n_draws)
        saw = coords.tolist(), probs.tolist(), grads.tolist()
        phases.append((*saw, sampler.mixings.at(n + 1), progress))
    return phases


@pytest.mark.parametrize("n_phases", [0, 1, 2, 3, 25, 120])
@pytest.mark.parametrize("name", [name for name in EVERY_POLICY if name not in GREEDY])
def test_weights_are_those_of_the_formula(name, n_phases):
    """With the same draws; after phases of nothing but zeros too."""
    sampler, reference = make(EVERY_POLICY[name]), REFERENCES[base_name(name)]
    expected = reference(sampler.policy, phases_of(sampler, n_phases), P)
    np.testing.assert_allclose(sampler.weights(), expected, rtol=1e-9)
    if not isinstance(sampler.policy, scgd.RecentGains | scgd.Adaptive):  # whose draws are sweeps
        np.testing.assert_allclose(sampler.probs, expected[sampler.coords], rtol=1e-9)


def test_every_policy_has_a_reference():
    assert REFERENCES.keys() | CHOICES.keys() == scgd.POLICIES.keys()


@pytest.mark.parametrize("name", POLICIES)
def test_the_mixing_is_that_of_the_phase(name):
    mixing, sampler = POLICIES[name].mixing, make(POLICIES[name])
    learn(sampler, 300)
    if mixing is not None:
        given = mixing(np.arange(1, 301)) if callable(mixing) else mixing
        for n in (1, 2, 256, 257, 300):
            expected = np.broadcast_to(given, 300)[n - 1]
            assert sampler.mixings.at(n) == min(1.0, float(expected))


@pytest.mark.parametrize("mixing", [lambda n: [0.1, 0.2], lambda n: np.nan, lambda n: n * np.inf])
def test_a_mixing_that_misbehaves_is_named(mixing):
    with pytest.raises(ValueError, match="mixing must"):
        learn(make(scgd.Musketeer(mixing=mixing)), 1)


def test_the_mixing_may_be_a_function_that_returns_one_number():
    sizes, keywords = {"learning_rate": 0.1, "radius": 0.1}, {"max_evals": 400, "seed": 0}
    plain = scgd.minimize(
        quadratic,
        np.zeros(P),
        method=scgd.SCGD(policy=scgd.Musketeer(mixing=0.2), **sizes),
        **keywords,
    )
    given = scgd.Musketeer(mixing=lambda n: 0.2)
    np.testing.assert_array_equal(
        scgd.minimize(
            quadratic, np.zeros(P), method=scgd.SCGD(policy=given, **sizes), **keywords
        ).x,
        plain.x,
    )


@pytest.mark.parametrize("block_size, replace", [(1, True), (5, True), (5, False)])
def test_recent_gains_sweep_every_coordinate_first(block_size, replace):
    sampler = make(scgd.RecentGains(), seed=3, block_size=block_size, replace=replace)
    drawn = []
    while len(drawn) < P:
        drawn += sampler.coords.tolist()
        np.testing.assert_allclose(sampler.probs, 1 / P)
        learn(sampler, 1)
    assert sorted(drawn[:P]) == list(range(P)) and drawn[:P] != list(range(P))
    orders = {tuple(make(scgd.RecentGains(), seed=s, block_size=P).coords) for s in range(20)}
    assert len(orders) == 20
    first = [int(make(scgd.RecentGains(), seed=s, p=2, block_size=2).coords[0]) for s in range(40)]
    assert 8 <= sum(first) <= 32


@pytest.mark.parametrize("block", [1, 3])
@pytest.mark.parametrize("name", GREEDY)
def test_greedy_policies_choose_from_the_gradient(name, block):
    policy, gradient = (
        GREEDY[name],
        np.linspace(-1.0, 2.0, P)[np.random.default_rng(1).permutation(P)],
    )
    expected = CHOICES[base_name(name)](policy, gradient.tolist(), block)
    np.testing.assert_allclose(policy.weights_for(gradient, block), expected, rtol=1e-12)
    sampler, counts, stated = make(policy, block_size=block, replace=False), np.zeros(P), {}
    for _ in range(3000):
        coords, probs = sampler.block(gradient)
        assert len(set(coords.tolist())) == block
        counts[coords] += 1
        stated.update(zip(coords.tolist(), (block * probs).tolist(), strict=True))
        sampler.record(np.zeros(block))
    for k, inclusion in stated.items():
        error = np.sqrt(inclusion * (1 - inclusion) / 3000)
        assert abs(counts[k] / 3000 - inclusion) < 5 * error + 1e-9
    if block == 1:
        np.testing.assert_allclose(
            list(stated.values()), np.array(expected)[list(stated)], rtol=1e-12
        )
        assert sum(stated.values()) > 0.99


def test_greedy_policies_need_no_slope():
    """Where all partial derivatives vanish every coordinate is as good."""
    np.testing.assert_allclose(scgd.GradientWeights().weights_for(np.zeros(P)), 1 / P)
    sampler = make(scgd.GradientWeights(), block_size=3, replace=False)
    seen = set()
    for _ in range(200):
        seen |= set(sampler.block(np.eye(P)[0])[0].tolist())
    assert seen == set(range(P))


@pytest.mark.parametrize("policy", EVERY_POLICY.values(), ids=EVERY_POLICY)
def test_policies_are_values(policy):
    if "lambda" not in repr(policy):
        assert pickle.loads(pickle.dumps(policy)) == policy
    assert repr(policy).startswith(type(policy).__name__)


# ---- states from elsewhere -----------------------------------------------------------------------


def odd_values(array):
    """Yield arrays of the same type and shape that were changed in one place."""
    if array.dtype.kind == "f":
        bad = [np.nan, np.inf, -1.0, 1e300]
    else:
        bad = [-1, P, 2**40]
    for place in {0, array.size // 2, array.size - 1}:
        for value in bad:
            changed = array.copy()
            changed.flat[place] = value
            yield changed


@pytest.mark.parametrize("name", EVERY_POLICY)
def test_a_state_is_taken_up_bit_for_bit(name):
    sampler, other = make(EVERY_POLICY[name]), make(EVERY_POLICY[name], seed=1)
    rng = np.random.default_rng(0)
    for _ in range(200):
        sampler.block(rng.normal(size=P))
        sampler.record(rng.normal(size=sampler.block_size))
    other.load_state_dict(sampler.state_dict())
    for _ in range(100):
        gradient, grads = rng.normal(size=P), rng.normal(size=sampler.block_size)
        for mine, its in zip(sampler.block(gradient), other.block(gradient), strict=True):
            np.testing.assert_array_equal(mine, its)
        assert sampler.record(grads) == other.record(grads)
    np.testing.assert_array_equal(sampler.weights(), other.weights())


@pytest.mark.parametrize("name", EVERY_POLICY)
def test_a_state_that_could_do_harm_is_refused_or_harmless(name):
    """Whatever one value is changed to: no draw leaves the coordinates, no loop goes on for ever."""
    sampler = make(EVERY_POLICY[name])
    if not sampler.policy.needs_gradient:
        learn(sampler, 40)
    good, refused = sampler.state_dict(), 0
    for field, array in good["distribution"].items():
        for changed in odd_values(array) if array.size else ():
            other = make(EVERY_POLICY[name])
            try:
                other.load_state_dict(
                    {**good, "distribution": {**good["distribution"], field: changed}}
                )
            except ValueError:
                refused += 1
                continue
            if sampler.policy.needs_gradient:
                continue
            learn(other, 3)
            assert np.all((other.coords >= 0) & (other.coords < P))
            assert np.all((other.probs > 0) & (other.probs <= 1 + 1e-9))
    assert refused > 0


STATE_FAULTS = [
    ({"coords": np.zeros(2, np.int64)}, "coords has int64 of shape"),
    ({"coords": np.full(3, P)}, "coords are outside of the 12 coordinates"),
    ({"coords": np.full(3, -1)}, "coords are outside"),
    ({"coords": [0, 1, 2]}, "coords is list, not an array"),
    ({"probs": np.zeros(3)}, "probs are not probabilities"),
    ({"probs": np.full(3, 1.5)}, "probs are not probabilities"),
    ({"grads": np.full(3, np.nan)}, "grads are not finite"),
    ({"grads": np.zeros(3, np.float32)}, "grads has float32"),
    ({"stream": np.zeros(4, np.uint64)}, "stream is zero"),
    ({"position": 3}, "position is 3"),
    ({"position": -1}, "position is -1"),
    ({"position": 0.5}, "position is 0.5"),
    ({"n_phases": -1}, "n_phases is -1"),
    ({"distribution": {}}, "the distribution of the sampler must have the names"),
    ({"more": 1}, "the state of the sampler must have the names"),
]


@pytest.mark.parametrize("change, message", STATE_FAULTS)
def test_a_bad_state_is_named_and_leaves_the_sampler_alone(change, message):
    sampler = make(scgd.Musketeer())
    learn(sampler, 5)
    before = sampler.state_dict()
    with pytest.raises(ValueError, match=message):
        sampler.load_state_dict({**before, **change})
    after = sampler.state_dict()
    assert after["position"] == before["position"] and after["n_phases"] == before["n_phases"]
    for name in ("coords", "probs", "grads", "stream"):
        np.testing.assert_array_equal(after[name], before[name])


def test_a_position_in_the_middle_of_a_block_is_refused():
    sampler = make(scgd.Musketeer(length=8), block_size=4)
    state = sampler.state_dict()
    sampler.load_state_dict({**state, "position": 4})
    with pytest.raises(ValueError, match="position is 3, not the start of a step"):
        sampler.load_state_dict({**state, "position": 3})


@pytest.mark.parametrize("other", [scgd.Musketeer("square"), scgd.Uniform(), scgd.RecentGains()])
def test_the_state_of_another_policy_is_refused(other):
    state, sampler = make(other).state_dict(), make(scgd.Musketeer())
    state["coords"], state["probs"], state["grads"] = sampler.coords, sampler.probs, sampler.grads
    with pytest.raises(ValueError, match=r"another policy's|must have the names"):
        sampler.load_state_dict(state)


# ---- policies of one's own -----------------------------------------------------------------------


def test_the_skeleton_of_the_page_runs():
    policy = run_page(Path(__file__).parents[1] / "docs" / "adding-a-policy.md")["Cyclic"](stride=5)
    sampler = make(policy, seed=4)
    first = sampler.coords.copy()
    np.testing.assert_array_equal(first, (first[0] + 5 * np.arange(P)) % P)
    learn(sampler, 1)
    np.testing.assert_array_equal(sampler.coords, first)
    other = make(policy)
    other.load_state_dict(sampler.state_dict())
    np.testing.assert_array_equal(other.coords, first)
    for parts in ({}, {"block_size": 4}, {"estimator": "spsa", "block_size": 3}):
        result = scgd.minimize(
            quadratic, np.zeros(P), max_evals=1000, seed=0, method=scgd.SCGD(policy=policy, **parts)
        )
        assert result.fun < 0.1 * quadratic(np.zeros(P))


@dataclass(frozen=True)
class Paced(scgd.Uniform):
    """Notes what it is told."""

    heard: tuple = ()
    notes = []  # noqa: RUF012

    def pace(self, state, progress):
        self.notes.append(progress)


def test_a_policy_is_paced_by_the_budget():
    assert Paced().paced and not scgd.Uniform().paced and scgd.RecentGains().paced
    Paced.notes.clear()
    scgd.minimize(
        quadratic, np.zeros(P), max_evals=244, scale=1.0, seed=0, method=scgd.SCGD(policy=Paced())
    )
    # Four evaluations tell whether f repeats itself; one pair per step, three steps per phase.
    expected = np.arange(0, 120, 3) / 120
    np.testing.assert_allclose(sorted(set(Paced.notes))[: len(expected)], expected)


def test_what_is_no_policy_is_refused():
    with pytest.raises(TypeError, match=r"policy must be a scgd\.policies\.Policy, got <object"):
        make(object())
    with pytest.raises(NotImplementedError):
        make(Policy())


@pytest.mark.parametrize("gain", ["average", "absolute", "square"])
def test_l1_weights_are_bounded_below(gain):
    sampler = make(scgd.Musketeer(gain=gain, mixing=0.2))
    learn(sampler, 500, slopes=np.eye(P)[0])
    assert sampler.weights().min() >= 0.2 / P * (1 - 1e-12)


def gradients(draw_from):
    return st.lists(draw_from, min_size=P, max_size=P).map(np.array)


finite = st.floats(-1e3, 1e3, allow_subnormal=False)


@given(
    slopes=gradients(finite),
    order=st.permutations(range(P)),
    normalization=st.sampled_from(["l1", "softmax"]),
)
def test_permuting_coordinates_permutes_weights(slopes, order, normalization):
    policy = scgd.Musketeer(normalization=normalization, sharpness=0.01)
    order = np.array(order)
    here, there = policy.init(P), policy.init(P)
    coords, probs = np.arange(P), np.full(P, 1 / P)
    for _ in range(3):
        policy.update(here, coords, probs, slopes, 0.3)
        policy.update(there, order[coords], probs, slopes, 0.3)
    np.testing.assert_allclose(policy.weights(there)[order], policy.weights(here), rtol=1e-9)


@given(slopes=gradients(finite), factor=st.floats(1e-6, 1e6))
def test_scaling_gradients_leaves_l1_weights(slopes, factor):
    policy = scgd.Musketeer()
    here, there = policy.init(P), policy.init(P)
    coords, probs = np.arange(P), np.full(P, 1 / P)
    policy.update(here, coords, probs, slopes, 0.3)
    policy.update(there, coords, probs, factor * slopes, 0.3)
    np.testing.assert_allclose(policy.weights(there), policy.weights(here), rtol=1e-9)


def mean_step(policy, importance, block_size=1, replace=True):
    """The expected move from fixed exact gradients, by simulation, and its standard error."""
    recipe = scgd.SCGD(
        policy=policy,
        learning_rate=1.0,
        importance=importance,
        block_size=block_size,
        replace=replace,
    )
    opt = scgd.Optimizer(np.zeros(P), recipe, first_order=True, seed=1)
    point, gradient = steps_of(opt).point, CURVATURES * MINIMUM + 0.1
    moves = np.zeros((20_000, P))
    for move in moves:
        point.put(np.zeros(P))
        (trial,) = opt.ask()
        if trial.coords is None:  # now and then a run by derivatives looks at f
            opt.tell(trial.id, 0.0)
            (trial,) = opt.ask()
        opt.tell(trial.id, gradient[trial.coords])
        move[:] = -point.x
    return moves.mean(axis=0), moves.std(axis=0) / np.sqrt(len(moves)), gradient


@pytest.mark.parametrize("block_size, replace", [(1, True), (3, True), (3, False)])
def test_importance_steps_average_to_the_gradient(block_size, replace):
    fixed = POLICIES["fixed-weights"]
    mean, error, gradient = mean_step(fixed, "inverse", block_size, replace)
    assert np.all(np.abs(mean - gradient) < 5 * error + 1e-12)


def test_uniform_is_the_only_unbiased_plain_policy():
    """Proposition 2: the mean step is D grad f, proportional to the gradient only if D = I/p."""
    mean, error, gradient = mean_step(scgd.Uniform(), None)
    assert np.all(np.abs(mean - gradient / P) < 5 * error)
    mean, error, gradient = mean_step(POLICIES["fixed-weights"], None)
    weights = np.arange(1, P + 1) / np.sum(np.arange(1, P + 1))
    assert np.all(np.abs(mean - weights * gradient) < 5 * error)
    scaled = gradient * (mean @ gradient) / (gradient @ gradient)
    assert np.any(np.abs(mean - scaled) > 10 * error)


def noisy_softmax_weights(gain):
    """The distribution after a long run on a noisy quadratic with a vanishing learning rate."""
    noise = np.random.default_rng(0)
    policy = scgd.Musketeer(gain=gain, normalization="softmax", sharpness=1.0, mixing=0.5)
    sampler, theta = make(policy), MINIMUM + 1.0
    for t in range(30_000):
        coords, _ = sampler.block()
        k = coords[0]
        spread = 0.2 + (k == 0) * 1.5
        grad = CURVATURES[k] * (theta[k] - MINIMUM[k]) + spread * noise.standard_normal()
        theta[k] -= 20.0 / (t / P + 20) * grad / 2
        sampler.record(np.array([grad]))
    return sampler.weights()


def test_softmax_weights_of_the_average_gain_tend_to_uniform():
    """Theorem 5, for the average gain; noise keeps the other gains, and their weights, apart."""
    assert P * noisy_softmax_weights("average").max() < 1.1
    assert P * noisy_softmax_weights("absolute").max() > 1.3
    assert P * noisy_softmax_weights("square").max() > 1.6


def test_coordinates_are_independent_of_samples():
    """Assumption 2: the coordinates drawn do not tell the rows drawn."""
    opt = scgd.Optimizer(
        np.zeros(4),
        scgd.SCGD(policy="uniform", learning_rate=1e-9, radius=1.0),
        sample=5,
        seed=0,
    )
    table = np.zeros((4, 5))
    for _ in range(20_000):
        low, high = opt.ask()
        (k,), (row,) = np.flatnonzero(low.x != high.x), low.arguments[0]
        assert np.array_equal(low.arguments, high.arguments)
        table[k, row] += 1
        opt.tell([low.id, high.id], [0.0, 0.0])
    assert stats.chi2_contingency(table).pvalue > 1e-3


def test_smoothness_of_linear_losses():
    X = np.random.default_rng(0).standard_normal((40, P))
    expected = np.diag(X.T @ X) / 40 * 0.25 + 0.1
    np.testing.assert_allclose(scgd.coordinate_smoothness(X, curvature=0.25, l2=0.1), expected)
