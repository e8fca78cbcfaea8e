"""What came of a deployment, for the log and for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from cascade.data.store import Deployment
from cascade.deploy.faults import Faults


class Progress(NamedTuple):
    """Where a deployment is."""

    steps: int
    """taken so far, those of episodes that have not ended included"""
    budget: int
    episodes: int
    failures: int


class Seconds(NamedTuple):
    """Where the time went; on a fleet, added up over its runners."""

    policy: float
    """choosing actions"""
    stepping: float
    """waiting for environments; what happens while a policy thinks is not in it"""
    rest: float
    """bookkeeping, the journal and the commit"""

    @property
    def total(self) -> float:
        return sum(self)


NO_TIME = Seconds(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Summary:
    """A deployment that was collected, or interrupted: then it is in the journal, and `deployment` is None."""

    environment: str
    deployment: Deployment | None
    budget: int
    steps: int
    """of finished episodes"""
    episodes: int
    explorers: Mapping[int, int]
    """steps of each explorer"""
    faults: Faults
    seconds: Seconds
    collected: int
    """steps taken by this process, dropped ones included"""
    problems: tuple[str, ...] = ()
    """what could not be used of an earlier process's journal, and was collected again"""

    def committed(self, deployment: Deployment) -> Summary:
        """The same, once its data are stored."""
        return replace(self, deployment=deployment)

    @property
    def interrupted(self) -> bool:
        return self.deployment is None

    @property
    def message(self) -> str:
        """One line."""
        faults = self.faults
        parts = [f"{self.environment}: {self.steps:,} of {self.budget:,} steps in {self.episodes:,} episodes"]
        if self.interrupted:
            parts[0] += ", interrupted; the same command goes on from here"
        if faults.failures:
            worst = max(faults.causes, key=lambda cause: faults.causes[cause], default="")
            parts.append(
                f"{faults.failures} environment failures ({worst}), {faults.dropped_episodes} unfinished "
                f"episodes of {faults.dropped_steps} steps dropped and collected again"
            )
        parts.extend(self.problems)
        return "; ".join(parts)
