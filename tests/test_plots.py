"""Pictures of a run: what is drawn, that it is right, and that no name is ever run."""

import re
import sys

import numpy as np
import pytest

import scgd
from scgd import minimize
from scgd.plots import data
from scgd.plots.figure import page
from scgd.results import Result
from scgd.status import StatusFile

EVIL = "<script>alert('1')</script><b onclick=x>&"


def valley(x):
    return float(3 * (x[2] - 1.0) ** 2 + (x[0] + 0.5) ** 2 + 0.01 * x[1] ** 2 + 1.0)


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    return minimize(lambda x: valley(x) + 0.01 * rng.standard_normal(), np.zeros(5), scale=1.0,
                    method="musketeer", max_evals=1500, seed=0, reporting=scgd.Reporting(record=True))  # fmt: skip


def titles(figure):
    return [note.text for note in figure.layout.annotations]


def test_figure_has_every_panel(result):
    figure = result.plot(n_inputs=2)
    names = [data.named(result, k) for k, *_ in data.relevant(result, 2)]
    assert names[0] == "x[2]" and titles(figure) == [
        "Value reached", "Evaluations", "Most relevant inputs", *(f"Slice along {n}" for n in names)
    ]  # fmt: skip
    reached = next(trace for trace in figure.data if trace.name == "value reached")
    part = data.curve(result)
    assert np.array_equal(reached.y, part.middle) and np.array_equal(reached.x, part.nfev)
    answer = next(trace for trace in figure.data if trace.name == "answer")
    assert answer.y[0] == result.fun and answer.error_y.array[0] == 2 * result.fun_error
    dots = [trace for trace in figure.data if trace.name in dict(result.members)]
    assert {y for trace in dots for y in trace.y} == set(result.evaluations.value)


def test_slices_without_points_need_the_function():
    found = minimize(valley, np.zeros(4), method="musketeer", scale=1.0, max_evals=300, seed=0)
    assert not any("Slice" in title for title in titles(found.plot()))
    figure = found.plot(fun=valley, n_inputs=1)
    line = next(trace for trace in figure.data if trace.name == "slice")
    x = found.x.copy()
    for at, value in zip(line.x, line.y, strict=True):
        x[2] = at
        assert value == valley(x)
    assert line.x[10] == found.x[2] and np.ptp(line.x) == pytest.approx(2 * found.scale[2])


@pytest.mark.parametrize("wrong", [-1, 1.5, "two", True])
def test_number_of_slices_is_checked(result, wrong):
    with pytest.raises(ValueError, match="n_inputs must be a whole number"):
        result.plot(n_inputs=wrong)


def test_without_plotly_the_extra_is_named(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "plotly.subplots", None)
    with pytest.raises(ImportError, match=r"scgd\[plot\]"):
        result.plot()


@pytest.mark.parametrize("max_evals", [1, 2, 5, 20])
@pytest.mark.parametrize("method", ["auto", "musketeer"])
def test_any_result_can_be_drawn(max_evals, method):
    found = minimize(
        valley,
        np.zeros(4),
        method=method,
        max_evals=max_evals,
        seed=0,
        reporting=scgd.Reporting(record=True),
    )
    found.plot()
    assert 3 <= len(repr(found).splitlines()) <= 10
    StatusFile("run.html", "f", None).page({"state": "x", "evaluations": 1}, found)


# ---- what is drawn -------------------------------------------------------------------------------


def test_band_is_quartiles_of_neighbours():
    fun = np.random.default_rng(1).normal(size=200)
    unknown = np.full(200, np.nan)
    history = {"nfev": np.arange(200), "fun": fun, "incumbent": unknown, "error": unknown}
    part = data.curve(Result(history=history))
    window = fun[95:106]  # five to each side of 100
    assert part.middle[100] == np.median(window)
    assert (part.low[100], part.high[100]) == tuple(np.quantile(window, [0.25, 0.75]))
    assert part.middle[0] == np.median(fun[:6])


def noisy_run(**words):
    rng = np.random.default_rng(1)
    noisy = lambda x: valley(x) + 0.3 * rng.standard_normal()  # noqa: E731
    return minimize(noisy, np.zeros(5), max_evals=600, seed=0, **words)


def test_under_noise_the_curve_is_the_incumbent_with_two_errors():
    found = noisy_run()
    part, history = data.curve(found), found.history
    known = np.isfinite(history["incumbent"])
    assert np.array_equal(part.middle, history["incumbent"][known]) and not part.exact
    widths = (part.high - part.middle) / 2
    assert np.allclose(widths, np.nan_to_num(history["error"][known]))
    assert abs(part.middle[-1] - valley(found.x)) < 4 * widths[-1]


@pytest.mark.parametrize("method", ["auto", "musketeer", "random"])
@pytest.mark.parametrize("sign", [1, -1])
def test_without_noise_the_curve_is_the_best_value_so_far(method, sign):
    x0 = scgd.Space(x=scgd.Float(-2, 2, size=5)) if method == "random" else np.zeros(5)
    fun = lambda x: sign * valley(x["x"] if method == "random" else x)  # noqa: E731
    found = minimize(fun, x0, method=method, max_evals=200, seed=0, maximize=sign < 0)
    part = data.curve(found)
    assert part.exact and np.all(sign * np.diff(part.middle) <= 0)
    assert sign * (part.middle[-1] - found.fun) >= 0


