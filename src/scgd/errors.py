"""Errors that end a command with one clear line instead of a traceback."""

__all__ = ["CommandError", "UsageError"]


class CommandError(Exception):
    """Something failed that the user can mend: a folder, a file, a missing package (exit code 1)."""


class UsageError(Exception):
    """The command line asks for something that does not exist (exit code 2)."""
