"""Independent paths to the same numbers."""

import concurrent.futures
import itertools
from pathlib import Path

import numba
import numpy as np
import pytest

import scgd
from asking import (
    accepted,
    in_pieces,
    loop_of,
    run_loop,
    same_run,
    same_state,
    steps_of,
    told,
)  # fmt: skip
from reference import musketeer
from registry import CURVATURES, MINIMUM, POLICIES, STEPS, P, quadratic
from scgd.descent.blocks import BlockLoop
from scgd.descent.compiled import CompiledLoop
from scgd.descent.single import SingleLoop
from scgd.sampler import CoordinateSampler
from skeletons import run_page

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("normalization", ["l1", "softmax"])
@pytest.mark.parametrize("gain", ["average", "absolute", "square"])
def test_reference_of_the_paper(gain, normalization):
    """Same draws, same iterates and weights as forty lines written from the text."""
    policy = scgd.Musketeer(gain=gain, normalization=normalization, sharpness=3.0)
    rate, radius = scgd.InverseTime(1.0, 10.0), scgd.SqrtOf(scgd.InverseTime(1.0, 10.0))
    recipe = scgd.SCGD(policy=policy, estimator="forward", learning_rate=rate, radius=radius)
    opt = scgd.Optimizer(np.zeros(P), recipe, max_evals=2400, seed=7)
    sampler = steps_of(opt).sampler
    draws, iterates, laws = [], [], [sampler.weights()]
    while not opt.done:
        before = sampler.n_phases
        base, moved = opt.ask()
        (k,) = np.flatnonzero(base.x != moved.x)
        draws.append(k)
        opt.tell([base.id, moved.id], [quadratic(base.x), quadratic(moved.x)])
        iterates.append(opt.x)
        if sampler.n_phases > before:
            laws.append(sampler.weights())
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


@numba.njit
def compiled_pitted(x):
    """The quadratic, with holes of all kinds: about one value in eight is lost."""
    place = np.sin(1e4 * np.sum(x))
    if place > 0.98:
        return np.nan
    if place > 0.94:
        return np.inf
    if place < -0.97:
        return -np.inf
    if -0.02 < place < 0.02:
        return -1.7e308 * np.sign(place)  # finite, but the quotient overflows
    return compiled_quadratic(x)


def python_pitted(x):
    return compiled_pitted(x)


BOUNDS = [(-0.5, 0.7)] * P


def falling(phase):
    """Weights W_t of a phase."""
    return np.linspace(1.0, 2.0, P) / (1 + 0.1 * phase)


IMPORTANCES = {
    "inverse": "inverse",
    "relative": "relative",
    "fixed": np.linspace(0.5, 2, P),
    "callable": falling,
}
VARIANTS = {
    "plain": {},
    "forward": {"estimator": "forward"},
    "forward-bounded": {"estimator": "forward", "bounds": BOUNDS},
    "central-bounded": {"estimator": "central", "bounds": BOUNDS},
    **{
        f"importance-{name}": {"importance": kind, "learning_rate": 0.01, "radius": 0.1}
        for name, kind in IMPORTANCES.items()
    },
    "importance-relative-rate": {"importance": np.linspace(0.5, 2, P)},
    "scale": {"scale": np.linspace(0.5, 2, P)},
    "scale-inverse": {"scale": np.linspace(0.5, 2, P), "importance": "relative"},
    "softmax": {"policy": scgd.Musketeer(normalization="softmax", gain="average")},
    "passes": {"learning_rate": scgd.InverseTime(0.5, 10.0, per="pass"), "radius": 0.1},
}


def with_steps(names):
    """Pair the first name with every step rule, and every other with one, in turn."""
    first, *others = names
    return [(first, step) for step in STEPS] + list(
        zip(others, itertools.cycle(STEPS), strict=False)
    )


def split(keywords):
    """Return the recipe, and what is an argument of the optimizer."""
    own = {name: keywords[name] for name in ("bounds", "scale", "sample") if name in keywords}
    parts = {name: value for name, value in keywords.items() if name not in own}
    return scgd.SCGD(**parts), own


