"""All experiments, by id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scgd.errors import UsageError
from scgd.experiments import linear_rows, network_rows, path_rows, theory_rows
from scgd.experiments.rows import Experiment, Panel

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
    rows: Sequence[Experiment], names: Sequence[str], settings: str
) -> dict[str, list[Panel]]:
    """Return per experiment the panels asked for; a name must exist in one of the experiments."""
    from scgd.errors import nearest

    chosen = {row.id: list(row.panels[row.setting(settings)]) for row in rows}
    known = [panel.name for panels in chosen.values() for panel in panels]
    for name in names:
        if name not in known:
            raise UsageError(f"there is no panel {name!r}{nearest(name, dict.fromkeys(known))}")
    if names:
        chosen = {id: [p for p in panels if p.name in names] for id, panels in chosen.items()}
    return {id: panels for id, panels in chosen.items() if panels}
