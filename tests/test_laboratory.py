"""A laboratory: batches of any size, late and failed values, earlier ones, the notebook closed."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import scgd
from asking import same_run, told
from registry import EVERY_METHOD, MINIMUM, P, quadratic
from scgd.trials import Trials
from skeletons import run_page

DOCS = Path(__file__).parents[1] / "docs"


def same_optimizer(a, b):
    np.testing.assert_equal(a.state_dict(), b.state_dict())


# ---- one set of words ------------------------------------------------------------------------------

ONLY_MINIMIZE = {
    "fun", "args", "jac", "max_time", "target", "workers", "reporting", "checkpoint",
}  # fmt: skip
ONLY_OPTIMIZER = {"self", "first_order", "record"}


def test_optimizer_takes_what_minimize_takes():
    """One set of words: the same names, defaults, kinds and types at both front doors."""
    door = inspect.signature(scgd.minimize).parameters
    opt = inspect.signature(scgd.Optimizer.__init__).parameters
    assert set(door) - set(opt) == ONLY_MINIMIZE
    assert set(opt) - set(door) == ONLY_OPTIMIZER
    for name in set(door) & set(opt):
        assert door[name].default == opt[name].default, name
        assert door[name].annotation == opt[name].annotation, name


def test_every_shared_word_is_named_and_explained_once():
    shared = set(inspect.signature(scgd.minimize).parameters) - ONLY_MINIMIZE
    text = scgd.Optimizer.__doc__.split("As for :func:`scgd.minimize`.")[0]
    named = set(re.findall(r"\w+", text.split("----------")[1].replace("\\", "")))
    assert named == shared
    pages = scgd.minimize.__doc__
    for name in shared:
        assert re.search(rf"^    (\w+, )*{name}(, \w+)*$", pages, re.M), name


# ---- asking ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", EVERY_METHOD)
@pytest.mark.parametrize("n", [5, 23])
def test_a_laboratory_never_idles(method, n):
    """As many as asked for, none twice, until the budget is out; nothing was told so far."""
    opt = scgd.Optimizer(np.zeros(P), method, max_evals=100, scale=1.0, seed=0)
    trials = []
    while opt.run.room >= 1:
        trials += opt.ask(n)
    assert [trial.id for trial in trials] == list(range(100))
    assert opt.ask(n) == [] and not opt.done
    opt.tell([t.id for t in trials], [quadratic(t.x) for t in trials])
    assert opt.run.nfev == 100 and opt.result().nfev == 100


def test_waiting_is_filled_with_new_points():
    opt = scgd.Optimizer(np.zeros(P), "auto", max_evals=500, scale=1.0, seed=0)
    trials = opt.ask(40)
    points = {trial.x.tobytes() for trial in trials}
    assert len(trials) == len(points) == 40 and opt.run.filler.n_asked > 30


def test_filling_in_changes_nothing_where_nobody_waits():
    """A method that is told before it is asked again runs as minimize does."""
    opt = scgd.Optimizer(np.zeros(P), "auto", max_evals=200, seed=0)
    same_run(
        told(opt, quadratic),
        scgd.minimize(quadratic, np.zeros(P), method="auto", max_evals=200, seed=0),
    )
    assert opt.run.filler is None


def noisy_bowl(seed):
    rng = np.random.default_rng(seed)
    return lambda x: quadratic(x) + 0.02 * rng.standard_normal()


def week(opt, fun, n=5):
    """Measure batches; the second value of each batch comes with the next one."""
    late = []
    while not opt.done:
        trials = opt.ask(n)
        for trial in late:
            opt.tell(trial.id, fun(trial.x))
        late = trials[1:2]
        for trial in trials[:1] + trials[2:]:
            opt.tell(trial.id, fun(trial.x))
    return opt.result()


@pytest.mark.parametrize("method", ["auto"])
def test_batches_with_late_values_find_the_minimum(method):
    bounds = [(-2.0, 2.0)] * P
    for seed in range(3):
        opt = scgd.Optimizer(np.zeros(P), method, bounds=bounds, max_evals=200, seed=seed)
        result = week(opt, quadratic)
        assert result.nfev == 200 and quadratic(result.x) < 0.2 * quadratic(np.zeros(P))
        assert result.fun == pytest.approx(quadratic(result.x), abs=0.3)


def test_under_noise_the_centre_is_recommended_where_it_is_better():
    gains = []
    for seed in range(3):
        opt = scgd.Optimizer(np.zeros(P), bounds=[(-2, 2)] * P, max_evals=250, seed=seed)
        result = week(opt, noisy_bowl(seed), 12)
        gains.append(quadratic(result.x) / quadratic(np.zeros(P)))
    assert np.median(gains) < 0.25


def test_the_best_point_seen_is_recommended_without_noise():
    opt = scgd.Optimizer(np.zeros(P), "auto", max_evals=300, scale=1.0, seed=0)
    trials = opt.ask(40)
    opt.tell([t.id for t in trials], [quadratic(t.x) for t in trials])
    best = min(trials, key=lambda trial: quadratic(trial.x))
    assert np.array_equal(opt.x, best.x) and opt.result().fun == quadratic(best.x)


def table_of(points, values):
    trials = Trials(points.shape[1])
    for x, value in zip(points, values, strict=True):
        trials.add(x, float(value))
    return trials


# ---- telling ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("nothing", [float("nan"), np.float32("nan"), RuntimeError("spilt"), None])
@pytest.mark.parametrize("maximize", [False, True])
def test_one_failure_loses_one_value(nothing, maximize):
    opt = scgd.Optimizer(np.zeros(P), "uniform", scale=1.0, max_evals=60, maximize=maximize, seed=0)
    trials = opt.ask(6)
    opt.tell([t.id for t in trials[1:]], [quadratic(t.x) for t in trials[1:]])
    opt.fail(trials[0].id) if nothing is None else opt.tell(trials[0].id, nothing)
    assert opt.run.nfev == 6 and opt.result().n_failed == 1
    assert [row["state"] for row in opt.trials] == ["failed"] + ["told"] * 5
    assert opt.trials[0]["value"] is None and opt.trials[1]["value"] == quadratic(trials[1].x)


def test_many_values_are_checked_before_any_is_taken():
    opt = scgd.Optimizer(np.zeros(P), "uniform", scale=1.0, max_evals=60, seed=0)
    trials = opt.ask(4)
    before = opt.state_dict()
    for wrong in ("1", -np.inf):
        with pytest.raises((TypeError, FloatingPointError)):
            opt.tell([t.id for t in trials], [1.0, 2.0, 3.0, wrong])
        np.testing.assert_equal(opt.state_dict(), before)


def test_the_table_tells_everything():
    opt = scgd.Optimizer(np.zeros(2), "uniform", scale=1.0, max_evals=9, maximize=True, seed=0)
    opt.add([0.5, 0.5], 7.0, error=0.1)
    first, second = opt.ask(2)
    opt.tell(second.id, 3.0, error=0.25)
    opt.add([0.25, 0.5], -7.0)
    keys = ("id", "state", "value", "error")
    assert [tuple(row[key] for key in keys) for row in opt.trials] == [
        (None, "known", 7.0, 0.1), (0, "out", None, None), (1, "told", 3.0, 0.25),
        (None, "known", -7.0, None),
    ]  # fmt: skip
    assert np.array_equal(opt.trials[1]["x"], first.x) and opt.run.nfev == 1


def test_trials_carry_the_sample():
    opt = scgd.Optimizer(np.zeros(2), "uniform", scale=1.0, seed=0, sample=scgd.Rows(10, 3))
    trial = opt.ask(1)[0]
    assert trial.xi is trial.arguments[0] and len(trial.xi) == 3
    assert scgd.Optimizer(np.zeros(2), "uniform", scale=1.0).ask(1)[0].xi is None


def test_points_become_parameters_over_a_space(tmp_path):
    space = scgd.Space(
        a=scgd.Float(0, 2), b=scgd.Int(1, 9), c=scgd.Choice("x", None, default=None),
        d=scgd.Float(1e-3, 1, log=True, when={"c": "x"}),
    )  # fmt: skip
    opt = scgd.Optimizer(space, max_evals=30, seed=0)
    opt.add({"a": 0.25, "b": 7, "c": None}, 1.0)
    trials = opt.ask(4)
    assert all(trial.params == space.decode(trial.x) for trial in trials)
    first, *others = [row["params"] for row in opt.trials]
    assert first == {"a": 0.25, "b": 7, "c": None}
    assert others == [trial.params for trial in trials]
    opt.save(tmp_path / "run.npz")
    again = scgd.Optimizer.load(tmp_path / "run.npz")
    assert [trial.params for trial in again.out()] == others
    assert [t.params for t in again.ask(2)] == [t.params for t in opt.ask(2)]


# ---- earlier measurements --------------------------------------------------------------------------

BEFORE = [(MINIMUM + 0.5, quadratic(MINIMUM + 0.5)), (MINIMUM + 0.1, quadratic(MINIMUM + 0.1))]


@pytest.mark.parametrize("maximize", [False, True])
def test_earlier_measurements_are_where_to_start(maximize):
    sign = -1.0 if maximize else 1.0
    seen = []

    def fun(x):
        seen.append(x.copy())
        return sign * quadratic(x)

    before = [(x, sign * value) for x, value in BEFORE]
    keywords = {"max_evals": 50, "scale": 1.0, "seed": 0, "maximize": maximize}
    result = scgd.minimize(fun, np.zeros(P), method="auto", known=before, **keywords)
    assert np.array_equal(seen[0], MINIMUM + 0.1) and 45 <= result.nfev == len(seen) <= 50
    opt = scgd.Optimizer(np.zeros(P), "auto", **keywords)
    for x, value in before:
        opt.add(x, value)
    same_run(told(opt, lambda x: sign * quadratic(x)), result)


def test_nothing_worse_than_an_earlier_measurement_is_returned():
    before = [(MINIMUM + 0.1, 3.0), (np.full(P, 7.0), -1.0)]  # of a function that has a hole
    result = scgd.minimize(
        quadratic, np.zeros(P), method="auto", known=before, max_evals=60, scale=1.0, seed=0
    )
    assert np.array_equal(result.x, np.full(P, 7.0)) and result.fun == -1.0


def test_a_measurement_that_comes_later_is_known():
    opt = scgd.Optimizer(np.zeros(P), "auto", max_evals=60, scale=1.0, seed=0)
    told(opt, quadratic, until=30)
    opt.add(MINIMUM, 0.0)
    assert np.array_equal(opt.x, MINIMUM) and opt.run.nfev < 60


def test_earlier_measurements_are_part_of_a_run(tmp_path):
    keywords = {"max_evals": 60, "scale": 1.0, "seed": 0, "checkpoint": str(tmp_path / "run")}
    first = scgd.minimize(quadratic, np.zeros(P), known=BEFORE, **keywords)
    same_run(scgd.minimize(quadratic, np.zeros(P), known=BEFORE, **keywords), first)
    with pytest.raises(scgd.CheckpointError, match=r"its (x0|known) differs"):
        scgd.minimize(quadratic, np.zeros(P), known=BEFORE[1:], **keywords)


# ---- the notebook closed and opened ----------------------------------------------------------------

METHOD = scgd.SCGD(
    block_size=3,
    policy=scgd.Musketeer(gain="square", mixing=0.3),
    learning_rate=scgd.InverseTime(0.5),
)


@pytest.mark.parametrize(
    "keywords",
    [
        {"method": "auto", "bounds": [(-2, 2)] * P},
        {"method": "auto", "maximize": True, "failures": "worst"},
        {"method": METHOD, "scale": np.linspace(1, 2, P)},
        {"method": "dds", "known": BEFORE, "bounds": [(None, 4.0)] * P},
        {"method": scgd.SCGD("uniform", importance="inverse"), "sample": scgd.Rows(50, 2)},
    ],
    ids=["auto", "maximum", "recipe", "known", "rows"],
)
def test_a_notebook_that_is_closed_and_opened_goes_on_bit_for_bit(keywords, tmp_path):
    """Saved after every batch with values out, it is the run of one that never closed."""
    keywords = {"max_evals": 120, "seed": 0, **keywords}
    whole, closed, late = (*(scgd.Optimizer(np.zeros(P), **keywords) for _ in range(2)), [])
    while not whole.done:
        trials, others = whole.ask(5), closed.ask(5)
        assert [t.id for t in trials] == [t.id for t in others]
        for opt in (whole, closed):
            opt.tell([t.id for t in late], [quadratic(t.x) for t in late])
            opt.tell([t.id for t in trials[:3]], [quadratic(t.x) for t in trials[:3]])
        late = trials[3:]
        closed.save(tmp_path / "week.npz")
        closed = scgd.Optimizer.load(tmp_path / "week.npz")
        same_optimizer(closed, whole)
        assert [t.id for t in closed.out()] == [t.id for t in late]
    same_run(closed.result(), whole.result())


def test_what_no_file_keeps_is_handed_in_again(tmp_path):
    def draw(rng):
        return rng.normal()

    opt = scgd.Optimizer(np.zeros(P), "uniform", sample=draw, max_evals=40, scale=1.0, seed=0)
    opt.ask(4)
    opt.save(tmp_path / "run.npz")
    with pytest.raises(
        scgd.CheckpointError, match=r"sample is a function .* load\(path, sample=...\)"
    ):
        scgd.Optimizer.load(tmp_path / "run.npz")
    again = scgd.Optimizer.load(tmp_path / "run.npz", sample=draw, max_evals=60)
    assert [t.xi for t in again.out()] == [t.xi for t in opt.out()] and again.run.max_evals == 60
    with pytest.raises(scgd.CheckpointError, match="its x0 differs"):
        scgd.Optimizer.load(tmp_path / "run.npz", sample=draw, x0=np.ones(P))


def test_a_file_that_cannot_be_written_or_read_is_an_error(tmp_path):
    opt = scgd.Optimizer(np.zeros(P), "uniform", scale=1.0, seed=0)
    with pytest.raises(OSError):
        opt.save(tmp_path / "nowhere" / "run.npz")
    with pytest.raises(FileNotFoundError, match="there is no saved optimizer at"):
        scgd.Optimizer.load(tmp_path / "nothing.npz")
    scgd.minimize(quadratic, np.zeros(P), max_evals=20, checkpoint=str(tmp_path / "other"))
    with pytest.raises(scgd.CheckpointError, match=r"was not written by Optimizer\.save"):
        scgd.Optimizer.load(tmp_path / "other")
    (tmp_path / "garbage").write_text("garbage")
    with pytest.raises(scgd.CheckpointError, match="not a readable checkpoint"):
        scgd.Optimizer.load(tmp_path / "garbage")


@pytest.mark.parametrize("page", ["laboratory.md"])
def test_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(DOCS / page)
