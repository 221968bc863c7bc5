"""Which inputs matter: what is found, what is not claimed, and what a run does when things fail."""

import copy
import json
import runpy
import time
from pathlib import Path

import numpy as np
import pytest

import scgd
from scgd.cli import main

rng_of = np.random.default_rng


def noisy(fun, noise, seed=0):
    rng = rng_of(seed)
    return lambda x: fun(x) + noise * rng.standard_normal()


def three(x):
    return 3 * x[1] - 2 * x[4] + 4 * (x[7] - 0.5) ** 2


def box(p):
    return [(0.0, 1.0)] * p


def names(*inputs):
    return [f"x[{k}]" for k in inputs]


# ---- what is found -------------------------------------------------------------------------------


def test_effects_have_sizes_signs_and_limits():
    found = scgd.screen(noisy(three, 0.3), box(20), max_evals=300, seed=0)
    assert set(found.matter) >= set(names(1, 4, 7))
    assert abs(found.effects[1] - 3) < 0.4 and abs(found.effects[4] + 2) < 0.4
    levels = np.linspace(0, 1, 4)
    for k, part in ((1, 3 * levels), (4, 2 * levels), (7, 4 * (levels - 0.5) ** 2)):
        assert found.low[k] < np.std(part) < found.high[k]
        assert found.low[k] <= found.sizes[k] <= found.high[k]
    assert 0.2 < found.noise < 0.45 and found.nfev <= 300


def test_without_noise_everything_is_decided_and_the_rest_of_the_budget_saved():
    found = scgd.screen(three, box(50), max_evals=2000, seed=1)
    assert found.matter == names(1, 4, 7) and set(found.decisions) == {"matters", "does not"}
    assert found.nfev < 1500 and found.rest == 0.0 and found.noise == 0.0
    assert np.isclose(found.effects[1], 3) and np.isclose(
        found.sizes[1], 3 * np.std(np.linspace(0, 1, 4))
    )


def test_what_is_even_what_only_interacts_and_a_step_show():
    def fun(x):
        u = 2 * x - 1
        return u[3] ** 2 + u[10] * u[20] + (x[30] > 0.7)

    found = scgd.screen(noisy(fun, 0.1), box(40), max_evals=400, seed=0)
    assert set(names(3, 10, 20, 30)) <= set(found.matter)
    assert found.interactions[0]["inputs"] == ("x[10]", "x[20]")
    assert np.isclose(
        found.interactions[0]["size"], np.std(np.outer(*[np.linspace(-1, 1, 4)] * 2)), atol=0.05
    )


def test_few_of_thousands_and_one_that_only_a_trial_of_the_rest_finds():
    def fun(x):  # the last two are seen neither alone nor in products with any other
        return 3 * x[100] + x[2000] + (x[2500] > 0.5) * (x[2600] > 0.5) * (x[2700] > 0.5)

    found = scgd.screen(fun, box(3000), max_evals=1200, seed=0)
    assert found.matter == names(100, 2000, 2500, 2600, 2700)


def test_an_effect_below_the_threshold_does_not_matter():
    found = scgd.screen(
        noisy(lambda x: x[0] + 0.001 * x[1], 0.01), box(3), max_evals=400, seed=0, noise=0.01
    )
    assert found.decisions.tolist() == ["matters", "does not", "does not"]
    assert found.high[1] < found.threshold


def test_pure_noise_makes_no_discoveries_at_the_stated_rate():
    false = 0
    for seed in range(20):
        found = scgd.screen(noisy(lambda x: 0.0, 1.0, seed), box(30), max_evals=120, seed=seed)
        false += bool(found.matter)
        assert not any(found.decisions == "matters") or found.q_values.min() < 0.1
    assert false <= 6  # at a rate of 0.1; more than six come once in a thousand times


