"""What one run does with many workers: real runs on Dask, and a simulation of larger ones.

``python benchmarks/scaling.py measure`` (five minutes, mostly asleep; 6 GB) runs SCGD at p = 10^7 on 2
to 8 local Dask workers and stores rows and constants in ``scaling.csv``. ``python benchmarks/scaling.py``
predicts, from the constants alone, what was measured and what nobody can measure here, and writes
docs/scaling-results.md and docs/images/scaling.svg.
"""

from __future__ import annotations

import csv
import heapq
import math
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from scgd.plots.data import OURS

HERE = Path(__file__).parent
ROWS = HERE / "scaling.csv"
DOCS = HERE.parent / "docs"
P = 10_000_000


# ---- the simulation ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """A run: what it does, and the constants of the machine (seconds).

    Parameters
    ----------
    workers
        How many.
    seconds
        What an evaluation takes beyond reading x.
    n_coords
        The dimension.
    under_way
        Evaluations under way at a time; None: steps of as many as there are workers, each of which
        ends before the next begins.
    step, message, latency, read
        What the driver does for a step and for a message (a task out, a value in), how long a
        message travels, and what the function takes to read a coordinate of x.
    slow, slowness
        The share of evaluations that take so many times as long.
    deaths
        Share of the workers that die for good in the middle of the run.
    notice
        How long the loss of a worker goes unnoticed.
    """

    workers: int
    seconds: float
    n_coords: int = P
    under_way: int | None = None
    step: float = 0.0
    message: float = 0.0
    latency: float = 0.0
    read: float = 0.0
    slow: float = 0.0
    slowness: float = 10.0
    deaths: float = 0.0
    notice: float = 1.0


def simulate(setting: Setting, n_evals: int, seed: int = 0) -> float:
    """Return the seconds that a run of so many evaluations takes, event by event.

    The driver handles one message at a time. A task goes to an idle worker, or waits for one.
    """
    s, rng = setting, np.random.default_rng(seed)
    takes, size = s.seconds + s.read * s.n_coords, s.under_way or s.workers
    idle, waiting = list(range(s.workers)), deque[float]()
    dying = set(rng.choice(s.workers, round(s.deaths * s.workers), replace=False).tolist())
    ends: list[tuple[float, int, bool]] = []  # when, which worker, whether it is dead
    busy, n_asked, n_back, n_open = 0.0, 0, 0, 0

    def start(worker: int, when: float) -> None:
        took = takes * (s.slowness if rng.random() < s.slow else 1.0)
        dead = worker in dying and 2 * n_back >= n_evals
        took = took * rng.random() + s.notice if dead else took
        heapq.heappush(ends, (when + took, worker, dead))

    def send() -> None:
        nonlocal busy
        busy += s.message
        if idle:
            start(idle.pop(), busy + s.latency)
        else:
            waiting.append(busy + s.latency)

    while n_back < n_evals:
        if n_open == 0 or s.under_way:
            busy += s.step
            while n_open < size and n_asked < n_evals:
                send()
                n_asked, n_open = n_asked + 1, n_open + 1
        now, worker, dead = heapq.heappop(ends)
        busy = max(busy, now + s.latency)
        if dead:
            send()  # to another worker
            continue
        if waiting:
            start(worker, max(now, waiting.popleft()))
        else:
            idle.append(worker)
        busy += s.message
        n_back, n_open = n_back + 1, n_open - 1
    return busy


def rate(setting: Setting, rounds: int = 10) -> float:
    """Return evaluations per second over so many rounds of all workers."""
    n = rounds * (setting.under_way or setting.workers)
    return n / simulate(setting, n)


# ---- real runs -----------------------------------------------------------------------------------


class Asleep:
    """A simulator that waits: cores are few here, and real ones are elsewhere."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, x: np.ndarray) -> float:
        """Read all of x, and wait."""
        time.sleep(self.seconds)
        return float(x @ x)


