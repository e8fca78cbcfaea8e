"""Whole episodes from given starts, kept in memory: how policies are looked at, outside any budget.

Nothing here is stored as data. Explorer p plays one episode from each start; starts are reset seeds, so that every
method and every explorer meets the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cascade.config import DeployConfig, EnvConfig
from cascade.deploy.group import STEP, keys_at
from cascade.deploy.rows import Rows
from cascade.envs import Vectoriser, make
from cascade.errors import CascadeError
from cascade.specs import Episode, EpisodeKey
from cascade.types import Policy


def rollout(
    policy: Policy,
    env: EnvConfig,
    config: DeployConfig,
    starts: Sequence[int],
    *,
    population: int = 1,
    seed: int = 0,
    limit: int = 100_000,
    stop: Callable[[], bool] | None = None,
) -> list[Episode]:
    """Episode j of explorer p begins at `starts[j]`; it has the key (p, j, 0) and is cut after `limit` steps.

    As many are played at once as `config.lanes` allows. What an episode draws depends on `seed` and its key alone.
    """
    each = max(1, min(len(starts), config.lanes // population))
    lanes = population * each
    episodes: list[Episode] = []
    with Vectoriser(env, lanes, min(config.workers, lanes), config.step_timeout) as envs:
        for first in range(0, len(starts), each):
            if stop is not None and stop():
                break
            # The last wave is filled up with starts that were played already, and not counted.
            wave = [starts[(first + i) % len(starts)] for i in range(each)]
            count = min(each, len(starts) - first)
            episodes += _wave(policy, envs, np.array(wave, np.int64), first, count, population, seed, limit)
    return sorted(episodes, key=lambda episode: episode.key)


def _wave(
    policy: Policy,
    envs: Vectoriser,
    starts: np.ndarray,
    first: int,
    count: int,
    population: int,
    seed: int,
    limit: int,
) -> list[Episode]:
    """One episode in every lane, all begun together; the first `count` of each explorer are given back."""
    each = len(starts)
    lanes = np.arange(population * each)
    words = np.stack([_words(seed, lane // each, first + lane % each) for lane in lanes.tolist()])
    rows, memory = Rows(envs.spec, len(lanes)), policy.initial(len(lanes))
    actions = np.zeros((len(lanes), *envs.spec.action.shape), envs.spec.action.dtype)
    seen = {
        name: np.zeros((len(lanes), *obs.shape), obs.dtype) for name, obs in envs.spec.observations.items()
    }
    active, seeds, found, time = lanes, np.tile(starts, population), [], 0
    while len(active):
        envs.send(active, actions[active], seeds[active])
        tick = envs.wait(active)
        if tick.failures:
            raise CascadeError(
                f"{envs.spec.name}: an environment failed while being measured: {tick.failures[0].cause}"
            )
        times = np.full(len(active), time, np.int64)
        rows.put(active, times, tick)
        for name, part in tick.obs.items():
            seen[name][active] = part
        over = tick.terminated | tick.truncated | (time >= limit)
        for lane, terminated in zip(active[over].tolist(), tick.terminated[over].tolist(), strict=True):
            explorer, index = divmod(lane, each)
            if index < count:
                key = EpisodeKey(explorer, first + index, 0)
                found.append(rows.episode(key, lane, time, terminated))
        active = active[~over]
        keys = keys_at(words, np.full(len(lanes), time, np.int32))
        memory, actions = policy.act(memory, seen, np.full(len(lanes), time == 0), keys)
        rows.put_actions(active, times[~over], actions[active])
        seeds = np.full(len(lanes), STEP, np.int64)
        time += 1
    return found


def _words(seed: int, explorer: int, index: int) -> np.ndarray:
    return np.random.SeedSequence(seed, spawn_key=(explorer, index)).generate_state(2)


def film(env: EnvConfig, start: int, actions: np.ndarray) -> np.ndarray:
    """The frames of an episode, uint8 [n + 1, height, width, 3], played again from its start and its actions."""
    world = make(env)
    try:
        world.reset(start)
        frames = [world.render()]
        for action in actions:
            step = world.step(action)
            frames.append(world.render())
            if step.terminated or step.truncated:
                break
    finally:
        world.close()
    return np.stack(frames)
