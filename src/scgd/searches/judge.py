"""Is the new point better than the old one? Ask both, with the same samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scgd.questions import EVERYWHERE, Point, Question, joint
from scgd.searches.base import Finding, Search, Standing
from scgd.typing import Floats

__all__ = ["Judge", "Verdict"]


@dataclass(frozen=True)
class Verdict(Finding):
    """The mean difference f(point) - f(reference) and its standard error.

    The mean is infinite where most pairs were lost.

    Parameters
    ----------
    mean, error
        Mean difference of the pairs, and its standard error.
    median
        Difference of the medians.
    lower
        Share of the pairs in which the point has the lower value.
    against
        By how many standard errors more pairs are against the point than for it (sign test).
    """

    mean: float
    error: float
    median: float = 0.0
    lower: float = 0.5
    against: float = 0.0

    def worse(self, n_errors: float) -> bool:
        """Tell whether the point is worse by more than so many standard errors."""
        return self.mean > n_errors * self.error

    def outdone(self, n_errors: float) -> bool:
        """Tell whether the point is worse by the mean, or by the pairs where the mean is silent.

        Heavy tails make the error of a mean as large as the mean; they do not touch signs.
        """
        return self.worse(n_errors) or (self.against > n_errors and not self.better(1))

    @property
    def worse_by_rank(self) -> bool:
        """Whether the point's median is higher and less than half of the pairs favour it."""
        return self.median > 0 and self.lower < 0.5

    def better(self, n_errors: float) -> bool:
        """Tell whether the point is better by more than so many standard errors."""
        return self.mean < -n_errors * self.error


class Judge(Search):
    r"""Compare the point with a reference on so many common samples.

    Differences are paired where the sample can be held fixed. Any number of pairs may be open.

    Parameters
    ----------
    point
        Where the run stands.
    reference
        What it is compared with.
    n_samples
        Pairs of values.
    """

    name: ClassVar[str] = "judge"
    found: ClassVar[type[Finding]] = Verdict
    memory: ClassVar[tuple[str, ...]] = ("here", "there", "n_lost", "reference")
    sequential: ClassVar[bool] = False

    def __init__(self, point: Point, reference: Floats, n_samples: int) -> None:
        super().__init__(point)
        self.reference, self.n_samples = reference, n_samples
        self.here: list[float] = []
        self.there: list[float] = []
        self.n_lost = 0

    @property
    def cost(self) -> int:
        """Evaluations of the next question."""
        return 2

    def ask(self) -> Question | None:
        """Return the point and the reference."""
        if self.n_posed == self.n_samples:
            return None
        both = np.stack([self.point.x, self.reference])
        return joint(self.point, EVERYWHERE, both, far=True)

    def tell(self, question: Question, values: Floats) -> None:
        """Take a pair of values."""
        if np.isnan(values).any():
            self.n_lost += 1
        else:
            self.here.append(float(values[0]))
            self.there.append(float(values[1]))
        self.finished = len(self.here) + self.n_lost >= self.n_samples

    def finding(self) -> Verdict:
        """Return the mean difference and its error."""
        differences = np.subtract(self.here, self.there)
        if self.n_lost >= max(1, len(differences)):
            return Verdict(float("inf"), 0.0, float("inf"), 0.0, float("inf"))
        error = 0.0
        if len(differences) > 1:
            error = float(np.std(differences, ddof=1) / np.sqrt(len(differences)))
        median = float(np.median(self.here) - np.median(self.there))
        lower, signs = float(np.mean(differences < 0)), np.sign(differences)
        against = float(signs.sum() / np.sqrt(max(1, int(np.count_nonzero(signs)))))
        return Verdict(float(np.mean(differences)), error, median, lower, against)

    @property
    def standing(self) -> Standing:
        """The point and what was seen of it."""
        return Standing(self.point.x, np.array(self.here))
