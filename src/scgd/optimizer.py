"""Ask and tell: a run as a laboratory uses it.

Evaluations may be made anywhere and told in any order, late or never; asking while some are out
gives new work as long as there is budget.
"""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from scgd.checkpoint import Checkpoint, CheckpointError, write
from scgd.checks import count, flag
from scgd.constraints import Measured
from scgd.method import SCGD
from scgd.methods import Method, screens
from scgd.options import Failures, Rows
from scgd.outcomes import CAUGHT, negative
from scgd.problem import as_scalar, check_start
from scgd.run.arguments import from_file, to_file
from scgd.run.build import build
from scgd.run.filler import Filler
from scgd.run.recording import record_all
from scgd.run.run import Run
from scgd.run.saving import check_identity, go_on, identity, restore, whole_state
from scgd.samples import Sample
from scgd.spaces import Space
from scgd.strategies.asks import Strategy
from scgd.strategies.budget import TOL
from scgd.trials import (
    Trial,
    Trials,
    check_error,
    check_point,
    check_told,
    check_value,
    failed_value,
    sized,
)
from scgd.typing import Floats

if TYPE_CHECKING:
    from scgd.results import Result

NAN = float("nan")
FILLER = 2
"""Which child of the seed the filler draws from; see :mod:`scgd.run.build`."""


