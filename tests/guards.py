"""Guards of the sources, one row each, with a seeded case in which nothing else saves the run.

A row names a file, the text of the guard, what stands there without it, and a check that holds with
the guard. ``python tests/guards.py NAME`` runs the check without it, in plain Python, and ends with 0
if that fails.
"""

import os
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import NamedTuple

import numpy as np

SOURCES = Path(__file__).parents[1] / "src" / "scgd"
P = 12
WORD = 2**64 - 1


class Guard(NamedTuple):
    """Where it stands, the text, what stands there without it, and what it saves."""

    file: str
    text: str
    without: str
    check: object


def bowl(x):
    return float(np.sum((np.asarray(x) - 0.5) ** 2))


def stream_of(word):
    """Return a stream whose next 64 bits are these."""
    word = int(word)
    return np.array([0, 1, 0, (word >> 23) | ((word << 41) & WORD)], np.uint64)


# ---- policies ------------------------------------------------------------------------------------


def learned_weights(gradient, **options):
    import scgd
    from scgd.random import stream
    from scgd.sampler import CoordinateSampler

    sampler = CoordinateSampler(
        scgd.Musketeer(**options), P, stream(np.random.SeedSequence(0)), block_size=3
    )
    for _ in range(3):
        sampler.grads[:] = 1.0
        sampler.grads[0] = gradient
        sampler.advance(sampler.n_draws)
    weights = sampler.weights()
    assert np.all(np.isfinite(weights)) and np.isclose(weights.sum(), 1.0)


def huge_gradients_leave_a_law():
    learned_weights(1e308)


def undefined_gradients_earn_nothing():
    learned_weights(np.nan)


def a_share_above_one_is_one():
    from scgd.policies.base import update, weights
    from scgd.policies.distribution import make_distribution

    distribution, out = make_distribution(3), np.empty(3)
    update(distribution, np.array([0]), np.array([1 / 3]), np.array([1.0]), 1.5)
    weights(distribution, out)
    np.testing.assert_allclose(out, 1 / 3)


def no_draw_beyond_the_last_coordinate():
    """The largest number below the mixing may round to the number of coordinates."""
    from scgd.policies.sumtree import split_uniform

    rng = np.random.default_rng(0)
    for n, mixing in zip(range(3, 20_000), rng.uniform(0.5, 1.0, 20_000), strict=False):
        u = mixing - 2.0**-53
        if int(u * (n / mixing)) == n:
            coords, targets, order = np.zeros(1, np.int64), np.zeros(1), np.zeros(1, np.int64)
            split_uniform(stream_of(int(u * 2**53) << 11), coords, targets, order, mixing, 1.0, n)
            assert coords[0] < n
            return
    raise RuntimeError("no such number")


def no_draw_of_weight_zero():
    """A target that rounding has pushed to the total falls into the last leaf that has weight."""
    from scgd.policies.sumtree import empty_tree, locate, refresh

    tree, levels = empty_tree(20)
    tree[:9] = 0.1
    refresh(tree, levels)
    coords, targets = np.zeros(1, np.int64), tree[levels[-2]] * np.ones(1)
    locate(tree, levels, coords, targets, np.zeros(1, np.int64))
    assert coords[0] == 8


def adaptive_scores_stay_numbers():
    import scgd

    policy = scgd.Adaptive()
    state = policy.init(3)
    policy.update(state, np.array([0, 1]), np.ones(2) / 3, np.array([np.nan, 1e300]), 0.0)
    assert np.all(state.scores < 1e290)


# ---- step rules ----------------------------------------------------------------------------------


def first_move(rule, grads=(0.0,), rate=0.1):
    from scgd.steps import make_slots

    slots = make_slots(rule, 1)
    with np.errstate(all="ignore"):
        return [rule.kernel(0, grad, rate, rule.hyper, slots) for grad in grads][-1]


def rms_without_a_slope_stands_still():
    import scgd

    assert first_move(scgd.RMS(epsilon=0.0)) == 0.0


def adam_without_a_slope_stands_still():
    import scgd

    assert first_move(scgd.Adam(epsilon=0.0)) == 0.0


def learned_without_a_slope_stands_still():
    import scgd

    assert first_move(scgd.Learned()) == 0.0


def learned_factors_are_limited():
    import scgd

    rule = scgd.Learned(gain=5.0, shared_gain=0.0, longest=2.0)
    assert first_move(rule, [1.0] * 300) <= 0.1 * np.exp(2.0) * (1 + 1e-9)


