"""What the losses of the steps tell: how bold to be, and how far a loss is off."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

__all__ = ["LossTrend"]

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

    boldness: float = 0.2
    """A factor on all steps, first 0.2: the first curvatures are single readings."""
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
