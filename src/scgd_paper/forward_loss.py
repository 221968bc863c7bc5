"""A closure that knows its model: losses of perturbed perceptrons without a second forward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from scgd.checks import function, shown
from scgd.estimators import sides
from scgd.torch.layout import FLOATS, Layout
from scgd.typing import Array
from scgd_paper import activations, mlp

__all__ = ["ForwardLoss"]

CODES = {
    nn.Identity: activations.IDENTITY,
    nn.ReLU: activations.RELU,
    nn.Sigmoid: activations.SIGMOID,
    nn.Tanh: activations.TANH,
    nn.SiLU: activations.SILU,
}
NO_LABELS = np.empty(0, np.int64)
NO_PARAMETERS = np.empty((0, 3), np.int64)


class ForwardLoss:
    """The closure ``loss(model(inputs), targets)``, taken apart where the model allows.

    For an ``nn.Sequential`` of ``Linear`` layers with elementwise activations between them (ReLU,
    Sigmoid, Tanh, SiLU, GELU, Identity, and Dropout when not training) in float32 or float64 on the
    CPU, :class:`~scgd.torch.ZeroOrderSCGD` computes the loss with one entry moved by a rank-one
    update of one forward pass. Cross-entropy and mean squared error, also after ``LogSoftmax``, are
    compiled too; other losses are called on the outputs. Any other model takes the usual path.

    Parameters
    ----------
    model
        Any module.
    loss
        ``loss(outputs, targets)`` returning one number, a function or a module.
    inputs, targets
        The batch.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    >>> closure = ForwardLoss(model, F.mse_loss, torch.ones(4, 2), torch.zeros(4, 1))
    >>> closure.is_stack
    True
    """

    def __init__(
        self, model: nn.Module, loss: Callable[..., Any], inputs: Any, targets: Any
    ) -> None:
        if not isinstance(model, nn.Module):
            raise TypeError(f"model must be a torch.nn.Module, got {shown(model)}")
        self.model, self.loss = model, function(loss, "loss")
        self.inputs, self.targets = inputs, targets

    def __call__(self) -> Any:
        """Return the loss by an ordinary forward pass."""
        return self.loss(self.model(self.inputs), self.targets)

    @property
    def is_stack(self) -> bool:
        """Whether the model is one whose perturbed losses are computed by rank-one updates."""
        return stack_of(self.model) is not None

    def probes(self, layout: Layout | None = None) -> StackProbes | None:
        """Return the fast way to the loss, also with entries of a layout moved, if there is one."""
        stack, x = stack_of(self.model), self.inputs
        if stack is None or type(x) is not torch.Tensor or x.dtype != stack.dtype or not x.is_cpu:
            return None
        if len(x) == 0 or torch.is_autocast_enabled("cpu"):
            return None
        if x.ndim != 2 and not (stack.flattens and x.ndim > 2):
            return None
        table = NO_PARAMETERS if layout is None else stack.table(layout)
        return None if table is None else StackProbes(stack, table, self)


class Stack:
    """A model taken apart into linear layers, activations and what follows the last layer."""

    def __init__(
        self, model: nn.Module, modules: list[Any], codes: list[int], tail: nn.Module | None
    ) -> None:
        self.codes, self.tail = np.array(codes), tail
        self.linears = [m for m in modules if type(m) is nn.Linear]
        self.dropouts = [m for m in modules if isinstance(m, nn.Dropout)]
        self.flattens = any(type(m) is nn.Flatten for m in modules)
        self.containers = [m._modules for m in model.modules() if type(m) is nn.Sequential]
        self.children = [list(children.values()) for children in self.containers]
        everything = list(model.modules())
        self.hooks = [h for m in everything for h in (m._forward_hooks, m._forward_pre_hooks)]
        self.attributes = [m.__dict__ for m in everything]
        self.held = [m._parameters for m in self.linears]
        self.dtype = self.linears[0].weight.dtype
        self.weights = tuple(linear.weight.detach().numpy() for linear in self.linears)
        self.biases = tuple(
            np.zeros(len(w), w.dtype) if linear.bias is None else linear.bias.detach().numpy()
            for linear, w in zip(self.linears, self.weights, strict=True)
        )
        self.first = self.linears[0].weight.detach()
        self.addresses = self.where()
        self.n_units = sum(len(w) for w in self.weights)
        self.work = np.empty((4, 0), self.weights[0].dtype)
        self.network = self.weights, self.biases, self.codes
        self.tables: WeakKeyDictionary[Layout, Array | None] = WeakKeyDictionary()

    def where(self) -> list[int]:
        """Return the addresses of the parameters, which change when they are moved or replaced."""
        params = [p for held in self.held for p in held.values() if p is not None]
        return list(map(torch.Tensor.data_ptr, params))

    def is_current(self) -> bool:
        """Whether modules and parameters are what they were and nothing has come in between."""
        children = [list(children.values()) for children in self.containers]
        same = children == self.children and self.addresses == self.where()
        return same and not any(self.hooks) and not any("forward" in a for a in self.attributes)

    def multiply(self, x: torch.Tensor) -> Array:
        """Return working memory for a batch that holds the first layer's product with it."""
        n_rows = len(x)
        if self.work.shape[1] != n_rows * self.n_units:
            self.work = np.empty((4, n_rows * self.n_units), self.work.dtype)
            self.product = torch.from_numpy(mlp.room(self.work, mlp.Z, 0, self.weights))
        torch.mm(self.first, x.t(), out=self.product)
        return self.work

    def table(self, layout: Layout) -> Array | None:
        """Return where a layout's parameters are: first coordinate, layer, is a weight."""
        table = self.tables.get(layout)
        if table is None:
            places = {id(m.weight): (n, 1) for n, m in enumerate(self.linears)}
            places |= {id(m.bias): (n, 0) for n, m in enumerate(self.linears)}
            bounds = zip(layout.bounds, layout.params, strict=False)
            rows = [(first, *places.get(id(p), ())) for first, p in bounds]
            known = all(len(row) == 3 for row in rows)
            table = self.tables[layout] = np.array(rows) if known else None
        return table


