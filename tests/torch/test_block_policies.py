"""Policies of blocks against their formulas, orders, coverage, and what a visit measures."""

import math
import time

import numpy as np
import pytest
import torch
from block_models import BlockOptimizer, loss_of, stack, train
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from scgd import torch as scgd_torch
from scgd.torch.blocks import (
    MISA,
    BlockMusketeer,
    BlockPolicy,
    Cyclic,
    InverseCost,
    Shuffled,
    Top,
    TopDown,
    UniformBlocks,
)
from scgd.torch.blocks.ledger import HISTORY, Ledger
from scgd.torch.blocks.meter import Meter

GAINS = np.array([1.0, 4.0, 2.0, 9.0])
COSTS = np.array([4.0, 3.0, 2.0, 1.0])


def book(visited=True, seed=0, n=4):
    made = Ledger(tuple(f"b{i}" for i in range(n)), np.array([10, 20, 30, 40])[:n], seed)
    made.gains, made.costs = GAINS[:n].copy(), COSTS[:n].copy()
    if visited:
        made.counts, made.last, made.visit = np.arange(1.0, n + 1), np.arange(float(n)), n
    return made


def follow(policy, ledger, visits, n_active=1):
    chosen = []
    for _ in range(visits):
        blocks = policy.choose(ledger, n_active)
        ledger.begin(blocks, policy.weights(ledger))
        chosen.append(blocks)
    return chosen


def softmax(x):
    return np.exp(x) / np.exp(x).sum()


@pytest.mark.parametrize(
    ("policy", "probabilities"),
    [
        (InverseCost(), (1 / COSTS) / (1 / COSTS).sum()),
        (InverseCost(mix=0.4), 0.6 * (1 / COSTS) / (1 / COSTS).sum() + 0.1),
        (UniformBlocks(), np.full(4, 0.25)),
        (BlockMusketeer(mix=0, gain_per="step"), GAINS / 16),
        (BlockMusketeer(gain_per="step"), 0.9 * GAINS / 16 + 0.025),
        (BlockMusketeer(mix=0, gain_per="cost"), (GAINS / COSTS) / (GAINS / COSTS).sum()),
        (
            BlockMusketeer(mix=0, normalization="softmax", eta=0.3, gain_per="step"),
            softmax(0.3 * GAINS),
        ),
        (MISA(eta=0.5), softmax(0.5 * GAINS)),
        (Top(), np.array([0, 0, 0, 1.0])),
        (Cyclic(), np.array([1.0, 0, 0, 0])),  # block 0 has waited longest
        (Shuffled(), np.full(4, 0.25)),
    ],
    ids=repr,
)
def test_probabilities(policy, probabilities):
    np.testing.assert_allclose(policy.weights(book()), probabilities, rtol=1e-12)


def test_draws_follow_the_probabilities():
    policy = BlockMusketeer(mix=0, coverage=0, gain_per="step")
    drawn = np.zeros(4)
    for seed in range(4000):
        drawn[policy.choose(book(seed=seed), 1)] += 1
    expected = GAINS / 16
    z = (drawn / 4000 - expected) / np.sqrt(expected * (1 - expected) / 4000)
    assert np.abs(z).max() < 4


def test_several_blocks_are_drawn_one_after_another_without_replacement():
    policy = BlockMusketeer(mix=0, coverage=0, gain_per="step")
    pairs = np.zeros((4, 4))
    for seed in range(4000):
        first, second = policy.choose(book(seed=seed), 2)
        pairs[first, second] += 1
    assert np.trace(pairs) == 0
    p = GAINS / 16
    expected = p[3] * p[1] / (1 - p[3])
    assert pairs[3, 1] / 4000 == pytest.approx(expected, abs=4 * math.sqrt(expected / 4000))


def test_orders():
    assert [b for (b,) in follow(Cyclic(), book(False), 6)] == [3, 2, 1, 0, 3, 2]
    assert [b for (b,) in follow(Cyclic("ascending"), book(False), 6)] == [0, 1, 2, 3, 0, 1]
    assert follow(Top(), book(False), 3, 2) == [[3, 2]] * 3
    shuffled = [b for (b,) in follow(Shuffled(), book(False), 40)]
    cycles = [tuple(shuffled[i : i + 4]) for i in range(0, 40, 4)]
    assert all(sorted(cycle) == [0, 1, 2, 3] for cycle in cycles) and len(set(cycles)) > 3