def wiener_without_a_slope_stands_still():
    import scgd

    assert first_move(scgd.Wiener()) == 0.0


def wiener_stands_still_in_noise():
    import scgd
    from scgd.steps import make_slots

    noise = np.random.default_rng(0).standard_normal(400)
    rule = scgd.Wiener(beta=0.9, beta2=0.9, shrinkage=3.0)
    slots = make_slots(rule, 1)
    moves = np.array([rule.kernel(0, grad, 0.1, rule.hyper, slots) for grad in noise])
    assert 0 < np.count_nonzero(moves[30:]) < len(noise) / 3


# ---- values that are lost ------------------------------------------------------------------------


def walled(x):
    """Nothing is known beyond a wall in the first coordinate."""
    return bowl(x) if x[0] < 0.05 else float("nan")


def run(fun, **keywords):
    import scgd
    from grouped import grouped

    keywords = {"scale": 1.0, "max_evals": 300, "seed": 0, "nonfinite": "skip", **keywords}
    start = np.zeros(keywords.pop("p", 4))
    result = scgd.minimize(fun, start, **grouped(**keywords))
    assert np.all(np.isfinite(result.x)) and np.isfinite(result.fun)
    assert bowl(result.x) < bowl(start)
    return result


RATES = {"learning_rate": 0.1, "radius": 0.1}
"""Rates of one's own: nobody asks whether f repeats itself, and the last iterate is returned."""


def a_lost_value_moves_nothing_when_asked_by_itself():
    run(walled, method="uniform", block_size=2, step="sgd", record=True, **RATES)


def a_lost_value_moves_nothing_in_the_loop():
    run(walled, method="uniform", step="sgd", **RATES)


def a_lost_value_leaves_weights_of_the_gradient():
    """One coordinate of thirty is steep, another has no value: five steps find the steep one."""
    import scgd

    def fun(x):
        return float(9.0 * (x[1] - 0.5) ** 2) if x[0] == 0.0 else float("nan")

    for seed in range(4):
        result = scgd.minimize(
            fun, np.zeros(30), max_evals=310,
            seed=seed, method=scgd.SCGD(policy="gradient-weights", estimator="central", learning_rate=0.05, radius=0.1), failures="skip")  # fmt: skip
        assert fun(result.x) < 0.2


def infinite_values_are_lost_in_blocks():
    def fun(x):
        return bowl(x) if x[0] < 0.05 else float("inf")

    assert run(fun, method="uniform", block_size=2).n_failed > 0


def lost_values_do_not_count_in_a_mean():
    from scgd.estimators import middle

    assert middle(np.array([1.0, np.nan]), np.array([3.0, 1.0])) == 2.0


def a_pinned_coordinate_has_no_slope():
    from scgd.estimators import slopes

    ends = np.array([0.5, 0.5]), np.array([0.5, 2.5])
    with np.errstate(all="raise"):
        assert slopes(np.ones(2), np.full(2, 2.0), *ends).tolist() == [0.0, 0.5]


# ---- searches ------------------------------------------------------------------------------------


def farthest(method, fun, **keywords):
    import scgd

    seen = []

    def watched(x):
        seen.append(float(np.abs(x).max()))
        return fun(x)

    scgd.minimize(watched, np.zeros(4), method=method, scale=1.0, seed=1,
                  **{"max_evals": 400, **keywords})  # fmt: skip
    return max(seen)


def plateau(x):
    """Falls towards a minimum a hundred thousand units away, and rises like a wall at nine."""
    return float(np.sum((x - 1e5) ** 2)) if np.abs(x).max() < 9 else 1e14


# ---- plans ---------------------------------------------------------------------------------------


def noisy_bowl(sigma, seed):
    noise = np.random.default_rng(seed)
    return lambda x: float(np.sum(x**2)) + sigma * float(noise.standard_normal())


class Turning:
    """Falls along the first coordinate for a while, then turns out to rise there."""

    def __init__(self, n_false):
        self.n_false, self.n_calls = n_false, 0

    def __call__(self, x, sample):
        self.n_calls += 1
        sign = -5.0 if self.n_calls <= self.n_false else 1.0
        return float(sign * np.sum(x**2) + np.sum(sample * x) * 1e-3)


