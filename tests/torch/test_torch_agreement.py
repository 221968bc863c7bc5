"""The torch optimizers against the core on the same draws, in double precision."""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from scgd import RMS, SGD, Adam, FixedWeights, Momentum, Musketeer, Uniform  # noqa: E402
from scgd.policies import base as core  # noqa: E402
from scgd.policies.distribution import make_distribution  # noqa: E402
from scgd.policies.mixture import GAINS  # noqa: E402
from scgd.policies.recomputed import MEMORIES, NORMALIZATIONS  # noqa: E402
from scgd.steps import applier, make_slots  # noqa: E402
from scgd.torch import SCGD  # noqa: E402
from scgd.torch.entry_sampler import EntrySampler  # noqa: E402

SHAPES = [(5, 7), (5,), (3, 2, 4), (1,)]
N_COORDS, N_STEPS = 65, 25
NONE = np.empty(0)
POLICIES = [
    Musketeer(gain=gain, normalization=normalization, memory=memory, rescale=rescale)
    for gain, normalization, memory, rescale in itertools.product(
        GAINS, NORMALIZATIONS, MEMORIES, (False, True)
    )
]


def parameters(dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.nn.Parameter(torch.randn(s, generator=generator).to(dtype)) for s in SHAPES]


def flat(tensors):
    return torch.cat([t.detach().reshape(-1) for t in tensors]).numpy().astype(np.float64)


def set_gradients(params, step):
    rng = np.random.default_rng([7, step])
    for p in params:
        p.grad = torch.from_numpy(rng.normal(size=p.shape)).to(p.dtype)
        p.grad *= torch.linspace(0.1, 2.0, p.numel(), dtype=p.dtype).view(p.shape)


def core_distribution(policy):
    if isinstance(policy, Musketeer):
        return make_distribution(
            N_COORDS,
            gain=policy.gain,
            normalization=policy.normalization,
            memory=policy.memory,
            rescale=policy.rescale,
            sharpness=policy.sharpness,
            refresh="all",
        )
    return policy.init(N_COORDS)


def core_weights(distribution):
    out = np.empty(N_COORDS)
    core.weights(distribution, out)
    return out


def factors(importance, probs, n_draws):
    if importance is None:
        return np.ones(len(probs))
    return 1.0 / ((n_draws if importance == "inverse" else N_COORDS) * probs)


def compare_with_core(optimizer, params, rule, drawn):
    """Let the core make the same moves and learn the same gradients."""
    group, distribution = (
        optimizer.param_groups[0],
        core_distribution(optimizer.param_groups[0]["policy"]),
    )
    theta, slots, hyper = flat(params), make_slots(rule, N_COORDS), np.array(rule.hyper)
    for step in range(N_STEPS):
        np.testing.assert_allclose(optimizer.weights(), core_weights(distribution), rtol=1e-12)
        set_gradients(params, step)
        before = flat(params)
        coords, probs = drawn(optimizer, distribution)
        boost, n_draws = getattr(optimizer.samplers[0], "boost", 1.0), optimizer.samplers[0].n_draws
        optimizer.step()
        if coords is None:
            coords = np.flatnonzero(flat(params) != before)
            probs = np.minimum(1, boost * n_draws * core_weights(distribution)[coords]) / n_draws
        grads = flat([p.grad for p in params])[coords] + group["weight_decay"] * theta[coords]
        rates = group["lr"] * factors(group["importance"], probs, optimizer.samplers[0].n_draws)
        applier(rule)(coords, grads, rates, hyper, slots, theta, NONE, NONE)
        mixing = group["policy"].mixing
        mixing = 0.0 if mixing is None else float(mixing(np.array([step + 1.0]))[0])
        core.update(distribution, coords, probs, grads, mixing)
        np.testing.assert_allclose(flat(params), theta, rtol=1e-12, atol=1e-14)


def pending(optimizer, distribution):
    draw = optimizer.samplers[0].draw()
    return draw.coords, draw.probs


def changed(optimizer, distribution):
    return None, None


@pytest.mark.parametrize("sampling", ["poisson", "distinct", "sequential", "replacement"])
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_any_policy_and_sampling_agrees_with_the_core(policy, sampling):
    params = parameters()
    optimizer = SCGD(
        params, 0.1, half_life=None, fraction=0.2, policy=policy, sampling=sampling, seed=3
    )
    compare_with_core(optimizer, params, SGD(), pending)


@pytest.mark.parametrize("importance", [None, "inverse", "relative"])
@pytest.mark.parametrize(
    "policy", [Uniform(), Musketeer(), Musketeer(gain="square"), Musketeer(gain="average")], ids=str
)
def test_the_fused_pass_agrees_with_the_core(policy, importance):
    params = parameters()
    optimizer = SCGD(
        params,
        0.1,
        half_life=None,
        fraction=0.3,
        policy=policy,
        importance=importance,
        weight_decay=0.01,
        seed=3,
    )
    assert optimizer._fused_views(0, optimizer.param_groups[0]) is not None
    compare_with_core(optimizer, params, SGD(), changed)


@pytest.mark.parametrize("sampling", ["poisson", "distinct", "replacement"])
@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"momentum": 0.9}, Momentum(0.9)),
        ({"momentum": 0.8, "nesterov": True}, Momentum(0.8, nesterov=True)),
        ({"rule": "rms"}, RMS(0.999, 1e-8)),
        ({"rule": "adam", "betas": (0.8, 0.9)}, Adam(0.8, 0.9, 1e-8)),
    ],
    ids=str,
)
def test_update_rules_agree_with_the_core(settings, rule, sampling):
    params = parameters()
    optimizer = SCGD(
        params,
        0.1,
        half_life=None,
        fraction=0.3,
        sampling=sampling,
        importance="inverse",
        seed=1,
        **settings,
    )
    compare_with_core(optimizer, params, rule, pending)


