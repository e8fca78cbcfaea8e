"""Many environments at once, in worker processes, with a time limit on each step.

    with Vectoriser(config, lanes=16, workers=2) as envs:
        envs.send(lanes, actions, seeds)      # returns at once; seed >= 0 resets a lane, -1 steps it
        tick = envs.wait(lanes)               # what came of it, in the same order

A caller may keep several groups of lanes in flight, and think about one while the others are stepped. An
environment that raises, hangs or takes its process down is replaced; its lanes are reported as failed, once
each, with the cause, and go on after a reset.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TypeVar

import numpy as np

from cascade.config import EnvConfig
from cascade.envs.buffers import Buffers
from cascade.envs.process import START_TIMEOUT, Failure, Failures, Worker, first_ready
from cascade.envs.registry import spec_of
from cascade.envs.worker import Lanes
from cascade.errors import CascadeError, SettingError
from cascade.specs import EnvSpec

Group = TypeVar("Group", bound="LaneGroup")


@dataclass(frozen=True)
class Tick:
    """What came of one reset or step in each of n lanes. Rows that failed hold zeros."""

    lanes: np.ndarray
    obs: Mapping[str, np.ndarray]
    rewards: Mapping[str, np.ndarray]
    terminated: np.ndarray
    truncated: np.ndarray
    info: Mapping[str, np.ndarray]
    failed: np.ndarray
    failures: tuple[Failure, ...]


class LaneGroup(ABC):
    """What the two ways to step share: whose turn it is in each lane, and how results are read."""

    spec: EnvSpec

    def __init__(self, spec: EnvSpec, lanes: int, workers: int):
        self.spec = spec
        self.lanes = lanes
        self._buffers = Buffers(spec, lanes, workers)
        self._in_flight = np.zeros(lanes, bool)
        self._playing = np.zeros(lanes, bool)  # an episode is under way, so the lane may step
        self._lost: Failures = {}  # lanes whose environment is gone, not yet reported

    def groups(self, count: int) -> list[np.ndarray]:
        """All lanes in `count` runs of neighbours. Every worker has its share of each, so none is idle."""
        return [group for group in np.array_split(np.arange(self.lanes), count) if len(group)]

    def send(self, lanes: np.ndarray, actions: np.ndarray, seeds: np.ndarray) -> None:
        """Reset the lanes whose seed is 0 or more, step the others with their action. Does not wait."""
        resets = seeds >= 0
        self._check_turn(lanes, resets)
        self._in_flight[lanes] = True
        self._buffers.seed[lanes] = seeds
        self._buffers.action[lanes] = actions
        if self._lost:
            for lane in lanes[resets].tolist():
                self._lost.pop(lane, None)
            lanes = np.array([lane for lane in lanes.tolist() if lane not in self._lost], lanes.dtype)
        self._submit(lanes)

    def wait(self, lanes: np.ndarray) -> Tick:
        """What came of the last `send` for these lanes."""
        if not self._in_flight[lanes].all():
            idle = lanes[~self._in_flight[lanes]].tolist()
            raise ValueError(f"lanes {idle} were not sent anything to wait for")
        self._settle(lanes)
        lost = self._lost and {lane: self._lost.pop(lane) for lane in lanes.tolist() if lane in self._lost}
        failed = np.array([lane in lost for lane in lanes.tolist()]) if lost else np.zeros(len(lanes), bool)
        tick = self._read(lanes, failed, tuple(lost.values()))
        self._in_flight[lanes] = False
        self._playing[lanes] = ~(tick.terminated | tick.truncated | failed)
        return tick

    def __enter__(self: Group) -> Group:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Close the environments."""

    @abstractmethod
    def _submit(self, lanes: np.ndarray) -> None:
        """Start work on lanes whose seed and action are in the buffers."""

    @abstractmethod
    def _settle(self, lanes: np.ndarray) -> None:
        """Return when each of the lanes is either done or among the lost."""

    def _check_turn(self, lanes: np.ndarray, resets: np.ndarray) -> None:
        if self._in_flight[lanes].any() or len(set(lanes.tolist())) != len(lanes):
            raise ValueError(f"lanes {lanes.tolist()}: each can be sent once, and then waited for")
        if not (self._playing[lanes] | resets).all():
            ended = lanes[~(self._playing[lanes] | resets)].tolist()
            raise ValueError(f"lanes {ended} have no episode under way: reset them with a seed")

    def _read(self, lanes: np.ndarray, failed: np.ndarray, failures: tuple[Failure, ...]) -> Tick:
        buffers = self._buffers
        tick = Tick(
            lanes=lanes,
            obs={name: array[lanes] for name, array in buffers.obs.items()},
            rewards={task: array[lanes] for task, array in buffers.rewards.items()},
            terminated=buffers.terminated[lanes],
            truncated=buffers.truncated[lanes],
            info={name: array[lanes] for name, array in buffers.info.items()},
            failed=failed,
            failures=failures,
        )
        if failures:
            for copy in (*tick.obs.values(), *tick.rewards.values(), *tick.info.values()):
                copy[failed] = 0
            tick.terminated[failed] = tick.truncated[failed] = False
        return tick


class InProcess(LaneGroup):
    """Steps in the calling process: for tests and tiny runs. Nothing guards against a crash or a hang."""

    def __init__(self, config: EnvConfig, lanes: int):
        self._lanes = Lanes(config, range(lanes))
        super().__init__(self._lanes.spec, lanes, 1)

    def close(self) -> None:
        self._lanes.close()
        self._buffers.close()

    def _submit(self, lanes: np.ndarray) -> None:
        failures = self._lanes.run(lanes.tolist(), self._buffers)
        self._lost |= {lane: Failure(lane, cause) for lane, cause in failures.items()}

    def _settle(self, lanes: np.ndarray) -> None:
        pass


class Vectoriser(LaneGroup):
    """Steps in worker processes. Lane i lives in worker i % workers.

    `timeout` is how many seconds a single reset or step of one environment may take.
    """

    def __init__(self, config: EnvConfig, lanes: int, workers: int = 1, timeout: float = 60.0):
        if not 1 <= workers <= lanes:
            raise SettingError("deploy.workers", workers, f"from 1 to deploy.lanes, which is {lanes}")
        super().__init__(spec_of(config), lanes, workers)
        self._timeout = timeout
        self._workers: list[Worker] = []
        try:
            for index in range(workers):
                self._workers.append(Worker(config, index, self._buffers, (lanes, workers)))
            for worker in self._workers:
                if cause := worker.start_failure(START_TIMEOUT):
                    raise CascadeError(f"env.id {config.id}: a worker process did not start: {cause}")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for worker in self._workers:
            worker.ask_to_stop()
        for worker in self._workers:
            worker.stop()
        self._workers = []
        self._buffers.close()

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers, by worker."""
        return [worker.pid for worker in self._workers]

    def _submit(self, lanes: np.ndarray) -> None:
        owners = lanes % len(self._workers)
        for index, worker in enumerate(self._workers):
            share = lanes[owners == index]
            if len(share):
                worker.submit(share)

    def _settle(self, lanes: np.ndarray) -> None:
        wanted = set(lanes.tolist())
        while busy := [worker for worker in self._workers if worker.owes(wanted)]:
            heard, overdue = first_ready(busy, self._timeout)
            for worker in heard:
                self._lost |= worker.collect()
            for worker in overdue:
                self._lost |= worker.give_up(self._timeout)
