"""``SCGDSampler`` in real studies: storage, pruning, processes, sessions, threads."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

optuna = pytest.importorskip("optuna")

from scgd import Float, Int, Space, minimize  # noqa: E402
from scgd.bridge import Bridge  # noqa: E402
from scgd.optuna import SCGDSampler  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.WARNING)


def objective(trial):
    x = trial.suggest_float("x", -5, 5)
    n = trial.suggest_int("n", 1, 20)
    rate = trial.suggest_float("rate", 1e-5, 1, log=True)
    kind = trial.suggest_categorical("kind", ["a", "b"])
    more = trial.suggest_float("more", 0, 1) if kind == "b" else 0.0
    return x**2 + (n - 7) ** 2 / 10 + np.log10(rate / 1e-2) ** 2 + (kind == "a") + more


def best_of(sampler, n_trials=50, direction="minimize", fun=objective):
    study = optuna.create_study(sampler=sampler, direction=direction)
    study.optimize(fun, n_trials=n_trials)
    return study


def test_it_finds_more_than_chance_and_repeats_itself():
    ours = [best_of(SCGDSampler(50, seed=s)) for s in range(3)]
    chance = [best_of(optuna.samplers.RandomSampler(seed=s)).best_value for s in range(3)]
    values = [study.best_value for study in ours]
    assert max(values) < min(chance)
    again = best_of(SCGDSampler(50, seed=0))
    assert [t.params for t in again.trials] == [t.params for t in ours[0].trials]


def test_maximizing_is_minimizing_the_negative():
    down = best_of(SCGDSampler(30, seed=1), 30)
    up = best_of(SCGDSampler(30, seed=1), 30, "maximize", lambda trial: -objective(trial))
    assert [t.params for t in down.trials] == [t.params for t in up.trials]


def test_steps_and_single_values():
    def fun(trial):
        x = trial.suggest_float("x", 0, 1, step=0.1)
        n = trial.suggest_int("n", 4, 256, log=True)
        m = trial.suggest_int("m", 0, 30, step=10)
        one = trial.suggest_categorical("one", [3])
        return abs(x - 0.7) + abs(np.log2(n / 32)) + abs(m - 20) / 10 + one

    studies = [best_of(SCGDSampler(60, seed=s), 60, fun=fun) for s in range(3)]
    for trial in (trial for study in studies for trial in study.trials):
        params = trial.params
        assert 10 * params["x"] == pytest.approx(round(10 * params["x"])) and params["m"] % 10 == 0
    assert all(study.best_params["m"] == 20 for study in studies)
    assert np.median([study.best_value for study in studies]) < 3.5


def test_a_small_space_is_tried_all_over_and_then_at_random():
    study = best_of(SCGDSampler(10, seed=0), 12, fun=lambda t: t.suggest_int("n", 1, 4))
    assert study.best_value == 1 and len(study.trials) == 12


def test_known_distributions_are_used_from_the_first_trial():
    space = {"x": optuna.distributions.FloatDistribution(-1, 3)}
    study = best_of(
        SCGDSampler(20, seed=0, search_space=space),
        2,
        fun=lambda t: t.suggest_float("x", -1, 3) ** 2,
    )
    assert study.trials[0].params == {"x": 1.0}  # the middle, where a space starts


def test_trials_of_an_earlier_session_count(tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    first = optuna.create_study(storage=url, study_name="s", sampler=SCGDSampler(40, seed=0))
    first.optimize(objective, n_trials=40)
    reached = first.best_value
    again = optuna.load_study(storage=url, study_name="s", sampler=SCGDSampler(40, seed=1))
    again.optimize(objective, n_trials=8)
    assert again.best_value <= reached


def test_pruned_and_failed_trials():
    def fun(trial):
        x = trial.suggest_float("x", -5, 5)
        for step in range(5):
            trial.report(x**2 + 5 - step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        if x > 4:
            raise RuntimeError("too far")
        return x**2

    pruner = optuna.pruners.MedianPruner(n_startup_trials=3, n_warmup_steps=1)
    study = optuna.create_study(sampler=SCGDSampler(40, seed=0), pruner=pruner)
    study.optimize(fun, n_trials=40, catch=(RuntimeError,))
    states = {trial.state.name for trial in study.trials}
    assert {"COMPLETE", "PRUNED"} <= states and abs(study.best_params["x"]) < 0.5


def test_what_a_user_enqueues_is_kept_and_known():
    study = optuna.create_study(sampler=SCGDSampler(30, seed=0))
    study.enqueue_trial({"x": 0.01, "n": 7, "rate": 1e-2, "kind": "b", "more": 0.0})
    study.optimize(objective, n_trials=20)
    assert study.trials[0].params["x"] == 0.01 and study.best_value <= 1e-4


def test_threads_share_a_sampler():
    study = optuna.create_study(sampler=SCGDSampler(40, seed=0))
    study.optimize(objective, n_trials=30, n_jobs=3)
    assert len(study.trials) == 30 and len({str(t.params) for t in study.trials}) == 30


def test_a_sampler_of_another_session_tries_no_point_again():
    """It begins where the first one began, which has a value by now."""
    space = {"x": optuna.distributions.FloatDistribution(-5, 5)}
    study = optuna.create_study()
    for seed in (0, 1, 2):
        study.sampler = SCGDSampler(40, method="dds", search_space=space, seed=seed)
        study.optimize(lambda trial: trial.suggest_float("x", -5, 5) ** 2, n_trials=4)
    assert len({trial.params["x"] for trial in study.trials}) == 12


def test_what_others_measured_is_learnt_while_a_study_goes_on():
    def fun(trial):
        return sum((trial.suggest_float(name, -5, 5) - 1.7) ** 2 for name in "xyz")

    storage = optuna.storages.InMemoryStorage()
    optuna.create_study(storage=storage, study_name="s")
    first, second = (
        optuna.load_study(storage=storage, study_name="s", sampler=SCGDSampler(60, seed=seed))
        for seed in (0, 1)
    )
    second.optimize(fun, n_trials=3)
    first.optimize(fun, n_trials=30)
    second.optimize(fun, n_trials=14)  # alone, the third best of so many is far from the minimum
    assert sorted(trial.value for trial in second.trials[33:])[2] < 0.05


@pytest.mark.parametrize("again", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_sampler_travels(again):
    sampler = SCGDSampler(20, seed=0)
    study = best_of(sampler, 12)
    study.sampler = again(sampler)
    study.optimize(objective, n_trials=5)
    assert len(study.trials) == 17


@pytest.mark.parametrize(
    "words, message",
    [
        ({"n_trials": 0}, "n_trials must be a whole number >= 1, got 0"),
        ({"n_trials": 2.5}, "n_trials must be"),
        ({"method": "tpe"}, r"method must be one of \('gp', 'dds'\), got 'tpe'"),
    ],
)
def test_wrong_arguments_are_named(words, message):
    with pytest.raises(ValueError, match=message):
        SCGDSampler(**words)


def test_several_directions_are_refused():
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=SCGDSampler(10))
    with pytest.raises(ValueError, match="SCGDSampler minimises one value"):
        study.optimize(lambda t: (t.suggest_float("x", 0, 1), 0.0), n_trials=1)


WORKER = """
import sys, time
import optuna
from scgd.optuna import SCGDSampler
sys.path.insert(0, sys.argv[3])
from test_optuna import objective

