"""Parameters and gradients of every kind: other memory orders, complex, sparse."""

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from scgd.torch import SCGD, ZeroOrderSCGD  # noqa: E402


@pytest.mark.parametrize("settings", [{}, {"momentum": 0.9}, {"granularity": "rows"}], ids=str)
def test_memory_layout_does_not_matter(settings):
    plain = nn.Parameter(torch.arange(24.0).view(4, 6))
    odd = nn.Parameter(torch.arange(24.0).view(4, 6).t().contiguous().t())
    assert not odd.is_contiguous()
    optimizers = [SCGD([p], 0.1, fraction=0.5, seed=0, **settings) for p in (plain, odd)]
    for _ in range(5):
        for p, optimizer in zip((plain, odd), optimizers, strict=True):
            p.grad = torch.ones_like(p) * torch.arange(4.0).view(4, 1)
            optimizer.step()
    torch.testing.assert_close(plain, odd)
    for order in ("forward", "spsa"):
        one, two = (
            ZeroOrderSCGD([p], 0.1, radius=0.5, estimator=order, seed=0) for p in (plain, odd)
        )
        for _ in range(5):
            one.step(lambda: plain.square().mean())
            two.step(lambda: odd.square().mean())
        torch.testing.assert_close(plain, odd)


def test_complex_parameters_are_pairs_of_real_coordinates():
    z = nn.Parameter(torch.randn(20, dtype=torch.complex64))
    x = nn.Parameter(torch.view_as_real(z.detach()).clone())
    one, two = SCGD([z], 0.1, fraction=0.3, seed=0), SCGD([x], 0.1, fraction=0.3, seed=0)
    for _ in range(10):
        z.grad, x.grad = z.detach() * 2, x.detach() * 2
        one.step()
        two.step()
    torch.testing.assert_close(torch.view_as_real(z.detach()), x.detach())
    zeroth = ZeroOrderSCGD([z], 0.3, radius=1e-2, estimator="central", seed=0)
    first = z.abs().square().sum().item()
    for _ in range(100):
        zeroth.step(lambda: z.abs().square().sum())
    assert z.abs().square().sum().item() < 0.5 * first


def test_sparse_gradients_are_refused():
    embedding = nn.Embedding(10, 3, sparse=True)
    optimizer = SCGD(embedding.parameters(), 0.1)
    embedding(torch.tensor([1, 2])).sum().backward()
    with pytest.raises(RuntimeError, match="does not support sparse gradients"):
        optimizer.step()


def test_gradients_in_another_memory_order_or_with_a_graph():
    p = nn.Parameter(torch.ones(4, 6))
    optimizer = SCGD([p], 0.1, fraction=1.0, policy="uniform", seed=0)
    p.grad = torch.arange(24.0).view(6, 4).t()
    optimizer.step()
    torch.testing.assert_close(p.detach(), 1 - 0.1 * torch.arange(24.0).view(6, 4).t())
