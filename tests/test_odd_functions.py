"""Odd functions, odd surroundings and odd words: a table of what has once gone wrong."""

import csv
import json
import signal
import sys

import numpy as np
import pytest

import scgd
from scgd.cli import main
from scgd.run.asynchronous import Events

ESCAPE = "\x1b[2J"


def quadratic(x):
    return float(np.sum((x - 1) ** 2))


# ---- what functions return and raise -------------------------------------------------------------


def test_a_function_that_fails_everywhere_but_at_x0_is_named_as_the_cause():
    result = scgd.minimize(lambda x: np.nan if x.any() else 1.0, np.zeros(3), max_evals=200, seed=0)
    assert not result.success and result.n_failed > 150
    assert "most evaluations had no finite value; see what fun returns" in result.message


@pytest.mark.parametrize("method", ["auto", "musketeer", "spsa"])
@pytest.mark.parametrize("maximize", [False, True])
def test_a_masked_value_is_a_failed_one(method, maximize):
    """It holds no number, whatever lies under the mask."""
    n_masked = 0

    def fun(x):
        nonlocal n_masked
        if x[0] > 0.5:
            n_masked += 1
            return np.ma.masked
        return (-1) ** maximize * quadratic(x)

    result = scgd.minimize(
        fun,
        np.zeros(3),
        method=method,
        max_evals=300,
        seed=0,
        scale=1.0,
        failures="skip",
        maximize=maximize,
    )
    assert result.n_failed == n_masked > 0 and abs(result.fun) > 0.2


def test_masked_values_of_a_vectorized_function_are_failed_ones():
    def fun(points):
        values = np.sum((points - 1) ** 2, axis=1)
        return np.ma.masked_array(values, points[:, 0] > 0.5, fill_value=-1e9)

    result = scgd.minimize(
        fun,
        np.zeros(3),
        method="uniform",
        workers=scgd.Workers(vectorized=True),
        max_evals=900,
        seed=0,
        scale=1.0,
        failures="skip",
    )
    assert result.n_failed > 0 and result.fun > 0.2


@pytest.mark.parametrize("method", ["auto", "musketeer"])
def test_a_sample_that_ends_is_named(method):
    data = iter(range(50))
    with pytest.raises(RuntimeError, match="sample raised StopIteration; it must return a sample"):
        scgd.minimize(
            lambda x, xi: quadratic(x),
            np.zeros(3),
            sample=lambda rng: next(data),
            method=method,
            max_evals=300,
        )


@pytest.mark.parametrize("order", ["abc", [1.5], [-1], [0, 0], [[0]], 3, object()])
def test_events_that_are_none_are_refused(order):
    with pytest.raises(ValueError, match="order must be different whole numbers"):
        Events(6, order)


def test_events_of_another_run_are_refused():
    keywords = {"method": "musketeer", "max_evals": 60, "seed": 0, "scale": 1.0}
    first = scgd.minimize(quadratic, np.zeros(3), workers=scgd.Workers(asynchronous=4), **keywords)
    events = Events(4, first.events.order + 1000)
    with pytest.raises(ValueError, match="these are not the events of this run"):
        scgd.minimize(quadratic, np.zeros(3), workers=scgd.Workers(asynchronous=events), **keywords)


# ---- surroundings --------------------------------------------------------------------------------


def test_a_program_without_a_console_has_no_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert scgd.minimize(quadratic, np.zeros(3), max_evals=100, seed=0, reporting=True).nfev > 50


def test_a_handler_that_the_function_installs_stays():
    def handler(number, frame):
        pass

    def fun(x):
        signal.signal(signal.SIGINT, handler)
        return quadratic(x)

    before = signal.getsignal(signal.SIGINT)
    try:
        scgd.minimize(fun, np.zeros(3), max_evals=50, seed=0)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


# ---- extreme numbers -----------------------------------------------------------------------------

