"""Lanes of a plan, acted for and stepped in turns: what collects, wherever it runs.

A group of lanes is acted for in one call of a fixed shape, and every lane has its own row in it. Whoever has only
some lanes of a group leaves the other rows empty: a row's result depends on the shape of the call and on that
row alone, so the same episodes come of it. Nothing is written here; `harvest` hands over what was finished.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from cascade.deploy.faults import Faults, Incidents, blames_lane
from cascade.deploy.group import Group
from cascade.deploy.plan import Plan, streams
from cascade.deploy.rows import Rows
from cascade.deploy.summary import NO_TIME, Seconds
from cascade.envs import Failure, Tick
from cascade.envs.vectorise import LaneGroup
from cascade.specs import Episode, EpisodeKey
from cascade.types import Policy


@dataclass
class Report:
    """What came of some turns."""

    episodes: list[Episode] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)
    last_failure: str = ""
    """where and why the last environment failed"""
    collected: int = 0
    """steps taken, dropped ones included"""
    seconds: Seconds = NO_TIME
    under_way: int = 0
    """steps of the episodes that have not ended"""
    active: bool = True
    """whether any lane has budget left"""

    @property
    def news(self) -> bool:
        """Whether there is anything to write down."""
        return bool(self.episodes or self.faults.dropped_episodes)


class Turns:
    """Some lanes of a plan in progress. Environment i of `envs` is that of `lanes[i]`."""

    def __init__(
        self,
        policy: Policy,
        envs: LaneGroup,
        plan: Plan,
        lanes: np.ndarray,
        finished: Mapping[EpisodeKey, int],
    ):
        self._envs = envs
        self._incidents, self._rows = Incidents(), Rows(envs.spec, len(lanes))
        self._report, self._began = Report(), time.perf_counter()
        self._policy_seconds = self._stepping_seconds = 0.0
        slots = np.full(plan.lanes, -1)
        slots[lanes] = np.arange(len(lanes))
        all_lanes = streams(plan, finished, only=set(lanes.tolist()))
        groups = [
            Group(policy, envs.spec.action, slots[group], [all_lanes[lane] for lane in group.tolist()])
            for group in plan.group_lanes()
            if (slots[group] >= 0).any()
        ]
        self._groups = deque(group for group in groups if len(group.rows))
        for group in self._groups:
            self._send(group)

    @property
    def active(self) -> bool:
        """Whether any lane has budget left."""
        return bool(self._groups)

    @property
    def news(self) -> bool:
        """Whether there is anything to harvest."""
        return self._report.news

    @property
    def under_way(self) -> int:
        """Steps of the episodes that have not ended."""
        return sum(group.under_way for group in self._groups)

    def turn(self) -> None:
        """Take what came back to the group that waited longest, act for it, and send it off again."""
        group = self._groups.popleft()
        tick = self._wait(group)
        self._take(group, tick)
        if len(group.rows):
            self._act(group, tick)
            self._send(group)
            self._groups.append(group)

    def harvest(self) -> Report:
        """What was finished, and what went wrong, since the last harvest."""
        now = time.perf_counter()
        rest = now - self._began - self._policy_seconds - self._stepping_seconds
        report, self._report = self._report, Report()
        report.seconds = Seconds(self._policy_seconds, self._stepping_seconds, rest)
        report.under_way, report.active = self.under_way, self.active
        self._began, self._policy_seconds, self._stepping_seconds = now, 0.0, 0.0
        return report

    def rest(self) -> None:
        """Let the environments come to rest."""
        while self._groups:
            self._wait(self._groups.popleft())

    def _send(self, group: Group) -> None:
        began = time.perf_counter()
        self._envs.send(*group.turn())
        self._stepping_seconds += time.perf_counter() - began

    def _wait(self, group: Group) -> Tick:
        began = time.perf_counter()
        tick = self._envs.wait(group.slots[group.rows])
        self._stepping_seconds += time.perf_counter() - began
        return tick

    def _act(self, group: Group, tick: Tick) -> None:
        began = time.perf_counter()
        group.act(tick)
        self._policy_seconds += time.perf_counter() - began
        rows = group.rows
        self._rows.put_actions(group.slots[rows], group.times[rows], group.actions[rows])

    def _take(self, group: Group, tick: Tick) -> None:
        """Write down what came back; close the episodes that ended, and those that were lost."""
        rows = group.rows
        times = group.times[rows]
        self._report.collected += int(np.count_nonzero(times))
        self._rows.put(tick.lanes, times, tick)
        over = tick.terminated | tick.truncated | (times >= group.limits[rows])
        for i in np.flatnonzero(over & ~tick.failed).tolist():
            self._close(group, int(rows[i]), bool(tick.terminated[i]))
        if tick.failures:
            lost = dict(zip(tick.lanes.tolist(), rows.tolist(), strict=True))
            for failure in tick.failures:
                self._drop(group, lost[failure.lane], failure)

    def _close(self, group: Group, row: int, terminated: bool) -> None:
        stream, steps = group.streams[row], int(group.times[row])
        episode = self._rows.episode(stream.key, int(group.slots[row]), steps, terminated)
        self._report.episodes.append(episode)
        stream.finish(steps)
        group.begin(row)

    def _drop(self, group: Group, row: int, failure: Failure) -> None:
        """Forget a lost episode, and begin it again."""
        stream, faults = group.streams[row], self._report.faults
        faults.dropped_episodes += 1
        faults.dropped_steps += max(0, int(group.times[row]) - 1)  # the last step never came back
        stream.failures += blames_lane(failure)
        if self._incidents.is_new(failure):
            faults.record(failure.cause)
        where = f"lane {stream.key.lane} of explorer {stream.key.explorer}"
        self._report.last_failure = f"in {where}: {failure.cause}"
        group.begin(row)
