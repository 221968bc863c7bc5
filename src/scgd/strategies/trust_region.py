"""The lowest point of a quadratic in a ball and a box, about: truncated conjugate gradients."""

from __future__ import annotations

import numpy as np

from scgd.compiling import njit
from scgd.typing import Array, Floats

__all__ = ["trust_region_step"]

ENOUGH = 0.01
"""A further step that brings less than this share of the gain so far is left out, as in Powell's
programs: the quadratic is only a model."""


@njit(nogil=True)
def product(matrix: Floats, vector: Floats, out: Floats) -> None:
    """Write a symmetric matrix times a vector; rows at zero entries are skipped."""
    out[:] = 0.0
    for j in range(vector.size):
        if vector[j] != 0.0:
            for i in range(out.size):
                out[i] += vector[j] * matrix[j, i]


@njit(nogil=True)
def trust_region_step(
    gradient: Floats, hessian: Floats, lower: Floats, upper: Floats, radius: float
) -> tuple[Floats, float, float]:
    """Return a step, how far the quadratic falls by it, and the least curvature met inside.

    Conjugate gradients from 0; a coordinate that meets its bound stays there and they begin anew.
    Where they meet the ball the step is turned along it, as long as that pays (Powell, The BOBYQA
    algorithm, 2009, section 3).

    Parameters
    ----------
    gradient, hessian
        The quadratic; the Hessian is symmetric.
    lower, upper
        Bounds of the step; 0 lies between them.
    radius
        Of the ball.
    """
    d, s, hs, g = (
        np.zeros(gradient.size),
        np.zeros(gradient.size),
        np.zeros(gradient.size),
        gradient.copy(),
    )
    free = ~(((lower >= 0.0) & (g >= 0.0)) | ((upper <= 0.0) & (g <= 0.0)))
    room, gain, curvature = radius * radius, 0.0, np.inf
    fresh, steps, before = True, 0, 1.0
    while True:
        square = 0.0
        for i in range(d.size):
            if free[i]:
                square += g[i] * g[i]
        if square == 0.0 or square * room <= (ENOUGH * gain) ** 2 or room <= 0.0:
            break
        share = 0.0 if fresh else square / before
        before = square
        fall, size, along = 0.0, 0.0, 0.0
        for i in range(d.size):
            s[i] = share * s[i] - g[i] if free[i] else 0.0
            fall -= g[i] * s[i]
            size += s[i] * s[i]
            along += d[i] * s[i]
        product(hessian, s, hs)
        bend, inside = 0.0, 0.0
        for i in range(d.size):
            bend += s[i] * hs[i]
            if free[i]:
                inside += d[i] * d[i]
        gap = max(room - inside, 0.0)
        root = np.sqrt(along * along + size * gap)
        longest = gap / (root + along) if along > 0.0 else (root - along) / size
        length = min(longest, fall / bend) if bend > 0.0 else longest
        met = -1
        for i in range(d.size):
            if free[i] and s[i] != 0.0:
                limit = ((upper[i] if s[i] > 0.0 else lower[i]) - d[i]) / s[i]
                if limit < length:
                    length, met = max(limit, 0.0), i
        for i in range(d.size):
            d[i] += length * s[i]
            g[i] += length * hs[i]
        won = length * (fall - 0.5 * length * bend)
        gain += won
        curvature = min(curvature, max(bend / size, 0.0))
        fresh = met >= 0
        if fresh:
            d[met] = upper[met] if s[met] > 0.0 else lower[met]
            free[met], steps = False, 0
            room -= d[met] * d[met]
            continue
        if length == longest:
            return turned(d, g, hessian, lower, upper, free, gain), gain, 0.0
        steps += 1
        if steps >= d.size or won <= ENOUGH * gain:
            break
    return d, gain, curvature if curvature < np.inf else 0.0


@njit(nogil=True)
def widest_turn(
    d: Floats, s: Floats, lower: Floats, upper: Floats, free: Array
) -> tuple[float, int]:
    """Return the tangent of half the widest turn towards s inside bounds, and what it meets."""
    widest, met = 1.0, -1
    for i in range(d.size):
        if free[i] and s[i] != 0.0:
            sign = 1.0 if s[i] > 0.0 else -1.0
            bound = upper[i] if s[i] > 0.0 else -lower[i]
            if bound == np.inf:
                continue
            root = s[i] * s[i] + d[i] * d[i] - bound * bound
            if root >= 0.0:
                limit = max(bound - sign * d[i], 0.0) / (abs(s[i]) + np.sqrt(root))
                if limit < widest:
                    widest, met = limit, i
    return widest, met


@njit(nogil=True)
def turned(
    d: Floats, g: Floats, hessian: Floats, lower: Floats, upper: Floats, free: Array, gain: float
) -> Floats:
    """Return the step after turns along the ball, each in the plane of it and the gradient."""
    n = d.size
    s, p, hs, hp = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    for _ in range(n):
        size, along, square = 0.0, 0.0, 0.0
        for i in range(n):
            p[i] = d[i] if free[i] else 0.0
            if free[i]:
                size += d[i] * d[i]
                along += d[i] * g[i]
                square += g[i] * g[i]
        root = square * size - along * along
        if root <= (ENOUGH * gain) ** 2:
            break
        root = np.sqrt(root)
        for i in range(n):
            s[i] = (along * d[i] - size * g[i]) / root if free[i] else 0.0
        widest, met = widest_turn(d, s, lower, upper, free)
        product(hessian, s, hs)
        product(hessian, p, hp)
        shs, php, shp = np.dot(s, hs), np.dot(p, hp), np.dot(s, hp)
        count, best, falls = int(17 * widest + 4.1), 0, np.zeros(int(17 * widest + 4.1) + 2)
        for k in range(1, count + 1):
            falls[k] = turn_fall(widest * k / count, along, -root, php, shs, shp)
            if falls[k] > falls[best]:
                best = k
        if best == 0:
            if met < 0 or widest > 0.0:
                break
            free[met] = False
            continue
        half = widest * best / count
        if best < count:
            bend = 2 * falls[best] - falls[best - 1] - falls[best + 1]
            half += (
                0.5 * widest / count * (falls[best + 1] - falls[best - 1]) / bend
                if bend > 0
                else 0.0
            )
        won = turn_fall(half, along, -root, php, shs, shp)
        cosine, sine = (1 - half * half) / (1 + half * half), 2 * half / (1 + half * half)
        for i in range(n):
            if free[i]:
                d[i] = min(max(cosine * d[i] + sine * s[i], lower[i]), upper[i])
            g[i] += (cosine - 1) * hp[i] + sine * hs[i]
        gain += won
        if best == count and met >= 0:
            d[met] = upper[met] if s[met] > 0.0 else lower[met]
            free[met] = False
        elif won <= ENOUGH * gain:
            break
    return d


@njit(nogil=True)
def turn_fall(half: float, pg: float, sg: float, php: float, shs: float, shp: float) -> float:
    """Return how far the quadratic falls by a turn, given the tangent of half its angle."""
    sine, lost = 2 * half / (1 + half * half), 2 * half * half / (1 + half * half)
    bend = lost * lost * php + sine * sine * shs - 2 * lost * sine * shp
    return lost * pg - sine * sg - 0.5 * bend
