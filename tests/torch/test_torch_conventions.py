"""What a PyTorch user expects of any optimizer."""

import copy
import io
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.optim import lr_scheduler as schedulers  # noqa: E402
from torch.optim.optimizer import register_optimizer_step_post_hook  # noqa: E402

from scgd import Musketeer  # noqa: E402
from scgd.torch import SCGD, ZeroOrderSCGD  # noqa: E402

VARIANTS = {
    "fused": (SCGD, {}),
    "uniform": (SCGD, {"policy": "uniform"}),
    "softmax": (SCGD, {"policy": Musketeer(normalization="softmax")}),
    "distinct momentum": (SCGD, {"sampling": "distinct", "momentum": 0.9, "nesterov": True}),
    "replacement adam": (SCGD, {"sampling": "replacement", "rule": "adam"}),
    "published": (SCGD.published, {}),
    "rows rms": (SCGD, {"granularity": "rows", "rule": "rms", "fraction": 0.3}),
    "tensors": (SCGD, {"granularity": "tensors", "fraction": 0.5}),
    "amsgrad chunks": (
        SCGD,
        {"granularity": "chunks", "rule": "adam", "amsgrad": True, "fraction": 0.5},
    ),
    "decoupled": (SCGD, {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    "dampened": (SCGD, {"momentum": 0.9, "dampening": 0.5}),
    "auto": (ZeroOrderSCGD, {}),
    "auto momentum": (ZeroOrderSCGD, {"momentum": 0.5, "policy": "uniform"}),
    "mezo momentum": (ZeroOrderSCGD, {"radius": 1e-2, "estimator": "mezo", "momentum": 0.9}),
    "forward": (ZeroOrderSCGD, {"radius": 1e-2, "estimator": "forward"}),
    "central adam": (ZeroOrderSCGD, {"radius": 1e-2, "estimator": "central", "rule": "adam"}),
    "chunks": (
        ZeroOrderSCGD,
        {"radius": 1e-2, "estimator": "forward", "granularity": "chunks"},
    ),
    "spsa": (ZeroOrderSCGD, {"radius": 1e-2, "estimator": "spsa"}),
    "sparse-mezo": (ZeroOrderSCGD, {"radius": 1e-2, "estimator": "sparse-mezo"}),
    "mezo rows": (
        ZeroOrderSCGD,
        {"radius": 1e-2, "estimator": "mezo", "policy": "musketeer", "granularity": "rows"},
    ),
}
BOTH = pytest.mark.parametrize("make", [SCGD, ZeroOrderSCGD])


def plain(make, *given, **settings):
    """Make an optimizer that draws coordinates: not the default of zeroth order."""
    return make(*given, **settings, **({} if make is SCGD else {"estimator": "forward"}))


ALL = pytest.mark.parametrize("variant", VARIANTS)


def model_of(dtype=torch.float32):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 1)).to(dtype)


def closure_for(model, optimizer):
    """Return a closure: with backward for first order, forward only for zeroth."""
    dtype = next(model.parameters()).dtype
    x = torch.randn(16, 6, generator=torch.Generator().manual_seed(1)).to(dtype)
    first_order = isinstance(optimizer, SCGD)

    def closure():
        loss = (model(x) - x[:, :1]).square().mean()
        if first_order:
            optimizer.zero_grad()
            loss.backward()
        return loss

    return closure


def make(variant, model, **settings):
    kind, given = VARIANTS[variant]
    return kind(model.parameters(), 0.05, seed=7, **{**given, **settings})


def run(model, optimizer, n_steps):
    closure = closure_for(model, optimizer)
    return [optimizer.step(closure).item() for _ in range(n_steps)]


def same(one, two):
    pairs = zip(one.parameters(), two.parameters(), strict=True)
    return all(torch.equal(p, q) for p, q in pairs)


def through_file(state):
    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@ALL
