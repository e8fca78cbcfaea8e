"""Tiny worlds with known answers, for tests: `probe:NAME`, or `probe:NAME?key=value&key=value`.

Each world is a class whose keyword arguments are its parameters. What it knows about itself (its transition
table, its best return) are attributes.
"""

from __future__ import annotations

import inspect
from typing import Any, Literal
from urllib.parse import parse_qsl

import numpy as np

from cascade.config import EnvConfig
from cascade.envs.protocol import Action, Environment, Timestep
from cascade.envs.registry import name_of, suggestion
from cascade.errors import SettingError
from cascade.specs import ActionSpec, ArraySpec, EnvSpec, ObservationSpec

Kind = Literal["image", "grid", "vector"]


def make(config: EnvConfig) -> Environment:
    """The probe world that `env.id` names, with the parameters that follow its question mark."""
    from cascade.envs.probe_faulty import Faulty
    from cascade.envs.probe_rooms import Pixels, Point, TwoRooms

    worlds: dict[str, type[Probe]] = {
        "bandit": Bandit,
        "chain": Chain,
        "delayed": Delayed,
        "table": Table,
        "faulty": Faulty,
        "two-rooms": TwoRooms,
        "point": Point,
        "pixels": Pixels,
    }
    name, _, query = name_of(config).partition("?")
    if name not in worlds:
        known = ", ".join(f"probe:{key}" for key in worlds)
        raise SettingError("env.id", config.id, f"one of {known}{suggestion(name, list(worlds))}")
    return worlds[name](config, **_parameters(worlds[name], query, config))


def _parameters(world: type[Probe], query: str, config: EnvConfig) -> dict[str, Any]:
    """`a=1&b=x` as keyword arguments, each of the type of its default."""
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(world).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    values: dict[str, Any] = {}
    for key, text in parse_qsl(query, keep_blank_values=True):
        if key not in defaults:
            raise SettingError("env.id", config.id, f"parameters among: {', '.join(defaults)}")
        try:
            values[key] = type(defaults[key])(text)
        except ValueError as error:
            kind = type(defaults[key]).__name__
            raise SettingError("env.id", config.id, f"{key} to be of type {kind}") from error
    return values


class Probe:
    """Base of the probe worlds: a state that starts from a seed, moves by an action, and can be seen."""

    def __init__(
        self,
        config: EnvConfig,
        parts: dict[Kind, ObservationSpec],
        action: ActionSpec,
        *,
        limit: int,
        tasks: tuple[str, ...] = ("reward",),
        info: dict[str, ArraySpec] | None = None,
    ):
        if config.observation not in ("auto", *parts):
            raise SettingError(
                "env.observation", config.observation, f"auto or {' or '.join(parts)} for {config.id}"
            )
        self.kind: Kind = next(iter(parts)) if config.observation == "auto" else config.observation
        self.limit = config.time_limit * config.action_repeat or limit
        self.steps = 0
        self.spec = EnvSpec(config.id, {self.kind: parts[self.kind]}, action, tasks, info or {})

    def begin(self, rng: np.random.Generator) -> None:
        """Set the state for a new episode."""
        raise NotImplementedError

    def move(self, action: Any) -> tuple[tuple[float, ...], bool]:
        """Change the state. Returns a reward per task, and whether the world ended."""
        raise NotImplementedError

    def see(self) -> np.ndarray:
        """The observation, of the kind `self.kind`."""
        raise NotImplementedError

    def tell(self) -> dict[str, np.ndarray]:
        """The info that the spec declares."""
        return {}

    def reset(self, seed: int) -> Timestep:
        self.steps = 0
        self.begin(np.random.default_rng(seed))
        return self._timestep((0.0,) * len(self.spec.tasks), False)

    def step(self, action: Action) -> Timestep:
        self.steps += 1
        if self.spec.action.kind == "discrete":
            index = int(action)
            if not 0 <= index < self.spec.action.size:
                raise ValueError(f"action {index} is not below {self.spec.action.size}")
            return self._timestep(*self.move(index))
        return self._timestep(*self.move(np.asarray(action, np.float32)))

    def render(self) -> np.ndarray:
        """What is observed, its values as shades of grey."""
        shown = self.see().astype(np.float32)
        plane = np.atleast_2d(shown[..., 0] if shown.ndim == 3 else shown)
        low, high = float(plane.min()), float(plane.max())
        grey = ((plane - low) / max(high - low, 1e-6) * 255).astype(np.uint8)
        return np.repeat(np.kron(grey, np.ones((8, 8), np.uint8))[..., None], 3, axis=2)

    def close(self) -> None:
        pass

    def _timestep(self, rewards: tuple[float, ...], terminated: bool) -> Timestep:
        named = dict(zip(self.spec.tasks, rewards, strict=True))
        cut = self.steps >= self.limit and not terminated
        return Timestep({self.kind: self.see()}, named, terminated, cut, self.tell())


