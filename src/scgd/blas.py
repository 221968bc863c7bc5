"""One thread for the linear algebra of small matrices.

BLAS starts a thread per core. For matrices of some hundred rows that is slower than one thread, and
where other processes keep the cores busy its threads wait for each other: a fit of .15 s took 35.
The bits of a result do not depend on the number of cores either.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

LOCK = Lock()
HELD: list[Any] = []
"""The limit, once for everybody inside: who leaves last gives threads back."""


@lru_cache(maxsize=1)
def libraries() -> ThreadpoolController:
    """Return the BLAS libraries of this process, looked for once: that takes milliseconds."""
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS use one thread, of the whole process, for a while; a decorator too.

    Examples
    --------
    >>> import numpy as np
    >>> with one_thread():
    ...     float(np.linalg.det(np.eye(3)))
    1.0
    """
    with LOCK:
        HELD.append(HELD[0] if HELD else libraries().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with LOCK:
            limit = HELD.pop()
            if not HELD:
                limit.restore_original_limits()
