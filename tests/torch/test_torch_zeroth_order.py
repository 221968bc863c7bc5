"""Zeroth-order steps: the same arithmetic as the core, exact restoring, honest refusals."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from networks import batch, perceptron  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from scgd import Musketeer, SphereSmoothing, Uniform  # noqa: E402
from scgd.policies import base as core  # noqa: E402
from scgd.torch import ZeroOrderSCGD  # noqa: E402
from scgd.torch.directions import SparseMeZO  # noqa: E402

DIRECTIONS = ["gaussian", "sphere", "spsa", "mezo", "sparse-mezo"]


def closure_of(model, dtype=torch.float64):
    x, y = batch(dtype)
    return lambda: F.cross_entropy(model(x), y)


def flat(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()]).double().numpy()


def values(model):
    return [p.detach().clone() for p in model.parameters()]


@pytest.mark.parametrize("estimator", ["forward", "central"])
@pytest.mark.parametrize("importance", [None, "inverse", "relative"])
@pytest.mark.parametrize(
    "policy",
    [Uniform(), Musketeer(length=8), Musketeer(memory="run", length=8),
     Musketeer(normalization="softmax", gain="average", length=8)],
    ids=str,
)  # fmt: skip
def test_steps_agree_with_the_core(policy, importance, estimator):
    model, block_size, radius, lr = perceptron(), 2, 1e-3, 0.5
    closure, n_coords = closure_of(model), sum(p.numel() for p in model.parameters())
    optimizer = ZeroOrderSCGD(
        model.parameters(), lr, radius=radius, estimator=estimator, policy=policy,
        block_size=block_size, importance=importance, seed=4,
    )  # fmt: skip
    distribution = policy.init(n_coords, replace=False)
    drawn, probs, grads, n_phases, theta = [], [], [], 0, flat(model)
    vector = torch.nn.utils.parameters_to_vector(model.parameters()).detach()

    def loss_at(point):
        torch.nn.utils.vector_to_parameters(torch.from_numpy(point), model.parameters())
        with torch.no_grad():
            return closure().item()

    for _ in range(24):
        coords, weights = (a.copy() for a in optimizer.samplers[0].core.block())
        saved = theta.copy()
        for k, weight in zip(coords, weights, strict=True):
            up, down = saved.copy(), saved.copy()
            up[k] += radius
            down[k] -= radius if estimator == "central" else 0.0
            grad = (loss_at(up) - loss_at(down)) / (up[k] - down[k])
            base = {"inverse": block_size, "relative": n_coords}.get(importance)
            theta[k] -= lr * grad / (1.0 if base is None else base * weight)
            drawn.append(k), probs.append(weight), grads.append(grad)
        torch.nn.utils.vector_to_parameters(torch.from_numpy(saved), model.parameters())
        optimizer.step(closure)
        np.testing.assert_allclose(flat(model), theta, rtol=1e-9, atol=1e-11)
        if len(drawn) == 8:
            n_phases += 1
            mixing = 0.0 if policy.mixing is None else float(policy.mixing(np.array([n_phases]))[0])
            core.update(distribution, np.array(drawn), np.array(probs), np.array(grads), mixing)
            drawn, probs, grads = [], [], []
            np.testing.assert_allclose(optimizer.weights(), policy.weights(distribution), rtol=1e-6)
    assert vector.shape[0] == n_coords


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("estimator", ["forward", "central"])
def test_parameters_come_back_exactly(estimator, dtype):
    model = perceptron(dtype)
    optimizer = ZeroOrderSCGD(
        model.parameters(), 1e-30, radius=0.05, estimator=estimator, block_size=5, seed=0
    )
    before, closure = values(model), closure_of(model, dtype)
    for _ in range(100):
        optimizer.step(closure)
    assert all(torch.equal(a, b) for a, b in zip(before, values(model), strict=True))
    assert all(p.grad is None for p in model.parameters())


def test_seeded_directions_drift_and_copies_do_not():
    drifts = {}
    for keep_copy in (False, True):
        model = perceptron(torch.bfloat16)
        optimizer = ZeroOrderSCGD(
            model.parameters(), 1e-30, radius=1e-2, estimator="mezo", keep_copy=keep_copy, seed=0
        )
        before, closure = flat(model), closure_of(model, torch.bfloat16)
        for _ in range(50):
            optimizer.step(closure)
        drifts[keep_copy] = np.abs(flat(model) - before).max()
    assert drifts[True] == 0 < drifts[False]


@pytest.mark.parametrize("policy", ["full", "uniform"])
@pytest.mark.parametrize("estimator", DIRECTIONS)
def test_directional_steps_average_to_the_gradient(estimator, policy):
    if estimator == "sparse-mezo":
        if policy == "uniform":
            return
        estimator = SparseMeZO(kept=1.0)
    slopes = torch.linspace(-1, 2, 12, dtype=torch.float64).view(3, 4)
    theta = nn.Parameter(torch.zeros(3, 4, dtype=torch.float64))
    settings = {} if policy == "full" else {"granularity": "rows", "block_size": 1}
    optimizer = ZeroOrderSCGD(
        [theta], 1.0, radius=1e-3, estimator=estimator, policy=policy, seed=1, **settings
    )
    moves = []
    for _ in range(1500):
        with torch.no_grad():
            theta.zero_()
        optimizer.step(lambda: (theta * slopes).sum())
        moves.append(theta.detach().clone())
    mean, error = torch.stack(moves).mean(0), torch.stack(moves).std(0) / 1500**0.5
    share = 1.0 if policy == "full" else 1 / 3
    assert ((mean + share * slopes).abs() / error).max() < 4.5


def test_the_published_sphere_leaves_the_dimension_out():
    for unbiased, factor in ((True, 12.0), (False, 1.0)):
        theta = nn.Parameter(torch.zeros(12, dtype=torch.float64))
        optimizer = ZeroOrderSCGD(
            [theta], 1.0, radius=1e-3, estimator=SphereSmoothing(unbiased=unbiased), seed=0
        )
        optimizer.step(lambda: theta.sum())  # noqa: B023
        move = theta.detach() / factor  # -(sum of u) u for a unit vector u
        assert float(move.sum()) == pytest.approx(-(float(move.norm()) ** 2), rel=1e-6)


def test_sparse_mezo_moves_small_entries_only():
    theta = nn.Parameter(torch.linspace(-1, 1, 100))
    optimizer = ZeroOrderSCGD(
        [theta], 0.01, radius=1e-3, estimator=SparseMeZO(kept=0.3), seed=0, keep_copy=True
    )
    before = theta.detach().clone()
    for _ in range(5):
        optimizer.step(lambda: theta.square().sum())
    moved = theta.detach() != before
    assert 0 < int(moved.sum()) <= 30 and before[moved].abs().max() <= 0.31


@pytest.mark.parametrize("rule", ["sgd", "rms", "adam"])
@pytest.mark.parametrize("granularity", ["coordinates", "rows", "chunks", "tensors"])
def test_training_lowers_the_loss(granularity, rule):
    model = perceptron(torch.float32)
    closure = closure_of(model, torch.float32)
    optimizer = ZeroOrderSCGD(
        model.parameters(), 1.0 if rule == "sgd" else 0.05, radius=1e-2, rule=rule,
        granularity=granularity, seed=0, estimator="forward",
    )  # fmt: skip
    first = closure().item()
    for _ in range(400):
        loss = optimizer.step(closure)
    assert loss.item() < 0.9 * first
    assert optimizer.n_forwards == 800


def test_maximize_climbs():
    for estimator in ("forward", "spsa"):
        theta = nn.Parameter(torch.ones(4))
        optimizer = ZeroOrderSCGD(
            [theta], 0.1, radius=1e-2, estimator=estimator, maximize=True, seed=0
        )
        first = theta.sum().item()
        for _ in range(20):
            optimizer.step(lambda: theta.sum())  # noqa: B023
        assert theta.sum().item() > first


def test_dropout_is_the_same_in_all_probes_of_a_step():
    theta = nn.Parameter(torch.ones(50))
    seen = []

    def closure():
        mask = F.dropout(torch.ones(50), 0.5)
        seen.append(mask)
        return (theta * mask).sum()

    optimizer = ZeroOrderSCGD([theta], 0.1, radius=1e-2, seed=0, estimator="forward")
    optimizer.step(closure)
    optimizer.step(closure)
    assert torch.equal(seen[0], seen[1]) and torch.equal(seen[2], seen[3])
    assert not torch.equal(seen[0], seen[2])


def test_global_generators_are_not_touched():
    torch.manual_seed(3)
    state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    for estimator in ("forward", *DIRECTIONS):
        theta = nn.Parameter(torch.ones(50))
        optimizer = ZeroOrderSCGD([theta], 0.01, radius=1e-2, estimator=estimator)
        optimizer.step(lambda: theta.square().sum())  # noqa: B023
    assert torch.equal(state, torch.get_rng_state())
    assert np.array_equal(numpy_state, np.random.get_state()[1])  # noqa: NPY002


class Boom(Exception):
    pass


@pytest.mark.parametrize("estimator", ["forward", "central", *DIRECTIONS])
def test_a_failing_closure_leaves_parameters_and_state(estimator):
    model = perceptron()
    optimizer = ZeroOrderSCGD(
        model.parameters(), 0.1, radius=1e-3, estimator=estimator, seed=0, keep_copy=True
    )
    closure, before, calls = closure_of(model), values(model), []

    def fails():
        calls.append(1)
        if len(calls) == 2:
            raise Boom
        return closure()

    state = optimizer.state_dict()
    with pytest.raises(Boom):
        optimizer.step(fails)
    assert all(torch.equal(a, b) for a, b in zip(before, values(model), strict=True))
    assert str(optimizer.state_dict()) == str(state)


@pytest.mark.parametrize(
    ("closure", "error", "words"),
    [
        (lambda theta: theta * 2, ValueError, "one number, got a tensor of shape"),
        (lambda theta: None, TypeError, "must return the loss"),
        (lambda theta: theta.sum() * torch.nan, FloatingPointError, "returned nan"),
        (lambda theta: theta.sum() * torch.inf, FloatingPointError, "returned inf"),
        (lambda theta: theta.sum().backward(), RuntimeError, "called backward"),
    ],
)
def test_bad_closures_are_refused(closure, error, words):
    theta = nn.Parameter(torch.ones(3))
    optimizer = ZeroOrderSCGD([theta], 0.1, radius=1e-3, seed=0, estimator="forward")
    with pytest.raises(error, match=words):
        optimizer.step(lambda: closure(theta))
    assert torch.equal(theta, torch.ones(3))


def test_a_step_needs_a_closure():
    optimizer = ZeroOrderSCGD([nn.Parameter(torch.ones(3))], 0.1, estimator="forward")
    with pytest.raises(TypeError, match="needs a closure"):
        optimizer.step()


def test_a_radius_lost_in_rounding_warns_with_one_to_use():
    theta = nn.Parameter(torch.full((3,), 100.0))
    with pytest.warns(UserWarning, match="use a radius of at least 5e-05"):
        optimizer = ZeroOrderSCGD([theta], 0.1, radius=1e-6, seed=0, estimator="forward")
    optimizer.step(lambda: theta.sum())
    assert torch.equal(theta.detach(), torch.full((3,), 100.0))


def test_large_models_sample_chunks():
    theta = nn.Parameter(torch.zeros(1 << 21))
    optimizer = ZeroOrderSCGD([theta], 0.1, radius=1e-2, estimator="forward")
    assert optimizer.param_groups[0]["granularity"] == "chunks"
    assert optimizer.layouts[0].n_units == 2048


def test_frozen_parameters_stay():
    model = perceptron()
    model[0].requires_grad_(False)
    before = values(model)
    optimizer = ZeroOrderSCGD(
        model.parameters(), 1.0, radius=1e-2, block_size=8, seed=0, estimator="forward"
    )
    for _ in range(10):
        optimizer.step(closure_of(model))
    same = [torch.equal(a, b) for a, b in zip(before, values(model), strict=True)]
    assert same[:2] == [True, True] and not any(same[2:])


def test_a_direction_of_a_million_entries_moves_all_of_them():
    p = nn.Parameter(torch.zeros((1 << 20) + 5))
    optimizer = ZeroOrderSCGD([p], 0.1, estimator="spsa", radius=1e-2, seed=0)
    optimizer.step(lambda: (p - 1).square().sum())
    moved = p.detach().abs()
    assert 0 < moved.max() < 1.01 * moved.min()


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_weight_decay_shrinks_layers_whose_loss_is_flat(momentum):
    sizes = []
    for weight_decay in (0.0, 0.1):
        p = nn.Parameter(torch.ones(50))
        optimizer = ZeroOrderSCGD([p], 0.1, seed=0, momentum=momentum, weight_decay=weight_decay)
        for _ in range(20):
            optimizer.step(lambda p=p: 1.0 + 1e-3 * p[:1].sum())
        sizes.append(float(p.detach()[1:].mean()))
    assert sizes[1] < sizes[0]
