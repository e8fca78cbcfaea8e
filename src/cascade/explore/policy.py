"""Explorers as they are deployed: frozen, with the model's belief as their memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple, Protocol, runtime_checkable

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


@runtime_checkable
class Advice(Protocol):
    """What is thought over before acting, and added to the logits of each explorer's discrete actions; a pytree."""

    def __call__(
        self, world: WorldModel, actors: Actor, state: State, keys: Key[Array, "P n"]
    ) -> Float[Array, "P n A"]:
        """For n states [P, n, ...] of each explorer. What is drawn for a state depends on its own key alone."""


THINKING = 0xAD71CE
"""Folded into a lane's key: advice draws apart from belief and action."""

Program = Callable[..., tuple[Memory, Shaped[Array, "L ..."]]]


class PopulationPolicy:
    """P actors over one world model, acting in L = P x n lanes in one call.

    Policies of one architecture share one compiled program. The weights are cast and listed once, when the policy
    is made: walking the models anew at every call would cost nearly a third of its time.
    """

    def __init__(
        self,
        world: WorldModel,
        actors: Actor,
        greedy: bool = False,
        device: jax.Device | None = None,
        advice: Advice | None = None,
    ):
        """`actors`, and `advice` if there is any, are stacked along P. A greedy policy takes the most likely action
        instead of drawing one.

        It acts where its weights are, or on `device`.
        """
        if device is not None:
            world, actors, advice = jax.device_put((world, actors, advice), device)
        self._world = cast(world, world.config.precision)
        models = (self._world, cast(actors, actors.precision), advice)
        self._weights, self._structure = jax.tree.flatten(models)
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
        models = jax.tree.unflatten(self._structure, jax.device_get(self._weights))
        return _arrived, (*models, self._greedy)


def _arrived(world: WorldModel, actors: Actor, advice: Advice | None, greedy: bool) -> PopulationPolicy:
    """The policy on this process's device."""
    world, actors, advice = jax.tree.map(jnp.asarray, (world, actors, advice))
    return PopulationPolicy(world, actors, greedy, advice=advice)


@cache
def _program(structure: Any, greedy: bool) -> Program:
    """The compiled policy of models with this structure, taking their weights as a flat list."""

    @jax.jit
    def program(weights: list[Array], *args: Any) -> tuple[Memory, Array]:
        world, actors, advice = jax.tree.unflatten(structure, weights)
        return _act(world, actors, advice, greedy, *args)

    return program


def _act(
    world: WorldModel,
    actors: Actor,
    advice: Advice | None,
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
    own = jax.tree.map(lambda x: x.reshape(population, -1, x.shape[-1]), state)
    parameters = jax.vmap(lambda actor, x: actor.parameters(x))(actors, own.feature)
    if advice is not None:
        thinking = jax.vmap(lambda key: jax.random.fold_in(key, THINKING))(keys)
        parameters = parameters + advice(world, actors, own, thinking.reshape(population, -1))
    if greedy:
        action = actors.mode(parameters)
    else:
        draws = jax.vmap(actors.noise)(for_action).reshape(*parameters.shape[:2], -1)
        action = actors.draw(parameters, draws)
    action = action.reshape(-1, action.shape[-1])
    stored = action.argmax(-1).astype(jnp.int32) if world.action.kind == "discrete" else action
    return Memory(state.deter, state.stoch, action), stored
