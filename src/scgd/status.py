"""A file that tells how a run is doing: JSON for programs, or a page that refreshes itself."""

from __future__ import annotations

import contextlib
import json
import os
import time
from html import escape
from typing import Any

import numpy as np

from scgd.files import replacing, settled
from scgd.plots import svg

EVERY = 1.0
"""Seconds between two writes."""
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">{refresh}<title>scgd {state}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">
<style>:root{{color-scheme:light dark;--ground:#fff;--ink:#1c1e21;--soft:#5c636b;--line:#dfe2e6}}
@media (prefers-color-scheme:dark){{:root{{--ground:#1c1f25;--ink:#e8eaed;--soft:#a2a9b3;
--line:#343941}}}}
body{{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:44rem;padding:0 1rem;
color:var(--ink);background:var(--ground)}}h1,td{{overflow-wrap:anywhere}}
h2{{font-size:1.05rem;margin:1.6rem 0 .4rem}}
td{{padding:.1rem 1.5rem .1rem 0;vertical-align:top}}td:first-child{{white-space:nowrap}}
td:last-child{{font-variant-numeric:tabular-nums}}progress{{width:100%}}
.keys span{{margin-right:1rem;white-space:nowrap}}
.keys i{{display:inline-block;width:.7rem;height:.7rem;border-radius:50%;margin-right:.3rem}}
{style}</style></head><body>
<h1>{title}</h1><progress value="{nfev}" max="{max}"></progress>
<table>{rows}</table>
{pictures}
</body></html>
"""


class StatusFile:
    """Write the state of a run, at most once a second; a callback for :func:`scgd.minimize`.

    Parameters
    ----------
    path
        ``something.html`` for a page to look at in a browser, anything else for JSON.
    title
        What is running.
    max_evals
        The budget, if there is one.
    """

    def __init__(self, path: str | os.PathLike[str], title: str, max_evals: int | None) -> None:
        self.path = settled(path, "status")
        self.title = title
        self.max_evals = max_evals
        self.started = time.monotonic()
        self.first: int | None = None
        self._next = 0.0

    def __call__(self, intermediate: Any) -> None:
        """Write the result so far."""
        if time.monotonic() >= self._next:
            self.write(intermediate, "running")
            self._next = time.monotonic() + EVERY

    def write(self, result: Any, state: str) -> None:
        """Write now; a disk that fails does not stop the run."""
        facts = self.facts(result, state)
        page = self.path.suffix.lower() in (".html", ".htm")
        text = self.page(facts, result) if page else json.dumps(facts, indent=1)
        with contextlib.suppress(OSError), replacing(self.path) as file:
            file.write(text.encode())

    def facts(self, result: Any, state: str) -> dict[str, Any]:
        """Return what there is to tell."""
        seconds = time.monotonic() - self.started
        self.first = result.nfev if self.first is None else self.first
        rate = (result.nfev - self.first) / seconds if seconds > 0 else 0.0
        left = None if self.max_evals is None else self.max_evals - result.nfev
        return {
            "run": self.title,
            "state": state,
            "evaluations": int(result.nfev),
            "max_evals": self.max_evals,
            "steps": int(result.nit),
            "failed": int(result.n_failed),
            "value": float(result.fun) if np.isfinite(result.fun) else None,
            "error": float(result.fun_error) if np.isfinite(result.fun_error) else None,
            "seconds": round(seconds, 1),
            "evaluations_per_second": round(rate, 3),
            "seconds_left": round(left / rate, 1) if left is not None and rate > 0 else None,
            "process": os.getpid(),
        }

    def page(self, facts: dict[str, Any], result: Any) -> str:
        """Return the facts as a page with the pictures so far: no script, every word escaped."""
        rows = "".join(
            f"<tr><td>{escape(name.replace('_', ' '))}</td><td>{escape(str(value))}</td></tr>"
            for name, value in facts.items()
            if value is not None
        )
        running = facts["state"] == "running"
        return PAGE.format(
            refresh='<meta http-equiv="refresh" content="2">' if running else "",
            state=escape(facts["state"]),
            title=escape(self.title),
            nfev=facts["evaluations"],
            max=self.max_evals or facts["evaluations"],
            rows=rows,
            style=svg.STYLE,
            pictures=self.pictures(result),
        )

    def pictures(self, result: Any) -> str:
        """Return what ``result.plot()`` shows, as far as it is known."""
        last = max(1, self.max_evals or result.nfev)
        parts = {
            "Value reached": svg.reached(result, last) if len(result.history["nfev"]) else "",
            "Evaluations": svg.seen(result, last) if len(result.evaluations) else "",
            "Most relevant inputs": svg.bars(result),
        }
        return "".join(f"<h2>{name}</h2>{part}" for name, part in parts.items() if part)
