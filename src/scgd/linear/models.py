"""Fitted models as files: NumPy arrays and a JSON header, nothing that could run code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from scgd.linear.estimators import SCGDClassifier, SCGDRegressor

__all__ = ["load_model", "save_model"]

KINDS = {"classifier": SCGDClassifier, "regressor": SCGDRegressor}
FORMAT = 1


def save_model(path: str | Path, model: Any, params: dict[str, Any] | None = None) -> None:
    """Write a fitted model; ``params`` are the plain parameters to restore with it.

    Examples
    --------
    >>> import tempfile
    >>> model = SCGDRegressor(alpha=0.0).fit(np.array([[0.0], [1.0]]), [1.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(f"{folder}/model.npz", model)
    ...     load_model(f"{folder}/model.npz").predict([[2.0]]).round(6)
    array([5.])
    """
    kind = next(name for name, cls in KINDS.items() if isinstance(model, cls))
    header = {
        "format": FORMAT,
        "kind": kind,
        "params": params or {"loss": model.loss, "alpha": model.alpha, "penalty": model.penalty},
        "n_iter": int(model.n_iter_),
        "features": [str(name) for name in getattr(model, "feature_names_in_", [])],
    }
    arrays = {
        "coef": model.coef_,
        "intercept": model.intercept_,
        "sampling_weights": model.sampling_weights_,
    }
    if kind == "classifier":
        classes = np.asarray(model.classes_)
        arrays["classes"] = classes.astype(str) if classes.dtype == object else classes
    with Path(path).open("wb") as file:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)


def load_model(path: str | Path) -> Any:
    """Read a model written by :func:`save_model`; nothing in the file is executed."""
    try:
        with np.load(path, allow_pickle=False) as file:
            header = json.loads(str(file["header"]))
            arrays = {name: file[name] for name in file.files if name != "header"}
        if header["format"] != FORMAT or header["kind"] not in KINDS:
            raise ValueError(f"format {header['format']} of kind {header['kind']!r} is not known")
        model = KINDS[header["kind"]](**header["params"])
        for name in ("coef", "intercept", "sampling_weights"):
            setattr(model, f"{name}_", arrays[name])
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a model saved by scgd: {error}") from error
    if "classes" in arrays:
        model.classes_ = arrays["classes"]
    model.n_iter_, model.n_features_in_ = header["n_iter"], arrays["coef"].shape[-1]
    if header["features"]:
        model.feature_names_in_ = np.array(header["features"], dtype=object)
    return model
