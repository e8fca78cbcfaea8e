"""The population: P explorers trained at once, each by its own actor and critic, on the cascading objective.

    reward of τ = λ PopDiv_i(τ) at the last imagined step + (1 - λ) σ(s_t, a_t) at every step

Every array of an explorer is stacked along P, and everything here is one vmap or one matrix product over it.
P2E is this with one explorer and λ = 0; PP2E with P explorers and λ = 0.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from cascade.config import ExploreConfig, WorldConfig
from cascade.explore import actor_critic
from cascade.explore.actor_critic import Agent
from cascade.explore.disagreement import Ensemble
from cascade.explore.diversity import DIVERSITIES
from cascade.explore.embedding import EMBEDDINGS
from cascade.explore.imagine import Imagined, Starts
from cascade.explore.returns import RunningScale
from cascade.specs import ActionSpec
from cascade.world.model import Metrics, WorldModel


class Scales(eqx.Module):
    """Running scales of the two reward terms, for each explorer."""

    gain: RunningScale
    diversity: RunningScale


class Population(eqx.Module):
    """P explorers; every leaf has a leading P."""

    agents: Agent
    scales: Scales


def create(world: WorldConfig, action: ActionSpec, config: ExploreConfig, *, key: PRNGKeyArray) -> Population:
    """A new population; its explorers differ by their initial weights."""

    def one(key: PRNGKeyArray) -> Population:
        agent = Agent.create(world, action, config.agent, key=key)
        return Population(agent, Scales(RunningScale.create(), RunningScale.create()))

    return jax.vmap(one)(jax.random.split(key, config.population))


def summaries(imagined: Imagined, config: ExploreConfig) -> Float[Array, "P N D"]:
    """Φ of every trajectory."""
    embed = EMBEDDINGS.find(config.embedding)
    apart = imagined.feature, imagined.final, imagined.action, imagined.discount
    return jax.vmap(lambda *one: embed(Imagined(*one)), in_axes=(1, 0, 1, 1))(*apart)


def rewards(
    scales: Scales, imagined: Imagined, ensemble: Ensemble, weight: Float[Array, ""], config: ExploreConfig
) -> tuple[Float[Array, "H P N"], tuple[Scales, Metrics]]:
    """The cascading objective as one reward per imagined step; also the scales moved on, and what was seen."""
    gain = ensemble.disagreement(imagined.feature, imagined.action)
    phi = summaries(imagined, config)
    spread = DIVERSITIES.find(config.diversity)(phi)
    total = gain.sum(0)
    metrics = {
        "information_gain": total.mean(-1),
        "diversity": spread.mean(-1),
        "pairwise_distance": pairwise_distance(phi),
    }
    if config.normalize != "none":
        scales = jax.vmap(lambda s, g, d: Scales(s.gain.update(g), s.diversity.update(d)))(
            scales, total, spread
        )
        centred = 1.0 if config.normalize == "centred" else 0.0
        gain = _on_scale(gain, centred * scales.gain.average / gain.shape[0], scales.gain.std)
        spread = _on_scale(spread, centred * scales.diversity.average, scales.diversity.std)
    reward = (1.0 - weight) * gain
    return reward.at[-1].add(weight * spread), (scales, metrics)


def _on_scale(
    values: Float[Array, "*H P N"], middle: Float[Array, " P"], size: Float[Array, " P"]
) -> Float[Array, "*H P N"]:
    """Less each explorer's middle, in units of its size."""
    middle, size = (jnp.broadcast_to(x[:, None], values.shape) for x in (middle, size))
    return (values - middle) / size


def pairwise_distance(phi: Float[Array, "P N D"]) -> Float[Array, " P"]:
    """Mean distance of each explorer's mean summary from the others'."""
    means = phi.astype(jnp.float32).mean(1)
    gaps = jnp.sqrt(jnp.square(means[:, None] - means[None]).sum(-1) + 1e-12)
    return gaps.sum(-1) / max(len(means) - 1, 1)


def step(
    population: Population,
    world: WorldModel,
    ensemble: Ensemble,
    starts: Starts,
    weight: Float[Array, ""],
    key: PRNGKeyArray,
    config: ExploreConfig,
) -> tuple[Population, Metrics]:
    """One update of all explorers at once. `weight`, the paper's λ, is an ordinary input: runs may vmap over it.

    Explorer i draws from `fold_in(key, i)` alone, so its imagination does not depend on how many others there are.
    """
    size = population.agents.updates.shape[0]
    keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(size))

    def reward(imagined: Imagined) -> tuple[Array, Array, tuple[Scales, Metrics]]:
        reward, aux = rewards(population.scales, imagined, ensemble, weight, config)
        return reward, imagined.discount, aux

    agents, (scales, seen), metrics = actor_critic.step(
        population.agents, world, starts, keys, reward, config.agent
    )
    return Population(agents, scales), metrics | seen
