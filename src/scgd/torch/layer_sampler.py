r"""How far to probe a layer and how far to move it, learned from the losses seen.

A probe moves one layer along a random sign vector *u* by its radius *h*. Two losses around the
parameters tell the slope and the curvature along *u*; over directions their mean squares and means
are :math:`A = \|g\|^2` and :math:`C = \operatorname{tr} H` of the layer. For a step
:math:`-a\,s\,u` along a slope *s* a quadratic model loses most at :math:`a = 1/C`, so

.. math:: \text{step} = -\frac{\eta\, c}{C}\, s\, u , \qquad h = \kappa\, \frac{\sqrt{A}}{C} ,

with :math:`\eta` the user's ``lr``: the rate has no unit (it is a share of the way to the minimum
of a parabola), and a probe goes about as far as a step. Most probes are
one-sided, with the known curvature subtracted; every few visits one is two-sided. A curvature of
few readings shortens the step: it may be far too small.

Curvature alone does not bound the steps: below a head drawn at random the loss hardly bends, and
random steps would wear down what a pretrained layer knows before the loss can tell. So a pace
:math:`v = \sqrt A / C` is cut at

.. math:: v \le w\, \min(1, \tau / \sqrt n) ,

with *w* the size of the layer's *n* entries: about *n* probes teach a layer, and random steps of
this length move it by a multiple of its own size meanwhile. Nor may a layer of few entries outgrow
its size in a few steps: in a product of factors one of which starts at zero (LoRA) the other hardly
bends the loss, and the first one's curvature, known from before, would be wrong by the square of
that growth. The size is the root mean square of the entries at the moment, or that of a freshly
drawn layer of the same shape (one by the root of its inputs; one for a vector) if that is larger:
a layer that starts near zero learns as fast as one that starts at zero. The step is
:math:`-\eta c v\, (s / \sqrt A)\, u`, the radius :math:`\kappa v`. Layers are drawn in proportion
to what a probe there is worth, :math:`v \sqrt A`, and uniformly with probability ``MIXING``; one
that has no effect is worth nothing.

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
from dataclasses import asdict, dataclass, fields
from math import inf, sqrt
from typing import Any

import numpy as np
import torch

from scgd.policies import Uniform
from scgd.torch.layout import Layout, real_entries
from scgd.torch.memory import Memory, Sampler
from scgd.typing import Floats

SHARE = 0.4
"""c at most: below one, because several layers move at once and a batch's slope is half noise."""
REACH = 0.5
"""kappa: a probe sees farther than a step goes."""
TRUST = 100.0
"""tau: a layer of more than tau squared entries may move less than its size in one pace."""
CLIP = 3.0
"""Slopes beyond this many times their root mean square count as that (Gaussian: 1 in 370)."""
MIXING = 0.3
"""Share of the probes drawn uniformly, so that layers are seen that have become worth more."""
EVERY = 8
"""Every so many visits a probe is two-sided: an eighth more forwards keep the curvature fresh."""
REPEAT = 32
"""Every so many steps the loss at the parameters is evaluated twice: below 1 % of the forwards."""
FORGET_SLOPE, FORGET_CURVATURE = 0.02, 0.1
"""Weights of the newest: of about 50 slopes and 10 curvatures."""
STRETCH = 4.0
"""How much a radius changes from one visit to the next."""
PATIENCE = 12
"""Visits of the first round to a layer whose loss does not bend: 4**12 covers any unit."""
CLEAR = 3.0
"""Standard deviations of the loss that a curvature must show above."""
SURPRISE = 16.0
"""By how much a loss or a curvature must exceed what is known to replace it."""
FEW = 4
"""Readings after which half of a curvature is believed: of a single one, a fifth."""
FORGET_LOSS = 0.05
"""Weight of the newest of about 20 losses."""
RECOVERY, STALL = 1.006, 0.99
"""Factors on the steps while the loss falls by more, and by less, than the curvature costs."""
SETTLING = 10
"""Steps before the running loss means something."""
LEAST = 1e-4
"""The shortest steps: from here they come back within a few thousand."""
ROUNDINGS = 2.0
"""Roundings of its type that a loss is off by: one of the sum, one of what it sums."""


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


