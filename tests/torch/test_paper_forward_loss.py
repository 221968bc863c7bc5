"""Perceptrons taken apart: the same losses as an ordinary forward pass, or the ordinary pass."""

import gc
import weakref

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from networks import batch, perceptron  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from scgd.torch import ZeroOrderSCGD  # noqa: E402
from scgd_paper.forward_loss import ForwardLoss  # noqa: E402

ACTIVATIONS = [nn.ReLU, nn.Sigmoid, nn.Tanh, nn.SiLU, nn.GELU, nn.Identity]


def flat(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()]).double().numpy()


def values(model):
    return [p.detach().clone() for p in model.parameters()]


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("estimator", ["forward", "central"])
def test_fast_and_generic_paths_agree(activation, estimator):
    x, y = batch()
    models = [perceptron(activation=activation) for _ in range(2)]
    fast, generic = (
        ZeroOrderSCGD(
            m.parameters(), 0.5, radius=1e-3, estimator=estimator, block_size=3, seed=0
        )
        for m in models
    )  # fmt: skip
    closure = ForwardLoss(models[0], F.cross_entropy, x, y)
    assert closure.is_stack
    for _ in range(60):
        one = fast.step(closure)
        two = generic.step(lambda: F.cross_entropy(models[1](x), y))
    assert one.item() == pytest.approx(two.item(), rel=1e-6)
    np.testing.assert_allclose(flat(models[0]), flat(models[1]), atol=1e-8)
    assert fast.n_forwards == generic.n_forwards


