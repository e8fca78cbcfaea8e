"""Runs from Python: `cascade.run(...)` starts or continues one, `cascade.open(path)` opens a stored one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import jax

from cascade.config import RunConfig
from cascade.data.store import Store
from cascade.deploy import RandomPolicy
from cascade.envs import spec_of
from cascade.errors import CascadeError, SettingError
from cascade.explore.policy import PopulationPolicy
from cascade.presets import preset as find_preset
from cascade.run import state
from cascade.run.checkpoint import Checkpoints
from cascade.run.folder import Folder
from cascade.run.loop import Loop, Watch
from cascade.run.results import Record, Results
from cascade.run.signals import Interrupted, listening
from cascade.run.state import State, of_seed
from cascade.run.train import is_convolutional
from cascade.specs import EnvSpec
from cascade.types import Policy
from cascade.world.model import WorldModel


class Silent:
    """Watches without a word."""

    def phase(self, at: state.Position, total: int) -> None: ...

    def step(self, at: state.Position, values: dict[str, float]) -> None: ...

    def note(self, text: str) -> None: ...


@dataclass(frozen=True)
class Run:
    """A run on disk: its settings, data, explorers and results."""

    path: Path
    settings: RunConfig
    seeds: tuple[int, ...]
    preset: str

    @cached_property
    def spec(self) -> EnvSpec:
        """What its environment gives and takes."""
        return self.store(self.seeds[0]).spec

    @property
    def results(self) -> list[Record]:
        """One record for each seed, deployment, metric and task."""
        return Results.open(Folder(self.path).results).records

    def store(self, seed: int | None = None) -> Store:
        """The data that a seed collected."""
        return Folder(self.path).store(self._known(seed))

    def world(self, seed: int | None = None) -> WorldModel:
        """The world model of a seed, as last saved."""
        model: WorldModel = self._state(seed).models.world.model
        return model

    def explorers(self, seed: int | None = None, greedy: bool = False) -> Policy:
        """The population of a seed as one policy; uniform actions for the method that has no explorers."""
        saved = self._state(seed)
        if saved.explorers is None:
            return RandomPolicy(self.spec.action)
        return PopulationPolicy(saved.models.world.model, saved.explorers.agents.actor.model, greedy)

    def _known(self, seed: int | None) -> int:
        seed = self.seeds[0] if seed is None else seed
        if seed not in self.seeds:
            raise SettingError("seed", seed, f"one of the run's: {', '.join(map(str, self.seeds))}")
        return seed

    def _state(self, seed: int | None) -> State:
        seed = self._known(seed)
        group = next(group for group in groups(self.spec, self.seeds) if seed in group)
        keys = state.seed_keys(group)
        like = jax.eval_shape(lambda: state.create(self.spec, self.settings, keys))
        checkpoints = Checkpoints(Folder(self.path).checkpoints(group), read_only=True)
        saved: State = checkpoints.restore({"state": like})["state"]
        one: State = of_seed(saved, group.index(seed))
        return one


def groups(spec: EnvSpec, seeds: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Seeds that train side by side: all of them, unless the model has convolutions, which fill a device alone."""
    return [(seed,) for seed in seeds] if is_convolutional(spec) else [seeds]


def open_run(path: Path | str) -> Run:
    """A run that was started before, whether it has ended or not."""
    folder = Folder(Path(path))
    started = folder.read()
    return Run(folder.path, started.config, started.seeds, started.preset)


def run(
    settings: RunConfig | str = "demo",
    out: Path | str = "run",
    *,
    seeds: tuple[int, ...] | int = 0,
    watch: Watch | None = None,
    allow_changes: bool = False,
    wandb: str | None = None,
    preset: str | None = None,
    **changes: Any,
) -> Run:
    """Start a run, or go on with what is at `out`; returns when it is done.

    `settings` is a preset's name or a whole `RunConfig`. Further keywords change single settings, nested ones as
    mappings: `run("demo", "my-run", method="pp2e", deploy={"steps": 4000})`.
    """
    config = find_preset(settings) if isinstance(settings, str) else settings
    config = changed(config, changes)
    name = preset or (settings if isinstance(settings, str) else "custom")
    chosen = (seeds,) if isinstance(seeds, int) else tuple(seeds)
    if not chosen:
        raise SettingError("seeds", "()", "at least one")
    folder, watch = Folder(Path(out)), watch or Silent()
    enable_compilation_cache()
    with folder.locked():
        spec = spec_of(config.env)
        if folder.exists:
            folder.check(config, chosen, allow_changes)
        if allow_changes or not folder.exists:
            folder.start(config, chosen, name, spec)
        about = {"preset": name, "method": config.method, "environment": spec.name}
        results = Results.open(folder.results, about)
        with listening(watch.note) as asked:
            for group in groups(spec, chosen):
                loop = Loop(folder, config, spec, group, results, watch, asked, wandb)
                try:
                    loop.run()
                except Interrupted as stopped:
                    raise Interrupted(str(stopped), asked.number or 2) from None
                finally:
                    loop.close()
    return open_run(folder.path)


def changed(config: Any, changes: Mapping[str, Any], prefix: str = "") -> Any:
    """Settings with some of them changed; nested ones are mappings."""
    known = {field.name for field in fields(config)}
    values = {}
    for name, value in changes.items():
        if name not in known:
            raise SettingError(f"{prefix}{name}", value, f"one of the settings {', '.join(sorted(known))}")
        old = getattr(config, name)
        values[name] = (
            changed(old, value, f"{prefix}{name}.")
            if is_dataclass(old) and isinstance(value, Mapping)
            else value
        )
    return replace(config, **values)


def enable_compilation_cache() -> None:
    """Keep compiled programs in the user's own cache folder. They are trusted code, so nowhere that is shared."""
    chosen = getattr(jax.config, "jax_compilation_cache_dir", None)
    if chosen or os.environ.get("CASCADE_COMPILATION_CACHE") == "off":
        return
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(home) / "cascade" / "jax"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise CascadeError(f"{folder}: cannot keep compiled programs here ({error.strerror})") from None
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
