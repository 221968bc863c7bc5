"""The kinds of parameters: real numbers, whole numbers and choices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from scgd.checks import count, flag, number, settle
from scgd.typing import Floats, Ints

LARGEST = 2**53


def same(a: Any, b: Any) -> bool:
    """Tell whether two values of a choice are one: 1, 1.0 and True are three."""
    if a is b:
        return True
    return type(a) is type(b) and bool(np.all(a == b))


@dataclass(frozen=True, repr=False, kw_only=True)
class Parameter:
    """What all kinds of parameters have.

    Attributes
    ----------
    size
        How many there are, in an array; None for one alone.
    default
        Where a search starts; the middle (a choice: the first) where None.
    when
        ``{"other": value}`` (or a tuple of values): the parameter exists only where the other ones
        have these values.
    """

    size: int | None = None
    default: Any = None
    when: Any = None

    @property
    def categorical(self) -> bool:
        """Whether its values have no order."""
        return False

    @property
    def n_levels(self) -> int:
        """How many values there are; 0 where it is not a matter of counting."""
        return 0

    @property
    def first(self) -> float:
        """The first of whole numbers that lie evenly in the logarithm, else 0."""
        return 0.0

    def values(self, units: Floats, levels: Ints) -> list[Any]:
        """Return the values at unit coordinates, whose levels are these."""
        raise NotImplementedError

    def place(self, value: Any) -> float:
        """Return the level of a value (the unit coordinate where there are no levels)."""
        raise NotImplementedError

    def __repr__(self) -> str:
        words = [repr(getattr(self, f.name)) for f in fields(self) if not f.kw_only]
        for f in sorted(fields(self), key=lambda f: f.name in ("size", "default", "when")):
            value = getattr(self, f.name)
            if f.kw_only and value is not f.default:
                words.append(f"{f.name}={value!r}")
        return f"{type(self).__name__}({', '.join(words)})"


@dataclass(frozen=True, repr=False)
class Float(Parameter):
    """A real number.

    Parameters
    ----------
    low, high
        Its bounds; both can be reached.
    log
        Whether factors count rather than differences.
    step
        Only ``low``, ``low + step``, ... up to ``high``.
    size
        An array of so many instead of one number.
    default, when
        Where to start, and on which condition it exists.

    Examples
    --------
    >>> Float(1e-4, 1, log=True)
    Float(0.0001, 1.0, log=True)
    """

    low: float
    high: float
    log: bool = field(default=False, kw_only=True)
    step: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_range(self, number)
        if self.step is not None:
            settle(self, step=number(self.step, "step"))
            if self.log or self.step <= 0:
                raise ValueError(f"step must be positive, and excludes log, got {self.step!r}")
            if (self.high - self.low) / self.step >= LARGEST:
                raise ValueError(f"step {self.step} is too small for [{self.low}, {self.high}]")
        if not math.isfinite(self.high - self.low):
            raise ValueError(f"the range from {self.low} to {self.high} is too wide; use log=True")

    @property
    def n_levels(self) -> int:
        """The steps, or 0; a constant is a single one."""
        if self.step is None:
            return int(self.low == self.high)
        return 1 + math.floor((self.high - self.low) / self.step * (1 + 1e-12))

    def values(self, units: Floats, levels: Ints) -> list[Any]:
        """Return numbers between the bounds."""
        if self.step is not None:
            found = self.low + self.step * levels
        elif self.log:
            low, high = math.log(self.low), math.log(self.high)
            found = np.exp(low + units * (high - low))
        else:
            found = self.low + units * (self.high - self.low)
        # 15 digits: 0.1 is then 0.1 again after the way to the cube and back
        inside: list[float] = np.clip(found, self.low, self.high).tolist()
        return [min(max(float(f"{v:.15g}"), self.low), self.high) for v in inside]

    def place(self, value: Any) -> float:
        """Return the step or the unit coordinate of a number."""
        found = number(value, "the value")
        if not self.low <= found <= self.high:
            raise ValueError(f"{value!r} lies outside [{self.low}, {self.high}]")
        if self.step is not None:
            return float(min(round((found - self.low) / self.step), self.n_levels - 1))
        if self.high == self.low:
            return 0.0
        if self.log:
            return (math.log(found) - math.log(self.low)) / (
                math.log(self.high) - math.log(self.low)
            )
        return (found - self.low) / (self.high - self.low)


@dataclass(frozen=True, repr=False)
class Int(Parameter):
    """A whole number.

    Parameters
    ----------
    low, high
        Its bounds; both can be reached.
    log
        Whether factors count rather than differences.
    step
        Only ``low``, ``low + step``, ... up to ``high``.
    size
        An array of so many instead of one number.
    default, when
        Where to start, and on which condition it exists.

    Examples
    --------
    >>> Int(4, 256, log=True, default=31)
    Int(4, 256, log=True, default=31)
    """

    low: int
    high: int
    log: bool = field(default=False, kw_only=True)
    step: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        check_range(self, whole)
        settle(self, step=count(self.step, "step"))
        if self.log and self.step != 1:
            raise ValueError(f"step and log exclude each other, got step={self.step}")

    @property
    def n_levels(self) -> int:
        """How many numbers there are."""
        return 1 + (self.high - self.low) // self.step

    @property
    def first(self) -> float:
        """The first number, with ``log``."""
        return float(self.low) if self.log else 0.0

    def values(self, units: Floats, levels: Ints) -> list[Any]:
        """Return whole numbers."""
        found: list[int] = (self.low + self.step * levels).tolist()
        return found

    def place(self, value: Any) -> float:
        """Return the level of a number."""
        level, rest = divmod(whole(value, "the value") - self.low, self.step)
        if rest or not 0 <= level < self.n_levels:
            raise ValueError(f"{value!r} is none of {self.low}, {self.low + self.step}, ..., "
                             f"{self.low + self.step * (self.n_levels - 1)}")  # fmt: skip
        return float(level)


@dataclass(frozen=True, repr=False, init=False)
class Choice(Parameter):
    """One of some values.

    Parameters
    ----------
    *values
        What there is to choose from: anything.
    ordered
        Whether values that stand beside each other are alike, as sizes are.
    default, when
        Where to start, and on which condition it exists.

    Examples
    --------
    >>> Choice("gbdt", "dart", default="dart")
    Choice('gbdt', 'dart', default='dart')
    """

    options: tuple[Any, ...]
    ordered: bool = False

    def __init__(
        self, *values: Any, ordered: bool = False, default: Any = None, when: Any = None
    ) -> None:
        flag(ordered, "ordered")
        settle(self, options=values, ordered=ordered, default=default, when=when, size=None)
        if not values:
            raise ValueError("a Choice needs values: Choice('a', 'b')")
        if len(values) == 1 and isinstance(values[0], list | tuple | set):
            raise ValueError(f"give the values one by one: Choice(*{values[0]!r})")
        for i, value in enumerate(values):
            if any(same(value, other) for other in values[:i]):
                raise ValueError(f"the values of a Choice must differ, got {value!r} twice")

    @property
    def categorical(self) -> bool:
        """Whether its values have no order."""
        return not self.ordered

    @property
    def n_levels(self) -> int:
        """How many values there are."""
        return len(self.options)

    def values(self, units: Floats, levels: Ints) -> list[Any]:
        """Return the values themselves."""
        return [self.options[level] for level in levels.tolist()]

    def place(self, value: Any) -> float:
        """Return the number of a value."""
        for level, option in enumerate(self.options):
            if same(value, option):
                return float(level)
        raise ValueError(f"{value!r} is none of {self.options}")

    def __repr__(self) -> str:
        words = [repr(value) for value in self.options]
        words += ["ordered=True"] if self.ordered else []
        words += [f"{n}={v!r}" for n in ("default", "when") if (v := getattr(self, n)) is not None]
        return f"Choice({', '.join(words)})"


@dataclass(frozen=True, repr=False)
class Quantile(Parameter):
    """A real number as likely as a distribution of ``scipy.stats`` has it.

    Parameters
    ----------
    distribution
        The distribution, with its arguments; of an infinite range the last thousandths are cut.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> Quantile(norm(2, 1)).values(np.array([0.5]), np.array([0]))
    [2.0]
    """

    distribution: Any

    @property
    def tail(self) -> float:
        """What is cut on each side."""
        return 0.0 if np.isfinite(self.distribution.support()).all() else 0.001

    def values(self, units: Floats, levels: Ints) -> list[Any]:
        """Return quantiles."""
        found: list[float] = self.distribution.ppf(self.tail + units * (1 - 2 * self.tail)).tolist()
        return [float(f"{v:.15g}") for v in found]

    def place(self, value: Any) -> float:
        """Return the share of the distribution below a number."""
        share = (float(self.distribution.cdf(number(value, "the value"))) - self.tail) / (
            1 - 2 * self.tail
        )
        return min(max(share, 0.0), 1.0)

    def __repr__(self) -> str:
        given = [
            *map(repr, self.distribution.args),
            *(f"{k}={v!r}" for k, v in self.distribution.kwds.items()),
        ]
        return f"Quantile({self.distribution.dist.name}({', '.join(given)}))"


def whole(value: Any, name: str) -> int:
    """Return a whole number, or say what is wrong with it."""
    found = number(value, name)
    if found != int(found) or abs(found) >= LARGEST:
        raise ValueError(f"{name} must be a whole number below 2**53, got {value!r}")
    return int(value)


def check_range(parameter: Any, check: Any) -> None:
    """Check bounds, log and size; numbers become plain Python ones."""
    flag(parameter.log, "log")
    for name in ("low", "high"):
        settle(parameter, **{name: check(getattr(parameter, name), name)})
    low, high, kind = parameter.low, parameter.high, type(parameter).__name__
    if low > high:
        raise ValueError(f"low must not be above high, got {kind}({low}, {high})")
    if parameter.log and low <= 0:
        raise ValueError(f"log=True needs low above zero, got {kind}({low}, {high}, log=True)")
    if parameter.size is not None:
        settle(parameter, size=count(parameter.size, "size"))


def adopted(name: Any, given: Any) -> Parameter:
    """Return a parameter of ours: what is given, or made of a list or somebody's distribution."""
    if isinstance(given, Parameter):
        return given
    listed = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str | bytes)
    if listed and (isinstance(given, Sequence) or given.ndim == 1):
        try:
            return candidates(given)
        except (TypeError, ValueError) as error:
            raise ValueError(f"parameter {name!r}: {error}") from None
    if hasattr(given, "ppf") and hasattr(given, "support"):
        return drawn(given)
    kinds = {kind.__name__ for kind in type(given).__mro__ if kind.__module__.startswith("optuna")}
    if "CategoricalDistribution" in kinds:
        return Choice(*given.choices)
    if "FloatDistribution" in kinds:
        return Float(given.low, given.high, log=given.log, step=given.step)
    if "IntDistribution" in kinds:
        return Int(given.low, given.high, log=given.log, step=given.step)
    raise TypeError(
        f"parameter {name!r} must be a Float, an Int, a Choice, a list of values or a distribution "
        f"of scipy.stats or Optuna, got {given!r}"
    )


def candidates(given: Any) -> Choice:
    """Return a choice among the values of a list; three or more numbers have an order."""
    values: list[Any] = []
    for value in given.tolist() if isinstance(given, np.ndarray) else given:
        if not any(same(value, other) for other in values):
            values.append(value)
    real = int | float | np.integer | np.floating
    if len(values) > 2 and all(isinstance(v, real) and not isinstance(v, bool) for v in values):
        return Choice(*sorted(values), ordered=True)
    return Choice(*values)


def drawn(distribution: Any) -> Parameter:
    """Return a parameter with the range of a distribution of ``scipy.stats``, spread as it is."""
    low, high = map(float, distribution.support())
    if hasattr(distribution, "pmf") and not hasattr(distribution, "pdf"):
        low = low if np.isfinite(low) else distribution.ppf(0.001)
        return Int(int(low), int(min(high, distribution.ppf(0.999))))
    kind = distribution.dist.name
    if kind in ("uniform", "loguniform", "reciprocal"):
        return Float(low, high, log=kind != "uniform")
    return Quantile(distribution)
