"""Step rules against slow references, in every form in which they run, and rules of one's own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numba
import numpy as np
import pytest

import scgd
from registry import EVERY_STEP, STEPS, P, quadratic
from scgd.calling import JOINED
from scgd.steps import StepRule, applier, compiled, make_slots
from scgd.steps.loops import PACKAGE, built_in
from scgd.steps.rules import LONGEST
from scgd_paper.linear.by_code import KERNELS, code_of, move
from skeletons import run_page
from step_reference import REFERENCES

N_COORDS, N_VISITS = 3, 330
NONE = np.empty(0)


def visits(seed):
    """Coordinates, gradients (drifting, noisy, now and then zero) and rates of a random walk."""
    rng = np.random.default_rng(seed)
    coords = rng.integers(0, N_COORDS, N_VISITS)
    slopes = np.array([2.0, -0.3, 0.0])[coords] * np.where(np.arange(N_VISITS) < 200, 1.0, -0.5)
    grads = slopes + rng.choice([0.1, 1.0], N_VISITS) * rng.standard_normal(N_VISITS)
    grads[rng.random(N_VISITS) < 0.05] = 0.0
    grads[:4] = 0.0
    return coords, grads, rng.uniform(0.01, 0.1, N_VISITS), np.arange(N_VISITS) / N_VISITS


def referred(name, rule, seed):
    """The moves of the reference."""
    step, shared, moves = REFERENCES[name.split("-")[0]], {}, []
    seen, own = [[] for _ in range(N_COORDS)], [{} for _ in range(N_COORDS)]
    for k, grad, rate, progress in zip(*visits(seed), strict=True):
        seen[k].append(grad)
        shared["progress"] = progress
        moves.append(step(rule, seen[k], rate, own[k], shared))
    return np.array(moves)


def by_kernel(rule, seed):
    """The moves of the kernel as plain Python, as the single loop runs it."""
    slots, moves = make_slots(rule, N_COORDS), []
    views = tuple(slot.data for slot in slots)
    for k, grad, rate, progress in zip(*visits(seed), strict=True):
        rule.pace(slots, progress)
        moves.append(rule.kernel(int(k), float(grad), float(rate), rule.hyper, views))
    return np.array(moves)


def by_compiled_kernel(rule, seed):
    slots, moves, kernel = make_slots(rule, N_COORDS), [], compiled(rule)
    for k, grad, rate, progress in zip(*visits(seed), strict=True):
        rule.pace(slots, progress)
        moves.append(kernel(k, grad, rate, np.array(rule.hyper), slots))
    return np.array(moves)


def by_applier(rule, seed):
    slots, moves, apply = make_slots(rule, N_COORDS), [], applier(rule)
    hyper = np.array(rule.hyper, np.float64)
    for k, grad, rate, progress in zip(*visits(seed), strict=True):
        rule.pace(slots, progress)
        theta = np.zeros(N_COORDS)
        where = np.array([k]), np.array([grad]), np.array([rate])
        apply(*where, hyper, slots, theta, NONE, NONE)
        moves.append(-theta[k])
        assert np.count_nonzero(theta) <= 1
    return np.array(moves)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("run", [by_kernel, by_compiled_kernel, by_applier])
@pytest.mark.parametrize("name", EVERY_STEP)
def test_moves_are_those_of_the_formula(name, run, seed):
    rule = EVERY_STEP[name]
    expected = referred(name, rule, seed)
    assert np.count_nonzero(expected) > N_VISITS / 4
    np.testing.assert_allclose(run(rule, seed), expected, rtol=1e-9, atol=1e-15)


def test_every_rule_has_a_reference():
    assert set(REFERENCES) == set(scgd.STEPS)


@pytest.mark.parametrize("name", STEPS)
def test_a_block_is_clipped_to_its_bounds_and_duplicates_add_up(name):
    rule = STEPS[name]
    coords, lower, upper = np.array([0, 2, 0]), np.full(3, -0.05), np.full(3, 0.04)
    grads, rates, hyper = np.array([1.0, -1.0, 1.0]), np.full(3, 10.0), np.array(rule.hyper)
    theta, free = np.zeros(3), np.zeros(3)
    applier(rule)(coords, grads, rates, hyper, make_slots(rule, 3), theta, lower, upper)
    np.testing.assert_array_equal(theta, [-0.05, 0.0, 0.04])
    applier(rule)(coords, grads, rates, hyper, make_slots(rule, 3), free, NONE, NONE)
    slots = make_slots(rule, 3)
    one_by_one = [
        rule.kernel(k, g, 10.0, rule.hyper, slots) for k, g in ((0, 1.0), (2, -1.0), (0, 1.0))
    ]
    np.testing.assert_allclose(free, [-one_by_one[0] - one_by_one[2], 0.0, -one_by_one[1]])


@pytest.mark.parametrize("cls", [scgd.Momentum, scgd.RMS, scgd.Learned, scgd.Wiener])
@pytest.mark.parametrize("beta", [-0.1, 1.0])
def test_decays_are_checked(cls, beta):
    with pytest.raises(ValueError, match="beta must lie in"):
        cls(beta=beta)


@pytest.mark.parametrize("cls", [scgd.Momentum, scgd.RMS, scgd.Learned, scgd.Wiener])
def test_a_decay_of_zero_forgets_all(cls):
    assert cls(beta=0.0).beta == 0.0


@pytest.mark.parametrize("name", [n for n, rule in EVERY_STEP.items() if rule.kernel in KERNELS])
def test_the_number_of_a_kernel_leads_to_it(name):
    rule = EVERY_STEP[name]
    ours, theirs, hyper = make_slots(rule, 2), make_slots(rule, 2), np.array(rule.hyper)
    for grad in (1.0, -0.5, 2.0, 0.3):
        expected = rule.kernel(1, grad, 0.1, hyper, theirs)
        assert move(code_of(rule), 1, grad, 0.1, hyper, ours) == pytest.approx(expected, rel=1e-14)
    np.testing.assert_allclose(ours, theirs, rtol=1e-14)


SHARED = {"learned": 4, "wiener": 1}
PACED = ("learned",)


@pytest.mark.parametrize("name", STEPS)
def test_memory_is_what_the_rule_uses(name):
    """Every slot is written by some visit, and of the shared numbers the last one too."""
    rule, n_shared = STEPS[name], SHARED.get(name, 0)
    slots = make_slots(rule, 1)
    for k, grad, rate, progress in zip(*visits(0), strict=True):
        rule.pace(slots, progress)
        rule.kernel(0, grad + 0.1 * k, rate, rule.hyper, slots)
    assert slots.shape == (rule.n_slots, max(1, n_shared))
    assert np.all(np.any(slots, axis=1)) and np.all(slots[-1:])
    assert make_slots(rule, 7).shape == (rule.n_slots, 7)
    assert rule.paced == (name in PACED)


def test_a_rule_that_says_nothing_remembers_nothing():
    assert make_slots(StepRule(), 3).shape == (0, 3) and StepRule.n_shared == 0
    assert StepRule().hyper == scgd.SGD().hyper == (0.0,) and not StepRule().paced


def test_one_coordinate_alone_is_clipped_too():
    theta, one = np.zeros(1), np.ones(1)
    bounds = np.full(1, -0.05), np.full(1, 0.04)
    for grad, end in ((1.0, -0.05), (-1.0, 0.04)):
        apply = applier(scgd.SGD())
        apply(np.array([0]), grad * one, 10 * one, np.zeros(1), np.zeros((0, 1)), theta, *bounds)
        assert theta[0] == end


def sign_kernel(k, grad, rate, hyper, slots):
    slots[0][k] += 1.0
    return hyper[0] * rate * (1.0 if grad > 0 else -1.0) / slots[0][k]


@dataclass(frozen=True)
class Sign(StepRule):
    """A rule that no built-in one resembles."""

    factor: float = 2.0
    n_slots: ClassVar[int] = 1
    kernel: ClassVar[Any] = staticmethod(sign_kernel)

    @property
    def hyper(self):
        return (self.factor,)


@numba.njit
def compiled_bowl(x):
    return np.sum((x - 0.3) ** 2)


def bowl(x):
    return compiled_bowl(x)


LOOPS = [
    ("single", bowl, {}),
    ("compiled", compiled_bowl, {}),
    ("blocks", bowl, {"block_size": 2}),
    ("joint", bowl, {"estimator": "spsa", "policy": "full"}),
    ("joint", bowl, {"estimator": "spsa", "block_size": 2, "policy": "uniform"}),
]


@pytest.mark.parametrize("loop, fun, parts", LOOPS, ids=[row[0] for row in LOOPS])
def test_a_users_kernel_runs_in_every_loop(loop, fun, parts):
    """After n visits of one slope a coordinate has moved by 2 * rate * (1 + 1/2 + ... + 1/n)."""
    sizes = {"learning_rate": 0.01, "radius": 0.1, "step": Sign()}
    method = scgd.SCGD(**{"policy": "uniform", **parts}, **sizes)
    keywords = {"method": method, "seed": 0, "max_evals": 120}
    result = scgd.minimize(fun, np.zeros(4), **keywords)
    told = scgd.minimize(
        lambda x: [bowl(row) for row in x],
        np.zeros(4),
        workers=scgd.Workers(vectorized=True),
        **keywords,
    )
    np.testing.assert_array_equal(result.x, told.x)
    harmonic = np.cumsum(1 / np.arange(1, 121))
    if loop != "joint":  # along joint directions the slopes have changing signs
        assert all(np.min(np.abs(harmonic - moved)) < 1e-9 for moved in result.x / 0.02)
    assert bowl(result.x) < bowl(np.zeros(4))


def test_linear_models_refuse_a_users_kernel():
    with pytest.raises(ValueError, match="built-in step rules only, not Sign"):
        assert code_of(Sign())


def test_the_skeleton_of_the_page_runs():
    page = Path(__file__).parents[1] / "docs" / "adding-a-step-rule.md"
    names = run_page(page)
    rule = names["Clipped"](limit=0.5)
    assert rule.kernel(0, 3.0, 0.1, rule.hyper, [[0.0] * P]) == pytest.approx(0.05)
    results = [
        scgd.minimize(
            quadratic, np.zeros(P), max_evals=2000, seed=0,
            method=scgd.SCGD(step=rule, learning_rate=0.5, radius=0.1, **parts))
        for parts in ({}, {"block_size": 3})
    ]  # fmt: skip
    assert all(result.fun < 0.1 * quadratic(np.zeros(P)) for result in results)


DEFAULTS = {
    scgd.Momentum: {"beta": 0.9, "nesterov": False},
    scgd.Adam: {"beta1": 0.9, "beta2": 0.999, "epsilon": 0.0},
    scgd.Wiener: {
        "beta": 0.98,
        "beta2": 0.99,
        "shrinkage": 1.0,
        "shared_gain": 0.01,
        "longest": 8.0,
    },
}


@pytest.mark.parametrize("rule", DEFAULTS)
def test_what_rules_are_without_a_word(rule):
    assert vars(rule()) == DEFAULTS[rule]


@pytest.mark.parametrize("rule", [scgd.Momentum, scgd.RMS, scgd.Adam, scgd.Learned, scgd.Wiener])
def test_every_number_of_a_rule_is_checked(rule):
    for name in vars(rule()):
        with pytest.raises((TypeError, ValueError), match=name):
            rule(**{name: "half"})


def test_a_mean_of_exactly_zero_stands_still():
    """After thirty gradients that cancel each other the filter would divide by it."""
    slots = make_slots(scgd.Wiener(), 1)
    slots[:3, 0] = 0.0, 5.0, 30.0  # mean, mean square, visits
    assert scgd.Wiener.kernel(0, 0.0, 0.1, scgd.Wiener(shrinkage=0.0).hyper, slots) == 0.0


def test_kernels_of_this_package_are_told_from_others():
    assert LONGEST == 300.0 and PACKAGE == "scgd"
    assert built_in(scgd.Adam.kernel) and not built_in(lambda *_: 0.0)


def test_a_kernel_of_a_users_rule_is_a_part_of_the_machinery():
    def own(k, grad, rate, hyper, slots):
        return grad

    class Own(StepRule):
        kernel = staticmethod(own)

    assert own.__code__ in JOINED


def test_a_rule_without_a_kernel_of_its_own_has_nothing_to_join():
    class Abstract(StepRule):
        pass

    assert not hasattr(Abstract, "kernel")
