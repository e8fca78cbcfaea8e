"""Atari: `atari:MontezumaRevenge`, or any other game of the Arcade Learning Environment, as DreamerV2 sees it.

A grey picture, the brighter of the last two frames at every pixel, averaged down to 64x64. All 18 actions, each
held for `env.action-repeat` frames; at every frame the last one sticks with probability 0.25. Scores are not
clipped and the loss of a life ends nothing. An episode is cut after 108,000 frames.

The emulator can make actions stick by itself, but takes a new seed only when it loads a game, which costs as much
as a few hundred actions. Here the seed of a reset decides what sticks, and the emulator goes back to a saved start.
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

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
        self._repeat = config.action_repeat
        self._limit = 0 if config.time_limit else FRAMES
        self._memory = MEMORY.get(rom, {})
        self._ale = _emulator(rom)
        self._actions = self._ale.getLegalActionSet()
        self._start, self._first = self._ale.cloneState(), self._ale.getScreenGrayscale()
        self._screen, self._before = np.zeros_like(self._first), np.zeros_like(self._first)
        height, width = self._first.shape
        size = config.image_size
        self._rows, self._columns = Averages.of(height, size), Averages.of(width, size)
        self.spec = EnvSpec(
            name=config.id,
            observations={"image": ObservationSpec("image", (size, size, 1))},
            action=ActionSpec("discrete", len(self._actions)),
            tasks=(TASK,),
            info={name: ArraySpec(value.shape, str(value.dtype)) for name, value in self._info().items()},
        )

    def reset(self, seed: int) -> Timestep:
        self._ale.restoreState(self._start)
        self._random = np.random.default_rng(seed)
        self._held = self._actions[0]
        self._frames = 0
        return Timestep(self._observe(self._first), {TASK: 0.0}, False, False, self._info())

    def step(self, action: Action) -> Timestep:
        pressed = self._actions[int(action)]
        reward, ended, cut = 0.0, False, False
        self._before.fill(0)
        for frame, sticks in enumerate(self._random.random(self._repeat) < STICKY):
            self._held = self._held if sticks else pressed
            reward += self._ale.act(self._held)
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
        total = self._columns.sums(self._rows.sums(screen).T).T
        return {"image": np.rint(total / (self._rows.area * self._columns.area)).astype(np.uint8)[:, :, None]}

    def _info(self) -> dict[str, np.ndarray]:
        info: dict[str, np.ndarray] = {"lives": np.array(self._ale.lives(), np.int8)}
        if self._memory:
            memory = self._ale.getRAM().astype(np.int16)
            info |= {name: np.array(memory[place]) for name, place in self._memory.items()}
        return info


def _emulator(rom: str) -> ALEInterface:
    """The game at its start. Every frame is asked for, and nothing is left to chance."""
    ALEInterface.setLoggerMode(LoggerMode.Error)
    ale = ALEInterface()
    ale.setInt("frame_skip", 1)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(get_rom_path(rom))
    ale.reset_game()
    return ale


class Averages(NamedTuple):
    """Which lines of a picture lie in each line of a smaller one, and how much of them: int and float32 [n, size].

    Weights are whole numbers, in units in which everything is, so that sums are exact in any order. No matrix
    product is used: its threads would get in each other's way.
    """

    lines: np.ndarray
    weights: np.ndarray
    area: int

    @classmethod
    def of(cls, pixels: int, size: int) -> Averages:
        """From `pixels` lines to `size`."""
        unit = gcd(pixels, size)
        theirs, ours = (
            size // unit,
            pixels // unit,
        )  # how many units a line is, in the large and the small picture
        edge = np.arange(size) * ours
        lines = edge // theirs + np.arange(1 + -(-ours // theirs))[:, None]
        overlap = np.minimum(edge + ours, (lines + 1) * theirs) - np.maximum(edge, lines * theirs)
        return cls(np.minimum(lines, pixels - 1), np.maximum(overlap, 0).astype(np.float32), ours)

    def sums(self, picture: np.ndarray) -> np.ndarray:
        """The weighted sums of the lines, float32 [size, width]."""
        return np.asarray((picture[self.lines] * self.weights[:, :, None]).sum(0))
