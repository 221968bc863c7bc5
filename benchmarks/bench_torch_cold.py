"""Seconds of the first step in a fresh process with an empty compile cache, beyond torch's own.

``python benchmarks/bench_torch_cold.py`` starts a process per row and repeat and prints the least
CPU seconds of each: import, optimizer and step, and the same again with a full cache. Making any
torch optimizer imports parts of torch that ``import torch`` leaves out; the first row is what that
costs ``torch.optim.SGD``, and it is subtracted from the others.
"""

import os
import subprocess
import sys
import tempfile

CODE = """
import sys, time
import torch
p = torch.nn.Parameter(torch.randn(300, 200))
p.grad = torch.randn(300, 200)
t = time.process_time()
{imports}
o = {make}
o.step({closure})
print(time.process_time() - t)
"""
ROWS = {
    "torch.optim.SGD": ("torch.optim.SGD([p], 0.1)", ""),
    "SCGD": ("st.SCGD([p], 0.1)", ""),
    "SCGD, adam": ("st.SCGD([p], 0.1, rule='adam')", ""),
    "SCGD, exactly m": ("st.SCGD([p], 0.1, sampling='distinct')", ""),
    "SCGD, adam on chunks": ("st.SCGD([p], 0.1, rule='adam', granularity='chunks')", ""),
    "BlockOptimizer": ("st.BlockOptimizer(torch.nn.ParameterList([p]), lr=0.1)", ""),
    "BlockOptimizer, in backward": (
        "st.BlockOptimizer(torch.nn.ParameterList([p]), in_backward=True, lr=0.1)",
        "",
    ),
    "ZeroOrderSCGD": ("st.ZeroOrderSCGD([p])", "lambda: p.square().sum()"),
    "ZeroOrderSCGD, mezo": ("st.ZeroOrderSCGD([p], estimator='mezo')", "lambda: p.square().sum()"),
    "ZeroOrderSCGD, forward": (
        "st.ZeroOrderSCGD([p], estimator='forward')",
        "lambda: p.square().sum()",
    ),
}


def once(make: str, closure: str, cache: str) -> float:
    """Return CPU seconds for importing, making an optimizer and a step."""
    imports = "import scgd.torch as st" if make.startswith("st.") else ""
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(make=make, closure=closure, imports=imports)],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def main(n_repeats: int = 3) -> None:
    """Print a table."""
    base = 0.0
    for name, row in ROWS.items():
        cold, warm = [], []
        for _ in range(n_repeats):
            with tempfile.TemporaryDirectory() as cache:
                cold.append(once(*row, cache) - base)
                warm.append(once(*row, cache) - base)
        print(f"{name}: {min(cold):.2f} s, with a full cache {min(warm):.2f} s", flush=True)
        base = base or min(warm)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