def test_decisions_keep_the_rate_and_intervals_their_level():
    false, covered = [], []
    truth = np.zeros(40)
    truth[:4] = np.array([2.0, 1.0, 0.5, 0.25]) * np.std(np.linspace(0, 1, 4))
    for seed in range(8):
        fun = noisy(lambda x: 2 * x[0] - x[1] + 0.5 * x[2] + 0.25 * x[3], 0.5, seed)
        found = scgd.screen(fun, box(40), max_evals=160, seed=seed)
        said = np.flatnonzero(found.decisions == "matters")
        false.append(np.mean(said >= 4) if len(said) else 0.0)
        covered += ((found.low <= truth) & (truth <= found.high)).tolist()
    assert np.mean(false) < 0.2 and np.mean(covered) > 0.93


@pytest.mark.parametrize(("p", "budget", "level"), [(5, 40, 0.95), (5, 40, 0.8), (20, 60, 0.95)])
def test_intervals_cover_where_evaluations_are_few_and_nothing_is_noise(p, budget, level):
    truth, covered = np.std(np.linspace(0, 1, 4)), []
    for seed in range(40):
        found = scgd.screen(
            lambda x: float(sum(x)), box(p), max_evals=budget, level=level, seed=seed
        )
        covered += ((found.low <= truth + 1e-9) & (truth <= found.high + 1e-9)).tolist()
    assert np.mean(covered) > level - 0.04


# ---- spaces --------------------------------------------------------------------------------------


def test_a_space_of_numbers_choices_and_what_is_fixed():
    space = scgd.Space(
        rate=scgd.Float(1e-4, 1, log=True), depth=scgd.Int(1, 3), wide=scgd.Int(1, 100),
        kind=scgd.Choice("a", "b", "c", "d", "e"), on=scgd.Choice(False, True),
        same=scgd.Float(2, 2), idle=scgd.Choice("x", "y", "z"),
    )  # fmt: skip

    def fun(params):
        assert params["same"] == 2 and isinstance(params["wide"], int)
        bonus = {"a": 0.0, "b": 1.0, "c": 0.0, "d": 0.0, "e": 1.0}[params["kind"]]
        return np.log10(params["rate"]) + params["depth"] ** 2 + params["on"] + 3 * bonus

    found = scgd.screen(fun, space, max_evals=600, seed=0)
    assert found.matter == ["rate", "depth", "kind", "on"]
    assert found.decisions[found.names.index("same")] == "cannot say"
    assert np.isclose(found.effects[found.names.index("on")], 1.0)


def test_bounds_of_scipy_names_and_inputs_that_do_not_move():
    from scipy.optimize import Bounds

    found = scgd.screen(
        lambda x: x[0] * 1e-6 + x[1] * 1e6 + x[2], Bounds([0, 5e-7, 4], [1e6, 1e-6, 4]),
        max_evals=100, seed=0, names=["force", "length", "fixed"],
    )  # fmt: skip
    assert found.matter == ["force", "length"] and found.table()[-1]["input"] == "fixed"


def test_one_input():
    assert scgd.screen(lambda x: float(x[0]), [(0, 1)], max_evals=40, seed=0).matter == names(0)
    found = scgd.screen(lambda x: 1.0, [(0, 1)], max_evals=40, seed=0)
    assert found.decisions.tolist() == ["does not"]


def test_a_constant_function_depends_on_nothing():
    found = scgd.screen(lambda x: -7.5, box(30), max_evals=200, seed=0)
    assert set(found.decisions) == {"does not"} and not found.sizes.any()


# ---- faults --------------------------------------------------------------------------------------


def test_failed_evaluations_are_left_out():
    rng = rng_of(5)

    def fun(x):
        if rng.random() < 0.15:
            return [np.nan, np.inf][rng.integers(2)]
        if rng.random() < 0.05:
            raise RuntimeError("no licence")
        return three(x) + 0.1 * rng.standard_normal()

    failures = scgd.Failures("skip", (RuntimeError,))
    found = scgd.screen(fun, box(12), max_evals=400, seed=0, failures=failures)
    assert set(found.matter) >= set(names(1, 4, 7)) and found.n_failed > 20
    with pytest.raises(ArithmeticError):
        scgd.screen(lambda x: np.nan, box(3), max_evals=50, seed=0)


