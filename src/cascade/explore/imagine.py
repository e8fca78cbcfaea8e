"""Imagined trajectories of a whole population.

time       0      1      ...   H-1       H
state      s0     s1     ...   s(H-1)    sH        s0 is a posterior state of real data
action     a0     a1     ...   a(H-1)              taken AT that time, by each explorer's own actor
reward     r0     r1     ...   r(H-1)              of (s_t, a_t); a trajectory's diversity joins the last
discount          c1     ...   c(H-1)    cH        of arriving at s_t: gamma times the chance to go on
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PRNGKeyArray

from cascade.config import ActorCriticConfig
from cascade.explore.actor import Actor
from cascade.world.model import WorldModel
from cascade.world.rssm import State


class Imagined(eqx.Module):
    """Trajectories of P explorers from the same N starts; of one explorer where P is vmapped away.

    The last state is apart from the others, so that the large arrays are written once and read as they are.
    """

    feature: Float[Array, "H *P N F"]  # [h, z] of s0 .. s(H-1)
    final: State  # sH
    action: Float[Array, "H *P N A"]
    discount: Float[Array, "H *P N"]

    @property
    def deter(self) -> Float[Array, "H *P N D"]:
        """h of s0 .. s(H-1)."""
        return self.feature[..., : self.final.deter.shape[-1]]


class Starts(eqx.Module):
    """Where imagination begins, and whether life goes on from there (0 after a real end)."""

    state: State  # [N, ...]
    alive: Float[Array, " N"]


def choose_starts(states: State, is_terminal: Array, count: int, key: PRNGKeyArray) -> Starts:
    """`count` of the posterior states of a batch [B, T], without replacement; all of them for 0."""
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (states, is_terminal))
    total = flat[1].shape[0]
    if 0 < count < total:
        index = jax.random.choice(key, total, (count,), replace=False)
        flat = jax.tree.map(lambda x: x[index], flat)
    return Starts(flat[0], 1.0 - flat[1].astype(jnp.float32))


def imagine(
    world: WorldModel, actors: Actor, starts: Starts, keys: Key[Array, " P"], config: ActorCriticConfig
) -> Imagined:
    """Roll every explorer's actor out in the model; explorer p draws from `keys[p]` alone.

    `world` is already in its compute precision. Gradients flow to the actors through actions and dynamics,
    unless the caller stops them.
    """
    count, population = starts.alive.shape[0], keys.shape[0]

    def begin(x: Float[Array, "N D"]) -> Float[Array, "P N D"]:
        return jnp.broadcast_to(x, (population, *x.shape))

    def draw(key: PRNGKeyArray) -> tuple[Array, Array]:
        act, move = jax.random.split(key)
        return actors.noise(act, count), world.rssm.noise(move, count)

    def step(state: State, time: Array) -> tuple[State, tuple[Array, Array]]:
        act, move = jax.vmap(lambda key: draw(jax.random.fold_in(key, time)))(keys)
        feature = state.feature
        action = jax.vmap(lambda actor, x, noise: actor.sample(x, noise))(actors, feature, act)
        return world.rssm.imagine(state, action, move), (feature, action)

    first = jax.tree.map(begin, starts.state)
    unroll = min(world.config.unroll, config.horizon)
    final, (feature, action) = jax.lax.scan(step, first, jnp.arange(config.horizon), unroll=unroll)
    going = jnp.concatenate([world.continues(feature)[1:], world.continues(final.feature)[None]])
    return Imagined(feature, final, action, config.discount * going)
