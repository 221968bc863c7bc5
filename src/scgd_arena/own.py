"""``python -m scgd_arena MODULE:FUNCTION``: methods and peers on a function of your own.

Nobody knows the minimum of it, so points are judged by values: one where f repeats itself, else the
mean of ``JUDGED`` further ones, which are not counted. Random search is among the methods: who does
not beat it need not be used.
"""

from __future__ import annotations

import argparse
import html
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from scgd.command import find, one_line, place_of, start
from scgd.errors import UsageError
from scgd.problem import as_scalar
from scgd.typing import Floats
from scgd_arena.command import span
from scgd_arena.oracle import Oracle, Spent, TimedOracle
from scgd_arena.page import STYLE, line_style, ordered
from scgd_arena.peers import METHODS, check_methods
from scgd_arena.problems import Task

__all__ = ["Trial", "compare_function", "trials"]

USUAL = "auto,random,l-bfgs-b,powell,newuoa,cma,cma-sep,spsa,cobyqa,optuna-tpe"
JUDGED = 20
WINDOW = 20
"""Under noise a curve is the median of this many values."""


@dataclass(frozen=True)
class Trial:
    """One run: the value it ends with, and what it saw on the way."""

    method: str
    value: float
    evals: int
    seconds: float
    seen: Floats
    note: str = ""


class Watched(TimedOracle):
    """An oracle that keeps all values."""

    def __init__(self, task: Task, budget: int, seed: int, max_seconds: float) -> None:
        super().__init__(task, budget, seed, max_seconds)
        self.values: list[float] = []

    def at(self, x: Floats, rows: Any) -> float:
        """Evaluate and keep the value."""
        value = super().at(x, rows)
        self.values.append(value)
        return value


MOST_EVALS = 10**12
"""Evaluations of a run that can be meant."""


def compare_function(args: argparse.Namespace) -> int:
    """Run methods and peers on a user's function: one table, one picture."""
    methods = (args.methods or USUAL).split(",")
    if args.methods:
        check_methods(methods)
    fun = find(args.function)[1]
    if (args.dim is None) == (args.x0 is None):
        raise UsageError("give the start: --dim P for P zeros, or --x0 X")
    if args.max_evals is None:
        raise UsageError("give the evaluations of every run: --max-evals N")
    if not 2 <= args.max_evals <= MOST_EVALS:
        raise UsageError(f"--max-evals must be 2 to {MOST_EVALS:g}, got {args.max_evals}")
    if args.bounds is not None and not args.bounds[0] < args.bounds[1]:
        raise UsageError(f"--bounds must be LOW HIGH with LOW < HIGH, got {args.bounds}")
    seeds = span(args.instances or "1-3")
    task = own_task(fun, start(args), args.bounds, args.function)
    methods = [name for name in methods if usable(name, task, args)]
    forecast(task, args.max_evals * len(methods) * len(seeds))
    found = trials(task, methods, args.max_evals, seeds, args.max_seconds, report)
    print(text_table(found, task))
    path = args.out / f"{args.function.replace(':', '.')}.html"
    write_page(path, found, task, args.function)
    print(f"wrote {path}")
    return 0


def own_task(fun: Callable[..., Any], x0: Any, bounds: Any, name: str) -> Task:
    """Return the user's function as a task; two calls at x0 tell whether it repeats itself."""
    x0 = np.asarray(x0, np.float64)

    low, high = (-inf, inf) if bounds is None else bounds
    if not (low < high and (x0 >= low).all() and (x0 <= high).all()):
        raise UsageError(f"--bounds must be LOW < HIGH around the start, got {low} {high}")

    def value(x: Floats) -> float:
        found = as_scalar(fun(np.clip(x, low, high)))  # peers that know no bounds are kept inside
        return found if found == found else inf

    first, second = (at_start(fun, x0, name) for _ in range(2))
    repeats = first == second
    n = 1 if repeats else JUDGED
    task = Task(
        name, x0, None, lambda seed: value, lambda x: float(np.mean([value(x) for _ in range(n)])),
        repeats=repeats, looks=False,
    )  # fmt: skip
    if bounds is not None:
        return replace(task, domain=(low, high), bounds=[(low, high)] * x0.size)
    spread = np.maximum(1.0, np.abs(x0))
    return replace(task, domain=(x0 - 2.5 * spread, x0 + 2.5 * spread))


