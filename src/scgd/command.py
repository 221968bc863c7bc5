"""``scgd minimize MODULE:FUNCTION``: a user's function from the command line."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import math
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from scgd.calling import user_trace
from scgd.checks import count
from scgd.errors import CommandError, UsageError, check_place, nearest, printable
from scgd.files import replacing, settled


def add_parser(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser("minimize", help="minimise a function of your own")
    parser.add_argument("function", metavar="MODULE:FUNCTION", help="fun(x), importable from here")
    start = parser.add_mutually_exclusive_group(required=True)
    start.add_argument("--dim", type=int, metavar="P", help="start at P zeros")
    start.add_argument(
        "--x0", metavar="X", help="start at 1,2,3, or the numbers of a .npy or text file"
    )
    start.add_argument("--space", metavar="FILE", help="search the parameters in a .toml file")
    parser.add_argument("--max-evals", type=int, metavar="N", help="hard budget of evaluations")
    parser.add_argument("--target", type=float, metavar="F", help="stop at this mean value")
    parser.add_argument("--method", default="auto", help="a method's name (default: auto)")
    parser.add_argument("--block-size", type=int, metavar="M", help="coordinates per step")
    parser.add_argument("--bounds", type=float, nargs=2, metavar=("LOW", "HIGH"))
    parser.add_argument("--scale", type=float, help="typical size of a coordinate")
    parser.add_argument("--maximize", action="store_true", help="look for the largest value")
    add_running(parser)
    parser.add_argument("--status", metavar="FILE", help="a .html page or .json file to look at")


def add_running(parser: argparse.ArgumentParser) -> None:
    """Describe what all commands take that evaluate a function."""
    parser.add_argument("--max-time", type=float, metavar="S", help="seconds")
    parser.add_argument("--noise", type=float, help="standard deviation of the noise, if known")
    parser.add_argument("--sample", type=int, metavar="N", help="fun(x, rows) with rows below N")
    parser.add_argument("--batch-size", type=int, default=1, metavar="B", help="rows per step")
    parser.add_argument("--seed", type=int, help="one seed, one trajectory")
    parser.add_argument(
        "--failures", default="raise", metavar="WHAT", help="raise, skip or worst, for NaN"
    )
    parser.add_argument(
        "--catch", action="append", default=[], metavar="ERROR", help="count this exception as NaN"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--workers", type=int, default=1, metavar="N", help="local processes")
    where.add_argument("--cluster", metavar="ADDRESS", help="a Dask scheduler, tcp://host:8786")
    parser.add_argument("--timeout", type=float, metavar="S", help="seconds per evaluation")
    parser.add_argument("--asynchronous", type=int, metavar="K", help="evaluations under way")
    parser.add_argument("--checkpoint", metavar="FILE", help="resume from and save to this file")
    parser.add_argument("--out", metavar="FILE", help="write the result as JSON")
    parser.add_argument("--plot", metavar="FILE", help="draw the run on a .html page")
    parser.add_argument("--log", metavar="FILE", help="a CSV file with a row per evaluation")
    parser.add_argument("--no-progress", action="store_true", help="no bar")


def run(args: argparse.Namespace) -> int:
    """Minimise; 0 when the run ended as planned, 1 when it was stopped or failed."""
    from scgd import METHODS, SCGD, Reporting, minimize
    from scgd.status import StatusFile

    check_places(args)
    module, fun = find(args.function)
    begin = start(args)
    status = StatusFile(args.status, args.function, args.max_evals) if args.status else None
    names = ["max_evals", "target", "scale", "maximize"]
    keywords = {name: getattr(args, name) for name in names}
    method: Any = args.method
    if args.block_size is not None:
        chosen = METHODS.get(method) if method != "auto" else SCGD()
        if not isinstance(chosen, SCGD):
            raise UsageError(f"--block-size is for methods that take SCGD steps, not for {method}")
        method = replace(chosen, block_size=args.block_size)
    with running(args, module) as keywords_of_run:
        result = minimize(
            fun,
            begin,
            **keywords,
            **keywords_of_run,
            method=method,
            bounds=None if args.bounds is None else [tuple(args.bounds)],
            reporting=Reporting(
                progress=not args.no_progress,
                callback=status,
                record=args.plot is not None and recordable(begin),
                log=args.log,
            ),
        )
    if status is not None:
        status.write(result, result.message)
    report(result, args)
    return 0 if result.success else 1


@contextlib.contextmanager
def running(args: argparse.Namespace, module: Any) -> Iterator[dict[str, Any]]:
    """Return the keywords of a run; what is wrong with them is said in one line."""
    from scgd import Failures, Workers

    names = ("max_time", "noise", "seed", "checkpoint")
    with workers(args, module) as those, terminable():
        try:
            yield {
                **{name: getattr(args, name) for name in names},
                "sample": rows_of(args),
                "failures": Failures(args.failures, tuple(find_exception(n) for n in args.catch)),
                "workers": Workers(those, args.timeout, args.asynchronous),
            }
        except Exception as error:
            trace, remote = user_trace(error), str(error.__cause__)
            if trace is not None or "Traceback" in remote:  # it is the user's to mend
                if trace is None:
                    print(remote.strip('\n"'), file=sys.stderr)
                else:
                    traceback.print_exception(error.with_traceback(trace))
                what = f"{args.function} raised {type(error).__name__}"
                raise CommandError(f"{what}: {error}{goes_on(args)}") from None
            if isinstance(error, ValueError | TypeError):
                raise UsageError(str(error)) from error
            if isinstance(error, ArithmeticError | OSError | RuntimeError):
                raise CommandError(f"{type(error).__name__}: {error}{goes_on(args)}") from error
            raise


def rows_of(args: argparse.Namespace) -> Any:
    """Return the rows that a function takes, if any."""
    from scgd import Rows

    if args.sample is None:
        return None
    return Rows(count(args.sample, "sample"), args.batch_size)


PLACES = {"checkpoint": (), "status": (), "out": (), "plot": (".html",), "log": (".csv",)}
"""Options that name a file to write, and how its name must end."""
WIDEST = 10_000
"""Coordinates up to which a picture has slices through recorded points."""


def check_places(args: argparse.Namespace) -> None:
    """Refuse files that cannot be written, and a picture without plotly, before the run."""
    given = {name: getattr(args, name, None) for name in PLACES}
    paths = {name: Path(path) for name, path in given.items() if path is not None}
    for name, path in paths.items():
        others = [other for key, other in paths.items() if key != name]
        check_place(path, f"--{name}", PLACES[name], *others)
    if args.plot is not None and importlib.util.find_spec("plotly") is None:
        raise CommandError("--plot needs plotly; pip install 'scgd[plot]'")


def recordable(begin: Any) -> bool:
    """Tell whether points are few numbers, so that all of them can be kept for a picture."""
    return bool(getattr(begin, "size", 0) <= WIDEST)


def goes_on(args: argparse.Namespace) -> str:
    """Return what to do after a failure."""
    return "; the same command goes on from the checkpoint" if args.checkpoint else ""


def find(name: str) -> tuple[Any, Callable[..., Any]]:
    """Import the function; the folder the command was called from comes first."""
    module_name, colon, attribute = name.partition(":")
    if not colon or not module_name or not attribute:
        raise UsageError(f"the function must be given as MODULE:FUNCTION, got {name!r}")
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == module_name
        remedy = "; call this in the folder of its file, or set PYTHONPATH" if absent else ""
        raise UsageError(f"cannot import {module_name!r}: {error}{remedy}") from error
    except SyntaxError as error:
        place = f"{error.filename}, line {error.lineno}"
        raise UsageError(f"cannot import {module_name!r}: {error.msg} ({place})") from error
    except (Exception, SystemExit) as error:  # whatever stands at the top of a user's file
        what = f"{type(error).__name__}: {error}{place_of(error)}"
        raise UsageError(f"{module_name!r} fails when it is imported: {one_line(what)}") from error
    fun = getattr(module, attribute, None)
    if not callable(fun):
        own = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
        raise UsageError(f"{module_name!r} has no function {attribute!r}{nearest(attribute, own)}")
    return module, fun


def place_of(error: BaseException) -> str:
    """Return the innermost place that an error came from, for people."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def one_line(text: str) -> str:
    """Return words without line breaks."""
    return " ".join(text.split())


