r"""How far to probe a layer and how far to move it, learned from the losses seen.

A probe moves one layer along a random sign vector *u* by its radius *h*. Two losses around the
parameters tell the slope and the curvature along *u*; over directions their mean squares and means
are :math:`A = \|g\|^2` and :math:`C = \operatorname{tr} H` of the layer. For a step
:math:`-a\,s\,u` along a slope *s* a quadratic model loses most at :math:`a = 1/C`, so

.. math:: \text{step} = -\frac{\eta\, c}{C}\, s\, u , \qquad h = \kappa\, \frac{\sqrt{A}}{C} ,

with :math:`\eta` the user's ``lr``: the rate has no unit (it is a share of the way to the minimum
of a parabola), and a probe goes about as far as a step. Most probes are
one-sided, with the known curvature subtracted; every few visits one is two-sided.

Curvature alone does not bound the steps: below a head drawn at random the loss hardly bends, and
random steps would wear down what a pretrained layer knows before the loss can tell. So a pace
:math:`v = \sqrt A / C` is cut at

.. math:: v \le \tau\, w / \sqrt n ,

with *w* the root mean square of the layer's *n* entries: about *n* probes teach a layer, and random
steps of this length move it by a multiple of its own size meanwhile. The step is
:math:`-\eta c v\, (s / \sqrt A)\, u`, the radius :math:`\kappa v`. Layers are drawn in proportion
to what a probe there is worth, :math:`v \sqrt A`, and uniformly with probability ``MIXING``.

Why :math:`1/C`: :math:`E[(g \cdot u)^2] = \|g\|^2` and :math:`E[u^T H u] = \operatorname{tr} H`, so
the expected loss after the step is
:math:`f - a\|g\|^2 + \tfrac12 a^2 \|g\|^2 \operatorname{tr} H` up to terms of one eigenvalue.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, ClassVar

import numpy as np
import torch

from scgd.policies import Uniform
from scgd.torch.layout import Layout, real_entries
from scgd.torch.memory import Memory
from scgd.typing import Array, Floats

__all__ = ["LayerLaw", "layers_of"]

SHARE = 0.15  # c: below one because several layers move at once, and for the noise of a batch
REACH = 0.5  # kappa
TRUST = 100.0  # tau
BOLDEST = 1.0  # no step goes beyond the minimum of its own parabola
OUTLIER = 3.0  # slopes beyond this many times their usual size count as that
MIXING = 0.3
EVERY = 8  # every how many visits a probe is two-sided
FORGET_SLOPE, FORGET_BEND, FORGET_LOSS, FORGET_SLOW = 0.02, 0.1, 0.05, 0.0125
STRETCH = 4.0  # how much a radius changes from one visit to the next
RECOVERY = 1.003  # per step, while the loss falls and at the start
STALL = 0.99  # per step while the loss falls by less than the curvature costs
SETTLING = 10  # steps before the running loss means something
ROUNDING = 16.0  # a curvature counts when it changes the loss by this many roundings
PATIENCE = 12  # visits of the first round to a layer without curvature
TINY = 1e-30
# Rows of the table of layers.
SQUARE, BEND, RADIUS, VISITS, BENDS, N_ROWS = range(6)
# Numbers that all layers share.
LOSS, SPREAD, BEST, DAMPING, COST, QUICK, SLOW, N_SHARED = range(8)


def layers_of(params: Sequence[torch.Tensor]) -> list[list[int]]:
    """Return the layers of some parameters: a matrix and the vectors that follow it.

    Examples
    --------
    >>> from torch import nn
    >>> model = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2), nn.Linear(2, 1))
    >>> layers_of(list(model.parameters()))
    [[0, 1, 2, 3], [4, 5]]
    """
    layers: list[list[int]] = []
    for i, p in enumerate(params):
        if p.numel() == 0:
            continue
        if p.ndim > 1 or not layers:
            layers.append([])
        layers[-1].append(i)
    return layers


class LayerLaw:
    """What is known about the layers of a group.

    Parameters
    ----------
    policy
        ``Uniform`` draws layers equally often; anything else by what they are worth.
    layout
        The parameters.
    n_draws
        Probes per step.
    seed
        The seed of layers and directions.
    """

    sampling = "distinct"
    fusible = False
    learns = False
    pending = None
    whole_units = False
    quantities: ClassVar[dict[str, tuple[Any, bool]]] = {}

    def __init__(self, policy: Any, layout: Layout, n_draws: int, seed: int) -> None:
        self.policy, self.layout, self.n_draws, self.seed = policy, layout, n_draws, seed
        self.memory = Memory(layout)
        self.layers = layers_of(layout.params)
        self.params = [[layout.params[i] for i in layer] for layer in self.layers]
        self.table = np.zeros((N_ROWS, len(self.layers)))
        self.shared = np.zeros(N_SHARED)
        self.shared[[BEST, DAMPING]] = np.inf, 0.5
        self.usual = np.array([usual_size(params) for params in self.params])
        self.table[RADIUS] = 1e-3 * np.where(self.usual > 0, self.usual, 1.0)
        self.finest = [finest(params) for params in self.params]
        self.n_entries = np.array([sum(p.numel() for p in params) for params in self.params])

    @property
    def n_steps(self) -> int:
        """The number of steps taken."""
        return int(self.memory.step)

    def resize(self, n_draws: int) -> None:
        """Probe another number of layers from now on."""
        self.n_draws = n_draws

    def weights(self) -> Floats:
        """Return the sampling weights in force, one per layer."""
        n_layers = len(self.layers)
        equal = np.full(n_layers, 1.0 / n_layers)
        worth = self.paces() * np.sqrt(self.table[SQUARE])
        if isinstance(self.policy, Uniform) or not np.all(self.table[BENDS] > 0):
            return equal
        if not 0.0 < worth.sum() < np.inf:
            return equal
        return (1.0 - MIXING) * worth / worth.sum() + MIXING * equal  # type: ignore[no-any-return]

    def draw(self) -> tuple[list[int], list[int]]:
        """Return the layers to probe and the seeds of their directions: a first round takes all."""
        rng = np.random.default_rng([self.seed, self.n_steps])
        seeds = rng.integers(0, 1 << 62, self.n_draws).tolist()
        visits, bends = self.table[VISITS], self.table[BENDS]
        if np.any((bends < 2) & (visits < PATIENCE)):
            first = np.argsort(bends + visits / PATIENCE, kind="stable")
            return np.resize(first, self.n_draws).tolist(), seeds
        layers = rng.choice(len(self.layers), self.n_draws, p=self.weights())
        return layers.tolist(), seeds

    def both_sides(self, layer: int) -> bool:
        """Whether a probe of a layer is to be two-sided."""
        return bool(self.table[BENDS, layer] < 3 or self.table[VISITS, layer] % EVERY == 0)

    def see(self, layer: int, radius: float, loss: float, up: float, down: float | None) -> float:
        """Take the loss and its changes at plus (and minus) the radius; return the slope.

        A curvature lost in the rounding of the loss is not counted; the next probe goes further.
        """
        row = self.table[:, layer]
        if down is None:
            slope = up / radius - 0.5 * radius * row[BEND]
        else:
            slope = (up - down) / (2.0 * radius)
            if abs(up + down) > ROUNDING * self.finest[layer][0] * abs(loss):
                row[BENDS] += 1
                bend = abs(up + down) / radius**2
                row[BEND] += max(1.0 / row[BENDS], FORGET_BEND) * (bend - row[BEND])
        row[VISITS] += 1
        row[SQUARE] += max(1.0 / row[VISITS], FORGET_SLOPE) * (slope**2 - row[SQUARE])
        return slope  # type: ignore[no-any-return]

    def paces(self) -> Floats:
        """Return how far each layer should go along its usual slope; 0 without a curvature."""
        known = self.table[BEND] > TINY
        natural = np.sqrt(self.table[SQUARE]) / np.where(known, self.table[BEND], np.inf)
        farthest = np.where(self.usual > 0, TRUST * self.usual / np.sqrt(self.n_entries), np.inf)
        return np.minimum(natural, farthest)  # type: ignore[no-any-return]

    def rate(self, layer: int, lr: float) -> float:
        """Return the learning rate of a layer, in its own units."""
        square = self.table[SQUARE, layer]
        boldness = min(lr * SHARE, BOLDEST) * self.shared[DAMPING]
        return float(boldness * self.paces()[layer] / sqrt(square)) if square > 0.0 else 0.0

    def step(self, layer: int, slope: float, lr: float) -> float:
        """Return how far to go along a direction, in units of it."""
        most = OUTLIER * sqrt(self.table[SQUARE, layer])
        step = -self.rate(layer, lr) * min(max(slope, -most), most)
        self.shared[COST] += 0.5 * step**2 * self.table[BEND, layer]
        return step

    def widen(self, layer: int, loss: float) -> None:
        """Set the next radius: about a step, above the rounding of loss and entries."""
        row, eps = self.table[:, layer], self.finest[layer][0]
        now = row[RADIUS]
        if row[BEND] > TINY:
            floor = sqrt(2.0 * ROUNDING * eps * abs(loss) / row[BEND])
            wanted = max(
                REACH * self.paces()[layer], floor, self.finest[layer][1] * self.usual[layer]
            )
        else:
            wanted = STRETCH * now
        row[RADIUS] = min(max(wanted, now / STRETCH), now * STRETCH)

    def shrink(self, layer: int) -> None:
        """Stay closer next time: the loss was not finite there."""
        self.table[RADIUS, layer] /= STRETCH
        self.table[VISITS, layer] += 1

    def watch(self, loss: float) -> None:
        r"""Note the loss of a batch; shorten the steps while its running mean falls too little.

        Of a slope *s* seen on a batch only a part is the loss's own, so a rate *a* gains
        :math:`a \rho s^2 - \tfrac12 a^2 s^2 C`: no single batch tells :math:`\rho`, but at the best
        rate the loss falls by just as much as the curvature costs, the second term. So a mean over
        about 20 batches of the loss plus all that the steps so far have cost is compared with one
        over 80, and the steps recover while it falls. The mean of the last batches scatters by a
        sixth of a single one; a rise by a whole scatter above the least mean seen is no accident
        and halves the steps.
        """
        shared, n = self.shared, self.n_steps + 1
        weight = max(1.0 / n, FORGET_LOSS)
        shared[LOSS] += weight * (loss - shared[LOSS])
        square = (loss - shared[LOSS]) ** 2
        if n > SETTLING:  # a run that diverges must not hide in the scatter it makes
            square = min(square, 4.0 * shared[SPREAD])
        shared[SPREAD] += weight * (square - shared[SPREAD])
        paid = loss + shared[COST]
        shared[QUICK] += weight * (paid - shared[QUICK])
        shared[SLOW] += max(1.0 / n, FORGET_SLOW) * (paid - shared[SLOW])
        factor = RECOVERY if shared[QUICK] <= shared[SLOW] else STALL
        shared[DAMPING] = min(1.0, factor * shared[DAMPING])
        if n > SETTLING:
            shared[BEST] = min(shared[BEST], shared[LOSS])
            if shared[LOSS] > shared[BEST] + sqrt(shared[SPREAD]):
                shared[DAMPING] *= 0.5
                shared[BEST] = shared[LOSS]

    def state_dict(self) -> dict[str, Any]:
        """Return what it remembers."""
        kept = {"table": self.table, "shared": self.shared, "usual": self.usual}
        return {**{name: array.copy() for name, array in kept.items()}, "sizes": self.n_entries}

    def fits(self, state: dict[str, Any]) -> bool:
        """Whether a state belongs to layers of the same sizes."""
        return bool(
            np.array_equal(self.n_entries, state["sizes"]) and len(state["shared"]) == N_SHARED
        )

    def load_state_dict(self, state: dict[str, Any] | None) -> None:
        """Take up what another law of the same layers remembers."""
        if state is not None and self.fits(state):
            self.table[...], self.shared[...] = state["table"], state["shared"]
            self.usual[...] = state["usual"]  # of the first parameters, not of those by now


def usual_size(params: Sequence[torch.Tensor]) -> float:
    """Return the root mean square of some entries."""
    n = sum(p.numel() for p in params)
    norms = [float(torch.linalg.vector_norm(real_entries(p).float())) for p in params]
    return sqrt(sum(norm**2 for norm in norms) / n)


def finest(params: Sequence[torch.Tensor]) -> Array:
    """Return the rounding of a loss, and the least radius entries notice, in their usual size."""
    eps = max(torch.finfo(real_entries(p).dtype).eps for p in params)
    single = min(eps, torch.finfo(torch.float32).eps)
    return np.array([single, 2.0 * eps])