def tails():
    y = batch()[1]
    target = torch.randn(9, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    yield "cross-entropy", None, nn.CrossEntropyLoss(), y, 0
    yield "nll over classes", nn.LogSoftmax(1), F.nll_loss, y, 0
    yield "nll over the batch", nn.LogSoftmax(0), nn.NLLLoss(), y, 1
    yield "squares", None, F.mse_loss, target, 2
    yield "own loss", None, lambda out, t: (out - t).abs().mean(), target, -1
    yield "smoothed", None, nn.CrossEntropyLoss(label_smoothing=0.1), y, -1
    yield "own loss after a tail", nn.LogSoftmax(1), lambda out, t: (out * t).sum(), target, -1


@pytest.mark.parametrize(("name", "tail", "loss", "target", "code"), list(tails()))
def test_compiled_losses_are_torchs(name, tail, loss, target, code):
    model, x = perceptron(), batch()[0]
    model = model if tail is None else nn.Sequential(nn.Flatten(), *model, nn.Dropout(0.5), tail)
    model.eval()
    closure = ForwardLoss(model, loss, x, target)
    optimizer = ZeroOrderSCGD(model.parameters(), 0.1, radius=1e-3, seed=0, estimator="forward")
    layout = optimizer.layouts[0]
    probes = closure.probes(layout)
    assert probes.code == code
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            for index in (0, p.numel() - 1):
                coord = layout.bounds[i] + index
                (base, below, above), (width,) = probes.differences([coord], 0.1, True)
                if code >= 0:  # a loss of the user's own is not called where it is not needed
                    assert float(base) == pytest.approx(closure().item(), rel=1e-12)
                assert width == pytest.approx(0.2)
                for found, step in ((below, -0.1), (above, 0.1)):
                    p.view(-1)[index] += step
                    assert float(found) == pytest.approx(closure().item(), rel=1e-9)
                    p.view(-1)[index] -= step


def test_other_models_take_the_usual_path():
    x, y = batch()
    stack = perceptron()

    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = perceptron()

        def forward(self, x):
            return self.inner(x)

    hooked = perceptron()
    hooked[0].register_forward_hook(lambda *a: None)
    dropping = nn.Sequential(nn.Linear(6, 4), nn.Dropout(0.5), nn.Linear(4, 3)).double()
    for model in (Wrapped(), hooked, dropping, perceptron().to(torch.bfloat16)):
        assert not ForwardLoss(model, F.cross_entropy, x, y).is_stack
    assert ForwardLoss(dropping.eval(), F.cross_entropy, x, y).is_stack
    assert ForwardLoss(stack, F.cross_entropy, x, y).is_stack
    wrapped = Wrapped()
    optimizer = ZeroOrderSCGD(wrapped.parameters(), 0.5, radius=1e-2, seed=0, estimator="forward")
    first = optimizer.step(ForwardLoss(wrapped, F.cross_entropy, x, y))
    for _ in range(300):
        last = optimizer.step(ForwardLoss(wrapped, F.cross_entropy, x, y))
    assert last < 0.9 * first


def test_the_fast_path_follows_reloaded_parameters():
    x, y = batch()
    model, other = perceptron(), perceptron(activation=nn.Tanh)
    closure = ForwardLoss(model, F.cross_entropy, x, y)
    optimizer = ZeroOrderSCGD(model.parameters(), 0.5, radius=1e-2, seed=0, estimator="forward")
    optimizer.step(closure)
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        p.data = q.detach().clone() + 1.0
    with torch.no_grad():
        expected = closure().item()
    assert optimizer.step(closure).item() == pytest.approx(expected, rel=1e-6)


def test_the_fast_path_follows_changes_of_the_model():
    x, y = batch()
    model = perceptron()
    closure = ForwardLoss(model, F.cross_entropy, x, y)
    optimizer = ZeroOrderSCGD(model.parameters(), 0.5, radius=1e-2, seed=0, estimator="forward")
    optimizer.step(closure)
    model[1] = nn.ReLU()
    with torch.no_grad():
        expected = closure().item()
    assert optimizer.step(closure).item() == pytest.approx(expected, rel=1e-6)
    hook = model[0].register_forward_hook(lambda module, given, out: 2 * out)
    assert not closure.is_stack
    hook.remove()
    assert closure.is_stack


def interfere_by_hook(model):
    model.register_forward_hook(lambda module, given, out: 3 * out)


def interfere_by_forward(model):
    inner = model.forward
    model.forward = lambda x: 3 * inner(x)


@pytest.mark.parametrize("interfere", [interfere_by_hook, interfere_by_forward])
def test_what_comes_in_between_takes_the_usual_path(interfere):
    model, (x, y) = perceptron(), batch()
    closure = ForwardLoss(model, F.cross_entropy, x, y)
    optimizer = ZeroOrderSCGD(model.parameters(), 0.5, radius=1e-2, seed=0, estimator="forward")
    optimizer.step(closure)
    interfere(model)
    with torch.no_grad():
        expected = closure().item()
    assert optimizer.step(closure).item() == pytest.approx(expected, rel=1e-6)


def over_last_axis(out, y):
    return F.nll_loss(out.flatten(0, 1), y)


def unusual_cases():
    x, y = torch.randn(4, 6, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 2, 1, 0])
    linear = nn.Linear(6, 3)
    yield (
        "dropout after the tail",
        nn.Sequential(linear, nn.LogSoftmax(1), nn.Dropout()),
        F.nll_loss,
        x,
        y,
    )
    partial = nn.Sequential(nn.Flatten(1, 2), linear, nn.LogSoftmax(2))
    yield "partial flatten", partial, over_last_axis, x.expand(1, 2, 4, 6), y.repeat(2)
    yield "bare layer", linear, F.cross_entropy, x, y


@pytest.mark.parametrize(("name", "model", "loss", "x", "y"), list(unusual_cases()))
def test_unusual_models_give_the_loss_of_the_closure(name, model, loss, x, y):
    model.eval()
    closure = ForwardLoss(model, loss, x, y)
    with torch.no_grad():
        expected = closure().item()
    optimizer = ZeroOrderSCGD(model.parameters(), 0.1, radius=1e-2, seed=0, estimator="forward")
    assert optimizer.step(closure).item() == pytest.approx(expected, rel=1e-6)


def test_an_empty_batch_is_the_closures_business():
    model = perceptron()
    closure = ForwardLoss(model, F.cross_entropy, *(t[:0] for t in batch()))
    optimizer = ZeroOrderSCGD(model.parameters(), 0.1, radius=1e-2, seed=0, estimator="forward")
    with pytest.raises(FloatingPointError, match="nan"):
        optimizer.step(closure)