def find_exception(name: str) -> Any:
    """Return an exception by its name: a built-in one, or MODULE:NAME."""
    module, colon, attribute = name.rpartition(":")
    try:
        return getattr(importlib.import_module(module if colon else "builtins"), attribute)
    except (ImportError, AttributeError, ValueError):
        raise UsageError(
            f"--catch must be the name of an exception, RuntimeError or MODULE:NAME, got {name!r}"
        ) from None


MOST_COORDS = 10**9
"""Coordinates that the command starts with."""


def start(args: argparse.Namespace) -> Any:
    """Return where to start."""
    import numpy as np

    if getattr(args, "space", None) is not None:
        from scgd.spaces import read_space

        try:
            return read_space(args.space)
        except ValueError as error:
            raise UsageError(f"--space: {error}") from error
    if args.dim is not None:
        if not 1 <= args.dim <= MOST_COORDS:
            wanted = f"a whole number above zero, {MOST_COORDS:g} at most"
            raise UsageError(f"--dim must be {wanted}, got {args.dim}")
        return np.zeros(args.dim)
    try:
        found = read_start(args.x0)
        if found.size == 0:
            raise ValueError("it holds no number")
        return found
    except (OSError, ValueError, EOFError) as error:
        wanted = "give numbers such as 1,2,3 or a file of them"
        raise UsageError(f"cannot read --x0 {args.x0}: {one_line(str(error))}; {wanted}") from error


