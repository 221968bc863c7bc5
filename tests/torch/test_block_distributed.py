"""Blocks under DDP on gloo: equal ranks, the same draws, only the active block reduced."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("torch was built without distributed", allow_module_level=True)

WORKER = Path(__file__).with_name("block_worker.py")
pytestmark = pytest.mark.slow  # a thousand steps on two processes


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What one process with all the data and two processes with halves of it arrive at."""
    folder = tmp_path_factory.mktemp("blocks")
    for world in (1, 2):
        commands = [
            [sys.executable, str(WORKER), str(r), str(world), str(folder)] for r in range(world)
        ]
        workers = [
            subprocess.Popen(c, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for c in commands
        ]
        outputs = [worker.communicate(timeout=500)[0] for worker in workers]
        assert not any(worker.returncode for worker in workers), "\n".join(outputs)
    return {name: np.load(folder / f"blocks-{name}.npz") for name in ("1-0", "2-0", "2-1")}


def test_two_ranks_stay_equal(results):
    first, second = results["2-0"], results["2-1"]
    assert {"measured", "musketeer", "loss", "probe"} <= set(first.files)
    for name in first.files:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)


@pytest.mark.parametrize("name", ["attached", "always", "accumulated"])
def test_two_halves_train_as_the_whole(results, name):
    np.testing.assert_allclose(results["2-0"][name], results["1-0"][name], atol=2e-5)


def test_frozen_blocks_are_not_reduced(results):
    sizes = {"embeddings": 88, "head": 27, **{f"layers.{i}": 72 for i in range(4)}}
    for block, size in sizes.items():
        assert results["2-0"][f"reduced {block}"] == size


def test_random_paths_of_each_process_keep_the_blocks_alive(results):
    assert results["2-0"]["dropped alive"].tolist() == [1.0] * 8 + [0.0]  # the pooler comes last
