"""The world model as a whole: its loss, and one training step."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PRNGKeyArray, Shaped

from cascade.config import WorldConfig
from cascade.nn.distributions import bernoulli_log_prob
from cascade.nn.layers import MLP
from cascade.nn.learner import Learner, Metrics, update
from cascade.nn.precision import cast
from cascade.specs import ActionSpec, EnvSpec
from cascade.types import Batch
from cascade.world.decoder import Decoder
from cascade.world.encoder import Encoder
from cascade.world.rssm import RSSM, State, feature_size


def encode_action(spec: ActionSpec, action: Shaped[Array, "..."]) -> Float[Array, "... A"]:
    """A stored action as the vector the model reads."""
    return jax.nn.one_hot(action, spec.size) if spec.kind == "discrete" else action


class WorldModel(eqx.Module):
    """Encoder, recurrent state-space model, decoder and discount head."""

    encoder: Encoder
    rssm: RSSM
    decoder: Decoder
    discount: MLP | None
    action: ActionSpec = eqx.field(static=True)
    config: WorldConfig = eqx.field(static=True)

    def __init__(self, spec: EnvSpec, config: WorldConfig, *, key: PRNGKeyArray):
        keys = jax.random.split(key, 4)
        features = feature_size(config)
        self.encoder = Encoder(spec.observations, config, key=keys[0])
        self.rssm = RSSM(self.encoder.size, spec.action.size, config, key=keys[1])
        self.decoder = Decoder(features, spec.observations, config, key=keys[2])
        self.discount = (
            MLP(features, 1, config.mlp_layers, config.mlp_units, key=keys[3], norm=config.layer_norm)
            if config.discount_head
            else None
        )
        self.action, self.config = spec.action, config

    def observe(self, batch: Batch, noise: Float[Array, "B T G"]) -> tuple[State, Float[Array, "B T K"]]:
        """Posterior states and statistics of a batch of sequences."""
        embed = self.encoder(batch.obs)
        action = encode_action(self.action, batch.action)
        by_time = jax.tree.map(lambda x: x.swapaxes(0, 1), (embed, action, batch.is_first, noise))
        states, stats = self.rssm.observe(*by_time)
        return jax.tree.map(lambda x: x.swapaxes(0, 1), (states, stats))

    def continues(self, feature: Float[Array, "*B F"]) -> Float[Array, "*B"]:
        """Probability that the episode goes on from here; 1 without a discount head."""
        if self.discount is None:
            return jnp.ones(feature.shape[:-1], jnp.float32)
        return jax.nn.sigmoid(self.discount(feature)[..., 0].astype(jnp.float32))


def kl_loss(
    rssm: RSSM, post: Float[Array, "*B K"], prior: Float[Array, "*B K"], config: WorldConfig
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """KL balancing: the prior is trained towards the posterior faster than the reverse; free nats on each."""
    fixed = jax.lax.stop_gradient
    train_prior = rssm.kl(fixed(post), prior).mean()
    train_post = rssm.kl(post, fixed(prior)).mean()
    balance, free = config.kl_balance, config.free_nats
    loss = balance * jnp.maximum(train_prior, free) + (1.0 - balance) * jnp.maximum(train_post, free)
    return loss, fixed(train_prior)


def loss(
    model: WorldModel, batch: Batch, key: PRNGKeyArray
) -> tuple[Float[Array, ""], tuple[State, Metrics]]:
    """-log p(observations, ends | z, h) + KL(posterior || prior), in nats per time step."""
    config = model.config
    model = cast(model, config.precision)
    states, post = model.observe(batch, model.rssm.noise(key, *batch.is_first.shape))
    prior = model.rssm.prior(states)
    feature = states.feature
    losses = model.decoder.loss(feature, batch.obs)
    means = {name: value.mean() for name, value in losses.items()}
    kl, kl_value = kl_loss(model.rssm, post, prior, config)
    total = sum(means.values()) + config.kl_scale * kl
    if model.discount is not None:
        logit = model.discount(feature)[..., 0].astype(jnp.float32)
        alive = 1.0 - batch.is_terminal.astype(jnp.float32)
        means["discount"] = -bernoulli_log_prob(logit, alive).mean()
        total = total + config.discount_scale * means["discount"]
    metrics = {f"loss/{name}": value for name, value in means.items()} | {"kl": kl_value, "loss": total}
    return total, (jax.lax.stop_gradient(states), metrics)


def step(
    learner: Learner[WorldModel], batch: Batch, key: PRNGKeyArray
) -> tuple[Learner[WorldModel], State, Metrics]:
    """One gradient step; also the posterior states of the batch, cut off from the model's gradient."""
    grads, (states, metrics) = jax.grad(loss, has_aux=True)(learner.model, batch, key)
    learner, extra = update(learner, grads, learner.model.config.optimizer)
    return learner, states, metrics | extra


def posteriors(world: WorldModel, chunk: Batch, keys: Key[Array, " K"]) -> State:
    """Posterior states [K, B, T] of a chunk, as one batch of K x B sequences; batch k draws from `keys[k]`."""
    world = cast(world, world.config.precision)
    shape = chunk.is_first.shape
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), chunk)
    noise = jax.vmap(lambda key: world.rssm.noise(key, *shape[1:]))(keys)
    states, _ = world.observe(flat, noise.reshape(-1, *noise.shape[2:]))
    return jax.tree.map(lambda x: x.reshape(*shape[:2], *x.shape[1:]), states)
