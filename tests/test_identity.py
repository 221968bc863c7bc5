"""What makes two runs the same: each difference is named, and what does not matter is let pass."""

import json

import numpy as np
import pytest

import scgd
from grouped import grouped
from scgd.checkpoint import FORMAT, CheckpointError, OtherRun, previous, read

N = 80


def fun(x, *rest):
    return float(np.sum((x - 1.0) ** 2))


def draw(rng):
    return rng.standard_normal(2)


def call(path, x0=None, **change):
    keywords = {"method": "musketeer", "max_evals": 200, "seed": 4, "scale": 1.0, **change}
    x0 = np.arange(N, dtype=float) if x0 is None else x0
    return scgd.minimize(fun, x0, checkpoint=path, **grouped(**keywords))


PERMUTED = np.arange(N, dtype=float)[::-1].copy()
BOUNDS = np.tile([-100.0, 100.0], (N, 1))
DIFFERENT = {
    "x0 permuted": ({}, {"x0": PERMUTED}, "its x0 differs"),
    "dimension": ({}, {"x0": np.arange(5.0)}, "its dimension is 80 there and 5 here"),
    "bounds given": ({}, {"bounds": BOUNDS}, "its bounds differs"),
    "bounds dropped": ({"bounds": BOUNDS}, {}, "its bounds differs"),
    "bounds wider": ({"bounds": BOUNDS}, {"bounds": 2 * BOUNDS}, "its bounds differs"),
    "scale": ({}, {"scale": 2.0}, "its scale differs"),
    "scale dropped": ({}, {"scale": None}, "its scale differs"),
    "args' shapes": (
        {"args": (np.ones(3), 1.0)}, {"args": (np.ones(4), 1.0)},
        r"its args is \['ndarray\(3,\)', 'float'\] there and \['ndarray\(4,\)', 'float'\] here",
    ),
    "args dropped": ({"args": (1.0,)}, {}, r"its args is \['float'\] there and \[\] here"),
    "sample dropped": ({"sample": draw}, {}, "its sample is 'xi' there and 'none' here"),
    "sample's kind": ({"sample": draw}, {"sample": 9}, "'xi' there and '1 of 9 rows' here"),
    "rows": ({"sample": 9}, {"sample": 8}, "'1 of 9 rows' there and '1 of 8 rows' here"),
    "batch": ({"sample": 9}, {"sample": 9, "batch_size": 2}, "and '2 of 9 rows' here"),
    "method": ({}, {"method": "uniform"}, "its method is"),
    "step": ({}, {"step": "adam"}, "its method is"),
    "nonfinite": ({}, {"nonfinite": "skip"}, "its on_nonfinite is 'raise' there"),
    "seed": ({}, {"seed": 5}, r"its seed is '4 \[\]' there and '5 \[\]' here"),
    "seed's child": (
        {"seed": np.random.SeedSequence(4).spawn(2)[0]},
        {"seed": np.random.SeedSequence(4).spawn(2)[1]},
        r"its seed is '4 \[0\]' there and '4 \[1\]' here",
    ),
    "asynchronous": ({}, {"asynchronous": 4}, "its asynchronous is 0 there and 4 here"),
}  # fmt: skip


@pytest.mark.parametrize("case", DIFFERENT)
def test_another_run_is_refused_and_the_difference_named(case, tmp_path):
    there, here, message = DIFFERENT[case]
    path = tmp_path / "run.npz"
    call(path, **there)
    call(path, **there, max_evals=300)  # so that there is one before, which is no better
    content, before = path.read_bytes(), previous(path).read_bytes()
    with pytest.raises(OtherRun, match=message):
        call(path, **here)
    assert (path.read_bytes(), previous(path).read_bytes()) == (content, before)


class Halving:
    """A schedule without a representation of its own."""

    def __call__(self, t):
        return 0.3 / (1 + t / 50)


