"""Algorithm 1: deploy the explorers, train the world model on all data, train the explorers in it; again.

`Loop.run` is the algorithm. Each phase goes on from `self.at.step`, and every position it can be saved at is one
that an uninterrupted run passes through: that is why a killed run ends with the same weights, bit for bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cascade.config import RunConfig
from cascade.data.journal import Journal
from cascade.data.store import deployment_folder
from cascade.deploy import Plan, RandomPolicy, Summary, collect, collect_fleet, vectorise
from cascade.envs import Vectoriser
from cascade.errors import CascadeError
from cascade.explore.policy import PopulationPolicy
from cascade.run import checkpoint, initial, snapshot, state
from cascade.run.devices import Spread
from cascade.run.fitting import plan_of
from cascade.run.folder import Folder
from cascade.run.log import Log
from cascade.run.measure import measure, measuring
from cascade.run.results import Results, explorer_records
from cascade.run.signals import Interrupted, Stop
from cascade.run.state import EXPLORE, MODEL, SAMPLES, Position, State, folded, of_seed
from cascade.run.train import (
    Samplers,
    acting_device,
    chunks,
    settle_ensembles,
    steps_per_call,
    train_explorers,
    train_models,
)
from cascade.run.watching import Watch
from cascade.specs import EnvSpec
from cascade.types import Policy

LOGGED = 200
"""Moments of a phase that are logged, about."""


class Loop:
    """One group of seeds that train together."""

    def __init__(
        self,
        folder: Folder,
        config: RunConfig,
        spec: EnvSpec,
        seeds: tuple[int, ...],
        results: Results,
        watch: Watch,
        stop: Stop,
        wandb: str | None = None,
    ):
        self.folder, self.config, self.spec, self.seeds = folder, config, spec, seeds
        self.results, self.watch, self.stop = results, watch, stop
        self.note_once = cache(watch.note)  # what cannot be drawn is mostly the same every time
        self.keys, self.spread = state.seed_keys(seeds), Spread(config, len(seeds))
        self.checkpoints = checkpoint.Checkpoints(folder.checkpoints(seeds))
        self.at, self.seconds = Position(), 0.0
        if self.checkpoints.latest is None:
            self.state = state.create(spec, config, self.keys)
        else:
            self._restore()
        self.log = Log(folder.metrics, seeds, self.at, wandb)
        self._samplers: Samplers | None = None
        self._began = self._saved = time.monotonic()

    def run(self) -> None:
        """Algorithm 1."""
        while self.at.deployment < self.config.deployments:
            self._began = time.monotonic()
            match self.at.name:
                case "deploy":
                    self.deploy()  # frozen explorers collect exactly their budget
                case "model":
                    self.train_models()  # on all data so far
                case "explore":
                    self.train_explorers()  # in imagination, the models frozen
                case "measure":
                    self.measure()  # outside the budget, never fed back
            self._finish_phase()

    def deploy(self) -> None:
        """Every seed's explorers collect; the first time they act at random, or a dataset takes their place."""
        k = self.at.deployment
        self.watch.phase(self.at, self.config.deploy.steps * len(self.seeds))
        roots = {seed: self.folder.data(seed) for seed in self.seeds}
        todo = [seed for seed, root in roots.items() if not deployment_folder(root, k).exists()]
        beginning = initial.POLICIES.get(self.config.initial)
        if k == 0 and beginning is None:
            for seed in todo:
                if note := initial.copy(self.config.initial, roots[seed], self.spec, seed):
                    self.watch.note(note)
            return
        plans = {seed: plan_of(self.config, seed, k) for seed in todo}
        with self._environments(plans) as envs:
            for seed, plan in plans.items():
                i = self.seeds.index(seed)
                policy = beginning(self.spec.action) if beginning and k == 0 else self.policy(i)
                journal = Journal(roots[seed], k, self.spec)
                summary = self._collect(policy, journal, plan, envs, self._collecting(i))
                if summary.interrupted:
                    self._interrupt()
                if summary.faults.failures or summary.problems:
                    self.watch.note(summary.message)

    def train_models(self) -> None:
        """The world model, and the ensemble beside it or not; at last the ensemble alone, if so set."""
        samplers, steps, settle = self._data(), self.config.model_steps, self.config.settling_steps
        keys = folded(self.keys, MODEL, self.at.deployment)
        size, total = steps_per_call(self.spec, steps), steps + settle
        self.watch.phase(self.at, total)
        self.state = State(self.spread.for_models(self.state.models), self.state.explorers)
        alone = chunks(max(self.at.step, steps), total, size)
        for step, count in (*chunks(self.at.step, steps, size), *alone):
            chunk = self.spread.batches(samplers.chunk(step, count))
            job = (self.state.models, chunk, jnp.int32(step), keys)
            if step < steps:
                models, metrics = train_models(*job, beside=self.config.trains_beside)
            else:
                models, metrics = settle_ensembles(*job, span=(steps, settle))
            self.state = State(models, self.state.explorers)
            self._trained(step + count, total, metrics)
        self._check_skipped()

    def train_explorers(self) -> None:
        """The population, on the cascading objective; the method without explorers has nothing to do here."""
        if self.state.explorers is None:
            return
        k, steps = self.at.deployment, self.config.explorer_steps
        if self.at.step == 0 and k > 0:
            explorers = state.begin_again(self.state.explorers, self.spec, self.config, self.keys, k)
            self.state = State(self.state.models, explorers)
        samplers, keys = self._data(), folded(self.keys, EXPLORE, k)
        size, config = steps_per_call(self.spec, steps), state.explore_config(self.config)
        offset = self.config.model_steps + self.config.settling_steps
        weight = jnp.float32(self.config.diversity_weight)
        self.watch.phase(self.at, steps)
        models, explorers = self.spread.shared(self.state.models), self.state.explorers
        self.state = State(models, self.spread.for_explorers(explorers))
        for step, count in chunks(self.at.step, steps, size):
            # Other batches than the model was just trained on.
            chunk = self.spread.shared(samplers.chunk(offset + step, count))
            explorers, metrics = train_explorers(
                self.state.explorers, models, chunk, weight, jnp.int32(step), keys, config
            )
            self.state = State(models, explorers)
            self._trained(step + count, steps, metrics)
            if step + count == steps:
                self.results.add(explorer_records(self.seeds, k, metrics))
        self._check_skipped()

    def measure(self) -> None:
        """What the explorers would do now, and what the data hold."""
        k = self.at.deployment
        self.watch.phase(self.at, len(self.seeds))
        with measuring(self.config) as envs:
            for i, seed in enumerate(self.seeds):
                learned = snapshot.take(of_seed(self.state, i))
                snapshot.write(self.folder.snapshot(seed, k), learned)
                job = (self.folder, self.config, seed, k, self.policy(i), learned.world, envs)
                try:
                    self.results.add(measure(*job, self.note_once, self.stop))
                except Interrupted:  # measures are taken anew when the run goes on
                    self._interrupt()
                self.watch.step(self.at.at(i + 1), {})

    def policy(self, index: int) -> Policy:
        """What a seed deploys."""
        if self.state.explorers is None:
            return RandomPolicy(self.spec.action)
        world = of_seed(self.state.models.world.model, index)
        actors = of_seed(self.state.explorers.agents.actor.model, index)
        return PopulationPolicy(world, actors, device=acting_device(self.spec, self.config.deploy))

    def close(self) -> None:
        self._let_go()
        self.log.close()
        self.checkpoints.close()

    def _data(self) -> Samplers:
        """Samplers over all data so far; made once for each deployment."""
        if self._samplers is None:
            # More lies there where the newest checkpoints were lost and an earlier one is gone on from.
            stores = [self.folder.store(seed).upto(self.at.deployment) for seed in self.seeds]
            self._samplers = Samplers(stores, self.config, folded(self.keys, SAMPLES, self.at.deployment))
            if self._samplers.reason.startswith("host"):
                self.note_once(f"batches are read from files, which is slower: {self._samplers.reason}")
        return self._samplers

    def _let_go(self) -> None:
        """Of the data, which may fill most of a device."""
        if self._samplers is not None:
            self._samplers.close()
            self._samplers = None

    def _trained(self, step: int, total: int, metrics: dict[str, jax.Array]) -> None:
        """After each compiled call. Metrics are fetched about LOGGED times a phase; else nothing waits for them."""
        before, self.at = self.at.step, self.at.at(step)
        every = max(1, total // LOGGED)
        values: dict[str, float] = {}
        if step // every > before // every or step >= total:
            fetched = {name: np.asarray(value) for name, value in metrics.items()}
            self.log.write(self.at, fetched)
            values = {name: float(np.mean(value)) for name, value in fetched.items()}
        self.watch.step(self.at, values)
        if step >= total:
            return  # the end of the phase saves
        if self.stop():
            self._interrupt()
        if time.monotonic() - self._saved >= self.config.checkpoint_seconds:
            self._check_skipped()
            self.save()

    def _check_skipped(self) -> None:
        """Stop when too many updates were not finite; the checkpoint before stays the last."""
        for name, worst in state.skipped_updates(self.state).items():
            if worst > self.config.max_skipped:
                raise CascadeError(
                    f"{self.folder.path}: {worst} updates of the {name} were not finite and were skipped, more than "
                    f"max-skipped, which is {self.config.max_skipped} ({self.at}); lower its learning rate; the last "
                    "good checkpoint is kept"
                )

    def _environments(self, plans: Mapping[int, Plan]) -> AbstractContextManager[Vectoriser | None]:
        """What steps on this machine, the same for all seeds; nothing where a cluster does, or nothing is left."""
        if not plans or self.config.deploy.engine == "ray":
            return nullcontext()
        return vectorise(self.config.env, self.config.deploy, next(iter(plans.values())))

    def _collect(
        self,
        policy: Policy,
        journal: Journal,
        plan: Plan,
        envs: Vectoriser | None,
        progress: Callable[[Any], None],
    ) -> Summary:
        """On this machine or on a cluster, to the same bytes."""
        env, deploy = self.config.env, self.config.deploy
        if envs is None:
            return collect_fleet(policy, journal, plan, env, deploy, progress=progress, stop=self.stop)
        with jax.default_device(acting_device(self.spec, deploy)):
            return collect(policy, envs, journal, plan, deploy, progress=progress, stop=self.stop)

    def _collecting(self, index: int) -> Callable[[Any], None]:
        done = index * self.config.deploy.steps

        def progress(now: Any) -> None:
            told = {"episodes": float(now.episodes), "failures": float(now.failures)}
            self.watch.step(self.at.at(done + now.steps), told)

        return progress

    def _finish_phase(self) -> None:
        seconds = self.seconds + time.monotonic() - self._began
        steps = self.at.step if self.at.name in ("model", "explore") else self.config.deploy.steps
        self.results.add_phase(list(self.seeds), self.at.name, self.at.deployment, steps, seconds)
        if self.at.name == "explore":
            self._let_go()
        self.at, self.seconds = self.at.next(), 0.0
        self.state = self.spread.gathered(self.state)
        self._began = time.monotonic()
        self.save()

    def save(self) -> None:
        """Commit everything: what was learned, the keys, where this stands, and which data it has seen."""
        now = time.monotonic()
        meta = {
            "deployment": self.at.deployment,
            "phase": self.at.phase,
            "step": self.at.step,
            "seconds": self.seconds + now - self._began,
            "data": {str(seed): self.folder.store(seed).contents for seed in self.seeds},
        }
        self.checkpoints.save(state.saved(self.state, self.keys), meta)
        self._saved = time.monotonic()

    def _restore(self) -> None:
        meta = self.checkpoints.meta()
        for seed in self.seeds:
            store = self.folder.store(seed, verify=True)
            trained = meta["data"][str(seed)]
            if store.contents[: len(trained)] != trained:
                raise CascadeError(
                    f"{store.path}: these are not the data that the checkpoint was trained on; put them back, or "
                    "start again with another --out"
                )
        tree = self.checkpoints.restore(state.blueprint(self.spec, self.config, self.keys))
        self.state, self.seconds = tree["state"], float(meta["seconds"])
        self.keys = jax.vmap(lambda data: jax.random.wrap_key_data(data))(tree["keys"])
        self.at = Position(meta["deployment"], meta["phase"], meta["step"])

    def _interrupt(self) -> None:
        self.save()
        raise Interrupted(f"stopped at {self.at} and saved")
