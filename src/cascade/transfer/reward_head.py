"""Reward heads: what arriving at a state is worth, read from the features of a frozen world model.

row         0        1        2      ...      label r_t is what ARRIVING at row t was worth,
feature     [h,z]0   [h,z]1   [h,z]2 ...      and the head reads it from the state at that same row
label       -        r1       r2     ...      the first row of a window is not arrived at: it does not count

Heads of several tasks are stacked along P and trained side by side, on the same features.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from cascade.config import TransferConfig, WorldConfig
from cascade.nn.distributions import squared_error
from cascade.nn.layers import MLP
from cascade.nn.learner import Learner, repeat, update
from cascade.nn.precision import cast
from cascade.types import Batch
from cascade.world.model import Metrics, WorldModel, posteriors
from cascade.world.rssm import feature_size


class RewardHead(eqx.Module):
    """The mean of a Gaussian of unit variance, in units of the task's own labels."""

    mlp: MLP
    precision: str = eqx.field(static=True)

    def __init__(self, world: WorldConfig, config: TransferConfig, *, key: PRNGKeyArray):
        mlp = MLP(feature_size(world), 1, config.reward_layers, config.reward_units, key=key)
        # A state that nothing is known of is worth nothing.
        self.mlp = eqx.tree_at(lambda mlp: mlp.out.weight, mlp, jnp.zeros_like(mlp.out.weight))
        self.precision = world.precision

    def __call__(self, feature: Float[Array, "*B F"]) -> Float[Array, "*B"]:
        return cast(self.mlp, self.precision)(feature)[..., 0].astype(jnp.float32)


class RewardHeads(eqx.Module):
    """A head for each of P tasks, and the unit that its rewards are learned in."""

    learner: Learner[RewardHead]
    unit: Float[Array, "*S P"]

    def __call__(self, feature: Float[Array, "P *N F"]) -> Float[Array, "P *N"]:
        """Each task's reward of its own states, in units of its labels."""
        return jax.vmap(lambda head, x: head(x))(self.learner.model, feature)


def create(
    world: WorldConfig, units: Float[Array, " P"], config: TransferConfig, *, key: PRNGKeyArray
) -> RewardHeads:
    """Untrained heads, the same for every task, so that a task does not depend on those beside it."""
    learner = Learner.create(RewardHead(world, config, key=key), config.reward)
    return RewardHeads(
        jax.tree.map(lambda x: jnp.broadcast_to(x, (len(units), *x.shape)), learner), jnp.asarray(units)
    )


def loss(
    head: RewardHead, feature: Float[Array, "B T F"], target: Float[Array, "B T"], counts: Bool[Array, "B T"]
) -> tuple[Float[Array, ""], Metrics]:
    """-log N(label; head(state), 1) over the rows that count; also the sums that errors are computed from."""
    prediction = head(feature)
    weight = counts.astype(jnp.float32)
    total = (squared_error(prediction, target) * weight).sum() / jnp.maximum(weight.sum(), 1.0)
    error, rewarding = jnp.abs(prediction - target), weight * (target != 0.0).astype(jnp.float32)
    other = weight - rewarding
    sums = {
        "rewarding": rewarding.sum(),
        "other": other.sum(),
        "rewarding_error": (error * rewarding).sum(),
        "other_error": (error * other).sum(),
    }
    return total, sums


def step(
    heads: RewardHeads,
    feature: Float[Array, "B T F"],
    labels: Float[Array, "P B T"],
    is_first: Bool[Array, "B T"],
    config: TransferConfig,
) -> tuple[RewardHeads, Metrics]:
    """One gradient step of every head, each with its own optimiser."""
    targets = labels / jnp.broadcast_to(heads.unit[:, None, None], labels.shape)

    def one(learner: Learner[RewardHead], target: Float[Array, "B T"]) -> tuple[Learner[RewardHead], Metrics]:
        (value, sums), grads = jax.value_and_grad(loss, has_aux=True)(
            learner.model, feature, target, ~is_first
        )
        learner, extra = update(learner, grads, config.reward)
        return learner, {"loss": value, **sums, **extra}

    learner, metrics = jax.vmap(one)(heads.learner, targets)
    return RewardHeads(learner, heads.unit), metrics


def reward_phase(
    heads: RewardHeads,
    world: WorldModel,
    chunk: Batch,
    labels: Float[Array, "K P B T"],
    step_index: Int[Array, ""],
    key: PRNGKeyArray,
    config: TransferConfig,
) -> tuple[RewardHeads, Metrics]:
    """One step of every head for each batch of a chunk [K, B, T], the world model frozen.

    Step i draws from `fold_in(key, i)` alone. Metrics are means over the chunk, one for each task; the two
    errors are mean absolute errors in the units of the labels.
    """
    count = chunk.is_first.shape[0]
    keys = jax.vmap(lambda index: jax.random.fold_in(key, index))(step_index + jnp.arange(count))
    feature = posteriors(world, chunk, keys).feature

    def body(heads: RewardHeads, x: tuple[Array, Array, Array]) -> tuple[RewardHeads, Metrics]:
        return step(heads, *x, config)

    heads, means = repeat(body, heads, (feature, labels, chunk.is_first))
    return heads, errors(means, heads.unit)


def errors(means: Metrics, unit: Float[Array, " P"]) -> Metrics:
    """Metrics with the summed errors divided by their numbers of rows; 0 where there were none."""
    rest = {name: means[name] for name in ("loss", "grad_norm", "skipped")}
    rows = means["rewarding"] + means["other"]
    return rest | {
        "rewarding_rows": means["rewarding"] / jnp.maximum(rows, 1.0),
        "error_rewarding": unit * means["rewarding_error"] / jnp.maximum(means["rewarding"], 1e-6),
        "error_other": unit * means["other_error"] / jnp.maximum(means["other"], 1e-6),
    }
