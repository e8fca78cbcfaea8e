"""Being told to stop: SIGTERM and the first Ctrl-C ask for a clean end, a second Ctrl-C ends at once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from cascade.errors import CascadeError

Stop = Callable[[], bool]


class Interrupted(CascadeError):
    """Something was told to stop, and what it had finished is kept. The exit code is the shell's for that signal."""

    code = 128 + signal.SIGINT


def heed(stop: Stop | None, what: str) -> None:
    """Stop here, in the middle of `what`, if somebody asked for it."""
    if stop is not None and stop():
        raise Interrupted(f"stopped while {what}")


class Asked:
    """Whether somebody asked, and with which signal. Calling it answers the first question."""

    def __init__(self) -> None:
        self.number: int | None = None

    def __call__(self) -> bool:
        return self.number is not None

    def handle(self, number: int, frame: FrameType | None) -> None:
        if self.number is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.number = number


@contextmanager
def listening(notice: Callable[[str], None] | None = None) -> Iterator[Asked]:
    """While this lasts, signals are noted instead of ending the process. Only the main thread can.

    What is then `Interrupted` has the exit code of the signal that came.
    """
    asked = Asked()

    def handle(number: int, frame: FrameType | None) -> None:
        first = asked.number is None
        asked.handle(number, frame)
        if first and notice is not None:
            notice("stopping after this step and saving; Ctrl-C once more stops at once")

    try:
        before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread: whoever owns it decides
        yield asked
        return
    try:
        yield asked
    except Interrupted as stopped:
        stopped.code = 128 + (asked.number or signal.SIGINT)
        raise
    finally:
        for number, old in before.items():
            signal.signal(number, old)
