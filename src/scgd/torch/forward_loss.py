"""A closure that knows its model: losses of perturbed perceptrons without a second forward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from scgd.torch import mlp
from scgd.torch.layout import FLOATS, Layout
from scgd.typing import Array

__all__ = ["ForwardLoss"]

CODES = {
    nn.Identity: mlp.IDENTITY,
    nn.ReLU: mlp.RELU,
    nn.Sigmoid: mlp.SIGMOID,
    nn.Tanh: mlp.TANH,
    nn.SiLU: mlp.SILU,
}
NO_LABELS = np.empty(0, np.int64)


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
        self.model, self.loss, self.inputs, self.targets = model, loss, inputs, targets

    def __call__(self) -> Any:
        """Return the loss by an ordinary forward pass."""
        return self.loss(self.model(self.inputs), self.targets)

    @property
    def is_stack(self) -> bool:
        """Whether the model is one whose perturbed losses are computed by rank-one updates."""
        return stack_of(self.model) is not None

    def probes(self, layout: Layout) -> StackProbes | None:
        """Return the fast way to losses with entries of these parameters moved, if there is one."""
        stack = stack_of(self.model)
        if stack is None or not isinstance(self.inputs, torch.Tensor):
            return None
        if self.inputs.dtype != stack.dtype or self.inputs.device.type != "cpu":
            return None
        places = [stack.places.get(id(p)) for p in layout.params]
        return None if None in places else StackProbes(stack, places, self)


class Stack:
    """A model taken apart into linear layers, activations and what follows the last layer."""

    def __init__(self, model: nn.Module, linears: list[nn.Linear], codes: list[int], tail: Any):
        self.linears, self.tail = linears, tail
        self.codes = np.array(codes)
        self.modules = [m for m in model.modules() if isinstance(m, nn.Dropout)]
        self.dtype = linears[0].weight.dtype
        self.work: dict[int, Any] = {}
        self.link()

    def link(self) -> None:
        """Take views of the parameters where they are now."""
        self.places: dict[int, tuple[int, bool]] = {}
        weights, biases = [], []
        for n, linear in enumerate(self.linears):
            weights.append(linear.weight.detach().numpy())
            self.places[id(linear.weight)] = n, True
            if linear.bias is None:
                biases.append(np.zeros(linear.out_features, weights[-1].dtype))
            else:
                biases.append(linear.bias.detach().numpy())
                self.places[id(linear.bias)] = n, False
        self.weights, self.biases = tuple(weights), tuple(biases)
        self.addresses = self.where()

    def where(self) -> list[int]:
        """Return the addresses of the weights, which change when a model is moved or reloaded."""
        return [linear.weight.data_ptr() for linear in self.linears]

    def workspace(self, n_rows: int) -> Any:
        """Return room for the layers of a batch: (zs, outs, zs_new, outs_new)."""
        if n_rows not in self.work:
            kind = self.weights[0].dtype
            rooms = [tuple(np.empty((n_rows, len(w)), kind) for w in self.weights) for _ in "1234"]
            self.work = {n_rows: rooms}
        return self.work[n_rows]


class StackProbes:
    """Losses of one batch: at the parameters, and with single entries moved."""

    def __init__(self, stack: Stack, places: list[Any], closure: ForwardLoss) -> None:
        self.stack, self.places, self.closure = stack, places, closure
        x = closure.inputs
        if x.requires_grad or x.ndim != 2 or not x.is_contiguous():
            x = x.detach().flatten(1).contiguous()
        self.x = x.numpy()
        self.zs, self.outs, self.zs_new, self.outs_new = stack.workspace(len(self.x))
        self.code, self.labels, self.targets = self._loss()

    def _loss(self) -> tuple[int, Array, Array]:
        """Return the code of a compiled loss and its targets, or -1."""
        loss, tail, targets = self.closure.loss, self.stack.tail, self.closure.targets
        nothing = self.outs[-1][:0]
        whole = isinstance(targets, torch.Tensor) and targets.device.type == "cpu"
        if whole and targets.dtype == torch.int64 and targets.ndim == 1:
            labels = targets.numpy()
            inside = mlp.labels_fit(labels, self.outs[-1].shape[1])
            if inside and tail is None and is_plain(loss, F.cross_entropy, nn.CrossEntropyLoss):
                return mlp.ROWS, labels, nothing
            if inside and tail is not None and is_plain(loss, F.nll_loss, nn.NLLLoss):
                return (mlp.ROWS if tail.dim in (1, -1) else mlp.COLUMNS), labels, nothing
        same = whole and targets.dtype == self.stack.dtype
        if same and tail is None and is_plain(loss, F.mse_loss, nn.MSELoss):
            if targets.shape == self.outs[-1].shape:
                return mlp.SQUARES, NO_LABELS, targets.detach().contiguous().numpy()
        return -1, NO_LABELS, nothing

    def base(self) -> Any:
        """Return the loss at the parameters as they are."""
        stack = self.stack
        mlp.forward(self.x, stack.weights, stack.biases, stack.codes, self.zs, self.outs)
        return self._value(self.outs[-1])

    def moved(self, i: int, index: int, delta: float) -> Any:
        """Return the loss with one entry of the i-th parameter moved; ``base`` came before."""
        stack, (layer, is_weight) = self.stack, self.places[i]
        row, column = divmod(index, stack.weights[layer].shape[1]) if is_weight else (index, -1)
        rooms = self.zs, self.outs, self.zs_new, self.outs_new
        mlp.forward_moved(
            layer, row, column, delta, self.x, stack.weights, stack.biases, stack.codes, *rooms
        )
        return self._value(self.outs_new[-1])

    def _value(self, out: Array) -> Any:
        if self.code >= 0:
            return mlp.loss_of(self.code, out, self.labels, self.targets)
        outputs = torch.from_numpy(out)
        tail = self.stack.tail
        return self.closure.loss(outputs if tail is None else tail(outputs), self.closure.targets)


STACKS: WeakKeyDictionary[nn.Module, Stack | None] = WeakKeyDictionary()


def stack_of(model: nn.Module) -> Stack | None:
    """Return a model taken apart, remembered from the last time if nothing moved."""
    if model not in STACKS:
        STACKS[model] = take_apart(model)
    stack = STACKS[model]
    if stack is None or any(dropout.training for dropout in stack.modules):
        return None
    if stack.addresses != stack.where():
        stack = STACKS[model] = take_apart(model)
    return stack


def take_apart(model: nn.Module) -> Stack | None:
    """Return the layers of a plain perceptron, or None for any other model."""
    layers = [m for m in flatten(model) if not isinstance(m, nn.Dropout)]
    if layers and isinstance(layers[0], nn.Flatten) and layers[0].start_dim == 1:
        layers = layers[1:]
    tail = layers.pop() if layers and type(layers[-1]) is nn.LogSoftmax else None
    linears: list[nn.Linear] = []
    codes: list[int] = []
    for layer in layers:
        code = CODES.get(type(layer))
        if type(layer) is nn.GELU and layer.approximate == "none":
            code = mlp.GELU
        if type(layer) is nn.Linear and plain_linear(layer):
            linears.append(layer)
            codes.append(mlp.IDENTITY)
        elif code is not None and linears and codes[-1] == mlp.IDENTITY:
            codes[-1] = code
        else:
            return None
    if not linears or len({linear.weight.dtype for linear in linears}) > 1:
        return None
    if tail is not None and tail.dim not in (0, 1, -1):
        return None
    return Stack(model, linears, codes, tail)


def flatten(model: nn.Module) -> list[Any]:
    """Return the modules that a Sequential runs; a marker where a hook may interfere."""
    if model._forward_hooks or model._forward_pre_hooks:
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