class StackProbes:
    """Losses of one batch: at the parameters, and with single entries moved."""

    def __init__(self, stack: Stack, table: Array, closure: ForwardLoss) -> None:
        self.stack, self.table, self.closure = stack, table, closure
        x = closure.inputs
        if x.ndim != 2 or x.requires_grad or not x.is_contiguous():
            x = x.detach().flatten(1).contiguous()
        self.batch, self.x = x, x.numpy()
        self.code, self.labels, self.targets = self._loss()

    def _loss(self) -> tuple[int, Array, Array]:
        """Return the code of a compiled loss and its targets, or -1."""
        loss, tail, targets = self.closure.loss, self.stack.tail, self.closure.targets
        nothing = self.x[:0]
        if type(targets) is not torch.Tensor or not targets.is_cpu:
            return -1, NO_LABELS, nothing
        if targets.dtype == torch.int64 and targets.shape == self.x.shape[:1]:
            if tail is None and is_plain(loss, F.cross_entropy, nn.CrossEntropyLoss):
                return mlp.ROWS, targets.numpy(), nothing
            if tail is not None and is_plain(loss, F.nll_loss, nn.NLLLoss):
                return mlp.COLUMNS if tail.dim == 0 else mlp.ROWS, targets.numpy(), nothing
        whole = (len(self.x), len(self.stack.weights[-1]))
        if targets.dtype == self.stack.dtype and targets.shape == whole and tail is None:
            if is_plain(loss, F.mse_loss, nn.MSELoss):
                return mlp.SQUARES, NO_LABELS, targets.detach().contiguous().numpy()
        return -1, NO_LABELS, nothing

    def loss(self) -> Any:
        """Return the loss at the parameters."""
        return self.differences([], 0.0, False)[0][0]

    def differences(
        self, coords: list[int], radius: float, central: bool
    ) -> tuple[list[float], list[float]]:
        """Return the base loss and those around each coordinate, and how far apart those are."""
        values, widths = np.empty(1 + (1 + central) * len(coords)), np.empty(len(coords))
        where = np.array(coords, np.int64), self.table, radius, central
        network = self.x, *self.stack.network, self.stack.multiply(self.batch)
        target = self.code, self.labels, self.targets
        if self.code < 0 or not mlp.differences(*where, *network, *target, values, widths):
            return self._called(*where, *network)
        return values.tolist(), widths.tolist()

    def _called(
        self, places: Array, table: Array, radius: float, central: bool, *network: Any
    ) -> tuple[list[float], list[float]]:
        """Do the same with a loss that is called on the outputs."""
        mlp.forward(*network[1:])
        values: list[Any] = [np.nan if central else self._value(mlp.OUT)]
        widths = []
        rounded = self.x.dtype.type
        for coord in places:
            layer, i, j = mlp.find(coord, table, self.stack.weights)
            here = float(self.stack.biases[layer][i] if j < 0 else self.stack.weights[layer][i, j])
            sizes = [float(rounded(v)) for v in sides(central, here, radius, -np.inf, np.inf)]
            for size in sizes if central else sizes[1:]:
                mlp.forward_moved(layer, i, j, size - here, *network)
                values.append(self._value(mlp.OUT_MOVED))
            widths.append(sizes[1] - sizes[0])
        return values, widths

    def _value(self, kind: int) -> Any:
        """Return the caller's loss of the outputs."""
        stack = self.stack
        out = mlp.room(stack.work, kind, len(stack.weights) - 1, stack.weights)
        outputs = torch.from_numpy(np.ascontiguousarray(out.T))
        outputs = outputs if stack.tail is None else stack.tail(outputs)
        return self.closure.loss(outputs, self.closure.targets)


