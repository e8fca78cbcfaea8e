"""Any Gymnasium environment as a world: images, vectors and dicts of them, discrete or continuous actions."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import load_env_creator
from PIL import Image

from cascade.config import EnvConfig
from cascade.envs.protocol import Action, Environment, Timestep
from cascade.envs.registry import name_of, suggestion
from cascade.errors import CascadeError, SettingError
from cascade.specs import ActionSpec, EnvSpec, ObservationSpec

TASK = "reward"


class Part(NamedTuple):
    """One named part of an observation: what it is, and how it is read from Gymnasium's observation."""

    spec: ObservationSpec
    read: Callable[[Any], np.ndarray]


def make(config: EnvConfig) -> Environment:
    """`gym:ID`, where ID is anything that `gymnasium.make` knows, `module:ID` included."""
    module, _, name = name_of(config).rpartition(":")
    try:
        if module:
            importlib.import_module(module)
        env = gym.make(name, disable_env_checker=True, **_options(name, config))
    except gym.error.DependencyNotInstalled as error:
        raise CascadeError(f"env.id {config.id}: a package that it needs is missing: {error}") from error
    except (gym.error.Error, ImportError) as error:
        near = suggestion(name, list(gym.registry))
        raise SettingError("env.id", config.id, f"an id that Gymnasium knows{near}: {error}") from error
    return GymnasiumEnv(env, config)


def _options(name: str, config: EnvConfig) -> dict[str, Any]:
    """Rendering where the world can draw itself; no limit of its own where the settings give one."""
    options: dict[str, Any] = {"max_episode_steps": -1} if config.time_limit else {}
    entry = getattr(gym.registry.get(name), "entry_point", None)
    creator = load_env_creator(entry) if isinstance(entry, str) else entry
    if "rgb_array" in getattr(creator, "metadata", {}).get("render_modes", ()):
        options["render_mode"] = "rgb_array"
    return options


class GymnasiumEnv:
    """Adapts a `gymnasium.Env`. Its observation space decides the parts, its action space the actions.

    With `observation = "image"`, a world that does not show images itself is observed through `render()`.
    """

    def __init__(self, env: gym.Env, config: EnvConfig):
        self.env = env
        self._parts = _parts(env, config)
        action, self._action = _action(env.action_space, config)
        self.spec = EnvSpec(
            name=config.id,
            observations={name: part.spec for name, part in self._parts.items()},
            action=action,
            tasks=(TASK,),
        )

    def reset(self, seed: int) -> Timestep:
        obs, _ = self.env.reset(seed=seed)
        return Timestep(self._observe(obs), {TASK: 0.0}, False, False, {})

    def step(self, action: Action) -> Timestep:
        obs, reward, terminated, truncated, _ = self.env.step(self._action(action))
        ended = bool(terminated)
        return Timestep(self._observe(obs), {TASK: float(reward)}, ended, bool(truncated) and not ended, {})

    def render(self) -> np.ndarray:
        return _frame(self.env)

    def close(self) -> None:
        self.env.close()

    def _observe(self, obs: Any) -> Mapping[str, np.ndarray]:
        return {name: part.read(obs) for name, part in self._parts.items()}


def _frame(env: gym.Env) -> np.ndarray:
    frame = env.render()
    if not isinstance(frame, np.ndarray):
        raise CascadeError("this environment cannot draw itself: it has no render mode 'rgb_array'")
    return frame


def _parts(env: gym.Env, config: EnvConfig) -> dict[str, Part]:
    """The observation's parts, after the setting env.observation."""
    if config.observation == "grid":
        raise SettingError("env.observation", "grid", f"auto, image or vector for {config.id}")
    parts = _flatten(env.observation_space, "", config)
    if config.observation == "vector":
        parts = {name: part for name, part in parts.items() if part.spec.kind == "vector"}
        if not parts:
            raise SettingError("env.observation", "vector", f"auto or image: {config.id} only shows images")
    if config.observation == "image":
        parts = {name: part for name, part in parts.items() if part.spec.kind == "image"}
        return parts or {"image": _rendered(env, config)}
    return parts


def _rendered(env: gym.Env, config: EnvConfig) -> Part:
    if env.render_mode != "rgb_array":
        raise SettingError(
            "env.observation", "image", f"auto or vector: {config.id} has no render mode 'rgb_array'"
        )
    size = config.image_size
    return Part(ObservationSpec("image", (size, size, 3)), lambda _: resize(_frame(env), size))