SAME = {
    "a list of seeds": ({"seed": np.random.SeedSequence([1, 2])},) * 2,
    "one entropy": ({"seed": np.random.SeedSequence(4)}, {"seed": 4}),
    "no seed": ({"seed": None}, {"seed": None}),
    "no seed at resume": ({"seed": 7}, {"seed": None}),
    "lambdas": (
        {"learning_rate": lambda t: 0.3 / (1 + t / 50)},
        {"learning_rate": lambda t: 0.3 / (1 + t / 50)},
    ),
    "schedule objects": ({"learning_rate": Halving()}, {"learning_rate": Halving()}),
    "samples": ({"sample": lambda rng: rng.random()}, {"sample": lambda rng: rng.random()}),
    "args' values": ({"args": (np.ones(3),)}, {"args": (np.ones(3),)}),
    "bounds": ({"bounds": BOUNDS}, {"bounds": [tuple(pair) for pair in BOUNDS.tolist()]}),
    "children": (
        {"seed": np.random.SeedSequence(4, spawn_key=(3, 1))},
        {"seed": np.random.SeedSequence(4, spawn_key=(3, 1))},
    ),
    "asynchronous, no seed": ({"seed": None, "asynchronous": 4},) * 2,
}


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@pytest.mark.parametrize("case", SAME)
def test_the_same_run_goes_on(case, tmp_path):
    there, here = SAME[case]
    path, cut, calls = tmp_path / "run.npz", [], []

    def stops(x, *rest):
        cut.append(1)
        if len(cut) == 100:
            raise KeyboardInterrupt
        return fun(x)

    def counted(x, *rest):
        calls.append(1)
        return fun(x)

    keywords = {"method": "musketeer", "max_evals": 200, "scale": 1.0, "seed": 4}
    x0 = np.arange(N, dtype=float)
    first = scgd.minimize(stops, x0, checkpoint=path, **grouped(**{**keywords, **there}))
    assert first.status == 4 and 98 <= first.nfev <= 99
    seed = read(path)[0]["seed"]
    whole = scgd.minimize(counted, x0, checkpoint=path, **grouped(**{**keywords, **here}))
    assert whole.nfev == 200 and len(calls) == 200 - first.nfev
    assert read(path)[0]["seed"] == seed
    entropy, spawn_key = (
        json.JSONDecoder().raw_decode(seed)[0],
        json.loads(seed[seed.index(" [") :]),
    )
    again = np.random.SeedSequence(entropy, spawn_key=tuple(spawn_key))
    other = scgd.minimize(fun, x0, **grouped(**{**keywords, **here, "seed": again}))
    assert np.array_equal(other.x, whole.x)


def test_a_spawning_seed_is_not_advanced():
    seed = np.random.SeedSequence(4)
    one, other = (scgd.minimize(fun, np.zeros(4), max_evals=60, seed=seed) for _ in range(2))
    assert np.array_equal(one.x, other.x) and seed.n_children_spawned == 0


@pytest.mark.parametrize("version", [1, FORMAT - 1, FORMAT + 1, 99, "one", None])
def test_other_formats_are_refused_with_their_version_named(version, tmp_path):
    path = tmp_path / "run.npz"
    document = {"format": version, "identity": {"n_coords": N}, "state": {"nfev": 3}}
    np.savez(path, document=np.array(json.dumps(document)), theta=np.zeros(N))
    content = path.read_bytes()
    with pytest.raises(
        CheckpointError, match=rf"has format {version!r}, this version reads {FORMAT}"
    ):
        call(path)
    assert path.read_bytes() == content


def test_the_users_function_may_be_mended_between_two_runs(tmp_path):
    path = tmp_path / "run.npz"

    def broken(x):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        scgd.minimize(broken, np.zeros(4), max_evals=60, seed=1, checkpoint=path)
    mended = scgd.minimize(fun, np.zeros(4), max_evals=60, seed=1, checkpoint=path)
    assert np.array_equal(mended.x, scgd.minimize(fun, np.zeros(4), max_evals=60, seed=1).x)


def test_optimizer_checks_the_same(tmp_path):
    path = tmp_path / "run.npz"
    scgd.Optimizer(np.zeros(4), max_evals=60, seed=1).save(path)
    assert scgd.Optimizer(np.zeros(4), max_evals=60, seed=1).resume(path)
    with pytest.raises(OtherRun, match="its x0 differs"):
        scgd.Optimizer(np.ones(4), max_evals=60, seed=1).resume(path)
    assert not scgd.Optimizer(np.zeros(4), seed=1).resume(tmp_path / "none.npz")