def test_fixed_weights_agree_with_the_core():
    params = parameters()
    policy = FixedWeights(tuple(np.linspace(0.1, 3.0, N_COORDS)))
    optimizer = SCGD(
        params, 0.1, half_life=None, fraction=0.2, policy=policy, sampling="distinct", seed=3
    )
    compare_with_core(optimizer, params, SGD(), pending)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("policy", [Uniform(), Musketeer(), Musketeer(gain="average")], ids=str)
def test_the_fused_pass_makes_the_draw_that_is_announced(policy, dtype):
    fused, gathered = parameters(dtype), parameters(dtype)
    one, two = (SCGD(params, 0.1, policy=policy, seed=5) for params in (fused, gathered))
    for step in range(N_STEPS):
        set_gradients(fused, step)
        set_gradients(gathered, step)
        two.samplers[0].draw()
        one.step()
        two.step()
        torch.testing.assert_close(fused, gathered, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(one.weights(), two.weights(), rtol=1e-4)


@pytest.mark.parametrize("gain", GAINS)
@pytest.mark.parametrize("granularity", ["rows", "chunks", "tensors"])
def test_units_are_the_cores_sampler_on_mean_gains(granularity, gain):
    params = parameters()
    policy = Musketeer(gain=gain, length=6)
    optimizer = SCGD(
        params, 0.1, half_life=None, block_size=2, granularity=granularity, policy=policy, seed=2
    )
    distribution, layout = (
        make_distribution(optimizer.layouts[0].n_units, gain=gain),
        optimizer.layouts[0],
    )
    units, probs, grads, n_phases = [], [], [], 0
    for step in range(N_STEPS):
        set_gradients(params, step)
        drawn, weights = (a.copy() for a in optimizer.samplers[0].core.block())
        before, gradient = flat(params), flat([p.grad for p in params])
        optimizer.step()
        expected = before.copy()
        for unit, weight in zip(drawn, weights, strict=True):
            here = slice(layout.starts[unit], layout.starts[unit + 1])
            expected[here] -= 0.1 * gradient[here]
            size = {"average": np.mean, "absolute": lambda g: np.mean(np.abs(g))}.get(
                gain, lambda g: np.sqrt(np.mean(g**2))
            )
            units.append(unit), probs.append(weight), grads.append(size(gradient[here]))
        np.testing.assert_allclose(flat(params), expected, rtol=1e-12)
        if len(units) == 6:
            n_phases += 1
            mixing = float(policy.mixing(np.array([n_phases]))[0])
            core.update(distribution, np.array(units), np.array(probs), np.array(grads), mixing)
            units, probs, grads = [], [], []
            out = np.empty(layout.n_units)
            core.weights(distribution, out)
            np.testing.assert_allclose(optimizer.weights(), out, rtol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e38])
@pytest.mark.parametrize("policy", [Musketeer(gain="square"), POLICIES[-1]], ids=str)
def test_gains_stay_finite_whatever_the_gradient(policy, bad):
    params = parameters(torch.float32)
    optimizer = SCGD(params, 1e-3, fraction=0.5, policy=policy, seed=0)
    for step in range(6):
        set_gradients(params, step)
        params[0].grad[2, 3] = bad
        optimizer.step()
        weights = optimizer.weights()
        assert np.all(np.isfinite(weights)) and weights.sum() == pytest.approx(1, abs=1e-5)
    others = flat(params)
    others[2 * 7 + 3] = 0.0
    assert np.all(np.isfinite(others))


def test_an_undrawn_nan_gradient_moves_nothing():
    p = torch.nn.Parameter(torch.zeros(1000))
    optimizer = SCGD([p], 1.0, fraction=0.1, seed=0)
    p.grad = torch.full_like(p, torch.nan)
    optimizer.step()
    assert 50 < int(p.isnan().sum()) < 150
    assert torch.equal(p[~p.isnan()], torch.zeros(int((~p.isnan()).sum())))
    assert isinstance(optimizer.samplers[0], EntrySampler)


@pytest.mark.parametrize("gain", GAINS)
def test_a_nan_gradient_earns_nothing_in_the_fused_pass_as_in_the_core(gain):
    params, bad = parameters(), 2 * 7 + 3
    optimizer = SCGD(
        params, 1e-3, half_life=None, fraction=0.5, policy=Musketeer(gain=gain), seed=0
    )
    distribution, seen = core_distribution(optimizer.param_groups[0]["policy"]), []
    for step in range(N_STEPS):
        set_gradients(params, step)
        if step > 10:
            params[0].grad[2, 3] = np.nan
        grads = flat([p.grad for p in params])
        coords, probs = optimizer.samplers[0].draw()[:2]
        optimizer.samplers[0].pending = None  # the fused pass draws again, the same
        seen.append(bad in coords)
        optimizer.step()
        mixing = float(optimizer.samplers[0].mixings.at(step + 1))
        core.update(distribution, coords, probs, grads[coords], mixing)
        # Probabilities are multiples of 2^-30 in the fused pass.
        np.testing.assert_allclose(optimizer.weights(), core_weights(distribution), rtol=1e-6)
    assert any(seen[:10]) and any(seen[11:])
    assert optimizer.weights()[bad] > core_weights(distribution).min()
