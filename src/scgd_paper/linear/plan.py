"""What the runs of one call share: the timetable, the records, the shape of the result."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from scgd.linear.losses import LOSSES, SQUARED
from scgd.method import SCGD
from scgd.typing import Floats
from scgd_paper.linear.inputs import Problem
from scgd_paper.linear.objective import Quadratic, objective, penalties, quadratic
from scgd_paper.linear.walks import Run, Timetable, block_of

__all__ = ["LinearResult", "Plan"]

CHUNK = 200_000
SNAPSHOT_FLOATS = 4_000_000


@dataclass
class LinearResult:
    """What :func:`solve` returns; with several seeds, arrays have one row per run.

    Attributes
    ----------
    coef, intercept
        The last iterate.
    history
        Arrays ``pass``, ``queries``, ``seconds`` and ``loss`` (the penalised objective on all the
        data). Seconds are those of the compiled loop, records excluded, spread evenly over steps.
    weights
        The sampling distribution learned.
    method
        What ran.

    Examples
    --------
    >>> import numpy as np
    >>> from scgd_paper.linear import solve
    >>> result = solve(np.eye(3), [1.0, 2.0, 3.0], n_passes=5, seed=0)
    >>> result.coef.shape, sorted(result.history)
    ((3,), ['loss', 'pass', 'queries', 'seconds'])
    """

    coef: Floats
    intercept: Any
    history: dict[str, Any]
    weights: Floats
    method: SCGD


class Plan:
    """What the runs of one call share: the timetable, the records, the result's shape."""

    def __init__(
        self,
        problem: Problem,
        method: SCGD,
        batch: int,
        shared: bool,
        start: Floats,
        n_passes: float,
        record_every: float | None,
        scale: Floats,
        scaled: bool,
    ) -> None:
        n_coords = len(start)
        block = block_of(method, n_coords)
        self.problem, self.method, self.start = problem, method, start
        self.batch, self.shared = int(batch), bool(shared)
        self.form: Quadratic | None = None
        self.n_steps = max(1, round(n_passes * n_coords / block))
        every = n_passes if record_every is None else record_every
        self.stride = min(self.n_steps, max(1, round(every * n_coords / block)))
        self.n_records = self.n_steps // self.stride
        self.table = Timetable(method, n_coords, self.n_steps, block)
        weights = method.importance
        self.scale, self.scaled = scale, scaled
        if not isinstance(weights, str | None):
            self.scale = np.array(weights) * (scale if len(scale) > 0 else 1.0)
        n_evals = method.estimator.n_evals(block) if shared else 2 * block
        steps = np.arange(self.n_records + 1) * self.stride
        self.passes, self.queries = steps * block / n_coords, steps * n_evals

    def run(self, seed: Any, record_loss: str | None) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the last iterate, the weights, the losses and the seconds of one run."""
        run = Run(
            self.problem, self.method, self.batch, self.shared, self.start, seed,
            self.scale, self.scaled,
        )  # fmt: skip
        at_once = max(1, min(SNAPSHOT_FLOATS // len(self.start), CHUNK // self.stride))
        losses, seconds = [self.losses(self.start[None], record_loss)], [np.zeros(1)]
        for first in range(0, self.n_records, at_once):
            n = min(at_once, self.n_records - first)
            snapshots = np.empty((n, len(self.start)))
            began = time.perf_counter()
            self.advance(run, first * self.stride, n * self.stride, snapshots)
            spent = time.perf_counter() - began
            self.check(run.walk.theta)
            seconds.append(seconds[-1][-1] + spent * np.arange(1, n + 1) / n)
            losses.append(self.losses(snapshots, record_loss))
        left = self.n_steps - self.n_records * self.stride
        if left:
            self.advance(run, self.n_records * self.stride, left, np.empty((0, len(self.start))))
        self.check(run.walk.theta)
        return run.walk.theta, run.weights, np.concatenate(losses), np.concatenate(seconds)

    def advance(self, run: Run, first: int, n: int, snapshots: Floats) -> None:
        """Advance a run in chunks that end with records, or between them if those are far apart."""
        if len(snapshots) > 1 or n <= CHUNK:
            run.advance(self.table, first, n, self.stride, snapshots)
            return
        for done in range(0, n, CHUNK):
            run.advance(self.table, first + done, min(CHUNK, n - done), n, snapshots[:0])
        snapshots[:] = run.walk.theta

    def losses(self, thetas: Floats, record_loss: str | None) -> Floats:
        """Return the recorded objective at each row of ``thetas``."""
        problem = self.problem
        if record_loss is not None:
            problem = problem._replace(loss=LOSSES.index(record_loss))
        if self.form is not None:
            return self.form(thetas) + penalties(problem, thetas)
        return objective(problem, thetas)

    def use_gram(self, record_loss: str | None) -> None:
        """Record squared losses through the Gram matrix where many are recorded."""
        loss = self.problem.loss if record_loss is None else LOSSES.index(record_loss)
        dense, plain = (
            self.problem.rows.dense is not None,
            len(self.start) == self.problem.n_features,
        )
        if loss == SQUARED and dense and plain and 4 * self.n_records > len(self.start):
            self.form = quadratic(self.problem)

    def check(self, theta: Floats) -> None:
        """Refuse to return a run that diverged."""
        if not np.all(np.isfinite(theta)):
            raise FloatingPointError(
                f"the run diverged with learning_rate={self.method.learning_rate!r}; "
                "lower it, standardise the columns of X or use another step rule"
            )

    def result(self, outcomes: list[Any], *, alone: bool) -> LinearResult:
        """Stack the outcomes of the runs."""
        theta, weights, losses, seconds = (
            part[0] if alone else np.stack(part) for part in zip(*outcomes, strict=True)
        )
        n_features = self.problem.n_features
        has_intercept = len(self.start) > n_features
        intercept = theta[..., n_features] if has_intercept else np.zeros(theta.shape[:-1])
        history = {
            "pass": self.passes,
            "queries": self.queries,
            "seconds": seconds,
            "loss": losses,
        }
        if alone:
            intercept = float(intercept)
        return LinearResult(theta[..., :n_features], intercept, history, weights, self.method)
