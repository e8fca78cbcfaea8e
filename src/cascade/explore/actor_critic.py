"""How agents learn from imagined trajectories: λ-returns, then REINFORCE or gradients through the dynamics.

Everything has a leading P: agents side by side, the explorers of a population or the behaviour policies of several
tasks. A loss is the sum of each agent's own, so no agent's gradient touches another's weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from cascade.config import ActorCriticConfig, WorldConfig
from cascade.explore.actor import Actor, Critic
from cascade.explore.imagine import Imagined, Starts, imagine
from cascade.explore.returns import lambda_returns, reach
from cascade.nn.learner import Learner, update
from cascade.nn.precision import cast
from cascade.specs import ActionSpec
from cascade.world.model import Metrics, WorldModel
from cascade.world.rssm import feature_size

RewardFunction = Callable[[Imagined], tuple[Float[Array, "H P N"], Float[Array, "H P N"], Any]]
"""What every imagined step earns, the discount of arriving at the state after it, and whatever else was found out."""


class Agent(eqx.Module):
    """An actor, a critic and the critic's slow copy; stacked along P wherever there are several."""

    actor: Learner[Actor]
    critic: Learner[Critic]
    slow: Critic
    updates: Int[Array, "*P"]

    @classmethod
    def create(
        cls, world: WorldConfig, action: ActionSpec, config: ActorCriticConfig, *, key: PRNGKeyArray
    ) -> Agent:
        first, second = jax.random.split(key)
        features = feature_size(world)
        actor = Actor(features, action, config, world.precision, key=first)
        critic = Critic(features, config, world.precision, key=second)
        learners = Learner.create(actor, config.actor), Learner.create(critic, config.critic)
        slow = jax.tree.map(jnp.copy, critic)  # its own memory, so that both may be donated
        return cls(*learners, slow, jnp.zeros((), jnp.int32))


class Lesson(eqx.Module):
    """What one round of imagination teaches the critics, agent by agent."""

    feature: Float[Array, "P H N F"]
    returns: Float[Array, "P H N"]
    weight: Float[Array, "P H N"]


def by_reinforce(config: ActorCriticConfig, action: ActionSpec) -> bool:
    """Whether actors learn by REINFORCE; the alternative is gradients through the dynamics."""
    return action.kind == "discrete" if config.gradient == "auto" else config.gradient == "reinforce"


def actor_loss(
    actors: Actor,
    slow: Critic,
    world: WorldModel,
    starts: Starts,
    keys: Key[Array, " P"],
    reward: RewardFunction,
    config: ActorCriticConfig,
) -> tuple[Float[Array, ""], tuple[Lesson, Any, Metrics]]:
    """-Σ w_t (score_t + η H[π(.|s_t)]): score is log π(a_t|s_t) (R_t - v(s_t)), or R_t itself."""
    fixed = jax.lax.stop_gradient
    reinforce = by_reinforce(config, actors.action)
    imagined = imagine(world, fixed(actors) if reinforce else actors, starts, keys, config)
    rewards, discount, aux = reward(imagined)
    # Agent by agent from here on: one copy, so that each of the batched products below reads plain matrices.
    feature = jax.lax.optimization_barrier(imagined.feature.swapaxes(0, 1))
    action, rewards, discount = (x.swapaxes(0, 1) for x in (imagined.action, rewards, discount))
    value, last = evaluate(slow, feature), evaluate(slow, imagined.final.feature)
    values = jnp.concatenate([value, last[:, None]], 1)
    returns = jax.vmap(lambda r, c, v: lambda_returns(r, c, v, config.trace))(rewards, discount, values)
    weight = fixed(jax.vmap(lambda c: reach(c, starts.alive))(discount))
    log_prob, entropy = jax.vmap(lambda actor, x, a: actor.log_prob(x, a))(
        actors, fixed(feature), fixed(action)
    )
    score = log_prob * fixed(returns - value) if reinforce else returns
    loss = -(weight * (score + config.entropy * entropy)).mean((1, 2)).sum()
    metrics = {
        "entropy": entropy.mean((1, 2)),
        "return": returns.mean((1, 2)),
        "advantage": jnp.abs(returns - value).mean((1, 2)),
        "value": value.mean((1, 2)),
    }
    return loss, (fixed(Lesson(feature, returns, weight)), fixed(aux), fixed(metrics))


def evaluate(critics: Critic, feature: Float[Array, "P *N F"]) -> Float[Array, "P *N"]:
    """Each critic's values of its own agent's states."""
    return jax.vmap(lambda critic, x: critic(x))(critics, feature)


def critic_loss(critics: Critic, lesson: Lesson) -> tuple[Float[Array, ""], Float[Array, " P"]]:
    """½ Σ w_t (v(s_t) - R_t)², and the same of each critic."""
    value = evaluate(critics, lesson.feature)
    each = (0.5 * lesson.weight * jnp.square(value - lesson.returns)).mean((1, 2))
    return each.sum(), each


def step(
    agents: Agent,
    world: WorldModel,
    starts: Starts,
    keys: Key[Array, " P"],
    reward: RewardFunction,
    config: ActorCriticConfig,
) -> tuple[Agent, Any, Metrics]:
    """One update of every agent from one imagined batch; the world model stays as it is."""
    world = cast(world, world.config.precision)
    grads, (lesson, aux, metrics) = jax.grad(actor_loss, has_aux=True)(
        agents.actor.model, agents.slow, world, starts, keys, reward, config
    )
    critic_grads, critic_losses = jax.grad(critic_loss, has_aux=True)(agents.critic.model, lesson)

    def improve(agent: Agent, actor_grads: Actor, critic_grads: Critic) -> tuple[Agent, Metrics]:
        actor, actor_extra = update(agent.actor, actor_grads, config.actor)
        critic, critic_extra = update(agent.critic, critic_grads, config.critic)
        renew = (agent.updates + 1) % config.slow_every == 0
        slow = jax.tree.map(lambda new, old: jnp.where(renew, new, old), critic.model, agent.slow)
        extra = {f"actor_{name}": value for name, value in actor_extra.items()}
        extra |= {f"critic_{name}": value for name, value in critic_extra.items()}
        return Agent(actor, critic, slow, agent.updates + 1), extra

    agents, extra = jax.vmap(improve)(agents, grads, critic_grads)
    return agents, aux, metrics | extra | {"critic_loss": critic_losses}
