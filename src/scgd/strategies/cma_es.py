"""CMA-ES: a population that learns the covariance of good steps, by ranks alone."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from scgd.blas import one_thread
from scgd.strategies.box import Box
from scgd.typing import Floats

EPS = 2.0**-52
WIDEST, NARROWEST = 1e6, 1e-11
"""Step sizes, in units of the first one, at which a population has diverged or converged."""
WORST = 1e7
"""Condition of the covariance's axes at which it is given up."""
LEVEL, FLAT = 0.75, 2
"""The part of a generation that may have one value, and for how many generations in a row."""
PENALTY = 2.0
"""What a step beyond the walls costs, in interquartile ranges of the generation's values."""


def default_size(n: int) -> int:
    """Return Hansen's default population size."""
    return 4 + int(3 * np.log(n))


class Evolution:
    """The state of one population (Hansen's CMA-ES with active weights).

    Parameters
    ----------
    mean, sigma
        Where it starts, and how wide.
    rng
        Where samples come from.
    size
        Points per generation.
    diagonal
        Whether coordinates are scaled one by one instead of learning a full covariance.
    """

    def __init__(
        self,
        mean: Floats,
        sigma: float,
        rng: np.random.Generator,
        size: int | None = None,
        *,
        diagonal: bool = False,
    ) -> None:
        n = self.n = mean.size
        self.mean, self.sigma, self.start, self.rng = mean.copy(), sigma, sigma, rng
        self.size, self.diagonal = size or default_size(n), diagonal
        self._set_weights()
        self.covariance: Floats = np.ones(n) if diagonal else np.eye(n)
        self.path_sigma, self.path = np.zeros(n), np.zeros(n)
        self.axes: Floats = np.eye(0)
        self.deviations: Floats = np.ones(n)
        self.n_evals = self.n_decomposed = self.n_generations = self.n_flat = 0
        self.bests: list[float] = []
        self.medians: list[float] = []

    def _set_weights(self) -> None:
        n, size = self.n, self.size
        raw = np.log((size + 1) / 2) - np.log(np.arange(1, size + 1))
        self.parents = mu = size // 2
        self.positive = raw[:mu] / raw[:mu].sum()
        self.mu_eff = m = float(1 / np.sum(self.positive**2))
        self.c_sigma = (m + 2) / (n + m + 5)
        self.damping = 1 + 2 * max(0.0, np.sqrt((m - 1) / (n + 1)) - 1) + self.c_sigma
        self.c_path = (4 + m / n) / (n + 4 + 2 * m / n)
        faster = (n + 2) / 3 if self.diagonal else 1.0
        self.c_one = min(0.5, faster * 2 / ((n + 1.3) ** 2 + m))
        rank_mu = faster * 2 * (0.25 + m + 1 / m - 2) / ((n + 2) ** 2 + m)
        self.c_mu = min(1 - self.c_one, rank_mu)
        negative = raw[mu:]
        m_negative = negative.sum() ** 2 / np.sum(negative**2)
        most = min(
            1 + self.c_one / self.c_mu,
            1 + 2 * m_negative / (m + 2),
            (1 - self.c_one - self.c_mu) / (n * self.c_mu),
        )
        self.weights = np.concatenate([self.positive, most * negative / np.abs(negative).sum()])
        self.chi = float(np.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n)))

    def sample(self) -> tuple[Floats, Floats]:
        """Draw a generation: standard normal vectors and the steps they stand for."""
        due = self.size / (self.c_one + self.c_mu) / self.n / 10
        if not self.diagonal and (not self.axes.size or self.n_evals - self.n_decomposed > due):
            self.covariance = (self.covariance + self.covariance.T) / 2
            with one_thread():
                values, self.axes = np.linalg.eigh(self.covariance)
            self.deviations = np.sqrt(np.maximum(values, values.max() * 1e-15))
            self.n_decomposed = self.n_evals
        normal = self.rng.standard_normal((self.size, self.n))
        steps = normal * self.deviations
        return normal, steps if self.diagonal else steps @ self.axes.T

    def penalties(self, outside: Floats, values: Floats) -> Floats:
        """Return what moves beyond the walls cost, by their mean squares in steps (Hansen 2009)."""
        squares = np.mean(outside**2, axis=1)
        seen = values[np.isfinite(values)]
        if not squares.any() or not seen.size:
            return np.zeros_like(squares)
        low, high = np.quantile(seen, [0.25, 0.75])
        step = self.sigma**2 * float(np.mean(self.deviations**2))
        return np.asarray(PENALTY * (high - low) * squares / step)

    def learn(self, normal: Floats, steps: Floats, values: Floats) -> None:
        """Move to the better half and learn from the ranks of all."""
        order = np.argsort(values, kind="stable")
        normal, steps, values = normal[order], steps[order], values[order]
        self.n_evals += self.size
        self.n_generations += 1
        mu, c, m = self.parents, self.c_sigma, self.mu_eff
        step, isotropic = self.positive @ steps[:mu], self.positive @ normal[:mu]
        self.mean = self.mean + self.sigma * step
        isotropic = isotropic if self.diagonal else self.axes @ isotropic
        self.path_sigma = (1 - c) * self.path_sigma + np.sqrt(c * (2 - c) * m) * isotropic
        length = float(np.linalg.norm(self.path_sigma))
        usual = np.sqrt(1 - (1 - c) ** (2 * self.n_generations)) * (1.4 + 2 / (self.n + 1))
        steady = length < usual * self.chi
        self.path = (1 - self.c_path) * self.path
        if steady:
            self.path += np.sqrt(self.c_path * (2 - self.c_path) * m) * step
        self._learn_covariance(normal, steps, steady)
        self.sigma *= float(np.exp(min(1.0, c / self.damping * (length / self.chi - 1))))
        self.n_flat = self.n_flat + 1 if values[0] == values[int(LEVEL * self.size)] else 0
        self.bests.append(float(values[0]))
        self.medians.append(float(values[mu]))

    def _learn_covariance(self, normal: Floats, steps: Floats, steady: bool) -> None:
        weights = self.weights.copy()
        lengths = np.sum(normal[self.parents :] ** 2, axis=1)
        weights[self.parents :] *= self.n / np.maximum(lengths, 1e-12)
        missing = 0.0 if steady else self.c_path * (2 - self.c_path)
        keep = 1 + self.c_one * missing - self.c_one - self.c_mu * self.weights.sum()
        if self.diagonal:
            new = self.c_one * self.path**2 + self.c_mu * (weights @ steps**2)
            self.covariance = np.maximum(keep * self.covariance + new, 1e-300)
            self.deviations = np.sqrt(self.covariance)
        else:
            new = (
                self.c_one * np.outer(self.path, self.path)
                + self.c_mu * (steps.T * weights) @ steps
            )
            self.covariance = keep * self.covariance + new

    def over(self, values: Floats, narrowest: float) -> bool:
        """Tell whether it has converged, diverged or stagnated."""
        widest = self.sigma * float(self.deviations.max())
        n, best = 10 + int(np.ceil(30 * self.n / self.size)), float(values.min())
        recent = self.bests[-n:]
        level = max(recent) - min(recent) <= 1e-12 * abs(best)
        if self.n_generations > n and level and values.max() - best <= 1e-12 * abs(best):
            return True
        if self.n_flat >= FLAT:  # a step of f is wider than the population: a larger one sees more
            return True
        if not narrowest * self.start <= widest <= WIDEST * self.start:
            return True
        if widest < 4 * EPS * float(np.abs(self.mean).max()):
            return True
        if self.deviations.max() > WORST * self.deviations.min():
            return True
        return self._stagnates()

    def _stagnates(self) -> bool:
        """Tell whether medians of the last generations are no better than those long before."""
        n = int(120 + 30 * self.n / self.size)
        if self.n_generations <= n:
            return False
        part = n // 5
        return all(
            np.median(seen[-part:]) >= np.median(seen[-n : -n + part])
            for seen in (self.bests, self.medians)
        )


def cma_es(
    mean: Floats, sigma: float, rng: np.random.Generator, size: int, *, diagonal: bool, box: Box
) -> Generator[Any, Any, float]:
    """Run one population until it is over; return the best value it saw.

    Beyond a wall it sees f at the wall and a penalty, so that it may go round a corner outside.
    """
    state = Evolution(mean, sigma, rng, size, diagonal=diagonal)
    lowest = np.inf
    while True:
        normal, steps = state.sample()
        points = state.mean + state.sigma * steps
        inside = box.clip(points)
        values = yield inside
        lowest = min(lowest, float(values.min()))
        state.learn(normal, steps, values + state.penalties(points - inside, values))
        state.mean = box.clip(state.mean)
        if state.over(values, NARROWEST) or not np.all(np.isfinite(state.covariance)):
            return lowest
