"""``scgd fit``: fit a linear model to a file of data, score it, save it and show what matters."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from scgd.errors import CommandError, UsageError, check_place, printable
from scgd.linear.tables.reading import one_line, read, separator

LOSSES = ("squared", "huber", "logistic", "multinomial", "hinge", "squared-hinge")
N_NOTES = 20


def add_parser(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser("fit", help="fit a linear model to a file of data")
    add = parser.add_argument
    add("data", type=Path, help="a CSV (any separator), Parquet or svmlight file")
    add("--target", metavar="NAME", help="the column to predict (default: the last one)")
    add("--task", choices=("auto", "regression", "classification"), default="auto")
    add("--loss", choices=LOSSES, help="default: squared or logistic, by the task")
    add("--penalty", choices=("l2", "l1", "elasticnet"), default="l2")
    add("--alpha", metavar="A", default="auto", help="a number, or auto: the best along a path")
    add("--cv", type=int, default=5, help="folds of the score (default: 5)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--groups", metavar="NAME", help="rows of one group stay in one fold")
    how.add_argument(
        "--time-ordered", nargs="?", const="", metavar="NAME",
        help="test on later rows only, by this column or as the file is ordered",
    )  # fmt: skip
    add("--missing", choices=("impute", "refuse"), default="impute", help="what to do with gaps")
    add("--drop", action="append", default=[], metavar="NAME", help="leave a column out")
    add("--categorical", action="append", default=[], metavar="NAME", help="its numbers are names")
    add("--max-levels", type=int, default=100, metavar="N", help="words that get a column each")
    add("--high-cardinality", choices=("auto", "hash", "drop", "levels"), default="auto")
    add("--scale", choices=("standard", "robust"), default="standard",
        help="robust: by quantiles, which outliers do not move")  # fmt: skip
    add("--sep", help="the separator of the columns (default: found)")
    add("--jobs", type=int, default=1, metavar="N", help="folds at a time, each in a thread")
    add("--seed", type=int, default=0)
    add("--out", type=Path, help="save the model here (.npz, safe to load)")
    add("--plot", type=Path, help="write a picture of the model here (.html or .svg)")


def run(args: argparse.Namespace) -> int:
    """Fit, score, save and plot."""
    alpha = check_arguments(args)
    sep = separator(args.sep)
    try:
        from scgd.linear.tables.choosing import Options
        from scgd.linear.tables.target import decide, split_target, splits
        from scgd.linear.tables.training import train
    except ImportError as error:
        raise CommandError(f"scgd fit needs pandas: pip install 'scgd[cli]' ({error})") from error
    table = read(args.data, sep)
    problem = split_target(table, args, table.notes)
    task, loss, why = decide(problem, args)
    folds, manner = splits(problem, args, task == "classification")
    told = f"{len(problem.y)} rows; {task} of {problem.target!r} with {loss} loss ({why})"
    print(printable(told))
    words = {"loss": loss, "penalty": args.penalty, "random_state": args.seed}
    ways = args.missing, args.max_levels, args.high_cardinality, tuple(args.categorical), args.scale
    options = Options(*ways)
    try:
        outcome = train(problem, task, words, alpha, folds, options, args.jobs)
    except (ValueError, ArithmeticError, MemoryError) as error:
        raise CommandError(f"cannot fit {args.data}: {one_line(error)}") from error
    report(outcome, task, baseline(problem.y, task), manner, table.notes + outcome.notes)
    keep(outcome, args)
    return 0


def check_arguments(args: argparse.Namespace) -> float | None:
    """Refuse what can be refused before any work; return the penalty, None to search it."""
    for option, least in (("cv", 2), ("seed", 0), ("max_levels", 1), ("jobs", 1)):
        value = getattr(args, option)
        if not least <= value < 2**32:
            name = option.replace("_", "-")
            raise UsageError(f"--{name} must be a whole number of at least {least}, got {value}")
    check_place(args.out, "--out", (".npz",), args.data)
    check_place(args.plot, "--plot", (".html", ".svg"), args.data, args.out)
    if args.alpha == "auto":
        return None
    try:
        alpha = float(args.alpha)
    except ValueError:
        alpha = math.nan
    if not 0 <= alpha < math.inf:
        raise UsageError(f"--alpha must be auto or a number of at least 0, got {args.alpha!r}")
    return alpha


def baseline(y: Any, task: str) -> str:
    """Return how well a constant does, in words."""
    import numpy as np

    if task == "regression":
        return "0 is the mean alone"
    share = np.unique(y, return_counts=True)[1].max() / len(y)
    return f"the most frequent label alone has {share:.4f}"


def report(outcome: Any, task: str, ordinary: str, manner: str, notes: list[str]) -> None:
    """Say what was done and how well it went."""
    for note in notes[:N_NOTES]:
        print(printable(f"note: {note}"))
    if len(notes) > N_NOTES:
        print(f"note: and {len(notes) - N_NOTES} more of this kind")
    alphas, place = outcome.alphas, outcome.place
    if len(alphas) > 1:
        tried = f"the best of {len(alphas)} from {alphas[0]:.3g} to {alphas[-1]:.3g}"
        print(f"alpha {alphas[place]:.3g}, {tried}")
    scores = outcome.scores[place]
    measure = "R2" if task == "regression" else "accuracy"
    if outcome.balanced:
        measure, ordinary = "balanced accuracy", "a constant label has 1 / the number of labels"
    found = f"{scores.mean():.4f} +- {scores.std():.4f}; {ordinary}"
    print(f"{measure} in {len(scores)}-fold cross-validation ({printable(manner)}): {found}")
    print(f"{printable(outcome.meaning())}; per standard deviation:")
    for name, size in outcome.largest():
        print(f"  {printable(name):<36} {size:12.5g}")


def keep(outcome: Any, args: argparse.Namespace) -> None:
    """Write the model and the picture."""
    from scgd.linear.models import save_model
    from scgd.linear.tables.page import draw

    try:
        if args.out:
            save_model(args.out, outcome.model)
            print(f"model: {args.out}")
        if args.plot:
            draw(args.plot, outcome, args.data.name)
            print(f"plot: {args.plot}")
    except OSError as error:
        raise CommandError(f"cannot write {error.filename}: {error.strerror}") from error
