"""Explorers as they are deployed: frozen, with the model's belief as their memory."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key, Shaped

from cascade.explore.actor import Actor
from cascade.nn.precision import cast
from cascade.world.model import WorldModel
from cascade.world.rssm import State


class Memory(eqx.Module):
    """What each lane remembers: its belief, and the action it took last."""

    state: State
    action: Float[Array, "L A"]


class PopulationPolicy(eqx.Module):
    """P actors over one world model, acting in L = P x n lanes in one call."""

    world: WorldModel
    actors: Actor  # stacked along P
    greedy: bool = eqx.field(static=True, default=False)

    def initial(self, lanes: int) -> Memory:
        world = cast(self.world, self.world.config.precision)
        return Memory(world.rssm.initial(lanes), jnp.zeros((lanes, self.world.action.size)))

    def act(
        self,
        carry: Memory,
        obs: Mapping[str, Shaped[np.ndarray, "L ..."]],
        is_first: Bool[np.ndarray, " L"],
        keys: Key[Array, " L"],
    ) -> tuple[Memory, np.ndarray]:
        """See `cascade.types.Policy`."""
        carry, action = _act(self, carry, dict(obs), is_first, keys, self.greedy)
        return carry, np.asarray(action)


@partial(jax.jit, static_argnames="greedy")
def _act(
    policy: PopulationPolicy,
    memory: Memory,
    obs: dict[str, Array],
    is_first: Bool[Array, " L"],
    keys: Key[Array, " L"],
    greedy: bool,
) -> tuple[Memory, Array]:
    world = cast(policy.world, policy.world.config.precision)
    kept = jax.tree.map(lambda x: jnp.where(is_first[:, None], jnp.zeros_like(x), x), memory)
    noise = jax.vmap(lambda key: world.rssm.noise(key))(jax.vmap(lambda k: jax.random.fold_in(k, 0))(keys))
    moved = world.rssm.imagine(kept.state, kept.action, jnp.zeros_like(noise))
    state, _ = world.rssm.correct(moved.deter, world.embed(obs, 1), noise)
    population = jax.tree.leaves(policy.actors)[0].shape[0]
    feature = state.feature.reshape(population, -1, state.feature.shape[-1])
    if greedy:
        action = jax.vmap(lambda actor, x: actor.mode(x))(policy.actors, feature)
    else:
        draws = jax.vmap(lambda key: policy.actors.noise(jax.random.fold_in(key, 1)))(keys)
        draws = draws.reshape(population, -1, draws.shape[-1])
        action = jax.vmap(lambda actor, x, noise: actor.sample(x, noise))(policy.actors, feature, draws)
    action = action.reshape(-1, action.shape[-1])
    stored = action.argmax(-1).astype(jnp.int32) if world.action.kind == "discrete" else action
    return Memory(state, action), stored
