"""What went wrong while collecting: counted, attributed, and remembered over restarts.

The process of several lanes may die of one of them. That is one failure, however many episodes it takes
along; and only the episode that it happened in may be drawn anew, the others are repeated as they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from cascade.envs import Failure

LONGEST_LIST = 20
"""Different causes that are remembered; those beyond are counted only."""


@dataclass
class Faults:
    """The failures of a deployment so far, over all processes that collected for it."""

    failures: int = 0
    dropped_episodes: int = 0
    dropped_steps: int = 0
    causes: dict[str, int] = field(default_factory=dict)
    """how often each cause was met"""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Faults:
        return cls(**value)

    def record(self, cause: str) -> None:
        self.failures += 1
        self._count(cause, 1)

    def add(self, other: Faults) -> None:
        """Those that another collector met."""
        self.failures += other.failures
        self.dropped_episodes += other.dropped_episodes
        self.dropped_steps += other.dropped_steps
        for cause, times in other.causes.items():
            self._count(cause, times)

    def _count(self, cause: str, times: int) -> None:
        if cause in self.causes or len(self.causes) < LONGEST_LIST:
            self.causes[cause] = self.causes.get(cause, 0) + times


class Incidents:
    """Tells one failure of a shared process, reported lane by lane, from several."""

    def __init__(self) -> None:
        self._processes: set[tuple[int, int]] = set()

    def is_new(self, failure: Failure) -> bool:
        """Whether this is a failure of its own rather than another lane's share in an earlier one."""
        if failure.process is None:
            return True
        new = failure.process not in self._processes
        self._processes.add(failure.process)
        return new


def blames_lane(failure: Failure) -> bool:
    """Whether it was this lane's environment that failed, and not its process for another reason."""
    return failure.process is None or failure.culprit == failure.lane
