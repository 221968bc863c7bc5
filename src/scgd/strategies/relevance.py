"""What share each coordinate has in the slopes of f."""

from __future__ import annotations

import numpy as np

from scgd.typing import Floats, Ints

PLACES = 10
"""Gradients that tell what coordinates matter; later ones are small and only tell of the end."""


class Shares:
    """Mean shares of coordinates in the absolute slopes, over the first gradients of a descent.

    They are of the points it passed: of equal inputs, one that began near its best value has less.

    Examples
    --------
    >>> shares = Shares(2)
    >>> shares.add(np.array([3.0, -1.0]), np.arange(2))
    >>> shares.add(np.array([1.0, 0.0]), np.arange(2))
    >>> mean, error = shares.found()
    >>> mean, error
    (array([0.875, 0.125]), array([0.125, 0.125]))
    """

    def __init__(self, n_coords: int) -> None:
        self.sums: Floats = np.zeros((3, n_coords))  # of shares, of their squares, and counts
        self.n_gradients, self.news = 0, False

    def add(self, gradient: Floats, coords: Ints) -> None:
        """Take note of a gradient, known at some coordinates."""
        total = float(np.abs(gradient).sum())
        self.news = self.n_gradients < PLACES and 0 < total < np.inf
        if self.news:
            self.n_gradients += 1
            share = np.abs(gradient[coords]) / total
            self.sums[:, coords] += [share, share**2, np.ones(len(coords))]

    def found(self) -> tuple[Floats, Floats]:
        """Return mean shares and their standard errors, NaN for one gradient alone."""
        total, squares, n = self.sums
        mean = total / np.maximum(n, 1)
        variance = np.maximum(squares / np.maximum(n, 1) - mean**2, 0.0)
        error = np.sqrt(variance / np.maximum(n - 1, 1))
        return mean / mean.sum(), np.where(n > 1, error, np.nan) / mean.sum()
