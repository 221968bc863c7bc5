r"""Which inputs have an effect: a random design in mirrored pairs, sparse regression, honest tests.

Each input stands at one of a few levels, drawn at random. A pair is a point and its mirror image,
in which every input has the opposite level. Half the difference of the two values holds what is odd
in the inputs, half the sum what is even, and each is a sum of orthonormal polynomial contrasts
:math:`\varphi_d` (linear, quadratic, cubic) of single inputs and of their products.

An effect :math:`c = E[y \varphi]` is estimated by cross-fitting. With :math:`\hat g` a sparse model
fitted to other pairs and :math:`\hat\beta` its mean coefficient of this term,

.. math:: \hat c = \hat\beta + \frac1n \sum_i (y_i - \hat g(x_i)) \varphi_i .

The levels are independent of each other, so this is unbiased whatever the model is; a good one only
makes the residuals small. For an input without effect the sum is one of random signs, whatever the
distribution of the noise, and its p-value holds. (Chernozhukov et al. 2018, double machine
learning, with a design whose propensities are known.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # whose rooms load when they are used

from scgd.strategies.pursuit import EPSILON, PAIRED, Part, universal_threshold
from scgd.strategies.random_design import Design, Term
from scgd.typing import Floats, Ints

__all__ = ["Effects", "Interaction", "adjusted", "below_threshold", "estimate", "interval"]

FOLDS = 10
"""Parts of the pairs; the model of nine predicts the tenth."""
PARTNERS, PRODUCTS = 16, 40_000
"""Inputs whose products with all others are looked at, at least, and products in all."""
SCANNED = 5e9
"""Multiplications that a look at all products of two inputs may take: a second or less."""


@dataclass(frozen=True)
class Interaction:
    """What two inputs do together beyond what each does alone.

    Attributes
    ----------
    inputs
        The two.
    degrees
        Of their contrasts: (1, 1) is linear by linear.
    effect, error
        The coefficient and its standard error.
    p_value
        Adjusted for all products that were looked at.
    """

    inputs: tuple[int, int]
    degrees: tuple[int, int]
    effect: float
    error: float
    p_value: float


@dataclass(frozen=True)
class Effects:
    """What was estimated of each input.

    Attributes
    ----------
    contrasts
        Effects, a row per degree from 1 on; 0 where an input has none.
    errors
        Their standard errors, by degree.
    counts
        The contrasts of each input.
    p_values
        Of no effect at all, neither alone nor together with another.
    interactions
        The clearest.
    n_pairs, freedom
        Pairs with two values, and degrees of freedom of the errors.
    left, total
        Standard deviations of what the model leaves of a pair's two parts, and of the parts.
    """

    contrasts: Floats
    errors: Floats
    counts: Ints
    p_values: Floats
    interactions: tuple[Interaction, ...] = ()
    n_pairs: int = 0
    freedom: float = 1.0
    left: tuple[float, float] = (0.0, 0.0)
    total: tuple[float, float] = (0.0, 0.0)

    @property
    def sizes(self) -> Floats:
        """Standard deviations of the values that each input makes by itself."""
        return np.asarray(np.sqrt(np.sum(self.contrasts**2, axis=0)))

    @property
    def size_errors(self) -> Floats:
        """Standard errors of the sizes, to first order."""
        variances = np.sum((self.contrasts * self.errors[:, None]) ** 2, axis=0)
        largest = float(self.errors.max(initial=0.0))
        sizes = self.sizes
        return np.where(sizes > 0, np.sqrt(variances) / np.maximum(sizes, 1e-300), largest)

    @property
    def statistics(self) -> tuple[Floats, float]:
        """Squared sizes in units of the larger variance of a contrast, and its root."""
        used = self.errors[: max(int(self.counts.max(initial=0)), 1)]
        error = float(used.max(initial=0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num((self.sizes / error) ** 2, nan=0.0), error


def estimate(
    design: Design,
    values: Floats,
    *,
    products: bool = True,
    parts: Sequence[int] = (1, 0),
    exact: bool = False,
) -> Effects:
    """Estimate the effects of all inputs from pairs.

    Parameters
    ----------
    design
        The pairs.
    values
        Two values for each.
    products
        Whether to look at products of inputs.
    parts
        Which parts: 1 is the odd one, 0 the even one.
    exact
        Whether values have no noise: then none is an outlier.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> design = Design(np.tile([-1.0, 1.0], (1000, 1)), np.full(1000, 2))
    >>> for _ in range(200):
    ...     design.add(design.draw(rng))
    >>> x = 2.0 * design.levels(slice(None)) - 1
    >>> odd = x[:, 7] - 3 * x[:, 40] + 0.1 * rng.standard_normal(200)
    >>> found = estimate(design, np.stack([odd, -odd], axis=1), parts=[1])
    >>> np.flatnonzero(adjusted(found.p_values) < 0.1), np.round(found.contrasts[0, [7, 40]], 1)
    (array([ 7, 40]), array([ 1., -3.]))
    """
    n, p = len(values), design.n_inputs
    counts = design.counts - 1
    estimates = np.zeros((max(design.most - 1, 1), p))
    errors = np.full(len(estimates), np.inf)
    if n < 4 or design.most < 2:
        return Effects(estimates, errors, counts, np.ones(p), n_pairs=n)
    order = np.random.default_rng(n).permutation(n)
    fold = order % min(FOLDS, n)
    first, second = values.T / 2
    sides = {1: first - second, 0: first + second}
    found = [Part(design, sides[side], side, fold, exact=exact) for side in parts]
    found = [part for part in found if part.degrees or products]
    for part in found:
        part.pursue()
    floor = EPSILON * float(np.abs(values).max())
    partners: list[int] = []
    lasts = [part.crossed() for part in found]
    if products:
        for part, last in zip(found, lasts, strict=True):
            fill(part, last, floor, estimates, errors)
        partners = chosen_partners(estimates, errors, counts)
        for part, last in zip(found, lasts, strict=True):
            if part.parity == 0:
                partners = sorted({*partners, *pairs_seen(design, last)})
        for i, part in enumerate(found):
            part.pursue(partners)
            lasts[i] = part.crossed()
    for part, last in zip(found, lasts, strict=True):
        fill(part, last, floor, estimates, errors)
    estimates[np.abs(estimates) <= floor] = 0.0  # rounding
    fitted = max(len(fit.terms) for part in found for fit in part.fits)
    freedom = float(max(n - 1 - fitted, 1))
    around = [part.values - part.values.mean() for part in found]
    left, total = of_parts(found, lasts), of_parts(found, around)
    effects = Effects(estimates, errors, counts, np.ones(p), (), n, freedom, left, total)
    alone = main_p_values(effects)
    if not partners:
        return replace(effects, p_values=alone)
    together, clearest = product_p_values(found, lasts, partners, floor, freedom, counts)
    both = np.minimum(1.0, 2 * np.minimum(alone, together))
    return replace(effects, p_values=both, interactions=clearest)


def of_parts(parts: Sequence[Part], values: Sequence[Floats]) -> tuple[float, float]:
    """Return standard deviations of the odd and the even part."""
    pairs = zip(parts, values, strict=True)
    found = {part.parity: float(np.sqrt(np.mean(v**2))) for part, v in pairs}
    return found.get(1, 0.0), found.get(0, 0.0)


def fill(part: Part, last: Floats, floor: float, estimates: Floats, errors: Floats) -> None:
    """Enter the cross-fitted estimates of one part."""
    found, error = part.estimates(last)
    for (d,), effects in found.items():
        estimates[d - 1] = effects
        errors[d - 1] = max(error, floor)


def chosen_partners(estimates: Floats, errors: Floats, counts: Ints) -> list[int]:
    """Return the inputs with the clearest effects, whose products are looked at."""
    p = counts.size
    most = min(p, max(PARTNERS, PRODUCTS // p))
    clear = np.sum((estimates / errors[:, None]) ** 2, axis=0)
    return sorted(np.argsort(-clear, kind="stable")[:most].tolist())


def pairs_seen(design: Design, last: Floats, most: int = 16) -> list[int]:
    """Return inputs that show together only: of all products of linear contrasts the clearest."""
    n, p = len(last), design.n_inputs
    unit = float(np.sqrt(last @ last))
    if n * p * p > SCANNED or not unit > 0:
        return []
    linear = design.contrast(1, design.levels(slice(None)), slice(None)).astype(np.float32)
    weighted, bar = (linear * last[:, None] / unit).astype(np.float32), universal_threshold(p * p)
    found: list[tuple[float, int, int]] = []
    for first in range(0, p, 256):
        z = np.abs(weighted[:, first : first + 256].T @ linear)
        for i, j in np.argwhere(z > bar).tolist():
            if first + i < j:
                found.append((float(z[i, j]), first + i, j))
    found.sort(reverse=True)
    return sorted({k for _, i, j in found[:most] for k in (i, j)})


def main_p_values(effects: Effects) -> Floats:
    """Return p-values of inputs by themselves.

    The smaller one, doubled, of two: of a t test of the linear contrast, which most effects have,
    and of an F test of all contrasts.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        z = np.nan_to_num((effects.contrasts / effects.errors[:, None]) ** 2, nan=0.0)
    n = np.maximum(effects.counts, 1)
    every = scipy.special.fdtrc(n, effects.freedom, z.sum(axis=0) / n)
    linear = 2 * scipy.special.stdtr(effects.freedom, -np.sqrt(z[0]))
    both = np.minimum(1.0, 2 * np.minimum(every, linear))
    return np.where(effects.counts > 1, both, np.where(effects.counts > 0, linear, 1.0))