def _flatten(space: spaces.Space, name: str, config: EnvConfig) -> dict[str, Part]:
    """Parts of a space, by name: 'a' and 'a.b' in a Dict, '0' and '1' in a Tuple, its kind if it is alone."""
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        children = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        parts: dict[str, Part] = {}
        for key, child in children:
            for full, part in _flatten(child, f"{name}.{key}" if name else str(key), config).items():
                parts[full] = part._replace(read=_within(key, part.read))
        return parts
    part = _leaf(space, name, config)
    return {name or part.spec.kind: part}


def _within(key: Any, read: Callable[[Any], np.ndarray]) -> Callable[[Any], np.ndarray]:
    return lambda obs: read(obs[key])


def _leaf(space: spaces.Space, name: str, config: EnvConfig) -> Part:
    if _is_image(space):
        size = config.image_size
        channels = 1 if len(space.shape) == 2 else space.shape[2]
        return Part(ObservationSpec("image", (size, size, channels)), lambda obs: resize(obs, size))
    if isinstance(space, (spaces.Box, spaces.MultiBinary)):
        return Part(ObservationSpec("vector", (int(np.prod(space.shape)),)), _as_vector)
    if isinstance(space, spaces.Discrete):
        return _one_hot(np.array([space.n]), np.array([space.start]))
    if isinstance(space, spaces.MultiDiscrete):
        return _one_hot(space.nvec.ravel(), space.start.ravel())
    part = f" in part {name!r} of its observation" if name else ""
    raise SettingError(
        "env.id",
        config.id,
        f"Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple observations, not {space}{part}",
    )


def _is_image(space: spaces.Space) -> bool:
    if not isinstance(space, spaces.Box) or space.dtype != np.uint8:
        return False
    colours = len(space.shape) == 2 or (len(space.shape) == 3 and space.shape[2] in (1, 3))
    return colours and min(space.shape[:2]) >= 8


def _as_vector(obs: Any) -> np.ndarray:
    return np.array(obs, np.float32).ravel()


def _one_hot(sizes: np.ndarray, starts: np.ndarray) -> Part:
    """Discrete values as one-hot vectors, one after another."""
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]]) - starts
    total = int(sizes.sum())

    def read(obs: Any) -> np.ndarray:
        vector = np.zeros(total, np.float32)
        vector[np.ravel(obs) + offsets] = 1.0
        return vector

    return Part(ObservationSpec("vector", (total,)), read)


def resize(image: np.ndarray, size: int) -> np.ndarray:
    """The image as uint8 [size, size, channels], in a new array."""
    image = np.asarray(image, np.uint8)
    if image.ndim == 2:
        image = image[:, :, None]
    if image.shape[:2] == (size, size):
        return image.copy()
    flat = image[:, :, 0] if image.shape[2] == 1 else image
    small = np.asarray(Image.fromarray(flat).resize((size, size), Image.Resampling.BILINEAR))
    return small.reshape(size, size, image.shape[2])


def _action(space: spaces.Space, config: EnvConfig) -> tuple[ActionSpec, Callable[[Action], Any]]:
    """The spec of the actions, and how one of ours becomes one of Gymnasium's."""
    if isinstance(space, spaces.Discrete):
        start = int(space.start)
        return ActionSpec("discrete", int(space.n)), lambda action: int(action) + start
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
            raise SettingError(
                "env.id", config.id, f"actions with finite bounds, not {space}; clip them in a wrapper"
            )
        return ActionSpec("continuous", int(np.prod(space.shape))), _rescaled(space)
    raise SettingError(
        "env.id", config.id, f"Discrete or floating-point Box actions, not {space}; flatten them in a wrapper"
    )


def _rescaled(space: spaces.Box) -> Callable[[Action], np.ndarray]:
    """From [-1, 1] to the space's bounds; values outside are clipped."""
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)

    def convert(action: Action) -> np.ndarray:
        unit = np.clip(np.asarray(action, np.float64).reshape(space.shape), -1.0, 1.0)
        return np.clip(low + (unit + 1.0) * 0.5 * (high - low), low, high).astype(space.dtype)

    return convert
