"""What processes that train together agree on, in one process: the others are made by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("torch was built without distributed", allow_module_level=True)

from torch import distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

from scgd.torch import SCGD, distributed, reduce_sampled  # noqa: E402
from scgd.torch.distributed import Ranks, checksum, narrow, shared_word  # noqa: E402


@pytest.fixture
def group(tmp_path):
    """A group of this process alone."""
    store = dist.FileStore(str(tmp_path / "store"), 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


def trained(n_steps=5, factor=1.0, block_size=10, **settings):
    p = nn.Parameter(torch.linspace(-1.0, 1.0, 50, dtype=torch.float64))
    optimizer = SCGD([p], 0.1, seed=0, block_size=block_size, sampling="distinct", **settings)
    for _ in range(n_steps):
        p.grad = factor * p.detach()
        optimizer.step()
    return p.detach(), optimizer


def twin(monkeypatch, times):
    """A second process, whose sums are ``times`` those of this one; return what is reduced."""
    sizes = []

    def all_reduce(tensor, op=dist.ReduceOp.SUM, group=None, async_op=False):
        sizes.append(len(tensor))
        tensor.mul_(1 + times if op == dist.ReduceOp.SUM else 1)
        done = torch.futures.Future()
        done.set_result([tensor])
        return SimpleNamespace(get_future=lambda: done)

    monkeypatch.setattr(dist, "all_reduce", all_reduce)
    monkeypatch.setattr(dist, "get_world_size", lambda group=None: 2)
    return sizes


def test_a_single_process_learns_as_without_a_group(group):
    assert torch.equal(trained()[0], trained(process_group=group, check_every=2)[0])


def test_steps_follow_the_mean_of_the_processes(group, monkeypatch):
    sizes = twin(monkeypatch, times=3)
    moved, optimizer = trained(process_group=group, check_every=2)
    torch.testing.assert_close(moved, trained(factor=2.0)[0])
    assert sizes == [10, 2, 10, 2, 10, 10, 2, 10]  # ten entries a step, and the checks
    assert optimizer.team.n_bytes == 8 * sum(sizes)
    sizes.clear()
    moved, _ = trained(process_group=group, check_every=0, block_size=1)
    torch.testing.assert_close(moved, trained(factor=2.0, block_size=1)[0])
    assert sizes == [1] * 5


def test_other_parameters_elsewhere_are_told(group, monkeypatch):
    def other(tensor, op, group):
        if op == dist.ReduceOp.MAX:
            tensor.copy_(torch.maximum(tensor, torch.tensor([7, -7])))

    monkeypatch.setattr(dist, "all_reduce", other)
    with pytest.raises(RuntimeError, match="parameters differ after step 1;"):
        trained(process_group=group)


def test_a_reduction_that_fails_names_the_step(group, monkeypatch):
    def fails(tensor, op, group):
        raise RuntimeError("connection closed by peer")

    monkeypatch.setattr(dist, "all_reduce", fails)
    with pytest.raises(RuntimeError, match="the reduction of step 1 failed"):
        trained(process_group=group)


def test_a_checksum_sees_every_entry():
    def of(*values):
        return checksum(SimpleNamespace(param_groups=[{"params": list(values)}]))

    a, b = torch.ones(3), torch.zeros(2, 2, dtype=torch.complex64)
    assert of(a, b) == of(a.clone(), b.clone()) == of(a, torch.empty(0, 3), b)
    assert len({of(a, b), of(2 * a, b), of(a, b + 1e-9j), of(b, a), of(a), of(b)}) == 6


def test_seeds_are_those_of_the_first_process_to_ask(group, monkeypatch):
    largest = (1 << 63) - 1
    p = nn.Parameter(torch.ones(2))
    given = SCGD([p], 0.1, seed=largest, process_group=group)
    assert given.param_groups[0]["seed"] == largest
    longer = SCGD([p], 0.1, seed=largest + 6, process_group=group)  # what is sent has 63 bits
    assert longer.param_groups[0]["seed"] == 5
    monkeypatch.setattr(distributed, "N_AGREED", [10])
    mine = [shared_word(largest), shared_word(6)]
    monkeypatch.setattr(distributed, "N_AGREED", [10])  # now as another process, with other words
    assert [shared_word(1), shared_word(2)] == mine == [str(largest), "6"]
    for _ in range(2):  # plain DDP: no group, no seed
        monkeypatch.setattr(distributed, "N_AGREED", [20])
        mine.append(SCGD([p], 0.1).param_groups[0]["seed"])
    assert mine[2] == mine[3] != SCGD([p], 0.1).param_groups[0]["seed"]


def test_numbers_of_the_first_process_arrive_bit_for_bit(group, monkeypatch):
    numbers = np.array([0.1, -0.0, np.nan, 5e-324])
    assert Ranks(group).agree(numbers) is numbers and not Ranks(group).several
    sent = []

    def broadcast(tensor, src, group):
        sent.append((tensor.numpy().tobytes(), src))
        tensor.add_(1)

    monkeypatch.setattr(dist, "broadcast", broadcast)
    monkeypatch.setattr(dist, "get_world_size", lambda group=None: 2)
    found = Ranks(group).agree(numbers)
    assert sent == [(numbers.tobytes(), 0)] and found.dtype == numbers.dtype
    np.testing.assert_array_equal(found.view(np.int64), numbers.view(np.int64) + 1)


def test_a_hook_reduces_what_the_next_step_moves(monkeypatch):
    sizes = twin(monkeypatch, times=3)
    params = [nn.Parameter(torch.ones(n)) for n in (40, 1, 30)]
    optimizer = SCGD(params, 0.1, seed=4, fraction=0.1, sampling="distinct")
    buffer = torch.ones(71)
    gradients = list(buffer.split([40, 1, 30]))
    bucket = SimpleNamespace(
        parameters=lambda: params, gradients=lambda: gradients, buffer=lambda: buffer
    )
    assert reduce_sampled(optimizer, bucket).value() is buffer
    for p, gradient in zip(params, gradients, strict=True):
        p.grad = gradient.clone()
    optimizer.step()
    moved = torch.cat([(p.detach() != 1).float() for p in params])
    assert torch.equal(buffer, 1 + moved) and sizes == [int(moved.sum())]
    assert 0 < moved[:40].sum() < 40 and moved[40] == 0
    other = SimpleNamespace(
        parameters=lambda: [nn.Parameter(torch.ones(2))], gradients=lambda: [torch.ones(2)],
        buffer=lambda: buffer,
    )  # fmt: skip
    assert reduce_sampled(optimizer, other).value() is buffer and len(sizes) == 1


def test_only_parameters_that_are_trained_are_reduced(group):
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    wrapped, reduced = DistributedDataParallel(model), []

    def hook(state, bucket):
        state.extend(p.shape for p in bucket.parameters())
        done = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    wrapped.register_comm_hook(reduced, hook)
    model[0].requires_grad_(False)
    narrow(wrapped)
    wrapped(torch.ones(4, 3)).sum().backward()
    assert sorted(reduced) == sorted(p.shape for p in model[1].parameters())
    with pytest.raises(ValueError, match="without static_graph=True"):
        narrow(DistributedDataParallel(nn.Linear(2, 1), static_graph=True))
