"""How a run tells whoever looks on where it is: progress bars, a test, nobody."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from cascade.run.state import Position


@runtime_checkable
class Watch(Protocol):
    """Whoever looks on."""

    def phase(self, at: Position, total: int) -> None:
        """A phase begins, or goes on, with so many steps in all."""

    def step(self, at: Position, values: dict[str, float]) -> None:
        """So far it has come."""

    def note(self, text: str) -> None:
        """One line that a person should read."""
