"""Run methods on problems at budgets over seeds, and keep every result.

Results are rows of a CSV file; a run that is in the file is not made again, so an arena can be
stopped, continued and enlarged. A method that is too slow for its budget is stopped after
``max_seconds`` and its row says how many evaluations it made.

For data profiles a row also says after how many evaluations the gap had come down to a tenth, a
hundredth and a thousandth of the start's, as seen at points evaluated at ``LOOKS`` counts per
decade and at the point recommended.
"""

from __future__ import annotations

import csv
import itertools
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from math import inf
from pathlib import Path

import numpy as np

from scgd.compare.outside import OUTSIDE
from scgd.compare.peers import METHODS, Method, Oracle, Spent, spsa_adam
from scgd.compare.problems import PROBLEMS, Task
from scgd.typing import Floats, Ints

__all__ = ["TOLERANCES", "Row", "load", "problem", "run_arena", "summary", "tune"]

TUNING_SEEDS = (1, 2, 3)
RATES = (0.001, 0.003, 0.01, 0.03, 0.1)
RADII = (0.01, 0.1, 1.0)
LOOKS = 20
TOLERANCES = (0.1, 0.01, 0.001)


@dataclass(frozen=True)
class Row:
    """One run."""

    problem: str
    method: str
    budget: int
    seed: int
    gap: float
    start: float
    evals: int
    seconds: float
    note: str = ""
    n_coords: int = 0
    tenth: float = inf
    hundredth: float = inf
    thousandth: float = inf

    @property
    def reached(self) -> tuple[float, float, float]:
        """Evaluations to each of ``TOLERANCES`` times the gap of the start; inf: never."""
        return self.tenth, self.hundredth, self.thousandth

    @property
    def key(self) -> tuple[str, str, int, int]:
        """What makes it the same run."""
        return self.problem, self.method, self.budget, self.seed


class TimedOracle(Oracle):
    """An oracle that ends a run when its time is over, and keeps points for data profiles."""

    def __init__(self, task: Task, budget: int, seed: int, max_seconds: float) -> None:
        super().__init__(task, budget, seed)
        self.deadline = time.monotonic() + max_seconds
        self.stopped = False
        self.looks: list[tuple[int, Floats]] = []
        self.next_look = 1

    def at(self, x: Floats, rows: Ints | None) -> float:
        """Evaluate, unless budget or time is spent."""
        if self.count % 16 == 0 and time.monotonic() > self.deadline:
            self.stopped = True
            raise Spent
        value = super().at(x, rows)
        if self.count >= self.next_look:
            self.looks.append((self.count, np.array(x, np.float64)))
            self.next_look = int(np.ceil(self.count * 10 ** (1 / LOOKS)))
        return value


def problem(name: str) -> Task:
    """Return a problem of this library or of others by name."""
    known = {**PROBLEMS, **OUTSIDE}
    if name not in known:
        raise ValueError(f"problem must be one of {sorted(known)}, got {name!r}")
    return known[name]()


def tune(name: str, budget: int) -> tuple[float, float]:
    """Return the rate and radius of SPSA with Adam that are best on the tuning seeds."""
    task = problem(name)
    radii = RADII if task.sample is None else (0.1,)

    def quality(setting: tuple[float, float]) -> float:
        runs = (spsa_adam(Oracle(task, budget, s), s, *setting) for s in TUNING_SEEDS)
        gap = float(np.median([task.gap(x) for x in runs]))
        return gap if np.isfinite(gap) else np.inf

    return min(itertools.product(RATES, radii), key=quality)


def method(name: str, problem_name: str, budget: int) -> tuple[Method, str]:
    """Return a method by name and a note on how it was set."""
    if name == "spsa-adam-tuned":
        rate, radius = tune(problem_name, budget)
        return (
            lambda oracle, seed: spsa_adam(oracle, seed, rate, radius),
            f"rate {rate:g}, radius {radius:g}, chosen on seeds 1-3",
        )
    if name not in METHODS:
        known = sorted([*METHODS, "spsa-adam-tuned"])
        raise ValueError(f"method must be one of {known}, got {name!r}")
    return METHODS[name], ""


