"""Spaces through the front doors: what fun is given, what is paid for, resuming, workers, refusals."""

import re

import numpy as np
import pytest

import scgd
from scgd import Choice, Float, Int, Space

SPACE = Space(
    lr=Float(1e-4, 1, log=True),
    depth=Int(2, 12),
    booster=Choice("gbdt", "dart", "goss"),
    drop=Float(0, 0.5, when={"booster": "dart"}),
    w=Float(-1, 1, size=2),
)


def loss(params):
    """Least, 0, at lr = 0.01, depth 9, dart with drop 0.2, w = 0.3."""
    value = (np.log10(params["lr"]) + 2) ** 2 + (params["depth"] - 9) ** 2 / 10
    value += ((params["w"] - 0.3) ** 2).sum()
    return float(value + ((params["drop"] - 0.2) ** 2 if "drop" in params else 0.2))


class Recorded:
    """A function that keeps what it was called with."""

    def __init__(self, fun):
        self.fun, self.calls = fun, []

    def __call__(self, params, *rest):
        self.calls.append({k: repr(v) for k, v in params.items()})
        return self.fun(params, *rest)

    @property
    def n_repeats(self):
        return len(self.calls) - len({repr(call) for call in self.calls})


METHODS = ("auto", "gp", "dds")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(3))
def test_fun_is_given_params_and_the_least_is_found(method, seed):
    fun = Recorded(loss)
    result = scgd.minimize(fun, SPACE, method=method, max_evals=120, seed=seed)
    assert len(fun.calls) == result.nfev == 120
    assert fun.calls[0] == {k: repr(v) for k, v in SPACE.start.items()}
    assert all(("drop" in call) == (call["booster"] == "'dart'") for call in fun.calls)
    assert result.fun == loss(result.params) < 0.2
    assert result.params["booster"] == "dart" and abs(result.params["depth"] - 9) <= 1
    np.testing.assert_allclose(SPACE.encode(result.params), result.x, atol=1e-12)
    assert fun.n_repeats <= 1
    assert type(result.params["depth"]) is int and type(result.params["lr"]) is float


def test_a_smooth_deterministic_function_is_not_even_repeated_once():
    fun = Recorded(loss)
    scgd.minimize(fun, Space(lr=Float(1e-4, 1, log=True), depth=Int(2, 12), w=Float(-1, 1, size=2)), max_evals=60, seed=0)  # fmt: skip
    assert fun.n_repeats == 0


@pytest.mark.parametrize("method", METHODS)
def test_a_small_space_is_exhausted_and_the_run_ends(method):
    space = Space(a=Int(1, 4), b=Choice("x", "y"), c=Choice(1, 2, when={"b": "y"}))
    fun = Recorded(lambda p: p["a"] * (1.0 if p["b"] == "x" else p["c"] - 1.5))
    result = scgd.minimize(fun, space, method=method, max_evals=100, seed=0)
    assert len({repr(call) for call in fun.calls}) == 12 and fun.n_repeats <= 1
    assert result.status in (8, 9) and result.success
    assert result.params == {"a": 4, "b": "y", "c": 1} and result.fun == -2.0


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_space_ends_too(method):
    result = scgd.minimize(lambda p: 3.0, Space(a=Choice(1), b=Float(2, 2)), method=method, seed=0)
    assert result.params == {"a": 1, "b": 2.0} and result.nfev <= 2 and result.fun == 3.0


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_noise_is_averaged_and_the_luckiest_value_is_not_believed(method):
    noise, losses, believed = np.random.default_rng(0), [], []
    for seed in range(4):
        fun = Recorded(lambda p: loss(p) + 0.3 * noise.standard_normal())
        result = scgd.minimize(fun, SPACE, method=method, max_evals=120, seed=seed)
        losses.append(loss(result.params))
        believed.append(result.fun - losses[-1])
        assert fun.n_repeats > 2
    assert np.median(losses) < (0.5 if method == "dds" else 0.15)
    assert np.mean(believed) > -0.4  # the least of 120 values lies .75 below


def test_samples_are_handed_over_and_shared_by_points_that_are_compared():
    seen = {}

    def fun(params, xi):
        seen.setdefault(repr(params), []).append(xi)
        return loss(params) + 0.3 * xi

    result = scgd.minimize(
        fun, SPACE, sample=lambda rng: rng.standard_normal(), method="dds", max_evals=200, seed=0
    )
    again = [set(v) for v in seen.values() if len(v) > 2]
    assert any(v & w for i, v in enumerate(again) for w in again[:i])
    assert loss(result.params) < 0.6


@pytest.mark.parametrize("method", METHODS)
def test_failures_are_counted_and_avoided(method):
    def fun(params):
        if params["depth"] > 9:
            return float("nan")
        return loss(params)

    result = scgd.minimize(fun, SPACE, method=method, max_evals=120, seed=1, failures="skip")
    assert 0 < result.n_failed < 50 and loss(result.params) < 0.3


def test_nothing_but_failures_is_no_success():
    result = scgd.minimize(lambda p: float("nan"), SPACE, max_evals=40, seed=0, failures="skip")
    assert result.status == 7 and not result.success and result.params.keys() == SPACE.start.keys()


class Stop(Exception):
    """Raised instead of an evaluation."""


