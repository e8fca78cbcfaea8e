"""What acts and what judges: an actor over discrete or continuous actions, and a critic."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from cascade.config import ActorCriticConfig
from cascade.nn.distributions import (
    categorical_entropy,
    categorical_log_prob,
    one_hot_sample,
    tanh_normal_log_prob,
    tanh_normal_sample,
)
from cascade.nn.layers import MLP
from cascade.nn.precision import cast
from cascade.specs import ActionSpec


class Actor(eqx.Module):
    """A distribution over actions given [h, z]; written for one explorer, stacked and vmapped for P."""

    mlp: MLP
    action: ActionSpec = eqx.field(static=True)
    precision: str = eqx.field(static=True)

    def __init__(
        self,
        features: int,
        action: ActionSpec,
        config: ActorCriticConfig,
        precision: str,
        *,
        key: PRNGKeyArray,
    ):
        outputs = action.size * (1 if action.kind == "discrete" else 2)
        mlp = MLP(features, outputs, config.layers, config.units, key=key)
        # A small last layer: an untrained actor acts almost uniformly, whatever its other weights are.
        self.mlp = eqx.tree_at(lambda mlp: mlp.out.weight, mlp, 0.01 * mlp.out.weight)
        self.action, self.precision = action, precision

    def parameters(self, feature: Float[Array, "*B F"]) -> Float[Array, "*B K"]:
        """Logits, or the raw mean and spread."""
        return cast(self.mlp, self.precision)(feature).astype(jnp.float32)

    def noise(self, key: PRNGKeyArray, *batch: int) -> Float[Array, "*B K"]:
        """What `sample` needs to draw an action."""
        if self.action.kind == "discrete":
            return jax.random.uniform(key, (*batch, 1))
        return jax.random.normal(key, (*batch, self.action.size))

    def sample(self, feature: Float[Array, "*B F"], noise: Float[Array, "*B K"]) -> Float[Array, "*B A"]:
        """An action as the model reads it: one-hot with straight-through gradients, or reparameterised."""
        return self.draw(self.parameters(feature), noise)

    def draw(self, parameters: Float[Array, "*B K"], noise: Float[Array, "*B G"]) -> Float[Array, "*B A"]:
        """An action of the distribution with these parameters."""
        if self.action.kind == "discrete":
            return one_hot_sample(parameters, noise[..., 0])
        return tanh_normal_sample(parameters, noise)

    def mode(self, parameters: Float[Array, "*B K"]) -> Float[Array, "*B A"]:
        """The most likely action of the distribution with these parameters."""
        if self.action.kind == "discrete":
            return jax.nn.one_hot(parameters.argmax(-1), self.action.size)
        return tanh_normal_sample(parameters, jnp.zeros((*parameters.shape[:-1], self.action.size)))

    def log_prob(
        self, feature: Float[Array, "*B F"], action: Float[Array, "*B A"]
    ) -> tuple[Float[Array, "*B"], Float[Array, "*B"]]:
        """Log-probability of an action as the model reads it, and the entropy."""
        parameters = self.parameters(feature)
        if self.action.kind == "discrete":
            return categorical_log_prob(parameters, action.argmax(-1)), categorical_entropy(parameters)
        return tanh_normal_log_prob(parameters, action)


class Critic(eqx.Module):
    """The value of [h, z]."""

    mlp: MLP
    precision: str = eqx.field(static=True)

    def __init__(self, features: int, config: ActorCriticConfig, precision: str, *, key: PRNGKeyArray):
        mlp = MLP(features, 1, config.layers, config.units, key=key)
        # Until the slow copy is first renewed all returns build on it: better on nothing than on a random function.
        self.mlp = eqx.tree_at(lambda mlp: mlp.out.weight, mlp, jnp.zeros_like(mlp.out.weight))
        self.precision = precision

    def __call__(self, feature: Float[Array, "*B F"]) -> Float[Array, "*B"]:
        # The last layer in float32: values may be in the hundreds, where bfloat16 has steps as large as advantages.
        mlp = eqx.tree_at(lambda mlp: mlp.out, cast(self.mlp, self.precision), self.mlp.out)
        return mlp(feature)[..., 0]
