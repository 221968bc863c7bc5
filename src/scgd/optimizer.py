"""Ask and tell: a run as people use it.

Evaluations may be made anywhere and told in any order, late or never; asking while some are out
gives new work where the method has any.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scgd.estimators import Estimator
from scgd.plans import TOL, Method
from scgd.policies import Policy
from scgd.run.build import build, choose_method
from scgd.run.saving import Saved, restore
from scgd.samples import Sample
from scgd.schedules import Schedule
from scgd.steps import StepRule
from scgd.typing import Floats, Ints

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

__all__ = ["Optimizer", "Trial"]


@dataclass(frozen=True)
class Trial:
    """An evaluation to be made.

    Attributes
    ----------
    id
        Its number, to be handed to :meth:`Optimizer.tell` with the value.
    x
        The point.
    arguments
        What the function is given beside x: the sample, where there is one.
    coords
        Where the partial derivatives at these coordinates are wanted instead of a value; else None.
    """

    id: int
    x: Floats
    arguments: tuple[Any, ...] = ()
    coords: Ints | None = None


class Optimizer:
    """Minimise by ask and tell.

    Parameters
    ----------
    x0, method, sample, batch_size, policy, estimator, step, learning_rate, radius, scale, \
block_size, importance, bounds, max_evals, tol, patience, on_nonfinite, seed
        As for :func:`scgd.minimize`.
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
        method: str | Method = "auto",
        *,
        first_order: bool = False,
        sample: Sample = None,
        batch_size: int = 1,
        policy: str | Policy | None = None,
        estimator: str | Estimator | None = None,
        step: str | StepRule | None = None,
        learning_rate: float | Schedule | None = None,
        radius: float | Schedule | None = None,
        scale: Any = None,
        block_size: int | None = None,
        importance: Any = None,
        bounds: Any = None,
        max_evals: int | None = None,
        tol: float = TOL,
        patience: int | None = None,
        on_nonfinite: str = "raise",
        seed: Any = None,
    ) -> None:
        parts = {
            "policy": policy, "estimator": estimator, "step": step, "learning_rate": learning_rate,
            "radius": radius, "block_size": block_size, "importance": importance,
        }  # fmt: skip
        self.built = build(
            x0, choose_method(method, True if first_order else None, parts), sample=sample,
            batch_size=batch_size, bounds=bounds, scale=scale, max_evals=max_evals, seed=seed,
            on_nonfinite=on_nonfinite, tol=tol, patience=patience, first_order=first_order,
        )  # fmt: skip
        self.run = self.built.run
        self.queue: deque[int] = deque()  # numbers issued and not yet handed out

    @property
    def done(self) -> bool:
        """Whether nothing is out and the budget does not pay for more."""
        return self.run.done

    def ask(self, n: int | None = None) -> list[Trial]:
        """Return the next evaluations to make.

        Parameters
        ----------
        n
            How many, at most; fewer where the method must see answers first or the budget ends.
            By default those of one question: a step's, say.

        Returns
        -------
        list of Trial
            Empty where everything that can be asked is out.
        """
        if n is not None and (n != int(n) or n < 1):
            raise ValueError(f"n must be a whole number >= 1, got {n!r}")
        if self.run.done:
            raise RuntimeError(
                f"the budget of {self.run.max_evals} evaluations is used up; extend() it to go on"
            )
        wanted = 1 if n is None else int(n)
        while len(self.queue) < wanted:
            opened = self.run.next_question()
            if opened is None:
                break
            self.queue.extend(opened.first + j for j in opened.missing)
        n_now = len(self.queue) if n is None else min(wanted, len(self.queue))
        return [self._trial(self.queue.popleft()) for _ in range(n_now)]

    def _trial(self, number: int) -> Trial:
        opened = self.run.place[number]
        question = opened.question
        assert question.sample is not None
        arguments = self.built.samples.arguments(*question.sample)
        coords = question.support if question.kind == "partials" else None
        return Trial(number, question.at(number - opened.first), arguments, coords)

    def tell(self, ids: Any, values: Any) -> None:
        """Hand in the value of an evaluation, or many of each, in any order.

        A value that is not a number is refused at once. One that is not finite counts as lost
        under ``on_nonfinite="skip"``, like :meth:`fail`, and is refused under ``"raise"``.
        """
        if not hasattr(ids, "__len__"):
            ids, values = [ids], [values]
        if len(ids) != len(values):
            raise ValueError(f"tell got {len(ids)} ids and {len(values)} values; give one each")
        for number, value in zip(ids, values, strict=True):
            self._drop(int(number))
            self.run.accept(int(number), value)

    def fail(self, number: int) -> None:
        """Say that an evaluation will never have a value: that one is lost, and nothing else."""
        self._drop(number)
        self.run.lose(number)

    def _drop(self, number: int) -> None:
        if number in self.queue:
            self.queue.remove(number)

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
        return self.run.plan.standing.x.copy()

    def result(self) -> OptimizeResult:
        """Return the result so far, as :func:`scgd.minimize` does."""
        result = self.run.result()
        result.recipe = self.built.method
        return result

    def state_dict(self) -> dict[str, Any]:
        """Return everything in the run as nested dicts of arrays and plain values."""
        return {**self.run.state_dict(), "seed": self.built.seed.text}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a run where ``state_dict`` left it; evaluations that were out are still out."""
        restore(self.run, self.built.seed, state)
        self.queue.clear()

    def save(self, path: Any) -> None:
        """Write the run to a file."""
        self._saved(path).save(force=True)

    def resume(self, path: Any) -> bool:
        """Take up the run in a file, if there is one; it must be of the same arguments."""
        found = self._saved(path).resume()
        self.queue.clear()
        return found

    def _saved(self, path: Any) -> Saved:
        return Saved(path, self.run, self.built.seed, self.built.identity)