def test_resuming_from_a_file_changes_nothing(variant, dtype):
    model = model_of(dtype)
    optimizer = make(variant, model)
    run(model, optimizer, 7)
    other = copy.deepcopy(model)
    resumed = make(variant, other, **({} if "published" in variant else {"maximize": False}))
    saved = through_file(optimizer.state_dict())
    resumed.load_state_dict(saved)
    assert run(model, optimizer, 9) == run(other, resumed, 9)
    assert same(model, other)
    reopened = through_file(resumed.state_dict())
    assert str(reopened) == str(through_file(optimizer.state_dict()))


@ALL
def test_copies_and_pickles_go_on_alike(variant):
    model = model_of()
    optimizer = make(variant, model)
    run(model, optimizer, 5)
    for copied in (copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))):
        other, twin = copied((model, optimizer))
        reference = copy.deepcopy(model), None
        fresh = make(variant, reference[0])
        fresh.load_state_dict(optimizer.state_dict())
        run(other, twin, 5)
        run(reference[0], fresh, 5)
        assert same(other, reference[0])
        assert not same(other, model)


@ALL
def test_one_seed_one_trajectory(variant):
    models = [model_of() for _ in range(2)]
    for model in models:
        run(model, make(variant, model), 6)
    assert same(*models)
    kind, given = VARIANTS[variant]
    other = model_of()
    run(other, kind(other.parameters(), 0.05, seed=8, **given), 6)
    assert not same(models[0], other)


@BOTH
def test_a_saved_state_knows_its_policy(make):
    model = model_of()
    state = plain(make, model.parameters(), 0.1, seed=0).state_dict()
    other = plain(make, model.parameters(), 0.1, policy="uniform", seed=0)
    before = str(other.state_dict())
    with pytest.raises(ValueError, match=r"saved with policy=.Musketeer.*has policy=.Uniform"):
        other.load_state_dict(state)
    assert str(other.state_dict()) == before


@BOTH
def test_groups_have_settings_and_samplers_of_their_own(make):
    first, second, third = (nn.Parameter(torch.zeros(40)) for _ in range(3))
    groups = [{"params": [first]}, {"params": [second], "lr": 0.5, "policy": "uniform"}]
    optimizer = plain(make, groups, lr=0.01, seed=0)
    optimizer.add_param_group({"params": [third], "lr": 0.25, "block_size": 2})
    assert [sampler.policy for sampler in optimizer.samplers][1:] != [
        optimizer.samplers[0].policy
    ] * 2

    def closure():
        loss = (first + second + third).sum()
        if make is SCGD:
            optimizer.zero_grad()
            loss.backward()
        return loss

    for _ in range(30):
        optimizer.step(closure)
    for p, lr in ((first, 0.01), (second, 0.5), (third, 0.25)):
        moved = p.detach()[p.detach() != 0]
        assert len(moved) > 0
        torch.testing.assert_close(moved / -lr, (moved / -lr).round(), rtol=0, atol=1e-2)


@BOTH
def test_named_parameters(make):
    if not hasattr(torch.optim.SGD([nn.Parameter(torch.ones(1))], 0.1), "_optimizer_step_code"):
        pytest.skip("this torch has no named parameters in optimizers")
    model = model_of()
    optimizer = make(model.named_parameters(), 0.1, seed=0)
    run(model, optimizer, 2)
    assert optimizer.state_dict()["param_groups"][0]["param_names"][0] == "0.weight"


@BOTH
def test_learning_rates_may_be_tensors_and_are_read_at_every_step(make):
    model, twin = model_of(), model_of()
    one = plain(make, model.parameters(), torch.tensor(0.05), seed=0)
    two = plain(make, twin.parameters(), 0.05, seed=0)
    run(model, one, 3)
    run(twin, two, 3)
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(p, q)
    before = copy.deepcopy(model)
    one.param_groups[0]["lr"] = 0.0
    run(model, one, 3)
    assert same(model, before)


SCHEDULERS = [
    lambda o: schedulers.StepLR(o, 2),
    lambda o: schedulers.LambdaLR(o, lambda n: 1 / (n + 1)),
    lambda o: schedulers.CosineAnnealingLR(o, 5),
    lambda o: schedulers.OneCycleLR(o, 0.1, total_steps=10),
    lambda o: schedulers.CyclicLR(o, 0.01, 0.1, cycle_momentum=False),
    lambda o: schedulers.SequentialLR(
        o, [schedulers.LinearLR(o), schedulers.ExponentialLR(o, 0.9)], [3]
    ),
]


