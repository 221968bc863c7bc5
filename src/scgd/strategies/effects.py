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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy  # whose rooms load when they are used

from scgd.typing import Array, Floats, Ints

__all__ = [
    "Design",
    "Effects",
    "Interaction",
    "adjusted",
    "contrasts",
    "estimate",
    "interval",
]

FOLDS = 5
"""Parts of the pairs; the model of four predicts the fifth."""
OUTLIER = 6.0
"""Residuals are clipped at so many robust deviations: normal ones never lie there."""
ROUNDS, HALF = 30, 0.5
"""Rounds of a pursuit, and the part of the clearest effect that others of its round must have."""
CROWDED = 3
"""One over the part of the pairs that may have effects fitted to them."""
CHUNK = 4_000_000
"""Entries of contrasts that are held at a time."""
PARTNERS, PRODUCTS = 16, 40_000
"""Inputs whose products with all others are looked at, at least, and products in all."""
EPSILON = 1e-13
"""Values are no more precise than this, relative to the largest."""
PAIRED = ((1, 1), (2, 2), (1, 2), (2, 1))
"""Degrees of products of two inputs' contrasts."""
Term = tuple[int, ...]
"""``(degree, input)``, or that of two inputs in turn."""


def contrasts(n_levels: int) -> Floats:
    """Return orthonormal polynomials on so many levels: a row per degree, the constant first.

    Examples
    --------
    >>> np.round(contrasts(4)[1:3], 2)
    array([[-1.34, -0.45,  0.45,  1.34],
           [ 1.  , -1.  , -1.  ,  1.  ]])
    """
    levels = np.arange(n_levels) - (n_levels - 1) / 2
    basis, triangle = np.linalg.qr(np.vander(levels, increasing=True))
    return np.asarray((basis * np.sign(np.diag(triangle))).T * np.sqrt(n_levels))


