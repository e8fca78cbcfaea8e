"""Crafter: `crafter:world`, its pictures, its reward as a label, and its 22 skills in `info`.

Crafter keeps the creatures of a region in a set and picks among them in the set's order, which changes with the
objects' addresses in memory: the same seed gives different episodes. Here they are picked from in the order in
which they appeared, so that an episode is its seed and its actions.
"""

from __future__ import annotations

from typing import Any

import crafter
import numpy as np
from crafter import constants

from cascade.config import EnvConfig
from cascade.envs.protocol import Action, Environment, Timestep
from cascade.envs.registry import name_of, suggestion
from cascade.errors import SettingError
from cascade.specs import ActionSpec, ArraySpec, EnvSpec, ObservationSpec

TASK = "reward"
NAME = "world"
SKILLS: tuple[str, ...] = tuple(constants.achievements)
"""What the places of `achievements` count."""
ENDLESS = 0


def make(config: EnvConfig) -> Environment:
    """`crafter:world`; there is only one."""
    name = name_of(config)
    if name != NAME:
        raise SettingError("env.id", config.id, f"crafter:{NAME}{suggestion(name, [NAME])}")
    return Crafter(config)


class Ordered(crafter.Env):
    """Crafter's own game, with creatures in the order in which they appeared."""

    def begin(self, seed: int) -> np.ndarray:
        """The first episode that a game made with this seed would play."""
        self._seed, self._episode = seed, 0
        return np.asarray(self.reset())

    def picture(self, size: int) -> np.ndarray:
        """Drawn without a trace: the darkness of nights is drawn from the episode's own random numbers."""
        state = self._world.random.get_state()
        image = np.asarray(self.render((size, size)), np.uint8)
        self._world.random.set_state(state)
        return image

    @property
    def player(self) -> Any:
        return self._player

    def _balance_chunk(self, chunk: Any, objs: set[Any]) -> None:
        if len(objs) > 1:
            return super()._balance_chunk(chunk, [one for one in self._world.objects if one in objs])
        return super()._balance_chunk(chunk, objs)


class Crafter:
    """The game. `info` has `achievements`, how often each of `SKILLS` was done so far, `health` and `position`.

    Death ends an episode; after 10,000 steps it is cut, unless the settings give another limit.
    """

    def __init__(self, config: EnvConfig):
        if config.observation not in ("auto", "image"):
            raise SettingError("env.observation", config.observation, f"auto or image for {config.id}")
        size = config.image_size
        limit = {"length": ENDLESS} if config.time_limit else {}
        self.env = Ordered(size=(size, size), seed=0, **limit)
        self.spec = EnvSpec(
            name=config.id,
            observations={"image": ObservationSpec("image", (size, size, 3))},
            action=ActionSpec("discrete", len(constants.actions)),
            tasks=(TASK,),
            info={
                "achievements": ArraySpec((len(SKILLS),), "int32"),
                "health": ArraySpec((), "int8"),
                "position": ArraySpec((2,), "int16"),
            },
        )

    def reset(self, seed: int) -> Timestep:
        return self._timestep(self.env.begin(seed), 0.0, False, False)

    def step(self, action: Action) -> Timestep:
        image, reward, over, info = self.env.step(int(action))
        died = info["discount"] == 0.0
        return self._timestep(image, float(reward), died, bool(over) and not died)

    def render(self) -> np.ndarray:
        """What is observed, at 576x576."""
        return self.env.picture(576)

    def close(self) -> None:
        pass

    def _timestep(self, image: np.ndarray, reward: float, died: bool, cut: bool) -> Timestep:
        player = self.env.player
        info: dict[str, np.ndarray] = {
            "achievements": np.array([player.achievements[skill] for skill in SKILLS], np.int32),
            "health": np.array(player.health, np.int8),
            "position": np.array(player.pos, np.int16),
        }
        return Timestep({"image": image}, {TASK: reward}, died, cut, info)
