"""numba's ``njit``, loaded when something compiled is first used, with a cache that notices edits.

Importing numba takes longer than all the rest of this package. Functions are therefore handed to
numba when they are first called, or when compiled code that calls them is compiled.

numba keys its cache by the caller's own file, so an edit in a callee of another module goes
unnoticed. Here the cache lives in a folder named by the version and a checksum of all modules that
import this one or speak of a kernel, which is where compiled code is defined: an edit in any of
them starts a fresh cache, an edit elsewhere keeps it. ``NUMBA_CACHE_DIR`` overrides it.
"""

from __future__ import annotations

import os
import sys
import threading
import zlib
from collections.abc import Callable
from functools import cache, partial, update_wrapper
from pathlib import Path
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
LOCK = threading.RLock()
WAITING: list[Callable[[], Any]] = []
"""What numba is to be told as soon as it is loaded."""


@cache
def loaded() -> Any:
    """Import numba, once."""
    import numba
    from numba.core import event

    from scgd.notice import Notice

    event.register("numba:compile", Notice())
    return numba


def load() -> Any:
    """Return numba, which knows all that was said to it so far."""
    with LOCK:
        module = loaded()
        while WAITING:
            WAITING[0]()
            del WAITING[0]
        return module


@cache
def cache_folder() -> str:
    """Return the folder for this state of the sources, or "" where numba's own choice stands."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        return os.environ["NUMBA_CACHE_DIR"]
    checksum = 0
    for path in sorted(Path(__file__).parents[1].glob("scgd*/**/*.py")):
        source = path.read_bytes()
        if b"scgd.compiling" in source or b"kernel" in source:
            checksum = zlib.crc32(source, checksum)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = home / "scgd" / f"numba-{load().__version__}-{checksum:08x}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return ""
    return str(folder)


class Lazy(partial[Any]):
    """A function that numba gets when it is first called, or seen by other compiled code.

    A ``partial`` has no Python frame of its own, so once the function is compiled a call costs what
    a call of numba's dispatcher costs.
    """

    options: dict[str, Any]
    made: Any

    def __new__(cls, function: Callable[..., Any], options: dict[str, Any]) -> Lazy:
        """Keep a function and numba's options for it."""
        self = super().__new__(cls, function)
        update_wrapper(self, function)
        self.options = options
        self.__setstate__((self._first, (), {}, self.__dict__))
        return self

    def dispatcher(self) -> Any:
        """Return what numba makes of the function; calls go there from now on."""
        with LOCK:
            if "made" not in self.__dict__:
                self.made = dispatcher(self.__wrapped__, self.options)
            self.__setstate__((self.made, (), {}, self.__dict__))
            return self.made

    def _first(self, *args: Any, **keywords: Any) -> Any:
        return self.dispatcher()(*args, **keywords)

    def __getattr__(self, name: str) -> Any:
        """Look like numba's dispatcher, which is how compiled code sees the function."""
        return getattr(self.dispatcher(), name)

    def __reduce__(self) -> Any:
        """Travel as numba's dispatcher does."""
        return self.dispatcher().__reduce__()


def dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return ``numba.njit(**options)(function)``, which keeps its code in this package's cache."""
    config = load().config
    chosen = config.CACHE_DIR
    config.CACHE_DIR = cache_folder() or chosen
    try:
        return load().njit(**options)(function)
    finally:
        config.CACHE_DIR = chosen


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile like ``numba.njit(**options)``, later, with a cache of this package's own."""
    return partial(Lazy, options=options)


def is_compiled(function: Any) -> bool:
    """Tell whether a function is one that numba compiles, by whomever it was made."""
    registry = sys.modules.get("numba.core.registry")  # without it nobody has made one
    return isinstance(function, Lazy) or (
        registry is not None and isinstance(function, registry.CPUDispatcher)
    )


def register_jitable(function: Function, **options: Any) -> Function:
    """Let compiled code call a function, which stays the plain Python it is."""
    told = (function,) if not options else ()  # numba's own takes one or the other

    def tell() -> None:
        known = loaded().extending.register_jitable(*told, **options)
        if options:
            known(function)

    WAITING.append(tell)
    return function


def overload(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """Say what compiled code does where it calls a function, like ``numba.extending.overload``."""

    def decorate(resolve: Any) -> Any:
        WAITING.append(lambda: loaded().extending.overload(function)(resolve))
        return resolve

    return decorate