@pytest.mark.parametrize("method", ["gp", "dds"])
@pytest.mark.parametrize("cut", [1, 5, 61])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_a_run_that_is_cut_goes_on_bit_for_bit(method, cut, noise, tmp_path):
    def made(n, limit=10**9):
        def fun(params):
            fun.n += 1
            if fun.n > limit:
                raise Stop
            return loss(params) + noise * np.sin(1e4 * fun.n)

        fun.n = n
        return fun

    whole = scgd.minimize(made(0), SPACE, method=method, max_evals=80, seed=3)
    path = tmp_path / "run.npz"
    with pytest.raises(Stop):
        scgd.minimize(made(0, cut), SPACE, method=method, max_evals=80, seed=3, checkpoint=path)
    again = scgd.minimize(made(cut), SPACE, method=method, max_evals=80, seed=3, checkpoint=path)
    assert repr(again.params) == repr(whole.params) and again.fun == whole.fun
    assert np.array_equal(again.history["fun"], whole.history["fun"])


def test_more_budget_goes_on(tmp_path):
    path, fun = tmp_path / "run.npz", Recorded(loss)
    scgd.minimize(fun, SPACE, max_evals=40, seed=3, checkpoint=path)
    result = scgd.minimize(fun, SPACE, max_evals=90, seed=3, checkpoint=path)
    assert result.nfev == len(fun.calls) == 90 and fun.n_repeats <= 1


def test_another_space_is_another_run(tmp_path):
    path = tmp_path / "run.npz"
    scgd.minimize(loss, SPACE, max_evals=20, seed=3, checkpoint=path)
    other = Space({**SPACE.parameters, "lr": Float(1e-4, 2, log=True)})
    with pytest.raises(scgd.CheckpointError, match="belongs to another run: its space is"):
        scgd.minimize(loss, other, max_evals=20, seed=3, checkpoint=path)


@pytest.mark.filterwarnings("ignore:2 workers for the 1 evaluations")
@pytest.mark.parametrize("method", METHODS)
def test_workers_change_nothing(method):
    one, two = (
        scgd.minimize(loss, SPACE, method=method, max_evals=40, seed=2, workers=workers)
        for workers in (1, 2)
    )
    assert repr(one.params) == repr(two.params) and one.fun == two.fun
    assert np.array_equal(one.history["fun"], two.history["fun"])


@pytest.mark.parametrize("method", METHODS)
def test_several_at_a_time(method):
    fun = Recorded(loss)
    result = scgd.minimize(
        fun, SPACE, method=method, max_evals=100, seed=2, workers=scgd.Workers(map, asynchronous=4)
    )
    assert result.nfev == 100 and fun.n_repeats <= 1 and result.fun < 0.3


@pytest.mark.parametrize("method", METHODS)
def test_ask_and_tell_with_values_late_and_lost(method):
    opt, rng, out = (
        scgd.Optimizer(SPACE, method, max_evals=100, seed=1),
        np.random.default_rng(0),
        [],
    )
    while not opt.done:
        out += opt.ask(5)
        rng.shuffle(out)
        for trial in [out.pop() for _ in range(rng.integers(1, len(out) + 1))]:
            np.testing.assert_allclose(SPACE.encode(trial.params), trial.x, atol=1e-12)
            opt.fail(trial.id) if rng.random() < 0.1 else opt.tell(trial.id, loss(trial.params))
        opt.run.load_state_dict(opt.run.state_dict())
    result = opt.result()
    assert result.nfev == 100 and result.fun == loss(result.params) < 0.5


def test_real_numbers_alone_go_to_the_searches_of_auto():
    space = Space(a=Float(1e-3, 1e3, log=True), b=Float(-5, 5), c=Float(-5, 5))
    fun = lambda p: np.log(p["a"] / 20) ** 2 + (p["b"] - 1) ** 2 + (p["c"] - p["b"]) ** 2  # noqa: E731
    result = scgd.minimize(fun, space, max_evals=600, seed=0)
    assert result.fun < 1e-6 and result.params["a"] == pytest.approx(20, rel=1e-2)
    assert scgd.minimize(fun, space, method="musketeer", max_evals=600, seed=0).fun < 0.1


def test_a_target_ends_the_run():
    result = scgd.minimize(loss, SPACE, target=0.5, max_evals=500, seed=0)
    assert result.status == 0 and result.nfev < 200


BAD = [
    ({"bounds": [(0, 1)]}, "bounds makes no sense with a Space; drop it: give each parameter its own"),
    ({"scale": 1.0}, "scale makes no sense with a Space; drop it: the bounds of the parameters"),
    ({"jac": loss}, "jac makes no sense with a Space; drop it: a function of named parameters"),
    ({"workers": scgd.Workers(vectorized=True)}, "vectorized makes no sense with a Space; drop it: fun is called with one dict"),
    ({"method": "musketeer"}, "knows no whole numbers, choices or conditions; with this Space use one of ['auto', 'random', 'gp', 'dds']"),
    ({"method": "spsa"}, "method 'spsa' knows no whole numbers"),
    ({"method": scgd.SCGD(policy="uniform")}, "knows no whole numbers"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(BAD)))
def test_what_makes_no_sense_is_refused_before_anything_runs(case):
    keywords, message = BAD[case]
    fun = Recorded(loss)
    with pytest.raises(ValueError, match=re.escape(message)):
        scgd.minimize(fun, SPACE, max_evals=20, **keywords)
    assert not fun.calls


def test_ask_and_tell_refuses_the_same():
    with pytest.raises(ValueError, match="first_order makes no sense with a Space"):
        scgd.Optimizer(SPACE, first_order=True)
    with pytest.raises(ValueError, match="bounds makes no sense with a Space"):
        scgd.Optimizer(SPACE, bounds=[(0, 1)])