def slowly(trial):
    time.sleep(0.02)
    value = objective(trial)
    trial.report(value, 0)
    if trial.should_prune():
        raise optuna.TrialPruned
    return value

study = optuna.load_study(storage=sys.argv[1], study_name="s",
                          sampler=SCGDSampler(60, seed=int(sys.argv[2])),
                          pruner=optuna.pruners.PercentilePruner(75.0, n_startup_trials=5))
study.optimize(slowly, n_trials=30)
"""


def test_two_processes_on_one_storage(tmp_path):
    import os

    url = f"sqlite:///{tmp_path / 'study.db'}"
    optuna.create_study(storage=url, study_name="s")
    command = [sys.executable, "-W", "ignore", "-c", WORKER, url]
    here = os.path.dirname(__file__)
    both = [subprocess.Popen([*command, "0", here]) for _ in range(2)]
    assert [process.wait(timeout=300) for process in both] == [0, 0]
    study = optuna.load_study(storage=url, study_name="s")
    assert sorted(trial.number for trial in study.trials) == list(range(60))
    assert {trial.state.name for trial in study.trials} == {"COMPLETE", "PRUNED"}
    assert len({str(trial.params) for trial in study.trials}) >= 59  # one seed, two ways
    assert study.best_value < 1.0


def test_a_study_reaches_what_minimize_does():
    def value(params):
        square = sum((params[f"x{i}"] - 0.3 * i) ** 2 for i in range(5))
        return square + (params["n"] - 7) ** 2 / 10

    def fun(trial):
        params = {f"x{i}": trial.suggest_float(f"x{i}", -5, 5) for i in range(5)}
        return value(params | {"n": trial.suggest_int("n", 1, 20)})

    space = Space({f"x{i}": Float(-5, 5) for i in range(5)} | {"n": Int(1, 20)})
    found = [best_of(SCGDSampler(60, seed=s), 60, fun=fun).best_value for s in range(3)]
    direct = [minimize(value, space, max_evals=60, seed=s).fun for s in range(3)]
    assert np.median(found) <= 2 * np.median(direct) + 1e-4


def test_what_was_measured_before_the_first_trial_is_learnt():
    rng, bridge = (
        np.random.default_rng(0),
        Bridge(Space(x=Float(-5, 5), y=Float(-5, 5)), 60, seed=0),
    )
    for _ in range(40):
        x, y = rng.uniform(-5, 5, 2).tolist()
        bridge.add({"x": x, "y": y}, (x - 1) ** 2 + (y + 2) ** 2)
    ends = []
    for _ in range(10):
        trial = bridge.fetch()
        ends.append((trial.params["x"] - 1) ** 2 + (trial.params["y"] + 2) ** 2)
        bridge.tell(trial.id, ends[-1])
    assert min(ends) < 0.01