class Optimizer:
    """Minimise by ask and tell.

    Parameters
    ----------
    x0, method, sample, bounds, constraints, scale, noise, known, max_evals, tol, max_stall, \
maximize, failures, seed
        As for :func:`scgd.minimize`.
    record
        Keep the points of all evaluations in ``result().evaluations``.
    first_order
        Ask for partial derivatives instead of values where steps are taken.

    Examples
    --------
    >>> import numpy as np
    >>> opt = Optimizer(np.ones(3), "musketeer", max_evals=2000, seed=1)
    >>> while not opt.done:
    ...     for trial in opt.ask():
    ...         opt.tell(trial.id, float(trial.x @ trial.x))
    >>> bool(opt.result().fun < 1e-3)
    True
    """

    def __init__(
        self,
        x0: Any,
        method: str | SCGD | Method | Strategy = "auto",
        *,
        first_order: bool = False,
        sample: Sample | Rows = None,
        bounds: Any = None,
        constraints: Any = (),
        scale: Any = None,
        noise: float | None = None,
        known: Any = (),
        max_evals: int | None = None,
        tol: float = TOL,
        max_stall: int | None = None,
        maximize: bool = False,
        failures: str | type[Exception] | tuple[type[Exception], ...] | Failures = "raise",
        seed: Any = None,
        record: bool = False,
    ) -> None:
        flag(first_order, "first_order")
        if isinstance(x0, Space):
            x0.problem(first_order=first_order)
        self.arguments: dict[str, Any] = {
            "x0": x0, "method": method, "sample": sample, "bounds": bounds, "scale": scale,
            "noise": noise, "max_evals": max_evals, "tol": tol, "max_stall": max_stall,
            "maximize": maximize, "failures": failures, "known": known, "seed": seed,
            "constraints": constraints, "first_order": first_order,
        }  # fmt: skip
        self.record = flag(record, "record")
        self._build()
        if self.run.merit is not None and first_order:
            raise ValueError("constraints do not go with first_order; drop it")

    def _build(self) -> None:
        """Make the run of the arguments."""
        self.run: Run = build(**self.arguments)
        if self.record or self.run.problem.space:
            record_all(self.run)
        self.queue: deque[int] = deque()  # numbers issued and not yet handed out
        self.table = Trials(self.run.problem.n_coords)
        known, sign = self.run.problem.known, self.run.ledger.sign
        for x, value in zip(known.points, known.values, strict=True):
            self.table.add(x, value)
        self.run.make_filler = None if screens(self.run.method) else self._filler
        pairs = zip(known.points, known.values, strict=True)
        self.arguments |= {
            "method": self.run.method, "known": tuple((x, sign * value) for x, value in pairs)
        }  # fmt: skip

    def _filler(self) -> Filler:
        """Return work for while the method waits."""
        rng = np.random.Generator(np.random.PCG64(self.run.seed.child(FILLER)))
        return Filler(self.run.problem, self.table, rng)

    @property
    def done(self) -> bool:
        """Whether nothing is out and the budget does not pay for more."""
        return self.run.done

    # ---- ask and tell ----------------------------------------------------------------------------

    def ask(self, n: int | None = None) -> list[Trial]:
        """Return the next evaluations to make.

        Parameters
        ----------
        n
            How many; fewer only where the budget ends. By default those of one question of the
            method: a step's, say. Where the method must see answers first, points around the best
            of everything that was measured fill in (:class:`~scgd.run.filler.Filler`).

        Returns
        -------
        list of Trial
            Empty where all that the budget pays for is out.
        """
        wanted = 1 if n is None else count(n, "n")
        if self.run.done:
            if self.run.strategy.finished:
                raise RuntimeError(f"the search has ended: {self.run.result().message}")
            raise RuntimeError(
                f"the budget of {self.run.max_evals} evaluations is used up; extend() it to go on"
            )
        while len(self.queue) < wanted:
            opened = self.run.next_question() or self.run.filler_question()
            if opened is None:
                break
            self.queue.extend(opened.first + j for j in opened.missing)
        n_now = len(self.queue) if n is None else min(wanted, len(self.queue))
        trials = [self._trial(self.queue.popleft()) for _ in range(n_now)]
        for trial in trials:
            self.table.issue(trial.id, trial.x)
        return trials

    def _trial(self, number: int) -> Trial:
        opened = self.run.place[number]
        question = opened.question
        assert question.sample is not None
        arguments = self.run.samples.arguments(*question.sample)
        coords = question.support.copy() if question.kind == "partials" else None
        x, space = question.at(number - opened.first), self.run.problem.space
        if self.run.merit is not None:
            x = self.run.merit.constraints.inside(x)
        params = None if space is None else space.decode(x)
        return Trial(number, x, arguments, coords, params)

    def tell(self, ids: Any, values: Any, error: Any = None) -> None:
        """Hand in the value of an evaluation, or many of each, in any order.

        Parameters
        ----------
        ids, values
            Numbers of trials and what they gave. NaN or an exception object loses that value, like
            :meth:`fail`; infinite values follow ``failures``. All are checked before any of
            them is taken.
        error
            The standard error of the value, where it is known; one for each of many. It is kept in
            the table, and points that fill in trust a value less by so much.
        """
        if not sized(ids):
            ids, values, error = [ids], [values], None if error is None else [error]
        errors = [None] * len(ids) if error is None else error
        for name, given in (("values", values), ("error", errors)):
            if not sized(given):
                raise TypeError(f"{name} must be as many as the {len(ids)} ids, got {given!r}")
        if len(ids) != len(values) or len(ids) != len(errors):
            more = "" if error is None else f" and {len(errors)} errors"
            named = f"{len(ids)} ids{',' if more else ' and'} {len(values)} values{more}"
            raise ValueError(f"tell got {named}; give one each")
        told = [self._checked(*row) for row in zip(ids, values, errors, strict=True)]
        if len({number for number, _, _ in told}) < len(told):
            raise ValueError("tell got an evaluation twice; give each of them one value")
        for number, checked, spread in told:
            self._take(number, *checked, spread)

    def _checked(self, number: Any, value: Any, error: Any) -> tuple[int, tuple[Any, bool], float]:
        """Return a number, a value as the strategy is to have it, and its error."""
        spread = check_error(error)
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise TypeError(f"ids must be numbers of trials, got {number!r}")
        number = int(number)
        inward: Any = CAUGHT
        if not failed_value(value) and (opened := self.run.place.get(number)) is not None:
            if opened.question.kind == "values":
                check_told(value)
            inward = negative(value) if self.run.ledger.sign < 0 else value
            if self.run.merit is not None:
                scalar, constraints = as_scalar(inward), self.run.merit.constraints
                point = opened.question.at(self.run.offset(number))
                inward = Measured(lambda x: scalar, constraints, ())(point)
        return number, self.run.checked(number, inward), spread

    def _take(self, number: int, value: Any, failed: bool, error: float) -> None:
        """Enter a checked value in the run and in the table."""
        if number in self.queue:
            self.queue.remove(number)
            self.table.issue(number, self._trial(number).x)
        partials = self.run.place[number].question.kind == "partials"
        self.run.enter(number, value, failed)
        scalar, penalty = value, 0.0
        if failed or partials:
            scalar = NAN if failed else None
        elif self.run.merit is not None:
            scalar = float(value[0])
            penalty = float(self.run.merit(value[None])[0]) - scalar
        self.table.enter(number, scalar, error, penalty)

    def fail(self, number: int) -> None:
        """Say that an evaluation will never have a value: that one is failed, and nothing else."""
        self.tell([number], [NAN])

    def add(self, x: Any, value: Any, error: float | None = None) -> None:
        """Hand in a measurement that nobody asked for; it costs nothing of the budget.

        Before anything was asked, the search starts at the best of them. Later ones are known to
        the points that fill in, and where f is deterministic nothing worse than the best of them
        is recommended.

        Parameters
        ----------
        x
            The point (or the user's parameters, where trials have them).
        value, error
            What was measured there, and its standard error where it is known.
        """
        problem, sign = self.run.problem, self.run.ledger.sign
        point = check_point(x, problem, "x")
        inward = sign * check_value(value, "value")
        spread = check_error(error)
        if self.run.n_issued == 0:
            errors = [*self.table.table["errors"], spread]
            self.arguments["known"] += ((point, sign * inward),)
            self._build()
            self.table.table["errors"] = errors
        else:
            self.run.know(point, inward)
            self.table.add(point, inward, spread)

    @property
    def trials(self) -> list[dict[str, Any]]:
        """The table so far: id, state (out, told, failed, known), value, error, x, params."""
        rows = self.table.rows(self.run.ledger.sign)
        if (space := self.run.problem.space) is not None:
            for row in rows:
                row["params"] = space.decode(row["x"])
        return rows

    def out(self) -> list[Trial]:
        """Return the evaluations that were handed out and not yet told."""
        waiting = set(self.queue)
        return [self._trial(number) for number in sorted(self.run.place) if number not in waiting]

    def extend(self, max_evals: int | None) -> None:
        """Go on with another budget."""
        self.run.extend(max_evals)

    @property
    def x(self) -> Floats:
        """The recommended point."""
        return self.run.recommended(self.run.status).x.copy()

    def result(self) -> Result:
        """Return the result so far, as :func:`scgd.minimize` does."""
        return self.run.result()

    def __repr__(self) -> str:
        """Return the result so far, and how many trials are out."""
        return f"Optimizer with {len(self.out())} trials out\n{self.result()!r}"

    def _repr_html_(self) -> str:
        """Return the same for a notebook."""
        return f"<p>Optimizer with {len(self.out())} trials out</p>{self.result()._repr_html_()}"

    # ---- state -----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return everything in the run as nested dicts of arrays and plain values."""
        asked = {"queue": np.array(self.queue, np.int64), "trials": self.table.state_dict()}
        return {**whole_state(self.run), "asked": asked}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a run where ``state_dict`` left it; evaluations that were out are still out."""
        apart = ("asked", "arguments")
        rest = {name: value for name, value in state.items() if name not in apart}
        restore(self.run, rest)
        self.queue.clear()
        asked = state.get("asked")  # a run of minimize has none
        if asked is not None:
            self.table.load_state_dict(asked["trials"])
            self.queue.extend(asked["queue"].tolist())
            if not set(self.queue) <= self.run.place.keys():
                raise CheckpointError("the checkpoint hands out what was not asked; delete it")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a file, for :meth:`load`; without pickle, and in one piece or not."""
        file = Checkpoint(path)
        x0 = self.arguments["x0"]
        x0 = x0 if isinstance(x0, Space) else check_start(x0)
        arguments = to_file({**self.arguments, "x0": x0, "seed": None, "record": self.record})
        write(file.path, identity(self.run), {**self.state_dict(), "arguments": arguments})

    @classmethod
    def load(cls, path: str | os.PathLike[str], **again: Any) -> Optimizer:
        """Return the optimizer that was saved, with what is out still out.

        Parameters
        ----------
        path
            What :meth:`save` wrote.
        again
            Arguments that no file keeps, such as a ``sample`` that is a function.

        Examples
        --------
        >>> import numpy as np, tempfile
        >>> opt = Optimizer(np.ones(2), "uniform", max_evals=20, seed=0)
        >>> trials = opt.ask(5)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     opt.save(folder + "/run.npz")
        ...     again = Optimizer.load(folder + "/run.npz")
        >>> [trial.id for trial in again.out()]
        [0, 1, 2, 3, 4]
        """
        found: list[Optimizer] = []

        def take_up(same: dict[str, Any], state: dict[str, Any]) -> None:
            if "arguments" not in state:
                raise CheckpointError(f"{path} was not written by Optimizer.save")
            opt = cls(**from_file(state["arguments"], again))
            opt._take_up(path, same, state)
            if "max_evals" in again:
                go_on(opt.run, again["max_evals"])
            found.append(opt)

        if not Checkpoint(path).load(take_up):
            raise FileNotFoundError(f"there is no saved optimizer at {path}")
        return found[-1]

    def resume(self, path: str | os.PathLike[str]) -> bool:
        """Take up the run in a file, if there is one; it must be of the same arguments."""
        wanted = self.run.max_evals
        found = Checkpoint(path).load(lambda *saved: self._take_up(path, *saved))
        if found:
            go_on(self.run, wanted)
        return found

    def _take_up(self, path: Any, found: dict[str, Any], state: dict[str, Any]) -> None:
        check_identity(path, identity(self.run), found, seeded=self.run.seed.given)
        self.load_state_dict(state)
