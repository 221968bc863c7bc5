"""Sparse models of the odd and the even part of mirrored pairs, by orthogonal matching pursuit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from scgd.history import robust_deviation
from scgd.strategies.random_design import Design, Term
from scgd.typing import Array, Floats, Ints

__all__ = ["EPSILON", "PAIRED", "Part", "universal_threshold"]

FAR, OUTLIER = 20.0, 6.0
"""Values, and then residuals, are clipped at so many robust deviations: normal residuals never lie
there, and values seldom for what inputs do."""
ROUNDS, HALF = 30, 0.5
"""Rounds of a pursuit, and the part of the clearest effect that others of its round must have."""
CROWDED = 3
"""One over the part of the pairs that may have effects fitted to them."""
EPSILON = 1e-13
"""Values are no more precise than this, relative to the largest."""
PAIRED = ((1, 1), (2, 2), (1, 2), (2, 1))
"""Degrees of products of two inputs' contrasts."""


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
    exact
        Whether values have no noise: then none is an outlier.
    """

    def __init__(
        self, design: Design, values: Floats, parity: int, fold: Ints, *, exact: bool = False
    ) -> None:
        values = values if exact else clipped(values, FAR)
        self.design, self.values, self.parity, self.fold = design, values, parity, fold
        self.exact = exact
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
        return left if self.exact else clipped(left, OUTLIER)

    def estimates(
        self, last: Floats, partners: Sequence[int] = ()
    ) -> tuple[dict[Term, Floats], float]:
        """Return cross-fitted effects by degrees, and their standard error.

        ``last`` is what models of the other folds leave; to its mean product with a term comes the
        mean coefficient over the pairs that models predict.
        """
        n = len(last)
        sums = self.sums(last[:, None], partners)
        found: dict[Term, Floats] = {
            key: some[..., 0].astype(np.float64) / n for key, some in sums.items()
        }
        for f, fit in enumerate(self.fits):
            share = float(np.mean(self.fold == f))
            for term, effect in zip(fit.terms, fit.effects.tolist(), strict=True):
                key, place = place_of(term, partners)
                if key in found and place is not None:
                    found[key][place] += share * effect
        return found, float(np.sqrt(np.mean(last**2) / n))

    def sums(self, weights: Floats, partners: Sequence[int] = ()) -> dict[Term, Array]:
        """Return sums of terms times weights, by degrees: inputs by weights, partners before them.

        An input has no product with itself, and each product is there once.
        """
        design, n, p = self.design, weights.shape[1], self.design.n_inputs
        among = np.array(partners, np.int64)
        pairs = [
            (a, b) for a, b in PAIRED
            if (a + b) % 2 == self.parity and len(among) and max(a, b) < design.most
        ]  # fmt: skip
        weighted = {
            a: np.concatenate([weights * self.column((a, j))[:, None] for j in partners], axis=1)
            for a in {a for a, _ in pairs}
        }
        weighted = {a: some.astype(np.float32) for a, some in weighted.items()}
        weights = weights.astype(np.float32)
        found: dict[Term, Array] = {(d,): np.zeros((p, n), np.float32) for d in self.degrees}
        for pair in pairs:
            found[pair] = np.zeros((len(among), p, n), np.float32)
        for some in design.chunks():
            levels = design.levels(some)
            for d in {*self.degrees} | {b for _, b in pairs}:
                now = design.contrast(d, levels, some).T.astype(np.float32)
                if d in self.degrees:
                    found[(d,)][some] = now @ weights
                for a, b in pairs:
                    if b == d:
                        sums = (now @ weighted[a]).reshape(len(now), len(among), n)
                        found[a, b][:, some] = sums.transpose(1, 0, 2)
        for a, b in pairs:
            for i, j in enumerate(partners):
                found[a, b][i, j] = 0.0
                found[a, b][i, among[: i if a == b else len(among) * (a > b)]] = 0.0
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
                    z = {key: s[..., i] / unit for key, s in sums.items()}
                    grown |= self.grow(fit, z, partners, least)
            if not grown or n_pairs < 2:
                return

    def grow(
        self, fit: Fit, z: dict[Term, Array], partners: Sequence[int], least: float
    ) -> bool:  # fmt: skip
        """Add the clearest terms to a model; return whether it changed."""
        for term in fit.terms:
            key, place = place_of(term, partners)
            if key in z and place is not None:
                z[key][place] = 0.0
        sizes = {key: np.abs(some) for key, some in z.items()}
        top = max((float(some.max()) for some in sizes.values()), default=0.0)
        if not top > least:
            return False
        bar = max(least, HALF * top)
        new: list[tuple[float, Term]] = []
        for key, some in sizes.items():
            for at in np.argwhere(some > bar).tolist():
                new.append((float(some[tuple(at)]), term_at(key, at, partners)))
        room = int(fit.train.sum()) // CROWDED - len(fit.terms)
        before = list(fit.terms)
        fit.terms += [term for _, term in sorted(new, key=lambda one: -one[0])[: max(room, 0)]]
        clear = self.refit(fit) > least
        if not clear.all():
            fit.terms = [term for term, is_clear in zip(fit.terms, clear, strict=True) if is_clear]
            self.refit(fit)
        return fit.terms != before


def clipped(values: Floats, most: float) -> Floats:
    """Return values within so many robust deviations of their median, if most of them differ."""
    middle = float(np.median(values))
    usual = robust_deviation(values - middle)
    if not usual > EPSILON * float(np.abs(values).max()):
        return values
    return np.clip(values, middle - most * usual, middle + most * usual)


def term_at(key: Term, place: Sequence[int], partners: Sequence[int]) -> Term:
    """Return the term at a place of the sums."""
    if len(key) == 1:
        return (key[0], place[0])
    return (key[0], partners[place[0]], key[1], place[1])


def place_of(term: Term, partners: Sequence[int]) -> tuple[Term, tuple[int, ...] | None]:
    """Return where a term is in the sums; None where it is not."""
    if len(term) == 2:
        return (term[0],), (term[1],)
    a, j, b, k = term
    return (a, b), (partners.index(j), k) if j in partners else None


def universal_threshold(n_terms: int) -> float:
    """Return the standard errors that the largest of so many effects reaches by noise alone.

    Donoho and Johnstone's.
    """
    return float(np.sqrt(2 * np.log(max(n_terms, 3))))


def spread(left: Floats, n_fitted: int) -> float:
    """Return the standard deviation of what is left."""
    return float(np.sqrt(left @ left / max(len(left) - n_fitted, 1)))