@dataclass
class Layer:
    """What is known about one layer of n entries."""

    n_entries: int
    size: float = 0.0
    """Root mean square of the entries, or that of a fresh layer of this shape if it is larger."""
    radius: float = 0.0
    slope_square: float = 0.0
    slope_noise: float = 0.0
    """What noise adds to ``slope_square``."""
    curvature: float = 0.0
    n_probes: int = 0
    n_curvatures: int = 0
    in_doubt: bool = False
    """The last one-sided probe has seen a loss that slope and curvature do not explain."""

    @property
    def farthest(self) -> float:
        """The longest pace that the size of the layer allows."""
        return self.size * min(1.0, TRUST / sqrt(self.n_entries))

    @property
    def slope(self) -> float:
        """Root mean square of the slopes, without what noise adds to it."""
        return sqrt(max(self.slope_square - self.slope_noise, 0.0))

    @property
    def pace(self) -> float:
        """How far to go along the usual slope; 0 while no curvature is known."""
        return min(self.slope / self.curvature, self.farthest) if self.curvature > 0.0 else 0.0

    @property
    def worth(self) -> float:
        """What a probe here is expected to bring."""
        return self.pace * self.slope

    @property
    def trust(self) -> float:
        """The share of a step to take: a curvature of few readings may be far too small."""
        return self.n_curvatures / (self.n_curvatures + FEW)

    @property
    def is_new(self) -> bool:
        """Whether the layer has no curvature yet, and may have one."""
        return self.n_curvatures == 0 and self.n_probes < PATIENCE

    @property
    def needs_both_sides(self) -> bool:
        """Whether the next probe is two-sided: the curvature is young, old or doubted.

        So is every probe under noise: two sides cost twice as much and have a quarter of the
        variance.
        """
        young = self.n_curvatures < 3 and self.n_probes < PATIENCE
        noisy = self.slope_noise > 0.5 * self.slope_square
        return young or noisy or self.in_doubt or self.n_probes % EVERY == 0

    def see(self, scatter: float, up: float, down: float | None) -> float:
        """Take the changes of the loss at plus (and minus) the radius; return the slope.

        ``scatter`` is the standard deviation of a loss. A loss far above what slope and curvature
        explain tells that the curvature has grown, as when another layer has moved: such a probe
        counts for nothing and the next one is two-sided.
        """
        radius, blur = self.radius, CLEAR * sqrt(6.0) * scatter  # of f(+h) + f(-h) - 2 f(0)
        self.n_probes += 1
        bent = 0.5 * radius**2 * self.curvature
        if down is None:
            known = bent + CLIP * radius * sqrt(self.slope_square)
            self.in_doubt = up > SURPRISE * known + blur
            if self.in_doubt:
                return 0.0
            slope, share = (up - bent) / radius, 2.0
        else:
            slope, share = (up - down) / (2.0 * radius), 0.5
            self.in_doubt = False
            self.bend(abs(up + down), blur)
        weight = max(1.0 / self.n_probes, FORGET_SLOPE)
        self.slope_square += weight * (slope**2 - self.slope_square)
        self.slope_noise += weight * (share * (scatter / radius) ** 2 - self.slope_noise)
        return slope

    def bend(self, change: float, blur: float) -> None:
        """Take what the loss changed by on two sides together, twice the share of the curvature.

        One lost in rounding or noise is not counted and the next probe goes farther, unless it
        should have been seen at the curvature known, or at the size of the layer: then the blur is
        a bound.
        """
        if change <= blur and self.curvature * self.radius**2 <= blur:
            if self.radius < self.size:
                return
            change = blur
        self.n_curvatures += 1
        new, weight = change / self.radius**2, max(1.0 / self.n_curvatures, FORGET_CURVATURE)
        if new > SURPRISE * self.curvature:
            weight = 1.0
        self.curvature += weight * (new - self.curvature)

    def rate(self, boldness: float) -> float:
        """Return the learning rate: of a slope seen under noise its own share counts."""
        square = self.slope_square
        return boldness * self.pace * self.slope / square if square > 0.0 else 0.0

    def step(self, slope: float, boldness: float) -> float:
        """Return how far to go along a direction, in units of it."""
        most = CLIP * sqrt(self.slope_square)
        return -self.rate(boldness) * min(max(slope, -most), most)

    def widen(self, scatter: float, finest: float) -> None:
        """Set the next radius: about a step, above the scatter of the loss and rounding of entries.

        While nothing is seen it grows, up to the size of the layer.
        """
        wanted = STRETCH * self.radius
        if self.curvature > 0.0:
            floor = sqrt(2.0 * CLEAR * sqrt(6.0) * scatter / self.curvature)
            wanted = max(REACH * self.pace, min(floor, self.size), finest * self.size)
        self.radius = min(max(wanted, self.radius / STRETCH), self.radius * STRETCH, self.size)

    def shrink(self) -> None:
        """Stay closer next time: the loss was not finite there."""
        self.radius /= STRETCH
        self.n_probes += 1


