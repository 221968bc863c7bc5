"""Tell whether f is noisy, and whether the user's sample controls the noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from scgd.estimators import random_signs
from scgd.problem import Problem
from scgd.strategies.asks import Asking
from scgd.typing import Floats

DISTANCES = (0.1, 0.01, 0.001)
"""How far from x the places lie, in units of the scale: at x itself noise may vanish."""
TRIES = 8
"""How often more is asked because values failed: where half of them do, that is too few once in 700
times."""

Kind = Literal["deterministic", "common random numbers", "independent"]


@dataclass(frozen=True)
class Noise:
    """What kind of noise f has.

    Attributes
    ----------
    kind
        None, noise that is the same for the same sample, or noise of every evaluation's own.
    n_compared
        Pairs of values that were compared; 0 where all failed, and then ``kind`` is a guess.
    """

    kind: Kind
    n_compared: int = 0


def classify_noise(
    problem: Problem, x: Floats, rng: np.random.Generator, n_places: int = 3
) -> Asking:
    """Tell apart no noise, noise that the sample controls, and independent noise.

    At each of ``n_places`` points near x, f is evaluated twice with one sample, and once with
    another where another sample tells something. Values that differ with the same sample are
    independent noise. Failed evaluations compare nothing: a place with one value is asked for
    another, and one without any is moved nearer to x.

    Parameters
    ----------
    problem, x, rng
        What is known, where to look, and where directions come from.
    n_places
        Points to look at.

    Examples
    --------
    >>> from scgd.strategies.drive import drive
    >>> rng = np.random.default_rng(0)
    >>> def classify(problem, budget, rng):
    ...     return classify_noise(problem, problem.x0, rng)
    >>> drive(classify, Problem.check([1.0, 2.0]), lambda x: float(x @ x), 20).found.kind
    'deterministic'
    >>> noisy = lambda x: float(x @ x + rng.normal())
    >>> drive(classify, Problem.check([1.0, 2.0]), noisy, 20).found.kind
    'independent'
    """
    usual: Kind = "common random numbers" if problem.sampled else "deterministic"
    compared, tries = 0, TRIES
    for k in range(n_places):
        distance, sound = DISTANCES[k % len(DISTANCES)], list[float]()
        while len(sound) < 2 and tries >= 0:
            if not sound:
                point = problem.clipped(x + distance * problem.unit * random_signs(x.size, rng))
                distance *= 0.1
            values = (yield np.stack([point] * (2 - len(sound)))).tolist()
            if not (sound or problem.sampled or k == n_places - 1):
                values.append((yield point))  # alone: state that a batch shares differs
            sound += [value for value in values if np.isfinite(value)]
            if problem.sampled and len(sound) < 2:  # another evaluation has another sample
                sound = []
            tries -= len(sound) < 2
        compared += max(0, len(sound) - 1)
        if len(set(sound)) > 1:
            return Noise("independent", compared)
    return Noise(usual, compared)
