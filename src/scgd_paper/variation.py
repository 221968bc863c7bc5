"""Experiments with other settings: ``--set gamma=3`` and :func:`varied`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from scgd.checks import whole
from scgd.errors import UsageError, nearest
from scgd.schedules import SqrtOf
from scgd_paper.rows import Experiment, Panel

__all__ = ["NAMES", "read_changes", "varied", "varied_panel"]

NAMES = {
    "gamma": ("learning_rate", "scale"),
    "k0": ("learning_rate", "offset"),
    "h": ("radius", "scale"),
    "lambda": ("policy", "mixing"),
    "eta": ("policy", "sharpness"),
    "T": ("policy", "length"),
    "n": ("n_samples",),
    "p": ("n_coords",),
    "passes": ("n_passes",),
}
"""The paper's names of what may be set; every number of a panel, its problem or a method has its
own."""


def read_changes(words: list[str]) -> dict[str, float]:
    """Return settings of a command line: ``["gamma=3"]``.

    Examples
    --------
    >>> read_changes(["gamma=3", "eta=0.5"])
    {'gamma': 3.0, 'eta': 0.5}
    """
    found = {}
    for word in words:
        name, _, text = word.partition("=")
        try:
            found[name] = float(text)
        except ValueError:
            name = ""
        if not name or not math.isfinite(found[name]):
            raise UsageError(f"--set must be NAME=NUMBER, such as gamma=3, got {word!r}")
    return found


def label(changes: Mapping[str, float]) -> str:
    """Return settings as words."""
    return ", ".join(f"{name} = {value:g}" for name, value in changes.items())


def varied(experiment: Experiment, changes: Mapping[str, float]) -> Experiment:
    """Return an experiment with other settings; each must be known to one of its panels."""
    panels = experiment.panels
    for name, value in changes.items():
        known: dict[str, None] = {}
        for every in panels.values():
            for panel in every:
                known |= dict.fromkeys(settings_of(panel))
        if name not in known:
            raise UsageError(f"{experiment.id} has no setting {name!r}{nearest(name, known)}")
        panels = {
            settings: tuple(changed_panel(panel, name, value) for panel in every)
            for settings, every in panels.items()
        }
    title = f"{experiment.title}, {label(changes)}" if changes else experiment.title
    return replace(experiment, panels=panels, title=title)


def varied_panel(panel: Panel, changes: Mapping[str, float]) -> Panel:
    """Return a panel with other settings.

    Examples
    --------
    >>> from scgd_paper.registry import EXPERIMENTS
    >>> panel = EXPERIMENTS["zo-linear"].panel("ridge-alpha5", "published")
    >>> varied_panel(panel, {"gamma": 3}).methods[0].learning_rate.scale
    3.0
    """
    for name, value in changes.items():
        if name not in settings_of(panel):
            raise UsageError(
                f"{panel.name} has no setting {name!r}{nearest(name, settings_of(panel))}"
            )
        panel = changed_panel(panel, name, value)
    return panel


def settings_of(panel: Panel) -> list[str]:
    """Return the names that may be set in a panel."""
    parts = (panel, panel.problem, *panel.methods)
    found = [name for name, path in NAMES.items() if any(holds(part, path) for part in parts)]
    own = {f.name for part in parts for f in fields(part) if is_number(getattr(part, f.name))}
    return [*found, *sorted(own)]


def changed_panel(panel: Panel, name: str, value: float) -> Panel:
    """Return a panel with one setting changed wherever it occurs."""
    try:
        return replaced(panel, NAMES.get(name, (name,)), value)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{name}={value:g} cannot be: {error}") from None


def replaced(panel: Panel, path: tuple[str, ...], value: float) -> Panel:
    """Return a panel with what stands at a path changed, in itself and in its parts."""
    problem = changed(panel.problem, path, value)
    methods = tuple(changed(method, path, value) for method in panel.methods)
    extras = tuple(changed(method, path, value) for method in panel.extras)
    return changed(replace(panel, problem=problem, methods=methods, extras=extras), path, value)  # type: ignore[no-any-return]


def changed(part: Any, path: tuple[str, ...], value: float) -> Any:
    """Return a row with a number changed, if it has it; a radius that follows the rate goes on."""
    if not holds(part, path):
        return part
    name, *rest = path
    now = getattr(part, name)
    new: Any = value  # a number in the place of a schedule, too
    if rest:
        new = changed(now, tuple(rest), value)
    elif any(f.name == name and "int" in str(f.type) for f in fields(part)):
        new = whole(value, name, 1)
    more = {}
    if name == "learning_rate" and getattr(part, "radius", None) == SqrtOf(now):
        more = {"radius": SqrtOf(new)}
    return replace(part, **{name: new}, **more)


def holds(part: Any, path: tuple[str, ...]) -> bool:
    """Tell whether a row has such a number, or a schedule in its place."""
    name, *rest = path
    if not is_dataclass(part) or name not in {f.name for f in fields(part)}:
        return False
    value = getattr(part, name)
    if rest:
        return value is not None and holds(value, tuple(rest))
    return is_number(value) or callable(value) or (value is None and name == "length")


def is_number(value: Any) -> bool:
    """Tell a number from a truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)