@dataclass
class LossTrend:
    r"""The loss over the steps, which lengthens and shortens them.

    Of a slope *s* seen on a batch only a part is the loss's own, so a rate *a* gains
    :math:`a \rho s^2 - \tfrac12 a^2 s^2 C`: no single batch tells :math:`\rho`, but at the best
    rate the loss falls by just as much as the curvature costs, the second term. So a mean over
    about 20 batches of the loss plus all that the steps so far have cost is compared with one over
    80, and the steps recover while it falls. The mean of the last batches scatters by a sixth of a
    single one; a rise by a whole scatter above the least mean seen is no accident and halves them.
    """

    boldness: float = 0.5
    """A factor on all steps, first 0.5: in a product of factors one of which starts at zero each
    step makes the other's curvature larger than its last reading."""
    cost: float = 0.0
    mean: float = 0.0
    variance: float = 0.0
    least: float = inf
    paid_fast: float = 0.0
    paid_slow: float = 0.0
    noise: float = 0.0
    """Variance of losses repeated at the same parameters."""
    n_pairs: int = 0

    def compare(self, one: float, two: float) -> None:
        """Take two losses at the same parameters: half their squared difference is the noise."""
        self.n_pairs += 1
        weight = max(1.0 / self.n_pairs, FORGET_LOSS)
        self.noise += weight * (0.5 * (one - two) ** 2 - self.noise)

    def scatter(self, loss: float, rounding: float) -> float:
        """Return the standard deviation of one loss, by noise and by rounding."""
        return sqrt(self.noise + (ROUNDINGS * rounding * loss) ** 2)

    def watch(self, loss: float, n: int) -> None:
        """Note the loss of step n, counted from 1."""
        weight = max(1.0 / n, FORGET_LOSS)
        self.mean += weight * (loss - self.mean)
        square = (loss - self.mean) ** 2
        if n > SETTLING:  # a run that diverges must not hide in the scatter it makes
            square = min(square, 4.0 * self.variance)
        self.variance += weight * (square - self.variance)
        paid = loss + self.cost
        self.paid_fast += weight * (paid - self.paid_fast)
        self.paid_slow += max(1.0 / n, 0.25 * FORGET_LOSS) * (paid - self.paid_slow)
        factor = RECOVERY if self.paid_fast <= self.paid_slow else STALL
        self.boldness = min(1.0, max(LEAST, factor * self.boldness))
        if n > SETTLING:
            self.least = min(self.least, self.mean)
            if self.mean > self.least + sqrt(self.variance):
                self.boldness *= 0.5
                self.least = self.mean


