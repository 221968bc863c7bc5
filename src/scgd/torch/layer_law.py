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

.. math:: v \le w\, \min(1, \tau / \sqrt n) ,

with *w* the root mean square of the layer's *n* entries: about *n* probes teach a layer, and random
steps of this length move it by a multiple of its own size meanwhile. Nor may a layer of few entries
outgrow its size in a few steps: in a product of factors one of which starts at zero (LoRA) the
other hardly bends the loss, and the first one's curvature, known from before, would be wrong by the
square of that growth. The step is :math:`-\eta c v\, (s / \sqrt A)\, u`, the radius
:math:`\kappa v`. Layers are drawn in proportion to what a probe there is worth,
:math:`v \sqrt A`, and uniformly with probability ``MIXING``; one that has no effect is worth
nothing.

Losses may be noisy (a simulator, a batch drawn in the closure). Now and then the loss at the
parameters is evaluated twice, which tells the variance :math:`\sigma^2`. A curvature counts when it
shows above that and above the rounding of the loss; until then the radius grows, up to *w*, and
what is not seen there is bounded by the blur. Of a squared slope seen under noise,
:math:`\hat A = A + \sigma^2 / 2 h^2`, its own part counts: the best rate is
:math:`A / (\hat A C)`.

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
LEAST_DAMPING = 1e-4  # from here steps come back within a few thousand
BROAD = 1.0  # no pace and no radius goes beyond this many times the usual size of an entry
FAR = 1e3  # the same for layers of zeros, in units of the parameters, while nothing is known
SURPRISE = 16.0  # by how much what is seen must exceed what is known to count as news
CLEAR = 3.0  # a curvature counts when it changes the loss by this many scatters of repeated losses
REPEATS, SELDOM, OFTEN = 8, 64, 16  # see LayerLaw.n_bases
TINY, HUGE = 1e-30, 1e30  # beyond, sums leave float32
# Rows of the table of layers.
SQUARE, BEND, RADIUS, VISITS, BENDS, NOISE, DOUBT, N_ROWS = range(8)
# Numbers that all layers share.
LOSS, SPREAD, BEST, DAMPING, COST, QUICK, SLOW, JITTER, PAIRS, N_SHARED = range(10)


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
        self.rounding = 0.0  # of the losses as they come; evaluations know
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
        worth = self.paces() * np.sqrt(self.slopes())
        # A layer without curvature after a first round has no effect: it is worth nothing.
        unknown = (self.table[BENDS] == 0) & (self.table[VISITS] < PATIENCE)
        if isinstance(self.policy, Uniform) or np.any(unknown):
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
        """Whether a probe of a layer is to be two-sided: if its curvature is young, old or doubted.

        So is every probe under noise: two sides cost twice as much and have a quarter of the
        variance.
        """
        row = self.table[:, layer]
        young = row[BENDS] < 3 and row[VISITS] < PATIENCE
        noisy = row[NOISE] > 0.5 * row[SQUARE]
        return bool(young or noisy or row[DOUBT] or row[VISITS] % EVERY == 0)

    def n_bases(self) -> int:
        """Return how often the loss at the parameters is to be evaluated in this step.

        Twice now and then, to learn how far repeated losses differ: at the first step, and if they
        did, in some more and again and again.
        """
        noisy, n = self.shared[JITTER] > 0.0, self.n_steps
        return 2 if n % (OFTEN if noisy else SELDOM) == 0 or (noisy and n < REPEATS) else 1

    def compare(self, one: float, two: float) -> None:
        """Take two losses at the same parameters: half their squared difference is the noise."""
        shared = self.shared
        shared[PAIRS] += 1
        weight = max(1.0 / shared[PAIRS], FORGET_LOSS)
        shared[JITTER] += weight * (0.5 * (one - two) ** 2 - shared[JITTER])

    @property
    def widest(self) -> Floats:
        """How far probes go while nothing is seen there."""
        return np.where(self.usual > 0, BROAD * self.usual, FAR)

    def eps(self, layer: int) -> float:
        """Return the relative rounding of a loss."""
        return max(float(self.finest[layer][0]), self.rounding)

    def blur(self, layer: int, loss: float) -> float:
        """Return what the loss may change by on two sides together without any curvature."""
        noise = CLEAR * sqrt(6.0 * self.shared[JITTER])  # of f(+h) + f(-h) - 2 f(0)
        return ROUNDING * self.eps(layer) * abs(loss) + noise

    def scatter(self, layer: int, loss: float) -> float:
        """Return the variance of one loss, by noise and by rounding."""
        return float(self.shared[JITTER] + (self.eps(layer) * loss) ** 2 / 12.0)

    def see(self, layer: int, radius: float, loss: float, up: float, down: float | None) -> float:
        """Take the loss and its changes at plus (and minus) the radius; return the slope.

        A loss far above what slope and curvature explain tells that the curvature has grown, as
        when another layer has moved: such a probe counts for nothing and the next one is two-sided.
        """
        row = self.table[:, layer]
        row[VISITS] += 1
        if down is None:
            known = 0.5 * radius**2 * row[BEND] + OUTLIER * radius * sqrt(row[SQUARE])
            row[DOUBT] = up > SURPRISE * known + self.blur(layer, loss)
            if row[DOUBT]:
                return 0.0
            slope, share = up / radius - 0.5 * radius * row[BEND], 2.0
        else:
            slope, share = (up - down) / (2.0 * radius), 0.5
            row[DOUBT] = 0.0
            self.bend(layer, radius, abs(up + down), self.blur(layer, loss))
        weight = max(1.0 / row[VISITS], FORGET_SLOPE)
        row[SQUARE] += weight * (slope**2 - row[SQUARE])
        row[NOISE] += weight * (share * self.scatter(layer, loss) / radius**2 - row[NOISE])
        return slope  # type: ignore[no-any-return]

    def bend(self, layer: int, radius: float, change: float, blur: float) -> None:
        """Take what the loss changed by on two sides together, twice the share of the curvature.

        One lost in rounding or noise is not counted and the next probe goes further, unless it
        should have been seen at the curvature known, or at the widest radius: then the blur is a
        bound.
        """
        row = self.table[:, layer]
        if change <= blur and row[BEND] * radius**2 <= blur:
            if row[RADIUS] < self.widest[layer]:
                return
            change = blur
        row[BENDS] += 1
        bend, weight = change / radius**2, max(1.0 / row[BENDS], FORGET_BEND)
        if bend > SURPRISE * row[BEND]:
            weight = 1.0
        row[BEND] += weight * (bend - row[BEND])

    def slopes(self) -> Floats:
        """Return the mean squared slope of each layer, without what noise adds to it."""
        return np.maximum(self.table[SQUARE] - self.table[NOISE], 0.0)  # type: ignore[no-any-return]

    def paces(self) -> Floats:
        """Return how far each layer should go along its usual slope; 0 without a curvature."""
        known = self.table[BEND] > TINY
        natural = np.sqrt(self.slopes()) / np.where(known, self.table[BEND], np.inf)
        farthest = self.usual * np.minimum(TRUST / np.sqrt(self.n_entries), BROAD)
        return np.minimum(natural, np.where(self.usual > 0, farthest, HUGE))

    def rate(self, layer: int, lr: float) -> float:
        """Return the learning rate of a layer, in its own units."""
        square, slope = self.table[SQUARE, layer], sqrt(self.slopes()[layer])
        boldness = min(lr * SHARE, BOLDEST) * self.shared[DAMPING]
        # Of a slope seen under noise its own share counts: slope**2 / square.
        return float(boldness * self.paces()[layer] * slope / square) if square > 0.0 else 0.0

    def step(self, layer: int, slope: float, lr: float) -> float:
        """Return how far to go along a direction, in units of it."""
        most = OUTLIER * sqrt(self.table[SQUARE, layer])
        step = -self.rate(layer, lr) * min(max(slope, -most), most)
        self.shared[COST] += 0.5 * step**2 * self.table[BEND, layer]
        return step

    def widen(self, layer: int, loss: float) -> None:
        """Set the next radius: about a step, above the blur of the loss and rounding of entries.

        While nothing is seen it grows, up to the usual size of the entries.
        """
        row = self.table[:, layer]
        now, widest = row[RADIUS], float(self.widest[layer])
        if row[BEND] > TINY:
            floor = min(widest, sqrt(2.0 * self.blur(layer, loss) / row[BEND]))
            finest = self.finest[layer][1] * self.usual[layer]
            wanted = max(REACH * self.paces()[layer], floor, finest)
            widest = widest if self.usual[layer] > 0 else HUGE  # zeros have no size
        else:
            wanted = STRETCH * now
        row[RADIUS] = min(max(wanted, now / STRETCH), now * STRETCH, widest)

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
        shared[DAMPING] = min(1.0, max(LEAST_DAMPING, factor * shared[DAMPING]))
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
        return np.array_equal(self.n_entries, state["sizes"])

    def load_state_dict(self, state: dict[str, Any] | None) -> None:
        """Take up what another law of the same layers remembers."""
        if state is not None and self.fits(state):
            # What an older version did not know comes last and keeps its value.
            self.table[: len(state["table"])] = state["table"]
            self.shared[: len(state["shared"])] = state["shared"]
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