@pytest.mark.parametrize(
    "policy", [UniformBlocks(), InverseCost(), BlockMusketeer(gain_per="step")], ids=repr
)
def test_the_first_cycle_visits_all_from_the_top_with_those_named_first(policy):
    ledger = book(False)
    ledger.first = [1]
    assert follow(policy, ledger, 4) == [[1], [3], [2], [0]]


def test_the_first_cycle_is_shorter():
    ledger = book(False)
    policy = UniformBlocks(first_period=7)
    lengths = []
    for _ in range(6):
        ledger.begin(policy.choose(ledger, 1), policy.weights(ledger))
        lengths.append(policy.length(ledger, 50))
    assert lengths == [7, 7, 7, 7, 50, 50]
    assert policy.length(ledger, 3) == 3


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 9),
    coverage=st.integers(1, 4),
    active=st.integers(1, 3),
    seed=st.integers(0, 10**6),
    spread=st.floats(0, 12),
    first=st.booleans(),
)
def test_no_block_waits_longer_than_its_deadline(n, coverage, active, seed, spread, first):
    ledger = Ledger(tuple(map(str, range(n))), np.ones(n), seed)
    ledger.costs = 10 ** (np.random.default_rng(seed).random(n) * spread)
    policy = InverseCost(coverage=coverage, first_cycle=first)
    last = np.full(n, -1)
    for visit in range(6 * n * coverage):
        chosen = policy.choose(ledger, active)
        assert len(set(chosen)) == len(chosen) == min(active, n)
        ledger.begin(chosen, policy.weights(ledger))
        last[chosen] = visit
        assert (visit - last < coverage * n).all()


def test_without_coverage_a_block_can_wait_for_ever():
    ledger = book()
    ledger.costs = np.array([1e9, 1.0, 1.0, 1.0])
    chosen = follow(InverseCost(coverage=0), ledger, 200)
    assert [0] not in chosen


def test_deadlines_far_away_change_no_draw():
    runs = [follow(BlockMusketeer(coverage=c), book(), 100) for c in (0, 1000)]
    assert runs[0] == runs[1]


def test_unknown_gains_count_as_the_mean_of_the_known():
    ledger = book()
    ledger.gains = np.array([1.0, np.nan, 3.0, np.nan])
    np.testing.assert_allclose(
        BlockMusketeer(mix=0, gain_per="step").weights(ledger), np.array([1, 2, 3, 2]) / 8
    )
    ledger.gains[:] = np.nan
    np.testing.assert_allclose(
        BlockMusketeer(mix=0, gain_per="step").weights(ledger), np.full(4, 0.25)
    )
    ledger.gains[:] = 0.0
    np.testing.assert_allclose(
        BlockMusketeer(mix=0, gain_per="step").weights(ledger), np.full(4, 0.25)
    )


def test_gains_forget():
    ledger = book()
    ledger.learn({0: 3.0, 1: float("nan"), 2: float("inf")}, 0.25)
    np.testing.assert_allclose(ledger.gains, [1.5, 4.0, 2.0, 9.0])
    ledger.gains[0] = np.nan
    ledger.learn({0: 3.0}, 0.25)
    assert ledger.gains[0] == 3.0


def test_top_down_leaves_a_block_when_its_gains_stall():
    policy, ledger = TopDown(fall=0.1, patience=2), book(False)
    seen = []
    for gain in (10.0, 8.0, 7.9, 7.8, 5.0, 5.0, 5.0, 5.0):
        ledger.begin(policy.choose(ledger, 1), policy.weights(ledger))
        seen += ledger.current
        ledger.gains[ledger.current] = gain
    # 8 and the first of each block fall far enough; two visits without a fall end a stay.
    assert seen == [3, 3, 3, 3, 2, 2, 2, 1]


def test_misa_draws_up_to_a_share_of_the_parameters():
    for seed in range(50):
        chosen = MISA(share=0.5).choose(book(seed=seed), 1)
        sizes = book().sizes[chosen]
        assert sizes.sum() >= 50 > sizes[:-1].sum()


def test_history_is_thinned():
    ledger = book()
    follow(UniformBlocks(), ledger, 3 * HISTORY)
    visits = [row["visit"] for row in ledger.history]
    assert len(visits) <= HISTORY and len(set(np.diff(visits))) == 1 and visits[0] == 4


