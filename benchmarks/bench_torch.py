"""Time and weigh the torch optimizers: ``python benchmarks/bench_torch.py [--quick]``.

Minima over round-robin repeats of single calls, all variants of a table in one process on one
thread, so that the ratios mean something. Peak memory is measured in a process each. The rivals:
torch's fused SGD, ``torch.multinomial`` alone, two bare forward passes, MeZO as published, and a
full all-reduce.
"""

import argparse
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from scgd.torch import SCGD, ZeroOrderSCGD
from scgd_paper.forward_loss import ForwardLoss

Table = dict[str, Callable[[], object]]


def time_in_turn(table: Table, n_repeats: int, in_a_row: int = 1) -> dict[str, float]:
    """Return the smallest time per call of each variant in microseconds."""
    best = dict.fromkeys(table, float("inf"))
    for run in table.values():
        run()
    for _ in range(n_repeats // in_a_row):
        for name, run in itertools.chain(*([row] * in_a_row for row in table.items())):
            start = time.perf_counter()
            run()
            best[name] = min(best[name], (time.perf_counter() - start) * 1e6)
    return best


def show(title: str, best: dict[str, float], base: str) -> None:
    """Print a table with ratios to one of its rows."""
    print(title)
    for name, micros in best.items():
        print(f"  {name:<28} {micros:12.1f} us {micros / best[base]:8.2f} x {base}")


def perceptron(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for n_in, n_out in itertools.pairwise(widths):
        layers += [nn.Linear(n_in, n_out), nn.Sigmoid()]
    return nn.Sequential(*layers[:-1])


def first_order_step(p_name: str, shapes: list[tuple[int, ...]], repeats: int) -> None:
    """Compare optimizer steps with m = p / 10."""
    params = [nn.Parameter(torch.randn(s) * 0.02) for s in shapes]
    for p in params:
        p.grad = torch.randn_like(p) * 1e-3
    small = sum(p.numel() for p in params) < 100_000
    table: Table = {
        "torch fused SGD": torch.optim.SGD(params, 1e-3, fused=True).step,
        "Poisson, l1": SCGD(params, 1e-3).step,
        "Poisson, uniform": SCGD(params, 1e-3, policy="uniform").step,
    }
    show(f"first-order step, {p_name}", time_in_turn(table, repeats), "torch fused SGD")
    if not small:
        return
    weights = torch.rand(sum(p.numel() for p in params))
    n_draws = len(weights) // 10
    table = {
        "torch.multinomial alone": lambda: torch.multinomial(weights, n_draws),
        "distinct, l1, whole step": SCGD(params, 1e-3, sampling="distinct").step,
        "replacement, whole step": SCGD(params, 1e-3, sampling="replacement").step,
        "published, whole step": SCGD.published(params, 1e-3).step,
        "Poisson, Adam, whole step": SCGD(params, 1e-3, rule="adam").step,
    }
    best = time_in_turn(table, repeats)
    show(f"other samplings, {p_name}", best, "torch.multinomial alone")


def training_iteration(repeats: int) -> None:
    """Compare forward, backward and step of a perceptron."""
    x, y = torch.randn(32, 784), torch.randint(0, 10, (32,))
    table: Table = {}
    for name, make in (
        ("SGD", lambda ps: torch.optim.SGD(ps, 1e-3, fused=True)),
        ("SCGD, Poisson, l1", lambda ps: SCGD(ps, 1e-3)),
    ):
        model = perceptron(784, 64, 64, 10)
        optimizer = make(list(model.parameters()))

        def iterate(model: nn.Module = model, optimizer: torch.optim.Optimizer = optimizer) -> None:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()

        table[name] = iterate
    show("training iteration, 784-64-64-10, batch 32", time_in_turn(table, repeats), "SGD")


def zeroth_order_step(repeats: int) -> None:
    """Compare zeroth-order steps with two bare forward passes."""
    x, y = torch.randn(32, 784), torch.randint(0, 10, (32,))
    for widths in ((784, 32, 32, 64), (784, 64, 64, 10)):
        model = perceptron(*widths)  # the same for all, so that all find it in the caches
        generic = ZeroOrderSCGD(model.parameters(), 1e-3, radius=1e-2, seed=0, estimator="forward")
        fast = ZeroOrderSCGD(model.parameters(), 1e-3, radius=1e-2, seed=0, estimator="forward")
        many = [
            ZeroOrderSCGD(
                model.parameters(), 1e-3, radius=1e-2, block_size=16, seed=0, estimator="forward"
            )
            for _ in range(2)
        ]

        def forward(model: nn.Module = model) -> torch.Tensor:
            return F.cross_entropy(model(x), y)

        def two_forwards(forward: Callable[[], torch.Tensor] = forward) -> None:
            with torch.no_grad():
                forward().item()
                forward().item()

        table: Table = {
            "two bare forwards": two_forwards,
            "generic": lambda s=generic.step, f=forward: s(f),
            "ForwardLoss": lambda s=fast.step, m=model: s(ForwardLoss(m, F.cross_entropy, x, y)),
            "generic, 16 coordinates": lambda s=many[0].step, f=forward: s(f),
            "ForwardLoss, 16 coordinates": lambda s=many[1].step, m=model: s(
                ForwardLoss(m, F.cross_entropy, x, y)
            ),
        }
        for in_a_row in (1, 10):
            best = time_in_turn(table, repeats, in_a_row)
            title = f"zeroth-order step, {widths}, batch 32, {in_a_row} calls in a row"
            show(title, best, "two bare forwards")
            for suffix in ("", ", 16 coordinates"):
                ratio = best[f"generic{suffix}"] / best[f"ForwardLoss{suffix}"]
                print(f"  generic / ForwardLoss{suffix}: {ratio:.2f}")


MEMORY = """
import resource, sys
import torch
from torch import nn
from torch.nn import functional as F
import scgd
from scgd.torch import ZeroOrderSCGD
torch.set_num_threads(1)
way, quick = sys.argv[1], sys.argv[2] == "True"
width = 1000 if quick else 4400
model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                      nn.Linear(width, 10))
model.requires_grad_(way != "inference")
x, y = torch.randn(512, width), torch.randint(0, 10, (512,))
tiny = nn.Linear(2, 1)
for estimator in ("forward", "mezo"):  # compile and load everything first
    ZeroOrderSCGD(tiny.parameters(), 1e-3, radius=1e-2, estimator=estimator,
                  granularity="chunks").step(lambda: tiny(torch.ones(1, 2)).sum())
nn.Linear(2, 2)(torch.ones(1, 2)).sum().backward()
def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
loss = lambda: F.cross_entropy(model(x), y)
before = rss()
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
if way == "inference":
    with torch.no_grad():
        for _ in range(3): loss()
elif way in ("SGD", "Adam"):
    optimizer = getattr(torch.optim, way)(model.parameters(), 1e-3)
    for _ in range(3):
        optimizer.zero_grad(); loss().backward(); optimizer.step()
elif way == "MeZO as published":
    with torch.no_grad():
        for _ in range(3):
            for sign in (1, -2, 1):
                torch.manual_seed(0)
                for p in model.parameters():
                    p.data = p.data + sign * torch.normal(0, 1, p.shape) * 1e-3
                loss()
else:
    forward = {"estimator": "forward"}
    settings = {
        "coordinates": forward,
        "rows": {**forward, "granularity": "rows"},
        "mezo": {"estimator": "mezo"},
    }
    optimizer = ZeroOrderSCGD(model.parameters(), 1e-3, radius=1e-2, **settings[way])
    for _ in range(3):
        optimizer.step(loss)
with open("/proc/self/status") as file:
    peak = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
print((peak - before) / 2**20)
"""


def memory(quick: bool) -> None:
    """Compare peak memory above the loaded model, a process each."""
    ways = ["inference", "coordinates", "rows", "mezo", "MeZO as published", "SGD", "Adam"]
    print(f"peak memory above the model, {2 if quick else 39} M parameters, batch 512")
    base = 0.0
    for way in ways:
        command = [sys.executable, "-c", MEMORY, way, str(quick)]
        runs = [
            subprocess.run(command, capture_output=True, text=True, check=True)
            for _ in range(1 if quick else 5)
        ]
        peaks = sorted(float(run.stdout) for run in runs)
        middle = peaks[len(peaks) // 2]
        base = middle if way == "inference" else base
        spread = f"({peaks[0]:.1f} to {peaks[-1]:.1f})"
        print(f"  {way:<28} {middle:9.1f} MB {spread:>18} {middle / base:8.2f} x inference")


PARALLEL = """
import sys, time
import torch
import torch.distributed as dist
from torch import nn
from scgd.torch import SCGD
rank, folder, n_coords = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
torch.manual_seed(0)
p, q = (nn.Parameter(torch.randn(n_coords)) for _ in range(2))
for t in (p, q):
    t.grad = torch.randn(n_coords)
plain = torch.optim.SGD([q], 1e-3, fused=True)
def full():
    dist.all_reduce(q.grad)
    q.grad /= 2
    plain.step()
runs = {"full all-reduce and SGD": full}
ours = {}
for name, settings in {"chunks, p/10": {"granularity": "chunks"},
                       "chunks, p/100": {"granularity": "chunks", "fraction": 0.01},
                       "coordinates, p/10": {}}.items():
    ours[name] = SCGD([p], 1e-3, process_group=dist.group.WORLD, check_every=0, seed=0, **settings)
    runs[name] = ours[name].step
best = dict.fromkeys(runs, 1e9)
for turn in range(6):
    for name, run in runs.items():
        dist.barrier()
        start = time.perf_counter()
        run()
        if turn:
            best[name] = min(best[name], time.perf_counter() - start)
if rank == 0:
    for name, seconds in best.items():
        sent = ours[name].team.n_bytes / 6 / (4 * n_coords) if name in ours else 1.0
        print(f"  {name:<28} {seconds * 1e3:9.1f} ms, bytes {sent:7.4f} x full")
dist.barrier()
dist.destroy_process_group()
"""


def parallel(quick: bool) -> None:
    """Compare the reduction of samples with that of everything, two processes on gloo."""
    n_coords = 1_000_000 if quick else 10_000_000
    print(f"reduction and step, 2 processes, p = {n_coords}")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", PARALLEL]
        ranks = [
            subprocess.Popen([*command, str(r), folder, str(n_coords)], stdout=subprocess.PIPE)
            for r in range(2)
        ]
        print(ranks[0].communicate()[0].decode(), end="")
        ranks[1].communicate()


def huge(quick: bool) -> None:
    """Show that sizes beyond torch.multinomial's limit of 2^24 work."""
    n_coords = 20_000_000 if quick else 50_000_000
    p = nn.Parameter(torch.zeros(n_coords))
    p.grad = torch.ones(n_coords)
    for sampling in ("poisson", "distinct"):
        optimizer = SCGD([p], 1.0, sampling=sampling, seed=0)
        with torch.no_grad():
            p.zero_()
        start = time.perf_counter()
        optimizer.step()
        seconds = time.perf_counter() - start
        print(f"p = {n_coords}, {sampling}: moved {int((p != 0).sum())} in {seconds:.2f} s")


PARTS = ("step", "iteration", "zeroth", "memory", "parallel", "huge")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repeats, small sizes")
    parser.add_argument("--only", choices=PARTS, help="one part")
    options = parser.parse_args()
    quick, parts = options.quick, [options.only] if options.only else PARTS
    torch.set_num_threads(1)
    repeats = 200 if quick else 2000
    if "step" in parts:
        net = [(64, 784), (64,), (64, 64), (64,), (10, 64), (10,)]
        first_order_step("784-64-64-10, p = 55,050", net, repeats)
        if not quick:
            layers = [shape for _ in range(10) for shape in ((1000, 1000), (1000,))]
            first_order_step("20 tensors, p = 10,010,000", layers, 40)
    if "iteration" in parts:
        training_iteration(repeats)
    if "zeroth" in parts:
        zeroth_order_step(repeats)
    if "memory" in parts:
        memory(quick)
    if "parallel" in parts:
        parallel(quick)
    if "huge" in parts:
        huge(quick)


if __name__ == "__main__":
    main()
