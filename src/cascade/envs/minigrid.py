"""MiniGrid: the agent's partial view, as symbols or as a picture. The mission is not shown.

`?compass=shown` adds which way the agent looks, as MiniGrid's own observations do: a part of its own, 0 to 3 for
east, south, west and north. An agent that only sees its view has to count its turns. `?position=shown` adds where it
stands, column and row, as a robot's positioning system would. `?actions=moves` leaves it the actions left, right and
forward of MiniGrid's seven, `?actions=doors` toggle too: where nothing can be picked up the others do nothing. They
combine: `?compass=shown&actions=moves`.

`MultiRoom-N4-S5-v0`, in spite of its name, has six rooms and a limit of 120 steps; `-v1` has the four rooms
of its name and a limit of 80. FourRooms has a limit of 100. Other ids are MiniGrid's own.

A view is MiniGrid's own array, uint8 [x, y, 3]: object, colour and state of each cell, the agent in the
middle of the last row (x = 3, y = 6 of 7) and looking towards y = 0. The agent's own cell shows what it
carries. State is 0 to 2 for doors (open, closed, locked); the index 3 is kept for the direction of an
agent, which only appears in views of a whole level.
"""

from __future__ import annotations

import os

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")

from typing import Any, Literal

import gymnasium as gym
import minigrid
import numpy as np
from gymnasium.envs.registration import load_env_creator
from minigrid.core.actions import Actions
from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX
from minigrid.core.grid import Grid
from minigrid.core.world_object import WorldObj
from minigrid.minigrid_env import MiniGridEnv

from cascade.config import EnvConfig
from cascade.envs.minigrid_view import View
from cascade.envs.protocol import Action, Environment, Paced, Timestep
from cascade.envs.registry import choices_of, name_of, suggestion
from cascade.errors import SettingError
from cascade.specs import ActionSpec, ArraySpec, EnvSpec, ObservationSpec

TASK = "reward"
PREFIX = "MiniGrid-"
CLASSES = (len(OBJECT_TO_IDX), len(COLOR_TO_IDX), 4)
UNSEEN, AGENT = OBJECT_TO_IDX["unseen"], OBJECT_TO_IDX["agent"]
UP = 3
OPTIONAL = ("hidden", "shown")
"""Whether an observation is part of what the agent sees; the first is the default."""
_MOVES = (Actions.left, Actions.right, Actions.forward)
ACTIONS = {"all": tuple(Actions), "moves": _MOVES, "doors": (*_MOVES, Actions.toggle)}
"""What the agent may do, by the name that `env.id` has for it."""


def make(config: EnvConfig) -> Environment:
    """`minigrid:FourRooms-v0`, in full `minigrid:MiniGrid-FourRooms-v0`; options follow a question mark."""
    name = name_of(config).partition("?")[0]
    chosen = choices_of(config, {"compass": OPTIONAL, "position": OPTIONAL, "actions": tuple(ACTIONS)})
    spec = gym.registry.get(name) or gym.registry.get(PREFIX + name)
    if spec is None or not str(spec.entry_point).startswith(f"{minigrid.__name__}."):
        known = [key.removeprefix(PREFIX) for key in gym.registry if key.startswith(PREFIX)]
        raise SettingError(
            "env.id", config.id, f"a MiniGrid id{suggestion(name.removeprefix(PREFIX), known)}"
        )
    options = dict(spec.kwargs)
    if config.time_limit:
        options["max_steps"] = config.time_limit * config.action_repeat
    shown = tuple(name for name, choice in chosen.items() if choice == "shown")
    return MiniGrid(load_env_creator(spec.entry_point)(**options), config, shown, chosen["actions"])


class MiniGrid:
    """One MiniGrid world. `info` says where the agent is: `agent_pos` (x, y) and `agent_dir`."""

    def __init__(
        self, env: MiniGridEnv, config: EnvConfig, shown: tuple[str, ...] = (), actions: str = "all"
    ):
        if config.observation == "vector":
            raise SettingError("env.observation", "vector", f"auto, grid or image for {config.id}")
        self.env = env
        self._part: Literal["image", "grid"] = "image" if config.observation == "image" else "grid"
        self._size = config.image_size
        self._shown, self._actions = shown, ACTIONS[actions]
        view = env.agent_view_size
        if self._part == "image" and self._size < 4 * view:
            raise SettingError(
                "env.image-size", self._size, f"at least {4 * view} to tell {view} cells apart"
            )
        if type(env).gen_obs is MiniGridEnv.gen_obs and type(env).gen_obs_grid is MiniGridEnv.gen_obs_grid:
            env.gen_obs = View(env)  # the same view, several times faster
        shape = (self._size, self._size, 3) if self._part == "image" else (view, view, 3)
        classes = CLASSES if self._part == "grid" else ()
        parts: dict[str, ObservationSpec] = {self._part: ObservationSpec(self._part, shape, classes)}
        if "compass" in shown:
            parts["compass"] = ObservationSpec("grid", (1, 1, 1), (4,))
        if "position" in shown:
            parts["position"] = ObservationSpec("grid", (1, 1, 2), (env.width, env.height))
        self.spec = EnvSpec(
            name=config.id,
            observations=parts,
            action=ActionSpec("discrete", len(self._actions)),
            tasks=(TASK,),
            info={"agent_pos": ArraySpec((2,), "int16"), "agent_dir": ArraySpec((), "int8")},
        )

    def reset(self, seed: int) -> Timestep:
        obs, _ = self.env.reset(seed=seed)
        return self._timestep(obs, 0.0, False, False)

    def step(self, action: Action) -> Timestep:
        obs, reward, terminated, truncated, _ = self.env.step(self._actions[int(action)])
        return self._timestep(obs, float(reward), bool(terminated), bool(truncated))

    def render(self) -> np.ndarray:
        """The whole level, with the agent's view lit."""
        return np.asarray(self.env.get_frame(), np.uint8)

    def close(self) -> None:
        self.env.close()

    def _timestep(self, obs: dict[str, Any], reward: float, terminated: bool, truncated: bool) -> Timestep:
        symbols = obs["image"]
        if self._part == "image":
            symbols = draw_grid(symbols, self._size)
        env = self.env
        info: dict[str, np.ndarray] = {
            "agent_pos": np.array(env.agent_pos, np.int16),
            "agent_dir": np.array(env.agent_dir, np.int8),
        }
        parts: dict[str, np.ndarray] = {self._part: symbols}
        if "compass" in self._shown:
            parts["compass"] = np.full((1, 1, 1), env.agent_dir, np.uint8)
        if "position" in self._shown:
            parts["position"] = np.array(env.agent_pos, np.uint8).reshape(1, 1, 2)
        # A goal reached on the last step allowed is an end, not a cut.
        return Timestep(parts, {TASK: reward}, terminated, truncated and not terminated, info)


