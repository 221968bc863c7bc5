"""Which of many coordinates matter, seen through noise: random signs and a sparse regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scgd.estimators import random_signs
from scgd.history import robust_deviation
from scgd.problem import Problem
from scgd.strategies.asks import Asking
from scgd.typing import Array, Floats, Ints

__all__ = ["FIRST", "Screened", "orthogonal_matching_pursuit", "screen"]

FIRST = 128
"""Pairs after which a screening that has found nothing is given up."""
MOST = 1000
"""Pairs, at most: they tell a hundred effects apart."""
OUTLIER = 6.0
"""Odd parts are clipped so many robust deviations from zero."""
ROUNDS, HALF = 20, 0.5
"""Rounds of a pursuit, and the part of the clearest effect that others of its round must have."""
CROWDED = 4
"""One over the part of the pairs that may have effects fitted to them."""
LEFT, NOISE = 0.25, 1.5
"""What the effects found may leave of the signal, and how far the noise may be underestimated."""
CHUNK = 4_000_000
"""Entries of points, and signs, that are held at a time."""


@dataclass(frozen=True)
class Screened:
    """What a screening found.

    Attributes
    ----------
    coords
        The coordinates that showed an effect.
    sparse
        Whether they explain what was seen.
    relevance
        The sizes of the effects as shares, and standard errors; None without one.
    """

    coords: Ints
    sparse: bool
    relevance: tuple[Floats, Floats] | None


def screen(
    problem: Problem, x: Floats, rng: np.random.Generator, radius: float, n_pairs: int,
    deviation: float,
) -> Asking:  # fmt: skip
    r"""Find the coordinates that matter from pairs :math:`x \pm h s` with random signs s.

    Half the difference of a pair is :math:`\sum_k s_k a_k`, with :math:`a_k` the effect of moving
    coordinate k by h, plus noise; whatever is even in the moves cancels.

    Parameters
    ----------
    problem, x, rng
        What is known, where to look, and where signs come from.
    radius
        How far coordinates are moved, in units of x.
    n_pairs
        Pairs, at most.
    deviation
        The standard deviation of the noise.
    """
    p, most = x.size, min(n_pairs, MOST)
    middle, reach = problem.centred(x, radius * problem.unit)
    signs: Array = np.zeros((most, (p + 7) // 8), np.uint8)
    odds: list[float] = []
    effects, errors, left = np.zeros(p), np.zeros(p), 0.0
    done, n_chunk = 0, max(1, CHUNK // (2 * p))
    for due in (min(FIRST, most), most):
        while done < due:
            n = min(n_chunk, due - done)
            moves = [reach * random_signs(p, rng) for _ in range(n)]
            pairs = np.stack([np.stack([middle + move, middle - move]) for move in moves])
            values = yield problem.clipped(pairs)
            done += n
            for pair, (plus, minus) in zip(pairs, values.tolist(), strict=True):
                if abs(plus - minus) < np.inf:
                    signs[len(odds)] = np.packbits(pair[0] > pair[1])
                    odds.append((plus - minus) / 2)
        found = orthogonal_matching_pursuit(signs[: len(odds)], np.array(odds), p)
        effects, errors, left = found
        if not effects.any():
            break
    noise, power = deviation**2 / 2, float(np.mean(np.square(odds or [0.0])))
    explained = left <= LEFT * max(power - noise, 0.0) + NOISE * noise
    coords, total = np.flatnonzero(effects), float(np.abs(effects).sum())
    shares = (np.abs(effects) / total, errors / total) if total > 0 else None
    return Screened(coords, bool(len(coords) and explained), shares)


def orthogonal_matching_pursuit(
    signs: Array, odd: Floats, n_coords: int
) -> tuple[Floats, Floats, float]:
    r"""Return effects with :math:`d_i \approx \sum_k s_{ik} a_k`, few of them nonzero.

    Coordinates whose correlation with what is left exceeds what
    chance makes of so many, :math:`\sqrt{2 \log 10 p}` standard errors, enter by rounds, the
    clearest first, and all that have entered are fitted by least squares.

    Parameters
    ----------
    signs
        Bits (1 for plus), eight to a byte, a row per value.
    odd
        The values d.
    n_coords
        How many coordinates there are.

    Returns
    -------
    effects, errors, left
        Effects (0 where none shows), standard errors, and the mean square of what is left.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> plus = rng.random((200, 1000)) < 0.5
    >>> odd = (2.0 * plus[:, 7] - 1) - 3 * (2.0 * plus[:, 40] - 1) + 0.1 * rng.standard_normal(200)
    >>> bits = np.packbits(plus, axis=1)
    >>> effects, errors, left = orthogonal_matching_pursuit(bits, odd, 1000)
    >>> np.flatnonzero(effects), np.round(effects[[7, 40]], 1), round(left, 2)
    (array([ 7, 40]), array([ 1., -3.]), 0.01)
    """
    n, usual = len(odd), robust_deviation(odd) if len(odd) else 0.0
    odd = np.clip(odd, -OUTLIER * usual, OUTLIER * usual) if usual > 0 else odd
    least, chosen = least_visible(n_coords), np.empty(0, np.int64)
    fitted, own, left = np.empty(0), np.empty(0), odd
    for _ in range(ROUNDS):
        error = spread(left, len(chosen)) / np.sqrt(max(n, 1))
        z = np.abs(correlations(signs, left, n_coords)) / max(n * error, 1e-300)
        z[chosen] = 0.0
        new = np.flatnonzero(z > max(least, HALF * float(z.max())))
        if not len(new) or len(chosen) + len(new) > n // CROWDED:
            break
        chosen = np.sort(np.concatenate([chosen, new]))
        fitted, own, left = least_squares(signs, odd, chosen)
        clear = np.abs(fitted) > least * own
        if not clear.all():
            chosen = chosen[clear]
            fitted, own, left = least_squares(signs, odd, chosen)
    effects = np.zeros(n_coords)
    errors = np.full(n_coords, spread(left, len(chosen)) / np.sqrt(max(n, 1)))
    effects[chosen], errors[chosen] = fitted, own
    return effects, errors, spread(left, len(chosen)) ** 2


def spread(left: Floats, n_fitted: int) -> float:
    """Return the standard deviation of what is left."""
    return float(np.sqrt(left @ left / max(len(left) - n_fitted, 1)))


def correlations(signs: Array, values: Floats, n_coords: int) -> Floats:
    """Return the sum of values times signs, for every coordinate."""
    total = np.zeros(n_coords)
    rows = max(1, CHUNK // n_coords)
    for first in range(0, len(values), rows):
        some = slice(first, first + rows)
        plus = np.unpackbits(signs[some], axis=1, count=n_coords).astype(np.float64)
        total += 2 * (values[some] @ plus) - values[some].sum()
    return total


def least_squares(signs: Array, odd: Floats, chosen: Ints) -> tuple[Floats, Floats, Floats]:
    """Return effects of some coordinates, their standard errors, and what they leave."""
    bits = signs[:, chosen // 8] >> (7 - chosen % 8).astype(np.uint8) & 1
    matrix = 2.0 * bits - 1.0
    inverse = np.linalg.pinv(matrix.T @ matrix)
    effects = inverse @ (matrix.T @ odd)
    left = odd - matrix @ effects
    return effects, spread(left, len(chosen)) * np.sqrt(np.diag(inverse)), left


def least_visible(n_coords: int) -> float:
    """Return the standard errors that noise reaches once in ten times among so many effects.

    Examples
    --------
    >>> round(least_visible(5000), 2)
    4.65
    """
    return float(np.sqrt(2 * np.log(10 * n_coords)))
