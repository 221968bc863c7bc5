"""``method="auto"`` can be stopped anywhere and goes on as if it had not been."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from noises import CASES, P, Stop, Uncontrollable, deterministic, rough, run
from scgd import Checkpoint, Optimizer, minimize


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("n_asked", [1, 4, 30, 60, 100, 150])
def test_state_dict_resumes_bit_for_bit(kind, n_asked):
    fun, sample = CASES[kind]
    make = lambda: Optimizer(np.zeros(P), "auto", sample=sample, max_evals=1500, seed=3)  # noqa: E731
    whole = run(make(), fun)
    part = run(make(), fun, n_asked)
    resumed = make()
    resumed.load_state_dict(part.state_dict())
    run(resumed, fun)
    np.testing.assert_array_equal(resumed.x, whole.x)
    assert resumed.run.nfev == whole.run.nfev
    assert resumed.result().message == whole.result().message


@pytest.mark.parametrize("n_asked", [3, 100, 200, 300, 420, 500, 900])
def test_uncontrollable_run_resumes_bit_for_bit(n_asked):
    fun = Uncontrollable(5)
    make = lambda: Optimizer(np.zeros(P), "auto", max_evals=2500, seed=3)  # noqa: E731
    part = run(make(), fun, n_asked)
    state, noise = part.state_dict(), fun.rng.bit_generator.state
    whole = run(part, fun)
    resumed = make()
    resumed.load_state_dict(state)
    fun.rng.bit_generator.state = noise
    run(resumed, fun)
    np.testing.assert_array_equal(resumed.x, whole.x)


@pytest.mark.parametrize("fun", [deterministic, rough])
def test_what_was_asked_and_not_answered_is_still_out(fun):
    make = lambda: Optimizer(np.zeros(P), "auto", max_evals=1500, seed=3)  # noqa: E731
    opt, rng = make(), np.random.default_rng(0)
    while not opt.done:
        trials = opt.ask()
        for trial in trials[: len(trials) // 2]:
            opt.tell(trial.id, fun(trial.x))
        if rng.random() > 0.05:  # a race is replayed at every load: looking always is quadratic
            for trial in trials[len(trials) // 2 :]:
                opt.tell(trial.id, fun(trial.x))
            continue
        twin = make()
        twin.load_state_dict(opt.state_dict())
        for mine, out in zip(trials[len(trials) // 2 :], twin.out(), strict=True):
            assert mine.id == out.id
            np.testing.assert_array_equal(mine.x, out.x)
            twin.tell(out.id, fun(out.x))
            opt.tell(mine.id, fun(mine.x))
        np.testing.assert_equal(twin.state_dict(), opt.state_dict())


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("n_calls", [5, 77, 130, 400, 1234])
def test_checkpoint_file_resumes_bit_for_bit(tmp_path, kind, n_calls):
    fun, sample = CASES[kind]
    whole = minimize(fun, np.zeros(P), sample=sample, max_evals=2000, seed=3)
    stops = Stop(fun, n_calls)
    file = Checkpoint(tmp_path / "run.npz", every=0)
    first = minimize(stops, np.zeros(P), sample=sample, max_evals=2000, seed=3, checkpoint=file)
    assert not first.success
    second = minimize(fun, np.zeros(P), sample=sample, max_evals=2000, seed=3, checkpoint=file)
    np.testing.assert_array_equal(second.x, whole.x)
    assert second.nfev == whole.nfev


@pytest.mark.parametrize("kind", CASES)
def test_workers_do_not_change_the_trajectory(kind):
    fun, sample = CASES[kind]
    alone = minimize(fun, np.zeros(P), sample=sample, max_evals=800, seed=2)
    with ThreadPoolExecutor(2) as pool:
        together = minimize(fun, np.zeros(P), sample=sample, max_evals=800, seed=2, workers=pool)
    np.testing.assert_array_equal(alone.x, together.x)


@pytest.mark.parametrize("kind", [*CASES, "uncontrollable"])
@pytest.mark.parametrize("stops", [(290, 300), (190, 200), (33, 150), (120, 150), (55, 60)])
def test_a_larger_budget_is_used_wherever_a_run_was_stopped(tmp_path, kind, stops):
    fun, sample = CASES.get(kind, (Uncontrollable(), None))
    file = Checkpoint(tmp_path / "run.npz", every=0)
    options = {"sample": sample, "seed": 3, "checkpoint": file, "tol": 0}
    n_calls, budget = stops
    minimize(Stop(fun, n_calls), np.zeros(P), max_evals=budget, **options)
    minimize(Stop(fun, 4), np.zeros(P), max_evals=1200, **options)
    result = minimize(fun, np.zeros(P), max_evals=1200, **options)
    assert 1100 < result.nfev <= 1200
