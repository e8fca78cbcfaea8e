"""Explorers as they are deployed: frozen, with the model's belief as their memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key, Shaped

from cascade.explore.actor import Actor
from cascade.nn.precision import cast
from cascade.world.model import WorldModel
from cascade.world.rssm import State


class Memory(NamedTuple):
    """What each lane remembers: its belief [h, z], and the action it took last."""

    deter: Float[Array, "L D"]
    stoch: Float[Array, "L Z"]
    action: Float[Array, "L A"]


Program = Callable[..., tuple[Memory, Shaped[Array, "L ..."]]]


class PopulationPolicy:
    """P actors over one world model, acting in L = P x n lanes in one call.

    Policies of one architecture share one compiled program. The weights are cast and listed once, when the policy
    is made: walking the models anew at every call would cost nearly a third of its time.
    """

    def __init__(
        self, world: WorldModel, actors: Actor, greedy: bool = False, device: jax.Device | None = None
    ):
        """`actors` are stacked along P. A greedy policy takes the most likely action instead of drawing one.

        It acts where its weights are, or on `device`.
        """
        if device is not None:
            world, actors = jax.device_put((world, actors), device)
        self._world = cast(world, world.config.precision)
        self._weights, self._structure = jax.tree.flatten((self._world, cast(actors, actors.precision)))
        self._greedy, self._act = greedy, _program(self._structure, greedy)

    def initial(self, lanes: int) -> Memory:
        """See `cascade.types.Policy`."""
        state = self._world.rssm.initial(lanes)
        return Memory(state.deter, state.stoch, jnp.zeros((lanes, self._world.action.size)))

    def act(
        self,
        carry: Memory,
        obs: Mapping[str, Shaped[np.ndarray, "L ..."]],
        is_first: Bool[np.ndarray, " L"],
        keys: Key[Array, " L"],
    ) -> tuple[Memory, np.ndarray]:
        """See `cascade.types.Policy`."""
        carry, action = self._act(self._weights, carry, dict(obs), is_first, keys)
        return carry, np.asarray(action)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied to another process as plain arrays, wherever they lie here."""
        world, actors = jax.tree.unflatten(self._structure, jax.device_get(self._weights))
        return _arrived, (world, actors, self._greedy)


def _arrived(world: WorldModel, actors: Actor, greedy: bool) -> PopulationPolicy:
    """The policy on this process's device."""
    world, actors = jax.tree.map(jnp.asarray, (world, actors))
    return PopulationPolicy(world, actors, greedy)


@cache
def _program(structure: Any, greedy: bool) -> Program:
    """The compiled policy of models with this structure, taking their weights as a flat list."""

    @jax.jit
    def program(weights: list[Array], *args: Any) -> tuple[Memory, Array]:
        world, actors = jax.tree.unflatten(structure, weights)
        return _act(world, actors, greedy, *args)

    return program


def _act(
    world: WorldModel,
    actors: Actor,
    greedy: bool,
    memory: Memory,
    obs: dict[str, Shaped[Array, "L ..."]],
    is_first: Bool[Array, " L"],
    keys: Key[Array, " L"],
) -> tuple[Memory, Shaped[Array, "L ..."]]:
    """One step of the filter that training runs over whole sequences, then one action from each lane's actor."""
    deter, stoch, action = (jnp.where(is_first[:, None], jnp.zeros_like(x), x) for x in memory)
    for_belief, for_action = jax.vmap(jax.random.split, out_axes=1)(keys)
    noise = jax.vmap(world.rssm.noise)(for_belief)
    moved = world.rssm.imagine(
        State(deter, stoch), action, jnp.zeros_like(noise)
    )  # its own z is never computed
    state, _ = world.rssm.correct(moved.deter, world.encoder(obs), noise)
    population = jax.tree.leaves(actors)[0].shape[0]
    feature = state.feature.reshape(population, -1, state.feature.shape[-1])
    if greedy:
        action = jax.vmap(lambda actor, x: actor.mode(x))(actors, feature)
    else:
        draws = jax.vmap(actors.noise)(for_action).reshape(*feature.shape[:2], -1)
        action = jax.vmap(lambda actor, x, draw: actor.sample(x, draw))(actors, feature, draws)
    action = action.reshape(-1, action.shape[-1])
    stored = action.argmax(-1).astype(jnp.int32) if world.action.kind == "discrete" else action
    return Memory(state.deter, state.stoch, action), stored
