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
from cascade.nn.distributions import bernoulli_log_prob, squared_error
from cascade.nn.layers import MLP
from cascade.nn.learner import Learner, repeat, update
from cascade.nn.precision import cast
from cascade.types import Batch
from cascade.world.model import Metrics, WorldModel, posteriors
from cascade.world.rssm import feature_size


class RewardHead(eqx.Module):
    """Whether a state is worth anything, times how much: p(s) v(s), in units of the task's own labels.

    Where rewards are sparse most are exactly 0. A plain regression is never quite 0 there, and a little, earned at
    every step of a long life, outweighs the goal; a probability comes much closer.
    """

    mlp: MLP
    precision: str = eqx.field(static=True)

    def __init__(self, world: WorldConfig, config: TransferConfig, *, key: PRNGKeyArray):
        mlp = MLP(feature_size(world), 2, config.reward_layers, config.reward_units, key=key)
        # A state that nothing is known of is worth nothing.
        self.mlp = eqx.tree_at(lambda mlp: mlp.out.weight, mlp, jnp.zeros_like(mlp.out.weight))
        self.precision = world.precision

    def parts(self, feature: Float[Array, "*B F"]) -> tuple[Float[Array, "*B"], Float[Array, "*B"]]:
        """The logit of p, and v."""
        out = cast(self.mlp, self.precision)(feature).astype(jnp.float32)
        return out[..., 0], out[..., 1]


class FrozenHeads(eqx.Module):
    """Trained heads of P tasks, as imagination reads them; of one task where P is vmapped away."""

    head: RewardHead
    excess: Float[Array, "*P"]  # log of how many times too large the odds of a reward are
    final: Bool[Array, "*P"]  # whether every reward of the task ends its episode

    def __call__(self, feature: Float[Array, "P *N F"]) -> tuple[Float[Array, "P *N"], Float[Array, "P *N"]]:
        """Each task's reward of its own states, in units of its labels; how likely life goes on after it.

        The second is 1 unless all rewards of the task are final. Then a world model that does not know an end for one
        still cannot imagine that it is earned twice.
        """
        found: tuple[Array, Array] = jax.vmap(lambda task, x: task.one(x))(self, feature)
        return found

    def one(self, feature: Float[Array, "*N F"]) -> tuple[Float[Array, "*N"], Float[Array, "*N"]]:
        """The same of a single task."""
        logit, value = self.head.parts(feature)
        chance = jax.nn.sigmoid(logit - self.excess)
        return chance * value, 1.0 - jnp.where(self.final, chance, 0.0)


class RewardHeads(eqx.Module):
    """A head for each of P tasks, the unit that its rewards are learned in, where and how often they are met.

    Rows with a rare reward are drawn more often than they occur, so a head trained on them expects too many. The odds
    of p are therefore divided by the ratio of the two: what looks like one rewarding row in a thousand is worth that.
    """

    learner: Learner[RewardHead]
    unit: Float[Array, "*S P"]
    share: Float[Array, "*S P"]  # of the stored rows, how many are rewarding
    final: Bool[Array, "*S P"]  # whether every one of those ends its episode
    rewarding: Float[Array, "*S P"]  # rewarding rows that were trained on, and all rows
    rows: Float[Array, "*S P"]

    @property
    def excess(self) -> Float[Array, "*S P"]:
        """Log of how many times the odds of a reward were larger in training than they are in the store."""
        drawn = self.rewarding / jnp.maximum(self.rows, 1.0)
        return _logit(jnp.where(self.rows > 0, drawn, self.share)) - _logit(self.share)

    @property
    def frozen(self) -> FrozenHeads:
        """Without what only training needs."""
        return FrozenHeads(self.learner.model, self.excess, self.final)

    def __call__(self, feature: Float[Array, "P *N F"]) -> tuple[Float[Array, "P *N"], Float[Array, "P *N"]]:
        """What the heads say as they are now."""
        return self.frozen(feature)


def _logit(share: Float[Array, "*P"]) -> Float[Array, "*P"]:
    share = jnp.clip(share, 1e-6, 1.0 - 1e-6)
    return jnp.log(share) - jnp.log1p(-share)


def create(
    world: WorldConfig,
    units: Float[Array, " P"],
    shares: Float[Array, " P"],
    final: Bool[Array, " P"],
    config: TransferConfig,
    *,
    key: PRNGKeyArray,
) -> RewardHeads:
    """Untrained heads, the same for every task, so that a task does not depend on those beside it."""
    one = Learner.create(RewardHead(world, config, key=key), config.reward)
    learner = jax.tree.map(lambda x: jnp.broadcast_to(x, (len(units), *x.shape)), one)
    return RewardHeads(learner, units, shares, final, jnp.zeros_like(units), jnp.zeros_like(units))


