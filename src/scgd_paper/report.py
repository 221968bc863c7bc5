"""The report: one self-contained page with every panel's curves, figures and learned laws."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from scgd import __version__
from scgd.errors import CommandError
from scgd_paper import summary
from scgd_paper.files import write_whole
from scgd_paper.pieces import (
    NO_FINALS,
    accuracies,
    chip,
    coverage,
    differences,
    esc,
    fmt,
    known_panel,
    panel_card,
    pictures,
    ranking,
    toolbar,
)
from scgd_paper.provenance import read_note
from scgd_paper.registry import EXPERIMENTS
from scgd_paper.rows import MEASURES, REFERENCES, Experiment, method_look
from scgd_paper.table import read

__all__ = ["build", "terminal_summary"]

LINEAR_MEASURES = ("accuracy", "slope", "x", "y")
"""Measures that are drawn on a linear axis."""
SCRIPTS = ("state", "curves", "paths", "laws", "exports", "page")
"""The page's program, in this order."""
PIXELS = 28
"""The side of the images whose pixels a network's law is summed over."""


def build(
    folder: Path,
    published: str | None = None,
    experiments: Mapping[str, Experiment] = EXPERIMENTS,
) -> Path:
    """Write ``report.html`` from the tables of a folder and return its path."""
    if not folder.is_dir():
        raise CommandError(f"there is no folder {folder}")
    rows = [row for row in experiments.values() if (folder / f"{row.id}.csv").exists()]
    if not rows:
        raise CommandError(
            f"{folder} holds no table of results; fill it with: python -m scgd_paper run ID"
        )
    sections, panels, whole, troubles = [], {}, [], []
    for experiment in rows:
        try:
            section, payload = experiment_section(experiment, folder, published)
        except CommandError as error:
            troubles.append(str(error))
            continue
        whole.append(experiment)
        sections.append(section)
        panels.update(payload)
    if not whole:
        raise CommandError("\n".join(troubles))
    page = assemble(whole, sections, panels, folder)
    path = folder / "report.html"
    write_whole(path, page.encode())
    if troubles:
        raise CommandError("\n".join([*troubles, f"{path} holds the other experiments"]))
    return path


def experiment_section(
    experiment: Experiment, folder: Path, published: str | None
) -> tuple[str, dict[str, Any]]:
    """Return an experiment's part of the page and what its charts are drawn from."""
    table = read(folder / f"{experiment.id}.csv")
    quick = is_quick(experiment, folder)
    learned = summary.laws(folder / f"{experiment.id}.weights.csv")
    cards, payload = [], {}
    for name, rows in table.groupby("panel", sort=False, observed=True):
        shape = known_panel(experiment, str(name))
        curves = summary.curves(rows)
        entry = {
            "kind": experiment.kind,
            "known": list(experiment.panels),
            "curves": curves,
            "limits": {settings: summary.limits(measures) for settings, measures in curves.items()},
            "published": {} if quick else summary.overlay(
                experiment.id, str(name), float(rows["pass"].max()), published
            ),
            "quick": quick,
            "statistic": summary.fitting_statistic(curves),
            "laws": learned.get(name, {}),
            "linear": LINEAR_MEASURES,
            "xlabel": shape.xlabel if shape else "",
            "xscale": shape.xscale if shape else "linear",
            "lawlabel": "coordinates, largest column first",
            "picture": PIXELS if "network" in experiment.kind else 0,
        }  # fmt: skip
        if experiment.kind == "path" and shape is not None:
            entry |= shape.problem.scene() | {"paths": summary.paths(rows)}
        payload[f"{experiment.id}/{name}"] = entry
        cards.append(panel_card(experiment, str(name), shape, entry))
    methods = list(dict.fromkeys(table["method"]))
    chips = "".join(map(chip, methods))
    ranked = not quick and experiment.kind != "theory"  # its panels ask different questions
    return (
        f'<section id="{esc(experiment.id)}"><h2>{esc(experiment.title)}</h2>'
        f'<p class="note">{esc(experiment.paper)} · '
        f"<code>python -m scgd_paper run {experiment.id}</code></p>"
        f"{coverage(experiment, table)}{pictures(experiment, folder)}"
        f'<div class="chips" role="group" aria-label="methods">{chips}</div>'
        f'<div class="panels">{"".join(cards)}</div>'
        f"{accuracies(payload)}{ranking(payload) if ranked else ''}"
        f"{differences(experiment)}</section>"
    ), payload


def overlaid(panels: dict[str, Any]) -> str:
    """Say how whole published curves are drawn, if there are any."""
    known = (figures for entry in panels.values() for measure in entry["published"].values()
             for figures in measure.values())  # fmt: skip
    found = any("curve" in figures for figures in known)
    return ", thin dash-dotted lines whole published curves" if found else ""


def is_quick(experiment: Experiment, folder: Path) -> bool:
    """Tell whether a table holds quick runs, whose figures mean nothing."""
    return bool(read_note(folder / f"{experiment.id}.json").get("quick"))


def quick_warning(rows: Sequence[Experiment], folder: Path) -> str:
    """Say which experiments of the page are quick runs, if any."""
    quick = [row.id for row in rows if is_quick(row, folder)]
    if not quick:
        return ""
    which = "All runs here" if len(quick) == len(rows) else f"The runs of {', '.join(quick)}"
    return (
        f'<p class="warning">{esc(which)} are quick ones: short, two per method, to see that '
        "everything works. Their figures mean nothing, so none is ranked or compared; run without "
        "<code>--quick</code> for the paper's.</p>"
    )


