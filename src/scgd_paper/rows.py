"""What an experiment is: rows of data, from which the runner, the table and the report are made.

An experiment has panels, one tuple of them per setting; a panel is a problem, its methods and how
long they run. ``published`` settings are those that made the published curves, ``paper`` settings
follow the text. A kind of experiment brings a module with ``execute(job)`` (:data:`KINDS`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from scgd.errors import UsageError
from scgd_paper.table import Key

__all__ = [
    "KINDS",
    "MEASURES",
    "REFERENCES",
    "SETTINGS",
    "Experiment",
    "Job",
    "Panel",
    "method_look",
]

SETTINGS = ("published", "paper")
KINDS = {
    "linear": "scgd_paper.linear_runs",
    "zeroth-order network": "scgd_paper.network_runs",
    "first-order network": "scgd_paper.network_runs",
    "path": "scgd_paper.path_runs",
    "theory": "scgd_paper.theory_runs",
}
"""Where each kind of experiment is carried out; modules are imported when one is run."""
MEASURES = {
    "gap": "f(θ) − f*",
    "loss": "training loss",
    "accuracy": "test accuracy",
    "gradient-norm": "‖∇f(θ)‖",
    "slope": "slope of log gap over log t",
    "distance": "largest p·d − 1",
    "term": "mean of Σ (∂f)² / d",
    "step": "p × mean step / (−γ ∂f)",
    "deviation": "root mean square of (θ − θ*) / √γ",
    "x": "x",
    "y": "y",
}
"""What is measured, with the label of its axis."""


@dataclass(frozen=True)
class Panel:
    """One picture: a problem, the methods that compete on it, and how long they run.

    Parameters
    ----------
    name, title
        What it is called in tables, and for people.
    problem
        A row that the kind's module understands.
    methods
        Rows with a ``name``, one per curve.
    n_passes, every
        The length of a run and how often it is recorded, in passes.
    n_runs
        Independent runs per method.
    measures
        What is recorded.
    xlabel
        What a pass is, where it is not a pass over the coordinates.
    needs
        The data set it needs, if any.
    xscale
        The scale of the x axis that shows it best.
    extras
        Methods that are run only when they are asked for by name: what came after the paper.
    """

    name: str
    title: str
    problem: Any
    methods: tuple[Any, ...]
    n_passes: int
    n_runs: int = 20
    every: int = 1
    measures: tuple[str, ...] = ("gap",)
    xlabel: str = ""
    needs: str = ""
    xscale: str = "linear"
    extras: tuple[Any, ...] = ()

    def quick(self) -> Panel:
        """Return a version that runs in moments, to see that everything works."""
        problem = self.problem.quick() if hasattr(self.problem, "quick") else self.problem
        n_passes = min(self.n_passes, getattr(self.problem, "quick_passes", 8))
        every = max(1, min(self.every, n_passes // 4))
        return replace(self, problem=problem, n_passes=n_passes, every=every, n_runs=2)


@dataclass(frozen=True)
class Experiment:
    """A figure of the paper, or several of a kind.

    Parameters
    ----------
    id, title, paper
        Its name, what it shows, and where in the paper it is.
    kind
        A key of :data:`KINDS`.
    panels
        Per setting, its panels.
    differences
        Rows (what, published, paper): where the settings part.
    notes
        Sentences for the report: choices made where the text is silent.
    """

    id: str
    title: str
    paper: str
    kind: str
    panels: dict[str, tuple[Panel, ...]]
    differences: tuple[tuple[str, str, str], ...] = ()
    notes: tuple[str, ...] = ()
    extra: Any = field(default=None, compare=False)

    def setting(self, wanted: str) -> str:
        """Return the wanted setting, or the only one there is."""
        if wanted not in SETTINGS:
            raise UsageError(f"settings must be one of {', '.join(SETTINGS)}, got {wanted!r}")
        return wanted if wanted in self.panels else next(iter(self.panels))

    def panel(self, name: str, settings: str) -> Panel:
        """Return a panel by name."""
        return next(p for p in self.panels[settings] if p.name == name)


@dataclass(frozen=True)
class Job:
    """Some runs of one method on one panel: the unit of work handed to a core."""

    experiment: str
    kind: str
    settings: str
    panel: Panel
    method: Any
    runs: tuple[int, ...]
    data: str | None = None
    workers: int = 1

    def key(self, run: int) -> Key:
        """Return the name of a run in the table."""
        return Key(self.experiment, self.panel.name, self.settings, self.method.name, run)

    def entropy(self, run: int) -> list[int]:
        """Return the seed of a run: the same whatever else runs, and on which core."""
        return [run, *(f"{self.panel.name}/{self.method.name}".encode())]


REFERENCES = {
    "sgd-equal": "SGD with whole gradients and as much data",
    "theorem-4": "the bound of Theorem 4",
    "recursion": "the recursion behind the bound",
    "order": "what the recursion tends to",
    "regret-bound": "the regret bound with the gradient's noise",
    "regret-printed": "the regret bound as printed",
}
"""Curves that are drawn beside the methods and compete with none of them."""
LOOKS = {
    "full": "#6f7682",
    "sgd": "#6f7682",
    "uniform": "#2f7fd1",
    "sphere": "#8a5cc9",
    "gaussian": "#8a5cc9",
    "musketeer-average": "#1f9e63",
    "musketeer-absolute": "#d9372c",
    "musketeer-square": "#e08a00",
    "musketeer": "#d9372c",
    "adaptive": "#1f9e63",
    "gauss-southwell": "#c2448f",
    "gradient-weights": "#2aa5a0",
    "theorem-4": "#9a6a3c",
    "recursion": "#6f8f2f",
    "order": "#8796d8",
    "regret-bound": "#5b4bd6",
    "regret-printed": "#00a3c7",
    "auto": "#0b8f8a",
    "musketeer-today": "#b8860b",
    "eta1": "#e6b400",
    "eta2": "#e0701a",
    "eta10": "#d9372c",
    "T=1": "#e6b400",
    "T=3": "#9fb81f",
    "T=10": "#ee7f6b",
    "T=30": "#8a5cc9",
    "T=100": "#d05fc4",
}
"""The colour of each method; no two of one experiment and setting look the same."""
SUFFIXES = {"-importance": "dash", "-softmax": "dot", "-equal": "dash", "-true": "dash"}
"""Variants of a method have its colour and a dash of their own."""
SPARE = ("#e6b400", "#c2448f", "#2aa5a0", "#9a6a3c", "#6f8f2f", "#d05fc4")


def method_look(name: str) -> dict[str, str]:
    """Return label, colour and dash of a method, the same in every picture.

    Examples
    --------
    >>> method_look("musketeer-square-importance")["dash"]
    'dash'
    """
    base, dash, label = name, "solid", name.replace("-", " ")
    for suffix, style in SUFFIXES.items():
        if name.endswith(suffix):
            base, dash = name.removesuffix(suffix), style
    if name.endswith("-true"):
        label = f"{base.replace('-', ' ')}, true gradient"
    # A method without a colour of its own gets one from its name, not from where it stands.
    colour = LOOKS.get(base, SPARE[sum(base.encode()) % len(SPARE)])
    return {"label": label, "colour": colour, "dash": dash}