def optimizer(keywords, **options):
    recipe, own = split(keywords)
    options = {"max_evals": 900, "seed": 3, **own, **options}
    return scgd.Optimizer(options.pop("x0", np.full(P, 0.25)), recipe, **options)


def stepping(keywords, **options):
    """An optimizer whose steps are in units of x, so that it begins with them."""
    sizes = {"learning_rate": scgd.Linear(0.3), "radius": scgd.Linear(0.1, end=1e-3)}
    return optimizer({**sizes, **keywords}, **options)


@pytest.mark.parametrize(("variant", "step"), with_steps(VARIANTS))
def test_three_loops_are_one(step, variant):
    """Ask and tell, the Python loop and the compiled loop give the same bits, in any pieces."""
    keywords = {**VARIANTS[variant], "step": step}
    one, two, three = (optimizer(keywords) for _ in range(3))
    by_asking = told(one, python_quadratic)
    same_run(in_pieces(two, python_quadratic), by_asking)
    same_run(in_pieces(three, compiled_quadratic), by_asking)
    same_state(two, one)
    same_state(three, one)


@pytest.mark.parametrize("fun", [python_quadratic, compiled_quadratic])
def test_minimize_is_ask_and_tell(fun):
    recipe, _ = split({"estimator": "forward"})
    options = {"max_evals": 901, "seed": 3}
    opt = scgd.Optimizer(np.zeros(P), recipe, **options)
    ours = scgd.minimize(fun, np.zeros(P), method=recipe, **options)
    same_run(ours, told(opt, python_quadratic))


SINGLE = {name: VARIANTS[name] for name in ("plain", "forward-bounded", "importance-callable")}


@pytest.mark.parametrize("variant", SINGLE)
def test_single_loops_meet_values_that_are_lost(variant):
    """One lost value costs one value, the same in every loop, and quotients may overflow."""
    keywords = {**SINGLE[variant], "step": "rms"}
    one, two, three = (optimizer(keywords, failures="skip") for _ in range(3))
    values = []

    def noted(*arguments):
        values.append(python_pitted(*arguments))
        return values[-1]

    by_asking = told(one, noted)
    assert by_asking.n_failed == np.sum(~np.isfinite(values)) > 30
    assert np.all(np.isfinite(by_asking.x))
    same_run(in_pieces(two, python_pitted), by_asking)
    same_run(in_pieces(three, compiled_pitted), by_asking)
    same_state(two, one)
    same_state(three, one)


BLOCKS = {
    "central": {"block_size": 4},
    "forward-distinct": {"block_size": 4, "replace": False, "estimator": "forward"},
    "recent-gains": {
        "block_size": 3, "estimator": "forward", "policy": "recent-gains", "replace": False,
    },
    "spsa-inverse": {"block_size": 4, "estimator": "spsa", "importance": "inverse"},
    "spsa-uniform": {"block_size": 5, "estimator": "spsa", "replace": False, "policy": "uniform"},
    "spsa-single": {"estimator": "spsa", "policy": "uniform"},
    "spsa-full": {"estimator": "spsa", "policy": "full"},
    "central-full": {"estimator": "central", "policy": "full"},
    "forward-full": {"estimator": "forward", "policy": "full"},
    "forward-relative": {"block_size": 4, "estimator": "forward", "importance": "relative"},
    "central-fixed": {"block_size": 4, "importance": np.linspace(0.5, 2, P)},
    "forward-callable": {"block_size": 3, "estimator": "forward", "importance": falling},
    "spsa-callable": {"block_size": 3, "estimator": "spsa", "importance": falling},
}  # fmt: skip


@pytest.mark.parametrize("bounds", [None, BOUNDS], ids=["free", "bounded"])
@pytest.mark.parametrize(("parts", "step"), with_steps(BLOCKS))
def test_block_and_joint_loops_are_ask_and_tell(step, bounds, parts):
    keywords = {**BLOCKS[parts], "step": step, "bounds": bounds, "scale": np.linspace(0.5, 2, P)}
    one, two = (optimizer(keywords, max_evals=700) for _ in range(2))
    by_asking = told(one, python_quadratic)
    same_run(in_pieces(two, python_quadratic), by_asking)
    same_state(two, one)