def test_autocast_takes_the_usual_path():
    model, (x, y) = perceptron(torch.float32), batch(torch.float32)
    closure = ForwardLoss(model, F.cross_entropy, x, y)
    with torch.autocast("cpu", torch.bfloat16):
        assert closure.probes() is None
    assert closure.probes() is not None


@pytest.mark.parametrize("bare", [True, False])
def test_models_are_not_kept_alive(bare):
    model = nn.Linear(6, 3) if bare else nn.Sequential(nn.Linear(6, 3))
    assert ForwardLoss(model, F.mse_loss, torch.ones(2, 6), torch.ones(2, 3)).is_stack != bare
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("scale", [1.0, 1e-2, 1e-4])
def test_small_activations_of_tanh_keep_their_digits(scale):
    generator = torch.Generator().manual_seed(0)
    model = perceptron(torch.float32, widths=(6, 16, 1), activation=nn.Tanh)
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim == 1:
                p.zero_()
    x = scale * torch.randn(9, 6, generator=generator)
    target = scale * torch.randn(9, 1, generator=generator)
    fast = ForwardLoss(model, F.mse_loss, x, target).probes().loss()
    double = perceptron(torch.float64, widths=(6, 16, 1), activation=nn.Tanh)
    double.load_state_dict(model.state_dict())
    with torch.no_grad():
        exact = F.mse_loss(double(x.double()), target.double()).item()
    assert fast == pytest.approx(exact, rel=3e-6)


def test_random_losses_see_the_same_draws_in_all_probes():
    model, (x, y) = perceptron(torch.float32), batch(torch.float32)
    seen = []

    def loss(out, y):
        seen.append(torch.rand(()).item())
        return F.cross_entropy(out, y)

    optimizer = ZeroOrderSCGD(model.parameters(), 0.1, radius=1e-2, seed=0, estimator="forward")
    with torch.random.fork_rng(devices=[]):
        optimizer.step(ForwardLoss(model, loss, x, y))
    assert seen[-1] == seen[-2]


def test_what_is_not_one_unit_takes_the_usual_path():
    tied = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3)).double()
    tied[2].weight = tied[0].weight
    x = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert not ForwardLoss(tied, F.mse_loss, x, x).is_stack
    model = perceptron(widths=(6, 5, 3))
    x = torch.randn(2, 4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    closure = ForwardLoss(model, lambda out, t: out.square().mean(), x, None)
    optimizer = ZeroOrderSCGD(model.parameters(), 0.5, radius=1e-2, seed=0, estimator="forward")
    assert closure.probes(optimizer.layouts[0]) is None
    with torch.no_grad():
        expected = closure().item()
    assert optimizer.step(closure).item() == pytest.approx(expected, rel=1e-6)


def test_labels_that_name_no_output_are_torchs_business():
    model, (x, y) = perceptron(), batch()
    optimizer = ZeroOrderSCGD(model.parameters(), 0.5, radius=1e-2, seed=0, estimator="forward")
    y[2] = -100  # ignored by torch's cross-entropy
    closure = ForwardLoss(model, F.cross_entropy, x, y)
    with torch.no_grad():
        expected = closure().item()
    assert optimizer.step(closure).item() == pytest.approx(expected, rel=1e-6)
    y[2] = 3
    before = values(model)
    with pytest.raises(IndexError):
        optimizer.step(closure)
    assert all(torch.equal(a, b) for a, b in zip(before, values(model), strict=True))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_single_precision_agrees_within_rounding(activation):
    model, (x, y) = perceptron(torch.float32, activation=activation), batch(torch.float32)
    closure = ForwardLoss(model, F.cross_entropy, x, y)
    probes = closure.probes(
        ZeroOrderSCGD(model.parameters(), 0.5, radius=1e-2, estimator="forward").layouts[0]
    )
    found, _ = probes.differences([0, 40, 66], 0.1, False)
    with torch.no_grad():
        assert found[0] == pytest.approx(closure().item(), rel=4e-7)
        weights = torch.nn.utils.parameters_to_vector(model.parameters())
        for coord, loss in zip([0, 40, 66], found[1:], strict=True):
            moved = weights.clone()
            moved[coord] += 0.1
            torch.nn.utils.vector_to_parameters(moved, model.parameters())
            assert loss == pytest.approx(closure().item(), rel=4e-7)
