"""DeepMind Control: `dmc:walker` with four tasks at once, `dmc:DOMAIN-TASK` for any other of the suite.

The walker's rewards for stand, walk, run and flip are read from one and the same physics. The first three are
the suite's; flip is URLB's: stand · (5·spin + 1)/6, where spin rises from 0 to 1 as the angular momentum of the
body about its centre of mass rises from 0 to 5.

`?draw=fast` leaves out shadows, reflections and smoothed edges, which cost most of the time without a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from types import ModuleType
from typing import Any

import numpy as np

from cascade.config import EnvConfig
from cascade.envs import gl
from cascade.envs.protocol import Action, Environment, Timestep
from cascade.envs.registry import choices_of, name_of, suggestion
from cascade.errors import CascadeError, SettingError
from cascade.specs import ActionSpec, ArraySpec, EnvSpec, ObservationSpec

Reward = Callable[[Any], float]
"""A task's reward of the physics as it stands."""

SPIN = 5.0
UNBOUNDED = 1e10
"""MuJoCo's bound of a control that has none."""
CAMERAS = {"quadruped": 2}
"""Which camera looks on, where it is not the first."""
PLAIN = {"shadow": False, "reflection": False}
DRAWING = ("full", "fast")


def make(config: EnvConfig) -> Environment:
    """`dmc:walker`, `dmc:cheetah-run`, `dmc:walker?draw=fast`."""
    name = name_of(config).partition("?")[0]
    fast = choices_of(config, {"draw": DRAWING})["draw"] == "fast"
    suite = _suite()
    domain, _, task = name.partition("-")
    known = [f"{one}-{other}" for one, other in suite.ALL_TASKS]
    if name != "walker" and name not in known:
        expected = f"dmc:walker or dmc:DOMAIN-TASK{suggestion(name, ['walker', *known])}"
        raise SettingError("env.id", config.id, expected)
    options: dict[str, Any] = {"random": 0}
    if config.time_limit:
        options["time_limit"] = inf
    env = suite.load(domain, task or "stand", task_kwargs=options)
    return Control(env, config, task or walker_tasks(), CAMERAS.get(domain, 0), fast)


def _suite() -> ModuleType:
    """dm_control's suite, with whatever OpenGL there is."""
    chosen = gl.choose()
    try:
        from dm_control import suite
    except Exception as error:  # what a broken OpenGL raises at import depends on how it is broken
        raise CascadeError(
            f"dm_control cannot be loaded with {gl.VARIABLE}={chosen}: {error}; {gl.ADVICE}"
        ) from error
    return suite


def walker_tasks() -> dict[str, Reward]:
    """The rewards of the walker's four tasks."""
    from dm_control.suite.walker import PlanarWalker
    from dm_control.utils.rewards import tolerance

    stand, walk, run = (PlanarWalker(move_speed=speed).get_reward for speed in (0, 1, 8))

    def flip(physics: Any) -> float:
        momentum = physics.named.data.subtree_angmom["torso"][1]
        spin = tolerance(momentum, bounds=(SPIN, inf), margin=SPIN, value_at_margin=0, sigmoid="linear")
        return float(stand(physics) * (5 * spin + 1) / 6)

    return {"stand": stand, "walk": walk, "run": run, "flip": flip}


