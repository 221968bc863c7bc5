"""The fused loop: draw a phase, explore it, learn from it, many times in one compiled call.

All arithmetic of the policy is in :mod:`scgd.policies.base`; this module only decides when
to call it. A :class:`Walk` holds one run's arrays and choices, so that a run can be cut anywhere
(by a record, a time limit, the end of a chunk of schedules) and continued without changing a bit.
"""

from __future__ import annotations

from typing import NamedTuple

from scgd.compiling import njit
from scgd.policies import base as distributions
from scgd.random import below
from scgd.typing import Array, Floats, Ints
from scgd_paper.linear.rows import explore_rows

__all__ = ["Walk", "run_rows"]

POSITION, N_PHASES, AGE = range(3)


class Walk(NamedTuple):
    """One run: where it is, the buffers of its phase, its random streams and its choices.

    Attributes
    ----------
    codes, params
        The choices and numbers that kernels read.
    theta
        The iterate, the intercept last.
    coords, probs, grads
        The draws of the phase and what was seen there.
    rows
        The samples of each step of the phase.
    samples, whole
        By columns: the same, and None, or the other way round where all samples count, so that what
        sums over the others is not compiled.
    margins
        The margins of a mini-batch or, by columns, of all samples; or the direction of a step.
    scale
        Factors on the step size of each coordinate, or empty.
    rule, hyper, slots
        The code of the step rule (``None`` for the plain step, so that no other is compiled where
        no other is used), its numbers and its memory.
    costs
        What a step along each coordinate costs, where that differs, or empty.
    place
        Steps taken in this phase, phases ended, and steps since the margins were computed.
    coord_stream, row_stream, direction_stream
        Its random streams.
    """

    codes: Ints
    params: Floats
    theta: Floats
    coords: Ints
    probs: Floats
    grads: Floats
    rows: Ints
    margins: Floats
    scale: Floats
    rule: int | None
    hyper: Floats
    slots: Floats
    costs: Floats
    place: Ints
    coord_stream: Array
    row_stream: Array
    direction_stream: Array
    samples: Ints | None
    whole: bool | None


@njit(cache=True, error_model="numpy", nogil=True)
def draw_rows(stream, n_samples, rows):  # type: ignore[no-untyped-def]
    """Fill ``rows`` with samples drawn with replacement."""
    for s in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            rows[s, j] = below(stream, n_samples)


@njit(cache=True, error_model="numpy", nogil=True)
def run_rows(problem, walk, law, rates, radii, mixings, stride, snapshots):  # type: ignore[no-untyped-def]
    """Run ``len(rates)`` steps, copying theta into ``snapshots`` after every ``stride`` of them."""
    dense, indptr, indices, values = problem.rows
    targets, weights, codes, params = problem.targets, problem.weights, walk.codes, walk.params
    theta, coords, probs, grads, rows = walk.theta, walk.coords, walk.probs, walk.grads, walk.rows
    margins, scale, hyper, slots, place = (
        walk.margins, walk.scale, walk.hyper, walk.slots, walk.place
    )  # fmt: skip
    done, taken, ended = 0, 0, 0
    while done < len(rates):
        here = place[POSITION]
        if here == 0:
            distributions.draw(law, walk.coord_stream, coords, probs)
            draw_rows(walk.row_stream, len(targets), rows)
        n = min(len(rows) - here, len(rates) - done)
        if taken < len(snapshots):
            n = min(n, (taken + 1) * stride - done)
        explore_rows(
            dense, indptr, indices, values, targets, weights, codes, params,
            theta, coords, probs, grads, rows, margins, scale, walk.rule, hyper, slots,
            here, here + n, rates[done : done + n], radii[done : done + n],
        )  # fmt: skip
        done += n
        if taken < len(snapshots) and done == (taken + 1) * stride:
            for k in range(len(theta)):  # a slice would take numba seconds to compile
                snapshots[taken, k] = theta[k]
            taken += 1
        place[POSITION] = (here + n) % len(rows)
        if place[POSITION] == 0:
            distributions.update(law, coords, probs, grads, mixings[ended])
            place[N_PHASES] += 1
            ended += 1
