"""Information gain: an ensemble of one-step models, and where they disagree.

member_e(h_t, z_t, a_t) predicts z_{t+1}, with a_t the action taken AT t        sigma(s, a) = Var_e

What a member predicts is the mean of z_{t+1}: number by number, or as one distribution for each categorical of z. A
distribution comes to rest at 0 and 1 where the next state is certain, so that the members then agree.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from cascade.config import EnsembleConfig, WorldConfig
from cascade.nn.distributions import squared_error
from cascade.nn.layers import MLP
from cascade.nn.learner import Learner, update
from cascade.nn.precision import cast
from cascade.world.model import Metrics
from cascade.world.rssm import State, feature_size, stoch_size


class Ensemble(eqx.Module):
    """E members in one stacked pytree."""

    members: MLP
    config: EnsembleConfig = eqx.field(static=True)
    classes: int = eqx.field(static=True)
    precision: str = eqx.field(static=True)

    def __init__(self, world: WorldConfig, actions: int, config: EnsembleConfig, *, key: PRNGKeyArray):
        def member(key: PRNGKeyArray) -> MLP:
            inputs = feature_size(world) + actions
            return MLP(inputs, stoch_size(world), config.layers, config.units, key=key)

        self.members = jax.vmap(member)(jax.random.split(key, config.members))
        self.config, self.classes, self.precision = config, world.classes, world.precision

    def outputs(self, feature: Float[Array, "*B F"], action: Float[Array, "*B A"]) -> Float[Array, "E *B Z"]:
        """What the members' last layers say: z_{t+1} itself, or its logits."""
        parts = [part.astype(self.precision) for part in (feature, action)]
        x, members = _aligned(parts, cast(self.members, self.precision))
        return jax.vmap(lambda member: member(x))(members)

    def predict(self, feature: Float[Array, "*B F"], action: Float[Array, "*B A"]) -> Float[Array, "E *B Z"]:
        """Every member's z_{t+1}, given [h_t, z_t] and the action taken at t."""
        outputs = self.outputs(feature, action)
        if self.config.likelihood == "gaussian":
            return outputs
        return jax.nn.softmax(self.by_class(outputs)).reshape(outputs.shape)

    def by_class(self, z: Float[Array, "*B Z"]) -> Float[Array, "*B G C"]:
        """The classes of each categorical of z along an axis of their own, in float32."""
        return z.astype(jnp.float32).reshape(*z.shape[:-1], -1, self.classes)

    def disagreement(self, feature: Float[Array, "*B F"], action: Float[Array, "*B A"]) -> Float[Array, "*B"]:
        """sigma(s, a): variance (or standard deviation) over members, mean over the dimensions of z."""
        predictions = self.predict(feature, action).astype(jnp.float32)
        # Relative to one member nothing large cancels; and a sum written out over members is one pass over memory,
        # where a reduction over the leading axis is many times slower on a CPU.
        offsets = [predictions[e] - predictions[0] for e in range(1, self.config.members)]
        mean = sum(offsets[1:], offsets[0]) / self.config.members
        square = (
            sum((jnp.square(offset) for offset in offsets[1:]), jnp.square(offsets[0])) / self.config.members
        )
        variance = jnp.maximum(square - jnp.square(mean), 0.0)
        return (variance if self.config.measure == "variance" else jnp.sqrt(variance + 1e-12)).mean(-1)


def _aligned(
    parts: list[Float[Array, "*B _"]], members: MLP, multiple: int = 64
) -> tuple[Float[Array, "*B J"], MLP]:
    """The members' inputs, side by side, and their first weights, both with zeros up to a length that matrix units
    like; the product is the same."""
    extra = -sum(part.shape[-1] for part in parts) % multiple
    zeros = jnp.zeros((*parts[0].shape[:-1], extra), parts[0].dtype)
    weight = jnp.pad(members.hidden[0].weight, [(0, 0), (0, extra), (0, 0)])
    members = eqx.tree_at(lambda m: m.hidden[0].weight, members, weight)
    return jnp.concatenate([*parts, zeros], -1), members


def loss(
    ensemble: Ensemble, states: State, action: Float[Array, "B T A"], is_first: Bool[Array, "B T"]
) -> Float[Array, ""]:
    """-log p(z_{t+1}) of every member, summed over members so that each trains alone.

    A pair whose second half starts another episode is not a transition and does not count.
    """
    feature = states.feature
    outputs = ensemble.outputs(feature[:, :-1], action[:, :-1]).astype(jnp.float32)
    target = jax.lax.stop_gradient(states.stoch[:, 1:]).astype(jnp.float32)
    target = jnp.broadcast_to(target, outputs.shape)
    if ensemble.config.likelihood == "gaussian":
        error = squared_error(outputs, target).sum(-1)
    else:
        log_probs = jax.nn.log_softmax(ensemble.by_class(outputs))
        error = -(ensemble.by_class(target) * log_probs).sum((-2, -1))
    real = 1.0 - is_first[:, 1:].astype(jnp.float32)
    weighted = error * jnp.broadcast_to(real, error.shape)
    return weighted.sum() / jnp.maximum(real.sum(), 1.0)


def step(
    learner: Learner[Ensemble],
    states: State,
    action: Float[Array, "B T A"],
    is_first: Bool[Array, "B T"],
    pace: Float[Array, ""] | None = None,
) -> tuple[Learner[Ensemble], Metrics]:
    """One gradient step on detached posteriors; each member has its own optimiser and its own clipping."""
    ensemble = learner.model
    value, grads = jax.value_and_grad(loss)(ensemble, states, action, is_first)
    config = ensemble.config.optimizer
    members = Learner(ensemble.members, learner.opt_state, learner.skipped)
    members, extra = jax.vmap(lambda one, grad: update(one, grad, config, pace))(members, grads.members)
    ensemble = eqx.tree_at(lambda e: e.members, ensemble, members.model)
    norm = extra["grad_norm"].mean()
    metrics = {"ensemble/loss": value / ensemble.config.members, "ensemble/grad_norm": norm}
    return Learner(ensemble, members.opt_state, members.skipped), metrics


def create(
    world: WorldConfig, actions: int, config: EnsembleConfig, *, key: PRNGKeyArray
) -> Learner[Ensemble]:
    """A new ensemble with one optimiser state per member."""
    ensemble = Ensemble(world, actions, config, key=key)
    members = jax.vmap(lambda member: Learner.create(member, config.optimizer))(ensemble.members)
    return Learner(ensemble, members.opt_state, members.skipped)