@pytest.mark.parametrize("parts", BLOCKS)
@pytest.mark.parametrize("on_nonfinite", ["raise", "skip"])
def test_block_and_joint_loops_meet_values_that_are_not_finite(parts, on_nonfinite):
    """The same error, or the same values lost, as by ask and tell; x is put back."""
    keywords = {**BLOCKS[parts], "step": "rms", "scale": 1.0}
    options = {"max_evals": 600, "failures": on_nonfinite}
    opt, other = (optimizer(keywords, **options) for _ in range(2))
    if on_nonfinite == "skip":
        by_asking = told(opt, python_pitted)
        same_run(in_pieces(other, python_pitted), by_asking)
        same_state(other, opt)
        assert by_asking.n_failed > 20
        return
    with pytest.raises(FloatingPointError) as theirs:
        accepted(opt, python_pitted)
    with pytest.raises(FloatingPointError) as ours:
        run_loop(other, python_pitted)
    assert str(ours.value) == str(theirs.value)
    ours, theirs = steps_of(other), steps_of(opt)
    np.testing.assert_array_equal(ours.x, theirs.x)
    np.testing.assert_array_equal(ours.point.buffer, ours.x)


@pytest.mark.parametrize("estimator", ["forward", "central"])
def test_single_loops_refuse_values_in_the_same_words(estimator):
    keywords, said = {"estimator": estimator, "scale": 1.0}, []
    for fun, go in (
        (python_pitted, accepted),
        (python_pitted, run_loop),
        (compiled_pitted, run_loop),
    ):
        opt = optimizer(keywords)
        with pytest.raises(FloatingPointError) as caught:
            go(opt, fun)
        said.append((str(caught.value), steps_of(opt).x.tolist()))
        np.testing.assert_array_equal(steps_of(opt).point.buffer, steps_of(opt).x)
    assert said[0] == said[1] == said[2]


def test_compiled_function_takes_the_compiled_loop():
    opt = optimizer({})
    assert type(loop_of(opt, compiled_quadratic)) is CompiledLoop
    assert type(loop_of(opt, python_quadratic)) is SingleLoop
    assert type(loop_of(optimizer({"block_size": 2}), compiled_quadratic)) is BlockLoop
    assert type(loop_of(optimizer({"estimator": "spsa"}), compiled_quadratic)) is BlockLoop
    # What compiled code cannot ask in the middle keeps it in Python.
    assert type(loop_of(optimizer({"importance": falling}), compiled_quadratic)) is SingleLoop
    sampled = optimizer({}, sample=lambda rng: rng.random())
    assert type(loop_of(sampled, compiled_quadratic)) is SingleLoop


def test_no_loop_where_only_ask_and_tell_will_do():
    assert loop_of(optimizer({"estimator": "gaussian"}), python_quadratic) is None
    assert loop_of(optimizer({"policy": "gauss-southwell"}), python_quadratic) is None
    assert loop_of(optimizer({"average": True}), python_quadratic) is None


OWN_POLICY = run_page(DOCS / "adding-a-policy.md")["Cyclic"]
OWN_STEP = run_page(DOCS / "adding-a-step-rule.md")["Clipped"]


@pytest.mark.parametrize(
    "parts", [{}, {"estimator": "forward"}, {"block_size": 4}, {"estimator": "spsa"}],
    ids=["central", "forward", "block", "joint"],
)  # fmt: skip
@pytest.mark.parametrize("own", ["policy", "step", "both"])
def test_parts_of_the_user_run_in_every_loop(parts, own):
    """A kernel or a policy written by a user is not looked past by any body."""
    mine = {"policy": OWN_POLICY(stride=5), "step": OWN_STEP(limit=0.05)}
    keywords = {**parts, **(mine if own == "both" else {own: mine[own]})}
    one, two, three = (optimizer(keywords) for _ in range(3))
    by_asking = told(one, python_quadratic)
    same_run(in_pieces(two, python_quadratic), by_asking)
    same_run(in_pieces(three, compiled_quadratic), by_asking)
    same_state(two, one)
    same_state(three, one)
    plain = told(optimizer(parts), python_quadratic)
    assert not np.array_equal(plain.x, by_asking.x)


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


