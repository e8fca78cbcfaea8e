"""What a transfer trains: reward heads on stored labels, then behaviour policies in imagination, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from cascade.config import RunConfig, SampleConfig
from cascade.data.sampler import make_sampler
from cascade.data.store import Store
from cascade.errors import CascadeError
from cascade.nn.learner import Learner
from cascade.run.labelling import rare_rows
from cascade.run.signals import Stop
from cascade.run.train import chunks, steps_per_call
from cascade.specs import EnvSpec
from cascade.transfer import behaviour, reward_head
from cascade.transfer.behaviour import Behaviours
from cascade.transfer.labels import Summary
from cascade.transfer.reward_head import RewardHeads
from cascade.types import Batch
from cascade.world.model import WorldModel

Curves = dict[str, list[Any]]
"""`step`, and of every metric one entry per chunk, a list with one number for each task"""

reward_program = jax.jit(reward_head.reward_phase, static_argnames="config", donate_argnums=0)
measure_program = jax.jit(reward_head.measure)
behaviour_program = jax.jit(behaviour.behaviour_phase, static_argnames="config", donate_argnums=0)


class Progress(NamedTuple):
    """Where a transfer is."""

    phase: str
    """reward, behaviour or evaluate"""
    step: int
    steps: int
    values: Mapping[str, list[float]]
    """metrics of the last chunk, one number for each task that can be learned"""


Report = Callable[[Progress], None]


class Lesson:
    """Everything that training needs, for the tasks that can be learned."""

    def __init__(
        self,
        world: WorldModel,
        store: Store,
        labels: Mapping[str, Summary],
        config: RunConfig,
        spec: EnvSpec,
        seed: int,
    ):
        self.world, self.config, self.spec, self.tasks, self.seed = world, config, spec, list(labels), seed
        self._key = jax.random.fold_in(jax.random.key(seed), 0x7A5C)
        self._units, self._shares, self._final = (
            jnp.array(values)
            for values in zip(*((one.size, one.share, one.final) for one in labels.values()), strict=True)
        )
        # Sequences that would be made to contain an episode's end are made to contain a rare reward instead.
        fields, rare = store.fields(), rare_rows(store, labels)
        self.sampler = make_sampler(
            fields, sample_config(config), self.key(0), marks=rare if len(rare) else None
        )
        self._labels = {task: self.sampler.place(fields.align(store.labels(task))) for task in self.tasks}

    def key(self, index: int) -> PRNGKeyArray:
        """Independent randomness for each purpose."""
        return jax.random.fold_in(self._key, index)

    def train_heads(self, progress: Report, stop: Stop) -> tuple[RewardHeads, Curves]:
        """Reward heads on features of the frozen model."""
        settings = self.config.transfer
        heads = jax.jit(partial(reward_head.create, self.world.config, config=settings))(
            self._units, self._shares, self._final, key=self.key(1)
        )

        def step(heads: RewardHeads, index: int, count: int) -> tuple[RewardHeads, Any]:
            chunk, labels = self._draw(index, count)
            return reward_program(
                heads, self.world, chunk, labels, jnp.int32(index), self.key(2), config=settings
            )

        return self._train("reward", settings.reward_steps, heads, step, progress, stop)

    def train_behaviours(self, heads: RewardHeads, progress: Report, stop: Stop) -> tuple[Behaviours, Curves]:
        """Behaviour policies in imagination, on batches other than the heads had."""
        settings = self.config.transfer
        create = partial(behaviour.create, self.world.config, self.world.action, len(self.tasks), settings)
        behaviours = jax.jit(create)(key=self.key(3))

        def step(behaviours: Behaviours, index: int, count: int) -> tuple[Behaviours, Any]:
            chunk = self.sampler.chunk(settings.reward_steps + index, count)
            return behaviour_program(
                behaviours, heads, self.world, chunk, jnp.int32(index), self.key(4), config=settings
            )

        return self._train("behaviour", settings.behaviour_steps, behaviours, step, progress, stop)

    def measure(self, heads: RewardHeads) -> dict[str, list[float]]:
        """Errors of the heads on batches drawn as for training, from which they learn nothing."""
        chunk, labels = self._draw(self.config.transfer.reward_steps, 8)
        metrics = measure_program(heads, self.world, chunk, labels, self.key(6))
        return {name: np.asarray(value).tolist() for name, value in metrics.items()}

    def _draw(self, index: int, count: int) -> tuple[Batch, Float[Array, "K P B T"]]:
        chunk, extras = self.sampler.chunk_with(index, count, self._labels)
        return chunk, jnp.stack([extras[task] for task in self.tasks], 1)

    def _train(
        self,
        phase: str,
        steps: int,
        state: Any,
        step: Callable[[Any, int, int], tuple[Any, Any]],
        progress: Report,
        stop: Stop,
    ) -> tuple[Any, Curves]:
        """`steps` steps in chunks, with the metrics of each chunk; until too many updates were not finite."""
        curves: Curves = {"step": []}
        for index, count in chunks(0, steps, steps_per_call(self.spec, steps)):
            if stop():
                break
            state, metrics = step(state, index, count)
            values = {name: np.asarray(value).tolist() for name, value in metrics.items()}
            curves["step"].append(index + count)
            for name, value in values.items():
                curves.setdefault(name, []).append(value)
            self._check_skipped(phase, state)
            progress(Progress(phase, index + count, steps, values))
        return state, curves

    def _check_skipped(self, phase: str, trained: RewardHeads | Behaviours) -> None:
        """Stop when too many updates of a task were not finite."""
        setting = "transfer.reward.lr" if phase == "reward" else "the learning rates of transfer.agent"
        for name, counts in skipped_updates(trained).items():
            for task, count in zip(self.tasks, counts, strict=True):
                if count > self.config.max_skipped:
                    raise CascadeError(
                        f"transfer of seed {self.seed} to {task}: {count} updates of the {name} were not finite and "
                        f"were skipped, more than max-skipped, which is {self.config.max_skipped}; lower {setting}"
                    )


def skipped_updates(trained: RewardHeads | Behaviours) -> dict[str, list[int]]:
    """By what learns: updates that were not finite, of each task."""
    learners: dict[str, Learner[Any]] = (
        {"reward head": trained.learner}
        if isinstance(trained, RewardHeads)
        else {"actor": trained.agents.actor, "critic": trained.agents.critic}
    )
    return {name: np.asarray(learner.skipped).tolist() for name, learner in learners.items()}


def sample_config(config: RunConfig) -> SampleConfig:
    """How transfer draws its batches."""
    settings = config.transfer
    return replace(
        config.sample,
        batch=settings.batch or config.sample.batch,
        length=settings.length or config.sample.length,
        prioritize_ends=settings.prioritize_ends,
    )
