"""Play whole episodes of given seeds with a policy, and add up what they were worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from cascade.deploy.game import Game
from cascade.envs.vectorise import LaneGroup
from cascade.types import Policy

Judge = Callable[[Mapping[str, np.ndarray], Mapping[str, np.ndarray]], np.ndarray]
"""What arriving at each row was worth, of the observations and info of those rows."""


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
    limit: int | None = None,
    max_failures: int = 20,
    stop: Callable[[], bool] | None = None,
) -> Played:
    """Lane i plays the episodes of `seeds[i]` [lanes, n] one after another; NONE, at the end of a row, is no episode.

    What an episode's policy draws depends on `key` and on its seed alone. Besides the environment's own tasks, each
    of `judges` is one. An episode is cut after `limit` steps.
    """
    judges = dict(judges or {})
    fold = jax.jit(jax.vmap(jax.vmap(lambda seed: jax.random.fold_in(key, seed))))
    words = np.asarray(jax.random.key_data(fold(jnp.asarray(seeds, jnp.int32))))
    returns = {task: np.zeros(seeds.shape) for task in (*envs.spec.tasks, *judges)}
    steps, finished = np.zeros(seeds.shape, np.int64), np.zeros(seeds.shape, bool)
    game = Game(policy, envs, seeds, words, limit=limit, max_failures=max_failures, stop=stop)
    for tick, numbers, times, over, _ in game:
        worth = dict(tick.rewards) | {task: judge(tick.obs, tick.info) for task, judge in judges.items()}
        arrived = (times > 0) & ~tick.failed
        for task, total in returns.items():
            total[tick.lanes, numbers] += np.where(arrived, worth[task], 0.0)
            total[tick.lanes[tick.failed], numbers[tick.failed]] = 0.0
        steps[tick.lanes[over], numbers[over]] = times[over]
        finished[tick.lanes[over], numbers[over]] = True
    return Played(returns, steps, finished, game.failures)
