"""One way to evaluate the probes of a step, whoever does the work.

``workers`` is 1 (this process), a number of local processes, a ``concurrent.futures.Executor``, a
``distributed.Client`` or a map-like callable. Workers own no randomness: a task carries the point
and the rows or the seed of its sample, so results do not depend on who computes them, and a task
that is done twice gives the same number twice. All engines may do a task twice and some lose one;
:class:`~scgd.workers.remote.RemoteEvaluator` keeps the ledger that makes up for it.
"""

from scgd.workers.local import Evaluator
from scgd.workers.remote import RemoteEvaluator
from scgd.workers.resolve import evaluator

__all__ = ["Evaluator", "RemoteEvaluator", "evaluator"]