def at_start(fun: Callable[..., Any], x0: Floats, name: str) -> float:
    """Return f(x0); what is wrong with it is said with the function, its argument and the error."""
    call = f"{name} at the start, x = {np.array2string(x0, threshold=8)},"
    try:
        value = fun(x0.copy())
    except Exception as error:
        inside = error.__traceback__ is not None and error.__traceback__.tb_next is not None
        place = place_of(error) if inside else ""  # else the call itself does not fit
        what = one_line(f"{type(error).__name__}: {error}{place}")
        raise UsageError(f"{call} raises {what}; mend it, or start elsewhere") from error
    try:
        found = as_scalar(value)
    except TypeError as error:
        raise UsageError(f"{call} does not fit: {error}") from error
    if not np.isfinite(found):
        raise UsageError(f"{call} must be a finite number, got {found}; start elsewhere with --x0")
    return found


def usable(name: str, task: Task, args: argparse.Namespace) -> bool:
    """Whether a method of the usual list can run; one that was asked for always is."""
    if args.methods:
        return True
    try:
        check_methods([name])
    except UsageError as missing:
        print(f"left out {name}: {missing}")
        return False
    return METHODS[name].takes(task.name, task.x0.size, task.repeats, args.max_evals)


def forecast(task: Task, n_evals: int) -> None:
    """Say how long the function itself will take."""
    fun, began = task.make(0), time.perf_counter()
    fun(task.x0)
    each = time.perf_counter() - began
    kind = "repeats itself" if task.repeats else "is noisy"
    print(
        f"{task.name} {kind} and takes {each:.2g} s a call: {each * n_evals:.0f} s in all, or less"
    )
    print(f"method, {judged(task)}, and what it took:")


def judged(task: Task) -> str:
    """Return what stands in the tables."""
    how = "one value" if task.repeats else f"the mean of {JUDGED} values that are not counted"
    return f"f at the point it returns ({how})"


def trials(
    task: Task,
    methods: list[str],
    budget: int,
    seeds: list[int],
    max_seconds: float,
    report: Callable[[Trial], None] = lambda trial: None,
) -> list[Trial]:
    """Run every method from every seed."""
    found = []
    for name in methods:
        for seed in seeds:
            found.append(trial(task, name, Watched(task, budget, seed, max_seconds), seed))
            report(found[-1])
    return found


def trial(task: Task, name: str, oracle: Watched, seed: int) -> Trial:
    """Make one run; what goes wrong in it is said in its row."""
    began, note, x = time.perf_counter(), "", task.x0
    try:
        x = METHODS[name].run(oracle, seed)
    except Spent:
        x = Oracle.answer(oracle, task.x0)
    except Exception as error:
        note = f"failed: {error!r}"[:120]
    if task.bounds is not None:
        x = np.clip(x, *task.box)
    seconds = time.perf_counter() - began
    note = note or ("stopped by the clock" if oracle.stopped else "")
    return Trial(name, task.gap(x), oracle.count, seconds, np.array(oracle.values), note)


def report(done: Trial) -> None:
    """Print a run."""
    print(f"{done.method:12} {done.value:12.6g}  {done.evals} evaluations  {done.note}", flush=True)


def by_method(found: list[Trial]) -> dict[str, list[Trial]]:
    """Return the runs of every method, the best median first."""
    parts: dict[str, list[Trial]] = {}
    for one in found:
        parts.setdefault(one.method, []).append(one)
    return dict(sorted(parts.items(), key=lambda part: np.median([one.value for one in part[1]])))


