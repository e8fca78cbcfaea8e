"""Play whole episodes of given seeds with a policy, and add up what they were worth. Nothing is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from cascade.deploy.group import STEP, keys_at
from cascade.envs import Tick
from cascade.envs.vectorise import LaneGroup
from cascade.errors import CascadeError
from cascade.types import Policy

Judge = Callable[[Mapping[str, np.ndarray], Mapping[str, np.ndarray]], np.ndarray]
"""What arriving at each row was worth, of the observations and info of those rows."""
NONE = -1


@dataclass(frozen=True)
class Played:
    """What came of the episodes, [lanes, episodes of a lane]; 0 where a lane had fewer."""

    returns: Mapping[str, np.ndarray]
    """by task"""
    steps: np.ndarray
    finished: np.ndarray
    """bool: false where there was no episode, or `stop` came first"""
    failures: int


def play(
    policy: Policy,
    envs: LaneGroup,
    seeds: np.ndarray,
    key: PRNGKeyArray,
    *,
    judges: Mapping[str, Judge] | None = None,
    max_failures: int = 20,
    stop: Callable[[], bool] | None = None,
) -> Played:
    """Lane i plays the episodes of `seeds[i]` [lanes, n] one after another; NONE, at the end of a row, is no episode.

    What an episode's policy draws depends on `key` and on its seed alone. Besides the environment's own tasks, each
    of `judges` is one. An episode whose environment fails is played again from its beginning.
    """
    game = Game(policy, envs, seeds, key, dict(judges or {}))
    while game.playing.any() and not (stop is not None and stop()):
        tick = game.turn()
        if game.failures > max_failures:
            raise CascadeError(
                f"{envs.spec.name}: {game.failures} environment failures while evaluating, more than "
                f"deploy.max-failures, which is {max_failures}; the last: {tick.failures[-1].cause}"
            )
    return Played(game.returns, game.steps, game.finished, game.failures)


class Game:
    """Episodes in progress."""

    def __init__(
        self,
        policy: Policy,
        envs: LaneGroup,
        seeds: np.ndarray,
        key: PRNGKeyArray,
        judges: Mapping[str, Judge],
    ):
        lanes, count = seeds.shape
        self._policy, self._envs, self._judges = policy, envs, judges
        self._seeds = np.concatenate([seeds, np.full((lanes, 1), NONE)], 1).astype(np.int64)
        fold = jax.jit(jax.vmap(jax.vmap(lambda seed: jax.random.fold_in(key, seed))))
        self._words = np.asarray(jax.random.key_data(fold(jnp.asarray(self._seeds, jnp.int32))))
        self._memory = policy.initial(lanes)
        self._obs = {
            name: np.zeros((lanes, *part.shape), part.dtype) for name, part in envs.spec.observations.items()
        }
        self._actions = np.zeros((lanes, *envs.spec.action.shape), envs.spec.action.dtype)
        self._turn = np.zeros(lanes, np.int64)
        self._times = np.zeros(lanes, np.int32)
        self._fresh = np.ones(lanes, bool)
        self.returns = {task: np.zeros((lanes, count)) for task in (*envs.spec.tasks, *judges)}
        self.steps = np.zeros((lanes, count), np.int64)
        self.finished = np.zeros((lanes, count), bool)
        self.failures = 0

    @property
    def playing(self) -> np.ndarray:
        """Which lanes have an episode to play."""
        return self._seeds[np.arange(len(self._turn)), self._turn] != NONE

    def turn(self) -> Tick:
        """One reset or step in every lane that plays, then one action for each."""
        lanes = np.flatnonzero(self.playing)
        fresh = self._fresh[lanes]
        seeds = np.where(fresh, self._seeds[lanes, self._turn[lanes]], STEP)
        self._envs.send(lanes, self._actions[lanes], seeds)
        tick = self._envs.wait(lanes)
        self._times[lanes] = np.where(fresh, 0, self._times[lanes] + 1)
        for name, rows in self._obs.items():
            rows[lanes] = tick.obs[name]
        self._count(lanes, fresh, tick)
        words = self._words[np.arange(len(self._turn)), self._turn]
        keys = keys_at(words, self._times)
        self._memory, self._actions = self._policy.act(self._memory, self._obs, self._times == 0, keys)
        return tick

    def _count(self, lanes: np.ndarray, fresh: np.ndarray, tick: Tick) -> None:
        """Add rewards up; close episodes that ended, and begin those again whose environment failed."""
        number = self._turn[lanes]
        worth = dict(tick.rewards) | {
            task: judge(tick.obs, tick.info) for task, judge in self._judges.items()
        }
        for task, total in self.returns.items():
            total[lanes, number] += np.where(fresh | tick.failed, 0.0, worth[task])
            total[lanes[tick.failed], number[tick.failed]] = 0.0
        over = (tick.terminated | tick.truncated) & ~tick.failed
        self.steps[lanes[over], number[over]] = self._times[lanes[over]]
        self.finished[lanes[over], number[over]] = True
        self._turn[lanes] += over
        self._fresh[lanes] = over | tick.failed
        self.failures += len({failure.process or failure.lane for failure in tick.failures})
