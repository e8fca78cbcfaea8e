"""The recurrent state-space model.

    h_t = f(h_{t-1}, z_{t-1}, a_{t-1})      recurrent state, a LayerNorm GRU
    z_t ~ q(z | h_t, x_t)                   posterior, sees the observation
    z_t ~ p(z | h_t)                        prior, imagines it

Only what depends on the previous step runs inside the scan. The parts of its matrix products that see the
observation or the action are computed for all times before it, the prior for all times after it, and the
sampling noise is drawn before it.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from cascade.config import WorldConfig
from cascade.nn import chain, recurrent
from cascade.nn.distributions import (
    categorical_kl,
    gaussian_kl,
    gaussian_parameters,
    one_hot_sample,
)
from cascade.nn.layers import Linear, NormGRU, elu


class State(eqx.Module):
    """Where the model believes the world to be: h and z."""

    deter: Float[Array, "*B D"]
    stoch: Float[Array, "*B Z"]

    @property
    def feature(self) -> Float[Array, "*B F"]:
        """[h, z], what every head reads."""
        return jnp.concatenate([self.deter, self.stoch], -1)


class RSSM(eqx.Module):
    """Parameters of the recurrent model, the posterior and the prior."""

    from_stoch: Linear
    from_action: Linear
    cell: NormGRU
    post_deter: Linear
    post_embed: Linear
    post_stats: Linear
    prior_hidden: Linear
    prior_stats: Linear
    prior_earlier: Linear | None  # of a joint prior: what each categorical says about those after it
    config: WorldConfig = eqx.field(static=True)

    def __init__(self, embedding: int, actions: int, config: WorldConfig, *, key: PRNGKeyArray):
        keys = jax.random.split(key, 8)
        deter, hidden, stoch = config.deter, config.hidden, stoch_size(config)
        stats = stoch if config.latent == "discrete" else 2 * stoch
        self.from_stoch = Linear(stoch, hidden, key=keys[0])
        self.from_action = Linear(actions, hidden, key=keys[1], bias=False)
        self.cell = NormGRU(hidden, deter, key=keys[2])
        self.post_deter = Linear(deter, hidden, key=keys[3], bias=False)
        self.post_embed = Linear(embedding, hidden, key=keys[4])
        self.post_stats = Linear(hidden, stats, key=keys[5])
        self.prior_hidden = Linear(deter, hidden, key=keys[6])
        self.prior_stats = Linear(hidden, stats, key=keys[7])
        self.prior_earlier = None
        if config.prior == "joint":  # begins as an independent one
            earlier = Linear(stoch, hidden, key=keys[7], bias=False)
            self.prior_earlier = eqx.tree_at(lambda layer: layer.weight, earlier, jnp.zeros((stoch, hidden)))
        self.config = config

    def initial(self, *batch: int) -> State:
        """The state before anything was seen."""
        dtype = self.from_stoch.weight.dtype
        return State(
            jnp.zeros((*batch, self.config.deter), dtype), jnp.zeros((*batch, stoch_size(self.config)), dtype)
        )

    def noise(self, key: PRNGKeyArray, *batch: int) -> Float[Array, "*B G"]:
        """What `sample` needs to draw z, one number for each of its parts: all the randomness of the model."""
        draw = jax.random.uniform if self.config.latent == "discrete" else jax.random.normal
        return draw(key, (*batch, self.config.stoch), jnp.float32)

    def sample(self, stats: Float[Array, "*B K"], noise: Float[Array, "*B G"]) -> Float[Array, "*B Z"]:
        """z from its statistics, differentiable (straight-through, or reparameterised)."""
        dtype = self.from_stoch.weight.dtype
        if self.config.latent == "gaussian":
            mean, std = gaussian_parameters(stats)
            return (mean + std * noise).astype(dtype)
        return one_hot_sample(self._parts(stats), noise).reshape(stats.shape).astype(dtype)

    def prior(self, state: State) -> Float[Array, "*B K"]:
        """Statistics of p(z | h); of a joint prior those of each categorical given the ones before it in z."""
        hidden = self.prior_hidden(state.deter)
        if self.prior_earlier is None:
            return self.prior_stats(elu(hidden)).astype(jnp.float32)
        z = self._parts(jax.lax.stop_gradient(state.stoch))
        return chain.conditionals(self.prior_earlier, self.prior_stats, hidden, z).reshape(state.stoch.shape)

    def draw(self, deter: Float[Array, "*B D"], noise: Float[Array, "*B G"]) -> Float[Array, "*B Z"]:
        """z ~ p(z | h), differentiable as in `sample`."""
        hidden = self.prior_hidden(deter)
        if self.prior_earlier is None:
            return self.sample(self.prior_stats(elu(hidden)).astype(jnp.float32), noise)
        z = chain.draw(self.prior_earlier, self.prior_stats, hidden, noise)
        return z.reshape(*deter.shape[:-1], -1).astype(deter.dtype)

    def _parts(self, x: Float[Array, "*B K"]) -> Float[Array, "*B G C"]:
        """z, or its statistics, categorical by categorical."""
        return x.reshape(*x.shape[:-1], self.config.stoch, self.config.classes)

    def kl(self, left: Float[Array, "*B K"], right: Float[Array, "*B K"]) -> Float[Array, "*B"]:
        """KL of two statistics, summed over the parts of z."""
        if self.config.latent == "gaussian":
            return gaussian_kl(left, right).sum(-1)
        return categorical_kl(self._parts(left), self._parts(right)).sum(-1)

    def imagine(self, state: State, action: Float[Array, "*B A"], noise: Float[Array, "*B G"]) -> State:
        """One step without an observation: the state after taking `action` in `state`."""
        x = elu(self.from_stoch(state.stoch) + self.from_action(action))
        gates = self.cell.norm(self.cell.gates(jnp.concatenate([x, state.deter], -1)))
        deter = self.cell.update(gates, state.deter)
        return State(deter, self.draw(deter, noise))

    def correct(
        self, deter: Float[Array, "*B D"], embed: Float[Array, "*B X"], noise: Float[Array, "*B G"]
    ) -> tuple[State, Float[Array, "*B K"]]:
        """The posterior state at h given the observation, and its statistics."""
        hidden = elu(self.post_deter(deter) + self.post_embed(embed))
        stats = self.post_stats(hidden).astype(jnp.float32)
        return State(deter, self.sample(stats, noise)), stats

    def observe(
        self,
        embed: Float[Array, "T B X"],
        action: Float[Array, "T B A"],
        is_first: Bool[Array, "T B"],
        noise: Float[Array, "T B G"],
    ) -> tuple[State, Float[Array, "T B K"]]:
        """Posterior states and statistics of whole sequences; `action[t]` is taken AT t, and leads to t + 1.

        time        0          1          2
        embed       x0         x1         x2
        action      a0         a1         a2
        uses        -          a0         a1         zero, with all history, wherever `is_first`
        """
        keep = 1.0 - is_first.astype(embed.dtype)[..., None]
        previous = jnp.concatenate([jnp.zeros_like(action[:1]), action[:-1]])
        from_action = self.from_action(previous)
        xs = (from_action * keep, self.post_embed(embed), noise, keep)
        layers: recurrent.Layers = {
            "from_stoch": self.from_stoch,
            "gates": self.cell.gates,
            "norm": self.cell.norm,
            "post_deter": self.post_deter,
            "post_stats": self.post_stats,
        }
        start = self.initial(embed.shape[1])
        return recurrent.scan(self._step, layers, start, xs, unroll=self.config.unroll)

    def _step(
        self, apply: recurrent.Apply, state: State, x: tuple[Array, Array, Array, Array]
    ) -> tuple[State, tuple[State, Float[Array, "B K"]]]:
        """One step of `observe`: the same as `imagine` up to h, then `correct`."""
        from_action, from_embed, noise, keep = x
        deter = state.deter * jnp.broadcast_to(keep, state.deter.shape)
        stoch = state.stoch * jnp.broadcast_to(keep, state.stoch.shape)
        inputs = elu(apply("from_stoch", stoch) + from_action)
        gates = apply("norm", apply("gates", jnp.concatenate([inputs, deter], -1)))
        deter = self.cell.update(gates, deter)
        hidden = elu(apply("post_deter", deter) + from_embed)
        stats = apply("post_stats", hidden).astype(jnp.float32)
        state = State(deter, self.sample(stats, noise))
        return state, (state, stats)


def stoch_size(config: WorldConfig) -> int:
    """Length of z."""
    return config.stoch * (config.classes if config.latent == "discrete" else 1)


def feature_size(config: WorldConfig) -> int:
    """Length of [h, z]."""
    return config.deter + stoch_size(config)
