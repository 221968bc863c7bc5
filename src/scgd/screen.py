"""Which inputs of a function matter: ``screen(fun, bounds, max_evals=...)``.

It is :func:`scgd.minimize` with another strategy (:class:`scgd.strategies.screening.Screen`), so
workers, failures, samples and checkpoints are the same.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from scgd.checkpoint import Checkpoint
from scgd.checks import count, shown
from scgd.minimize import minimize
from scgd.options import Failures, Rows
from scgd.samples import Sample
from scgd.spaces import Space
from scgd.strategies.screening import DECISIONS, LEAST_EVALS, Screen
from scgd.typing import Array, Floats

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

PER_INPUT, FEWEST, MOST = 10, 200, 2000
"""The default budget: evaluations per input, and in all. Where few of many inputs matter, what is
needed grows with the logarithm of their number."""
ENDS = {2: ", then the time was up", 3: ", then a callback ended it", 4: ", then interrupted"}
SHOWN = 12
"""Inputs that are printed."""


def screen(
    fun: Callable[..., Any],
    space: Any,
    args: tuple[Any, ...] = (),
    *,
    max_evals: int | None = None,
    noise: float | None = None,
    fdr: float = 0.1,
    level: float = 0.95,
    negligible: float = 0.1,
    names: Sequence[str] | None = None,
    sample: Sample | Rows = None,
    max_time: float | None = None,
    failures: str | type[Exception] | tuple[type[Exception], ...] | Failures = "raise",
    seed: Any = None,
    workers: Any = 1,
    reporting: Any = None,
    checkpoint: str | Checkpoint | None = None,
) -> Screening:
    r"""Find out which inputs of a function matter, with confidence intervals and decisions.

    Inputs stand at four levels from bound to bound, drawn at random, in pairs of mirrored points.
    A sparse regression with cross-fitting tells the effect of each (:mod:`scgd.strategies.effects`)
    and the interactions of the clearest; then all inputs that seem not to matter are moved
    together, and where f changes all the same, halving finds which of them it was.

    Parameters
    ----------
    fun
        ``fun(x, *args)``, or ``fun(params)`` with a Space; with ``sample`` as in ``minimize``.
    space
        A :class:`~scgd.Space`, ``scipy.optimize.Bounds``, or pairs (low, high), all finite. An
        input with low = high stays there.
    args
        Further arguments of ``fun``.
    max_evals
        Hard budget (default: 10 per input, at least 200 and at most 2,000). It ends earlier where
        every input is decided.
    noise
        The standard deviation of the noise, where you know it; 0: ``fun`` is deterministic. By
        default it is measured.
    fdr
        The false-discovery rate: of the inputs said to matter, on average so many do not; and of
        those said not to matter, so many do.
    level
        Of the confidence intervals.
    negligible
        An effect below this part of the largest one does not matter.
    names
        What the inputs are called, for tables and pictures.
    sample, max_time, failures, seed, workers, reporting, checkpoint
        As for :func:`scgd.minimize`.

    Returns
    -------
    Screening
        A decision, an effect, its size with limits and a p-value for each input.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def fun(x):
    ...     return 3 * x[1] + (x[2] - 0.5) ** 2 * 8 + x[3] * x[4] + 0.1 * rng.standard_normal()
    >>> found = screen(fun, [(0, 1)] * 40, max_evals=300, seed=0)
    >>> found.matter
    ['x[1]', 'x[2]', 'x[3]', 'x[4]']
    """
    options = Screen(fdr, level, negligible)
    start: Any = space
    bounds: list[tuple[float, float]] | None = None
    if isinstance(space, Space):
        n_inputs = space.n_coords
    else:
        bounds = check_box(space)
        start, n_inputs = [(low + high) / 2 for low, high in bounds], len(bounds)
    labels = check_names(names, space, n_inputs)
    if max_evals is None:
        max_evals = min(max(FEWEST, PER_INPUT * n_inputs), MOST)
    if count(max_evals, "max_evals") < LEAST_EVALS:
        raise ValueError(
            f"max_evals must be at least {LEAST_EVALS} to tell anything, got {max_evals}"
        )
    result = minimize(
        fun, start, args, method=options, bounds=bounds, noise=noise, max_evals=max_evals,
        sample=sample, max_time=max_time, failures=failures, seed=seed, workers=workers,
        reporting=reporting, checkpoint=checkpoint,
    )  # fmt: skip
    return Screening.of(result, labels)


@dataclass(frozen=True, repr=False)
class Screening:
    """Which inputs matter.

    Attributes
    ----------
    names
        The inputs.
    decisions
        ``"matters"``, ``"does not"`` or ``"cannot say"``, for each.
    sizes, low, high
        The standard deviation of f that each input makes by itself (over its levels), and its
        confidence limits.
    effects, effect_errors
        The linear effect, from the lowest level to the highest, with its sign, and its standard
        error.
    p_values, q_values
        Of no effect, alone or with another input; and adjusted for the false-discovery rate.
    interactions
        Rows of what two inputs do together: ``inputs``, ``size``, ``error``, ``p_value``.
    rest, rest_p_value
        What all inputs that are not said to matter do together when they are moved, as a standard
        deviation, and the p-value of nothing at all; NaN where that was not tried.
    threshold
        The size below which an effect does not matter.
    noise
        The standard deviation of a value; 0: values repeat themselves.
    options
        The rates and levels.
    nfev, n_failed, n_pairs
        Evaluations, those of them that failed, and pairs that both have values.
    message
        What was found, and why it ended.
    relevance
        Sizes of the inputs that matter as shares, 0 for the others; None where none does.

    Examples
    --------
    >>> screen(lambda x: float(2 * x[0] - x[2]), [(0, 1)] * 4, max_evals=100, seed=0)
    2 of 4 inputs matter, 2 do not (52 evaluations).
      input  decision  size   95 % interval   effect
      x[0]   matters   0.745  0.745 to 0.745  +2 +- ...
      x[2]   matters   0.373  0.373 to 0.373  -1 +- ...
      x[1]   does not  0      0 to 0          +0 +- ...
      x[3]   does not  0      0 to 0          +0 +- ...
      the rest together: 0 (p = 1)
    """

    names: list[str]
    decisions: Array
    sizes: Floats
    low: Floats
    high: Floats
    effects: Floats
    effect_errors: Floats
    p_values: Floats
    q_values: Floats
    interactions: list[dict[str, Any]]
    rest: float
    rest_p_value: float
    threshold: float
    noise: float
    options: Screen
    nfev: int = 0
    n_failed: int = 0
    n_pairs: int = 0
    message: str = ""
    relevance: Floats | None = None

    @classmethod
    def of(cls, result: Any, names: Sequence[str] | None = None) -> Screening:
        """Return what the result of a run with :class:`Screen` says, so far.

        Parameters
        ----------
        result
            Of ``minimize`` or of ``Optimizer.result()``.
        names
            What the inputs are called.
        """
        seen: dict[str, Any] | None = result.get("screening")
        if seen is None:
            raise ValueError(
                "this result is not of a screening, or nothing was evaluated; use "
                "scgd.Optimizer(x0, scgd.Screen(), ...)"
            )
        n = len(seen["decisions"])
        given = result.get("names") if names is None else names
        labels = [f"x[{k}]" for k in range(n)] if given is None else [str(name) for name in given]
        no, unsaid, yes = (int(np.sum(seen["decisions"] == word)) for word in DECISIONS)
        message = (
            f"{yes:,} of {n:,} inputs matter, {no:,} do not"
            f"{f', of {unsaid:,} one cannot say' if unsaid else ''} "
            f"({result.nfev:,} evaluations{ENDS.get(result.status, '')})."
        )
        pairs = [
            {**row, "inputs": tuple(labels[k] for k in row["inputs"])}
            for row in seen["interactions"]
        ]
        return cls(
            labels, **{**seen, "interactions": pairs}, nfev=result.nfev, n_failed=result.n_failed,
            message=message, relevance=result.get("relevance"),
        )  # fmt: skip

    @property
    def matter(self) -> list[str]:
        """The names of the inputs that matter, in their own order."""
        return [self.names[k] for k in np.flatnonzero(self.decisions == "matters")]

    @property
    def order(self) -> Array:
        """Inputs from the clearest down: decision, then size."""
        worth = np.select([self.decisions == "matters", self.decisions == "cannot say"], [2, 1], 0)
        return np.lexsort((-self.sizes, -worth))

    def table(self) -> list[dict[str, Any]]:
        """Return a row per input, the clearest first; ``pandas.DataFrame`` takes it as it is."""
        columns = {
            "decision": self.decisions, "size": self.sizes, "low": self.low, "high": self.high,
            "effect": self.effects, "effect_error": self.effect_errors,
            "p_value": self.p_values, "q_value": self.q_values,
        }  # fmt: skip
        return [
            {"input": self.names[k], **{name: column[k].item() for name, column in columns.items()}}
            for k in self.order.tolist()
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        alone = ("rest", "rest_p_value", "threshold", "noise", "nfev", "n_failed", "n_pairs")
        rates = {name: getattr(self.options, name) for name in ("fdr", "level", "negligible")}
        return {
            "message": self.message,
            **{name: getattr(self, name) for name in alone},
            **rates,
            "inputs": self.table(),
            "interactions": self.interactions,
        }

    def plot(self, *, n_inputs: int = 20, dark: bool = False) -> Figure:
        """Return a picture of the clearest inputs with their intervals (needs plotly).

        Parameters
        ----------
        n_inputs
            How many.
        dark
            For a dark ground.
        """
        from scgd.plots.forest import draw

        return draw(self, n_inputs=count(n_inputs, "n_inputs"), dark=dark)

    def _rows(self) -> list[list[str]]:
        """Return what is printed: a head and the clearest inputs."""
        head = ["input", "decision", "size", f"{100 * self.options.level:g} % interval", "effect"]
        rows = [head]
        for row in self.table()[:SHOWN]:
            limits = f"{row['low']:.3g} to {row['high']:.3g}"
            effect = f"{row['effect']:+.3g} +- {row['effect_error']:.2g}"
            rows.append([row["input"], row["decision"], f"{row['size']:.3g}", limits, effect])
        return rows

    def _notes(self) -> list[str]:
        """Return what is printed below."""
        notes = []
        if (more := len(self.names) - SHOWN) > 0:
            notes.append(f"and {more:,} more: table() has all")
        for one in self.interactions[:3]:
            band = f"{one['size']:.3g} +- {one['error']:.2g}"
            notes.append(f"{' and '.join(one['inputs'])} interact, {band}")
        if self.rest == self.rest:
            notes.append(f"the rest together: {self.rest:.3g} (p = {self.rest_p_value:.2g})")
        return notes

    def __repr__(self) -> str:
        rows = self._rows()
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in rows]
        return "\n  ".join([self.message, *(line.rstrip() for line in lines), *self._notes()])

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        head, *rows = self._rows()
        cells = "".join(f"<th>{html.escape(word)}</th>" for word in head)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(word)}</td>" for word in row) + "</tr>"
            for row in rows
        )
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self._notes())
        return f"<p>{html.escape(self.message)}</p><table><tr>{cells}</tr>{body}</table>{notes}"


def check_box(bounds: Any) -> list[tuple[float, float]]:
    """Return finite pairs (low, high)."""
    wanted = "space must be a scgd.Space, scipy.optimize.Bounds or pairs (low, high)"
    try:
        if hasattr(bounds, "lb") and hasattr(bounds, "ub"):
            pairs = np.stack(np.broadcast_arrays(bounds.lb, bounds.ub), axis=-1).astype(float)
        else:
            pairs = np.array([tuple(pair) for pair in bounds], float)
    except (TypeError, ValueError):
        raise ValueError(f"{wanted}, got {bounds!r}") from None
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise ValueError(f"{wanted}, got shape {pairs.shape}")
    with np.errstate(all="ignore"):
        bad = ~np.isfinite(pairs[:, 1] - pairs[:, 0])
    if bad.any():
        k = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"space must have finite bounds, got {tuple(pairs[k].tolist())} for input {k}: give "
            "the range over which it may vary"
        )
    if np.any(crossed := pairs[:, 0] > pairs[:, 1]):
        k = int(np.flatnonzero(crossed)[0])
        raise ValueError(f"bounds cross at input {k}: low {pairs[k, 0]} > high {pairs[k, 1]}")
    return [(float(low), float(high)) for low, high in pairs]


def check_names(names: Any, space: Any, n_inputs: int) -> list[str] | None:
    """Return what inputs are called."""
    if names is None:
        return None
    if isinstance(space, Space):
        raise ValueError("names makes no sense with a Space, whose parameters have names; drop it")
    try:
        labels = [] if isinstance(names, str) else list(names)
    except TypeError:
        labels = []
    if len(labels) != n_inputs or not all(isinstance(label, str) for label in labels):
        raise ValueError(f"names must be {n_inputs} names, one for each input, got {shown(names)}")
    return [str(label) for label in labels]
