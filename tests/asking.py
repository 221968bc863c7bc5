"""Answer an optimizer's questions, by ask and tell or by a loop, and compare what came of it."""

from functools import partial
from types import FunctionType

import numba
import numpy as np
import pytest

from scgd import compiling
from scgd.descent import choose_loop
from scgd.descent.compiled import CompiledLoop
from scgd.run.signals import Stop


def answer(opt, fun, args=()):
    """Answer one question, value by value; return its trials."""
    trials = opt.ask()
    for trial in trials:
        opt.tell(trial.id, fun(trial.x, *trial.arguments, *args))
    return trials


def told(opt, fun, args=(), until=None):
    """Run an optimizer by ask and tell, to the end of its budget or of so many evaluations."""
    while not opt.done and (until is None or opt.run.nfev < until):
        answer(opt, fun, args)
    return opt.result()


def accepted(opt, fun, args=()):
    """Run an optimizer with values that noloop looks at first: NaN is refused, not lost."""
    while not opt.done:
        for trial in opt.ask():
            opt.run.accept(trial.id, fun(trial.x, *trial.arguments, *args))


def begin(opt, fun, args=()):
    """Answer what is asked before the first step; return the engine that takes the steps."""
    while not opt.run.strategy.stepping and not opt.done:
        answer(opt, fun, args)
    return steps_of(opt)


def loop_of(opt, fun, args=()):
    """Return the loop that takes the engine's steps, or None.

    Without compilation functions called so count as compiled, so that their loop runs all the same.
    """
    with pytest.MonkeyPatch.context() as patched:
        if numba.config.DISABLE_JIT and fun.__name__.startswith("compiled_"):
            patched.setattr(compiling, "is_compiled", lambda f: isinstance(f, FunctionType))
        return choose_loop(begin(opt, fun, args), fun, args, opt.run.ledger)


def run_loop(opt, fun, args=(), room=None, by_phase=False):
    """Have a loop take the steps that so many evaluations pay for (all that are left)."""
    loop, run = loop_of(opt, fun, args), opt.run
    run.run_loop(
        lambda left: partial(loop.run, stop=Stop(), by_phase=by_phase)(
            left if room is None else min(room, left)
        )
    )


def run_with(cls, opt, fun, args=(), room=float("inf"), by_phase=False, stop=None):
    """Have one kind of loop take steps; return it."""
    loop = cls(begin(opt, fun, args), fun, args, opt.run.ledger)
    stop = Stop() if stop is None else stop
    opt.run.run_loop(lambda left: loop.run(min(room, left), stop, by_phase=by_phase))
    return loop


class Plain(CompiledLoop):
    """The compiled loop as plain Python."""

    def __init__(self, *args):
        super().__init__(*args)
        self.loop = getattr(self.loop, "py_func", self.loop)


def in_pieces(opt, fun, args=(), pieces=(2, 34, 1, 118, 60)):
    """Run a loop for odd numbers of evaluations, and then to the end of the budget."""
    for room in pieces:
        run_loop(opt, fun, args, room)
    while not opt.done:
        run_loop(opt, fun, args, by_phase=True)
    return opt.result()


def same_run(a, b):
    """Check that two results are of the same run, bit for bit."""
    assert np.array_equal(a.x, b.x)
    assert a.fun == b.fun or (np.isnan(a.fun) and np.isnan(b.fun))
    np.testing.assert_equal(a.fun_error, b.fun_error)
    assert np.array_equal(a.weights, b.weights)
    assert np.array_equal(a.history["fun"], b.history["fun"])
    assert np.array_equal(a.history["nfev"], b.history["nfev"])
    assert np.array_equal(a.scale, b.scale)
    assert a.nfev == b.nfev and a.nit == b.nit and a.n_failed == b.n_failed
    assert a.status == b.status and a.message == b.message and a.success == b.success


def same_state(a, b):
    """Check that two optimizers hold the same numbers everywhere, bit for bit."""
    states = a.state_dict(), b.state_dict()
    for state in states:
        del state["asked"]  # what was handed out; a loop hands out nothing
    np.testing.assert_equal(*states)


def steps_of(opt):
    """Return the engine that takes the steps."""
    return opt.run.strategy.engine


class Recorded:
    """A function that remembers every point and value it has seen."""

    def __init__(self, fun):
        self.fun, self.points, self.values = fun, [], []

    def __call__(self, x, *rest):
        """Evaluate, and remember."""
        value = self.fun(x, *rest)
        self.points.append(x.copy())
        self.values.append(value)
        return value

    def best(self):
        """Return the lowest finite value and the first point that had it."""
        values = np.where(np.isfinite(self.values), self.values, np.inf)
        return values.min(), self.points[int(np.argmin(values))]
