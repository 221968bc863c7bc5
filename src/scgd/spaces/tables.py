"""A space from a TOML file, for the command line."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path
from typing import Any

from scgd.files import settled
from scgd.spaces.parameters import Choice, Float, Int, Parameter
from scgd.spaces.space import Space

KINDS: dict[str, Any] = {"float": Float, "int": Int, "choice": Choice}


def read_space(path: Any) -> Space:
    """Return the space that a TOML file describes.

    One table per parameter: ``type`` (``"float"``, ``"int"`` or ``"choice"``) and the arguments
    of that kind by their names; a choice has ``values``.
    """
    settled(path, "the space")
    try:
        tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"cannot read the space in {path}: {error.strerror or error}") from None
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply for a space") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no TOML file: {error}") from None
    try:
        return Space({name: parameter_of(name, table) for name, table in tables.items()})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None


def parameter_of(name: str, table: Any) -> Parameter:
    """Return the parameter of a table."""
    if not isinstance(table, dict) or table.get("type") not in KINDS:
        raise ValueError(
            f"{name} must be a table with type = {', '.join(map(repr, KINDS))}; "
            f"write {name} = {{type = 'float', low = 0, high = 1}}"
        )
    kind = KINDS[table["type"]]
    words = inspect.signature(kind).parameters
    rest = {key: value for key, value in table.items() if key != "type"}
    for key, word in words.items():
        if word.default is word.empty and key not in rest:
            raise ValueError(f"{name} lacks {key}")
    for key in rest:
        if key not in words:
            raise ValueError(f"{name} has {key!r}, which is none of {list(words)}")
    try:
        if kind is Choice:
            values = rest.pop("values")
            if not isinstance(values, list):
                raise ValueError(f"values must be a list, got {values!r}")
            return Choice(*values, **rest)
        parameter: Parameter = kind(**rest)
        return parameter
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None
