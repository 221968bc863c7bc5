"""All experiments, by id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from scgd.errors import UsageError
from scgd_paper import linear_rows, network_rows, path_rows, theory_rows
from scgd_paper.rows import Experiment, Panel

__all__ = ["EXPERIMENTS", "find", "select"]

ORDER = (
    "zo-linear",
    "zo-networks",
    "paths-2d",
    "fo-linear",
    "fo-networks",
    "zo-grid",
    "zo-importance",
    "fo-rates",
    "fo-grid",
    "theory",
)
ROWS = {
    row.id: row
    for module in (linear_rows, network_rows, path_rows, theory_rows)
    for row in module.EXPERIMENTS
}
EXPERIMENTS: dict[str, Experiment] = {name: ROWS[name] for name in ORDER}


def find(ids: Iterable[str]) -> list[Experiment]:
    """Return experiments by id (``"all"`` is all of them), or suggest the nearest names.

    Examples
    --------
    >>> [row.id for row in find(["theory"])]
    ['theory']
    """
    from scgd.errors import nearest

    found: dict[str, Experiment] = {}
    for name in ids:
        if name == "all":
            found |= EXPERIMENTS
        elif name in EXPERIMENTS:
            found[name] = EXPERIMENTS[name]
        else:
            raise UsageError(f"there is no experiment {name!r}{nearest(name, EXPERIMENTS)}")
    return list(found.values())


def select(
    rows: Sequence[Experiment],
    names: Sequence[str],
    settings: str,
    methods: Sequence[str] = (),
    extras: Sequence[str] = (),
) -> dict[str, list[Panel]]:
    """Return per experiment the panels asked for, with the methods asked for.

    Every name must exist in one of the experiments; a panel without any of the methods is left out.
    """
    every = {row.id: list(row.panels[row.setting(settings)]) for row in rows}
    known = [panel for panels in every.values() for panel in panels]
    check_names("panel", names, (panel.name for panel in known))
    check_names("method", methods, (m.name for panel in known for m in panel.methods))
    check_names("extra method", extras, (m.name for panel in known for m in panel.extras))
    chosen = {
        id: [with_methods(p, methods, extras) for p in panels if not names or p.name in names]
        for id, panels in every.items()
    }
    chosen = {id: [p for p in panels if p.methods] for id, panels in chosen.items()}
    return {id: panels for id, panels in chosen.items() if panels}


def with_methods(panel: Panel, methods: Sequence[str], extras: Sequence[str]) -> Panel:
    """Return a panel with the methods asked for, all its own by default, and the extra ones."""
    own = [m for m in panel.methods if m.name in methods or not methods]
    return replace(panel, methods=(*own, *(m for m in panel.extras if m.name in extras)))


def check_names(what: str, names: Sequence[str], known: Iterable[str]) -> None:
    """Refuse a name that does not exist, with the nearest one that does."""
    from scgd.errors import nearest

    every = dict.fromkeys(known)
    for name in names:
        if name not in every:
            hint = nearest(name, every) if every else "; no experiment named here has any"
            raise UsageError(f"there is no {what} {name!r}{hint}")
