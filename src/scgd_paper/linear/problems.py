r"""Synthetic problems of the paper: block-structured data, and the same as published.

Blocks of columns have falling variances (Namkoong et al., 2017), so few coordinates matter; the
columns are shuffled, so a method must find out which. Two laws:

* ``"paper"``, as the text: variances :math:`\sigma_k^2 = k^{-\alpha}`;
* ``"published"``, as the authors' code: *standard deviations* :math:`k^{-\alpha}`, from NumPy's
  legacy generator, so that seed 0 gives the very data behind the published curves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import minimize as scipy_minimize
from scipy.special import expit

from scgd.checks import choice, count, number, reals, shown, whole
from scgd.typing import Array, Floats
from scgd_paper.linear.inputs import Problem, as_problem
from scgd_paper.linear.objective import objective

__all__ = ["BlockData", "block_data", "optimum"]

NOISE = 0.01
KINDS = ("ridge", "logistic")
LAWS = ("published", "paper")
MOST_DECAY = 100.0
LARGEST = 10**9
"""Entries of a matrix: eight gigabytes."""


@dataclass(frozen=True)
class BlockData:
    r"""A problem :math:`\frac1n \sum \ell(x_i^\top\theta, y_i) + \frac{\lambda_2}{2}\|\theta\|^2`.

    Attributes
    ----------
    X, y
        The data.
    loss, l2
        What to pass to :func:`scgd_paper.linear.solve`.
    theta_star, f_star
        The minimiser and the minimum, by a direct (ridge) or Newton (logistic) solver.
    f_start
        The objective at zero.
    truth
        The coefficients the targets were made with.

    Examples
    --------
    >>> data = block_data(n_samples=100, n_coords=20)
    >>> data.X.shape, data.loss, data.f_star < data.f_start
    ((100, 20), 'squared', True)
    """

    X: Floats
    y: Floats
    loss: str
    l2: float
    theta_star: Floats
    f_star: float
    f_start: float
    truth: Floats


def block_data(
    kind: str = "ridge",
    n_samples: int = 10_000,
    n_coords: int = 250,
    decay: float = 5.0,
    block: int = 10,
    law: str = "published",
    seed: int = 0,
    truth: tuple[float, float] | None = None,
) -> BlockData:
    """Make a block-structured problem.

    Parameters
    ----------
    kind
        ``"ridge"`` (squared loss) or ``"logistic"`` (labels -1 and 1, by the sign of the margin).
    n_samples, n_coords, block
        Its size, and the number of columns per block.
    decay
        The paper's alpha: how fast the blocks fall.
    law, seed
        Whether ``decay`` is of variances or of standard deviations (see the module), and the seed.
    truth
        Interval of the true coefficients; ``None`` is the authors' choice for zeroth order, (-1, 1)
        for ridge and (0, 1) for logistic.

    Examples
    --------
    >>> problem = block_data("ridge", n_samples=100, n_coords=20)
    >>> problem.X.shape, problem.l2, problem.f_star < problem.f_start
    ((100, 20), 0.01, True)
    """
    kind, law = choice(kind, "kind", KINDS), choice(law, "law", LAWS)
    n_samples, n_coords = count(n_samples, "n_samples"), count(n_coords, "n_coords")
    block, seed = count(block, "block"), whole(seed, "seed")
    decay = number(decay, "decay", -MOST_DECAY, MOST_DECAY)
    if n_coords % block:
        raise ValueError(f"n_coords must be a multiple of block, got {n_coords} and {block}")
    if n_samples * n_coords > LARGEST:
        raise ValueError(
            f"n_samples times n_coords must not exceed {LARGEST}, got {n_samples} and {n_coords}"
        )
    if truth is not None:
        ends = reals(truth, "truth", "be an interval (low, high)")
        if ends.shape != (2,) or not np.all(np.isfinite(ends)) or ends[0] > ends[1]:
            raise ValueError(f"truth must be an interval (low, high), got {shown(truth)}")
        truth = tuple(ends.tolist())
    if law == "published" and seed >= 2**32:
        raise ValueError(f"seed must be below 2**32 with law='published', got {seed}")
    return made(kind, n_samples, n_coords, decay, block, law, seed, truth)


@lru_cache(maxsize=32)
def made(
    kind: str, n_samples: int, n_coords: int, decay: float, block: int, law: str, seed: int,
    truth: tuple[float, float] | None,
) -> BlockData:  # fmt: skip
    """Return what was asked for, made once."""
    rng: Any = np.random.RandomState(seed) if law == "published" else np.random.default_rng(seed)
    power = decay if law == "published" else decay / 2
    X = columns(rng, n_samples, n_coords // block, block, power)
    X = np.ascontiguousarray(X[:, rng.permutation(n_coords)])
    low, high = truth or ((-1.0, 1.0) if kind == "ridge" else (0.0, 1.0))
    coefs = rng.uniform(low, high, n_coords)
    y = targets(kind, X @ coefs, rng.normal(0.0, NOISE, n_samples))
    loss, l2 = "squared" if kind == "ridge" else "logistic", 1.0 / n_samples
    problem = as_problem(X, y, loss=loss, l2=l2)
    theta = optimum(problem)
    values = objective(problem, np.stack([theta, np.zeros(n_coords)]))
    for array in (X, y, theta, coefs):
        array.setflags(write=False)
    return BlockData(X, y, loss, l2, theta, float(values[0]), float(values[1]), coefs)


def columns(rng: Any, n_samples: int, n_blocks: int, block: int, power: float) -> Floats:
    """Draw Gaussian blocks whose standard deviations fall as a power of their number."""
    return np.hstack(
        [rng.normal(0.0, (j + 1.0) ** -power, (n_samples, block)) for j in range(n_blocks)]
    )


def targets(kind: str, margins: Floats, noise: Floats) -> Floats:
    """Return noisy margins, or the labels of noisy probabilities."""
    if kind == "ridge":
        return np.asarray(margins + noise)
    return np.where(expit(margins) + noise <= 0.5, -1.0, 1.0)


def optimum(problem: Problem) -> Floats:
    """Minimise a smooth dense problem without intercept by Newton steps, to rounding."""
    X, y = problem.rows.dense, problem.targets
    n_samples, n_coords = X.shape
    theta = np.zeros(n_coords)
    if problem.loss == 0:
        return newton_step(X, y - X @ theta, np.ones(n_samples), theta, problem.l2)
    theta = scipy_minimize(
        lambda t: float(objective(problem, t[None])[0]),
        theta,
        jac=lambda t: X.T @ logistic_slopes(X @ t, y) / n_samples + problem.l2 * t,
        method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 10_000, "ftol": 0, "gtol": 1e-7},
    ).x
    for _ in range(3):
        slopes = logistic_slopes(X @ theta, y)
        theta = newton_step(X, -slopes, np.abs(slopes) * (1 - np.abs(slopes)), theta, problem.l2)
    return theta


def newton_step(X: Array, descent: Floats, curvature: Floats, theta: Floats, l2: float) -> Floats:
    """Return theta after a Newton step; ``descent`` and ``curvature`` are per sample."""
    n_samples, n_coords = X.shape
    hessian = (X.T * curvature) @ X / n_samples + l2 * np.eye(n_coords)
    return np.asarray(theta + np.linalg.solve(hessian, X.T @ descent / n_samples - l2 * theta))


def logistic_slopes(margins: Floats, y: Floats) -> Floats:
    """Return the derivative of the logistic loss at each margin."""
    return np.asarray(-y * expit(-y * margins))
