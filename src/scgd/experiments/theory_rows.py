"""Rows that show the theorems at work, on quadratics whose constants are known."""

from __future__ import annotations

from dataclasses import dataclass, replace

from scgd.experiments.rows import Experiment, Panel
from scgd.policies import (
    Full,
    GaussSouthwell,
    GradientWeights,
    Musketeer,
    Policy,
    Uniform,
)
from scgd.schedules import InverseTime, Schedule, SqrtOf

__all__ = ["EXPERIMENTS", "TheoryMethod", "TheoryProblem"]


@dataclass(frozen=True)
class TheoryProblem:
    """A noisy quadratic and its schedules.

    f(x, xi) = sum_k k^-decay x_k^2 / 2 + noise k^-noise_decay xi_k x_k with Gaussian xi.
    """

    n_coords: int
    decay: float
    noise: float
    learning_rate: Schedule
    radius: Schedule | None = None
    start: float = 1.0
    noise_decay: float = 0.0
    quick_passes: int = 40

    @property
    def h(self) -> Schedule:
        """The radius; by default the square root of the learning rate (Theorem 4)."""
        return SqrtOf(self.learning_rate) if self.radius is None else self.radius


@dataclass(frozen=True)
class TheoryMethod:
    """A policy that is run, or a bound that is drawn (``policy=None``, once)."""

    name: str
    policy: Policy | None
    importance: str | None = None
    n_runs: int = 1_000_000


FIXED = Musketeer(mixing=0.3)
SOFT = Musketeer(normalization="softmax", mixing=0.3)
PER_PASS = InverseTime(2.0, 5.0, per="pass")


def gains(policy: Musketeer, **other: str) -> tuple[TheoryMethod, ...]:
    """Return a policy with each of the three gains."""
    return tuple(
        TheoryMethod(f"musketeer-{gain}", replace(policy, gain=gain), **other)  # type: ignore[arg-type]
        for gain in ("average", "absolute", "square")
    )


PANELS = (
    Panel(
        "gradient-norm",
        "The gradient tends to zero (Theorems 1 to 3)",
        TheoryProblem(10, 1.0, 0.2, PER_PASS),
        (
            TheoryMethod("full", Full()),
            TheoryMethod("gauss-southwell", GaussSouthwell()),
            TheoryMethod("gradient-weights", GradientWeights()),
            TheoryMethod("uniform", Uniform()),
            TheoryMethod("musketeer-absolute", FIXED),
        ),
        n_passes=300,
        n_runs=5,
        measures=("gradient-norm",),
    ),
    Panel(
        "bound",
        "Theorem 4: gaps under its bound, falling like 1/t",
        TheoryProblem(2, 0.0, 0.5, InverseTime(5.0)),
        (
            TheoryMethod("uniform", Uniform()),
            TheoryMethod("theorem-4", None, n_runs=1),
            TheoryMethod("recursion", None, n_runs=1),
            TheoryMethod("one-over-t", None, n_runs=1),
        ),
        n_passes=50_000,
        n_runs=40,
        measures=("gap", "slope"),
        xscale="log",
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
        "Theorems 1 to 5, appendix B.3 and the remarks of section 4",
        "theory",
        {"paper": PANELS},
        notes=(
            "Quadratics with curvatures k^−decay and Gaussian noise in the gradient; differences "
            "with h = √γ. In the panel on weights the noise falls like 1/k, so that gains differ. "
            "One pass is p coordinate steps. The bound of Theorem 4 uses the constants of the sup "
            "norm (the remark after it); one over t is the line that the recursion behind it tends "
            "to. Slopes are taken over the last tenfold of passes, run by run.",
        ),
    ),
)
