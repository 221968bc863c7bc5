"""What the tables say: curves with their spread, final figures and ranks, published ones beside."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from scgd.errors import CommandError
from scgd_paper.rows import REFERENCES, Experiment
from scgd_paper.table import WEIGHT_COLUMNS, read

__all__ = [
    "curves",
    "finals",
    "fitting_statistic",
    "laws",
    "limits",
    "overlay",
    "paths",
    "published_finals",
    "summarize",
]

LARGER_IS_BETTER = ("accuracy",)
UNBOUNDED = ("gap", "loss", "gradient-norm")
"""Measures that a diverging run takes to infinity."""
ROOM = {"log": 100.0, "linear": 3.0}
"""How far above the tamest method a chart reaches, by the kind of its axis."""
WORST_RISE = 1e4
"""How far above the start a chart looks for the tamest method, at most."""
HUGE = 1e300
"""Stands for infinity where differences are taken."""
HEAVY = 3.0
"""How many times its median a mean may be before the median is shown instead."""
MIN_RUNS = 5
"""Runs that it takes to call a law heavy-tailed."""
MAX_POINTS = 240
"""Points per curve in a report, at most."""


def curves(table: Any) -> dict[str, dict[str, dict[str, Any]]]:
    """Return per settings, measure and method the curve over the runs, with its spread."""
    out: dict[str, dict[str, dict[str, Any]]] = {}
    keys = ["settings", "measure", "method"]
    for (settings, measure, method), rows in table.groupby(keys, sort=False, observed=True):
        out.setdefault(settings, {}).setdefault(measure, {})[method] = statistics(
            rows, unbounded=measure in UNBOUNDED
        )
    return out


def statistics(rows: Any, *, unbounded: bool = False) -> dict[str, Any]:
    """Return mean, spread, median and quartiles along the passes of one method.

    Where values are unbounded, one that is not a number is that of a run that blew up: infinite.
    """
    wide = rows.pivot_table(index="pass", columns="run", values="value", dropna=False)
    axes = rows.groupby("pass")[["queries", "seconds"]].median()
    keep = np.unique(np.linspace(0, len(wide) - 1, min(len(wide), MAX_POINTS)).round().astype(int))
    values, axes = wide.to_numpy()[keep], axes.iloc[keep]
    if unbounded:
        values = np.where(np.isnan(values), np.inf, values)
    with np.errstate(all="ignore"):
        mean, std = values.mean(axis=1), spread(values)
        q25, median, q75 = quartiles(values)
        # A band on a log axis cannot reach below the lowest run.
        below = np.fmax(mean - std, values.min(axis=1))
    return {
        "runs": values.shape[1],
        "pass": wide.index.to_numpy()[keep],
        "queries": axes["queries"].to_numpy(),
        "seconds": axes["seconds"].to_numpy(),
        "mean": mean,
        "std": std,
        "below": below,
        "above": mean + std,
        "median": median,
        "q25": q25,
        "q75": q75,
    }


def fitting_statistic(by_settings: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Return which statistic shows a panel best: the median where single runs decide a mean.

    That is where, for some method's final gap or loss, the mean leaves the quartiles by far.
    """
    for measures in by_settings.values():
        for measure in set(UNBOUNDED) & set(measures):
            for curve in measures[measure].values():
                mean, median = float(curve["mean"][-1]), float(curve["median"][-1])
                if curve["runs"] >= MIN_RUNS and 0 < HEAVY * median < mean < np.inf:
                    return "median"
    return "mean"


def spread(values: Any) -> Any:
    """Return the standard deviation over the runs; squares of huge values do not overflow."""
    scale = np.abs(values).max(axis=1, keepdims=True)
    unit = np.where((scale > 0) & np.isfinite(scale), scale, 1.0)
    std = (values / unit).std(axis=1) * unit[:, 0]
    return np.where(np.isinf(scale[:, 0]), np.inf, std)


def quartiles(values: Any) -> Any:
    """Return quartiles and median over the runs, of which some may be infinite."""
    found = np.quantile(np.minimum(values, HUGE), [0.25, 0.5, 0.75], axis=1)
    return np.where(found > HUGE / 10, np.inf, found)


