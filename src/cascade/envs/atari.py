"""Atari: `atari:MontezumaRevenge`, or any other game of the Arcade Learning Environment, as DreamerV2 sees it.

A grey picture, the brighter of the last two frames at every pixel, averaged down to 64x64. All 18 actions, each
held for `env.action-repeat` frames; at every frame the last one sticks with probability 0.25. Scores are not
clipped and the loss of a life ends nothing. An episode is cut after 108,000 frames.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd

import numpy as np
from ale_py import ALEInterface, LoggerMode
from ale_py.roms import get_all_rom_ids, get_rom_path

from cascade.config import EnvConfig
from cascade.envs.protocol import Action, Environment, Timestep
from cascade.envs.registry import name_of, suggestion
from cascade.errors import SettingError
from cascade.specs import ActionSpec, ArraySpec, EnvSpec, ObservationSpec

TASK = "reward"
STICKY = 0.25
FRAMES = 108_000
"""Frames of an episode where the settings give no limit: half an hour of play."""

MEMORY: dict[str, dict[str, int | slice]] = {"montezuma_revenge": {"position": slice(42, 44), "room": 3}}
"""By game: what can be read from the console's memory, and where."""


def make(config: EnvConfig) -> Environment:
    """`atari:MontezumaRevenge`; capitals and underscores do not matter."""
    name = name_of(config)
    games = {rom.replace("_", ""): rom for rom in get_all_rom_ids()}
    plain = name.replace("_", "").lower()
    if plain not in games:
        near = suggestion(name, ["".join(map(str.capitalize, rom.split("_"))) for rom in games.values()])
        raise SettingError("env.id", config.id, f"a game of the Arcade Learning Environment{near}")
    return Atari(games[plain], config)


class Atari:
    """One game. `info` has `lives` and, for Montezuma's Revenge, `position` (x, y; y grows upwards) and `room`."""

    def __init__(self, rom: str, config: EnvConfig):
        if config.observation not in ("auto", "image"):
            raise SettingError("env.observation", config.observation, f"auto or image for {config.id}")
        ALEInterface.setLoggerMode(LoggerMode.Error)
        self._rom = get_rom_path(rom)
        self._ale = ALEInterface()
        self._ale.setFloat("repeat_action_probability", STICKY)
        self._ale.setInt("frame_skip", 1)  # every frame is asked for, and the last two are looked at
        self._repeat = config.action_repeat
        self._limit = 0 if config.time_limit else FRAMES
        self._frames = 0
        self._memory = MEMORY.get(rom, {})
        self._ale.loadROM(self._rom)
        self._actions = self._ale.getLegalActionSet()
        height, width = self._ale.getScreenDims()
        size = config.image_size
        self._rows, self._columns = area_weights(height, size), area_weights(width, size).T
        self._area = self._rows[0].sum() * self._columns[:, 0].sum()
        self._screen, self._before = np.zeros((2, height, width), np.uint8)
        self.spec = EnvSpec(
            name=config.id,
            observations={"image": ObservationSpec("image", (size, size, 1))},
            action=ActionSpec("discrete", len(self._actions)),
            tasks=(TASK,),
            info={name: ArraySpec(value.shape, str(value.dtype)) for name, value in self._info().items()},
        )

    def reset(self, seed: int) -> Timestep:
        # The seed is read when a game is loaded, and only then.
        self._ale.setInt("random_seed", seed % 2**31)
        self._ale.loadROM(self._rom)
        self._ale.reset_game()
        self._frames = 0
        self._ale.getScreenGrayscale(self._screen)
        return Timestep(self._observe(self._screen), {TASK: 0.0}, False, False, self._info())

    def step(self, action: Action) -> Timestep:
        pressed = self._actions[int(action)]
        reward, ended, cut = 0.0, False, False
        self._before.fill(0)
        for frame in range(self._repeat):
            reward += self._ale.act(pressed)
            self._frames += 1
            ended = bool(self._ale.game_over(with_truncation=False))
            cut = 0 < self._limit <= self._frames and not ended
            if ended or cut:
                break
            if frame == self._repeat - 2:
                self._ale.getScreenGrayscale(self._before)
        self._ale.getScreenGrayscale(self._screen)
        brighter = np.maximum(self._screen, self._before)
        return Timestep(self._observe(brighter), {TASK: reward}, ended, cut, self._info())

    def render(self) -> np.ndarray:
        """The screen in colour, 210x160."""
        return np.asarray(self._ale.getScreenRGB(), np.uint8)

    def close(self) -> None:
        pass

    def _observe(self, screen: np.ndarray) -> dict[str, np.ndarray]:
        total = self._rows @ screen.astype(np.float32) @ self._columns
        return {"image": np.rint(total / self._area).astype(np.uint8)[:, :, None]}

    def _info(self) -> dict[str, np.ndarray]:
        info: dict[str, np.ndarray] = {"lives": np.array(self._ale.lives(), np.int8)}
        if self._memory:
            memory = self._ale.getRAM().astype(np.int16)
            info |= {name: np.array(memory[place]) for name, place in self._memory.items()}
        return info


@lru_cache
def area_weights(pixels: int, size: int) -> np.ndarray:
    """How much of each pixel of a line lies in each pixel of another, float32 [size, pixels].

    In units that make all of them whole, so that sums over a screen are exact in any order.
    """
    unit = gcd(pixels, size)
    theirs, ours = size // unit, pixels // unit
    first, left = np.arange(pixels) * theirs, np.arange(size)[:, None] * ours
    overlap = np.minimum(left + ours, first + theirs) - np.maximum(left, first)
    return np.maximum(overlap, 0).astype(np.float32)