def python_rows(x, rows, scale):
    return compiled_rows(x, rows, scale)


@pytest.mark.parametrize("parts", ["central", "forward-distinct", "spsa-uniform", "single"])
def test_rows_and_args_reach_all_loops_alike(parts):
    keywords = {} if parts == "single" else BLOCKS[parts]
    n = 1100 if parts == "single" else 2500  # more than a chunk of steps
    options = {"max_evals": n, "sample": scgd.Rows(50, 3)}
    one, two, three = (optimizer(keywords, **options) for _ in range(3))
    by_asking = told(one, python_rows, (2.0,))
    same_run(in_pieces(two, python_rows, (2.0,)), by_asking)
    same_run(in_pieces(three, compiled_rows, (2.0,)), by_asking)
    same_state(two, one)
    same_state(three, one)


def sampled(x, xi):
    return float(CURVATURES @ (x - MINIMUM - 0.1 * xi) ** 2)


def normal(rng):
    return rng.standard_normal(P)


@pytest.mark.parametrize("parts", ["single", *BLOCKS])
def test_samples_of_the_user_reach_all_loops_alike(parts):
    keywords = {} if parts == "single" else BLOCKS[parts]
    one, two = (optimizer(keywords, sample=normal, max_evals=400) for _ in range(2))
    same_run(told(one, sampled), in_pieces(two, sampled))
    same_state(two, one)


@pytest.mark.parametrize("method", ["musketeer", "full", "spsa"])
@pytest.mark.parametrize("sample", [None, normal])
def test_any_number_of_workers(method, sample):
    fun = quadratic if sample is None else sampled
    keywords = {"method": method, "sample": sample, "max_evals": 300, "seed": 2, "scale": 0.5}
    if method == "musketeer":
        keywords["method"] = scgd.SCGD(block_size=4)
    alone = scgd.minimize(fun, np.zeros(P), **keywords)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        same_run(alone, scgd.minimize(fun, np.zeros(P), workers=pool, **keywords))
    same_run(alone, scgd.minimize(fun, np.zeros(P), workers=map, **keywords))


def test_local_processes():
    keywords = {"method": scgd.SCGD(block_size=4), "max_evals": 80, "seed": 2, "scale": 0.5}
    alone = scgd.minimize(quadratic, np.zeros(P), **keywords)
    same_run(alone, scgd.minimize(quadratic, np.zeros(P), workers=2, **keywords))


@pytest.mark.parametrize("estimator", ["gaussian", "sphere", "spsa", "forward", "central"])
@pytest.mark.parametrize("block_size", [3, P])
def test_this_process_evaluates_the_points_that_are_asked(estimator, block_size):
    """A support of all coordinates is not all coordinates in order."""
    keywords = {"policy": "uniform", "estimator": estimator, "block_size": block_size}
    opt = optimizer(keywords, x0=np.zeros(P), max_evals=900)
    recipe, _ = split(keywords)
    ours = scgd.minimize(quadratic, np.zeros(P), method=recipe, max_evals=900, seed=3)
    same_run(ours, told(opt, quadratic))


def test_vectorized_function():
    def batch(points):
        return ((points - MINIMUM) ** 2 @ CURVATURES) / 2

    keywords = {"method": "spsa", "max_evals": 400, "seed": 1, "scale": 1.0}
    one = scgd.minimize(lambda x: float(batch(x[None])[0]), np.zeros(P), **keywords)
    many = scgd.minimize(batch, np.zeros(P), workers=scgd.Workers(vectorized=True), **keywords)
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
