r"""Shuffled sweeps whose visits follow recent gains: nothing is drawn twice by chance.

Independent draws cost two to three sweeps' work for one; sums of all gains keep early ones for
ever. Here a round is a shuffled list in which coordinate *k* stands about :math:`f_k` times,

.. math:: f_k \propto \min\Bigl(\text{most},\;
          \text{least} + (1 - \text{least}) \frac{s_k}{\bar s}\Bigr),
          \qquad s_k \leftarrow (1 - \text{forget})\, s_k + \text{forget}\, |g_k|,

with :math:`s_k` updated at each visit. Fractions of visits are carried over from round to round, so
a coordinate without any gain is still seen about every :math:`1/\text{least}`-th round. The first
two rounds visit each coordinate once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from scgd.checks import number, settle
from scgd.compiling import njit
from scgd.policies.base import Policy
from scgd.policies.mixture import LARGEST
from scgd.random import below
from scgd.typing import Array, Floats, Ints

NEXT, END, ROUND = range(3)
PLAIN_ROUNDS = 2
"""Rounds that visit every coordinate once: a score after one visit says where it began."""


class AdaptiveState(NamedTuple):
    """What the policy remembers.

    Attributes
    ----------
    scores
        The recent size of the gradient, per coordinate.
    shares
        The visits planned for a round, per coordinate; they sum to one.
    credits
        Fractions of visits not yet made, per coordinate.
    queue
        The coordinates of the current round in their order.
    place
        The next place in the queue, its end, and the rounds begun.
    """

    scores: Floats
    shares: Floats
    credits: Floats
    queue: Ints
    place: Ints


@njit(cache=True)
def share_out(scores, shares, least, most):  # type: ignore[no-untyped-def]
    """Set the shares of the next round from the scores; return the largest."""
    n, total, all_shares, largest = len(scores), 0.0, 0.0, 0.0
    for k in range(n):
        total += scores[k]
    for k in range(n):
        gain = scores[k] * n / total if total > 0.0 else 1.0
        shares[k] = min(most, least + (1.0 - least) * gain)
        all_shares += shares[k]
    for k in range(n):
        shares[k] /= all_shares
        largest = max(largest, shares[k])
    return largest


@njit(cache=True)
def top_up(credits, queue, first, end, enough):  # type: ignore[no-untyped-def]
    """Lend visits to those who are nearest to one and not yet in the round."""
    queued = np.zeros(len(credits), np.bool_)
    for i in range(first, end):
        queued[queue[i]] = True
    while end < enough:
        best = -1
        for k in range(len(credits)):
            if not queued[k] and (best < 0 or credits[k] > credits[best]):
                best = k
        queue[end], queued[best] = best, True
        credits[best] -= 1.0
        end += 1
    return end


# Loops, not slices: those take numba seconds to compile.
@njit(cache=True)
def holds(queue, kept, k):  # type: ignore[no-untyped-def]
    """Tell whether a coordinate is among the first ``kept``."""
    for i in range(kept):
        if queue[i] == k:
            return True
    return False


@njit(cache=True)
def part(queue, kept, block, end):  # type: ignore[no-untyped-def]
    """Move what is among the first ``kept`` already out of the block that they begin."""
    for i in range(kept, min(block, end)):
        j = i
        while j < end - 1 and holds(queue, kept, queue[j]):
            j += 1
        queue[i], queue[j] = queue[j], queue[i]


@njit(cache=True)
def begin_round(state, stream, block, least, most):  # type: ignore[no-untyped-def]
    """Fill the queue: what is left, then whole visits by credit, enough for a block, shuffled."""
    scores, shares, credits, queue, place = state
    n, kept = len(scores), place[END] - place[NEXT]
    for i in range(kept):  # towards the front, so nothing is overwritten before it is read
        queue[i] = queue[place[NEXT] + i]
    end = kept
    if place[ROUND] < PLAIN_ROUNDS:
        for k in range(n):
            queue[kept + k], shares[k] = k, 1.0 / n
        end += n
    else:
        # A round is as short as it takes for the largest share to fit into it.
        visits = min(float(n), most / share_out(scores, shares, least, most))
        for k in range(n):
            credits[k] = min(credits[k] + visits * shares[k], most + 1.0)
            for _ in range(min(int(credits[k]), int(most), len(queue) - end)):
                queue[end] = k
                credits[k] -= 1.0
                end += 1
        if block > 1 and end - kept < min(block, n):
            end = top_up(credits, queue, kept, end, kept + min(block, n))
    for i in range(end - 1, kept, -1):
        j = kept + below(stream, i - kept + 1)
        queue[i], queue[j] = queue[j], queue[i]
    part(queue, kept, block, end)
    place[NEXT], place[END] = 0, end
    place[ROUND] += 1


@njit(cache=True, nogil=True)
def draw_visits(state, stream, coords, probs, block, least, most):  # type: ignore[no-untyped-def]
    """Fill ``coords`` from the queue; blocks longer than what is left begin a new round."""
    queue, place = state.queue, state.place
    for t in range(len(coords)):
        needed = min(block, len(state.scores)) if t % block == 0 else 1
        while place[END] - place[NEXT] < needed:
            begin_round(state, stream, block, least, most)
        coords[t] = queue[place[NEXT]]
        probs[t] = state.shares[coords[t]]
        place[NEXT] += 1


@njit(cache=True, nogil=True)
def learn(scores, coords, grads, forget):  # type: ignore[no-untyped-def]
    """Let the scores of the visited coordinates follow what was seen there."""
    for t in range(len(coords)):
        size = abs(grads[t])
        if size <= LARGEST:  # neither NaN nor so large that sums overflow
            scores[coords[t]] += forget * (size - scores[coords[t]])


@dataclass(frozen=True)
class Adaptive(Policy):
    """Sweep over shuffled coordinates, those with large recent gains more often.

    Parameters
    ----------
    least
        Visits per round of a coordinate without gain, before normalisation; none is seen more
        rarely than about every ``1 / least``-th round.
    most
        Visits per round at most.
    forget
        Weight of the newest gain in a coordinate's score.

    Examples
    --------
    >>> policy = Adaptive()
    >>> state = policy.init(4)
    >>> coords, probs = np.empty(4, np.int64), np.empty(4)
    >>> words = np.random.SeedSequence(0).generate_state(4, np.uint64)
    >>> policy.draw(state, words, coords, probs, 1, True)
    >>> sorted(coords.tolist())
    [0, 1, 2, 3]
    """

    least: float = 0.125
    most: float = 4.0
    forget: float = 0.5

    def __post_init__(self) -> None:
        settle(self, least=number(self.least, "least", 0, 1, ends="(]"))
        settle(self, most=number(self.most, "most", 1, wanted="be finite and at least 1"))
        settle(self, forget=number(self.forget, "forget", 0, 1, ends="(]"))

    def phase_length(self, n_coords: int) -> int:
        """Return the number of draws between two updates: a round."""
        return n_coords

    def init(self, n_coords: int, replace: bool = True) -> AdaptiveState:
        """Return a fresh state."""
        return AdaptiveState(
            np.zeros(n_coords),
            np.full(n_coords, 1.0 / n_coords),
            np.zeros(n_coords),
            np.zeros(2 * n_coords, np.int64),
            np.zeros(3, np.int64),
        )

    def draw(
        self, state: Any, stream: Array, coords: Ints, probs: Floats, block: int, replace: bool
    ) -> None:
        """Fill ``coords`` with the next visits; without ``replace`` blocks hold none twice."""
        distinct = not replace and block > 1
        draw_visits(
            state, stream, coords, probs, block if distinct else 1,
            self.least, 1.0 if distinct else self.most,
        )  # fmt: skip

    def update(self, state: Any, coords: Ints, probs: Floats, grads: Floats, mixing: float) -> None:
        """End a phase: learn from the gradients seen at the drawn coordinates."""
        learn(state.scores, coords, grads, self.forget)

    def weights(self, state: Any) -> Floats:
        """Return the share of each coordinate in the current round."""
        return np.asarray(state.shares.copy())

    def check_state(self, state: Any, n_coords: int, replace: bool = True) -> None:
        """Raise ValueError where a state from elsewhere could lead out of the queue."""
        super().check_state(state, n_coords, replace)
        here, end, n_rounds = state.place.tolist()
        if not 0 <= here <= end <= len(state.queue) or n_rounds < 0:
            raise ValueError(f"place is {state.place.tolist()}, outside of the queue")
        if np.any((state.queue < 0) | (state.queue >= n_coords)):
            raise ValueError("the queue holds coordinates that there are not")
        if not np.all(np.isfinite(state.scores)) or np.any(state.scores < 0):
            raise ValueError("scores are not finite and positive")
        if not np.all(np.isfinite(state.credits)) or np.any(np.abs(state.credits) > 2 + self.most):
            raise ValueError("credits are out of range")
        if np.any(state.shares <= 0) or not np.isclose(state.shares.sum(), 1.0):
            raise ValueError("shares are not probabilities")