def product_p_values(
    parts: Sequence[Part], lasts: Sequence[Floats], partners: list[int], floor: float,
    freedom: float, counts: Ints,
) -> tuple[Floats, tuple[Interaction, ...]]:  # fmt: skip
    """Return p-values of products with any partner, and the clearest products.

    Levels of an input without effect are independent of which partners were chosen, so its tests
    are as many as the partners times the kinds of products.
    """
    n_kinds = sum(max(counts.max(), 0) >= max(pair) for pair in PAIRED)
    best = np.zeros(counts.size)
    rows: list[tuple[float, Term, float, float]] = []
    for part, last in zip(parts, lasts, strict=True):
        found, error = part.estimates(last, partners)
        error = max(error, floor, 1e-300)
        for (a, b), effects in ((key, some) for key, some in found.items() if len(key) == 2):
            z = np.abs(effects) / error
            best = np.maximum(best, z.max(axis=0))
            best[partners] = np.maximum(best[partners], z.max(axis=1))
            for i, k in np.argwhere(z > 3.0).tolist():
                row = float(z[i, k]), (a, partners[i], b, k), float(effects[i, k]), error
                rows.append(row)
    n_tests = len(partners) * n_kinds
    # a partner was compared with all inputs, and any other input with all partners
    factor = np.full(counts.size, float(n_tests))
    factor[partners] = n_kinds * counts.size
    rows.sort(key=lambda row: -row[0])
    clearest = []
    for size, (a, j, b, k), effect, error in rows[:50]:
        p = min(1.0, float(2 * scipy.special.stdtr(freedom, -size)) * n_tests * counts.size)
        if p < 0.1:
            clearest.append(Interaction((j, k), (a, b), effect, error, p))
    return np.minimum(1.0, 2 * factor * scipy.special.stdtr(freedom, -best)), tuple(clearest)


