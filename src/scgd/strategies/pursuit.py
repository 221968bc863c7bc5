"""Sparse models of the odd and the even part of mirrored pairs, by orthogonal matching pursuit."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from scgd.history import robust_deviation
from scgd.strategies.random_design import Design
from scgd.typing import Array, Floats

FOLDS = 10
"""Parts of the pairs; the model of nine predicts the tenth."""
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
Term = tuple[int, int]
"""Which row of :attr:`Part.blocks`, and which input."""


@dataclass
class Fit:
    """A sparse model of one part, for one fold; the first effect is the constant."""

    train: Array
    terms: list[Term] = field(default_factory=list)
    effects: Floats = field(default_factory=lambda: np.zeros(1))


class Part:
    """The odd or the even part of pairs, and sparse models of it by orthogonal matching pursuit.

    Parameters
    ----------
    design, values
        The pairs, and what is to be explained.
    parity
        1: odd; 0: even.
    exact
        Whether values have no noise: then none is an outlier.

    Attributes
    ----------
    blocks
        Terms come in rows ``(a, j, b)``: contrast ``a`` of the partner j times contrast ``b`` of
        each input. Contrast 0 is the constant, so inputs by themselves have ``a = 0``.
    effects, error, freedom, left
        Cross-fitted estimates of all terms, their standard error and its degrees of freedom, and
        what models leave of pairs that they were not fitted to.
    """

    def __init__(self, design: Design, values: Floats, parity: int, *, exact: bool = False) -> None:
        n = len(values)
        self.design, self.parity, self.exact = design, parity, exact
        self.values = values if exact else clipped(values, FAR)
        self.fold = np.random.default_rng(n).permutation(n) % min(FOLDS, n)
        self.floor = EPSILON * float(np.abs(values).max(initial=0.0))
        self.blocks = [(0, 0, d) for d in range(1, design.most) if d % 2 == parity]
        self.n_alone = len(self.blocks)
        self.partners: list[int] = []
        self.columns: dict[Term, Floats] = {}
        self.fits = [Fit(self.fold != f) for f in range(int(self.fold.max()) + 1)]
        for fit in self.fits:
            self.refit(fit)

    def add_products(self, partners: list[int]) -> None:
        """Look at the products of some inputs with all others, too."""
        self.partners = partners
        self.blocks += [
            (a, j, b) for a, b in PAIRED for j in partners
            if (a + b) % 2 == self.parity and max(a, b) < self.design.most
        ]  # fmt: skip

    def column(self, term: Term) -> Floats:
        """Return the values of a term, which are kept."""
        if term not in self.columns:
            a, j, b = self.blocks[term[0]]
            column = self.design.column(b, term[1])
            self.columns[term] = column * self.design.column(a, j) if a else column
        return self.columns[term]

    def predicted(self, fit: Fit) -> Floats:
        """Return what a model says of all pairs."""
        return np.asarray(self.matrix(fit) @ fit.effects)

    def matrix(self, fit: Fit) -> Floats:
        """Return the terms of a model as columns; first a constant, which no odd part has."""
        constant = np.full(len(self.values), 1.0 - self.parity)
        return np.array([constant, *(self.column(t) for t in fit.terms)]).T

    def refit(self, fit: Fit) -> Floats:
        """Fit the terms of a model by least squares; return how many errors each is large."""
        rows, y = self.matrix(fit)[fit.train], self.values[fit.train]
        fit.effects = np.asarray(np.linalg.lstsq(rows, y, rcond=None)[0], np.float64)
        error = spread(y - rows @ fit.effects, len(fit.effects) - self.parity) / np.sqrt(
            max(len(y), 1)
        )
        return np.asarray(np.abs(fit.effects[1:]) / max(error, self.floor, 1e-300))

    def sums(self, weights: Floats) -> Array:
        """Return sums of all terms times weights: blocks by inputs by columns of weights.

        An input has no product with itself, and each product is there once.
        """
        n, design = weights.shape[1], self.design
        found = np.zeros((len(self.blocks), design.n_inputs, n), np.float32)
        of_degree: dict[int, tuple[list[int], Array]] = {}
        for degree in {b for _, _, b in self.blocks}:
            rows = [i for i, (_, _, b) in enumerate(self.blocks) if b == degree]
            before = [design.column(*self.blocks[i][:2])[:, None] * weights for i in rows]
            of_degree[degree] = rows, np.concatenate(before, axis=1).astype(np.float32)
        for some in design.chunks():
            levels = design.levels(some)
            for degree, (rows, weighted) in of_degree.items():
                now = design.contrast(degree, levels, some).T.astype(np.float32) @ weighted
                found[rows, some] = now.reshape(len(now), len(rows), n).transpose(1, 0, 2)
        for i, (a, j, b) in enumerate(self.blocks[self.n_alone :], self.n_alone):
            known = self.partners.index(j) if a == b else len(self.partners) * (a > b)
            found[i, [j, *self.partners[:known]]] = 0.0
        return found

    def pursue(self) -> None:
        """Add terms by rounds, the clearest first, while any stands out of chance; estimate."""
        least = universal_threshold(len(self.blocks) * self.design.n_inputs)
        for _ in range(ROUNDS if self.blocks else 0):
            left = [(self.values - self.predicted(fit)) * fit.train for fit in self.fits]
            errors = [
                spread(part[fit.train], len(fit.terms))
                for part, fit in zip(left, self.fits, strict=True)
            ]
            if max(errors) <= self.floor:
                break
            sums, grown = np.abs(self.sums(np.stack(left, axis=1))), False
            for i, (fit, error) in enumerate(zip(self.fits, errors, strict=True)):
                if error > self.floor:
                    z = sums[..., i] / (error * np.sqrt(max(int(fit.train.sum()), 1)))
                    grown |= self.grow(fit, z, least)
            if not grown:
                break
        self.cross_fit()

    def grow(self, fit: Fit, z: Array, least: float) -> bool:
        """Add the clearest terms to a model, drop what is not clear; return whether it changed."""
        for term in fit.terms:
            z[term] = 0.0
        top = float(z.max())
        if not top > least:
            return False
        new = np.argwhere(z > max(least, HALF * top))
        new = new[np.argsort(-z[tuple(new.T)], kind="stable")]
        room = max(int(fit.train.sum()) // CROWDED - len(fit.terms), 0)
        before = list(fit.terms)
        fit.terms += [(i, k) for i, k in new[:room].tolist()]
        clear = self.refit(fit) > least
        if not clear.all():
            fit.terms = [term for term, is_clear in zip(fit.terms, clear, strict=True) if is_clear]
            self.refit(fit)
        return fit.terms != before

    def cross_fit(self) -> None:
        """Estimate all terms: to the mean coefficient comes what models of other folds leave."""
        n = len(self.values)
        predicted = np.stack([self.predicted(fit) for fit in self.fits])
        left = self.values - predicted[self.fold, np.arange(n)]
        self.left = left if self.exact else clipped(left, OUTLIER)
        fitted = 1 + max(len(fit.terms) for fit in self.fits)
        self.freedom = max(n - fitted, 1)
        self.error = spread(self.left, fitted) / float(np.sqrt(n))
        self.effects = self.sums(self.left[:, None])[..., 0].astype(np.float64) / n
        for fit in self.fits:
            share = 1 - float(np.mean(fit.train))
            for term, effect in zip(fit.terms, fit.effects[1:].tolist(), strict=True):
                self.effects[term] += share * effect


def clipped(values: Floats, most: float) -> Floats:
    """Return values within so many robust deviations of their median, if most of them differ."""
    middle = float(np.median(values))
    usual = robust_deviation(values - middle)
    if not usual > EPSILON * float(np.abs(values).max()):
        return values
    return np.clip(values, middle - most * usual, middle + most * usual)


def universal_threshold(n_terms: int) -> float:
    """Return the standard errors that the largest of so many effects reaches by noise alone.

    Donoho and Johnstone's.
    """
    return float(np.sqrt(2 * np.log(max(n_terms, 3))))


def spread(left: Floats, n_fitted: int) -> float:
    """Return the standard deviation of what is left."""
    return float(np.sqrt(left @ left / max(len(left) - n_fitted, 1)))
