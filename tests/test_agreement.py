"""Independent paths to the same numbers."""

import concurrent.futures

import numba
import numpy as np
import pytest

import scgd
from reference import musketeer
from registry import CURVATURES, MINIMUM, POLICIES, STEPS, P, quadratic
from scgd.explore import CompiledExplorer, explorer
from scgd.sampler import CoordinateSampler


def told(opt, fun):
    """Run an optimizer by ask and tell to the end of its budget."""
    while not opt.done:
        probes = opt.ask()
        opt.tell(probes.ids, [fun(x) for x in probes.points()])
    return opt.result()


@pytest.mark.parametrize("normalization", ["l1", "softmax"])
@pytest.mark.parametrize("gain", ["average", "absolute", "square"])
def test_reference_of_the_paper(gain, normalization):
    """Same draws, same iterates and weights as forty lines written from the text."""
    policy = scgd.Musketeer(gain=gain, normalization=normalization, sharpness=3.0)
    rate, radius = scgd.InverseTime(1.0, 10.0), scgd.SqrtOf(scgd.InverseTime(1.0, 10.0))
    recipe = scgd.RECIPES["musketeer"].override(
        policy=policy, estimator="forward", learning_rate=rate, radius=radius
    )
    opt = scgd.Optimizer(np.zeros(P), recipe, max_evals=2400, seed=7)
    draws, iterates, laws = [], [], [opt.sampler.weights()]
    while not opt.done:
        before = opt.sampler.n_phases
        probes = opt.ask()
        draws.append(int(probes.support[0]))
        opt.tell(probes.ids, [quadratic(x) for x in probes.points()])
        iterates.append(opt.theta.copy())
        if opt.sampler.n_phases > before:
            laws.append(opt.sampler.weights())
    steps = np.arange(1, 1201)
    length = policy.phase_length(P)
    theirs, weights = musketeer(
        quadratic,
        np.zeros(P),
        np.reshape(draws, (-1, length)),
        rate(steps),
        radius(steps),
        gain,
        normalization,
        3.0,
        lambda n: min(1.0, 1 / np.log(n + 3)),
        length,
    )
    np.testing.assert_allclose(iterates, theirs, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(laws, weights, rtol=1e-10, atol=1e-14)


@numba.njit
def compiled_quadratic(x):
    total = 0.0
    for k in range(x.size):
        total += CURVATURES[k] * (x[k] - MINIMUM[k]) ** 2
    return total / 2.0


def python_quadratic(x):
    return compiled_quadratic(x)


def same_run(a, b):
    assert np.array_equal(a.x, b.x)
    assert a.fun == b.fun or (np.isnan(a.fun) and np.isnan(b.fun))
    assert np.array_equal(a.weights, b.weights)
    assert np.array_equal(a.history["fun"], b.history["fun"])
    assert a.nfev == b.nfev and a.nit == b.nit


BOUNDS = [(-0.5, 0.7)] * P
VARIANTS = [
    {},
    {"estimator": "forward"},
    {"estimator": "forward", "bounds": BOUNDS},
    {"estimator": "central", "bounds": BOUNDS},
    {"importance": "inverse", "learning_rate": 0.01, "radius": 0.1},
    {"importance": np.linspace(0.5, 2, P)},
    {"scale": np.linspace(0.5, 2, P)},
    {"policy": scgd.Musketeer(normalization="softmax", gain="average")},
]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("variant", range(len(VARIANTS)))
def test_three_loops_are_one(step, variant):
    """Ask and tell, the Python loop and the compiled loop give the same bits."""
    keywords = {**VARIANTS[variant], "step": step}
    x0 = np.full(P, 0.25)
    inline = scgd.minimize(
        python_quadratic, x0, method="musketeer", max_evals=900, seed=3, **keywords
    )
    compiled = scgd.minimize(
        compiled_quadratic, x0, method="musketeer", max_evals=900, seed=3, **keywords
    )
    same_run(inline, compiled)
    bounds, scale = keywords.pop("bounds", None), keywords.pop("scale", None)
    recipe = scgd.RECIPES["musketeer"].override(**keywords)
    opt = scgd.Optimizer(x0, recipe, bounds=bounds, scale=scale, max_evals=900, seed=3)
    same_run(inline, told(opt, python_quadratic))


BLOCKS = [
    {"block_size": 4},
    {"block_size": 4, "replace": False, "estimator": "forward"},
    {"block_size": 3, "estimator": "forward", "policy": "recent-gains", "replace": False},
    {"block_size": 4, "estimator": "spsa", "importance": "inverse"},
    {"block_size": 5, "estimator": "spsa", "replace": False, "policy": "uniform"},
    {"estimator": "spsa", "policy": "full"},
    {"estimator": "central", "policy": "full"},
]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("bounds", [None, BOUNDS], ids=["free", "bounded"])
@pytest.mark.parametrize("parts", range(len(BLOCKS)))
def test_block_and_joint_loops_are_ask_and_tell(step, bounds, parts):
    recipe = scgd.RECIPES["musketeer"].override(**BLOCKS[parts], step=step)
    x0, options = np.full(P, 0.25), {"bounds": bounds, "max_evals": 700, "seed": 3}
    opt = scgd.Optimizer(x0, recipe, scale=np.linspace(0.5, 2, P), **options)
    assert explorer(opt, python_quadratic, ()) is not None
    inline = scgd.minimize(
        python_quadratic, x0, method=recipe, scale=np.linspace(0.5, 2, P), **options
    )
    same_run(inline, told(opt, python_quadratic))


@pytest.mark.parametrize("parts", range(len(BLOCKS)))
@pytest.mark.parametrize("on_nonfinite", ["raise", "skip"])
def test_block_and_joint_loops_meet_values_that_are_not_finite(parts, on_nonfinite):
    """The same error, or the same steps skipped, as by ask and tell; x is put back."""
    recipe = scgd.RECIPES["musketeer"].override(**BLOCKS[parts], step="rms")
    calls = 0

    def fun(x):
        nonlocal calls
        calls += 1
        return np.nan if calls % 11 == 0 else python_quadratic(x)

    options = {"max_evals": 300, "seed": 3, "scale": 1.0, "on_nonfinite": on_nonfinite}
    opt = scgd.Optimizer(np.zeros(P), recipe, **options)
    if on_nonfinite == "skip":
        whole = told(opt, fun)
        calls = 0
        same_run(scgd.minimize(fun, np.zeros(P), method=recipe, **options), whole)
        assert whole.n_skipped > 0
        return
    with pytest.raises(FloatingPointError) as theirs:
        told(opt, fun)
    calls = 0
    other = scgd.Optimizer(np.zeros(P), recipe, **options)
    with pytest.raises(FloatingPointError) as ours:
        explorer(other, fun, ()).run(300, stop_at_phase=False)
    assert str(ours.value) == str(theirs.value)
    np.testing.assert_array_equal(other.theta, opt.theta)


def test_compiled_function_takes_the_compiled_loop():
    opt = scgd.Optimizer(np.zeros(P), "musketeer", max_evals=100, seed=0)
    assert type(explorer(opt, compiled_quadratic, ())) is CompiledExplorer
    assert type(explorer(opt, python_quadratic, ())) is not CompiledExplorer


DATA = np.random.default_rng(0).standard_normal((50, P))


@numba.njit
def compiled_rows(x, rows, scale):
    total = 0.0
    for i in rows:
        inner = 0.0
        for k in range(x.size):
            inner += DATA[i, k] * (x[k] - MINIMUM[k])
        total += inner * inner
    return scale * total / rows.size


def test_rows_and_args_reach_all_loops_alike():
    keywords = {"sample": 50, "batch_size": 3, "max_evals": 3000, "seed": 5, "method": "uniform"}
    compiled = scgd.minimize(compiled_rows, np.zeros(P), (2.0,), **keywords)
    inline = scgd.minimize(lambda *a: compiled_rows(*a), np.zeros(P), (2.0,), **keywords)
    same_run(compiled, inline)


def sampled(x, xi):
    return float(CURVATURES @ (x - MINIMUM - 0.1 * xi) ** 2)


def normal(rng):
    return rng.standard_normal(P)


@pytest.mark.parametrize("method", ["musketeer", "full", "spsa"])
@pytest.mark.parametrize("sample", [None, normal])
def test_any_number_of_workers(method, sample):
    fun = quadratic if sample is None else sampled
    keywords = {"method": method, "sample": sample, "max_evals": 300, "seed": 2, "scale": 0.5}
    if method == "musketeer":
        keywords["block_size"] = 4
    alone = scgd.minimize(fun, np.zeros(P), **keywords)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        same_run(alone, scgd.minimize(fun, np.zeros(P), workers=pool, **keywords))
    same_run(alone, scgd.minimize(fun, np.zeros(P), workers=map, **keywords))


def test_local_processes():
    keywords = {"method": "musketeer", "block_size": 4, "max_evals": 80, "seed": 2, "scale": 0.5}
    alone = scgd.minimize(quadratic, np.zeros(P), **keywords)
    same_run(alone, scgd.minimize(quadratic, np.zeros(P), workers=2, **keywords))


def test_vectorized_function():
    def batch(points):
        return ((points - MINIMUM) ** 2 @ CURVATURES) / 2

    keywords = {"method": "spsa", "max_evals": 400, "seed": 1, "scale": 1.0}
    one = scgd.minimize(lambda x: float(batch(x[None])[0]), np.zeros(P), **keywords)
    many = scgd.minimize(batch, np.zeros(P), vectorized=True, **keywords)
    np.testing.assert_allclose(many.x, one.x, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", POLICIES)
def test_cut_phases_do_not_matter(name):
    """A sampler advanced in odd pieces draws what one advanced whole phases at a time draws."""

    def run(pieces):
        stream = scgd.random.stream(np.random.SeedSequence(1))
        sampler = CoordinateSampler(POLICIES[name], P, stream)
        drawn = []
        for size in pieces:
            while size:
                n = min(size, sampler.n_draws - sampler.position)
                here = slice(sampler.position, sampler.position + n)
                drawn += sampler.coords[here].tolist()
                sampler.grads[here] = np.cos(sampler.coords[here])
                sampler.advance(n)
                size -= n
        return drawn, sampler.weights()

    whole, odd = run([300]), run([1, 2, 4, 7, 86, 100, 100])
    assert whole[0] == odd[0]
    assert np.array_equal(whole[1], odd[1])