STACKS: WeakKeyDictionary[nn.Module, Stack | None] = WeakKeyDictionary()


def stack_of(model: nn.Module) -> Stack | None:
    """Return a model taken apart, remembered from the last time if nothing moved."""
    stack = STACKS.get(model)
    if stack is None or not stack.is_current():
        stack = STACKS[model] = take_apart(model)
    if stack is not None and stack.dropouts and any(d.training for d in stack.dropouts):
        return None
    return stack


def take_apart(model: nn.Module) -> Stack | None:
    """Return the layers of a plain perceptron, or None for any other model."""
    if type(model) is not nn.Sequential:  # what is remembered must not hold the model itself
        return None
    modules = flatten(model)
    layers = [m for m in modules if not isinstance(m, nn.Dropout)]
    if layers and type(layers[0]) is nn.Flatten:
        if (layers[0].start_dim, layers[0].end_dim) != (1, -1):
            return None
        layers = layers[1:]
    tail = None
    if layers and type(layers[-1]) is nn.LogSoftmax and layers[-1].dim in (0, 1, -1):
        tail = layers.pop()
    codes: list[int] = []
    for layer in layers:
        code = CODES.get(type(layer))
        if type(layer) is nn.GELU and layer.approximate == "none":
            code = activations.GELU
        if type(layer) is nn.Linear and plain_linear(layer):
            codes.append(activations.IDENTITY)
        elif code is not None and codes and codes[-1] == activations.IDENTITY:
            codes[-1] = code
        else:
            return None
    held = [p for m in layers for p in m.parameters(recurse=False)]
    # A parameter in two places would not move one unit alone.
    if not held or len({id(p) for p in held}) < len(held) or len({p.dtype for p in held}) > 1:
        return None
    return Stack(model, modules, codes, tail)


def flatten(model: nn.Module) -> list[Any]:
    """Return the modules that a Sequential runs; a marker where something may interfere."""
    if model._forward_hooks or model._forward_pre_hooks or "forward" in model.__dict__:
        return [None]
    if type(model) is nn.Sequential:
        return [leaf for child in model for leaf in flatten(child)]
    return [model]


def plain_linear(layer: nn.Linear) -> bool:
    """Whether a linear layer's parameters are plain contiguous floats in memory."""
    tensors = [layer.weight] if layer.bias is None else [layer.weight, layer.bias]
    return all(
        type(t) is nn.Parameter
        and t.dtype in FLOATS
        and t.device.type == "cpu"
        and t.is_contiguous()
        for t in tensors
    )


def is_plain(loss: Any, function: Any, module: type[nn.Module]) -> bool:
    """Whether a loss is the plain mean of a known kind."""
    if loss is function:
        return True
    if type(loss) is not module or getattr(loss, "reduction", "mean") != "mean":
        return False
    plain = getattr(loss, "label_smoothing", 0.0) == 0.0 and getattr(loss, "weight", None) is None
    return plain and getattr(loss, "ignore_index", -100) == -100
