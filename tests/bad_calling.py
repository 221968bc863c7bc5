"""Calls of public doors with odd values: each works, or its error names the argument.

A table of doors has, by name, what is called, whose signature that has, and what each argument may
take (the words of ``bad_values``).
"""

import inspect
import random
import re
import warnings
from typing import NamedTuple

from bad_values import VALUES, allowed

SAMPLED = 150
"""Calls per door in a plain run; all of them with ``-m faults``."""
HUGE = {"1e300", "10**30"}
PROCESSES = {("workers", "-1"), ("n_jobs", "10**30"), ("n_jobs", "-1")}
"""Calls that would start what the machine has."""
ALSO = {"X": "y", "params": "parameter"}
"""What else an error may name: two arguments that do not fit each other."""
FREE = {"self", "verbose", "random_state", "class_weight", "args"}
"""What others check (scikit-learn), or nobody need."""


class Doors(NamedTuple):
    """A table of doors, those whose arguments scikit-learn checks, and arguments left alone."""

    table: dict
    checked_by_sklearn: tuple = ()
    free: frozenset = frozenset()

    def calls(self, door):
        """Yield the arguments of a door with every odd value."""
        _, owner, kinds = self.table[door]
        for name in self.named(owner):
            for label in VALUES:
                its_own = label == "class" and "callable" in kinds[name]  # whatever that raises
                its_own |= door in self.checked_by_sklearn and label == "Fraction"  # its validator
                if not its_own and (name, label) not in PROCESSES:
                    yield name, kinds[name], label

    def named(self, owner):
        """Yield the arguments that are tried."""
        for name, parameter in inspect.signature(owner).parameters.items():
            if name not in FREE | self.free and parameter.kind is not parameter.VAR_KEYWORD:
                yield name

    def complaint(self, door, name, kind, label):
        """What is wrong with how a call fails, or passes; None where all is well."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # np.matrix is on its way out
                value = VALUES[label]()
        except ImportError:
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.table[door][0](**{name: value})
        except (TypeError, ValueError, FileNotFoundError) as error:
            names = f"{name}|{ALSO[name]}" if name in ALSO else name
            if re.search(rf"(?<![\w])({names})(?![\w])", str(error)):
                return None
            return f"{door}({name}={label}) does not name it: {type(error).__name__}: {error}"
        except FloatingPointError:  # a run that left the numbers says so itself
            return None if label in HUGE else f"{door}({name}={label}) diverges"
        except Exception as error:
            return f"{door}({name}={label}) fails inside: {type(error).__name__}: {error}"
        if door in self.checked_by_sklearn and label == "True":  # a number, by its conventions
            return None
        if label not in allowed(kind):
            return f"{door}({name}={label}) is accepted, though it takes {kind}"
        return None

    def check_rows(self, door):
        """Every argument has a row."""
        _, owner, kinds = self.table[door]
        for name in self.named(owner):
            assert name in kinds, f"say in the table what {door}({name}=) may take"

    def check(self, door, n=None):
        """Make all calls of a door, or a seeded sample of them."""
        chosen = list(self.calls(door))
        if n is not None:
            chosen = random.Random(0).sample(chosen, min(n, len(chosen)))
        found = [text for call in chosen if (text := self.complaint(door, *call))]
        assert not found, "\n" + "\n".join(found)