def test_under_noise_evaluations_incumbent_and_re_evaluations_are_drawn():
    found = noisy_run()
    figure = found.plot()
    traces = {trace.name: trace for trace in figure.data if trace.name}
    assert len(traces["evaluation"].y) == len(found.evaluations)
    again = found.evaluations.value[found.evaluations.member == "re-evaluation"]
    assert len(again) > 5 and np.array_equal(np.sort(traces["re-evaluation"].y), np.sort(again))
    assert traces["re-evaluation"].x.max() == found.nfev
    axes = [*figure.select_xaxes(), *figure.select_yaxes()]
    assert all(axis.title.text for axis in axes if axis.tickvals is None)


def test_relevance_comes_first_then_a_law_that_is_not_even():
    weights = np.array([0.1, 0.5, 0.4])
    assert data.relevant(Result(weights=np.full(3, 1 / 3)), 3) == []
    assert data.relevant(Result(weights=None), 3) == []
    assert [k for k, *_ in data.relevant(Result(weights=weights), 2)] == [1, 2]
    told = Result(weights=weights, relevance=np.array([2.0, 0.0, 1.0]),
                  relevance_error=np.array([0.1, 0.0, 0.2]))  # fmt: skip
    assert data.relevant(told, 5) == [(0, 2.0, 0.1), (2, 1.0, 0.2)]


def test_dots_are_thinned_but_keep_the_lowest():
    found = minimize(valley, np.zeros(4), method="musketeer", max_evals=500, seed=0)
    part = data.dots(found.evaluations, 50)
    assert 50 <= len(part.value) <= 51 and part.value.min() == found.evaluations.value.min()


def test_axes():
    assert data.is_log(np.array([1.0, 1000.0])) and not data.is_log(np.array([1.0, 2.0]))
    assert not data.is_log(np.array([-1.0, 100.0])) and not data.is_log(np.array([np.nan]))
    values = np.append(np.linspace(0, 1, 100), 1e9)
    low, high = data.core(values)
    assert low < 0 and 1 < high < 2
    assert data.core(np.array([2.0, 2.0])) == [1.0, 3.0]


# ---- pages ---------------------------------------------------------------------------------------


@pytest.fixture
def evil(result):
    found = Result(result, table=lambda: result.evaluations)
    found.names = [EVIL + str(k) for k in range(5)]
    found.message = EVIL
    return found


def test_status_page_is_inert(evil, tmp_path):
    path = tmp_path / "run.html"
    StatusFile(path, EVIL, 1500).write(evil, EVIL)
    text = path.read_text()
    assert "<script" not in text and "onclick=x>" not in text
    assert text.count("&lt;script&gt;") >= 4
    assert "Value reached" in text and "Evaluations" in text and "Most relevant inputs" in text


def test_page_is_inert_and_whole(evil):
    text = page(evil, EVIL)
    assert "alert('1')" not in re.sub(r"\\u[0-9a-f]{4}", "", text).replace("&#x27;", "")
    assert text.count("<script>alert") == 0 and "onclick=x>" not in text
    assert not re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="http', text)
    assert text.count("<article>") == 3 + 4


def test_result_is_ten_lines(result):
    text = repr(result)
    lines = text.splitlines()
    assert len(lines) <= 10 and max(map(len, lines)) <= 100
    assert lines[0] == f"musketeer: 1,500 of 1,500 evaluations, {result.nit:,} steps"
    value, error = lines[1].removeprefix("  value").split("+-")
    assert abs(float(value) - result.fun) < 0.1 * result.fun_error
    assert float(error) == float(f"{result.fun_error:.2g}")
    assert "Budget exhausted" in text
    assert sum("x[" in line for line in lines[4:]) == 5
    assert str(result) == text


def test_result_without_a_run_prints_as_scipys():
    assert "fun: 1.0" in repr(Result(fun=1.0))


def test_long_lines_are_cut():
    found = minimize(valley, np.full(60, 0.1), max_evals=80, seed=0)
    found.message = "word " * 200
    assert len(repr(found).splitlines()) <= 10 and "..." in repr(found)


def test_slices_of_a_space_show_parameters():
    from scgd import Choice, Float, Space

    space = Space(lr=Float(1e-4, 1, log=True), kind=Choice("<b>", "b"))

    def loss(params):
        return float(np.log10(params["lr"] / 0.03) ** 2 + (params["kind"] == "b"))

    found = minimize(loss, space, max_evals=30, seed=0)
    parts = {part.coord: part for part in data.slices(found, [0, 1], None)}
    params = found.evaluations.params
    assert parts[0].at.tolist() == [one["lr"] for one in params]
    assert parts[1].at.tolist() == [one["kind"] for one in params]
    assert parts[0].here == found.params["lr"] and parts[1].here == "<b>"
    lines = {part.coord: part for part in data.slices(found, [0, 1], loss)}
    assert lines[1].at.tolist() == ["<b>", "b"] and np.ptp(lines[1].value) == 1.0
    best = lines[0].at[np.argmin(lines[0].value)]
    assert 0.01 < best < 0.1 and len(lines[0].at) == 21
    figure = found.plot(n_inputs=2)
    text = figure.to_json()
    assert "<b>" not in text and "&lt;b&gt;" in text
    assert "log" in {axis.type for axis in figure.select_xaxes()}


def test_slices_are_logarithmic_where_the_parameter_is():
    space = scgd.Space(rate=scgd.Float(0, 0.5), size=scgd.Int(1, 100, log=True))
    found = minimize(lambda p: p["rate"] ** 2 + (p["size"] - 10) ** 2, space, max_evals=30, seed=0)
    for parts in (data.slices(found, [0, 1], None), data.slices(found, [0, 1], sum_of)):
        assert [part.log for part in parts] == [False, True]


def sum_of(params):
    return float(sum(params.values()))
