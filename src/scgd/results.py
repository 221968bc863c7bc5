"""The result of a run: SciPy's, with the evaluations, a picture and ten lines for people."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import OptimizeResult

from scgd.checks import flag, function
from scgd.evaluations import Evaluations
from scgd.history import with_error
from scgd.plots import svg
from scgd.plots.data import named, relevant
from scgd.typing import Floats

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from scgd.method import SCGD
    from scgd.methods import Ran
    from scgd.run.asynchronous import Events

SHOWN = 5
"""Inputs named in a result's ten lines."""
WIDTH = 96
CELL = "flex:1 1 20rem;max-width:32rem"
"""How the pictures of a result share a line."""
Table = Callable[[], Evaluations]


class Result(OptimizeResult):  # type: ignore[misc]
    """What a run found, how far it came, and what it saw.

    A ``scipy.optimize.OptimizeResult`` with the fields that :func:`scgd.minimize` tells of, which
    prints as ten lines.

    Parameters
    ----------
    fields
        The fields.
    table
        Returns the evaluations so far.
    more
        Further fields.

    Examples
    --------
    >>> from scgd import minimize
    >>> result = minimize(lambda x: float((x[0] - 2) ** 2 + 0.1 * x[3] ** 2), [0.0, 1.0, 1.0, 1.0],
    ...                   method="musketeer", max_evals=400, seed=0)
    >>> len(result.evaluations), len(repr(result).splitlines()) <= 10
    (400, True)
    """

    x: Floats
    fun: float
    fun_error: float
    nfev: int
    nfev_repeated: int
    max_evals: int | None
    nit: int
    n_failed: int
    success: bool
    status: int
    message: str
    weights: Floats | None
    relevance: Floats | None
    relevance_error: Floats | None
    members: list[tuple[str, int]]
    farthest: float
    history: dict[str, Floats]
    scale: Floats
    method: SCGD | Ran
    params: dict[str, Any]
    names: list[str]
    maxcv: float
    events: Events

    def __init__(self, fields: Any = (), *, table: Table | None = None, **more: Any) -> None:
        super().__init__(fields, **more)
        object.__setattr__(self, "_table", table)

    @property
    def evaluations(self) -> Evaluations:
        """What was evaluated: number, member, value, seconds, and points where they were kept."""
        table: Table | Evaluations | None = self.__dict__.get("_table")
        if isinstance(table, Evaluations):
            return table
        made = Evaluations.none() if table is None else table()
        object.__setattr__(self, "_table", made)
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Return the table itself, so that a result can be copied and pickled."""
        return {"_table": self.evaluations}

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make another one."""
        return type(self), (dict(self),), self.__getstate__()

    def plot(
        self, *, fun: Callable[..., Any] | None = None, n_inputs: int = 4, dark: bool = False
    ) -> Figure:
        """Return a picture of the run (needs plotly: ``pip install 'scgd[plot]'``).

        The value reached with its band (the median and quartiles of neighbouring reports), the
        evaluations by the search that asked, the most relevant inputs, and for those a slice
        through the point.

        Parameters
        ----------
        fun
            A function of x: slices are then lines of its values, 21 further evaluations each.
            Without it they show the evaluations of the run, where their points were kept.
        n_inputs
            How many slices.
        dark
            For a dark ground.

        Returns
        -------
        plotly.graph_objects.Figure
        """
        from scgd.plots.figure import draw

        flag(dark, "dark")
        if fun is not None:
            function(fun, "fun")
        return draw(self, fun=fun, n_inputs=n_inputs, dark=dark)

    def __dir__(self) -> list[str]:
        """Return the fields and what a result can do, for completion."""
        return sorted({*self.keys(), *object.__dir__(self)})

    def _repr_html_(self) -> str:
        """Return the same for a notebook, with a curve and bars."""
        text = f"<pre>{escape(repr(self))}</pre>"
        if not len(self.get("history", {}).get("nfev", ())):
            return text
        bars = svg.bars(self, SHOWN)
        lines = "\n".join([*self._facts(), *([] if bars else self._inputs())])
        pictures = [svg.reached(self, self.nfev), *([bars] if bars else [])]
        cells = "".join(f'<div style="{CELL}">{picture}</div>' for picture in pictures)
        return (
            f'<style>{svg.STYLE}</style><pre style="margin:0">{escape(lines)}</pre>'
            f'<div style="display:flex;flex-wrap:wrap;gap:1rem">{cells}</div>'
        )

    def __repr__(self) -> str:
        """Return what ran, value and error, budget, why it stopped, the most relevant inputs."""
        if "nfev" not in self or "x" not in self:
            return str(super().__repr__())
        return "\n".join([*self._facts(), *self._inputs()])

    __str__ = __repr__

    def _facts(self) -> list[str]:
        method = name_of(self.get("method"))
        budget = "" if self.get("max_evals") is None else f" of {self.max_evals:,}"
        failed = f", {self.n_failed:,} failed" if self.get("n_failed") else ""
        return [
            f"{method}: {self.nfev:,}{budget} evaluations, {self.get('nit', 0):,} steps{failed}",
            f"  value    {with_error(self.fun, self.get('fun_error', np.nan))}",
            *self._point(),
            cut(f"  ended    {self.get('message', '')}", " " * 11, 2),
        ]

    def _point(self) -> list[str]:
        if self.get("params") is not None:
            words = ", ".join(f"{name}={brief(value)}" for name, value in self.params.items())
            return [cut(f"  params   {words}", " " * 11, 1)]
        x = np.asarray(self.x)
        words = np.array2string(x, threshold=8, edgeitems=3, precision=6, max_line_width=10_000)
        of = f", {x.size:,} numbers" if x.size > 8 else ""
        return [cut(f"  x        {words}{of}", " " * 11, 1)]

    def _inputs(self) -> list[str]:
        found = relevant(self, SHOWN)
        if not len(found):
            return ["  inputs   nothing is known of their relevance"]
        lines = []
        for i, (k, size, error) in enumerate(found):
            head = "inputs" if i == 0 else ""
            lines.append(
                cut(f"  {head:8} {named(self, k):<16} {with_error(size, error, 3)}", "", 1)
            )
        return lines


def name_of(method: Any) -> str:
    """Return what a method is called."""
    return str(getattr(method, "name", "") or "scgd")


def brief(value: Any) -> str:
    """Return a parameter in few letters."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, np.ndarray):
        return np.array2string(value, threshold=6, edgeitems=2, precision=4)
    return str(value)


def cut(text: str, indent: str, n_lines: int) -> str:
    """Return text on so many lines at most."""
    text = " ".join(text.splitlines())
    lead = text[: len(text) - len(text.lstrip())]
    return "\n".join(
        textwrap.wrap(
            text.strip(),
            WIDTH,
            initial_indent=lead,
            subsequent_indent=indent,
            max_lines=n_lines,
            placeholder=" ...",
        )
    )
