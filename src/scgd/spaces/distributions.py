"""Optuna's distributions as they are; Optuna itself is never imported here."""

from __future__ import annotations

from typing import Any

from scgd.spaces.parameters import Choice, Float, Int, Parameter

__all__ = ["adopted"]


def adopted(name: Any, given: Any) -> Parameter:
    """Return a parameter of ours, made of a distribution of Optuna's where it is one."""
    if isinstance(given, Parameter):
        return given
    kinds = {kind.__name__ for kind in type(given).__mro__ if kind.__module__.startswith("optuna")}
    if "CategoricalDistribution" in kinds:
        return Choice(*given.choices)
    if "FloatDistribution" in kinds:
        return Float(given.low, given.high, log=given.log, step=given.step)
    if "IntDistribution" in kinds:
        return Int(given.low, given.high, log=given.log, step=given.step)
    raise TypeError(
        f"parameter {name!r} must be a Float, an Int, a Choice or a distribution of Optuna's, "
        f"got {given!r}"
    )
