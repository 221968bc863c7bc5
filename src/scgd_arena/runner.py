"""Make the runs that a file of rows does not hold yet, strong methods first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context

import numpy as np

from scgd_arena.cells import Cell
from scgd_arena.oracle import FLOOR, Method, Spent, TimedOracle
from scgd_arena.peers import METHODS, OURS, TUNED
from scgd_arena.peers.spsa import spsa, tune
from scgd_arena.problems import Task
from scgd_arena.rows import Line, Rows, Run, packed

__all__ = ["Block", "blocks", "fill", "run_block", "run_one"]


@dataclass(frozen=True)
class Block:
    """The instances of one cell that one method still has to run."""

    cell: Cell
    method: str
    instances: tuple[int, ...]
    max_seconds: float = 60.0

    @property
    def key(self) -> str:
        """Name of the cell in the file: ours tell bounds apart, the peers' serve both."""
        return self.cell.own_key if self.method in OURS else self.cell.key

    @property
    def seconds(self) -> float:
        """About how long it takes; orders the work, no more."""
        micros = METHODS[self.method].micros * (1 + self.cell.shape[0] / 40) + self.cell.micros
        each = min(self.max_seconds, 1e-6 * micros * self.cell.budget)
        return each * len(self.instances)


def blocks(
    cells: Iterable[Cell],
    methods: Sequence[str],
    instances: Sequence[int],
    rows: Rows,
    max_seconds: float = 60.0,
    first: frozenset[str] = frozenset(),
) -> list[Block]:
    """Return what is missing: strong methods before others, quick work before slow.

    Cells of ``first`` may take 20 times longer than others; on the problems that `auto` was first
    designed on, whose rival is the `auto` of before, strong methods wait for the others' turn.
    """
    found: dict[tuple[str, str], tuple[tuple[int, float], Block]] = {}
    for cell in cells:
        for method in methods:
            if not METHODS[method].takes(cell.name, *cell.shape, cell.budget):
                continue
            given = cell if method in OURS else replace(cell, bounds=False)
            block = Block(given, method, tuple(instances), max_seconds)
            missing = tuple(rows.missing(block.key, method, instances))
            if missing:
                block = replace(block, instances=missing)
                patience = 20.0 if cell.key in first else 1.0
                late = (not METHODS[method].strong) + (cell.group == "home")
                found[block.key, method] = (late, block.seconds / patience), block
    return [block for _, block in sorted(found.values(), key=lambda entry: entry[0])]


def fill(
    work: Sequence[Block],
    rows: Rows,
    jobs: int = 1,
    report: Callable[[Block, list[Line]], None] = lambda block, lines: None,
) -> None:
    """Run blocks and write their lines; with several jobs in processes of their own."""
    for block, lines in results(work, jobs):
        for line in lines:
            rows.add(line)
        report(block, lines)


def results(work: Sequence[Block], jobs: int) -> Iterator[tuple[Block, list[Line]]]:
    """Return the lines of each block as they are done."""
    if jobs == 1:
        yield from ((block, run_block(block)) for block in work)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(run_block, block): block for block in work}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def run_block(block: Block) -> list[Line]:
    """Run a block; consecutive instances make one line."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        run, note = chosen(block)
        return packed(line_of(block, run, note, instance) for instance in block.instances)


def line_of(block: Block, run: Method, note: str, instance: int) -> Line:
    """Run one instance; a peer only until nothing is left to gain, ours to its own end."""
    enough = -np.inf if block.method in OURS else FLOOR
    task, budget = block.cell.task(instance), block.cell.budget
    done = run_one(task, run, budget, instance, block.max_seconds, enough)
    notes = "; ".join(text for text in (note, done.note) if text)
    spent = round(100 * done.spent)
    return Line(block.key, block.method, instance, round(done.micros), spent, (done.run,), notes)


def chosen(block: Block) -> tuple[Method, str]:
    """Return a method and a note on how it was set."""
    if block.method != TUNED:
        return METHODS[block.method].run, ""
    rate, radius = tune(block.cell.task, block.cell.budget)
    return spsa(rate, radius), f"{rate:g}/{radius:g}"


@dataclass(frozen=True)
class Done:
    """One run, judged."""

    run: Run
    micros: float
    spent: float
    note: str = ""


def run_one(
    task: Task,
    method: Method,
    budget: int,
    seed: int,
    max_seconds: float,
    enough: float = -np.inf,
) -> Done:
    """Make one run and judge the point it recommends."""
    oracle = TimedOracle(task, budget, seed, max_seconds, enough)
    started, note = time.process_time(), ""
    try:
        x = method(oracle, seed)
    except Spent:  # a method that knows no point to recommend when it is interrupted
        x = oracle.answer(task.x0)
    except Exception as error:  # the others still run; the table says so
        x, note = oracle.answer(task.x0), f"failed: {error!r}"[:80]
    seconds = time.process_time() - started
    if oracle.stopped:
        note = f"{note}; stopped by the clock".lstrip("; ")
    gap = float(task.gap(np.asarray(x, np.float64)))
    gap = gap if np.isfinite(gap) else np.inf
    reached = tuple(oracle.reached(gap, float(task.gap(task.x0)))) if task.looks else ()
    micros = 1e6 * seconds / max(1, oracle.count)
    return Done(Run(gap, reached), micros, oracle.count / budget, note)