class LayerSampler(Sampler):
    """The layers of a group, what is known about them, and the draw of those to probe.

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

    def __init__(self, policy: Any, layout: Layout, n_draws: int, seed: int) -> None:
        self.policy, self.layout, self.n_draws, self.seed = policy, layout, n_draws, seed
        self.memory = Memory(layout)
        self.members = layers_of(layout.params)
        self.params = [[layout.params[i] for i in members] for members in self.members]
        self.layers = [Layer(sum(p.numel() for p in ps)) for ps in self.params]
        self.trend = LossTrend()
        self.rounding = 0.0  # of the losses as they come; evaluations know

    def resize(self, n_draws: int) -> None:
        """Probe another number of layers from now on."""
        self.n_draws = n_draws

    def measure(self, i: int) -> None:
        """Note how large the entries of a layer are by now."""
        params, layer = self.params[i], self.layers[i]
        norms = torch._foreach_norm([real_entries(p) for p in params])
        square = sum(float(norm) ** 2 for norm in norms)
        layer.size = sqrt(max(square / layer.n_entries, fresh_square(params)))

    def weights(self) -> Floats:
        """Return the sampling probabilities in force, one per layer."""
        n = len(self.layers)
        worth = np.array([layer.worth for layer in self.layers])
        total = float(worth.sum())
        equal = isinstance(self.policy, Uniform) or any(layer.is_new for layer in self.layers)
        if equal or not 0.0 < total < inf:
            return np.full(n, 1.0 / n)
        return (1.0 - MIXING) * worth / total + MIXING / n

    def draw(self) -> tuple[list[int], list[int]]:
        """Return the layers to probe and the seeds of their directions: a first round takes all."""
        for i, layer in enumerate(self.layers):
            if layer.size == 0.0:  # the first step: until now parameters may be without values
                self.measure(i)
                layer.radius = 1e-3 * layer.size
        rng = np.random.default_rng([self.seed, self.n_steps])
        seeds = rng.integers(0, 1 << 62, self.n_draws).tolist()
        if any(layer.n_curvatures < 2 and layer.n_probes < PATIENCE for layer in self.layers):
            order = [layer.n_curvatures + layer.n_probes / PATIENCE for layer in self.layers]
            return np.resize(np.argsort(order, kind="stable"), self.n_draws).tolist(), seeds
        drawn = rng.choice(len(self.layers), self.n_draws, p=self.weights())
        return drawn.tolist(), seeds

    def n_bases(self) -> int:
        """Return how often to evaluate the loss at the parameters: twice at powers of two, too."""
        n = self.n_steps
        return 2 if n % REPEAT == 0 or n & (n - 1) == 0 else 1

    def learn(
        self, i: int, radius: float, loss: float, changes: Floats, lr: float
    ) -> tuple[float, float]:
        """Learn from a probe; return the step along its direction and the layer's learning rate."""
        layer = self.layers[i]
        if not np.all(np.isfinite(changes)):
            layer.shrink()
            return 0.0, 0.0
        eps = max(torch.finfo(real_entries(p).dtype).eps for p in self.params[i])
        single = min(eps, torch.finfo(torch.float32).eps)
        scatter = self.trend.scatter(loss, max(single, self.rounding))
        layer.radius = radius
        down = float(changes[1]) if len(changes) > 1 else None
        slope = layer.see(scatter, float(changes[0]), down)
        boldness = min(lr * SHARE, 1.0) * self.trend.boldness * layer.trust
        step = layer.step(slope, boldness)
        self.trend.cost += 0.5 * step**2 * layer.curvature
        layer.widen(scatter, 2.0 * eps)
        return step, layer.rate(boldness)

    def state_dict(self) -> dict[str, Any]:
        """Return what it remembers."""
        kept = {f.name: [getattr(layer, f.name) for layer in self.layers] for f in fields(Layer)}
        arrays = {name: np.array(values) for name, values in kept.items()}
        return {**arrays, "trend": asdict(self.trend)}

    def fits(self, state: dict[str, Any]) -> bool:
        """Whether a state belongs to layers of the same sizes."""
        sizes = [layer.n_entries for layer in self.layers]
        return np.array_equal(sizes, state.get("n_entries", []))

    def load_state_dict(self, state: dict[str, Any] | None) -> None:
        """Take up what another sampler of the same layers remembers."""
        if state is not None and self.fits(state):
            for f in fields(Layer):
                for layer, value in zip(self.layers, state[f.name].tolist(), strict=True):
                    setattr(layer, f.name, value)
            self.trend = LossTrend(**state["trend"])


def fresh_square(params: Sequence[torch.Tensor]) -> float:
    """Return the mean square of the entries of a fresh layer: one by the inputs of an output."""
    first = params[0]
    return first.shape[0] / first.numel() if first.ndim > 1 else 1.0