def environments(rows: Sequence[Experiment], folder: Path) -> str:
    """Return where and with what the runs were made, as noted then."""
    made: dict[str, tuple[dict[str, str], list[str]]] = {}
    for row in rows:
        for entry in read_note(folder / f"{row.id}.json").get("made", []):
            facts = entry["environment"]
            made.setdefault(json.dumps(facts), (facts, []))[1].append(f"{row.id} ({entry['day']})")
    out = ""
    for facts, ids in made.values():
        body = "".join(f"<tr><td>{esc(k)}</td><td>{esc(v)}</td></tr>" for k, v in facts.items())
        out += f"<p>Runs of {esc(', '.join(ids))}</p><table>{body}</table>"
    written = f"Page written on {time.strftime('%Y-%m-%d %H:%M')} by scgd {__version__}."
    return f"{out or '<p>Nothing was noted when these runs were made.</p>'}<p>{written}</p>"


def assemble(
    rows: Sequence[Experiment], sections: Iterable[str], panels: dict[str, Any], folder: Path
) -> str:
    """Put the page together: data, style, script and plotly, once each."""
    from plotly.offline import get_plotlyjs

    settings = list(dict.fromkeys(s for entry in panels.values() for s in entry["curves"]))
    methods = dict.fromkeys(m for e in panels.values() for c in e["curves"].values()
                            for curves in c.values() for m in curves)  # fmt: skip
    looks = {name: method_look(name) for name in methods}
    payload = {"panels": panels, "settings": settings, "methods": looks, "measures": MEASURES,
               "references": list(REFERENCES)}  # fmt: skip
    data = inert(json.dumps(plain(payload), separators=(",", ":")))
    page = files("scgd_paper").joinpath("page")
    script = "".join(page.joinpath(f"{name}.js").read_text() for name in SCRIPTS)
    contents = "".join(f'<a href="#{r.id}">{esc(r.title)}</a>' for r in rows)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,"><title>SGD with coordinate sampling</title>'
        f"<style>{page.joinpath('page.css').read_text()}</style></head><body>"
        "<header><h1>SGD with coordinate sampling: the paper's experiments</h1>"
        '<p class="lead">Leluc and Portier (JMLR 2022), run again. Curves are the mean with one '
        "standard deviation, as in the paper, or the median with quartiles where single runs "
        "decide the mean (the panel then says so); diamonds mark "
        f"published final figures{overlaid(panels)}.</p>{quick_warning(rows, folder)}"
        f'<nav class="contents">{contents}</nav></header>'
        f"{toolbar(settings)}<main>{''.join(sections)}</main>"
        '<footer><details><summary>Environment</summary><div class="scroll">'
        f"{environments(rows, folder)}</div></details></footer>"
        f'<script type="application/json" id="data">{data}</script>'
        f"<script>{get_plotlyjs()}</script><script>{script}</script>"
        "</body></html>"
    )


def inert(text: str) -> str:
    r"""Return JSON that no HTML parser can leave: < and > only as escapes, also within names.

    Examples
    --------
    >>> inert('"</script><!--"')
    '"\\u003c/script\\u003e\\u003c!--"'
    """
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def plain(value: Any) -> Any:
    """Return nested data as JSON can hold it: short numbers, None for what is not finite."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(v) for v in (value.tolist() if isinstance(value, np.ndarray) else value)]
    if isinstance(value, float | np.floating):
        return float(f"{value:.5g}") if np.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


def terminal_summary(
    experiment: Experiment, folder: Path, settings: str, panels: Sequence[str], limit: int = 8
) -> str:
    """Return the final figures of the panels asked for as plain text, panel by panel.

    Those of quick runs are shown without rank and without published ones: they mean nothing.
    """
    lines, quick = [], is_quick(experiment, folder)
    entries = [e for e in summary.summarize(experiment, folder, quick)
               if e["settings"] == settings and e["measure"] not in NO_FINALS
               and e["panel"] in panels]  # fmt: skip
    for entry in entries[:limit]:
        what = "quick runs, these figures mean nothing" if quick else f"final {entry['measure']}"
        lines.append(f"\n{experiment.id} · {entry['panel']} · {settings} · {what}")
        lines.append(
            f"  {'':2} {'method':<30}{'mean':>10}{'std':>10}{'median':>10}"
            + ("" if quick else f"{'published':>11}")
        )
        lines += [summary_line(row, quick) for row in entry["finals"]]
    if len(entries) > limit:
        lines.append(f"\n... and {len(entries) - limit} more panels in the report")
    return "\n".join(lines)


def summary_line(row: dict[str, Any], quick: bool) -> str:
    """Return one method's figures as a line of text."""
    figures = "".join(f"{fmt(row[name]):>10}" for name in ("mean", "std", "median"))
    if quick:
        return f"  {'':2} {row['method']:<30}{figures}"
    published = fmt(row["published"].get("mean"))
    return f"  {row['rank'] or '–':>2} {row['method']:<30}{figures}{published:>11}"


def say(text: str) -> None:
    """Print to standard output, also where it cannot show every letter."""
    sys.stdout.write(text.encode(sys.stdout.encoding or "utf-8", "replace").decode(
        sys.stdout.encoding or "utf-8") + "\n")  # fmt: skip
