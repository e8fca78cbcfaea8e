"""How a run tells whoever looks on where it is: progress bars, a test, nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from cascade.errors import CascadeError, cause_of
from cascade.run.signals import Interrupted
from cascade.run.state import Position

Note = Callable[[str], None]
"""Is told one line that a person should read."""


@runtime_checkable
class Watch(Protocol):
    """Whoever looks on."""

    def phase(self, at: Position, total: int) -> None:
        """A phase begins, or goes on, with so many steps in all."""

    def step(self, at: Position, values: dict[str, float]) -> None:
        """So far it has come."""

    def note(self, text: str) -> None:
        """One line that a person should read."""


@contextmanager
def looking(what: str, note: Note | None) -> Iterator[None]:
    """What is only looked at ends no run: if anything goes wrong, `note` is told that there is none of `what`."""
    try:
        yield
    except Interrupted:
        raise
    except Exception as error:
        if note is not None:
            note(f"no {what}: {error if isinstance(error, CascadeError) else cause_of(error)}")
