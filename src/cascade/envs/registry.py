"""From `env.id` to a world.

A new family is one file with `make(config) -> Environment` and one line in `SCHEMES`. Files are imported
only when one of their worlds is asked for.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any
from urllib.parse import parse_qsl

from cascade.config import EnvConfig
from cascade.envs.protocol import Environment, Paced
from cascade.errors import CascadeError, MissingExtra, SettingError, cause_of, did_you_mean
from cascade.specs import EnvSpec

ENTRY_POINTS = "cascade.environments"
"""Group in which other packages offer worlds: name -> callable(EnvConfig) -> Environment or gymnasium.Env."""


@dataclass(frozen=True)
class Scheme:
    """A family of worlds: where it is made, and what must be installed for it."""

    factory: str
    usage: str
    needs: str = ""
    extra: str = ""
    repeats: bool = False
    """its file sees to env.action-repeat itself, because not every repeated step has to be looked at"""


SCHEMES = {
    "minigrid": Scheme("cascade.envs.minigrid:make", "minigrid:FourRooms-v0"),
    "atari": Scheme(
        "cascade.envs.atari:make", "atari:MontezumaRevenge", needs="ale_py", extra="atari", repeats=True
    ),
    "crafter": Scheme("cascade.envs.crafter_env:make", "crafter:world", needs="crafter", extra="crafter"),
    "dmc": Scheme("cascade.envs.dmc:make", "dmc:walker", needs="dm_control", extra="dmc", repeats=True),
    "gym": Scheme("cascade.envs.gymnasium_env:make", "gym:CartPole-v1"),
    "probe": Scheme("cascade.envs.probe:make", "probe:chain"),
}


def make(config: EnvConfig) -> Environment:
    """The world that `config` describes."""
    world = _factory(config)(config)
    if not (isinstance(world, Environment) and isinstance(world.spec, EnvSpec)):
        world = _adapt(world, config)
    scheme = SCHEMES.get(config.id.partition(":")[0])
    repeat = 1 if scheme is not None and scheme.repeats else config.action_repeat
    if repeat > 1 or config.time_limit > 0:
        world = Paced(world, repeat, config.time_limit)
    return world


@contextmanager
def opened(config: EnvConfig) -> Iterator[Environment]:
    """A world in this process, closed in the end; whatever it raises is one line that names it."""
    try:
        world = make(config)
        try:
            yield world
        finally:
            world.close()
    except CascadeError:
        raise
    except Exception as error:
        raise CascadeError(f"env.id {config.id}: failed ({cause_of(error)}); fix the environment") from error


def spec_of(config: EnvConfig) -> EnvSpec:
    """What the world gives and takes; it is made once to find out."""
    with opened(config) as world:
        return world.spec


def name_of(config: EnvConfig) -> str:
    """The part of `env.id` after its scheme."""
    return config.id.partition(":")[2]


def choices_of(config: EnvConfig, ways: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """What `env.id` chooses after its question mark (`?draw=fast`); of an option it leaves out, the first choice."""
    said = dict(parse_qsl(config.id.partition("?")[2], keep_blank_values=True))
    chosen = {option: said.pop(option, choices[0]) for option, choices in ways.items()}
    if said or any(chosen[option] not in choices for option, choices in ways.items()):
        known = ", ".join(
            " or ".join(f"{option}={choice}" for choice in choices) for option, choices in ways.items()
        )
        raise SettingError("env.id", config.id, f"after the question mark {known}")
    return chosen


def suggestion(word: str, known: list[str]) -> str:
    """' (did you mean ...?)' with the nearest known words, or nothing."""
    return did_you_mean(get_close_matches(word, known, n=3, cutoff=0.5))


def _factory(config: EnvConfig) -> Callable[[EnvConfig], Any]:
    """The first of: a family of SCHEMES, another package's entry point, `module:function`."""
    scheme, _, rest = config.id.partition(":")
    if scheme in SCHEMES:
        family = SCHEMES[scheme]
        if family.needs and importlib.util.find_spec(family.needs) is None:
            raise MissingExtra(f"env.id {config.id}", family.extra)
        return _load(family.factory)
    entries = importlib.metadata.entry_points(group=ENTRY_POINTS)
    for entry in entries:
        if entry.name in (config.id, scheme):
            return _load_entry(config, entry)
    if rest and _importable(scheme):
        return _load_named(config, scheme, rest)
    names = [*SCHEMES, *(entry.name for entry in entries)]
    usage = ", ".join([*(family.usage for family in SCHEMES.values()), *(entry.name for entry in entries)])
    hint = suggestion(scheme, names)
    if rest and not hint:
        hint = f"; there is no module {scheme}, here or installed"
    raise SettingError("env.id", config.id, f"a world such as {usage}, or module:function{hint}")


def _load(target: str) -> Callable[[EnvConfig], Any]:
    module, _, name = target.partition(":")
    factory: Callable[[EnvConfig], Any] = getattr(importlib.import_module(module), name)
    return factory


def _load_entry(config: EnvConfig, entry: importlib.metadata.EntryPoint) -> Callable[[EnvConfig], Any]:
    try:
        factory: Callable[[EnvConfig], Any] = entry.load()
    except (ImportError, AttributeError) as error:
        raise CascadeError(
            f"env.id {config.id}: entry point {entry.value!r} cannot be loaded: {error}"
        ) from error
    return factory


def _load_named(config: EnvConfig, module: str, name: str) -> Callable[[EnvConfig], Any]:
    try:
        return _load(f"{module}:{name}")
    except AttributeError as error:
        raise SettingError("env.id", config.id, f"a function that module {module} has") from error


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _adapt(world: Any, config: EnvConfig) -> Environment:
    import gymnasium as gym

    from cascade.envs.gymnasium_env import GymnasiumEnv

    if not isinstance(world, gym.Env):
        raise CascadeError(
            f"env.id {config.id}: its factory returned {type(world).__name__}, "
            "expected a gymnasium.Env or an object with spec, reset, step, render and close"
        )
    return GymnasiumEnv(world, config)
