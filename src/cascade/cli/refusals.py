"""What the parser says of words that it cannot read, as one line."""

import io
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from typing import TypeVar

from cascade.errors import CascadeError

Command = TypeVar("Command")


class BadWords(CascadeError):
    """A word of the command line that cannot be read, or one that is missing."""

    code = 2


def in_one_line(prog: str, read: Callable[[], Command]) -> Command:
    """What `read` gives. Where the parser complains in a frame, the first part of it and what was expected."""
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            command = read()
    except SystemExit as end:
        sections = list(_sections(said.getvalue()))
        if not end.code or not sections:  # it was asked for help
            sys.stderr.write(said.getvalue())
            raise
    else:
        sys.stderr.write(said.getvalue())
        return command
    raise BadWords(f"{_complaint(sections)}; `{prog} --help` lists all settings") from None


def _complaint(sections: list[list[str]]) -> str:
    first, *rest = sections[0]
    if first.endswith(":"):  # a list
        return f"{first} {', '.join(rest)}"
    words = " ".join([first, *rest]).rstrip(". ")
    kind = next((part[1] for part in sections if part[0].startswith("Argument helptext")), "")
    if found := re.fullmatch(r"Error parsing (\S+): .*?: ('.*')", words):
        setting, value = found.groups()
        return f"{setting}: got {value}, expected {kind.removeprefix(setting).strip() or 'another'}"
    return words


def _sections(frame: str) -> Iterator[list[str]]:
    """The lines between one rule of a frame and the next, without explanations, which are indented twice.

    Where the terminal has no such signs the frame is of dashes, and its title a line of its own.
    """
    titled = "╭" not in frame
    lines: list[str] = []
    for line in frame.splitlines():
        inner = line.removeprefix("│").removesuffix("│")
        words = inner.strip()
        if line.startswith(("╭", "╰")) or not words.strip("─-"):
            if lines and not titled:
                yield lines
            titled, lines = titled and not lines, []
        elif not inner.startswith(" " * 9):
            lines.append(words)
    if lines:
        yield lines