def timed(
    client: Any, seconds: float, n_coords: int, size: int, steps: int, asynchronous: bool = False
) -> tuple[float, float]:
    """Return seconds and bytes per step (of ``size`` evaluations), the first third left out."""
    from threading import Event, Thread

    import psutil

    import scgd

    ended, sent = Event(), []

    def listen() -> None:
        while not ended.wait(0.02):
            sent.append((time.perf_counter(), psutil.net_io_counters().bytes_sent))

    listener = Thread(target=listen)
    listener.start()
    begun = time.perf_counter()
    n_evals = size * steps
    try:
        done = scgd.minimize(
            Asleep(seconds), np.zeros(n_coords), scale=1.0, seed=0, max_evals=4 + n_evals,
            method=scgd.SCGD(block_size=1 if asynchronous else size // 2),
            workers=scgd.Workers(client, asynchronous=size) if asynchronous else client,
        )  # fmt: skip
    finally:
        ended.set()
        listener.join()
    marks = np.sort(done.evaluations.seconds)[4 + size - 1 :: size]
    marks = marks[len(marks) // 3 :]
    when, n_bytes = np.array(sent).T
    here = np.interp(begun + marks[[0, -1]], when, n_bytes)
    return float(np.median(np.diff(marks))), float(np.diff(here)[0]) / (len(marks) - 1)


def measure() -> None:
    """Run, and store rows and constants."""
    import dask
    from distributed import Client, LocalCluster

    # One task at a worker, the others wait at the scheduler: else two may meet at one worker while
    # another is idle.
    dask.config.set({"distributed.scheduler.worker-saturation": 1.0})
    rows: list[dict[str, Any]] = []

    def note(kind: str, workers: int, value: float, sent: float = 0.0) -> None:
        rows.append(
            {"kind": kind, "workers": workers, "value": f"{value:.4g}", "bytes": f"{sent:.4g}"}
        )
        print(*rows[-1].values(), flush=True)

    x, reads = np.ones(P), []
    for _ in range(9):
        begun = time.perf_counter()
        Asleep(0.0)(x)
        reads.append(time.perf_counter() - begun)
    note("read", 1, min(reads) / P)
    for n in (2, 4, 8):
        with (
            LocalCluster(
                n_workers=n, threads_per_worker=1, dashboard_address=None, silence_logs=60
            ) as cluster,
            Client(cluster) as client,
        ):
            if n == 2:  # constants, at a p that costs nothing: step + 2 size message + 2 latency
                timed(client, 0.0, 1000, 2, 10)
                few = min(timed(client, 0.0, 1000, 2, 40)[0] for _ in range(3))
                many = min(timed(client, 0.0, 1000, 64, 20)[0] for _ in range(3))
                message = (many - few) / (2 * 62)
                note("message", 1, message)
                note("latency", 1, max(0.0, (few - 4 * message) / 2))
            for name, asynchronous in (("steps", False), ("asynchronous", True)):
                took, sent = timed(client, 1.0, P, n, 15, asynchronous)
                note(name, n, n / took, sent)
    with ROWS.open("w") as file:
        out = csv.DictWriter(file, ("kind", "workers", "value", "bytes"), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)


# ---- the page ------------------------------------------------------------------------------------


def stored() -> tuple[Setting, list[dict[str, str]]]:
    """Return the constants and the rows of real runs."""
    with ROWS.open() as file:
        rows = list(csv.DictReader(file))
    known = {row["kind"]: float(row["value"]) for row in rows}
    machine = Setting(
        1, 1.0, message=known["message"], latency=known["latency"], read=known["read"]
    )
    return machine, [row for row in rows if row["kind"] in ("steps", "asynchronous")]


WORKERS = (10, 100, 1000, 10_000)


def page() -> str:
    """Return docs/scaling-results.md."""
    machine, runs = stored()
    lines = [
        "# Many workers: measured and predicted",
        "",
        "This page is generated by `python benchmarks/scaling.py` from `benchmarks/scaling.csv`.",
        "",
        "![Evaluations per second against workers: measured runs lie on the predicted line]"
        "(images/scaling.svg)",
        "",
        "## Real runs",
        "",
        "SCGD on 10,000,000 coordinates, local Dask workers, evaluations of one second (asleep, because",
        "all workers share two cores). The prediction is a simulation, event by event, from three",
        f"constants measured beside it: {1e3 * machine.message:.2g} ms per message at the driver, "
        f"{1e3 * machine.latency:.2g} ms under way, {1e9 * machine.read:.2g} ns",
        "to read a coordinate.",
        "",
        "| mode | workers | evaluations per second | predicted | kB per evaluation, all traffic |",
        "|---|---|---|---|---|",
    ]
    for row in runs:
        n = int(row["workers"])
        flying = n if row["kind"] == "asynchronous" else None
        told = rate(replace(machine, workers=n, under_way=flying))
        sent = float(row["bytes"]) / n / 1e3
        mode = "step by step" if flying is None else "asynchronous"
        lines.append(f"| {mode} | {n} | {float(row['value']):.2f} | {told:.2f} | {sent:.0f} |")
    lines += [
        "",
        "A point of this size has 80,000 kB. Workers keep copies of it, and a task carries the seed of its",
        "sample and the entries that changed lately. The whole point travels once to each worker, and",
        "again to a worker that is new; the predictions leave this start out.",
        "",
        "## Predictions",
        "",
        "Evaluations per second at p = 10,000,000, step by step (a step has one evaluation per worker)",
        "and asynchronous (one under way per worker), where one evaluation in 20 takes three times as long.",
        "",
        "| workers | 1 s, steps | 1 s, asynchronous | 60 s, steps | 60 s, asynchronous |",
        "|---|---|---|---|---|",
    ]
    for n in WORKERS:
        cells = []
        for seconds in (1.0, 60.0):
            one = replace(machine, workers=n, seconds=seconds, slow=0.05, slowness=3.0)
            cells += [rate(one), rate(replace(one, under_way=n))]
        lines.append(f"| {n:,} | " + " | ".join(f"{cell:,.3g}" for cell in cells) + " |")
    lines += [
        "",
        f"The driver handles {0.5 / machine.message:,.0f} evaluations per second at most. Beyond as many",
        "workers as it handles during one evaluation, more of them bring nothing.",
        "",
        "How the dimension counts, 1,000 workers, asynchronous, evaluations of 10 s:",
        "",
        "| p | evaluations per second | x on a worker |",
        "|---|---|---|",
    ]
    for power in (6, 7, 8, 9):
        one = replace(machine, workers=1000, seconds=10.0, under_way=1000, n_coords=10**power)
        lines.append(
            f"| 10^{power} | {rate(one):,.3g} | {2 * 8 * 10**power / 1e9:.2g} GB, twice x |"
        )
    lines += [
        "",
        "A tenth of the workers dies for good in the middle of a run of 20 rounds (evaluations of 10 s,",
        "a loss is noticed after a second):",
        "",
        "| workers | time, steps | time, asynchronous |",
        "|---|---|---|",
    ]
    for n in WORKERS[:3]:
        ratios = []
        for flying in (None, n):
            calm = replace(machine, workers=n, seconds=10.0, under_way=flying)
            ratios.append(simulate(replace(calm, deaths=0.1), 20 * n) / simulate(calm, 20 * n))
        lines.append(f"| {n:,} | " + " | ".join(f"{ratio:.2f} times" for ratio in ratios) + " |")
    lines += [
        "",
        "Step by step, a step of as many evaluations as there were workers then takes two rounds.",
        "",
        "## See also",
        "",
        "[Several machines](scaling.md).",
        "",
    ]
    return "\n".join(lines)


GREY, INK = "#94a3b8", "#7a8594"
LEFT, RIGHT, TOP, BOTTOM = 130, 860, 90, 500


def picture() -> str:
    """Return docs/images/scaling.svg."""
    machine, runs = stored()
    most, high = 10_000, 10_000.0

    def place(workers: float, value: float) -> tuple[float, float]:
        across = math.log10(workers) / math.log10(most)
        down = 1 - math.log10(value) / math.log10(high)
        return LEFT + across * (RIGHT - LEFT), TOP + down * (BOTTOM - TOP)

    def words(
        x: float, y: float, text: str, fill: str = INK, size: int = 26, more: str = ""
    ) -> str:
        return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="{fill}"{more}>{text}</text>'

    middle, end = ' text-anchor="middle"', ' text-anchor="end"'
    title = f"10 million coordinates: up to {0.5 / machine.message:,.0f} evaluations a second"
    parts = [words(20, 42, title, INK, 32, ' font-weight="600"')]
    parts.append(words(20, TOP - 20, "evaluations per second"))
    for power in range(5):
        y = place(1, 10.0**power)[1]
        parts.append(f'<path d="M{LEFT} {y:.0f}H{RIGHT}" stroke="{INK}" stroke-opacity="0.3"/>')
        parts.append(words(LEFT - 12, y + 9, f"{10**power:,}", more=end))
        parts.append(words(place(10.0**power, 1)[0], BOTTOM + 38, f"{10**power:,}", more=middle))
    parts.append(words((LEFT + RIGHT) / 2, BOTTOM + 80, "workers", more=middle))
    places = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 10_000]
    for seconds, fill in ((1.0, OURS), (60.0, GREY)):
        line = [
            place(n, rate(replace(machine, workers=n, seconds=seconds, under_way=n)))
            for n in places
            if n / seconds > 1
        ]
        path = "L".join(f"{x:.0f} {y:.0f}" for x, y in line)
        parts.append(f'<path d="M{path}" fill="none" stroke="{fill}" stroke-width="5"/>')
        x, y = line[-1]
        parts.append(words(x + 14, y + 9, f"{seconds:.0f} s each, predicted", fill))
    for row in runs:
        x, y = place(int(row["workers"]), float(row["value"]))
        inside = OURS if row["kind"] == "asynchronous" else "none"
        parts.append(
            f'<circle cx="{x:.0f}" cy="{y:.0f}" r="9" fill="{inside}" stroke="{OURS}" stroke-width="3"/>'
        )
    x, y = place(1, 8)
    parts.append(words(x + 10, y - 85, "measured, 1 s each", OURS))
    body = "\n".join(parts)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1200 600" role="img" '
        f'aria-label="{title}" font-family="system-ui, sans-serif">\n{body}\n</svg>\n'
    )


def written() -> Iterator[tuple[Path, str]]:
    """Yield what is generated: paths and texts."""
    yield DOCS / "scaling-results.md", page()
    yield DOCS / "images" / "scaling.svg", picture()


if __name__ == "__main__":
    if sys.argv[1:] == ["measure"]:
        measure()
    for path, text in written():
        path.write_text(text)
