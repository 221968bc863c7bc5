"""``scgd fit``: fit a linear model to a file of data, score it, save it and show what matters."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from scgd.errors import CommandError, UsageError, nearest

__all__ = ["add_parser", "run"]

LOSSES = ("squared", "huber", "logistic", "hinge", "squared-hinge")
N_SHOWN = 20
TEXT = {".svm", ".svmlight", ".libsvm", ".txt"}


def add_parser(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser("fit", help="fit a linear model to a file of data")
    parser.add_argument("data", type=Path, help="a CSV, Parquet or svmlight file")
    parser.add_argument("--target", help="the target's column (default: the last one)")
    parser.add_argument("--loss", choices=LOSSES, help="default: by the kind of target")
    parser.add_argument("--penalty", choices=("l2", "l1", "elasticnet"), default="l2")
    parser.add_argument("--alpha", type=float, default=1e-4, help="strength of the penalty")
    parser.add_argument("--cv", type=int, default=5, help="folds of the score (default: 5)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="save the model here (.npz, safe to load)")
    parser.add_argument("--plot", type=Path, help="write a plot of the coefficients here (.html)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Fit, score, save and plot."""
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from scgd.linear.estimators import SCGDClassifier, SCGDRegressor

    X, y, names = read(args.data, args.target)
    classifies = args.loss not in ("squared", "huber") if args.loss else is_label(y)
    kind = SCGDClassifier if classifies else SCGDRegressor
    loss = args.loss or ("logistic" if classifies else "squared")
    params = {"loss": loss, "penalty": args.penalty, "alpha": args.alpha, "random_state": args.seed}
    model = kind(**params)
    scaler = StandardScaler(with_mean=not hasattr(X, "tocsr"))
    try:
        scores = cross_val_score(make_pipeline(scaler, model), X, y, cv=args.cv)
        model.fit(scaler.fit_transform(X), y)
    except (ValueError, FloatingPointError) as error:
        raise CommandError(f"cannot fit {args.data}: {error}") from error
    unscale(model, scaler)
    measure = "accuracy" if classifies else "R2"
    print(f"{X.shape[0]} rows, {X.shape[1]} columns, {loss} loss, alpha {args.alpha:g}")
    print(
        f"{measure} in {args.cv}-fold cross-validation: {scores.mean():.4f} +- {scores.std():.4f}"
    )
    print(f"{model.n_iter_} passes; largest coefficients per standard deviation, sampling weights:")
    rows = largest(model, scaler, names)
    for name, size, weight in rows:
        print(f"  {name:<30} {size:12.5g} {weight:10.4f}")
    if args.out:
        from scgd.linear.models import save_model

        save_model(args.out, model, params)
        print(f"model: {args.out}")
    if args.plot:
        draw(rows, args.plot)
        print(f"plot: {args.plot}")
    return 0


def read(path: Path, target: str | None) -> tuple[Any, Any, list[str]]:
    """Return the data, the targets and the names of the columns of a file."""
    if not path.is_file():
        raise CommandError(f"there is no file {path}")
    try:
        if path.suffix in TEXT:
            from sklearn.datasets import load_svmlight_file

            X, y = load_svmlight_file(str(path))
            return X, y, [f"x{k}" for k in range(X.shape[1])]
        import pandas as pd

        table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    except ImportError as error:
        raise CommandError(f"reading {path} needs pandas: pip install 'scgd[cli]'") from error
    except (ValueError, OSError) as error:
        raise CommandError(f"cannot read {path}: {error}") from error
    column = str(table.columns[-1]) if target is None else target
    if column not in table.columns:
        raise UsageError(
            f"no column {column!r} in {path}{nearest(column, map(str, table.columns))}"
        )
    y = table[column].to_numpy()
    X = pd.get_dummies(table.drop(columns=column), dtype=float)
    if X.isna().any(axis=None) or pd.isna(y).any():
        raise CommandError(f"{path} has missing values; fill or drop them first")
    return X.to_numpy(float), y, [str(name) for name in X.columns]


def is_label(y: Any) -> bool:
    """Tell whether targets look like labels: words, or few whole numbers."""
    import numpy as np

    if y.dtype.kind not in "fiu":
        return True
    return bool(np.all(y == np.round(y)) and len(np.unique(y)) <= 20)


def unscale(model: Any, scaler: Any) -> None:
    """Turn the coefficients of standardised columns into those of the columns themselves."""
    model.coef_ = model.coef_ / scaler.scale_
    if scaler.with_mean:
        model.intercept_ = model.intercept_ - model.coef_ @ scaler.mean_


def largest(model: Any, scaler: Any, names: list[str]) -> list[tuple[str, float, float]]:
    """Return the names, coefficients per standard deviation and sampling weights that stand out."""
    import numpy as np

    sizes = np.atleast_2d(model.coef_) * scaler.scale_
    weights = np.atleast_2d(model.sampling_weights_).mean(axis=0)
    strongest = sizes[np.abs(sizes).argmax(axis=0), np.arange(sizes.shape[1])]
    order = np.argsort(-np.abs(strongest))[:N_SHOWN]
    return [(names[k], float(strongest[k]), float(weights[k])) for k in order]


def draw(rows: list[tuple[str, float, float]], path: Path) -> None:
    """Write bars of the coefficients and the sampling weights as a page of its own."""
    try:
        from plotly.subplots import make_subplots
    except ImportError as error:
        raise CommandError("a plot needs plotly: pip install 'scgd[cli]'") from error
    names, sizes, weights = zip(*reversed(rows), strict=True)
    titles = ("coefficient per standard deviation", "sampling weight")
    figure = make_subplots(cols=2, shared_yaxes=True, subplot_titles=titles)
    for column, values in enumerate((sizes, weights), start=1):
        figure.add_bar(x=values, y=names, orientation="h", row=1, col=column)
    figure.update_layout(showlegend=False, height=120 + 24 * len(rows), template="plotly_white")
    figure.write_html(path, include_plotlyjs=True)