class Control:
    """One world of the suite. It repeats actions itself: rewards are summed, only the last state is drawn.

    `info` has the joints' positions `qpos` and speeds `qvel`, from which a state can be drawn again, and for the
    walker `position` (along the ground, height) of its torso and `upright`, 1 on its feet and -1 on its head.
    """

    def __init__(
        self, env: Any, config: EnvConfig, tasks: Mapping[str, Reward] | str, camera: int, fast: bool
    ):
        if config.observation == "grid":
            raise SettingError("env.observation", "grid", f"auto, image or vector for {config.id}")
        self.env = env
        self._tasks = tasks
        self._repeat = config.action_repeat
        self._walks = not isinstance(tasks, str)
        self._camera = min(camera, env.physics.model.ncam - 1)
        self._flags = PLAIN if fast else {}
        if fast:
            env.physics.model.vis.quality.offsamples = 0
        self._view: Any = None
        if config.observation != "vector":
            self._view = self._look(config.image_size)
        self._centre, self._half = _bounds(env.action_spec(), config)
        self.spec = self._make_spec(config)

    def reset(self, seed: int) -> Timestep:
        self.env.task.random.seed(seed % 2**32)
        step = self.env.reset()
        return self._timestep(step, dict.fromkeys(self.spec.tasks, 0.0), False)

    def step(self, action: Action) -> Timestep:
        control = self._centre + self._half * np.clip(np.asarray(action, np.float64), -1.0, 1.0)
        rewards = dict.fromkeys(self.spec.tasks, 0.0)
        for _ in range(self._repeat):
            step = self.env.step(control)
            for task, reward in self._rewards(step).items():
                rewards[task] += reward
            if step.last():
                break
        return self._timestep(step, rewards, step.last())

    def render(self) -> np.ndarray:
        """As its camera sees it, 240x320."""
        try:
            return np.asarray(
                self.env.physics.render(240, 320, self._camera, render_flag_overrides=self._flags)
            )
        except Exception as error:
            raise CascadeError(f"{self.spec.name} cannot be drawn: {error}; {gl.ADVICE}") from error

    def close(self) -> None:
        self.env.close()

    def _rewards(self, step: Any) -> Mapping[str, float]:
        if isinstance(self._tasks, str):
            return {self._tasks: float(step.reward)}
        return {task: float(reward(self.env.physics)) for task, reward in self._tasks.items()}

    def _timestep(self, step: Any, rewards: Mapping[str, float], last: bool) -> Timestep:
        ended = bool(last and step.discount == 0.0)
        obs = {"image": self._draw()} if self._view is not None else {"vector": _flat(step.observation)}
        return Timestep(obs, rewards, ended, bool(last) and not ended, self._info())

    def _info(self) -> dict[str, np.ndarray]:
        data = self.env.physics.data
        info = {"qpos": np.array(data.qpos, np.float32), "qvel": np.array(data.qvel, np.float32)}
        if self._walks:
            torso = 1  # the first body after the world
            info["position"] = data.xpos[torso, [0, 2]].astype(np.float32)
            info["upright"] = np.array(data.xmat[torso, 8], np.float32)
        return info

    def _look(self, size: int) -> Any:
        from dm_control.mujoco import Camera

        try:
            return Camera(self.env.physics, size, size, self._camera)
        except Exception as error:  # so does what it raises when it draws
            raise CascadeError(f"pictures need OpenGL, which gave: {error}; {gl.ADVICE}") from error

    def _draw(self) -> np.ndarray:
        return np.array(self._view.render(render_flag_overrides=self._flags), np.uint8)

    def _make_spec(self, config: EnvConfig) -> EnvSpec:
        if self._view is not None:
            part = ObservationSpec("image", (config.image_size, config.image_size, 3))
        else:
            sizes = [int(np.prod(one.shape)) for one in self.env.observation_spec().values()]
            part = ObservationSpec("vector", (sum(sizes),))
        return EnvSpec(
            name=config.id,
            observations={part.kind: part},
            action=ActionSpec("continuous", len(self._half)),
            tasks=(self._tasks,) if isinstance(self._tasks, str) else tuple(self._tasks),
            info={name: ArraySpec(value.shape, str(value.dtype)) for name, value in self._info().items()},
        )


def _flat(observation: Mapping[str, Any]) -> np.ndarray:
    """All parts of a state, one after another."""
    return np.concatenate([np.ravel(part) for part in observation.values()]).astype(np.float32)


def _bounds(spec: Any, config: EnvConfig) -> tuple[np.ndarray, np.ndarray]:
    """Centre and half width of the controls."""
    low, high = (
        np.broadcast_to(bound, spec.shape).astype(np.float64) for bound in (spec.minimum, spec.maximum)
    )
    if max(np.abs(low).max(), np.abs(high).max()) >= UNBOUNDED:
        raise SettingError("env.id", config.id, "a task whose controls are bounded")
    return (low + high) / 2, (high - low) / 2
