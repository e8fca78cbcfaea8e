"""Runs from Python: `cascade.run(...)` starts or continues one, `cascade.open(path)` opens a stored one."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import jax

from cascade.config import RunConfig
from cascade.data.store import Store
from cascade.deploy import RandomPolicy, fleet
from cascade.envs import spec_of
from cascade.errors import CascadeError, SettingError
from cascade.explore.diversity import DIVERSITIES
from cascade.explore.embedding import EMBEDDINGS
from cascade.explore.player import Player
from cascade.explore.policy import PopulationPolicy
from cascade.presets import preset as find_preset
from cascade.run import initial, snapshot, state
from cascade.run.cache import keep_compiled_programs
from cascade.run.checkpoint import trained_on
from cascade.run.devices import Spread
from cascade.run.fitting import refuse_misfits
from cascade.run.folder import Folder
from cascade.run.lesson import Report
from cascade.run.log import load_wandb
from cascade.run.loop import Loop
from cascade.run.results import Record, Results
from cascade.run.signals import Stop, listening
from cascade.run.snapshot import Snapshot
from cascade.run.train import is_convolutional
from cascade.run.transfer import Outcome, transfer
from cascade.run.watching import Note, Watch
from cascade.seeds import check_seeds
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
    _verified: set[tuple[int, str]] = field(default_factory=set, init=False, repr=False, compare=False)
    """seeds and digests of the stores whose bytes have been compared"""

    @cached_property
    def spec(self) -> EnvSpec:
        """What its environment gives and takes."""
        return self.store(self.seeds[0]).spec

    @property
    def results(self) -> list[Record]:
        """One record for each seed, deployment, metric and task."""
        return Results.open(Folder(self.path).results).records

    def store(self, seed: int | None = None, *, verify: bool = False) -> Store:
        """The data that a seed collected; `verify` compares every byte with its checksum, once for each seed's data.

        That reads them all, at about a gigabyte a second for each of four cores if the disk gives as much; sizes
        and shapes are compared in any case.
        """
        folder, seed = Folder(self.path), self._known(seed)
        store = folder.store(seed)
        if verify and (seed, store.digest) not in self._verified:
            store = folder.store(seed, verify=True)
            self._verified.add((seed, store.digest))
        return store

    @property
    def deployments(self) -> list[int]:
        """The deployments that every seed has been trained after."""
        found = [
            {int(p.stem[len("deploy-") :]) for p in self._models(seed).glob("*.npz")} for seed in self.seeds
        ]
        return sorted(set.intersection(*found))

    def world(self, seed: int | None = None, deployment: int | None = None) -> WorldModel:
        """The world model of a seed after a deployment, by default the last."""
        return self.snapshot(seed, deployment).world

    def explorers(
        self, seed: int | None = None, deployment: int | None = None, greedy: bool = False
    ) -> Policy:
        """The population of a seed as one policy; uniform actions for the method that has no explorers."""
        learned = self.snapshot(seed, deployment)
        if learned.actors is None:
            return RandomPolicy(self.spec.action)
        return PopulationPolicy(learned.world, learned.actors, greedy)

    def player(self, explorer: int = 0, seed: int | None = None, deployment: int | None = None) -> Player:
        """One explorer as a plain callable for a loop of your own: `action = player(obs, first=True)`."""
        population = max(1, self.settings.population)
        if not 0 <= explorer < population:
            raise SettingError("explorer", explorer, f"from 0 to {population - 1}")
        learned = self.snapshot(seed, deployment)
        policy: Policy = RandomPolicy(self.spec.action)
        if learned.actors is not None:
            policy = PopulationPolicy(
                learned.world, jax.tree.map(lambda x: x[explorer][None], learned.actors)
            )
        return Player(policy, self.spec.observations, self.spec.action)

    def snapshot(self, seed: int | None = None, deployment: int | None = None) -> Snapshot:
        """What a seed had learned by the end of a deployment, by default the last."""
        path = Folder(self.path).snapshot(self._known(seed), self.resolve(deployment))
        return snapshot.read(path, self.spec, self.settings)

    def transfer(
        self,
        tasks: Sequence[str] | None = None,
        seed: int | None = None,
        deployment: int | None = None,
        *,
        report: Report | None = None,
        stop: Stop | None = None,
        note: Note = warnings.warn,
        **changes: Any,
    ) -> Outcome:
        """Policies for tasks that are named now, trained offline on a seed's data, and their score.

        A task is one that was recorded while collecting (all of them by default) or `module:function`. Keywords
        change settings of `transfer`. The policies are saved with the run, and the scores join its results. `note`
        is told if the data are not those that the world model was trained on.
        """
        seed, k = self._known(seed), self.resolve(deployment)
        config = replace(self.settings, transfer=changed(self.settings.transfer, changes, "transfer."))
        names = list(self.spec.tasks) if tasks is None else list(tasks)
        results = Results.open(Folder(self.path).results)  # one that cannot be read is better heard of now
        world, store = self.world(seed, k), self.store(seed, verify=True)
        self._note_gone(store, seed, k, note)
        outcome = transfer(world, store, names, config, self.spec, seed, k, report, stop)
        if not outcome.interrupted:
            outcome.write(self.path / "transfer")
            results.add(outcome.records())
        return outcome

    def _note_gone(self, store: Store, seed: int, deployment: int, note: Note) -> None:
        """Say which deployments up to this one a seed's model was trained on that are not in the store."""
        group = next(group for group in groups(self.spec, self.seeds) if seed in group)
        try:
            trained = trained_on(Folder(self.path).checkpoints(group), seed)[: deployment + 1]
        except CascadeError as error:
            note(f"{store.path}: nobody can say whether the world model was trained on these data; {error}")
            return
        gone = [content.partition(" ")[0] for content in trained if content not in store.contents]
        if gone:
            note(
                f"{store.path}: the world model was also trained on {', '.join(gone)}, which is not here any more as "
                "it was; transfer uses the rest, restore it from a copy to use all"
            )

    def resolve(self, deployment: int | None) -> int:
        """A deployment that every seed has been trained after: this one, or the last for None."""
        there = self.deployments
        if not there:
            raise CascadeError(
                f"{self.path}: nothing has been trained to the end of a deployment yet; run it first"
            )
        if deployment is not None and deployment not in there:
            raise SettingError("deployment", deployment, f"one of {', '.join(map(str, there))}")
        return there[-1] if deployment is None else deployment

    def _models(self, seed: int) -> Path:
        return Folder(self.path).snapshot(seed, 0).parent

    def _known(self, seed: int | None) -> int:
        seed = self.seeds[0] if seed is None else seed
        if seed not in self.seeds:
            raise SettingError("seed", seed, f"one of the run's: {', '.join(map(str, self.seeds))}")
        return seed