@BOTH
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_schedulers(make, scheduler):
    model = model_of()
    optimizer = make(model.parameters(), 0.1, seed=0)
    schedule = scheduler(optimizer)
    closure, rates = closure_for(model, optimizer), []
    for _ in range(8):
        optimizer.step(closure)
        schedule.step()
        rates.append(float(optimizer.param_groups[0]["lr"]))
    assert len(set(rates)) > 1
    copy.deepcopy(optimizer)


@BOTH
def test_plateau_scheduler(make):
    optimizer = make([nn.Parameter(torch.zeros(3))], 0.1)
    schedule = schedulers.ReduceLROnPlateau(optimizer, patience=0)
    for _ in range(4):
        schedule.step(1.0)
    assert optimizer.param_groups[0]["lr"] < 0.1


@BOTH
def test_hooks(make):
    model, calls = model_of(), []
    optimizer = make(model.parameters(), 0.1, seed=0)
    optimizer.register_step_pre_hook(lambda *a: calls.append("before"))
    optimizer.register_step_post_hook(lambda *a: calls.append("after"))
    optimizer.register_state_dict_post_hook(lambda o, state: calls.append("saved"))
    optimizer.register_load_state_dict_post_hook(lambda o: calls.append("loaded"))
    run(model, optimizer, 1)
    optimizer.load_state_dict(optimizer.state_dict())
    assert calls == ["before", "after", "saved", "loaded"]


def test_hooks_for_all_optimizers_and_profilers_see_zeroth_order_steps():
    theta, calls = nn.Parameter(torch.ones(3)), []
    optimizer = ZeroOrderSCGD([theta], 0.1, radius=1e-2, seed=0, estimator="forward")
    hook = register_optimizer_step_post_hook(lambda *given: calls.append(given[0]))
    optimizer.step(lambda: theta.sum())
    hook.remove()
    optimizer.step(lambda: theta.sum())
    assert calls == [optimizer]
    with torch.autograd.profiler.profile() as profile:
        optimizer.step(lambda: theta.sum())
    assert any("Optimizer.step#ZeroOrderSCGD.step" in event.key for event in profile.key_averages())


def test_step_without_closure_and_parameters_without_gradient():
    used, unused = nn.Parameter(torch.ones(50)), nn.Parameter(torch.ones(50))
    for settings in ({}, {"sampling": "distinct", "momentum": 0.9}, {"granularity": "tensors"}):
        optimizer = SCGD([used, unused], 0.1, fraction=0.5, seed=0, **settings)
        assert optimizer.step() is None
        used.grad = torch.ones(50)
        before = used.detach().clone()
        for _ in range(4):
            optimizer.step()
        assert not torch.equal(used, before)
        assert torch.equal(unused, torch.ones(50))
        used.grad = None


def test_zero_gradients_move_nothing():
    p = nn.Parameter(torch.ones(50))
    p.grad = torch.zeros(50)
    for settings in ({}, {"rule": "adam"}, {"rule": "rms"}, {"momentum": 0.5}):
        optimizer = SCGD([p], 0.1, seed=0, **settings)
        for _ in range(3):
            optimizer.step()
        assert torch.equal(p, torch.ones(50))


def test_maximize_is_descent_on_minus_the_loss():
    for settings in ({"weight_decay": 0.1}, {"weight_decay": 0.1, "rule": "adam"}):
        up, down = (nn.Parameter(torch.linspace(-1, 1, 60)) for _ in range(2))
        one = SCGD([up], 0.1, maximize=True, seed=0, **settings)
        two = SCGD([down], 0.1, seed=0, **settings)
        for _ in range(10):
            up.grad, down.grad = up.detach().clone() + 1, -down.detach() - 1
            one.step()
            two.step()
        torch.testing.assert_close(up, down)


