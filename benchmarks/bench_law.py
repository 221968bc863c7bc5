"""Time the coordinate distribution against the ways it replaces: ``python benchmarks/bench_law.py``.

Nanoseconds per coordinate step (draw, weight, gain and refresh): the minimum and the mean over
short chunks run in turn, all in one process so that the ratios of minima mean something. All gains
are positive and all coordinates visited, the worst case. The mean includes rebuilds of the softmax.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from numba import njit

import scgd
from scgd.policies.base import draw, update
from scgd.policies.distribution import make_distribution
from scgd.random import stream

MIXING = 0.3
Times = dict[str, list[float]]


@njit(cache=True)
def run_phases(dist, words, slopes, n_phases, length):  # type: ignore[no-untyped-def]
    """Run phases against a constant gradient."""
    coords = np.empty(length, dtype=np.int64)
    probs, grads = np.empty(length), np.empty(length)
    for _ in range(n_phases):
        draw(dist, words, coords, probs)
        for t in range(length):
            grads[t] = slopes[coords[t]]
        update(dist, coords, probs, grads, MIXING)


def compiled(dist, slopes, length, n_phases):  # type: ignore[no-untyped-def]
    """Return a chunk of phases driven by compiled code."""
    words = stream(np.random.SeedSequence(1))
    return lambda: run_phases(dist, words, slopes, n_phases, length)


def from_python(dist, slopes, length, n_phases):  # type: ignore[no-untyped-def]
    """Return a chunk of phases driven by Python, two compiled calls each."""
    words = stream(np.random.SeedSequence(1))
    coords, probs = np.empty(length, dtype=np.int64), np.empty(length)

    def run() -> None:
        for _ in range(n_phases):
            draw(dist, words, coords, probs)
            update(dist, coords, probs, slopes[coords], MIXING)

    return run


def numpy_choice(slopes, length, n_phases):  # type: ignore[no-untyped-def]
    """Return a chunk of phases that draw with ``np.random.choice`` and refresh with NumPy."""
    n_coords = len(slopes)
    sums, weights = np.zeros(n_coords), np.full(n_coords, 1 / n_coords)

    def run() -> None:
        nonlocal weights
        for _ in range(n_phases):
            for _ in range(length):
                k = np.random.choice(n_coords, p=weights)  # noqa: NPY002 (the yardstick)
                sums[k] += abs(slopes[k]) / weights[k]
            weights = (1 - MIXING) * sums / sums.sum() + MIXING / n_coords

    return run


def warm(dist, slopes, length):  # type: ignore[no-untyped-def]
    """Visit every coordinate, the worst case, and let the first phases pass."""
    n_coords = len(slopes)
    update(dist, np.arange(n_coords), np.full(n_coords, 1 / n_coords), slopes, MIXING)
    run_phases(dist, stream(np.random.SeedSequence(0)), slopes, 20, length)
    return dist


def time_in_turn(chunks: dict[str, tuple[Callable[[], None], int]], n_repeats: int) -> Times:
    """Return the nanoseconds per step of each chunk in each of its turns."""
    times: Times = {name: [] for name in chunks}
    for _ in range(n_repeats):
        for name, (run, n_steps) in chunks.items():
            start = time.perf_counter()
            run()
            times[name].append((time.perf_counter() - start) / n_steps * 1e9)
    return times


def chunks_for(n_coords: int, length: int) -> dict[str, tuple[Callable[[], None], int]]:
    """Return the chunks to time in one dimension."""
    slopes = np.random.default_rng(0).exponential(size=n_coords)
    n_phases = max(1, 20_000 // length)
    n_steps = n_phases * length
    l1 = warm(make_distribution(n_coords, length=length), slopes, length)
    chunks = {
        "uniform": (compiled(scgd.Uniform().init(n_coords), slopes, length, n_phases), n_steps),
        "l1": (compiled(l1, slopes, length, n_phases), n_steps),
        "l1 from Python": (from_python(l1, slopes, length, n_phases), n_steps),
    }
    for name, refresh, n in (
        ("softmax", "touched", n_phases),
        ("softmax O(p)", "all", max(2, 1_000_000 // n_coords // length)),
    ):
        dist = make_distribution(n_coords, normalization="softmax", length=length, refresh=refresh)
        dist = warm(dist, slopes, length)
        chunks[name] = (compiled(dist, slopes, length, n), n * length)
    if n_coords <= 10_000:
        chunks["choice"] = (numpy_choice(slopes, length, 5), 5 * length)
    return chunks


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small dimensions, few repeats")
    quick = parser.parse_args().quick
    sizes = [(250, 15), (10_000, 100)]
    if not quick:
        sizes += [(1_000_000, 1000), (10_000_000, 3162)]
    first_l1 = np.nan
    for n_coords, length in sizes:
        times = time_in_turn(chunks_for(n_coords, length), 5 if quick else 20)
        best = {name: min(turns) for name, turns in times.items()}
        first_l1 = best["l1"] if n_coords == 250 else first_l1
        print(f"p={n_coords} T={length}")
        for name, ns in best.items():
            mean = np.mean(times[name])
            print(
                f"  {name:<16} {ns:12.1f} ns/step, mean {mean:12.1f}  {ns / best['l1']:9.2f} x l1"
            )
        print(f"  l1 / (l1 at 250)              {best['l1'] / first_l1:10.2f}")
        print(f"  softmax O(p) / softmax        {best['softmax O(p)'] / best['softmax']:10.1f}")


if __name__ == "__main__":
    main()
