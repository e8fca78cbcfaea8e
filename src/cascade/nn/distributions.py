"""The distributions of the model and of its policies, as functions of their float32 parameters."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def one_hot_sample(logits: Float[Array, "*B C"], uniform: Float[Array, "*B"]) -> Float[Array, "*B C"]:
    """A one-hot draw with straight-through gradients: exactly one-hot forward, the probabilities backward.

    The class is the first whose cumulative probability exceeds the draw from [0, 1): one random number for each
    categorical, where adding Gumbel noise to the logits would take one for each class.
    """
    probs = jax.nn.softmax(logits)
    classes = logits.shape[-1]
    upto = jnp.matmul(probs, jnp.triu(jnp.ones((classes, classes))), precision="highest")
    reached = (uniform * upto[..., -1])[..., None] < upto
    before = jnp.concatenate([jnp.zeros_like(reached[..., :1]), reached[..., :-1]], -1)
    hot = (reached & ~before).astype(probs.dtype)
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
    """Log-probability of an index; by a one-hot product, whose gradient is no scatter."""
    return (jax.nn.one_hot(index, logits.shape[-1]) * jax.nn.log_softmax(logits)).sum(-1)


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


def tanh_normal_parameters(raw: Float[Array, "*B D2"]) -> tuple[Float[Array, "*B D"], Float[Array, "*B D"]]:
    """Mean (kept within 5, where tanh is long flat) and standard deviation before squashing."""
    mean, std = gaussian_parameters(raw)
    return 5.0 * jnp.tanh(mean / 5.0), std


def tanh_normal_sample(raw: Float[Array, "*B D2"], noise: Float[Array, "*B D"]) -> Float[Array, "*B D"]:
    """A reparameterised draw in (-1, 1) from a squashed Gaussian."""
    mean, std = tanh_normal_parameters(raw)
    return jnp.tanh(mean + std * noise)


def tanh_normal_log_prob(
    raw: Float[Array, "*B D2"], value: Float[Array, "*B D"]
) -> tuple[Float[Array, "*B"], Float[Array, "*B"]]:
    """Log-density at a value in (-1, 1), and an entropy: that of the Gaussian plus the squashing at the mean.

    The squashed Gaussian has no entropy in closed form; the second term is its first-order correction, and it
    falls as actions saturate, as the true entropy does.
    """
    mean, std = tanh_normal_parameters(raw)
    before = jnp.arctanh(jnp.clip(value, -1.0 + 1e-6, 1.0 - 1e-6))
    log_normal = -0.5 * jnp.square((before - mean) / std) - jnp.log(std) - 0.5 * math.log(2.0 * math.pi)
    entropy = jnp.log(std) + 0.5 * math.log(2.0 * math.pi * math.e) + _log_slope(mean)
    return (log_normal - _log_slope(before)).sum(-1), entropy.sum(-1)


def _log_slope(x: Float[Array, "*B"]) -> Float[Array, "*B"]:
    """log d tanh(x) / dx, stable for large x."""
    return 2.0 * (math.log(2.0) - x - jax.nn.softplus(-2.0 * x))