def adjusted(p_values: Floats) -> Floats:
    """Return p-values adjusted for the false-discovery rate (Benjamini and Hochberg).

    Examples
    --------
    >>> adjusted(np.array([0.01, 0.5, 0.02]))
    array([0.03, 0.5 , 0.03])
    """
    n = len(p_values)
    order = np.argsort(p_values)[::-1]
    scaled = p_values[order] * n / np.arange(n, 0, -1)
    found = np.empty(n)
    found[order] = np.minimum(np.minimum.accumulate(scaled), 1.0)
    return found


def interval(effects: Effects, level: float) -> tuple[Floats, Floats]:
    """Return confidence limits of the sizes, by the noncentral chi-square distribution.

    Errors that are estimated are as much larger as Student's quantile is than the normal one.
    """
    squares, error = effects.statistics
    if not np.isfinite(error):
        return np.zeros(len(squares)), np.full(len(squares), np.inf)
    alpha = (1 - level) / 2
    ratio = scipy.special.stdtrit(effects.freedom, alpha) / scipy.special.ndtri(alpha)
    q, error = squares / ratio**2, error * ratio
    low, high = (noncentrality(q, effects.counts, share) for share in (1 - alpha, alpha))
    own = effects.counts > 0
    return np.where(own, np.sqrt(low) * error, 0.0), np.where(own, np.sqrt(high) * error, np.inf)


def noncentrality(q: Floats, counts: Ints, share: float) -> Floats:
    """Return the noncentrality with which a chi-square stays below q with some probability.

    Far out its root is normal with standard deviation 1.
    """
    n, z = np.maximum(counts, 1), float(scipy.special.ndtri(share))
    far = np.maximum(np.sqrt(np.maximum(q - (n - 1), 0.0)) - z, 0.0) ** 2
    near = np.round(scipy.special.chndtrinc(np.clip(q, 1e-12, 300.0), n, share), 12)  # 1e-315: 0
    return np.asarray(np.where(q > 300, far, near))


def below_threshold(q: Floats, counts: Ints, noncentrality: float) -> Floats:
    """Return the probability of statistics as small as these, were effects at the threshold."""
    if noncentrality > 400:  # far out the root is normal with standard deviation 1
        z = np.sqrt(q) - np.sqrt(noncentrality)
        return np.asarray(scipy.special.ndtr(np.maximum(z, -40.0)))
    return np.asarray(scipy.special.chndtr(np.minimum(q, 1e5), counts, noncentrality))