EXTREMES = {
    "a range of one bit": {"bounds": [(0, 5e-324)] * 3},
    "ranges without squares": {"bounds": [(0, 1e-200)] * 3},
    "one tiny range": {"bounds": [(0, 5e-324), (-1, 1), (-1, 1)]},
    "x0 of 1e-300": {"x0": np.full(3, 1e-300)},
    "x0 of one bit": {"x0": np.full(3, 5e-324)},
    "x0 of 1e-300 and 1": {"x0": np.array([1e-300, 1.0, 0.0])},
}


@pytest.mark.parametrize("method", ["auto", "musketeer", "uniform", "spsa", "random", "dds"])
@pytest.mark.parametrize("case", EXTREMES)
def test_extreme_numbers(method, case):
    seen = []

    def fun(x):
        seen.append(np.all(np.isfinite(x)))
        return quadratic(x)

    keywords = {"x0": np.zeros(3), **EXTREMES[case]}
    result = scgd.minimize(fun, method=method, max_evals=120, seed=0, **keywords)
    assert all(seen) and np.all(np.isfinite(result.x))
    assert result.fun <= quadratic(keywords["x0"])
    if "x0" in case:
        assert result.fun < 0.9 * quadratic(keywords["x0"])


# ---- words from files ----------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table(path, header, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def test_names_of_columns_do_not_reach_a_terminal_as_commands(folder, capsys):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    table("data.csv", [f"a{ESCAPE}", "b\x9b31m", f"y{ESCAPE}"], X.tolist())
    assert main(["fit", "data.csv", "--alpha", "0.1"]) == 0
    assert main(["fit", "data.csv", "--target", f"z{ESCAPE}"]) == 2
    out, err = capsys.readouterr()
    assert r"a\x1b[2J" in out and r"\x1b[2J" in err
    assert not {"\x1b", "\x9b"} & set(out + err)


def test_an_unknown_target_among_very_many_columns_lists_some(folder, capsys):
    table("wide.csv", [f"column{k}" for k in range(3000)], np.ones((4, 3000)).tolist())
    assert main(["fit", "wide.csv", "--target", "colum7"]) == 2
    said = capsys.readouterr().err
    assert "did you mean" in said and "and 2950 more" in said and len(said) < 2000


def test_labels_that_a_spreadsheet_would_run_are_quoted(folder, capsys):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 2))
    labels = np.where(X[:, 0] > 0, "=cmd|'/c calc'!A0", "-a")
    table(
        "data.csv",
        ["a", "b", "y"],
        [[*x, label] for x, label in zip(X.tolist(), labels, strict=True)],
    )
    assert main(["fit", "data.csv", "--out", "model.npz", "--alpha", "0.01"]) == 0
    assert main(["predict", "model.npz", "data.csv", "--out", "found.csv"]) == 0
    with open("found.csv", newline="") as file:
        rows = list(csv.reader(file))
    assert {row[0] for row in rows[1:]} == {"'=cmd|'/c calc'!A0", "'-a"}
    assert not any(word.startswith(("=", "+", "@")) for row in rows for word in row)


def test_names_of_a_space_are_printable_and_no_formulas(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    sys.modules.pop("odd", None)
    (folder / "odd.py").write_text("def f(params): return float((sum(params.values()) - 1) ** 2)\n")
    names = {"=1+1": "plus", f"w{ESCAPE}": "escape"}
    space = "".join(
        f'{json.dumps(name)} = {{type = "float", low = -1, high = 1}}\n' for name in names
    )
    (folder / "space.toml").write_text(space)
    words = [
        "minimize",
        "odd:f",
        "--space",
        "space.toml",
        "--max-evals",
        "40",
        "--seed",
        "0",
        "--no-progress",
    ]
    assert main([*words, "--log", "run.csv", "--checkpoint", "run.npz"]) == 0
    assert "\x1b" not in capsys.readouterr().out
    with open("run.csv", newline="") as file:
        assert next(csv.reader(file))[4] == "'=1+1"
    assert main([*words, "--max-evals", "60", "--log", "run.csv", "--checkpoint", "run.npz"]) == 0