def counted_returns(fun, **keywords):
    import scgd
    from scgd.descent import CoordinateDescent

    found, go_back = [], CoordinateDescent.go_back

    def counting(self, kept):
        found.append(1)
        return go_back(self, kept)

    CoordinateDescent.go_back = counting
    try:
        scgd.minimize(fun, np.full(4, 0.1), scale=1.0, seed=0, **keywords)
    finally:
        CoordinateDescent.go_back = go_back
    return len(found)


def a_lie_is_not_the_best_point():
    """f repeats itself but for one value far below everything."""
    calls = []

    def fun(x):
        calls.append(1)
        return -1e6 if len(calls) == 100 else bowl(x)

    import scgd

    result = scgd.minimize(fun, np.zeros(4), method="uniform", scale=1.0, max_evals=400, seed=0)
    assert result.fun > -1.0


GUARDS = {
    check.__name__: Guard(file, text, without, check)
    for file, text, without, check in (
        ("policies/mixture.py", "min(max(earned, -LARGEST), LARGEST)", "earned", huge_gradients_leave_a_law),
        ("policies/mixture.py", " if earned == earned else 0.0", "", undefined_gradients_earn_nothing),
        ("policies/mixture.py", "min(max(mixing, 0.0), 1.0)", "mixing", a_share_above_one_is_one),
        ("policies/sumtree.py", "min(np.int64(u * flat), n_coords - 1)", "np.int64(u * flat)",
         no_draw_beyond_the_last_coordinate),
        ("policies/sumtree.py", "min(targets[t], tree[np.uint64(here + node)] * BELOW_ONE)",
         "targets[t]", no_draw_of_weight_zero),
        ("policies/adaptive.py", "if size <= LARGEST:", "if True:", adaptive_scores_stay_numbers),
        ("steps/rules.py", " if square > 0.0 else 0.0", "", rms_without_a_slope_stands_still),
        ("steps/rules.py", "if square == 0.0:", "if False:", adam_without_a_slope_stands_still),
        ("steps/rules.py", "if size == 0.0:", "if False:", learned_without_a_slope_stands_still),
        ("steps/rules.py", "min(max(logs[k] + hyper[1] * agreement, hyper[3]), hyper[4])",
         "logs[k] + hyper[1] * agreement", learned_factors_are_limited),
        ("steps/rules.py", "if square == 0.0 or mean == 0.0:", "if False:",
         wiener_without_a_slope_stands_still),
        ("steps/rules.py", "if shrunk <= 0.0:", "if False:", wiener_stands_still_in_noise),
        ("descent/engine.py", "if not (fine := np.isfinite(grads)).all():", "if False:",
         a_lost_value_moves_nothing_when_asked_by_itself),
        ("descent/single.py", "if grad - grad == 0.0:", "if True:",
         a_lost_value_moves_nothing_in_the_loop),
        ("descent/engine.py", "np.where(np.isfinite(grads), grads, 0.0)", "grads",
         a_lost_value_leaves_weights_of_the_gradient),
        ("descent/blocks.py", "if not (total - total == 0.0 or np.isfinite(values).all()):",
         "if False:", infinite_values_are_lost_in_blocks),
        ("estimators.py", "if not (whole := np.isfinite(means)).all():", "if False:",
         lost_values_do_not_count_in_a_mean),
        ("estimators.py", "change / width if width != 0.0 else change * 0.0", "change / width",
         a_pinned_coordinate_has_no_slope),
        ("run/recommending.py", "plausible(best.value, found.values, np.append(reported, first))", "True",
         a_lie_is_not_the_best_point),
    )
}  # fmt: skip


def changed_source(guard):
    """Return the source without the guard, which must stand there once."""
    source = (SOURCES / guard.file).read_text()
    assert source.count(guard.text) == 1, f"{guard.text!r} stands {source.count(guard.text)} times"
    return source.replace(guard.text, guard.without)


def remove(guard):
    """Have imports see the source without the guard."""
    path, source, get_code = SOURCES / guard.file, changed_source(guard), SourceFileLoader.get_code

    def changed(self, name):
        return (
            compile(source, str(path), "exec") if self.path == str(path) else get_code(self, name)
        )

    SourceFileLoader.get_code = changed


def main(name):
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    sys.dont_write_bytecode = True
    remove(GUARDS[name])
    try:
        GUARDS[name].check()
    except Exception as error:
        print(f"noticed: {type(error).__name__}: {error}")
        return 0
    print("the check holds without the guard")
    return 1


if __name__ == "__main__":
    sys.path.insert(0, str(SOURCES.parent))
    sys.exit(main(sys.argv[1]))