def summary(found: list[Trial]) -> list[tuple[str, float, float, int, float, str]]:
    """Return method, median value, worst value, evaluations, seconds and note."""
    return [
        (
            name,
            float(np.median([one.value for one in part])),
            max(one.value for one in part),
            int(np.median([one.evals for one in part])),
            float(np.median([one.seconds for one in part])),
            next((one.note for one in part if one.note), ""),
        )
        for name, part in by_method(found).items()
    ]


def text_table(found: list[Trial], task: Task) -> str:
    """Return the table as text that is Markdown too."""
    lines = ["| method       | value, median |        worst | evaluations | seconds |"]
    lines.append("|--------------|---------------|--------------|-------------|---------|")
    for name, value, worst, evals, seconds, note in summary(found):
        lines.append(
            f"| {name:12} | {value:13.6g} | {worst:12.6g} | {evals:11d} | {seconds:7.2f} |"
            + (f" {note}" if note else "")
        )
    lines.append(
        f"| (start)      | {task.gap(task.x0):13.6g} |              |             |         |"
    )
    return "\n".join(lines)


def curve(one: Trial, repeats: bool, places: Floats) -> Floats:
    """Return the best value so far, or under noise the median of the last values."""
    counts = np.minimum(places.astype(int), len(one.seen))
    if repeats:
        return np.fmin.accumulate(one.seen)[counts - 1]  # type: ignore[no-any-return]
    return np.array([np.median(one.seen[max(0, n - WINDOW) : n]) for n in counts])


def write_page(path: Path, found: list[Trial], task: Task, title: str) -> None:
    """Write the table and the picture."""
    import plotly.graph_objects as go

    parts = by_method([one for one in found if len(one.seen)])
    names = ordered(parts)
    last = max(len(one.seen) for part in parts.values() for one in part)
    places = np.unique(np.linspace(1, last, 300).astype(int)).astype(float)
    figure, begin, lowest = go.Figure(), task.gap(task.x0), inf
    for name, part in reversed(parts.items()):
        middle = np.median([curve(one, task.repeats, places) for one in part], axis=0)
        lowest = min(lowest, middle.min())
        style = {**line_style(name, names), "shape": "linear"}
        figure.add_scatter(x=places, y=middle, name=name, mode="lines", line=style)
    what = "best value so far" if task.repeats else f"median of the last {WINDOW} values"
    figure.update_xaxes(title="evaluations")
    figure.update_yaxes(title=f"{what}, median over runs")
    if 0 < 30 * lowest < begin:
        figure.update_yaxes(type="log", exponentformat="power")
    elif lowest < begin:  # wide first probes would flatten all the rest
        room = begin - lowest
        figure.update_yaxes(range=[lowest - 0.05 * room, begin + room])
    figure.update_layout(template="plotly_white", height=520, font_size=14)
    figure.update_layout(legend={"traceorder": "reversed"}, margin={"t": 20})
    chart = figure.to_html(
        full_html=False, include_plotlyjs="inline", config={"displayModeBar": False}
    )
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{value:.6g}</td><td>{worst:.6g}</td><td>{evals}</td>"
        f"<td>{seconds:.2f}</td><td class=name>{html.escape(note)}</td></tr>"
        for name, value, worst, evals, seconds, note in summary(found)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"<!doctype html><meta charset=utf-8><title>{html.escape(title)}</title>"
        f"<style>{STYLE}</style><h1>{html.escape(title)}</h1>"
        f"<p>{judged(task).capitalize()}, median and worst over runs; "
        f"{task.gap(task.x0):.6g} at the start.</p>"
        "<table><tr><th>method</th><th>value</th><th>worst</th><th>evaluations</th>"
        f"<th>seconds</th><th></th></tr>{rows}</table>{chart}"
    )
