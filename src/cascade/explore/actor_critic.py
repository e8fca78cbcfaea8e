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

RewardFunction = Callable[[Imagined], tuple[Float[Array, "H P N"], Any]]


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
    """What one round of imagination teaches the critics."""

    feature: Float[Array, "H P N F"]
    returns: Float[Array, "H P N"]
    weight: Float[Array, "H P N"]


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
    rewards, aux = reward(imagined)
    feature = imagined.states.feature
    value = jax.vmap(lambda critic, x: critic(x), in_axes=(0, 1), out_axes=1)(slow, feature)
    returns = lambda_returns(rewards, imagined.discount, value, config.trace)
    weight = fixed(reach(imagined.discount, starts.alive))
    log_prob, entropy = jax.vmap(lambda actor, x, a: actor.log_prob(x, a), in_axes=(0, 1, 1), out_axes=1)(
        actors, fixed(feature[:-1]), fixed(imagined.action)
    )
    score = log_prob * fixed(returns - value[:-1]) if reinforce else returns
    loss = -(weight * (score + config.entropy * entropy)).mean((0, 2)).sum()
    metrics = {
        "entropy": entropy.mean((0, 2)),
        "return": returns.mean((0, 2)),
        "advantage": jnp.abs(returns - value[:-1]).mean((0, 2)),
        "value": value.mean((0, 2)),
    }
    return loss, (fixed(Lesson(feature[:-1], returns, weight)), fixed(aux), fixed(metrics))


def critic_loss(critics: Critic, lesson: Lesson) -> Float[Array, ""]:
    """½ Σ w_t (v(s_t) - R_t)²."""
    value = jax.vmap(lambda critic, x: critic(x), in_axes=(0, 1), out_axes=1)(critics, lesson.feature)
    return (0.5 * lesson.weight * jnp.square(value - lesson.returns)).mean((0, 2)).sum()


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
    value_loss, critic_grads = jax.value_and_grad(critic_loss)(agents.critic.model, lesson)

    def improve(agent: Agent, actor_grads: Actor, critic_grads: Critic) -> tuple[Agent, Metrics]:
        actor, actor_extra = update(agent.actor, actor_grads, config.actor)
        critic, critic_extra = update(agent.critic, critic_grads, config.critic)
        renew = (agent.updates + 1) % config.slow_every == 0
        slow = jax.tree.map(lambda new, old: jnp.where(renew, new, old), critic.model, agent.slow)
        extra = {f"actor_{name}": value for name, value in actor_extra.items()}
        extra |= {f"critic_{name}": value for name, value in critic_extra.items()}
        return Agent(actor, critic, slow, agent.updates + 1), extra

    agents, extra = jax.vmap(improve)(agents, grads, critic_grads)
    mean_loss = jnp.broadcast_to(value_loss / keys.shape[0], extra["actor_grad_norm"].shape)
    return agents, aux, metrics | extra | {"critic_loss": mean_loss}
