"""A file that tells how a run is doing: JSON for programs, or a page that refreshes itself."""

from __future__ import annotations

import contextlib
import json
import os
import time
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from scgd.files import replacing

__all__ = ["StatusFile"]

EVERY = 1.0
"""Seconds between two writes."""
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">{refresh}<title>scgd {state}</title>
<style>body{{font:16px system-ui;margin:2rem auto;max-width:44rem;color:#222;background:#fff}}
td{{padding:.2rem 1.5rem .2rem 0}}td:last-child{{font-variant-numeric:tabular-nums}}
svg{{width:100%;height:16rem;border:1px solid #ccc;margin-top:1rem}}
progress{{width:100%}}</style></head><body>
<h1>{title}</h1><progress value="{nfev}" max="{max}"></progress>
<table>{rows}</table>
<svg viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label="mean value">
<polyline fill="none" stroke="#1f6feb" stroke-width="1.5" vector-effect="non-scaling-stroke"
 points="{points}"/></svg>
<p>Mean observed value against evaluations, between {low:.6g} and {high:.6g}.</p>
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
        self.path = Path(path)
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
        text = self.page(facts, result.history) if page else json.dumps(facts, indent=1)
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
            "seconds": round(seconds, 1),
            "evaluations_per_second": round(rate, 3),
            "seconds_left": round(left / rate, 1) if left is not None and rate > 0 else None,
            "process": os.getpid(),
        }

    def page(self, facts: dict[str, Any], history: dict[str, Any]) -> str:
        """Return the facts as a page with the curve so far."""
        rows = "".join(
            f"<tr><td>{escape(name.replace('_', ' '))}</td><td>{escape(str(value))}</td></tr>"
            for name, value in facts.items()
            if value is not None
        )
        nfev, fun = history["nfev"], history["fun"]
        low, high = (float(fun.min()), float(fun.max())) if len(fun) else (0.0, 0.0)
        across, down = nfev / max(1, self.max_evals or nfev.max(initial=1)), high - fun
        heights = down / (high - low) if high > low else 0.0 * down
        points = " ".join(
            f"{100 * x:.2f},{38 * y + 1:.2f}" for x, y in zip(across, heights, strict=True)
        )
        running = facts["state"] == "running"
        return PAGE.format(
            refresh='<meta http-equiv="refresh" content="2">' if running else "",
            state=escape(facts["state"]),
            title=escape(self.title),
            nfev=facts["evaluations"],
            max=self.max_evals or facts["evaluations"],
            rows=rows,
            points=points,
            low=low,
            high=high,
        )