def loss(
    head: RewardHead,
    excess: Float[Array, ""],
    feature: Float[Array, "B T F"],
    target: Float[Array, "B T"],
    counts: Bool[Array, "B T"],
) -> tuple[Float[Array, ""], Metrics]:
    """-log p(label is 0, or not), over the rows that count, and ½ (v - label)² over those that are worth something.

    Each is a mean over its own rows, so that v learns as fast where rewards are rare. Also the sums of errors,
    those of the rewards that imagination is given.
    """
    logit, value = head.parts(feature)
    weight = counts.astype(jnp.float32)
    worth = (target != 0.0).astype(jnp.float32)
    rewarding, other = weight * worth, weight * (1.0 - worth)
    unlikely = -(bernoulli_log_prob(logit, worth) * weight).sum() / jnp.maximum(weight.sum(), 1.0)
    wrong = (squared_error(value, target) * rewarding).sum() / jnp.maximum(rewarding.sum(), 1.0)
    error = jnp.abs(jax.nn.sigmoid(logit - excess) * value - target)
    sums = {
        "rewarding": rewarding.sum(),
        "other": other.sum(),
        "rewarding_error": (error * rewarding).sum(),
        "other_error": (error * other).sum(),
    }
    return unlikely + wrong, sums


def step(
    heads: RewardHeads,
    feature: Float[Array, "B T F"],
    labels: Float[Array, "P B T"],
    is_first: Bool[Array, "B T"],
    config: TransferConfig,
) -> tuple[RewardHeads, Metrics]:
    """One gradient step of every head, each with its own optimiser."""
    targets = labels / jnp.broadcast_to(heads.unit[:, None, None], labels.shape)

    def one(
        learner: Learner[RewardHead], excess: Float[Array, ""], target: Float[Array, "B T"]
    ) -> tuple[Learner[RewardHead], Metrics]:
        (value, sums), grads = jax.value_and_grad(loss, has_aux=True)(
            learner.model, excess, feature, target, ~is_first
        )
        learner, extra = update(learner, grads, config.reward)
        return learner, {"loss": value, **sums, **extra}

    learner, metrics = jax.vmap(one)(heads.learner, heads.excess, targets)
    rows = heads.rewarding + metrics["rewarding"], heads.rows + metrics["rewarding"] + metrics["other"]
    return RewardHeads(learner, heads.unit, heads.share, heads.final, *rows), metrics


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
    feature = _features(world, chunk, step_index, key)

    def body(heads: RewardHeads, x: tuple[Array, Array, Array]) -> tuple[RewardHeads, Metrics]:
        return step(heads, *x, config)

    heads, means = repeat(body, heads, (feature, labels, chunk.is_first))
    return heads, {name: means[name] for name in ("loss", "grad_norm", "skipped")} | errors(means, heads.unit)


def measure(
    heads: RewardHeads,
    world: WorldModel,
    chunk: Batch,
    labels: Float[Array, "K P B T"],
    key: PRNGKeyArray,
) -> Metrics:
    """The errors of every head on a chunk [K, B, T], from which nothing is learned."""
    feature = _features(world, chunk, jnp.int32(0), key)

    def one(x: tuple[Array, Array, Array]) -> Metrics:
        feature, labels, is_first = x
        targets = labels / jnp.broadcast_to(heads.unit[:, None, None], labels.shape)
        sums: Metrics = jax.vmap(
            lambda head, excess, target: loss(head, excess, feature, target, ~is_first)[1]
        )(heads.learner.model, heads.excess, targets)
        return sums

    sums = jax.lax.map(one, (feature, labels, chunk.is_first))
    return errors({name: value.mean(0) for name, value in sums.items()}, heads.unit)


def _features(
    world: WorldModel, chunk: Batch, step_index: Int[Array, ""], key: PRNGKeyArray
) -> Float[Array, "K B T F"]:
    """What the heads read; the batch of step i draws its z from `fold_in(key, i)`."""
    count = chunk.is_first.shape[0]
    keys = jax.vmap(lambda index: jax.random.fold_in(key, index))(step_index + jnp.arange(count))
    return posteriors(world, chunk, keys).feature


def errors(means: Metrics, unit: Float[Array, " P"]) -> Metrics:
    """The summed errors divided by their numbers of rows; 0 where there were none."""
    rows = means["rewarding"] + means["other"]
    return {
        "rewarding_rows": means["rewarding"] / jnp.maximum(rows, 1.0),
        "error_rewarding": unit * means["rewarding_error"] / jnp.maximum(means["rewarding"], 1e-6),
        "error_other": unit * means["other_error"] / jnp.maximum(means["other"], 1e-6),
    }
