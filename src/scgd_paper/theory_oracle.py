"""What needs the true gradient or the law itself: Theorem 2's policies, Proposition 2's mean steps.

The policies of the library see estimates. Theorem 2 is about policies that see the gradient, so
these are walked here, on the quadratic whose gradient is known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.typing import Floats, Ints
from scgd_paper.theory_rows import TheoryProblem

__all__ = ["mean_steps", "oracle_norms"]

N_DRAWS = 400_000
"""Steps over which a mean step is taken."""


def oracle_norms(
    problem: TheoryProblem, policy: Any, passes: Ints, noise: Floats, rng: np.random.Generator
) -> Floats:
    """Return the gradient's norm at the given passes when the policy chooses by the gradient.

    The choice sees the true gradient; the step along it is the noisy difference of one sample.
    """
    curvatures = problem.curvatures
    theta, n_coords = np.full(problem.n_coords, problem.start), problem.n_coords
    looks = set(passes.tolist())
    norms = [float(np.linalg.norm(curvatures * theta))] if 0 in looks else []
    for step in range(1, int(passes[-1]) * n_coords + 1):
        index = np.array([step // n_coords])
        weights = policy.weights_for(curvatures * theta)
        k = int(rng.choice(n_coords, p=weights))
        xi, h = noise[rng.integers(len(noise))], float(problem.h(index)[0])
        estimate = curvatures[k] * (theta[k] + h / 2) + xi[k]
        theta[k] -= float(problem.learning_rate(index)[0]) * estimate
        if step % n_coords == 0 and step // n_coords in looks:
            norms.append(float(np.linalg.norm(curvatures * theta)))
    return np.array(norms)


def mean_steps(
    problem: TheoryProblem, law: Floats, importance: str | None, rng: np.random.Generator
) -> Floats:
    """Return p times the mean step over minus the learning rate times the gradient.

    One number per coordinate, at the start, for steps whose coordinate has the given law. A policy
    is unbiased (Proposition 2) if the number is the same for all coordinates.
    """
    gradient = problem.curvatures * problem.start
    sizes = problem.noise * np.arange(1, problem.n_coords + 1) ** -problem.noise_decay
    counts = rng.binomial(N_DRAWS, law)
    sums = counts * gradient + sizes * np.sqrt(counts) * rng.standard_normal(problem.n_coords)
    factor = 1.0 / (problem.n_coords * law) if importance == "relative" else 1.0
    return np.asarray(problem.n_coords * factor * sums / N_DRAWS / gradient)