def limits(panel_curves: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return per measure how high its chart reaches, so that a diverging method hides no other.

    The tamest method and the start are always inside.
    """
    out = {}
    for measure in UNBOUNDED:
        if measure not in panel_curves:
            continue
        medians = [curve["median"] for curve in panel_curves[measure].values()]
        start = max((m[0] for m in medians if 0 < m[0] < np.inf), default=np.nan)
        if np.isfinite(start):
            tamest = min(float(m.max()) for m in medians)
            reach = max(start, min(tamest, WORST_RISE * start))
            out[measure] = {axis: room * reach for axis, room in ROOM.items()}
    return out


def paths(table: Any) -> dict[str, dict[str, Any]]:
    """Return per settings and method the way of run 0 through the plane.

    A mean over runs would move diagonally where every run moves along one axis at a time.
    """
    out: dict[str, dict[str, Any]] = {}
    keys = ["settings", "method"]
    first = table[(table["run"] == 0) & table["measure"].isin(("x", "y"))]
    for (settings, method), rows in first.groupby(keys, sort=False, observed=True):
        wide = rows.pivot_table(index="pass", columns="measure", values="value")
        way = {name: wide[name].to_numpy() for name in ("x", "y")}
        out.setdefault(settings, {})[method] = {"pass": wide.index.to_numpy(), **way}
    return out


def finals(
    panel_curves: dict[str, dict[str, Any]], measure: str, quick: bool = False
) -> list[dict[str, Any]]:
    """Return the final figures of the methods, best first, with their rank by the median.

    What is only drawn for reference has the rank None. Quick runs keep the order of the table, all
    of them without a rank.
    """
    rows = []
    for method, curve in panel_curves[measure].items():
        last = {name: float(curve[name][-1]) for name in ("mean", "std", "median", "q25", "q75")}
        seconds = float(curve["seconds"][-1])
        rows.append({"method": method, "runs": curve["runs"], "seconds": seconds, **last})
    if quick:
        return [row | {"rank": None} for row in rows]
    sign = -1 if measure in LARGER_IS_BETTER else 1
    rows.sort(key=lambda row: (np.isnan(row["median"]), sign * row["median"]))
    rank = 0
    for row in rows:
        rank += row["method"] not in REFERENCES
        row["rank"] = rank if row["method"] not in REFERENCES else None
    return rows


def laws(path: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Return per panel, settings and method the mean learned law, times p, largest size first."""
    if not path.exists():
        return {}
    table = read(path, WEIGHT_COLUMNS)
    out: dict[str, dict[str, dict[str, Any]]] = {}
    keys = ["panel", "settings", "method"]
    for (panel, settings, method), rows in table.groupby(keys, sort=False, observed=True):
        mean = rows.groupby("coordinate")[["size", "weight"]].mean()
        order = np.argsort(-mean["size"].to_numpy(), kind="stable")
        scaled = mean["weight"].to_numpy()[order] * len(mean)
        out.setdefault(panel, {}).setdefault(settings, {})[method] = {"weight": scaled}
    return out


@lru_cache(maxsize=1)
def published_table() -> Any:
    """Return the published final figures that come with the package."""
    import pandas as pd

    with files("scgd_paper").joinpath("published.csv").open() as file:
        return pd.read_csv(file, comment="#")


def published_finals(
    experiment: str, panel: str, last_pass: float
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return per measure and method the published figure of a panel at this last pass."""
    table = published_table()
    out: dict[str, dict[str, dict[str, Any]]] = {}
    wanted = (table["experiment"] == experiment) & (table["panel"] == panel)
    rows = table[wanted & (table["pass"] == last_pass)]
    for row in rows.to_dict("records"):
        figures = {n: row[n] for n in ("pass", "mean", "std", "median", "q25", "q75")}
        known = {n: v for n, v in figures.items() if not np.isnan(v)}
        out.setdefault(row["measure"], {})[row["method"]] = {"final": known}
    return out


def overlay(
    experiment: str, panel: str, last_pass: float, folder: str | None
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return published finals and, where a folder has them, whole published curves."""
    from scgd_paper.published import published_curves

    out = published_finals(experiment, panel, last_pass)
    place = folder or os.environ.get("SCGD_PUBLISHED")
    if place is None:
        return out
    for (measure, method), (passes, values) in published_curves(experiment, panel, place).items():
        values = values[:, passes <= last_pass]
        curve = {"pass": passes[passes <= last_pass], "mean": values.mean(axis=0)}
        if len(values) > 1:
            curve["median"] = np.median(values, axis=0)
        out.setdefault(measure, {}).setdefault(method, {})["curve"] = curve
    return out


def summarize(experiment: Experiment, folder: Path, quick: bool = False) -> list[dict[str, Any]]:
    """Return the finals of each panel and setting in the table, with published ones beside."""
    path = folder / f"{experiment.id}.csv"
    if not path.exists():
        raise CommandError(
            f"there is no {path}; run it with: "
            f"python -m scgd_paper run {experiment.id} --out {folder}"
        )
    out = []
    table = read(path)
    for panel, rows in table.groupby("panel", sort=False, observed=True):
        for settings, measures in curves(rows).items():
            for measure in measures:
                last_pass = float(rows["pass"].max())
                known = published_finals(experiment.id, panel, last_pass).get(measure, {})
                figures = finals(measures, measure, quick)
                for row in figures:
                    row["published"] = known.get(row["method"], {}).get("final", {})
                    if settings != "published":
                        row["published"] = {}
                out.append({"panel": panel, "settings": settings, "measure": measure,
                            "finals": figures})  # fmt: skip
    return out