def test_where_nothing_has_a_value_nothing_is_said():
    found = scgd.screen(lambda x: np.nan, box(3), max_evals=50, seed=0, failures="skip")
    assert set(found.decisions) == {"cannot say"} and found.n_pairs == 0
    assert np.all(found.p_values == 1) and "3 one cannot say" in found.message


def test_an_outlier_now_and_then_does_not_hide_effects():
    rng = rng_of(1)

    def fun(x):
        return three(x) + 0.2 * rng.standard_normal() + (1e4 if rng.random() < 0.01 else 0.0)

    assert set(scgd.screen(fun, box(12), max_evals=600, seed=0).matter) >= set(names(1, 4, 7))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"max_evals": 5}, "max_evals must be at least 12"),
        ({"max_evals": -1}, "max_evals"),
        ({"fdr": 0}, "fdr must be a number between 0 and 1, got 0"),
        ({"level": 95}, "level must be a number between 0 and 1, got 95"),
        ({"negligible": True}, "negligible must be"),
        ({"space": [(0, np.inf)]}, "finite bounds, got \\(0.0, inf\\) for input 0"),
        ({"space": [(1, 0)]}, "bounds cross at input 0"),
        ({"space": 3}, "pairs \\(low, high\\)"),
        ({"space": []}, "pairs \\(low, high\\)"),
        ({"names": ["a", "b"]}, "names must be 3 names"),
        ({"noise": -1.0}, "noise must be"),
        ({"space": scgd.Space(a=scgd.Float(0, 1)), "names": ["b"]}, "names makes no sense"),
    ],
)
def test_bad_input_is_named(arguments, words):
    given = {"space": box(3), "max_evals": 50, **arguments}
    with pytest.raises((ValueError, TypeError), match=words):
        scgd.screen(lambda x: 0.0, given.pop("space"), **given)


# ---- the same run elsewhere ----------------------------------------------------------------------


def same(a, b):
    return json.dumps(a.to_dict()) == json.dumps(b.to_dict())


def bent(x):
    return float(3 * x[1] + x[2] ** 2 + np.sin(40 * x.sum()))  # the last is as good as noise


def test_one_seed_one_screening_by_workers_ask_and_tell_and_checkpoint(tmp_path):
    here = scgd.screen(bent, box(6), max_evals=120, seed=3)
    assert same(here, scgd.screen(bent, box(6), max_evals=120, seed=3, workers=2))
    opt = scgd.Optimizer(np.full(6, 0.5), scgd.Screen(), bounds=box(6), max_evals=120, seed=3)
    for trial in opt.ask(7):
        opt.tell(trial.id, bent(trial.x))
    opt.save(tmp_path / "opt.npz")
    opt = scgd.Optimizer.load(tmp_path / "opt.npz")
    while not opt.done:
        for trial in opt.out() or opt.ask(5):
            opt.tell(trial.id, bent(trial.x))
    assert same(here, scgd.Screening.of(opt.result()))

    def stops(x):
        stops.n += 1
        if stops.n > 60:
            raise KeyboardInterrupt
        return bent(x)

    stops.n = 0
    path = str(tmp_path / "run.npz")
    part = scgd.screen(stops, box(6), max_evals=120, seed=3, checkpoint=path)
    assert part.nfev < 120 and "interrupted" in part.message
    assert same(here, scgd.screen(bent, box(6), max_evals=120, seed=3, checkpoint=path))


def test_a_larger_budget_goes_on(tmp_path):
    fun, path = noisy(three, 2.0), str(tmp_path / "run.npz")
    short = scgd.screen(fun, box(20), max_evals=60, seed=0, checkpoint=path)
    longer = scgd.screen(fun, box(20), max_evals=900, seed=0, checkpoint=path)
    assert short.nfev <= 60 < longer.nfev and longer.n_pairs > short.n_pairs
    assert "cannot say" in short.message and set(longer.matter) >= set(names(1, 4, 7))


