"""Problems made by others, and problems from practice.

Nevergrad's artificial function with useless variables, COCO's large-scale and noisy suites, a
policy roll-out, and logistic regression on real data by function values alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from scgd.compiling import njit
from scgd.typing import Floats
from scgd_arena.bbob import coco
from scgd_arena.problems import Task, logistic_task, observed

__all__ = ["OUTSIDE", "artificial", "model_fit", "rollout"]


@cache
def artificial(
    name: str = "sphere",
    active: int = 10,
    useless: int = 90,
    noise: float = 0.1,
    rotation: bool = False,
    instance: int = 12,
) -> Task:
    """Return Nevergrad's ArtificialFunction, most of whose variables change nothing.

    The instance draws the place of the minimum and, if wanted, the rotation.
    """
    from nevergrad.functions import ArtificialFunction

    function = ArtificialFunction(
        name, block_dimension=active, useless_variables=useless, rotation=rotation
    )
    function.transform_var.random_state = np.random.RandomState(instance)

    def value(x: Floats) -> float:
        return float(function.evaluation_function(_Candidate(x)))

    p = active + useless
    return Task(f"ng-{name}", np.zeros(p), None, observed(value, noise), value, repeats=not noise)


class _Candidate:
    """What Nevergrad's functions expect of a parameter: its arguments."""

    def __init__(self, x: Floats) -> None:
        self.args = (x,)
        self.kwargs: dict[str, Any] = {}


def centred(suite: str, function: int, dimension: int) -> Task:
    """Return a function of COCO from the middle of its domain; one run knows no domain."""
    name = f"{suite.removeprefix('bbob-')}-f{function}"
    return replace(
        coco(suite, function, dimension), name=name, x0=np.zeros(dimension), domain=None
    )  # fmt: skip


@cache
def rollout(n_hidden: int = 32, horizon: int = 60) -> Task:
    """Return the mean cost of a small neural controller of a cart and pole, about 500 weights.

    One evaluation is one episode from one of 1,000 starts, so the noise can be controlled; the gap
    is the mean cost over 200 starts (0 would be a pole that never leaves the upright).
    """
    starts = np.random.default_rng(0).uniform(-0.25, 0.25, (1000, 4))
    n_inputs = 13
    p = n_inputs * n_hidden + n_hidden + n_hidden + 1

    def cost(x: Floats, start: Floats) -> float:
        return float(episode(x, start, n_hidden, horizon))

    def make(seed: int) -> Callable[..., float]:
        return lambda x, rows: cost(x, starts[rows[0]])

    def gap(x: Floats) -> float:
        return float(np.mean([cost(np.asarray(x), start) for start in starts[:200]]))

    x0 = 0.1 * np.random.default_rng(1).standard_normal(p)
    return Task("rollout", x0, 1000, make, gap)


@njit(cache=True)
def episode(x, start, n_hidden, horizon):  # type: ignore[no-untyped-def]
    """Return the mean cost of one episode: tilt, and a little for leaving the middle."""
    s, inputs, total = start.copy(), np.ones(13), 0.0
    bias, last = x[13 * n_hidden : -n_hidden - 1], x[-n_hidden - 1 :]
    for _ in range(horizon):
        inputs[:4], inputs[4:8], inputs[8:12] = s, s**2, np.sin(s)
        output = last[-1]
        for j in range(n_hidden):
            inner = bias[j]
            for i in range(13):
                inner += inputs[i] * x[i * n_hidden + j]
            output += np.tanh(inner) * last[j]
        force = 10.0 * np.tanh(output)
        sine, cosine = np.sin(s[2]), np.cos(s[2])
        push = (force + 0.05 * s[3] ** 2 * sine) / 1.1
        turning = (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3.0 - 0.1 * cosine**2 / 1.1))
        slide = push - 0.05 * turning * cosine / 1.1
        s += 0.04 * np.array([s[1], slide, s[3], turning])
        s = np.minimum(np.maximum(s, -10.0), 10.0)
        total += 1.0 - np.cos(s[2]) + 0.01 * s[0] ** 2
    return total / horizon


@cache
def model_fit(name: str) -> Task:
    """Return logistic regression on breast_cancer or digits (below five), one row a call."""
    from sklearn.datasets import load_breast_cancer, load_digits

    data, target = (load_breast_cancer if name == "breast_cancer" else load_digits)(return_X_y=True)
    labels = np.where(target == 1, 1.0, -1.0) if name == "breast_cancer" else None
    if labels is None:
        labels = np.where(target < 5, 1.0, -1.0)
    spread = data.std(axis=0)
    features = (data - data.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    features = np.ascontiguousarray(np.hstack([features, np.ones((len(features), 1))]))
    return logistic_task(name, features, labels)


OUTSIDE: dict[str, Any] = {
    "ng-sphere": artificial,
    "ng-cigar": lambda: artificial("cigar"),
    "largescale-f1": lambda: centred("bbob-largescale", 1, 160),
    "largescale-f2": lambda: centred("bbob-largescale", 2, 160),
    "largescale-f10": lambda: centred("bbob-largescale", 10, 160),
    "largescale-f15": lambda: centred("bbob-largescale", 15, 160),
    "noisy-f1": lambda: centred("bbob-noisy", 1, 40),
    "noisy-f16": lambda: centred("bbob-noisy", 16, 40),
    "rollout": rollout,
    "breast_cancer": lambda: model_fit("breast_cancer"),
    "digits": lambda: model_fit("digits"),
}
