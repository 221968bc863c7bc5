"""Where functions of the user are called, so that a signal knows whether it may interrupt."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
CALLERS: set[CodeType] = set()
"""The functions of ours that call the user's, or wait for somebody who does."""
JOINED: set[CodeType] = set()
"""Functions written by users that are parts of the machinery: the kernels of their step rules."""
OUTSIDE = ("scgd.linear", "scgd.torch", "scgd.run.signals")
"""Rooms of ours whose functions may be what is minimised, or interrupt what is."""


def calls_user(function: Function) -> Function:
    """Mark a function in which nothing is half done while another one runs that is not ours."""
    CALLERS.add(function.__code__)
    return function


def join_ours(function: Any) -> None:
    """Count somebody's function as a part of the machinery, which is not left half done."""
    JOINED.add(function.__code__)


def ours(frame: FrameType) -> bool:
    """Tell whether a frame belongs to the machinery of a run."""
    if frame.f_code in JOINED:
        return True
    name = frame.f_globals.get("__name__") or ""
    return (name == "scgd" or name.startswith("scgd.")) and not name.startswith(OUTSIDE)


def inside_user(frame: FrameType | None) -> bool:
    """Tell whether a frame belongs to the user's function, or to what that has called."""
    first = True
    while frame is not None:
        if ours(frame):
            return not first and frame.f_code in CALLERS
        frame, first = frame.f_back, False
    return False


def within_run(frame: FrameType | None) -> bool:
    """Tell whether a frame belongs to what a run has called, directly or not."""
    while frame is not None:
        if frame.f_code in CALLERS:
            return True
        frame = frame.f_back
    return False


def from_user(error: BaseException) -> bool:
    """Tell whether the user's function raised an error, so that nothing of ours is half done.

    What it has called may be ours again: another run, which is not the one that asks.
    """
    return user_trace(error) is not None


def user_trace(error: BaseException) -> TracebackType | None:
    """Return the part of a traceback that begins in the user's function; None where none does."""
    caller, trace = False, error.__traceback__
    while trace is not None:
        mine = ours(trace.tb_frame)
        if caller and not mine:
            return trace
        caller = mine and trace.tb_frame.f_code in CALLERS
        trace = trace.tb_next
    return None


def from_handler(error: BaseException) -> bool:
    """Tell whether somebody's signal handler raised an error on a line of ours."""
    handlers = {code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    beside, trace = False, error.__traceback__
    while trace is not None:
        called, trace = trace.tb_frame, trace.tb_next
        if ours(called):
            beside = trace is not None and trace.tb_frame.f_code in handlers
    return beside


def code_of(handler: Any) -> CodeType | None:
    """Return the code that runs when a handler is called; None where it is not Python."""
    while isinstance(handler, partial):
        handler = handler.func
    function = getattr(handler, "__func__", handler)
    if callable(function) and not hasattr(function, "__code__"):
        function = type(function).__call__
    return getattr(function, "__code__", None)
