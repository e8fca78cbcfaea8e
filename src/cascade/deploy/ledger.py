"""The books of a deployment: what the journal has, what failed, and the commit; whoever collects reports here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from cascade.config import DeployConfig
from cascade.data.files import Unusable, read_json, write_json
from cascade.data.journal import Journal
from cascade.deploy.faults import Faults
from cascade.deploy.plan import Plan
from cascade.deploy.summary import NO_TIME, Progress, Seconds, Summary
from cascade.deploy.turns import Report
from cascade.errors import CascadeError, disk_errors
from cascade.specs import EpisodeKey

NOTES = "collection.json"
"""Beside the journal's shards: the plan, and the failures so far."""


class Ledger:
    """One deployment as it fills."""

    def __init__(self, journal: Journal, plan: Plan, config: DeployConfig):
        if journal.deployment != plan.deployment:
            raise ValueError(
                f"the plan is for deployment {plan.deployment}, the journal is that of {journal.deployment}"
            )
        self.journal, self.plan = journal, plan
        self._limit = config.max_failures
        finished = journal.finished()
        self.faults = _resume(journal, plan, finished)
        self._failures = 0
        self._steps, self._episodes, self._collected = sum(finished.values()), len(finished), 0
        self._seconds = NO_TIME

    def take(self, report: Report) -> None:
        """Write down what a collector reports; too many failures end the deployment."""
        self.keep(report)
        if report.faults.dropped_episodes:
            self.faults.add(report.faults)
            self._failures += report.faults.failures
            _note(self.journal, self.plan, self.faults)
            self._give_up_past_limit(report.last_failure)

    def keep(self, report: Report) -> None:
        """Its episodes alone. One that is there already is not counted."""
        for episode in report.episodes:
            if self.journal.append(episode):
                self._steps += len(episode)
                self._episodes += 1
        self._collected += report.collected
        self._seconds = Seconds(*(a + b for a, b in zip(self._seconds, report.seconds, strict=True)))

    def progress(self, under_way: int) -> Progress:
        return Progress(self._steps + under_way, self.plan.steps, self._episodes, self.faults.failures)

    def finish(self) -> Summary:
        """Check the budget and commit. The metadata has nothing that varies from run to run, such as time."""
        if self.journal.steps != self.plan.steps:
            raise CascadeError(
                f"{self.journal.path}: holds {self.journal.steps} steps, the plan has {self.plan.steps}; "
                "remove that folder and collect the deployment again"
            )
        summary = self._summary()
        metadata = {"plan": self.plan.to_json(), **self.faults.to_json()}
        return summary.committed(self.journal.commit(metadata))

    def interrupt(self) -> Summary:
        """Keep what is finished."""
        self.journal.flush()
        return self._summary()

    def _give_up_past_limit(self, last: str) -> None:
        """The limit is on the failures that this process saw, so that a fixed environment can go on."""
        if self._failures > self._limit:
            raise CascadeError(
                f"{self.journal.spec.name}: {self._failures} environment failures in deployment "
                f"{self.plan.deployment + 1}, more than deploy.max-failures, which is {self._limit}; the last, "
                f"{last}; finished episodes are kept: fix the environment and run the same command again"
            )

    def _summary(self) -> Summary:
        explorers: Counter[int] = Counter()
        for key, steps in self.journal.finished().items():
            explorers[key.explorer] += steps
        return Summary(
            environment=self.journal.spec.name,
            deployment=None,
            budget=self.plan.steps,
            steps=self._steps,
            episodes=self._episodes,
            explorers=dict(sorted(explorers.items())),
            faults=self.faults,
            seconds=self._seconds,
            collected=self._collected,
            problems=tuple(self.journal.problems),
        )


def _resume(journal: Journal, plan: Plan, finished: Mapping[EpisodeKey, int]) -> Faults:
    """The failures so far, of a journal that was started with this plan; it is marked with it if new."""
    refuse_other_plan(journal.path, plan)
    try:
        faults = Faults.from_json(read_json(journal.path / NOTES)["faults"])
    except (Unusable, KeyError, TypeError):
        faults = Faults()
        _note(journal, plan, faults)
    if any(key.explorer >= plan.population or key.lane >= plan.each for key in finished):
        raise _other_plan(journal.path, "more lanes")
    return faults


def refuse_other_plan(path: Path, plan: Plan) -> None:
    """An error if the journal at `path` says that it was started with another plan; nothing is changed."""
    try:
        started = dict(read_json(path / NOTES)["plan"])
    except (Unusable, KeyError, TypeError):
        return
    now = plan.to_json()
    if started != now:
        differ = {name: value for name, value in started.items() if name not in now or value != now[name]}
        said = [f"{name} was {value!r}" for name, value in differ.items()]
        said += [f"{name} was not there yet" for name in now if name not in started]
        raise _other_plan(path, ", ".join(said))


def _other_plan(path: Path, how: str) -> CascadeError:
    return CascadeError(
        f"{path}: was started with another plan ({how}); resume with the settings it was started with, or remove "
        "that folder"
    )


def _note(journal: Journal, plan: Plan, faults: Faults) -> None:
    with disk_errors(journal.path):
        write_json(journal.path / NOTES, {"plan": plan.to_json(), "faults": faults.to_json()})
