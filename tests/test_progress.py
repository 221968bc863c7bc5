"""What is shown of a run: a line while it goes on, and what a notebook and completion find."""

import io
import re
import sys

import numpy as np

import scgd


class Terminal(io.StringIO):
    def isatty(self):
        return True


def noisy(seed=0):
    rng = np.random.default_rng(seed)
    return lambda x: float(np.sum((x - 1) ** 2)) + 0.1 * rng.standard_normal()


def shown(monkeypatch, stream, **words):
    monkeypatch.setattr(sys, "stderr", stream)
    result = scgd.minimize(noisy(), np.zeros(4), seed=0, reporting=True, **words)
    return stream.getvalue(), result


def test_a_terminal_sees_value_error_speed_time_and_solver(monkeypatch):
    text, result = shown(monkeypatch, Terminal(), max_evals=400)
    assert text.startswith("\r[-") and text.endswith("\n")
    assert max(map(len, text.split("\r"))) <= 80
    last = text.rstrip("\n").split("\r")[-1]
    found = re.search(r"400 of 400, f = (\S+) \+- (\S+), [\d,.]+/s, 0:00 left, (.+)", last)
    assert "##########" in last and abs(float(found[1]) - result.fun) < 0.1 * result.fun_error
    assert float(found[2]) == float(f"{result.fun_error:.2g}")
    assert "re-evaluation".startswith(found[3][:8])  # the end of the line may be cut


def test_a_file_gets_few_whole_lines_and_a_deadline_counts(monkeypatch):
    text, _ = shown(monkeypatch, io.StringIO(), max_time=0.3)
    lines = text.splitlines()
    assert len(lines) == 2 and "\r" not in text and "[" not in text
    assert re.match(r"0, 0:00 left, x0", lines[0]) and " left, " in lines[1]


def test_a_stream_that_is_closed_ends_no_run(monkeypatch):
    stream = Terminal()
    stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    assert scgd.minimize(noisy(), np.zeros(4), max_evals=50, seed=0, reporting=True).nfev == 50


def test_results_and_optimizers_show_themselves():
    result = scgd.minimize(noisy(), np.zeros(4), max_evals=400, seed=0)
    assert {"plot", "evaluations", "x", "fun", "message"} <= set(dir(result))
    page = result._repr_html_()
    assert page.count("<svg") >= 1 and "Budget exhausted" in page and "+-" in page
    assert "<script" not in page
    opt = scgd.Optimizer(np.zeros(4), max_evals=400, seed=0)
    assert "0 trials out" in repr(opt) and opt._repr_html_()
    trials = opt.ask(3)
    opt.tell(trials[0].id, 2.5)
    assert "2 trials out" in repr(opt) and "value    2.5" in repr(opt)
    assert "<svg" in opt._repr_html_()


def test_names_are_escaped_in_a_notebook():
    space = scgd.Space({"<b>": scgd.Float(0, 1), "c": scgd.Float(0, 1)})
    page = scgd.minimize(lambda p: p["<b>"] ** 2, space, max_evals=20, seed=0)._repr_html_()
    assert "<b>" not in page and "&lt;b&gt;" in page
