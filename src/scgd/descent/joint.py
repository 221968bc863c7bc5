"""Joint moves of all drawn coordinates along random signs, for functions in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scgd.calling import calls_user
from scgd.compiling import njit
from scgd.descent.engine import CoordinateDescent
from scgd.descent.loop import Loop, as_float
from scgd.estimators import halfway, quotient, random_bits, spread
from scgd.run.ledger import Ledger
from scgd.run.signals import Late
from scgd.typing import Array, Floats, Ints

__all__ = ["JointLoop"]


class JointLoop(Loop):
    """Set all drawn entries of the buffer at once, evaluate on both sides, put them back, move.

    Work and memory per step are those of the drawn coordinates, in compiled code.
    """

    def __init__(
        self,
        engine: CoordinateDescent,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        ledger: Ledger,
    ) -> None:
        super().__init__(engine, fun, args, ledger)
        size = engine.sampler.block_size
        self.ups, self.downs, self.widths = np.empty(size), np.empty(size), np.empty(size)

    def _step(self, place: int) -> None:
        engine, sampler, problem = self.engine, self.engine.sampler, self.engine.problem
        now = slice(sampler.position, sampler.position + sampler.block_size)
        coords = sampler.coords[now]
        if self.sampled:
            self.extra = (*engine.arguments(), *self.args)
        bits = random_bits(sampler.block_size, engine.direction_rng)
        radii = engine.timetable.radii[place] * engine.radius_scale[coords]
        spread(
            engine.point.x, coords, bits, radii, problem.lower, problem.upper, self.ups,
            self.downs, self.widths,
        )  # fmt: skip
        try:
            values = self._values(coords)
            if not np.isfinite(values).all():
                self._lost(values, lambda j: self._point(coords, j))
                first, second = (v if v - v == 0.0 else np.nan for v in values)
                values = first, second
        except BaseException:  # the step will be made again, along the same direction
            rewind(engine.direction_rng, bits)
            raise
        grads = quotient(np.full(len(coords), values[0] - values[1]), self.widths)
        self._keep(coords, values)
        if self.ledger.noted is not None:
            self.ledger.noted.extend(values)
        engine.look(self.downs, coords)
        engine.look(self.ups, coords)
        engine.n_evals += 2
        engine.move(coords, grads, float(engine.timetable.rates[place]), sampler.probs[now])
        engine.observe(halfway(*values))
        engine.end_step(engine.in_units(grads, coords))

    @calls_user
    def _values(self, coords: Ints) -> tuple[float, float]:
        """Return f at the two points."""
        call, point = self.call, self.engine.point
        try:
            put(point.buffer, coords, self.ups)
            first = call(point.view)
            if self.over:
                raise Late
            put(point.buffer, coords, self.downs)
            second = call(point.view)
        finally:
            restore(point.buffer, coords, point.x)
        first = first if first.__class__ is float else as_float(first)
        return first, second if second.__class__ is float else as_float(second)

    def _keep(self, coords: Ints, values: tuple[float, float]) -> None:
        """Keep the lower value if it is the best so far."""
        best = self.ledger.best
        if best is not None and (lowest := np.fmin(*values)) < best.value:
            entries = self.ups if values[0] == lowest else self.downs
            best.at(float(lowest), self.engine.point, coords.copy(), entries)

    def _point(self, coords: Ints, j: int) -> Floats:
        """Return the point of the j-th value."""
        x: Floats = self.engine.point.x.copy()
        x[coords] = self.downs if j else self.ups
        return x


def rewind(rng: np.random.Generator, bits: Array) -> None:
    """Put a generator back to before these bits were drawn."""
    generator: Any = rng.bit_generator
    kept = generator.state
    generator.advance(2**128 - len(bits) // 8)
    state = generator.state  # advancing forgets half a word, which drawing bits had left alone
    generator.state = {**state, "has_uint32": kept["has_uint32"], "uinteger": kept["uinteger"]}


@njit(cache=True)
def put(buffer, coords, entries):  # type: ignore[no-untyped-def]
    """Set entries of the buffer."""
    for i in range(len(coords)):
        buffer[coords[i]] = entries[i]


@njit(cache=True)
def restore(buffer, coords, x):  # type: ignore[no-untyped-def]
    """Put entries of the buffer back."""
    for i in range(len(coords)):
        buffer[coords[i]] = x[coords[i]]