def test_as_a_method_it_needs_bounds():
    for bounds in (None, [(0, np.inf)] * 3):
        with pytest.raises(ValueError, match="bounds must be finite to screen"):
            scgd.minimize(three, np.zeros(3), method=scgd.Screen(), bounds=bounds, max_evals=50)


def test_samples_are_shared_within_pairs():
    def fun(x, xi):
        return 0.2 * x[0] + 100 * xi

    found = scgd.screen(
        fun, box(8), max_evals=100, seed=0, sample=lambda rng: rng.standard_normal()
    )
    assert names(0) == found.matter and abs(found.effects[0] - 0.2) < 1e-6


def test_minimize_takes_it_as_a_method_and_relevance_is_its_answer():
    result = scgd.minimize(
        three, np.full(10, 0.5), method=scgd.Screen(), bounds=box(10), max_evals=300, seed=0
    )
    found = scgd.Screening.of(result)
    assert set(np.flatnonzero(result.relevance)) == {1, 4, 7}
    assert np.allclose(result.relevance, found.sizes / found.sizes.sum(), atol=1e-9)
    other = scgd.minimize(three, np.full(10, 0.5), max_evals=50, seed=0)
    with pytest.raises(ValueError, match="not of a screening"):
        scgd.Screening.of(other)


def test_time_is_a_limit():
    def slow(x):
        time.sleep(0.01)
        return three(x)

    found = scgd.screen(slow, box(2000), max_evals=1000, max_time=0.3, seed=0)
    assert found.nfev <= 30 and "time" in found.message


# ---- what is shown -------------------------------------------------------------------------------


def test_tables_pictures_and_copies():
    found = scgd.screen(
        noisy(three, 0.3), box(15), max_evals=200, seed=0, names=[f"<{k}>" for k in range(15)]
    )
    rows = found.table()
    assert [row["input"] for row in rows[:3]] == sorted(
        found.matter, key=lambda n: -found.sizes[int(n[1:-1])]
    )[:3]
    assert len(rows) == 15 and set(rows[0]) >= {
        "input",
        "decision",
        "size",
        "low",
        "high",
        "p_value",
    }
    assert len(repr(found).splitlines()) <= 20 and "3 of 15 inputs matter" in repr(found)
    assert "&lt;1&gt;" in found._repr_html_() and "<1>" not in found._repr_html_()
    json.dumps(found.to_dict())
    assert same(copy.deepcopy(found), found)
    figure = found.plot(n_inputs=5)
    assert sum(len(trace.x) for trace in figure.data) == 5
    with pytest.raises(ValueError, match="n_inputs"):
        found.plot(n_inputs=0)
    with pytest.raises(AttributeError):
        found.noise = 1.0


def test_the_command_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "screened.py").write_text("def fun(x):\n    return 3 * x[2] + x[4] ** 2\n")
    monkeypatch.chdir(tmp_path)
    line = ["screen", "screened:fun", "--max-evals", "100", "--seed", "0", "--no-progress"]
    assert (
        main(
            [*line, "--dim", "8", "--bounds", "-1", "1", "--out", "out.json", "--plot", "out.html"]
        )
        == 0
    )
    assert "2 of 8 inputs matter" in capsys.readouterr().out
    rows = json.loads((tmp_path / "out.json").read_text())["inputs"]
    assert [row["input"] for row in rows[:2]] == names(2, 4) and (tmp_path / "out.html").exists()
    assert main([*line, "--dim", "8"]) == 2 and "--bounds" in capsys.readouterr().err
    assert main([*line, "--dim", "8", "--bounds", "-1", "1", "--fdr", "2"]) == 2


def test_the_tables_of_the_page_are_those_of_the_stored_rows():
    root = Path(__file__).parent.parent
    page = (root / "docs" / "screening.md").read_text()
    made = runpy.run_path(str(root / "benchmarks" / "screening.py"))
    assert page == made["on_page"](page)
    rows = made["stored"](made["ROWS"])
    assert made["ahead"](rows) >= 10
