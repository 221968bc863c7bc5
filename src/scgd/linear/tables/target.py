"""What is to be predicted, whether it is a number or a label, and how the rows are split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scgd.errors import CommandError, UsageError, nearest
from scgd.linear.tables.reading import Table
from scgd.linear.tables.values import as_numbers, as_words, date_format, days
from scgd.typing import Array

LOSSES = {
    "regression": ("squared", "huber"),
    "classification": ("logistic", "multinomial", "hinge", "squared-hinge"),
}
TASKS = ("auto", *LOSSES)
FEW = 20
"""Whole numbers with at most so many different values may be labels; a hint is given."""


@dataclass
class Problem:
    """Rows to learn from: features, targets, and what splits the rows."""

    features: Any
    y: Array
    target: str
    groups: Any = None
    order: Any = None

    def take(self, rows: Any) -> Problem:
        """Return some of the rows."""
        frame = self.features
        kept = frame.iloc[rows] if hasattr(frame, "iloc") else frame[rows]
        parts = (None if part is None else part[rows] for part in (self.groups, self.order))
        return Problem(kept, self.y[rows], self.target, *parts)


def split_target(table: Table, args: Any, notes: list[str]) -> Problem:
    """Return the features and the target of a table, rows without a target left out."""
    if table.frame is None:
        refuse_names(args)
        return Problem(table.matrix, table.targets, "target")
    target = target_name(list(table.frame.columns), args)
    frame = with_target(table.frame, target, args.missing, notes)
    frame = one_kind(frame, target, args, notes)
    groups = None if not args.groups else as_words(frame[args.groups]).fillna("").to_numpy(str)
    order = None if not args.time_ordered else moments(frame[args.time_ordered])
    features = frame.drop(columns=[target, *args.drop, *([args.groups] if args.groups else [])])
    if features.shape[1] == 0:
        raise CommandError(f"{args.data} has no columns beside the target {target!r}")
    return Problem(features, target_values(frame[target]), target, groups, order)


def refuse_names(args: Any) -> None:
    """Refuse options with names for a file without names."""
    for option in ("target", "groups", "drop", "categorical", "time_ordered", "scale"):
        if getattr(args, option) not in (None, [], "", "standard"):
            word = option.replace("_", "-")
            raise UsageError(f"--{word} needs columns with names; {args.data} has none")


def target_name(names: list[str], args: Any) -> str:
    """Return the column to predict; refuse names that do not exist or have two parts."""
    for name in [args.target, args.groups, args.time_ordered, *args.drop, *args.categorical]:
        if name and name not in names:
            raise UsageError(f"no column {name!r} in {args.data}{nearest(name, names)}")
    others = {args.groups, args.time_ordered, *args.drop, *args.categorical}
    target: str = args.target or next((n for n in reversed(names) if n not in args.drop), names[-1])
    if target in others:
        raise UsageError(f"{target!r} is the target; it cannot have another part as well")
    return target


def with_target(frame: Any, target: str, missing: str, notes: list[str]) -> Any:
    """Return the rows that have a target."""
    there = as_words(frame[target]).notna().to_numpy()
    if there.all():
        return frame
    if not there.any():
        raise CommandError(f"the target {target!r} is empty in all rows; choose another --target")
    told = f"the target {target!r} is missing in {(~there).sum()} of {len(frame)} rows"
    if missing == "refuse":
        raise CommandError(f"{told}; fill or remove them, or allow --missing impute")
    notes.append(f"{told}; they are left out")
    return frame[there].reset_index(drop=True)


def one_kind(frame: Any, target: str, args: Any, notes: list[str]) -> Any:
    """Return the rows with numbers where most targets are numbers; ask what the others mean."""
    numbers = as_numbers(frame[target])
    there = np.isfinite(numbers)
    mixed = 0.5 < there.mean() < 1.0 and len(np.unique(numbers[there])) > FEW
    if not mixed or args.task == "classification" or args.loss in LOSSES["classification"]:
        return frame
    word = as_words(frame[target])[~there].iloc[0]
    told = f"the target {target!r} holds numbers, and words ({word!r}) in {(~there).sum()} rows"
    if args.task != "regression" and args.loss not in LOSSES["regression"]:
        raise CommandError(
            f"{told}; say --task regression to leave those rows out, or --task classification"
        )
    notes.append(f"{told}, which are left out")
    return frame[there].reset_index(drop=True)


def target_values(column: Any) -> Array:
    """Return numbers where all cells are numbers, else words."""
    words = as_words(column)
    numbers = as_numbers(column)
    if np.all(np.isfinite(numbers)) and not words.isin(["True", "False"]).all():
        return numbers
    return np.asarray(words.to_numpy(str))


def moments(column: Any) -> Array:
    """Return numbers that order the rows of a column of dates or numbers."""
    values = as_numbers(column)
    if np.isnan(values).any() and (form := date_format(column)):
        values = days(column, form)
    if np.isnan(values).any():
        told = f"--time-ordered: {column.name!r} has cells that are neither numbers nor dates"
        raise CommandError(f"{told}, or missing ones; fill them or choose another column")
    return values


def decide(problem: Problem, args: Any) -> tuple[str, str, str]:
    """Return the task, the loss and why; labels among the targets become whole numbers or words."""
    y, task, why = problem.y, args.task, "as asked"
    implied = next((name for name, losses in LOSSES.items() if args.loss in losses), None)
    if implied and task not in ("auto", implied):
        raise UsageError(f"--loss {args.loss} is for {implied}, not for --task {task}")
    n_values = len(np.unique(y))
    if n_values < 2:
        what = f"the target {problem.target!r} is {y[0]} in all rows"
        raise CommandError(f"{what}; choose another --target")
    whole = y.dtype.kind == "f" and bool(np.all(y == np.round(y)) and np.abs(y).max() < 2**53)
    task = implied or task
    if task == "auto":
        task, why = guess(y, n_values, whole)
    if task == "classification":
        problem.y = as_labels(problem, n_values, whole)
    elif y.dtype.kind != "f":
        told = f"the target {problem.target!r} holds words ({str(y[0])!r})"
        raise CommandError(f"{told}; use --task classification")
    return task, args.loss or LOSSES[task][0], why


def as_labels(problem: Problem, n_values: int, whole: bool) -> Array:
    """Return the targets as whole numbers or words; refuse those that are no labels."""
    y = problem.y
    fractions = y.dtype.kind == "f" and not whole and n_values > FEW
    if fractions or n_values > max(len(y) / 2, 2):
        raise CommandError(
            f"the target {problem.target!r} has {n_values} different values in {len(y)} rows, "
            "too many for labels; use --task regression or another --target"
        )
    return y.astype(np.int64) if whole else y.astype(str)


def guess(y: Array, n_values: int, whole: bool) -> tuple[str, str]:
    """Return the task that targets look like, and the reason."""
    if y.dtype.kind != "f":
        return "classification", "the target holds words"
    if n_values == 2:
        return "classification", "the target has two values"
    hint = ""
    if whole and n_values <= FEW:
        hint = f" with {n_values} values; if these are labels say --task classification"
    return "regression", f"the target holds numbers{hint}"


def splits(problem: Problem, args: Any, classifies: bool) -> tuple[list[Any], str]:
    """Return the folds of the rows, and how they were made."""
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit

    n_rows = len(problem.y)
    if n_rows < 2 * args.cv:
        raise CommandError(f"{n_rows} rows are too few for --cv {args.cv}; give more or lower it")
    if problem.groups is not None:
        if (found := len(np.unique(problem.groups))) < args.cv:
            raise UsageError(f"--groups {args.groups} has {found} groups; --cv must not be above")
        folds = GroupKFold(args.cv).split(problem.y, groups=problem.groups)
        return list(folds), f"by {args.groups!r}"
    if args.time_ordered is not None:
        order = np.arange(n_rows) if problem.order is None else np.argsort(problem.order)
        made = TimeSeriesSplit(args.cv).split(order)
        return [(order[train], order[test]) for train, test in made], "ordered in time"
    rare = classifies and np.unique(problem.y, return_counts=True)[1].min() < args.cv
    kind: Any = StratifiedKFold if classifies and not rare else KFold
    shuffled = kind(args.cv, shuffle=True, random_state=args.seed)
    return list(shuffled.split(problem.y, problem.y)), "shuffled"
