"""The distributions of the model and of its policies, as functions of their float32 parameters."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray


def gumbel(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Noise that turns logits into a sample by argmax; drawn outside loops, used inside."""
    return jax.random.gumbel(key, shape)


def one_hot_sample(logits: Float[Array, "*B C"], noise: Float[Array, "*B C"]) -> Float[Array, "*B C"]:
    """A one-hot draw with straight-through gradients: exactly one-hot forward, the probabilities backward."""
    index = jnp.argmax(logits + noise, axis=-1)
    probs = jax.nn.softmax(logits)
    hot = jax.nn.one_hot(index, logits.shape[-1], dtype=probs.dtype)
    return jax.lax.stop_gradient(hot) + (probs - jax.lax.stop_gradient(probs))


def categorical_entropy(logits: Float[Array, "*B C"]) -> Float[Array, "*B"]:
    """Entropy in nats."""
    log_probs = jax.nn.log_softmax(logits)
    return -(jnp.exp(log_probs) * log_probs).sum(-1)


def categorical_kl(left: Float[Array, "*B C"], right: Float[Array, "*B C"]) -> Float[Array, "*B"]:
    """KL(left || right) in nats, from logits."""
    left, right = jax.nn.log_softmax(left), jax.nn.log_softmax(right)
    return (jnp.exp(left) * (left - right)).sum(-1)


def categorical_log_prob(logits: Float[Array, "*B C"], index: Int[Array, "*B"]) -> Float[Array, "*B"]:
    """Log-probability of an index."""
    log_probs = jax.nn.log_softmax(logits)
    return jnp.take_along_axis(log_probs, index[..., None], axis=-1)[..., 0]


def bernoulli_log_prob(logit: Float[Array, "*B"], value: Float[Array, "*B"]) -> Float[Array, "*B"]:
    """Log-probability of a 0 or 1, from a logit."""
    return value * jax.nn.log_sigmoid(logit) + (1.0 - value) * jax.nn.log_sigmoid(-logit)


def gaussian_parameters(
    raw: Float[Array, "*B D2"], min_std: float = 0.1
) -> tuple[Float[Array, "*B D"], Float[Array, "*B D"]]:
    """Mean and standard deviation (between min_std and 2 + min_std) from a network's output."""
    mean, spread = jnp.split(raw, 2, -1)
    return mean, 2.0 * jax.nn.sigmoid(spread / 2.0) + min_std


def gaussian_kl(left: Float[Array, "*B D2"], right: Float[Array, "*B D2"]) -> Float[Array, "*B D"]:
    """KL(left || right) of each dimension, from the networks' outputs."""
    (m1, s1), (m2, s2) = gaussian_parameters(left), gaussian_parameters(right)
    return jnp.log(s2 / s1) + (s1**2 + (m1 - m2) ** 2) / (2.0 * s2**2) - 0.5


def squared_error(prediction: Float[Array, "*B"], target: Float[Array, "*B"]) -> Float[Array, "*B"]:
    """-log N(target; prediction, 1), less its constant."""
    return 0.5 * jnp.square(prediction - target)


def tanh_normal_sample(
    raw: Float[Array, "*B D2"], noise: Float[Array, "*B D"]
) -> tuple[Float[Array, "*B D"], Float[Array, "*B"], Float[Array, "*B"]]:
    """An action in (-1, 1) from a squashed Gaussian, its log-probability, and an estimate of the entropy."""
    mean, std = gaussian_parameters(raw)
    mean = 5.0 * jnp.tanh(mean / 5.0)
    value = mean + std * noise
    log_normal = -0.5 * jnp.square(noise) - jnp.log(std) - 0.5 * math.log(2.0 * math.pi)
    # log |d tanh(v)/dv|, stable for large v
    log_slope = 2.0 * (math.log(2.0) - value - jax.nn.softplus(-2.0 * value))
    log_prob = (log_normal - log_slope).sum(-1)
    return jnp.tanh(value), log_prob, -log_prob
