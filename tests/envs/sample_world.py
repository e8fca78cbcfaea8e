"""A world from outside the package, in Gymnasium's terms and in ours."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from cascade.config import EnvConfig
from cascade.envs.protocol import Timestep
from cascade.specs import ActionSpec, EnvSpec, ObservationSpec


class Echo(gym.Env):
    """Shows a fixed observation, remembers the last action, pays 1 a step and ends after five."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, observation_space, action_space, observation=None):
        self.observation_space = observation_space
        self.action_space = action_space
        self.render_mode = "rgb_array"
        self.observation = observation_space.sample() if observation is None else observation
        self.last_action = None
        self.count = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self.observation, {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.last_action = action
        self.count += 1
        return self.observation, 1, self.count == 5, False, {"anything": object()}

    def render(self):
        return np.full((20, 30, 3), 7, np.uint8)


def echo(config: EnvConfig) -> gym.Env:
    return Echo(spaces.Box(-1, 1, (3,)), spaces.Discrete(2), np.array([0.5, 0.0, -0.5], np.float32))


def broken(config: EnvConfig) -> gym.Env:
    """A sensor that fails."""
    return Echo(spaces.Box(-1, 1, (3,)), spaces.Discrete(2), np.array([0.0, np.nan, 0.0], np.float32))


class Wrong:
    """Its observations are not what its spec says."""

    def __init__(self, config: EnvConfig):
        self.spec = EnvSpec(config.id, {"vector": ObservationSpec("vector", (2,))}, ActionSpec("discrete", 2))

    def reset(self, seed):
        shape = (2,) if seed == 0 else (1,)
        return Timestep({"vector": np.zeros(shape, np.float32)}, {"reward": 0.0}, False, False, {})

    def step(self, action):
        return self.reset(0)

    def render(self):
        return np.zeros((8, 8, 3), np.uint8)

    def close(self):
        pass


def talkative(config: EnvConfig) -> gym.Env:
    """A simulator that fails at its first step, with more than one line to say."""
    env = echo(config)
    env.step = stumble
    return env


def stumble(action):
    raise RuntimeError("\nno contact solved\nbody 3: nan")


def nothing(config: EnvConfig) -> int:
    return 3
