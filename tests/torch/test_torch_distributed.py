"""Data parallel training on gloo: equal ranks, few bytes, clear errors."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.distributed.fsdp")
if not torch.distributed.is_available():
    pytest.skip("torch was built without distributed", allow_module_level=True)

WORKER = Path(__file__).with_name("parallel_worker.py")
VARIANTS = ["poisson", "distinct adam", "softmax", "rows", "rare"]


def launch(scenarios, world, folder):
    """Run scenarios one after the other in each of some processes."""
    processes = [
        subprocess.Popen(
            [sys.executable, str(WORKER), scenarios, str(rank), str(world), str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(world)
    ]
    outputs = [process.communicate(timeout=300)[0] for process in processes]
    assert not any(process.returncode for process in processes), "\n".join(outputs)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results of one process with all the data, of two and of four processes."""
    folder = tmp_path_factory.mktemp("parallel")
    has_shards = hasattr(torch.distributed.fsdp, "fully_shard")
    launch("alone", 1, folder)
    sharded = ",shards,sharded_checkpoint" if has_shards else ""
    launch(f"agree,differs,frozen,unseeded{sharded},dies", 2, folder)
    launch("agree", 4, folder)
    return folder


@pytest.mark.parametrize("world", [2, 4])
def test_ranks_stay_equal_and_follow_one_process(folder, world):
    reference = np.load(folder / "alone.npz")
    ranks = [np.load(folder / f"agree-{world}-{rank}.npz") for rank in range(world)]
    for name in ranks[0].files:
        for rank in ranks[1:]:
            np.testing.assert_array_equal(ranks[0][name], rank[name], err_msg=name)
    for name in (*VARIANTS, "hook", "zeroth", "resumed"):
        np.testing.assert_allclose(ranks[0][name], reference[name], atol=1e-9, err_msg=name)


def test_a_seed_is_agreed_on_under_plain_ddp(folder):
    one, two = (np.load(folder / f"unseeded-{rank}.npz") for rank in range(2))
    for name in one.files:
        np.testing.assert_array_equal(one[name], two[name], err_msg=name)
    assert one["fused seed"] != one["adam seed"]


def test_bytes_on_the_wire_are_those_of_the_sample(folder):
    results = np.load(folder / "agree-2-0.npz")
    n_coords, n_steps, n_checks = 161, 40, 9
    guard = 16 * n_checks
    exact = 8 * n_steps * (n_coords // 10)
    assert results["distinct adam bytes"] == exact + guard
    assert abs(results["poisson bytes"] - guard - exact) < 0.15 * exact
    assert results["zeroth bytes"] == 8 * n_steps * 3


def test_a_dead_rank_is_an_error_on_the_others(folder):
    assert "another process has died" in (folder / "dies-0.txt").read_text()


def test_ranks_that_differ_are_told(folder):
    for rank in range(2):
        assert "parameters differ after step 1" in (folder / f"differs-{rank}.txt").read_text()


def test_sharded_parameters_train(folder):
    if not hasattr(torch.distributed.fsdp, "fully_shard"):
        pytest.skip("this torch has no fully_shard")
    losses = [np.load(folder / f"shards-{rank}.npz")["losses"] for rank in range(2)]
    assert np.mean([run[-1] for run in losses]) < 0.8 * np.mean([run[0] for run in losses])


def test_a_process_group_needs_torch_distributed():
    from scgd.torch import SCGD

    with pytest.raises(ValueError, match="init_process_group first"):
        SCGD([torch.nn.Parameter(torch.ones(3))], 0.1, process_group=object())
