"""Where words go: results on stdout, everything else on stderr."""

import json
import sys
from typing import Any

from rich.console import Console

console = Console(stderr=True, highlight=False, markup=False, emoji=False)
"""Words are printed as they are: a path may have brackets in it, and a task colons."""


def say(message: object) -> None:
    """A line, a table or a panel for the person at the terminal. Lines stay whole, so that commands can be copied."""
    console.print(message, soft_wrap=isinstance(message, str))


def print_json(document: dict[str, Any]) -> None:
    """The command's result: one JSON document, alone on stdout."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")
    sys.stdout.flush()