def measured(gain, **settings):
    """Gains of the first visit of three steps, and the gradients behind them."""
    model = stack()
    policy = BlockMusketeer(gain=gain, first_period=3, gain_per="step")
    optimizer = BlockOptimizer(model, policy=policy, period=3, lr=0.01, **settings)
    grads, losses = [], []
    for step in range(3):
        optimizer.zero_grad()
        loss = loss_of(model, step)
        loss.backward()
        grads.append(torch.cat([p.grad.reshape(-1) for p in model.head.parameters()]).double())
        losses.append(loss.item())
        optimizer.tell(loss)
        optimizer.step()
    return optimizer.book.gains, grads, losses


def test_gains_measured():
    gains, grads, _ = measured("square")
    assert gains[-1] == pytest.approx(sum(float(g @ g) for g in grads) / 3, rel=1e-5)
    assert np.isnan(gains[:-1]).all()
    gains, grads, _ = measured("absolute")
    assert gains[-1] == pytest.approx(sum(float(g.abs().sum()) for g in grads) / 3, rel=1e-5)
    gains, grads, _ = measured("mean-square")
    assert gains[-1] == pytest.approx(sum(float(g @ g) / len(g) for g in grads) / 3, rel=1e-5)
    gains, grads, _ = measured("adam")
    m = v = torch.zeros_like(grads[0])
    norms = []
    for g in grads:
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        norms.append(float((m / (v.sqrt() + 1e-8)).norm()))
    assert gains[-1] == pytest.approx(sum(norms) / 3, rel=1e-3)
    gains, _, losses = measured("loss")
    assert gains[-1] == pytest.approx(max(0.0, losses[0] - losses[-1]) / 2, rel=1e-5)


def test_falls_of_the_loss():
    meter = Meter()
    meter.losses = [4.0, 3.0, 9.0, 2.0, 1.0]
    assert meter.fall() == pytest.approx((3.5 - 1.5) / 3)
    meter.losses = [1.0, 2.0]
    assert meter.fall() == 0.0
    meter.losses = [1.0]
    assert math.isnan(meter.fall())


def test_costs_are_lower_quartiles_shared_by_the_blocks_of_a_visit():
    now = iter([0.0, 1.0, 3.0, 103.0, 105.0])  # differences 1, 2, 100 (a pause), 2 in a visit
    model = stack()
    optimizer = BlockOptimizer(
        model, policy=InverseCost(first_period=5), period=5, active=2, cost="time", lr=0.01
    )
    assert optimizer.meter.clock is time.process_time  # a busy machine costs no block anything
    optimizer.meter.clock = lambda: next(now)
    train(model, optimizer, 5)
    np.testing.assert_allclose(optimizer.book.costs[[4, 5]], 1.75 / 2)
    assert np.isnan(optimizer.book.costs[:4]).all()


def test_a_probe_measures_all_blocks_at_the_same_parameters():
    model, plain = stack(), stack()
    policy = BlockMusketeer(probe=2, forget=1.0, gain_per="step")
    optimizer = BlockOptimizer(model, policy=policy, period=2, lr=0.01)
    loss_of(plain, 0).backward()
    expected = [
        sum(float(plain.get_parameter(n).grad.double().square().sum()) for n in names)
        for names in optimizer.blocks.values()
    ]
    loss_of(model, 0).backward()
    held = [n for n, p in model.named_parameters() if p.grad is not None]
    assert held == optimizer.blocks["head"]  # the others were dropped as they came
    optimizer.step()
    np.testing.assert_allclose(optimizer.book.gains, expected, rtol=1e-6)
    assert [n for n, p in model.named_parameters() if p.requires_grad] == held
    train(model, optimizer, 1)  # the second visit has begun, without a probe
    assert [n for n, p in model.named_parameters() if p.requires_grad] == optimizer.blocks[
        "layers.3"
    ]
    np.testing.assert_allclose(optimizer.book.gains, expected, rtol=1e-6)
    train(model, optimizer, 2)
    assert all(p.requires_grad for p in model.parameters())


def test_probes_change_no_step():
    runs = []
    for probe in (0, 1):
        model = stack()
        policy = BlockMusketeer(probe=probe, first_cycle=True, coverage=1, gain_per="step")
        optimizer = BlockOptimizer(model, policy=policy, period=3, lr=0.01, seed=0)
        runs.append(train(model, optimizer, 18))
    assert runs[0] == runs[1]


