"""A policy that looks ahead: before it acts it imagines what would come of each action, judged as in its training.

For each action some trajectories are imagined that begin with it and go on as the actor would. By how much the mean
of their λ-returns is above that of all actions is the advantage A(s, a), and the action is drawn from

    π'(a | s)  ∝  π(a | s) exp(w A(s, a)),

which of all policies has the largest w E[A] - KL(π' | π): it gains what it can without going far from the actor.
Returns are those that the behaviour learned from, of rewards in units of what imagined trajectories earn. Where these
are rare a mean of few is mostly chance, so advantages are shrunk by how much of their spread chance explains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PRNGKeyArray

from cascade.config import ActorCriticConfig, TransferConfig, WorldConfig
from cascade.explore.actor import Actor, Critic
from cascade.explore.imagine import Starts, imagine
from cascade.explore.returns import lambda_returns
from cascade.transfer import behaviour
from cascade.transfer.behaviour import Behaviours
from cascade.transfer.reward_head import FrozenHeads, RewardHead, RewardHeads
from cascade.world.model import WorldModel
from cascade.world.rssm import State, feature_size

OWN = ("lookahead", "lookahead_weight", "reward_layers", "reward_units")
AGENT = ("layers", "units", "horizon", "discount", "trace")
"""The settings of a transfer, and of its agent, that decide what a lookahead does."""


class Lookahead(eqx.Module):
    """What judges the imagined futures of P tasks; of one task where P is vmapped away."""

    critic: Critic
    heads: FrozenHeads
    unit: Float[Array, "*P"]  # what a reward is divided by
    config: TransferConfig = eqx.field(static=True)

    @classmethod
    def of(cls, behaviours: Behaviours, heads: RewardHeads, config: TransferConfig) -> Lookahead:
        """The critics and reward heads that the behaviours were trained with."""
        unit = behaviour.divisor(behaviours.size, config)
        return cls(behaviours.agents.critic.model, heads.frozen, unit, restored(settings(config)))

    @classmethod
    def blank(cls, world: WorldConfig, config: TransferConfig, *, key: PRNGKeyArray) -> Lookahead:
        """One of a single task that knows nothing, for its arrays' shapes."""
        critic = Critic(feature_size(world), config.agent, world.precision, key=key)
        head = FrozenHeads(RewardHead(world, config, key=key), jnp.zeros(()), jnp.zeros((), bool))
        return cls(critic, head, jnp.ones(()), config)

    def __call__(
        self, world: WorldModel, actors: Actor, state: State, keys: Key[Array, "P n"]
    ) -> Float[Array, "P n A"]:
        """w A(s, a) of every action in n states [P, n, ...] of each task; a state draws from its own key."""

        def one(look: Lookahead, actor: Actor, states: State, keys: Key[Array, " n"]) -> Float[Array, "n A"]:
            found = jax.vmap(lambda state, key: look.samples(world, actor, state, key))(states, keys)
            return jax.vmap(advantages)(found)

        return self.config.lookahead_weight * jax.vmap(one)(self, actors, state, keys)

    def samples(
        self, world: WorldModel, actor: Actor, state: State, key: PRNGKeyArray
    ) -> Float[Array, "A K"]:
        """K returns of every action in one state; all meet the same draws, so that chance tells them apart less."""
        first, later = jax.random.split(key)
        count = self.config.lookahead
        noise = world.rssm.noise(first, count)

        def after(action: Float[Array, " A"]) -> Float[Array, " K"]:
            here, taken = jax.tree.map(lambda x: jnp.broadcast_to(x, (count, *x.shape)), (state, action))
            return self.returns(world, actor, world.rssm.imagine(here, taken, noise), later)

        return jax.vmap(after)(jnp.eye(actor.action.size, dtype=state.deter.dtype))

    def returns(
        self, world: WorldModel, actor: Actor, arrived: State, key: PRNGKeyArray
    ) -> Float[Array, " N"]:
        """λ-returns of the step that led to the states `arrived` [N, ...], over the behaviour's own horizon.

        state      s1 = arrived   s2   ...   sH
        reward     r1             r2   ...   rH        of arriving there
        discount   c1             c2   ...   cH        of going on from there
        """
        agent = self.config.agent
        rest = replace(agent, horizon=max(1, agent.horizon - 1))
        starts = Starts(arrived, jnp.ones(arrived.deter.shape[:1]))
        imagined = imagine(world, jax.tree.map(lambda x: x[None], actor), starts, key[None], rest)
        feature = jnp.concatenate([imagined.feature, imagined.final.feature[None]])[:, 0]
        first = agent.discount * world.continues(arrived.feature)
        reward, going = self.heads.one(feature)
        discount = going * jnp.concatenate([first[None], imagined.discount[:, 0]])
        value = self.critic(feature)
        values = jnp.concatenate([value[:1], value])  # in the first place that of s0, which nothing reads
        return lambda_returns(reward / self.unit, discount, values, agent.trace)[0]


def advantages(samples: Float[Array, "A K"]) -> Float[Array, " A"]:
    """By how much each action's mean is above that of all, times the share of these differences that is not chance.

    Their mean square is what truly differs plus the variance of the means, which the paired samples tell.
    """
    paired = samples - samples.mean(0, keepdims=True)
    mean = paired.mean(1)
    chance = paired.var(1).mean() / max(samples.shape[1] - 1, 1)
    spread = jnp.square(mean).mean()
    trusted = jnp.where(spread > chance, 1.0 - chance / jnp.maximum(spread, 1e-20), 0.0)
    return trusted * mean


def settings(config: TransferConfig) -> dict[str, Any]:
    """What decides how a lookahead is made and what it does, as a plain document."""
    whole = asdict(config)
    return {name: whole[name] for name in OWN} | {"agent": {name: whole["agent"][name] for name in AGENT}}


def restored(document: Mapping[str, Any]) -> TransferConfig:
    """The settings that `settings` wrote; the others, which play no part, at their defaults."""
    return TransferConfig(**dict(document) | {"agent": ActorCriticConfig(**document["agent"])})
