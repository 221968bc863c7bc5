"""What travels to a worker: a job per run, what a question has in common, a little per task."""

from __future__ import annotations

import os
import pickle
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from scgd.calling import calls_user
from scgd.questions import BASE, Open
from scgd.samples import Samples
from scgd.typing import Floats, Ints
from scgd.workers.replicas import STALE, Moves, Stale, mine, settled

Fun = Callable[..., Any]
MOST_COPIED = 2**16
"""Coordinates of which a function gets a copy: it takes 30 us at most. Beyond, it is as slow as
functions that look at all of x."""
EVERY = 64
"""One call in so many is looked at there, and fewer with more coordinates: a copy and a comparison
then cost about a microsecond per call."""
WRITTEN = "fun or jac has written into x; have it work on x.copy()"
PAUSE = 1.0
"""Seconds between two looks at the owner of a worker process."""


def looks(n_coords: int) -> int:
    """Return how many calls come to one that is compared with a copy of x."""
    return EVERY * n_coords // MOST_COPIED


@dataclass(frozen=True)
class Job:
    """What all evaluations of a run have in common."""

    fun: Fun
    jac: Fun | None
    args: tuple[Any, ...]
    samples: Samples


@dataclass(frozen=True)
class Common:
    """What all evaluations of a question have in common; the worker makes the sample itself."""

    base: Floats | Moves
    support: Ints
    joint: bool
    partials: bool
    sample: tuple[int, int]

    @property
    def nbytes(self) -> int:
        """The size of the arrays."""
        return self.base.nbytes + self.support.nbytes


class Task(NamedTuple):
    """One evaluation: its number in the run, the coordinate to set, and what to."""

    id: int
    coord: int
    entry: Any


def tasks_of(opened: Open, base: Floats | Moves) -> tuple[Common, list[Task]]:
    """Return what is still to be evaluated of a question near a base."""
    question = opened.question
    assert question.sample is not None
    common = Common(
        base, question.support, question.joint, question.kind == "partials", question.sample
    )
    entries: Any = question.entries if question.joint else question.entries.tolist()
    coords = question.coords.tolist()
    return common, [Task(opened.first + j, coords[j], entries[j]) for j in opened.missing]


def watch(owner: int) -> None:
    """End this worker process when the one that started it is gone, even by SIGKILL."""
    if os.name != "posix":
        return

    def look() -> None:
        while os.getppid() == owner:
            time.sleep(PAUSE)
        os._exit(1)

    threading.Thread(target=look, name="scgd-parent", daemon=True).start()


def sendable(error: BaseException) -> BaseException:
    """Return an error that arrives as it is, or one with its text where it would not.

    Classes whose ``__init__`` does not take what they hand to their base can be pickled and not be
    unpickled, which breaks a pool of processes.
    """
    from joblib.externals.loky.backend.reduction import dumps

    try:
        pickle.loads(dumps(error))
    except Exception as reason:
        told = RuntimeError(f"{type(error).__name__}: {error}")
        told.add_note(f"{type(error).__name__} cannot be sent to another process ({reason})")
        told.add_note("".join(traceback.format_exception(error)).rstrip())
        return told
    return error


def perform(job: Job, common: Common, task: Task) -> Any:
    """Make one evaluation; what it raises can be sent."""
    try:
        return evaluated(job, common, task.coord, task.entry)
    except Stale:
        return STALE
    except Exception as error:
        if (told := sendable(error)) is error:
            raise
        raise told from None


@calls_user
def evaluated(job: Job, common: Common, coord: int, entry: Any) -> Any:
    """Make one evaluation."""
    extra = job.samples.arguments(*common.sample)
    base = common.base
    place: Any = slice(0)
    x = settled(base) if isinstance(base, Moves) else base.copy()
    kept = isinstance(base, Moves) and x.size > MOST_COPIED
    if isinstance(base, Moves) and not kept:
        x = x.copy()
    looked = kept and mine.due(looks(x.size))
    if common.joint:
        place = common.support if common.support.size else slice(None)
    elif coord != BASE:
        place = slice(coord, coord + 1)
    before = x[place].copy()
    x[place] = entry
    seen, is_now = x.view(), x.tobytes() if looked else b""
    seen.flags.writeable = False
    try:
        if common.partials:
            assert job.jac is not None
            return job.jac(seen, common.support.copy(), *extra, *job.args)
        return job.fun(seen, *extra, *job.args)
    finally:
        written = looked and x.tobytes() != is_now
        x[place] = before
        if written:
            mine.copies.clear()  # they are no copies any more
            raise ValueError(WRITTEN)


installed: list[Job] = []
"""The job of this worker process, where the engine is able to install it once."""


def install(job: Job, owner: int) -> None:
    """Keep the job in this worker process, which ends with its owner."""
    installed[:] = [job]
    watch(owner)


def perform_installed(common: Common, task: Task) -> Any:
    """Make one evaluation of the installed job."""
    return perform(installed[0], common, task)