def read_start(text: str) -> Any:
    """Return the numbers of a word, or of the file that it names."""
    import numpy as np

    settled(text, "--x0")
    if text.endswith(".npy"):
        return np.load(text, allow_pickle=False)
    if not os.path.lexists(text) and "," in text:
        return np.array([float(part) for part in text.split(",")])
    with open(text, encoding="utf-8") as file:
        return np.array([float(part) for part in file.read().replace(",", " ").split()])


@contextlib.contextmanager
def workers(args: argparse.Namespace, module: Any) -> Iterator[Any]:
    """Return who evaluates: a number of processes or the client of a cluster."""
    if args.cluster is None:
        yield args.workers
        return
    with connect(args.cluster) as client:
        file = getattr(module, "__file__", None) or ""
        if "." not in module.__name__ and not file.endswith("__init__.py"):
            client.upload_file(file)  # packages must be installed where the workers are
        yield client


@contextlib.contextmanager
def connect(address: str) -> Iterator[Any]:
    """Return a client of a Dask cluster."""
    try:
        from distributed import Client
    except ImportError as error:
        raise CommandError("--cluster needs Dask; pip install 'scgd[dask]'") from error
    try:
        client = Client(address, timeout=30)
    except (OSError, ValueError) as error:
        raise CommandError(f"cannot reach the Dask scheduler at {address}: {error}") from error
    with client:
        yield client


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Have SIGTERM, which batch systems send before they kill, end the run like Ctrl-C."""
    from scgd.run.signals import Terminate

    previous = signal.signal(signal.SIGTERM, Terminate())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def report(result: Any, args: argparse.Namespace) -> None:
    """Write the result, then say how it ended: a pipe that is closed does not lose it."""
    if args.out is not None:
        write_out(result, Path(args.out))
    if args.plot is not None:
        draw(result, args)
    print(printable(str(result)))
    if args.plot is not None:
        print(f"plot: {args.plot}")


def write_out(result: Any, path: Path) -> None:
    """Write the result as JSON."""
    names = ("x", "fun", "fun_error", "success", "status", "message", "nfev", "nfev_repeated",
             "nit", "n_failed", "relevance", "relevance_error")  # fmt: skip
    contents = {name: result[name] for name in names}
    if "params" in result:
        contents["params"] = result.params
    write_json(contents, path)


def write_json(contents: dict[str, Any], path: Path) -> None:
    """Write JSON, which has no word for what is not a number: that is null."""
    try:
        with replacing(path) as file:
            file.write(json.dumps(plain(contents), allow_nan=False).encode())
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error}") from error


def plain(value: Any) -> Any:
    """Return a value as JSON has it: lists for arrays, null for what is not a finite number."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def draw(result: Any, args: argparse.Namespace) -> None:
    """Write the page with the pictures."""
    from scgd.plots.figure import page

    write_page(page(result, args.function), args)


def write_page(text: str, args: argparse.Namespace) -> None:
    """Write a page."""
    try:
        with replacing(args.plot) as file:
            file.write(text.encode())
    except OSError as error:
        raise CommandError(f"cannot write {args.plot}: {error}") from error
