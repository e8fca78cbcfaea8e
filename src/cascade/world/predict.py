"""What the model expects, beside what came: open-loop prediction, and the loss on data it was not trained on.

time         0     1    ...  context-1 | context     ...   T-1
sees         x0    x1   ...  x(c-1)    |  nothing
uses         -     a0   ...  a(c-2)    |  a(c-1)     ...   a(T-2)      the recorded actions
state        posterior                 |  imagined
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray, Shaped

from cascade.nn.precision import cast
from cascade.types import Batch
from cascade.world.model import Metrics, WorldModel, encode_action, loss
from cascade.world.rssm import State


class Prediction(eqx.Module):
    """Rows as the model has them: reconstructed as far as it sees, predicted from there on."""

    obs: dict[str, Shaped[Array, "B T ..."]]  # the most likely observation, as it would be stored
    alive: Float[Array, "B T"]  # probability that the episode goes on
    state: State
    valid: Bool[Array, "B T"]  # rows of the window's first episode: no action leads into the next one


def open_loop(world: WorldModel, batch: Batch, key: PRNGKeyArray, context: int = 5) -> Prediction:
    """Posterior states of the first `context` rows, then imagination under the recorded actions.

    Row t draws its z from row t of one block of noise, seen or imagined.
    """
    length = batch.is_first.shape[1]
    if not 1 <= context <= length:
        raise ValueError(f"context: got {context}, expected 1 to the {length} rows of a sequence")
    world = cast(world, world.config.precision)
    noise = world.rssm.noise(key, *batch.is_first.shape)
    seen, _ = world.observe(jax.tree.map(lambda x: x[:, :context], batch), noise[:, :context])
    last = jax.tree.map(lambda x: x[:, -1], seen)
    action = encode_action(world.action, batch.action)
    imagined = _imagine(world, last, action[:, context - 1 : -1], noise[:, context:])
    state = jax.tree.map(lambda *x: jnp.concatenate(x, 1), seen, imagined)
    obs = world.decoder.mode(state.feature)
    return Prediction(obs, world.continues(state.feature), state, first_episode(batch.is_first))


def _imagine(
    world: WorldModel, state: State, action: Float[Array, "B H A"], noise: Float[Array, "B H G"]
) -> State:
    """The H states after `state`, one for each action."""

    def step(state: State, x: tuple[Array, Array]) -> tuple[State, State]:
        state = world.rssm.imagine(state, *x)
        return state, state

    _, states = jax.lax.scan(step, state, (action.swapaxes(0, 1), noise.swapaxes(0, 1)))
    return jax.tree.map(lambda x: x.swapaxes(0, 1), states)


def first_episode(is_first: Bool[Array, "B T"]) -> Bool[Array, "B T"]:
    """Which rows belong to the episode that a window begins in."""
    later = is_first.at[:, 0].set(False).astype(jnp.int32)
    return jnp.cumsum(later, 1) == 0


def held_out_loss(world: WorldModel, chunk: Batch, key: PRNGKeyArray) -> Metrics:
    """The training loss and its parts on batches [K, B, T], their mean, without a gradient.

    Batch k draws from `fold_in(key, k)`. The batches are worked through one by one, so that as many as one likes
    take no more memory than one.
    """

    def one(x: tuple[Array, Batch]) -> Metrics:
        index, batch = x
        _, (_, metrics) = loss(world, batch, jax.random.fold_in(key, index))
        return metrics

    metrics = jax.lax.map(one, (jnp.arange(chunk.is_first.shape[0]), chunk))
    return {name: value.mean() for name, value in metrics.items()}
