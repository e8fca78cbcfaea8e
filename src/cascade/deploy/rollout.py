"""Whole episodes from given starts, kept in memory: how policies are looked at, outside any budget.

Nothing here is stored as data. Explorer p plays one episode from each start; starts are reset seeds, so that every
method and every explorer meets the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cascade.config import DeployConfig, EnvConfig
from cascade.deploy.game import NONE, Game
from cascade.deploy.rows import Rows
from cascade.envs import Vectoriser, opened
from cascade.envs.protocol import Environment
from cascade.envs.vectorise import LaneGroup
from cascade.errors import CascadeError, cause_of
from cascade.specs import Episode, EpisodeKey
from cascade.types import Policy


def stage(env: EnvConfig, config: DeployConfig, starts: int, population: int = 1) -> Vectoriser:
    """Environments for rollouts: of every explorer as many lanes as `config.lanes` allows and `starts` fill."""
    lanes = population * max(1, min(starts, config.lanes // population))
    return Vectoriser(env, lanes, min(config.workers, lanes), config.step_timeout)


def rollout(
    policy: Policy,
    envs: LaneGroup,
    starts: Sequence[int],
    *,
    population: int = 1,
    seed: int = 0,
    limit: int = 100_000,
    max_failures: int = 20,
    stop: Callable[[], bool] | None = None,
) -> list[Episode]:
    """Episode j of explorer p begins at `starts[j]`; it has the key (p, j, 0) and is cut after `limit` steps.

    What an episode draws depends on `seed` and its key alone, not on how many are played at once.
    """
    each = envs.lanes // population
    rounds = -(-len(starts) // each)
    index = np.arange(rounds * each).reshape(rounds, each).T  # of the start, for each of an explorer's lanes
    own = np.append(np.asarray(starts, np.int64), np.full(rounds * each - len(starts), NONE))[index]
    words = np.array([[_words(seed, p, j) for j in row] for p in range(population) for row in index.tolist()])
    rows, seeds = Rows(envs.spec, envs.lanes), np.tile(own, (population, 1))
    episodes: list[Episode] = []
    for tick, numbers, times, over, actions in Game(
        policy, envs, seeds, words, limit=limit, max_failures=max_failures, stop=stop
    ):
        rows.put(tick.lanes, times, tick)
        for i in np.flatnonzero(over).tolist():
            lane = int(tick.lanes[i])
            key = EpisodeKey(lane // each, int(index[lane % each, numbers[i]]), 0)
            episodes.append(rows.episode(key, lane, int(times[i]), bool(tick.terminated[i])))
        rows.put_actions(tick.lanes, times, actions)
    return sorted(episodes, key=lambda episode: episode.key)


def _words(seed: int, explorer: int, index: int) -> np.ndarray:
    return np.random.SeedSequence(seed, spawn_key=(explorer, index)).generate_state(2)


def film(
    env: EnvConfig,
    start: int,
    actions: np.ndarray,
    keep: Callable[[np.ndarray], np.ndarray] = lambda frame: frame,
) -> np.ndarray:
    """The frames of an episode, uint8 [n + 1, height, width, 3], played again from its start and its actions.

    `keep` makes of each what is kept of it: in full size a long episode may not fit in memory.
    """
    with opened(env) as world:
        world.reset(start)
        frames = [keep(_drawn(world))]
        for action in actions:
            step = world.step(action)
            frames.append(keep(_drawn(world)))
            if step.terminated or step.truncated:
                break
        return np.stack(frames)


def _drawn(world: Environment) -> np.ndarray:
    """A picture of the world. Not every world can give one, and each says so in its own way."""
    try:
        return np.asarray(world.render(), np.uint8)
    except CascadeError:
        raise
    except Exception as error:
        raise CascadeError(
            f"{world.spec.name}: cannot draw itself ({cause_of(error)}); give it a render() that "
            "returns uint8 [height, width, 3]"
        ) from error