def one_hot(index: int, size: int) -> np.ndarray:
    vector = np.zeros(size, np.float32)
    vector[index] = 1.0
    return vector


def vector_of(size: int) -> dict[Kind, ObservationSpec]:
    return {"vector": ObservationSpec("vector", (size,))}


class Bandit(Probe):
    """One step. The last arm pays 1, the first 0, those between in proportion."""

    def __init__(self, config: EnvConfig, *, arms: int = 4):
        super().__init__(config, vector_of(1), ActionSpec("discrete", arms), limit=1)
        self.payoffs = np.linspace(0.0, 1.0, arms)
        self.best_return = 1.0

    def begin(self, rng: np.random.Generator) -> None:
        pass

    def move(self, action: int) -> tuple[tuple[float, ...], bool]:
        return (float(self.payoffs[action]),), True

    def see(self) -> np.ndarray:
        return np.ones(1, np.float32)


class Chain(Probe):
    """States in a row, from the left end; 0 goes left and 1 right. The right end pays 1 and ends it."""

    def __init__(self, config: EnvConfig, *, length: int = 6, limit: int = 20):
        parts: dict[Kind, ObservationSpec] = {
            **vector_of(length),
            "grid": ObservationSpec("grid", (1, length, 1), (2,)),
        }
        super().__init__(
            config, parts, ActionSpec("discrete", 2), limit=limit, info={"state": ArraySpec((), "int16")}
        )
        self.length = length
        self.best_return = 1.0
        self.best_steps = length - 1

    def begin(self, rng: np.random.Generator) -> None:
        self.state = 0

    def move(self, action: int) -> tuple[tuple[float, ...], bool]:
        self.state = max(self.state - 1, 0) if action == 0 else self.state + 1
        arrived = self.state == self.length - 1
        return (float(arrived),), arrived

    def see(self) -> np.ndarray:
        vector = one_hot(self.state, self.length)
        return vector if self.kind == "vector" else vector.astype(np.uint8).reshape(1, -1, 1)

    def tell(self) -> dict[str, np.ndarray]:
        return {"state": np.array(self.state, np.int16)}


class Delayed(Probe):
    """The last of `length` steps pays 1 if the very first action was 1; nothing else matters."""

    def __init__(self, config: EnvConfig, *, length: int = 4):
        super().__init__(config, vector_of(length + 1), ActionSpec("discrete", 2), limit=length)
        self.length = length
        self.best_return = 1.0

    def begin(self, rng: np.random.Generator) -> None:
        self.first = 0

    def move(self, action: int) -> tuple[tuple[float, ...], bool]:
        if self.steps == 1:
            self.first = action
        over = self.steps == self.length
        return (float(over and self.first == 1),), over

    def see(self) -> np.ndarray:
        return one_hot(min(self.steps, self.length), self.length + 1)


class Table(Probe):
    """A fixed random deterministic world: `transitions[state, action]` is the next state, `payoffs[state]`
    what arriving there is worth. The seed of a reset draws the first state; `table` draws the world."""

    def __init__(
        self, config: EnvConfig, *, states: int = 8, actions: int = 4, limit: int = 20, table: int = 0
    ):
        super().__init__(
            config,
            vector_of(states),
            ActionSpec("discrete", actions),
            limit=limit,
            info={"state": ArraySpec((), "int16")},
        )
        rng = np.random.default_rng(table)
        self.transitions = rng.integers(states, size=(states, actions))
        cycle = rng.permutation(states)  # action 0 visits every state in turn, so each reaches each
        self.transitions[cycle, 0] = np.roll(cycle, -1)
        self.payoffs = rng.random(states)

    def begin(self, rng: np.random.Generator) -> None:
        self.state = int(rng.integers(len(self.transitions)))

    def move(self, action: int) -> tuple[tuple[float, ...], bool]:
        self.state = int(self.transitions[self.state, action])
        return (float(self.payoffs[self.state]),), False

    def see(self) -> np.ndarray:
        return one_hot(self.state, len(self.transitions))

    def tell(self) -> dict[str, np.ndarray]:
        return {"state": np.array(self.state, np.int16)}