def test_pictures(tmp_path):
    from PIL import Image

    model = stack()
    optimizer = BlockOptimizer(model, policy="uniform", period=1, seed=0, lr=0.01)
    train(model, optimizer, 30)
    optimizer.picture(tmp_path / "blocks.png")
    with Image.open(tmp_path / "blocks.png") as picture:
        colours = {colour for _, colour in picture.getcolors(10000)}
    assert picture.size[0] == 900 and len(colours) > 5
    assert (16, 78, 139) in colours  # the largest probability


class Counting(BlockPolicy):
    """A policy that keeps its place in the ledger's memory."""

    def choose(self, book, n_active):
        at = book.memory.get("at", -1) + 1
        book.memory["at"] = at
        return [at % len(book.names)]


def test_a_policy_that_counts_is_asked_once_per_visit():
    model = stack()
    optimizer = BlockOptimizer(model, policy=Counting(), period=1, lr=0.01)
    seen = []
    train(model, optimizer, 6, each=lambda: seen.append(optimizer.probabilities()))
    names = list(optimizer.blocks)
    rows = optimizer.history
    assert [row["blocks"] for row in rows] == [[name] for name in [*names, names[0]]]
    assert all(row["probabilities"][names.index(row["blocks"][0])] == 1.0 for row in rows)
    assert [
        distribution[name] for distribution, name in zip(seen, (names * 2)[2:], strict=False)
    ] == [1.0] * 6


@pytest.mark.parametrize("gain", ["square", "absolute", "mean-square"])
def test_sparse_gradients_are_measured_as_dense_ones(gain):
    gains = []
    for sparse in (False, True):
        model = stack()
        model.embeddings.sparse = sparse
        policy = BlockMusketeer(gain=gain, first_period=3, gain_per="step")
        optimizer = BlockOptimizer(
            model, torch.optim.SGD, policy=policy, period=3, first=["embeddings"], lr=0.01
        )
        train(model, optimizer, 3)
        gains.append(optimizer.book.gains[0])
    assert gains[0] == pytest.approx(gains[1], rel=1e-5) and gains[0] > 0


def test_whatever_is_always_trained_makes_upper_blocks_as_dear_as_lower_ones():
    model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(4)])
    settings = {"blocks": "layer", "policy": "inverse-cost", "lr": 0.1}
    bottom = scgd_torch.BlockOptimizer(model, **settings, always=["0", "2"])
    assert bottom.probabilities() == pytest.approx(
        {"1": 0.5, "3": 0.5}
    )  # backward goes down in any case
    bottom.release()
    middle = scgd_torch.BlockOptimizer(model, **settings, always=["2"])
    dear, middling, cheap = middle.probabilities().values()
    assert dear < middling < cheap


def test_vectors_cost_something():
    model = nn.ParameterDict({"a": nn.Parameter(torch.ones(3)), "b": nn.Parameter(torch.ones(3))})
    settings = {"blocks": "tensor", "active": 1, "period": 2, "lr": 1e-3, "seed": 0}
    optimizer = scgd_torch.BlockOptimizer(model, **settings)
    for _ in range(8):
        optimizer.zero_grad()
        (10 * model["a"] + model["b"]).sum().backward()
        optimizer.step()
    assert optimizer.probabilities()["a"] > 0.9


def test_all_blocks_can_be_active_though_one_has_all_the_gains():
    book = Ledger(tuple("abc"), np.ones(3), seed=0)
    book.gains, book.costs, book.counts = np.array([1.0, 0.0, 0.0]), np.ones(3), np.ones(3)
    assert sorted(BlockMusketeer(mix=0.0, coverage=0).choose(book, 3)) == [0, 1, 2]


def test_a_block_given_up_is_tried_again_after_ten_visits_of_each():
    waiting = book()
    waiting.alive[1], waiting.last[1] = 0.0, 5.0
    for waiting.visit, alive in ((44, 0.0), (45, 1.0)):
        waiting.revive()
        assert waiting.alive[1] == alive


def test_processes_take_the_numbers_of_the_first():
    first, other = book(), book()
    first.gains, first.costs, first.losses = GAINS + 1, COSTS + 2, [0.5, 0.25]
    first.missed, other.losses = np.array([0.0, 3.0, 0.0, 1.0]), [0.5, 0.75]
    other.accept(first.share())
    for name in ("gains", "costs", "missed", "losses"):
        np.testing.assert_array_equal(getattr(other, name), getattr(first, name))
