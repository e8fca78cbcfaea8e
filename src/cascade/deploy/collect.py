"""Collect a deployment on this machine: exactly its budget, whatever crashes or is killed on the way.

    plan = Plan.of(config, seed=0, deployment=2, population=10)
    with vectorise(env, config, plan) as envs:
        summary = collect(policy, envs, Journal(root, 2, envs.spec), plan, config)

All lanes of a group are acted for in one call. While one group is acted for, the other one is stepped.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping

import numpy as np

from cascade.config import DeployConfig, EnvConfig
from cascade.data.files import Unusable, disk_errors, read_json, write_json
from cascade.data.journal import Journal
from cascade.data.store import Deployment
from cascade.deploy.faults import Faults, Incidents, blames_lane
from cascade.deploy.group import Group
from cascade.deploy.plan import Plan, streams
from cascade.deploy.rows import Rows
from cascade.deploy.summary import Progress, Seconds, Summary
from cascade.envs import Failure, Tick, Vectoriser
from cascade.envs.vectorise import LaneGroup
from cascade.errors import CascadeError
from cascade.specs import EpisodeKey
from cascade.types import Policy

NOTES = "collection.json"
"""Beside the journal's shards: the plan, and the failures so far."""
PROGRESS_SECONDS = 0.2


def vectorise(env: EnvConfig, config: DeployConfig, plan: Plan) -> Vectoriser:
    """The environments that a plan needs."""
    return Vectoriser(env, plan.lanes, min(config.workers, plan.lanes), config.step_timeout)


