"""Kill real processes at random points: run as ``python killing.py CASE SIZE FOLDER N_KILLS SEED``.

The case runs in forked children. Each is killed with SIGKILL at a random moment; the last one is left
alone. A case writes its result into the folder and, for every evaluation or step, one byte into
``calls``, which survives the kill.
"""

import contextlib
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from functools import partial
from pathlib import Path

import numpy as np

LONGEST = 0.02  # seconds that a child lives on


def count_call(folder):
    descriptor = os.open(folder / "calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, b".")
    os.close(descriptor)


def n_calls(folder):
    return (folder / "calls").stat().st_size if (folder / "calls").exists() else 0


def minimize_case(folder, size):
    """A noisy quadratic, block by block, with a checkpoint at every tick of the run's clock."""
    import scgd

    def fun(x, xi):
        count_call(folder)
        time.sleep(4e-3)  # a tick is some 25 calls
        return float(np.sum((x - xi) ** 2))

    result = scgd.minimize(
        fun,
        np.zeros(12),
        sample=lambda rng: 1.0 + 0.1 * rng.standard_normal(12),
        max_evals=size,
        seed=2,
        checkpoint=scgd.Checkpoint(folder / "run.npz", every=0.0),
        method=scgd.SCGD(block_size=4),
    )
    np.savez(folder / "result.npz", x=result.x, weights=result.weights, nfev=result.nfev)


def torch_case(folder, size, forward_only):
    """A small network, trained with the optimizer's state saved after every step."""
    import torch

    from scgd.torch import SCGD, ZeroOrderSCGD

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    data = torch.randn(64, 8)
    target = data.sum(1, keepdim=True)
    optimizer = (ZeroOrderSCGD if forward_only else SCGD)(model.parameters(), lr=0.05, seed=3)
    path, first = folder / "run.pt", 0
    if path.exists():
        saved = torch.load(path, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["step"]

    def loss_of():
        return (model(data) - target).square().mean()

    for step in range(first, size):
        count_call(folder)
        if forward_only:
            optimizer.step(loss_of)
        else:
            optimizer.zero_grad()
            loss_of().backward()
            optimizer.step()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save({**state, "step": step + 1}, folder / "run.tmp")
        os.replace(folder / "run.tmp", path)
    weights = torch.cat([p.detach().ravel() for p in model.parameters()]).numpy()
    np.savez(folder / "result.npz", weights=weights)


def run_case(folder, size):
    """A panel of the paper's experiments; the table is its own checkpoint."""
    from scgd_paper import runner
    from scgd_paper.commands import main

    def counted(job):
        count_call(folder)
        return execute(job)

    execute, runner.execute = runner.execute, counted
    command = ["run", "theory", "--panel", "rescaled", "--quick", "--no-progress", "--workers", "1"]
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            code = main([*command, "--runs", str(size), "--out", str(folder / "out")])
    finally:
        runner.execute = execute
    if code:
        raise RuntimeError(f"the run ended with exit code {code}")
    rows = [line.split(",") for line in (folder / "out/theory.csv").read_text().splitlines()]
    np.savez(folder / "result.npz", rows=np.array([row[:7] + row[8:] for row in rows]))


CASES = {
    "minimize": minimize_case,
    "torch-first-order": partial(torch_case, forward_only=False),
    "torch-zeroth-order": partial(torch_case, forward_only=True),
    "run": run_case,
}
WARM = {"run": 1, "torch-first-order": 3, "torch-zeroth-order": 3}
LIVES = {"minimize": 100, "torch-first-order": 60, "torch-zeroth-order": 60, "run": 3}
"""Calls that a child may make before it is killed."""


def run_child(case, folder, size):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            CASES[case](folder, size)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def let_live(child, folder, calls):
    """Kill the child a random moment after so many calls, unless it ends before."""
    while n_calls(folder) < calls:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(1e-3)
    time.sleep(random.uniform(0.0, LONGEST))
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def main(case, size, folder, n_kills, seed):
    random.seed(seed)
    folder, killed, progressed = Path(folder), 0, 0
    with tempfile.TemporaryDirectory() as other:
        CASES[case](
            Path(other), WARM.get(case, 80)
        )  # compiled here, so that children start in no time
    while not (folder / "result.npz").exists():
        before = n_calls(folder)
        child = run_child(case, folder, size)
        if killed < n_kills:
            status = let_live(child, folder, before + random.randrange(LIVES[case]))
        else:
            _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            killed += 1
            progressed += n_calls(folder) > before
        elif status:
            sys.exit(1)
    print(killed, progressed)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
