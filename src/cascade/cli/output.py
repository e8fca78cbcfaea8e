"""Where words go: results on stdout, everything else on stderr."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from typing import Any

from rich.console import Console

console = Console(stderr=True, highlight=False, markup=False, emoji=False)
"""Words are printed as they are: a path may have brackets in it, and a task colons."""


def say(message: object) -> None:
    """A line, a table or a panel for the person at the terminal. Lines stay whole, so that commands can be copied."""
    console.print(message, soft_wrap=isinstance(message, str))


redirections = ExitStack()
"""What keeps stdout free; closing it gives stdout back."""


def keep_stdout_free() -> None:
    """Until the document, whatever a world, a library or a process of theirs prints goes to stderr."""
    redirections.enter_context(_stdout_on_stderr())


@contextmanager
def _stdout_on_stderr() -> Iterator[None]:
    """Python's own stdout, and the descriptor beneath it, which compiled code and new processes write to."""
    _flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _flush()
        os.dup2(kept, 1)
        os.close(kept)


def _flush() -> None:
    """Words that still wait to be written: in Python's stdout, in the one it began with, and in that of C."""
    for stream in (sys.stdout, sys.__stdout__):
        if stream is not None:
            stream.flush()
    with suppress(ImportError, OSError, TypeError):  # some systems have no C library to be opened so
        import ctypes

        ctypes.CDLL(None).fflush(None)


def print_json(document: dict[str, Any]) -> None:
    """The command's result: one JSON document, alone on stdout."""
    redirections.close()
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")
    sys.stdout.flush()