def collect(
    policy: Policy,
    envs: LaneGroup,
    journal: Journal,
    plan: Plan,
    config: DeployConfig,
    *,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Summary:
    """Collect what the journal lacks of the plan, and commit it.

    When `stop` says so, the journal is written out and nothing is committed: the same call resumes. The same
    happens to whatever was finished when an error ends the collection.
    """
    if envs.lanes != plan.lanes or journal.deployment != plan.deployment:
        raise ValueError(
            f"the plan is for {plan.lanes} lanes and deployment {plan.deployment}, the environments have "
            f"{envs.lanes} lanes and the journal is that of deployment {journal.deployment}"
        )
    collection = Collection(policy, envs, journal, plan, config)
    try:
        done = collection.run(progress, stop)
    except BaseException:
        journal.flush()
        raise
    return collection.finish() if done else collection.interrupt()


class Collection:
    """A deployment in progress."""

    def __init__(self, policy: Policy, envs: LaneGroup, journal: Journal, plan: Plan, config: DeployConfig):
        self._envs, self._journal, self._plan = envs, journal, plan
        self._limit = config.max_failures
        self._began = time.perf_counter()
        self._policy_seconds = self._stepping_seconds = 0.0
        finished = journal.finished()
        self.faults = _resume(journal, plan, finished)
        self._failures = 0
        self._incidents = Incidents()
        self._steps, self._episodes, self._collected = sum(finished.values()), len(finished), 0
        self._rows = Rows(envs.spec, plan.lanes)
        lanes = streams(plan, finished)
        groups = [Group(policy, envs.spec.action, group, lanes) for group in plan.group_lanes()]
        self._groups = deque(group for group in groups if len(group.rows))

    def run(self, progress: Callable[[Progress], None] | None, stop: Callable[[], bool] | None) -> bool:
        """Take turns until the budget is spent; false if told to stop before."""
        reported = time.monotonic()
        for group in self._groups:
            self._send(group)
        while self._groups:
            if stop is not None and stop():
                return False
            group = self._groups.popleft()
            tick = self._wait(group)
            self._take(group, tick)
            if len(group.rows):
                self._act(group, tick)
                self._send(group)
                self._groups.append(group)
            if progress is not None and (not self._groups or time.monotonic() - reported > PROGRESS_SECONDS):
                reported = time.monotonic()
                progress(self._progress())
        return True

    def finish(self) -> Summary:
        """Check the budget and commit. The metadata has nothing that varies from run to run, such as time."""
        if self._journal.steps != self._plan.steps:
            raise CascadeError(
                f"{self._journal.path}: holds {self._journal.steps} steps, the plan has {self._plan.steps}; "
                "remove that folder and collect the deployment again"
            )
        explorers, problems = self._by_explorer(), tuple(self._journal.problems)
        metadata = {"plan": self._plan.to_json(), **self.faults.to_json()}
        deployment = self._journal.commit(metadata)
        return self._summary(deployment, explorers, problems)

    def interrupt(self) -> Summary:
        """Keep what is finished, then let the environments come to rest."""
        self._journal.flush()
        for group in self._groups:
            self._envs.wait(group.lanes[group.rows])
        return self._summary(None, self._by_explorer(), tuple(self._journal.problems))

    def _send(self, group: Group) -> None:
        began = time.perf_counter()
        self._envs.send(*group.turn())
        self._stepping_seconds += time.perf_counter() - began

    def _wait(self, group: Group) -> Tick:
        began = time.perf_counter()
        tick = self._envs.wait(group.lanes[group.rows])
        self._stepping_seconds += time.perf_counter() - began
        return tick

    def _act(self, group: Group, tick: Tick) -> None:
        began = time.perf_counter()
        group.act(tick)
        self._policy_seconds += time.perf_counter() - began
        rows = group.rows
        self._rows.put_actions(group.lanes[rows], group.times[rows], group.actions[rows])

    def _take(self, group: Group, tick: Tick) -> None:
        """Write down what came back; close the episodes that ended, and those that were lost."""
        rows = group.rows
        times = group.times[rows]
        self._collected += int(np.count_nonzero(times))
        self._rows.put(tick.lanes, times, tick)
        over = tick.terminated | tick.truncated | (times >= group.limits[rows])
        for i in np.flatnonzero(over & ~tick.failed).tolist():
            self._close(group, int(rows[i]), bool(tick.terminated[i]))
        if tick.failures:
            lost = dict(zip(tick.lanes.tolist(), rows.tolist(), strict=True))
            for failure in tick.failures:
                self._drop(group, lost[failure.lane], failure)
            _note(self._journal, self._plan, self.faults)
            self._give_up_past_limit(tick.failures[-1])

    def _close(self, group: Group, row: int, terminated: bool) -> None:
        stream, steps = group.streams[row], int(group.times[row])
        self._journal.append(self._rows.episode(stream.key, int(group.lanes[row]), steps, terminated))
        stream.finish(steps)
        self._steps += steps
        self._episodes += 1
        group.begin(row)

    def _drop(self, group: Group, row: int, failure: Failure) -> None:
        """Forget a lost episode, and begin it again."""
        self.faults.dropped_episodes += 1
        self.faults.dropped_steps += max(0, int(group.times[row]) - 1)  # the last step never came back
        group.streams[row].failures += blames_lane(failure)
        if self._incidents.is_new(failure):
            self._failures += 1
            self.faults.record(failure.cause)
        group.begin(row)

    def _give_up_past_limit(self, last: Failure) -> None:
        """The limit is on the failures that this process saw, so that a mended environment can go on."""
        if self._failures > self._limit:
            explorer, lane = self._plan.owner(last.lane)
            raise CascadeError(
                f"{self._envs.spec.name}: {self._failures} environment failures in deployment "
                f"{self._plan.deployment}, more than deploy.max-failures, which is {self._limit}; the last, in "
                f"lane {lane} of explorer {explorer}: {last.cause}; finished episodes are kept: mend the "
                "environment and run the same command again"
            )

    def _progress(self) -> Progress:
        steps = self._steps + sum(group.under_way for group in self._groups)
        return Progress(steps, self._plan.steps, self._episodes, self.faults.failures)

    def _by_explorer(self) -> dict[int, int]:
        counts: Counter[int] = Counter()
        for key, steps in self._journal.finished().items():
            counts[key.explorer] += steps
        return dict(sorted(counts.items()))

    def _summary(
        self, deployment: Deployment | None, explorers: dict[int, int], problems: tuple[str, ...]
    ) -> Summary:
        total = time.perf_counter() - self._began
        rest = total - self._policy_seconds - self._stepping_seconds
        return Summary(
            environment=self._envs.spec.name,
            deployment=deployment,
            budget=self._plan.steps,
            steps=self._steps,
            episodes=self._episodes,
            explorers=explorers,
            faults=self.faults,
            seconds=Seconds(self._policy_seconds, self._stepping_seconds, rest),
            collected=self._collected,
            problems=problems,
        )


def _resume(journal: Journal, plan: Plan, finished: Mapping[EpisodeKey, int]) -> Faults:
    """The failures so far, of a journal that was started with this plan; it is marked with it if new."""
    try:
        notes = read_json(journal.path / NOTES)
        faults, started = Faults.from_json(notes["faults"]), notes["plan"]
    except (Unusable, KeyError, TypeError):
        faults, started = Faults(), plan.to_json()
        _note(journal, plan, faults)
    foreign = [key for key in finished if key.explorer >= plan.population or key.lane >= plan.each]
    if started != plan.to_json() or foreign:
        now = plan.to_json()
        changed = [f"{name} was {value!r}" for name, value in started.items() if value != now.get(name)]
        raise CascadeError(
            f"{journal.path}: was started with another plan ({', '.join(changed) or 'more lanes'}); resume with "
            "the settings it was started with, or remove that folder"
        )
    return faults


def _note(journal: Journal, plan: Plan, faults: Faults) -> None:
    with disk_errors(journal.path):
        write_json(journal.path / NOTES, {"plan": plan.to_json(), "faults": faults.to_json()})
