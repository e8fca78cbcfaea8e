"""What every world offers, and the wrapper that repeats actions and cuts episodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from cascade.specs import EnvSpec

Action = int | np.integer | np.ndarray
"""An index for discrete actions, float32 [size] in [-1, 1] for continuous ones."""


class Timestep(NamedTuple):
    """What one reset or step returns.

    `terminated` says that the world ended here; `truncated` that the episode was cut although it could
    have gone on; never both. The structure of `obs`, `rewards` and `info` is the one that the `EnvSpec`
    declares, always. After a reset every reward is 0 and both flags are False.
    """

    obs: Mapping[str, np.ndarray]
    rewards: Mapping[str, float]
    terminated: bool
    truncated: bool
    info: Mapping[str, np.ndarray]


@runtime_checkable
class Environment(Protocol):
    """One world. It is deterministic given the seed of its reset and the actions that follow."""

    spec: EnvSpec

    def reset(self, seed: int) -> Timestep:
        """Begin a new episode; the seed decides everything random in it."""

    def step(self, action: Action) -> Timestep:
        """Act once. Not to be called before a reset or after the end of an episode."""

    def render(self) -> np.ndarray:
        """The world as people see it, uint8 [height, width, 3]."""

    def close(self) -> None:
        """Free what the world holds."""


class Paced:
    """Repeats every action and cuts episodes: `action_repeat` and `time_limit` of the settings.

    Rewards of repeated steps are summed; repeating stops where the episode ends. `time_limit` counts
    actions, and is not applied when 0.
    """

    def __init__(self, env: Environment, action_repeat: int = 1, time_limit: int = 0):
        self.env = env
        self.spec = env.spec
        self._repeat = action_repeat
        self._limit = time_limit
        self._actions = 0

    def reset(self, seed: int) -> Timestep:
        self._actions = 0
        return self.env.reset(seed)

    def step(self, action: Action) -> Timestep:
        self._actions += 1
        step = self.env.step(action)
        rewards = dict(step.rewards)
        for _ in range(self._repeat - 1):
            if step.terminated or step.truncated:
                break
            step = self.env.step(action)
            for task, reward in step.rewards.items():
                rewards[task] += reward
        cut = 0 < self._limit <= self._actions and not step.terminated
        return step._replace(rewards=rewards, truncated=step.truncated or cut)

    def render(self) -> np.ndarray:
        return self.env.render()

    def close(self) -> None:
        self.env.close()