def groups(spec: EnvSpec, seeds: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Seeds that train side by side: all of them, unless the model has convolutions, which fill a device alone."""
    return [(seed,) for seed in seeds] if is_convolutional(spec) else [seeds]


def open_run(path: Path | str, note: Note = warnings.warn) -> Run:
    """A run that was started before, whether it has ended or not; `note` is told what a person should know."""
    keep_compiled_programs(note)
    return _stored(Folder(Path(path)))


def _stored(folder: Folder) -> Run:
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
    chosen = check_seeds(seeds if isinstance(seeds, Iterable) else (seeds,), "seeds", seeds)
    if config.deploy.engine == "ray":
        fleet.load()  # a missing extra is better heard of now
    if wandb:
        load_wandb()
    folder, watch = Folder(Path(out)), watch or Silent()
    keep_compiled_programs(watch.note)
    spec = spec_of(config.env)
    if not folder.exists:
        try_out(config, spec, chosen, fresh=True)  # before there is a folder
    with folder.locked():
        fresh = not folder.exists
        if fresh:
            folder.refuse_remains()
        else:
            folder.check(config, chosen, allow_changes)
            if allow_changes:
                try_out(config, spec, chosen, fresh=False)
                refuse_misfits(folder, config, spec, groups(spec, chosen))
        if fresh or allow_changes:
            folder.start(config, chosen, name, spec)
        about = {"preset": name, "method": config.method, "environment": spec.name}
        results = Results.open(folder.results, about)
        with listening(watch.note) as asked:
            for group in groups(spec, chosen):
                loop = Loop(folder, config, spec, group, results, watch, asked, wandb)
                try:
                    loop.run()
                finally:
                    loop.close()
    return _stored(folder)


def try_out(config: RunConfig, spec: EnvSpec, seeds: tuple[int, ...], fresh: bool) -> None:
    """Refuse settings that would fail later, before anything is written: nothing is computed or collected."""
    EMBEDDINGS.find(config.explore.embedding)
    DIVERSITIES.find(config.explore.diversity)
    Spread(config, len(seeds))
    if fresh:
        initial.check(config.initial, spec, seeds)
    jax.eval_shape(lambda: state.create(spec, config, state.seed_keys(seeds)))


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
