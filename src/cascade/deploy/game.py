"""Given episodes, played lane by lane with a policy: what evaluation and measurement share. Nothing is stored.

Lane i plays the episodes of row i one after another. What an episode's policy draws depends on its own words alone,
so neither its lane nor what is played beside it matters. An episode whose environment fails is played again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from cascade.deploy.group import STEP, keys_at
from cascade.envs import Tick
from cascade.envs.vectorise import LaneGroup
from cascade.errors import CascadeError
from cascade.types import Policy

NONE = -1
"""In the place of a seed: no episode."""


class Turn(NamedTuple):
    """What came of one reset or step in every lane that plays."""

    tick: Tick
    numbers: np.ndarray
    """which of its episodes each lane is at"""
    times: np.ndarray
    """how many steps that episode has; 0 after a reset"""
    over: np.ndarray
    """bool: the episode ended, or reached the limit"""
    actions: np.ndarray
    """what the policy does next"""


class Game:
    """Episodes in progress; iterating plays them to their ends."""

    def __init__(
        self,
        policy: Policy,
        envs: LaneGroup,
        seeds: np.ndarray,
        words: np.ndarray,
        *,
        limit: int | None = None,
        max_failures: int = 20,
        stop: Callable[[], bool] | None = None,
    ):
        """`seeds` [lanes, n] are reset seeds, NONE at the end of a row; `words` [lanes, n, 2] their threefry keys."""
        lanes = len(seeds)
        self._policy, self._envs = policy, envs
        self._limit, self._max_failures, self._stop = limit, max_failures, stop
        self._seeds = np.concatenate([seeds, np.full((lanes, 1), NONE)], 1).astype(np.int64)
        self._words = np.concatenate([words, np.zeros((lanes, 1, 2))], 1).astype(np.uint32)
        self._memory = policy.initial(lanes)
        self._obs = {
            name: np.zeros((lanes, *part.shape), part.dtype) for name, part in envs.spec.observations.items()
        }
        self._actions = np.zeros((lanes, *envs.spec.action.shape), envs.spec.action.dtype)
        self._number = np.zeros(lanes, np.int64)
        self._times = np.zeros(lanes, np.int32)
        self._fresh = np.ones(lanes, bool)
        self.failures = 0
        """environments, or the processes around them, that were lost"""

    def __iter__(self) -> Iterator[Turn]:
        every = np.arange(len(self._number))
        while not (self._stop is not None and self._stop()):
            lanes = np.flatnonzero(self._seeds[every, self._number] != NONE)
            if not len(lanes):
                return
            yield self._turn(lanes)

    def _turn(self, lanes: np.ndarray) -> Turn:
        """One reset or step in each of these lanes, then one action for every lane."""
        fresh, numbers = self._fresh[lanes], self._number[lanes]
        self._envs.send(lanes, self._actions[lanes], np.where(fresh, self._seeds[lanes, numbers], STEP))
        tick = self._envs.wait(lanes)
        self._count_failures(tick)
        times = self._times[lanes] = np.where(fresh, 0, self._times[lanes] + 1)
        for name, rows in self._obs.items():
            rows[lanes] = tick.obs[name]
        keys = keys_at(self._words[np.arange(len(self._number)), self._number], self._times)
        self._memory, self._actions = self._policy.act(self._memory, self._obs, self._times == 0, keys)
        over = tick.terminated | tick.truncated
        if self._limit is not None:
            over = over | (times >= self._limit)
        over &= ~tick.failed
        self._number[lanes] += over
        self._fresh[lanes] = over | tick.failed
        return Turn(tick, numbers, times, over, self._actions[lanes])

    def _count_failures(self, tick: Tick) -> None:
        self.failures += len({failure.process or failure.lane for failure in tick.failures})
        if self.failures > self._max_failures:
            raise CascadeError(
                f"{self._envs.spec.name}: {self.failures} environment failures while evaluating, more than "
                f"deploy.max-failures, which is {self._max_failures}; the last: {tick.failures[-1].cause}"
            )