def reachable_cells(env: Environment) -> np.ndarray:
    """Cells where the agent can come to stand, bool [width, height], indexed like `agent_pos`.

    Searched from the agent's present cell, through doors unless they are locked and past things that can be
    picked up. Goal and lava count, but end the episode: nothing is reached through them.
    """
    world = env.env if isinstance(env, Paced) else env
    if not isinstance(world, MiniGrid):
        raise TypeError(f"reachable cells are known for MiniGrid worlds, not for {type(world).__name__}")
    grid = world.env.grid
    reached = np.zeros((grid.width, grid.height), bool)
    start = tuple(int(c) for c in world.env.agent_pos)
    reached[start] = True
    frontier = [start]
    while frontier:
        x, y = frontier.pop()
        for i, j in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
            inside = 0 <= i < grid.width and 0 <= j < grid.height
            if not inside or reached[i, j] or not _can_enter(grid.get(i, j)):
                continue
            reached[i, j] = True
            if not _ends(grid.get(i, j)):
                frontier.append((i, j))
    return reached


def _can_enter(cell: WorldObj | None) -> bool:
    if cell is None or cell.can_overlap() or cell.can_pickup():
        return True
    return bool(cell.type == "door" and not cell.is_locked)


def _ends(cell: WorldObj | None) -> bool:
    return cell is not None and cell.type in ("goal", "lava")


def draw_grid(symbols: np.ndarray, size: int = 64, agent: bool = True) -> np.ndarray:
    """A symbolic view uint8 [x, y, 3] as MiniGrid draws it, uint8 [size, size, 3].

    Tiles are as large as fit; what is left over stays black, at the right and at the bottom. Any indices
    below `CLASSES` can be drawn, so predictions can. `agent` draws it where it stands in a partial view.
    """
    width, height = symbols.shape[:2]
    pixels = size // max(width, height)
    if pixels < 1:
        raise ValueError(f"a view of {width}x{height} cells cannot be drawn in {size} pixels")
    codes = (symbols[..., 0].astype(np.intp) * CLASSES[1] + symbols[..., 1]) * CLASSES[2] + symbols[..., 2]
    if agent:
        codes[width // 2, height - 1] += len(_known(pixels)) // 2
    tiles = _tiles(pixels, codes)
    image = np.zeros((size, size, 3), np.uint8)
    # [x, y, row, column, 3] -> [y, row, x, column, 3]
    drawn = tiles[codes].transpose(1, 2, 0, 3, 4).reshape(height * pixels, width * pixels, 3)
    image[: height * pixels, : width * pixels] = drawn
    return image


_TABLES: dict[int, tuple[np.ndarray, np.ndarray]] = {}
"""By tile size: every tile there can be, without and with the agent on it, and which are drawn already."""


def _table(pixels: int) -> tuple[np.ndarray, np.ndarray]:
    if pixels not in _TABLES:
        count = 2 * int(np.prod(CLASSES))
        _TABLES[pixels] = np.zeros((count, pixels, pixels, 3), np.uint8), np.zeros(count, bool)
    return _TABLES[pixels]


def _known(pixels: int) -> np.ndarray:
    return _table(pixels)[1]


def _tiles(pixels: int, codes: np.ndarray) -> np.ndarray:
    """The table of tiles, with at least those of `codes` drawn."""
    tiles, known = _table(pixels)
    if not known[codes].all():
        for code in np.unique(codes):
            tiles[code] = _draw_tile(int(code), pixels)
            known[code] = True
    return tiles


def _draw_tile(code: int, pixels: int) -> np.ndarray:
    here, symbol = divmod(code, int(np.prod(CLASSES)))
    kind, colour, state = (int(index) for index in np.unravel_index(symbol, CLASSES))
    direction = UP if here else state if kind == AGENT else None
    cell = WorldObj.decode(kind, colour, state)
    return np.asarray(
        Grid.render_tile(cell, agent_dir=direction, highlight=kind != UNSEEN, tile_size=pixels), np.uint8
    )
