"""Small functions of the three kinds of noise, and how to answer an optimizer's questions."""

import numpy as np

P = 30
CENTRE = np.linspace(-1, 1, P)
WEIGHTS = np.logspace(0, -4, P)


def deterministic(x):
    return float(WEIGHTS @ (x - CENTRE) ** 2)


def rough(x):
    return deterministic(x) + 0.01 * float(np.sum(1 - np.cos(20 * x)))


def controllable(x, rows):
    shift = np.sin(rows[0] * np.arange(1, P + 1))
    return float(WEIGHTS @ (x - CENTRE - 0.3 * shift) ** 2)


class Uncontrollable:
    """A function whose noise is its own: it can be restarted, not controlled."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)

    def __call__(self, x):
        return deterministic(x) + 0.01 * self.rng.standard_normal()


class Stop:
    """A function that is interrupted after so many calls."""

    def __init__(self, fun, n_calls):
        self.fun, self.left = fun, n_calls

    def __call__(self, *args):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return self.fun(*args)


CASES = {
    "deterministic": (deterministic, None),
    "controllable": (controllable, 50),
}


def run(opt, fun, n=None):
    """Answer the optimizer's questions value by value, at most ``n`` of them."""
    asked = 0
    while not opt.done and (n is None or asked < n):
        for trial in opt.ask():
            opt.tell(trial.id, fun(trial.x, *trial.arguments))
        asked += 1
    return opt
