"""Progress for people: a bar for each phase with its speed and time left, or plain lines."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from cascade.cli.output import console, say

if TYPE_CHECKING:
    from cascade.run.state import Position

TITLES = {"deploy": "deploying", "model": "world model", "explore": "explorers", "measure": "measuring"}
TOLD = {
    "model": ("loss",),
    "explore": ("entropy", "information_gain"),
    "deploy": ("episodes",),
    "measure": (),
}


class Bars:
    """One bar for the phase under way; where there is no terminal, one line when a phase begins."""

    def __init__(self, deployments: int, name: str = ""):
        self._deployments = deployments
        self.name = name
        """what is said before each phase, where there are several runs"""
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[told]}"),
            console=console,
            transient=True,
            expand=True,
            disable=not console.is_terminal,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()

    def phase(self, at: Position, total: int) -> None:
        """See `cascade.run.watching.Watch`."""
        prefix = f"{self.name}: " if self.name else ""
        title = f"{prefix}deployment {at.deployment + 1}/{self._deployments}, {TITLES[at.name]}"
        if not console.is_terminal:
            say(f"{title}: {at.step:,} of {total:,}")
            return
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(title, total=total, completed=at.step, speed="", told="")

    def step(self, at: Position, values: dict[str, float]) -> None:
        """See `cascade.run.watching.Watch`."""
        if self._task is None:
            return
        told = "  ".join(
            f"{name.replace('_', ' ')} {values[name]:.4g}" for name in TOLD[at.name] if name in values
        )
        task = self._progress.tasks[-1]
        speed = f"{task.speed:,.0f}/s" if task.speed and task.speed >= 1 else ""
        told = told or task.fields["told"]
        self._progress.update(self._task, completed=at.step, speed=speed, told=told)

    def note(self, text: str) -> None:
        """See `cascade.run.watching.Watch`."""
        say(text)


class Quiet:
    """Says what must be said, and nothing else."""

    name = ""

    def __enter__(self) -> Quiet:
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def phase(self, at: Position, total: int) -> None:
        """See `cascade.run.watching.Watch`."""

    def step(self, at: Position, values: dict[str, float]) -> None:
        """See `cascade.run.watching.Watch`."""

    def note(self, text: str) -> None:
        """See `cascade.run.watching.Watch`."""
        say(text)
