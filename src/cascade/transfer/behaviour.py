"""Behaviour policies: one actor and critic for each task, trained from scratch in imagination.

time       0      1      ...   H-1       H
state      s0     s1     ...   s(H-1)    sH        s0 is a posterior state of stored data
action     a0     a1     ...   a(H-1)
reward     r1     r2     ...   rH                  of ARRIVING at the next state: the reward head at s(t+1)
discount   c1     c2     ...   cH                  of arriving there: gamma times the chance to go on

The reward of a step that ends an episode is counted, and nothing after it. Where all rewards of a task come at the
end of an episode, the reward head says so too: an imagined life goes on only where there is none.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from cascade.config import TransferConfig, WorldConfig
from cascade.explore import actor_critic
from cascade.explore.actor_critic import Agent
from cascade.explore.imagine import Imagined, Starts, choose_starts
from cascade.explore.returns import RunningScale, reach
from cascade.nn.learner import repeat
from cascade.specs import ActionSpec
from cascade.transfer.reward_head import RewardHeads
from cascade.types import Batch
from cascade.world.model import Metrics, WorldModel, posteriors
from cascade.world.rssm import State

SMALLEST = 0.1
"""Imagined returns smaller than this share of one label are not blown up any further: they may be mere error."""


class Behaviours(eqx.Module):
    """P agents, one for each task, and the running size of what each imagines to earn."""

    agents: Agent
    size: RunningScale


def create(
    world: WorldConfig, action: ActionSpec, tasks: int, config: TransferConfig, *, key: PRNGKeyArray
) -> Behaviours:
    """Untrained agents, the same for every task, so that a task does not depend on those beside it."""
    one = Behaviours(Agent.create(world, action, config.agent, key=key), RunningScale.create())
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (tasks, *x.shape)), one)


def rewards(
    size: RunningScale,
    heads: RewardHeads,
    imagined: Imagined,
    alive: Float[Array, " N"],
    config: TransferConfig,
) -> tuple[Float[Array, "H P N"], Float[Array, "H P N"], tuple[RunningScale, Metrics]]:
    """The reward head at every state that is arrived at, on the scale of what is earned in the horizon; the discount.

    With `normalize = running` rewards are divided by the running root mean square of the trajectories' discounted
    sums of rewards. Unlike a standard deviation it does not vanish when every trajectory earns the same.
    """
    arrived = jnp.concatenate([imagined.feature[1:], imagined.final.feature[None]])
    reward, going = (x.swapaxes(0, 1) for x in heads(arrived.swapaxes(0, 1)))
    discount = imagined.discount * going
    earned = (reach(discount, alive) * reward).sum(0)
    metrics = {"imagined_reward": earned.mean(-1) * heads.unit}
    size = jax.vmap(lambda one, values: one.update(values))(size, earned)
    reward = reward / jnp.broadcast_to(divisor(size, config)[:, None], reward.shape)
    return reward, discount, (size, metrics)


def divisor(size: RunningScale, config: TransferConfig) -> Float[Array, " P"]:
    """What rewards, in units of their labels, are divided by."""
    return jnp.maximum(size.rms, SMALLEST) if config.normalize == "running" else jnp.ones_like(size.mean)


def step(
    behaviours: Behaviours,
    world: WorldModel,
    heads: RewardHeads,
    starts: Starts,
    key: PRNGKeyArray,
    config: TransferConfig,
) -> tuple[Behaviours, Metrics]:
    """One update of every task's agent from one imagined batch.

    All tasks draw from the same key, so that on the same batches a task alone learns what it learns beside others.
    """
    keys = jnp.broadcast_to(key, behaviours.agents.updates.shape)

    def reward(imagined: Imagined) -> tuple[Array, Array, tuple[RunningScale, Metrics]]:
        return rewards(behaviours.size, heads, imagined, starts.alive, config)

    agents, (size, seen), metrics = actor_critic.step(
        behaviours.agents, world, starts, keys, reward, config.agent
    )
    return Behaviours(agents, size), metrics | seen


def behaviour_phase(
    behaviours: Behaviours,
    heads: RewardHeads,
    world: WorldModel,
    chunk: Batch,
    step_index: Int[Array, ""],
    key: PRNGKeyArray,
    config: TransferConfig,
) -> tuple[Behaviours, Metrics]:
    """One update of every agent for each batch of a chunk [K, B, T]; the world model and the heads are frozen.

    Step i draws from `fold_in(key, i)` alone. Metrics are means over the chunk, one for each task.
    """
    count = chunk.is_first.shape[0]
    keys = jax.vmap(lambda index: jax.random.split(jax.random.fold_in(key, index), 3))(
        step_index + jnp.arange(count)
    )
    states = posteriors(world, chunk, keys[:, 0])

    def body(behaviours: Behaviours, x: tuple[State, Array, Array]) -> tuple[Behaviours, Metrics]:
        states, is_terminal, keys = x
        starts = choose_starts(states, is_terminal, config.agent.starts, keys[1])
        return step(behaviours, world, heads, starts, keys[2], config)

    return repeat(body, behaviours, (states, chunk.is_terminal, keys))
