"""A race whose arms are scripted and whose ending only takes notes."""

from types import SimpleNamespace

import numpy as np

from scgd.searches.arms.box import Box
from scgd.searches.arms.contest import Contest


class Books:
    """An ending that only takes notes."""

    over = False

    def __init__(self):
        self.notes = []

    def worth(self, best):
        return 0.25

    def note(self, *seen):
        self.notes.append(seen)

    def gained(self):
        self.notes.append("gained")


def made(p=4, left=1000, tol=1e-10, **box):
    owner = SimpleNamespace(
        rng=np.random.default_rng(5), tol=tol, left=left, best=50.0, partials=False, doing=""
    )
    around = Box(np.zeros(p), **box) if box else Box.around(np.zeros(p))
    return Contest(owner, Books(), around)


class Turns:
    """An arm that notes its turns and falls to values given beforehand."""

    def __init__(self, name, log, values, best=100.0):
        self.name, self.log, self.values = name, log, iter(values)
        self.best, self.x, self.n, self.over = best, np.full(4, 9.0), 0, False

    def run(self, n, ending=None):
        self.log.append((self.name, n) if ending is None else (self.name, n, ending))
        value = next(self.values)
        self.over = isinstance(value, str)
        if not self.over:
            self.best = value
        self.n += n
        yield from ()
