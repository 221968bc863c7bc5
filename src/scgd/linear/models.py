"""Fitted models as files: NumPy arrays and a JSON header, nothing that could run code."""

from __future__ import annotations

import io
import json
import os
import zipfile
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scgd.checkpoint import parse
from scgd.files import replacing
from scgd.linear.crossvalidated import SCGDClassifierCV, SCGDRegressorCV
from scgd.linear.estimators import SCGDClassifier, SCGDRegressor
from scgd.typing import Array

KINDS: dict[str, Any] = {"classifier": SCGDClassifier, "regressor": SCGDRegressor}
FORMAT = 2
PLAIN = (str, int, float, bool, type(None))


class ModelError(ValueError):
    """A file that is no model, or a broken one."""


@dataclass
class TableModel:
    """A model together with what makes its matrix of a table; predicts from tables.

    Parameters
    ----------
    preparation
        From a frame (or, for svmlight files, a sparse matrix) to the model's matrix.
    model
        The fitted estimator.
    target
        The name of the column it predicts.
    """

    preparation: Any
    model: Any
    target: str

    def predict(self, table: Any) -> Any:
        """Return the predictions for the rows of a table."""
        return self.model.predict(self.preparation.transform(table)[0])

    def predict_proba(self, table: Any) -> Any:
        """Return the probabilities of the classes for the rows of a table."""
        return self.model.predict_proba(self.preparation.transform(table)[0])


def save_model(path: str | Path, model: Any) -> None:
    """Write a fitted estimator or a :class:`TableModel`.

    Parameters that are objects (a policy, say) are not kept: they are of no use in predictions.

    Parameters
    ----------
    path
        The file, replaced at once when it exists.
    model
        A fitted estimator of :mod:`scgd.linear`, or a table's model.

    Examples
    --------
    >>> import tempfile
    >>> model = SCGDRegressor(alpha=0.0).fit(np.array([[0.0], [1.0]]), [1.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(f"{folder}/model.npz", model)
    ...     load_model(f"{folder}/model.npz").predict([[2.0]]).round(6)
    array([5.])
    """
    header: dict[str, Any] = {"format": FORMAT}
    arrays: dict[str, Array] = {}
    if isinstance(model, TableModel):
        header["preparation"], parts = model.preparation.state()
        header["target"] = model.target
        arrays |= {f"preparation.{name}": array for name, array in parts.items()}
        model = model.model
    if isinstance(model, SCGDClassifierCV | SCGDRegressorCV):
        model = with_names(model)
    header["kind"] = next(name for name, cls in KINDS.items() if isinstance(model, cls))
    params = model.get_params(deep=False)
    header["params"] = {n: value for n, value in params.items() if isinstance(value, PLAIN)}
    learnt = {n: v for n, v in vars(model).items() if n.endswith("_") and not n.startswith("_")}
    for name, value in learnt.items():
        arrays[name] = as_plain_array(value)
    contents = {"header": np.array(json.dumps(header)), **arrays}
    buffer = io.BytesIO()
    np.savez(buffer, **contents)  # type: ignore[arg-type]
    with replacing(path) as file:
        file.write(buffer.getvalue())


def with_names(model: Any) -> Any:
    """Return the single estimator of a cross-validated one, with the names of its columns."""
    single = copy(model.model_)
    if hasattr(model, "feature_names_in_"):
        single.feature_names_in_ = model.feature_names_in_
    return single


def as_plain_array(value: Any) -> Array:
    """Return an array without Python objects: words become text."""
    array = np.asarray(value.toarray() if hasattr(value, "toarray") else value)
    return array.astype(str) if array.dtype == object else array


def load_model(path: str | Path) -> Any:
    """Read what :func:`save_model` wrote; nothing in the file is executed.

    Every file that is not such a model, or a damaged one, raises :class:`ModelError`.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    object
        The fitted estimator; of ``scgd fit``, a model that predicts from tables.
    """
    try:
        arrays = read_arrays(Path(path))
        header = json.loads(str(arrays.pop("header")))
        if header["format"] != FORMAT:
            raise ValueError(f"it has format {header['format']!r}, this version reads {FORMAT}")
        return restore(header, arrays)
    except FileNotFoundError as error:
        raise ModelError(f"there is no model {path}") from error
    except Exception as error:  # a malformed file can make the parsers raise anything
        told = f"{path} is not a model saved by scgd, or it is damaged: {error}"
        raise ModelError(told) from error


def read_arrays(path: Path) -> dict[str, Array]:
    """Return the arrays of a file whose declared sizes are those of the file itself."""
    if not path.is_file():
        raise FileNotFoundError(path) if not path.exists() else ValueError("it is not a file")
    with zipfile.ZipFile(path) as file:
        entries = file.infolist()
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise ValueError("it is compressed, and scgd's models are not")
        if sum(entry.file_size for entry in entries) > os.path.getsize(path):
            raise ValueError("its parts are declared larger than the file")
        return {entry.filename.removesuffix(".npy"): parse(file.read(entry)) for entry in entries}


def restore(header: dict[str, Any], arrays: dict[str, Array]) -> Any:
    """Return the model of a file's contents; whatever does not fit together is refused."""
    model = KINDS[header["kind"]](**header["params"])
    for name, array in arrays.items():
        if name.isidentifier() and name.endswith("_") and not name.startswith("_"):
            setattr(model, name, array if array.ndim else array.item())
    if hasattr(model, "feature_names_in_"):
        model.feature_names_in_ = model.feature_names_in_.astype(object)
    n_rows = check_shapes(model)
    if "preparation" not in header:
        return model
    from scgd.linear.tables.preparation import PREPARATIONS

    mine = {n.removeprefix("preparation."): a for n, a in arrays.items() if "." in n}
    preparation = PREPARATIONS[header["preparation"]["kind"]].restore(header["preparation"], mine)
    if len(preparation.labels) != model.n_features_in_:
        raise ValueError(f"{n_rows} x {model.n_features_in_} coefficients do not fit the columns")
    return TableModel(preparation, model, str(header["target"]))


def check_shapes(model: Any) -> int:
    """Refuse coefficients that do not fit together; return the number of their rows."""
    coefs, intercepts = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    classes = getattr(model, "classes_", None)
    fits = coefs.dtype.kind == "f" and intercepts.dtype.kind == "f"
    fits = fits and coefs.ndim == 2 and coefs.shape[1] == model.n_features_in_
    fits = fits and intercepts.shape in ((len(coefs),), (1,))
    if isinstance(model, SCGDClassifier):
        n_classes = 0 if classes is None or classes.ndim != 1 else len(classes)
        fits = fits and len(coefs) in ((1,) if n_classes == 2 else (n_classes,)) and n_classes > 1
    if not (fits and np.all(np.isfinite(coefs)) and np.all(np.isfinite(intercepts))):
        raise ValueError(f"its coefficients have shape {coefs.shape} or are not finite")
    return len(coefs)
