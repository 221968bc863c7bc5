"""``scgd predict``: apply a saved model to a new file of data."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from scgd.errors import CommandError, cell, check_place, printable
from scgd.linear.tables.reading import one_line, read, separator


def add_parser(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser("predict", help="apply a model saved by scgd fit to new data")
    parser.add_argument("model", type=Path, help="the model (.npz)")
    parser.add_argument("data", type=Path, help="a file with the same columns")
    parser.add_argument("--out", type=Path, help="write a CSV file here (default: standard output)")
    parser.add_argument("--sep", help="the separator of the columns (default: found)")


def run(args: argparse.Namespace) -> int:
    """Predict, write, and score where the target is known."""
    check_place(args.out, "--out", (".csv", ".txt", ".tsv"), args.data, args.model)
    from scgd.linear.models import ModelError, TableModel, load_model

    sep = separator(args.sep)
    try:
        model = load_model(args.model)
    except ModelError as error:
        raise CommandError(str(error)) from error
    if not isinstance(model, TableModel):
        raise CommandError(
            f"{args.model} was saved from Python without the columns of a table; "
            "use scgd.linear.models.load_model"
        )
    table = read(args.data, sep, model.model.n_features_in_ if is_matrix(model) else None)
    frame = table.matrix if is_matrix(model) else table.frame
    if frame is None:
        wanted = "svmlight" if is_matrix(model) else "named columns"
        raise CommandError(f"{args.model} was fitted to {wanted}, which {args.data} does not hold")
    try:
        results, notes = predictions(model, frame)
    except (ValueError, ArithmeticError, MemoryError) as error:
        raise CommandError(f"cannot predict {args.data}: {one_line(error)}") from error
    for note in table.notes + notes + judged(model, table, results["prediction"]):
        print(printable(f"note: {note}"), file=sys.stderr)
    write(results, args)
    return 0


def is_matrix(model: Any) -> bool:
    """Tell whether the model was fitted to a matrix without names."""
    return not hasattr(model.preparation, "columns")


def predictions(model: Any, frame: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the columns of the answer, and notes."""
    X, notes = model.preparation.transform(frame)
    results = {"prediction": model.model.predict(X)}
    if hasattr(model.model, "predict_proba"):
        chances = model.model.predict_proba(X)
        for label, chance in zip(model.model.classes_, chances.T, strict=True):
            results[f"probability of {label}"] = chance
    return results, notes


def judged(model: Any, table: Any, predicted: Any) -> list[str]:
    """Return how well the target is met, where the file has it."""
    import numpy as np
    from sklearn.metrics import r2_score

    from scgd.linear.tables.target import target_values
    from scgd.linear.tables.values import as_words

    if table.frame is None or model.target not in table.frame:
        return []
    there = as_words(table.frame[model.target]).notna().to_numpy()
    truth = target_values(table.frame[model.target][there])
    told = f"the file holds the target {model.target!r}; beside it the predictions have"
    if hasattr(model.model, "classes_") and there.any():
        numbers = predicted.dtype.kind == "i" and truth.dtype.kind == "f"
        same = truth == predicted[there] if numbers else truth.astype(str) == predicted[there]
        return [f"{told} accuracy {np.mean(same):.4f}"]
    if truth.dtype.kind == "f" and len(truth) > 1:
        return [f"{told} R2 {r2_score(truth, predicted[there]):.4f}"]
    return []


def write(results: dict[str, Any], args: argparse.Namespace) -> None:
    """Write the answer as CSV."""
    import pandas as pd

    results = {cell(name): guarded(column) for name, column in results.items()}
    sep = "\t" if args.out and args.out.suffix.lower() == ".tsv" else ","
    try:
        pd.DataFrame(results).to_csv(args.out or sys.stdout, index=False, sep=sep)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"cannot write {args.out}: {error}") from error
    if args.out:
        print(f"{len(results['prediction'])} predictions: {args.out}")


def guarded(column: Any) -> Any:
    """Return labels that no spreadsheet takes for formulas; numbers as they are."""
    return column if column.dtype.kind in "biuf" else [cell(str(label)) for label in column]
