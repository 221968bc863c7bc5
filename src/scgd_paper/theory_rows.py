"""Rows that show the theorems at work, on quadratics whose constants are known."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from scgd.policies import (
    Full,
    GaussSouthwell,
    GradientWeights,
    Musketeer,
    Policy,
    Uniform,
)
from scgd.schedules import InverseTime, Schedule, SqrtOf
from scgd.typing import Floats
from scgd_paper.rows import Experiment, Panel

__all__ = ["EXPERIMENTS", "TheoryMethod", "TheoryProblem"]


@dataclass(frozen=True)
class TheoryProblem:
    """A noisy quadratic and its schedules.

    f(x, xi) = sum_k k^-decay x_k^2 / 2 + noise k^-noise_decay xi_k x_k with Gaussian xi. Where a
    law is looked at, it is learned over ``learned`` passes first.
    """

    n_coords: int
    decay: float
    noise: float
    learning_rate: Schedule
    radius: Schedule | None = None
    start: float = 1.0
    noise_decay: float = 0.0
    learned: int = 0
    quick_passes: int = 40

    @property
    def curvatures(self) -> Floats:
        """The second derivatives, k^-decay."""
        return np.asarray(np.arange(1.0, self.n_coords + 1) ** -self.decay, np.float64)

    @property
    def h(self) -> Schedule:
        """The radius; by default the square root of the learning rate (Theorem 4)."""
        return SqrtOf(self.learning_rate) if self.radius is None else self.radius


@dataclass(frozen=True)
class TheoryMethod:
    """A policy that is run, or a bound that is drawn (``policy=None``, once).

    With ``oracle`` the policy sees the true gradient. ``draws`` names what is measured along the
    run where it is not what the panel measures.
    """

    name: str
    policy: Policy | None
    importance: str | None = None
    n_runs: int = 1_000_000
    oracle: bool = False
    draws: str = ""


FIXED = Musketeer(mixing=0.3)
SOFT = Musketeer(normalization="softmax", mixing=0.3)
PER_PASS = InverseTime(2.0, 5.0, per="pass")
SHORT = InverseTime(1e-5, 0.0, 0.0)
"""A radius so short that differences of these quadratics are derivatives."""


def gains(policy: Musketeer, **other: str) -> tuple[TheoryMethod, ...]:
    """Return a policy with each of the three gains."""
    return tuple(
        TheoryMethod(f"musketeer-{gain}", replace(policy, gain=gain), **other)  # type: ignore[arg-type]
        for gain in ("average", "absolute", "square")
    )


BOUNDS = tuple(TheoryMethod(name, None, n_runs=1) for name in ("theorem-4", "recursion", "order"))


def rate_panel(
    name: str, title: str, scale: float, power: float, radius: Schedule | None = None
) -> Panel:
    """Return measured gaps under the bound of Theorem 4 for the rate scale / t^power."""
    return Panel(
        name,
        title,
        TheoryProblem(2, 0.0, 0.5, InverseTime(scale, power=power), radius),
        (TheoryMethod("uniform", Uniform()), *BOUNDS),
        n_passes=50_000,
        n_runs=40,
        measures=("gap", "slope"),
        xscale="log",
    )


PANELS = (
    Panel(
        "gradient-norm",
        "The gradient tends to zero (Theorems 1 to 3)",
        TheoryProblem(10, 1.0, 0.2, PER_PASS),
        (
            TheoryMethod("full", Full()),
            TheoryMethod("gauss-southwell-true", GaussSouthwell(), oracle=True),
            TheoryMethod("gauss-southwell", GaussSouthwell()),
            TheoryMethod("gradient-weights-true", GradientWeights(), oracle=True),
            TheoryMethod("gradient-weights", GradientWeights()),
            TheoryMethod("uniform", Uniform()),
            TheoryMethod("musketeer-absolute", FIXED),
        ),
        n_passes=300,
        n_runs=10,
        measures=("gradient-norm",),
    ),
    rate_panel("bound", "Theorem 4, α = 1, unbiased estimates: falling like 1/t", 5.0, 1.0, SHORT),
    rate_panel("bound-0.75", "Theorem 4, α = 3/4: falling like t⁻⁰·⁷⁵", 1.0, 0.75),
    rate_panel("bound-0.5", "Theorem 4, α = 1/2: falling like 1/√t", 0.3, 0.5),
    Panel(
        "mean-step",
        "Proposition 2: the mean step against the gradient",
        TheoryProblem(20, 1.0, 0.05, PER_PASS, learned=10),
        (
            TheoryMethod("full", Full()),
            TheoryMethod("uniform", Uniform()),
            *gains(FIXED),
            TheoryMethod("musketeer-absolute-importance", FIXED, "relative"),
            TheoryMethod("gradient-weights-true", GradientWeights(), oracle=True),
        ),
        n_passes=20,
        n_runs=10,
        measures=("step",),
        xlabel="coordinate, steepest first",
    ),
    Panel(
        "weights",
        "Theorem 5: softmax weights tend to uniform, for the average gain",
        TheoryProblem(20, 1.0, 2.0, PER_PASS, noise_decay=1.0),
        gains(SOFT),
        n_passes=4000,
        measures=("distance",),
    ),
    Panel(
        "regret",
        "The term of the regret bound (appendix B.3)",
        TheoryProblem(50, 2.0, 0.02, InverseTime(0.002, 0.0, 0.0)),
        (TheoryMethod("uniform", Uniform(), "inverse"), *gains(FIXED, importance="inverse")),
        n_passes=400,
        measures=("term",),
    ),
    Panel(
        "regret-bound",
        "The regret bound (appendix B.3), as printed and with the gradient's noise",
        TheoryProblem(5, 1.0, 4.0, InverseTime(0.01, 0.0, 0.0), SHORT, 0.05),
        (
            TheoryMethod("uniform", Uniform(), "inverse"),
            TheoryMethod("musketeer-absolute", FIXED, "inverse"),
            TheoryMethod("regret-bound", Uniform(), "inverse", draws="bound"),
            TheoryMethod("regret-printed", Uniform(), "inverse", draws="printed"),
        ),
        n_passes=400,
        measures=("gap",),
        xscale="log",
    ),
    Panel(
        "phase-length",
        "Phase length T from 1 to p",
        TheoryProblem(100, 2.0, 0.02, InverseTime(0.3, 5.0, per="pass")),
        (
            TheoryMethod("uniform", Uniform()),
            *(TheoryMethod(f"T={n}", Musketeer(length=n)) for n in (1, 3, 10, 30, 100)),
        ),
        n_passes=200,
    ),
    Panel(
        "rescaled",
        "The rescaled process against uniform (the paper's conjecture)",
        TheoryProblem(10, 0.5, 1.0, InverseTime(4.0, 5.0, per="pass")),
        (TheoryMethod("uniform", Uniform()), *gains(SOFT)),
        n_passes=4000,
        n_runs=60,
        measures=("deviation",),
    ),
)
EXPERIMENTS = (
    Experiment(
        "theory",
        "The theorems at work",
        "Theorems 1 to 5, Proposition 2, appendix B.3 and the remarks of section 4",
        "theory",
        {"paper": PANELS},
        notes=(
            "Quadratics whose curvatures fall like a power of k, Gaussian noise in the gradient; "
            "differences with h = √γ. In the panel on weights the noise falls like 1/k, so that "
            "gains differ. One pass is p coordinate steps. The bound of Theorem 4 uses constants "
            "of the sup norm (the remark after it); order is the line that the recursion behind it "
            "tends to. "
            "For α = 1 differences are so short that they have no bias: with it the recursion, "
            "whose decrease is then halved, would take longer than the run to forget its start. "
            "Slopes are taken over the last tenfold of passes, run by run.",
            "Theorem 2 is about policies that choose by the true gradient; the library's choose by "
            "an estimate from another sample. Both are drawn: true gradient means the former.",
            "Proposition 2: a flat line is an unbiased policy. The laws are those learned in ten "
            "passes, the steps are taken at the start.",
            "The regret bound is about the gap of the average iterate, with steps weighted by 1/d. "
            "As printed it has (∂f)² where its proof has E g²; under noise that is no bound.",
        ),
    ),
)
