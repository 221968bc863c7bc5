"""What a run takes: memory that does not grow, files that stay small, spaces of a size one can hold."""

import subprocess
import sys

import numpy as np
import pytest

import scgd

GROWTH = """
import sys, tracemalloc
import numpy as np, scgd

def fun(x):
    fun.n += 1
    if fun.n == 101_000:
        tracemalloc.start()
    elif fun.n in (121_000, 151_000):
        seen.append(tracemalloc.get_traced_memory()[0])
    return float(x[0] * x[0] + x[1])

fun.n, seen = 0, []
scgd.minimize(fun, np.ones(20), method=sys.argv[1], max_evals=1000, seed=0, scale=1.0)  # compile and import
fun.n = 0
scgd.minimize(fun, np.ones(20), method=sys.argv[1], max_evals=151_100, seed=0, scale=1.0)
print((seen[1] - seen[0]) / 30_000)
"""


@pytest.mark.parametrize("method", ["spsa", "dds"])
def test_without_checkpoint_or_bar_memory_does_not_grow(method):
    done = subprocess.run([sys.executable, "-c", GROWTH, method], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 20  # bytes per evaluation


@pytest.mark.parametrize(
    ("n_coords", "method"), [(20, "musketeer"), (100, "musketeer"), (20, "auto")]
)
def test_five_hundred_open_trials_make_a_small_file(n_coords, method, tmp_path):
    opt = scgd.Optimizer(np.ones(n_coords), method, max_evals=5000, seed=0)
    trials = opt.ask(500)
    path = tmp_path / "run.npz"
    opt.save(path)
    points = 8 * n_coords * 500  # which the table of trials is made of
    assert path.stat().st_size < 4 * points + 200_000
    if n_coords == 20:
        assert path.stat().st_size <= 500_000
    again = scgd.Optimizer.load(path)
    assert all(np.array_equal(a.x, b.x) for a, b in zip(again.out(), trials, strict=True))


def test_a_size_that_no_machine_holds_is_refused(tmp_path):
    huge = scgd.Float(0, 1, size=100_000_000_000)
    with pytest.raises(ValueError, match=r"at most 1,000,000 coordinates.* lower size"):
        scgd.Space(w=huge)
    many = {f"w{i}": scgd.Float(0, 1, size=1_000_000) for i in range(3)}
    with pytest.raises(ValueError, match="got 3,000,000 in all"):
        scgd.Space(many)
