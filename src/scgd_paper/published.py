"""Published curves as data: which file, which key, what has to be subtracted.

A folder of the authors' stored results (one ``.npz`` per panel) is named by ``SCGD_PUBLISHED`` or
``--published``; without one only the final figures that come with the package are shown.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from scgd.errors import CommandError
from scgd.typing import Array

__all__ = ["published_curves", "published_folder"]


class Source(NamedTuple):
    """Where a panel's published curves are: file, prefix of keys, whether losses are stored."""

    file: str
    prefix: str = ""
    losses: bool = False


def published_folder(given: str | None) -> str | None:
    """Return the folder of published curves that was named, if one was; it must hold some."""
    place = given or os.environ.get("SCGD_PUBLISHED") or None
    if place is not None and not any(Path(place).glob("*.npz")):
        raise CommandError(
            f"{place} (--published or SCGD_PUBLISHED) is no folder with published curves (*.npz)"
        )
    return place


def source_of(experiment: str, panel: str) -> Source | None:
    """Return where the published curves of a panel are stored, if anywhere."""
    if experiment in ("zo-linear", "fo-linear"):
        return Source(f"{experiment[:2]}_{panel.replace('-', '_')}.npz", losses=True)
    if experiment in ("zo-grid", "zo-importance"):
        model, n, p = panel.split("-")
        return Source(f"zo_{model}_{n}.npz", f"{p}/")
    if experiment in ("zo-networks", "fo-networks"):
        return Source(f"{experiment[:2]}_{panel.replace('-', '_')}.npz", "network")
    return None


def optimum_of(experiment: str, panel: str) -> float:
    """Return f* of the problem whose losses were stored: that of the panel itself."""
    from scgd_paper.linear_runs import problem_data
    from scgd_paper.registry import EXPERIMENTS

    return problem_data(EXPERIMENTS[experiment].panel(panel, "published").problem)[2]


def published_curves(
    experiment: str, panel: str, folder: str | Path
) -> dict[tuple[str, str], tuple[Array, Array]]:
    """Return per measure and method the passes and the runs (a matrix) that are stored."""
    source = source_of(experiment, panel)
    path = None if source is None else Path(folder) / source.file
    if source is None or path is None or not path.exists():
        return {}
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {key: np.atleast_2d(stored[key]) for key in stored.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise CommandError(
            f"cannot read the published curves in {path}: {error}; get the file again"
        ) from None
    if source.prefix == "network":
        return network_curves(experiment, panel, arrays)
    optimum = optimum_of(experiment, panel) if source.losses else 0.0
    out = {}
    for key, values in arrays.items():
        if key.startswith(source.prefix):
            method = key.removeprefix(source.prefix)
            out["gap", method] = (np.arange(values.shape[1]), values - optimum)
    return out


def network_curves(
    experiment: str, panel: str, arrays: dict[str, Array]
) -> dict[tuple[str, str], tuple[Array, Array]]:
    """Return network curves: stored per epoch (zeroth order) or over the passes (first order).

    First-order accuracies are stored once a pass, from pass 1; losses at even distances from pass 0
    to the end of the same run, whose length the accuracies tell.
    """
    out = {}
    for key, values in arrays.items():
        measure, method = key.split("/")
        n = values.shape[1]
        passes = np.arange(1, n + 1)
        if experiment == "fo-networks" and measure == "loss":
            passes = np.arange(n) * n_passes(panel, arrays.get(f"accuracy/{method}")) / n
        out[measure, method] = (passes, values)
    return out


def n_passes(panel: str, accuracies: Array | None) -> int:
    """Return how many passes a stored first-order run has."""
    if accuracies is not None:
        return int(accuracies.shape[1])
    from scgd_paper.registry import EXPERIMENTS

    return EXPERIMENTS["fo-networks"].panel(panel, "published").n_passes
