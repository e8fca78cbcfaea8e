"""What a run is at any moment: its weights, and where in Algorithm 1 it stands."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key

from cascade.config import ExploreConfig, RunConfig
from cascade.explore import population
from cascade.explore.population import Population
from cascade.run.phases import Models, create_models
from cascade.specs import EnvSpec

PHASES = ("deploy", "model", "explore", "measure")
"""Of every deployment, in this order."""

# What a seed's key is folded with, so that no two uses of it ever draw the same.
WEIGHTS, EXPLORERS, SAMPLES, MODEL, EXPLORE = range(5)


class State(eqx.Module):
    """Everything that training changes; every leaf has a leading S, one entry for each seed."""

    models: Models
    explorers: Population | None
    """None for the method that has none"""


@dataclass(frozen=True, order=True)
class Position:
    """Where a run stands: so many steps of this phase of this deployment are done."""

    deployment: int = 0
    phase: int = 0
    """an index into PHASES"""
    step: int = 0

    @property
    def name(self) -> str:
        return PHASES[self.phase]

    def next(self) -> Position:
        """The start of the next phase."""
        if self.phase + 1 < len(PHASES):
            return Position(self.deployment, self.phase + 1)
        return Position(self.deployment + 1)

    def at(self, step: int) -> Position:
        return replace(self, step=step)

    def __str__(self) -> str:
        return f"deployment {self.deployment + 1}, {self.name} step {self.step}"


def seed_keys(seeds: tuple[int, ...]) -> Key[Array, " S"]:
    """The root key of each seed."""
    return jax.vmap(jax.random.key)(jnp.array(seeds, "uint32"))


def folded(keys: Key[Array, " S"], *data: int | Int[Array, ""]) -> Key[Array, " S"]:
    """Every seed's key for one use."""
    for number in data:
        keys = jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, number)
    return keys


def explore_config(config: RunConfig) -> ExploreConfig:
    """The explorers' settings as the method has them. λ is an input of the compiled step, not part of its program."""
    return replace(config.explore, population=config.population, weight=0.0, begin="warm")


@partial(jax.jit, static_argnames=("spec", "config"))
def create(spec: EnvSpec, config: RunConfig, keys: Key[Array, " S"]) -> State:
    """An untrained state for every seed."""
    models = jax.vmap(lambda key: create_models(spec, config, key=key))(folded(keys, WEIGHTS))
    explorers = None if config.method == "random" else create_explorers(spec, config, keys, jnp.int32(0))
    return State(models, explorers)


@partial(jax.jit, static_argnames=("spec", "config"))
def create_explorers(
    spec: EnvSpec, config: RunConfig, keys: Key[Array, " S"], deployment: Int[Array, ""]
) -> Population:
    """New explorers, as they begin after this deployment."""
    explore = explore_config(config)
    return jax.vmap(lambda key: population.create(config.world, spec.action, explore, key=key))(
        folded(keys, EXPLORERS, deployment)
    )


def begin_again(
    explorers: Population, spec: EnvSpec, config: RunConfig, keys: Key[Array, " S"], deployment: int
) -> Population:
    """New explorers, or those there were, whose scales forget what they saw in the model as it was before."""
    if config.explore.begin == "fresh":
        return create_explorers(spec, config, keys, jnp.int32(deployment))
    return Population(explorers.agents, jax.tree.map(jnp.zeros_like, explorers.scales))


def saved(state: State, keys: Key[Array, " S"]) -> dict[str, Any]:
    """The tree that a checkpoint holds."""
    return {"state": state, "keys": jax.vmap(jax.random.key_data)(keys)}


def blueprint(spec: EnvSpec, config: RunConfig, keys: Key[Array, " S"]) -> dict[str, Any]:
    """The shapes and types of that tree under these settings; nothing is computed."""
    tree: dict[str, Any] = jax.eval_shape(lambda: saved(create(spec, config, keys), keys))
    return tree


def of_seed(tree: Any, index: int) -> Any:
    """One seed's part of a tree."""
    return jax.tree.map(lambda x: x[index], tree)


def skipped_updates(state: State) -> dict[str, int]:
    """By what learns: updates that were not finite, of the seed or explorer that has most."""
    learners = {"world model": state.models.world.skipped, "ensemble": state.models.ensemble.skipped}
    if state.explorers is not None:
        agents = state.explorers.agents
        learners |= {"explorers' actors": agents.actor.skipped, "explorers' critics": agents.critic.skipped}
    return {name: int(np.max(np.asarray(skipped))) for name, skipped in learners.items()}
