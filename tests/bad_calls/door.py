"""A public door with odd values: each call works, or its error names the argument."""

import inspect
import re
import warnings
from typing import NamedTuple

from odd_values import VALUES, allowed

HUGE = {"1e300", "10**30"}
PROCESSES = {("workers", "-1"), ("engine", "-1"), ("n_jobs", "10**30"), ("n_jobs", "-1")}
"""Calls that would start what the machine has."""
ALSO = {
    "X": "y",
    "params": "parameter",
    "engine": "workers",
    "nonfinite": "failures",
    "schedule": "learning_rate",
}
"""What else an error may name: two arguments that do not fit each other."""
FREE = {"self", "verbose", "random_state", "class_weight", "args"}
"""What others check (scikit-learn), or nobody need."""


class Door(NamedTuple):
    """What is called, whose signature that has, and what each argument may take.

    Kinds are the words of ``odd_values``. Where scikit-learn checks arguments, its conventions hold.
    Arguments that are ``free`` are handed on as they are.
    """

    call: object
    owner: object
    kinds: dict
    by_sklearn: bool = False
    free: tuple = ()

    def named(self):
        """Return the arguments that are tried."""
        return [
            name
            for name, parameter in inspect.signature(self.owner).parameters.items()
            if name not in FREE.union(self.free) and parameter.kind is not parameter.VAR_KEYWORD
        ]

    def calls(self):
        """Yield every argument with every odd value."""
        for name in self.named():
            for label in VALUES:
                its_own = (
                    label == "class" and "callable" in self.kinds[name]
                )  # whatever that raises
                its_own |= self.by_sklearn and label == "Fraction"  # its validator
                if not its_own and (name, label) not in PROCESSES:
                    yield name, label

    def complaint(self, name, label):
        """What is wrong with how a call fails, or passes; None where all is well."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # np.matrix is on its way out
            value = VALUES[label]()
            try:
                self.call(**{name: value})
            except (TypeError, ValueError, FileNotFoundError) as error:
                names = f"{name}|{ALSO[name]}" if name in ALSO else name
                if re.search(rf"(?<![\w])({names})(?![\w])", str(error)):
                    return None
                return f"{name}={label} is not named: {type(error).__name__}: {error}"
            except FloatingPointError:  # a run that left the numbers says so itself
                return None if label in HUGE else f"{name}={label} diverges"
            except Exception as error:
                return f"{name}={label} fails inside: {type(error).__name__}: {error}"
        kind = self.kinds[name]
        fine = label in allowed(kind) or (self.by_sklearn and label == "True")  # a number there
        return None if fine else f"{name}={label} is accepted, though it takes {kind}"