def test_grad_scaler_skips_steps_with_infinite_gradients():
    model = model_of()
    optimizer = SCGD(model.parameters(), 0.1, seed=0)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    for bad in (False, True):
        before = copy.deepcopy(model)
        optimizer.zero_grad()
        scaler.scale(model(torch.ones(3, 6)).sum()).backward()
        if bad:
            model[0].weight.grad[0, 0] = torch.inf
        scaler.step(optimizer)
        scaler.update()
        assert same(model, before) == bad


def test_compiled_models_train():
    model = model_of()
    compiled = torch.compile(model, backend="eager")
    x = torch.randn(16, 6, generator=torch.Generator().manual_seed(1))
    optimizer = SCGD(model.parameters(), 0.2, fraction=0.5, seed=0)
    zeroth = ZeroOrderSCGD(model.parameters(), 0.2, radius=1e-2, seed=0, estimator="forward")
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = (compiled(x) - x[:, :1]).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        zeroth.step(lambda: (compiled(x) - x[:, :1]).square().mean())
    assert losses[-1] < 0.5 * losses[0]


def test_fraction_one_is_sgd():
    p, q = (nn.Parameter(torch.linspace(-1, 1, 50)) for _ in range(2))
    ours = SCGD([p], 0.1, fraction=1.0, policy="uniform", weight_decay=0.1)
    theirs = torch.optim.SGD([q], 0.1, weight_decay=0.1)
    for _ in range(5):
        p.grad, q.grad = p.detach().sin(), q.detach().sin()
        ours.step()
        theirs.step()
    torch.testing.assert_close(p, q)


def test_only_drawn_coordinates_move():
    p = nn.Parameter(torch.zeros(10_000))
    p.grad = torch.ones(10_000)
    for sampling, low, high in (("poisson", 850, 1150), ("distinct", 1000, 1000)):
        optimizer = SCGD([p], 1.0, sampling=sampling, seed=0)
        for _ in range(3):
            with torch.no_grad():
                p.zero_()
            optimizer.step()
            assert low <= int((p != 0).sum()) <= high


def test_gains_are_one_float_per_coordinate():
    p = nn.Parameter(torch.zeros(100_000))
    p.grad = torch.ones(100_000)
    optimizer = SCGD([p], 0.1)
    optimizer.step()
    distribution = optimizer.samplers[0].distribution
    held = [a for a in distribution if isinstance(a, np.ndarray)]
    assert sum(a.nbytes for a in held) < 4.01 * 100_000
    assert set(optimizer.state[p]) == {"step", "gains", "sampler"}


@BOTH
def test_printing_names_the_policy(make):
    assert "policy: Musketeer(" in repr(make([nn.Parameter(torch.ones(2))], 0.1))


def upstream():
    pytest.importorskip("expecttest")
    return pytest.importorskip("torch.testing._internal.common_optimizers")


@BOTH
@pytest.mark.filterwarnings("default")
def test_torchs_own_error_inputs(make):
    common = upstream()
    for case in common.get_error_inputs_for_all_optims("cpu", torch.float32):
        given, settings = case.optimizer_error_input.params, case.optimizer_error_input.kwargs
        params = [nn.Parameter(torch.randn(1, 1))] if given is None else given
        if issubclass(case.error_type, Warning):
            with pytest.warns(case.error_type, match=case.error_regex):
                make(params, **settings)
        else:
            with pytest.raises(case.error_type, match=case.error_regex):
                make(params, **settings)


@BOTH
@pytest.mark.filterwarnings("default")
def test_torchs_own_scheduler_sets(make):
    common = upstream()
    sets = {
        tuple(makers): makers
        for info in common.optim_db
        if info.optim_cls in (torch.optim.SGD, torch.optim.Adam)
        for makers in info.scheduler_inputs
    }
    assert len(sets) >= 5
    for makers in sets.values():
        model = model_of()
        optimizer = plain(make, model.parameters(), 0.05, block_size=10, seed=0)
        planned = [maker(optimizer) for maker in makers]
        closure, losses = closure_for(model, optimizer), []
        for _ in range(40):
            losses.append(optimizer.step(closure).item())
            for schedule in planned:
                if isinstance(schedule, schedulers.ReduceLROnPlateau):
                    schedule.step(losses[-1])
                else:
                    schedule.step()
        assert losses[-1] < losses[0]