class Design:
    """Levels of inputs in pairs, drawn at random, and the contrasts that they make.

    Parameters
    ----------
    places
        The levels of each input: a row each, filled up with anything.
    counts
        How many levels each has; 1 for an input that does not move.
    """

    def __init__(self, places: Floats, counts: Ints) -> None:
        self.places, self.counts = places, counts
        self.most = int(counts.max())
        self.uniform = bool((counts == self.most).all())
        self.rows: list[Array] = []  # packed: a bit per level where there are two
        self.tables = np.zeros((self.most, self.most + 1, self.most))
        for n in set(counts.tolist()):
            self.tables[:n, n, :n] = contrasts(n)

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.rows)

    @property
    def n_inputs(self) -> int:
        """How many inputs there are."""
        return self.counts.size

    def draw(self, rng: np.random.Generator) -> Array:
        """Return random levels, one for each input."""
        if self.uniform:
            return rng.integers(0, self.most, self.n_inputs, dtype=np.uint8)
        return (rng.random(self.n_inputs) * self.counts).astype(np.uint8)

    def point(self, levels: Array) -> Floats:
        """Return the point where inputs stand at some levels."""
        return np.asarray(self.places[np.arange(self.n_inputs), levels])

    def pair(self, levels: Array) -> Floats:
        """Return a point and its mirror image."""
        opposite = (self.counts - 1 - levels).astype(np.uint8)
        return np.stack([self.point(levels), self.point(opposite)])

    def add(self, levels: Array) -> None:
        """Note the levels of another pair."""
        self.rows.append(np.packbits(levels) if self.most <= 2 else levels)

    def levels(self, inputs: slice | Ints) -> Array:
        """Return the levels of some inputs, a row per pair."""
        rows = np.stack(self.rows)
        if self.most > 2:
            return rows[:, inputs]
        if isinstance(inputs, slice):
            return np.unpackbits(rows, axis=1, count=self.n_inputs)[:, inputs]
        return (rows[:, inputs // 8] >> (7 - inputs % 8).astype(np.uint8)) & 1

    def chunks(self) -> Iterator[slice]:
        """Return slices of the inputs whose contrasts fit into memory."""
        width = max(8, CHUNK // max(len(self), 1) // 8 * 8)
        for first in range(0, self.n_inputs, width):
            yield slice(first, min(first + width, self.n_inputs))

    def contrast(self, degree: int, levels: Array, inputs: slice | Ints) -> Array:
        """Return contrasts of some inputs, whose levels these are; 0 where there is none."""
        if degree >= self.most:
            return np.zeros(levels.shape)
        if self.uniform:
            return np.asarray(self.tables[degree, self.most][levels])
        return np.asarray(self.tables[degree][self.counts[inputs], levels])

    def column(self, term: Term) -> Floats:
        """Return a term's contrast, or the product of two."""
        value: Floats = np.ones(len(self))
        for degree, k in zip(term[::2], term[1::2], strict=True):
            one = np.array([k])
            value = value * self.contrast(degree, self.levels(one), one)[:, 0]
        return value


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


@dataclass
class Fit:
    """A sparse model of one part, for one fold."""

    train: Array
    terms: list[Term] = field(default_factory=list)
    effects: Floats = field(default_factory=lambda: np.empty(0))
    constant: float = 0.0


class Part:
    """The odd or the even part of pairs, and the models of it.

    Parameters
    ----------
    design, values
        The pairs, and what is to be explained.
    parity
        1: odd; 0: even.
    fold
        Which fold each pair belongs to.
    """

    def __init__(self, design: Design, values: Floats, parity: int, fold: Ints) -> None:
        self.design, self.values, self.parity, self.fold = design, values, parity, fold
        self.n_folds = int(fold.max()) + 1
        self.fits = [Fit(fold != f) for f in range(self.n_folds)]
        self.columns: dict[Term, Floats] = {}
        self.floor = EPSILON * float(np.abs(values).max(initial=0.0))
        self.degrees = [d for d in range(1, design.most) if d % 2 == parity]
        for fit in self.fits:
            self.refit(fit)

    def column(self, term: Term) -> Floats:
        """Return a term's contrast, which is kept."""
        if term not in self.columns:
            self.columns[term] = self.design.column(term)
        return self.columns[term]

    def predicted(self, fit: Fit) -> Floats:
        """Return what a model says of all pairs."""
        total = np.full(len(self.values), fit.constant)
        for term, effect in zip(fit.terms, fit.effects.tolist(), strict=True):
            total += effect * self.column(term)
        return total

    def refit(self, fit: Fit) -> Floats:
        """Fit the terms of a model by least squares; return how many errors each is large."""
        first = [] if self.parity else [np.ones(len(self.values))]
        matrix = np.array([*first, *(self.column(t) for t in fit.terms)]).T
        if matrix.size == 0:
            fit.effects = np.empty(0)
            return fit.effects
        rows, y = matrix[fit.train], self.values[fit.train]
        found, *_ = np.linalg.lstsq(rows, y, rcond=None)
        n_first = len(first)
        fit.constant, fit.effects = float(found[0]) if n_first else 0.0, found[n_first:]
        error = spread(y - rows @ found, len(found)) / np.sqrt(max(len(y), 1))
        return np.asarray(np.abs(fit.effects) / max(error, self.floor, 1e-300))

    def residuals(self) -> Floats:
        """Return what each model leaves of the pairs it was fitted to, a column each."""
        left = np.stack([(self.values - self.predicted(f)) * f.train for f in self.fits], axis=1)
        return np.asarray(left)

    def crossed(self) -> Floats:
        """Return what models of the other folds leave of each pair, outliers clipped."""
        left = np.empty(len(self.values))
        for f, fit in enumerate(self.fits):
            left[self.fold == f] = (self.values - self.predicted(fit))[self.fold == f]
        usual = 1.4826 * float(np.median(np.abs(left))) if len(left) else 0.0
        return np.clip(left, -OUTLIER * usual, OUTLIER * usual) if usual > self.floor else left

    def mean_effects(self) -> dict[Term, float]:
        """Return the mean coefficient of each term over the pairs that models predict."""
        found: dict[Term, float] = {}
        for f, fit in enumerate(self.fits):
            share = float(np.mean(self.fold == f))
            for term, effect in zip(fit.terms, fit.effects.tolist(), strict=True):
                found[term] = found.get(term, 0.0) + share * effect
        return found

    def sums(self, weights: Floats, partners: Sequence[int] = ()) -> dict[tuple[int, ...], Array]:
        """Return sums of terms times weights, by degrees (and partner): inputs by columns."""
        design, n = self.design, weights.shape[1]
        weights = weights.astype(np.float32)
        found: dict[tuple[int, ...], Array] = {}
        pairs = [pair for pair in PAIRED if sum(pair) % 2 == self.parity and partners]
        degrees = {*self.degrees} | {b for _, b in pairs if b < design.most}
        products = {
            a: np.concatenate([weights * self.column((a, j))[:, None] for j in partners], axis=1)
            for a in {a for a, _ in pairs if a < design.most}
        }
        products = {a: some.astype(np.float32) for a, some in products.items()}
        for some in design.chunks():
            levels = design.levels(some)
            for d in sorted(degrees):
                now = design.contrast(d, levels, some).T.astype(np.float32)
                if d in self.degrees:
                    out = found.setdefault((d,), np.zeros((design.n_inputs, n), np.float32))
                    out[some] = now @ weights
                for a, b in pairs:
                    if b != d or a >= design.most:
                        continue
                    sums = now @ products[a]
                    for i, j in enumerate(partners):
                        key = (a, j, b)
                        out = found.setdefault(key, np.zeros((design.n_inputs, n), np.float32))
                        out[some] = sums[:, i * n : (i + 1) * n]
        for key, out in found.items():
            if len(key) == 3:  # an input has no product with itself, and each product one name
                done = [i for i in partners if i <= key[1] and key[0] == key[2]]
                out[[key[1], *done]] = 0.0
        return found

    def pursue(self, partners: Sequence[int] = ()) -> None:
        """Add terms by rounds, the clearest first, as long as any stands out of chance."""
        p, n_pairs = self.design.n_inputs, len(self.values)
        n_terms = len(self.degrees) * p + 2 * len(partners) * p
        least = universal_threshold(n_terms)
        for _ in range(ROUNDS):
            left, grown = self.residuals(), False
            errors = [spread(left[f.train, i], len(f.terms)) for i, f in enumerate(self.fits)]
            if not n_terms or max(errors) <= self.floor:
                return
            sums = self.sums(left, partners)
            for i, fit in enumerate(self.fits):
                if errors[i] > self.floor:
                    unit = errors[i] * np.sqrt(max(int(fit.train.sum()), 1))
                    grown |= self.grow(fit, {k: s[:, i] / unit for k, s in sums.items()}, least)
            if not grown or n_pairs < 2:
                return

    def grow(self, fit: Fit, z: dict[tuple[int, ...], Array], least: float) -> bool:
        """Add the clearest terms to a model; return whether it changed."""
        for term in fit.terms:
            if term_key(term) in z:
                z[term_key(term)][term[-1]] = 0.0
        top = max((float(np.abs(s).max()) for s in z.values()), default=0.0)
        if not top > least:
            return False
        bar = max(least, HALF * top)
        new: list[tuple[float, Term]] = []
        for key, s in z.items():
            new += [(abs(float(s[k])), (*key, int(k))) for k in np.flatnonzero(np.abs(s) > bar)]
        room = int(fit.train.sum()) // CROWDED - len(fit.terms)
        before = list(fit.terms)
        fit.terms += [term for _, term in sorted(new, key=lambda one: -one[0])[: max(room, 0)]]
        clear = self.refit(fit) > least
        if not clear.all():
            fit.terms = [term for term, is_clear in zip(fit.terms, clear, strict=True) if is_clear]
            self.refit(fit)
        return fit.terms != before


def term_key(term: Term) -> tuple[int, ...]:
    """Return a term without its last input: degree, or degree, partner, degree."""
    return term[:-1]


def universal_threshold(n_terms: int) -> float:
    """Return the standard errors that the largest of so many effects reaches by noise alone.

    Donoho and Johnstone's.
    """
    return float(np.sqrt(2 * np.log(max(n_terms, 3))))


def spread(left: Floats, n_fitted: int) -> float:
    """Return the standard deviation of what is left."""
    return float(np.sqrt(left @ left / max(len(left) - n_fitted, 1)))


def estimate(
    design: Design, values: Floats, *, products: bool = True, parts: Sequence[int] = (1, 0)
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
    sides = {1: (values[:, 0] - values[:, 1]) / 2, 0: (values[:, 0] + values[:, 1]) / 2}
    found = [Part(design, sides[side], side, fold) for side in parts]
    found = [part for part in found if part.degrees or products]
    for part in found:
        part.pursue()
    floor = EPSILON * float(np.abs(values).max())
    partners: list[int] = []
    lasts = [part.crossed() for part in found]
    if products:
        for part, last in zip(found, lasts, strict=True):
            fill(part, last, floor, estimates, errors)
        partners = chosen_partners(estimates, errors, counts, n)
        for i, part in enumerate(found):
            part.pursue(partners)
            lasts[i] = part.crossed()
    for part, last in zip(found, lasts, strict=True):
        fill(part, last, floor, estimates, errors)
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
    n = len(last)
    for (d,), sums in part.sums(last[:, None]).items():
        estimates[d - 1] = sums[:, 0].astype(np.float64) / n
        errors[d - 1] = max(float(np.sqrt(np.mean(last**2) / n)), floor)
    for term, effect in part.mean_effects().items():
        if len(term) == 2:
            estimates[term[0] - 1, term[1]] += effect


def chosen_partners(estimates: Floats, errors: Floats, counts: Ints, n: int) -> list[int]:
    """Return the inputs with the clearest effects, whose products are looked at."""
    p = counts.size
    most = min(p, max(PARTNERS, PRODUCTS // p))
    clear = np.sum((estimates / errors[:, None]) ** 2, axis=0)
    return sorted(np.argsort(-clear, kind="stable")[:most].tolist())


def main_p_values(effects: Effects) -> Floats:
    """Return p-values of F tests: all contrasts of an input are 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        z = np.nan_to_num((effects.contrasts / effects.errors[:, None]) ** 2, nan=0.0)
    n = np.maximum(effects.counts, 1)
    p_values = scipy.special.fdtrc(n, effects.freedom, z.sum(axis=0) / n)
    return np.where(effects.counts > 0, p_values, 1.0)


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
        error = max(float(np.sqrt(np.mean(last**2) / len(last))), floor, 1e-300)
        means, among = part.mean_effects(), set(partners)
        for key, sums in part.sums(last[:, None], partners).items():
            if len(key) < 3:
                continue
            effects = sums[:, 0].astype(np.float64) / len(last)
            for term, effect in means.items():
                if len(term) == 4 and term[:-1] == key:
                    effects[term[-1]] += effect
            z = np.abs(effects) / error
            best = np.maximum(best, z)
            best[key[1]] = max(best[key[1]], float(z.max()))
            for k in np.flatnonzero(z > 3.0).tolist():
                if not (k in among and k < key[1] and key[0] == key[2]):
                    rows.append((float(z[k]), (*key, k), float(effects[k]), error))
    n_tests = len(partners) * n_kinds

    def p_value(z: Floats | float) -> Floats:
        return np.asarray(2 * scipy.special.stdtr(freedom, -np.asarray(z)))

    # a partner was compared with all inputs, and any other input with all partners
    factor = np.full(counts.size, float(n_tests))
    factor[partners] = n_kinds * counts.size
    rows.sort(key=lambda row: -row[0])
    clearest = []
    for z, (a, j, b, k), effect, error in rows[:50]:
        p = min(1.0, float(p_value(z)) * n_tests * counts.size)
        if p < 0.1:
            clearest.append(Interaction((j, k), (a, b), effect, error, p))
    return np.minimum(1.0, factor * p_value(best)), tuple(clearest)


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
    n = np.maximum(counts, 1).astype(np.float64)
    z = float(scipy.special.ndtri(share))
    far = np.maximum(np.sqrt(np.maximum(q - (n - 1), 0.0)) - z, 0.0) ** 2
    low, high = np.zeros(len(q)), np.minimum(q, 400.0) + 80.0
    near = np.minimum(q, 400.0)
    for _ in range(50):
        middle = (low + high) / 2
        below = scipy.special.chndtr(near, n, middle) > share
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(q > 300, far, low)