def run_one(
    task: Task, name: str, chosen: Method, budget: int, seed: int, max_seconds: float, note: str
) -> Row:
    """Make one run and judge the point it recommends."""
    oracle = TimedOracle(task, budget, seed, max_seconds)
    started = time.perf_counter()
    try:
        x = chosen(oracle, seed)
    except Spent:  # a method that knows no point to recommend when it is interrupted
        x = task.x0
    except Exception as error:  # the others still run; the table says so
        x, note = task.x0, f"{note}; failed: {error!r}".lstrip("; ")
    if oracle.stopped:
        note = f"{note}; stopped by the clock".lstrip("; ")
    seconds = time.perf_counter() - started
    gap = float(task.gap(np.asarray(x, np.float64)))
    gap = gap if np.isfinite(gap) else inf
    start = float(task.gap(task.x0))
    seen = [(count, float(task.gap(point))) for count, point in oracle.looks]
    reached = first_reached([*seen, (oracle.count, gap)], start)
    return Row(
        task.name, name, budget, seed, gap, start, oracle.count, round(seconds, 4), note,
        task.x0.size, *reached,
    )  # fmt: skip


def first_reached(seen: Iterable[tuple[int, float]], start: float) -> list[float]:
    """Return the evaluations after which the gap first was below each tolerance."""
    seen = list(seen)
    return [
        min((float(count) for count, gap in seen if gap <= tolerance * start), default=inf)
        for tolerance in TOLERANCES
    ]


def warm_up(task: Task, name: str, chosen: Method) -> None:
    """Compile what this library compiles before the clock starts."""
    if name in ("auto", "musketeer"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            chosen(Oracle(task, 8 * task.x0.size, 0), 0)


def run_arena(
    problems: Iterable[str],
    methods: Iterable[str],
    budgets: Iterable[int],
    seeds: Iterable[int],
    path: Path,
    max_seconds: float = 60.0,
    report: Callable[[Row], None] = lambda row: None,
) -> list[Row]:
    """Make the runs that the file does not hold yet; return all of its rows."""
    seeds = list(seeds)
    if not seeds:
        raise ValueError("seeds must be first-last with first <= last, got none")
    drop_torn_line(path)
    rows = load(path)
    done = {row.key for row in rows}
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = not path.exists() or path.stat().st_size == 0
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        if fresh:
            writer.writeheader()
        for name, label, budget in itertools.product(problems, methods, list(budgets)):
            task = problem(name)
            missing = [s for s in seeds if (task.name, label, budget, s) not in done]
            if not missing:
                continue
            chosen, note = method(label, name, budget)
            warm_up(task, label, chosen)
            for seed in missing:
                row = run_one(task, label, chosen, budget, seed, max_seconds, note)
                rows.append(row)
                writer.writerow(asdict(row))
                file.flush()
                report(row)
    return rows


def drop_torn_line(path: Path) -> None:
    """Cut off a last line that a killed run left unfinished."""
    if path.exists():
        text = path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        if whole != text:
            path.write_bytes(whole)


def load(path: Path) -> list[Row]:
    """Read the rows of a results file; none if there is no file."""
    if not path.exists():
        return []
    kinds = {"int": int, "float": float, "str": str}
    with path.open(newline="") as file:
        try:
            return [
                Row(
                    **{field.name: kinds[str(field.type)](row[field.name]) for field in fields(Row)}
                )
                for row in csv.DictReader(file)
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path} is not a table of this arena ({error!r}); move it away, or choose another "
                "folder with --out"
            ) from None


def summary(rows: Iterable[Row]) -> dict[tuple[str, int], dict[str, tuple[float, float, int]]]:
    """Return median gap, worst gap and number of seeds per (problem, budget) and method."""
    cells: dict[tuple[str, int], dict[str, list[float]]] = {}
    for row in rows:
        cells.setdefault((row.problem, row.budget), {}).setdefault(row.method, []).append(row.gap)
    return {
        cell: {
            name: (float(np.median(gaps)), max(gaps), len(gaps)) for name, gaps in methods.items()
        }
        for cell, methods in cells.items()
    }
