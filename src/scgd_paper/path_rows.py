"""Rows of the two-dimensional illustration: what a policy's path looks like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scgd.policies import Full, Musketeer, Policy, Uniform
from scgd.typing import Array
from scgd_paper.rows import Experiment, Panel

__all__ = ["EXPERIMENTS", "PathMethod", "PathProblem"]


@dataclass(frozen=True)
class PathProblem:
    """A quadratic with these curvatures and noise in its gradient."""

    curvatures: tuple[float, float]
    noise: float = 0.5
    start: tuple[float, float] = (-4.0, 3.0)
    scale: float = 2.0
    offset: float = 5.0
    quick_passes: int = 20

    def value(self, x: Any, y: Any) -> Any:
        """Return f without noise."""
        return (self.curvatures[0] * x**2 + self.curvatures[1] * y**2) / 2

    def gradient(self, theta: Array, xi: Array) -> Array:
        """Return a noisy gradient."""
        return np.asarray(np.array(self.curvatures) * theta + self.noise * xi)

    def scene(self) -> dict[str, Any]:
        """Return what the report draws behind the paths."""
        x, y = np.linspace(-5, 3, 60), np.linspace(-2.4, 4, 48)
        return {
            "contour": {"x": x, "y": y, "z": self.value(x[None, :], y[:, None])},
            "range": [[-5, 3], [-2.4, 4]],
        }


@dataclass(frozen=True)
class PathMethod:
    """A method of the illustration."""

    name: str
    policy: Policy


METHODS = (
    PathMethod("sgd", Full()),
    PathMethod("uniform", Uniform()),
    PathMethod("musketeer", Musketeer(gain="absolute", length=4)),
)
MEASURES = ("x", "y", "gap")
PANELS = tuple(
    Panel(name, title, PathProblem(curvatures), METHODS, 60, n_runs=20, measures=MEASURES)
    for name, title, curvatures in (
        ("f", "f(x, y) = (x² + y²)/2: no direction matters more", (1.0, 1.0)),
        ("h", "h(x, y) = x²/2: only x matters", (1.0, 0.0)),
    )
)
EXPERIMENTS = (
    Experiment(
        "paths-2d",
        "Paths in two dimensions",
        "Appendix C",
        "path",
        {"paper": PANELS},
        notes=(
            "The text gives no step sizes, noise or phase length: here the learning rate is "
            "2/(passes + 5), the noise 0.5, the phase 4 draws, gains absolute with l1. The path is "
            "that of run 0.",
        ),
    ),
)
