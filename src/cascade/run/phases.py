"""The two training phases between deployments, many gradient steps to a compiled call.

Both are written for one seed and vmapped over S outside. Step i of a phase draws its noise from `fold_in(key, i)`
alone, so that neither the number of steps per call nor a resume changes what is drawn.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from cascade.config import ExploreConfig, RunConfig
from cascade.explore import disagreement, population
from cascade.explore.disagreement import Ensemble
from cascade.explore.imagine import choose_starts
from cascade.explore.population import Population
from cascade.nn.learner import Learner, repeat
from cascade.specs import EnvSpec
from cascade.types import Batch
from cascade.world import model
from cascade.world.model import Metrics, WorldModel, encode_action, posteriors
from cascade.world.rssm import State


class Models(eqx.Module):
    """What the first phase trains: the world model, and the ensemble beside or after it."""

    world: Learner[WorldModel]
    ensemble: Learner[Ensemble]


def create_models(spec: EnvSpec, config: RunConfig, *, key: PRNGKeyArray) -> Models:
    """Untrained models."""
    first, second = jax.random.split(key)
    world = Learner.create(WorldModel(spec, config.world, key=first), config.world.optimizer)
    return Models(world, disagreement.create(config.world, spec.action.size, config.ensemble, key=second))


def model_step(
    models: Models, batch: Batch, key: PRNGKeyArray, beside: bool = True
) -> tuple[Models, Metrics]:
    """One step of the world model, and one of the ensemble beside it on the posteriors it just computed."""
    world, states, metrics = model.step(models.world, batch, key)
    if not beside:
        return Models(world, models.ensemble), metrics
    action = encode_action(world.model.action, batch.action)
    ensemble, extra = disagreement.step(models.ensemble, states, action, batch.is_first)
    return Models(world, ensemble), metrics | extra


def model_phase(
    models: Models, chunk: Batch, step: Int[Array, ""], key: PRNGKeyArray, beside: bool = True
) -> tuple[Models, Metrics]:
    """One step for each batch of a chunk [K, B, T], the first being step `step`; metrics are their means."""

    def body(models: Models, x: tuple[Array, Batch]) -> tuple[Models, Metrics]:
        index, batch = x
        return model_step(models, batch, jax.random.fold_in(key, index), beside)

    return repeat(body, models, (step + jnp.arange(chunk.is_first.shape[0]), chunk))


def settling_phase(
    models: Models, chunk: Batch, step: Int[Array, ""], key: PRNGKeyArray, span: tuple[int, int]
) -> tuple[Models, Metrics]:
    """One step of the ensemble alone for each batch of a chunk, the world model at rest.

    While the model trains, z keeps changing its meaning, and members disagree about what they have not caught up
    with. Over the `span` (first step, steps) steps shorten evenly to a tenth, so that the noise of training goes too.
    """
    world, count = models.world.model, chunk.is_first.shape[0]
    indices = step + jnp.arange(count)
    keys = jax.vmap(lambda index: jax.random.fold_in(key, index))(indices)
    states, action = posteriors(world, chunk, keys), encode_action(world.action, chunk.action)
    paces = 1.0 - 0.9 * (indices - span[0]).astype(jnp.float32) / span[1]

    def body(ensemble: Learner[Ensemble], x: tuple[State, Array, Array, Array]) -> tuple[Any, Metrics]:
        return disagreement.step(ensemble, *x)

    ensemble, metrics = repeat(body, models.ensemble, (states, action, chunk.is_first, paces))
    return Models(models.world, ensemble), metrics


def explorer_phase(
    explorers: Population,
    models: Models,
    chunk: Batch,
    weight: Float[Array, ""],
    step: Int[Array, ""],
    key: PRNGKeyArray,
    config: ExploreConfig,
) -> tuple[Population, Metrics]:
    """One update of every explorer for each batch of a chunk, the models frozen; metrics are their means.

    Since the models are frozen, the posterior states of the whole chunk come from one scan over K x B sequences.
    """
    world, ensemble = models.world.model, models.ensemble.model
    count = chunk.is_first.shape[0]
    keys = jax.vmap(lambda index: jax.random.split(jax.random.fold_in(key, index), 3))(
        step + jnp.arange(count)
    )
    states = posteriors(world, chunk, keys[:, 0])

    def body(explorers: Population, x: tuple[State, Array, Array]) -> tuple[Population, Metrics]:
        states, is_terminal, keys = x
        starts = choose_starts(states, is_terminal, config.agent.starts, keys[1])
        return population.step(explorers, world, ensemble, starts, weight, keys[2], config)

    return repeat(body, explorers, (states, chunk.is_terminal, keys))
