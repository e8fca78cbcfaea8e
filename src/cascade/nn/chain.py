"""Several categoricals as one joint distribution, each given those before it: p(z) = Π p(z_i | z_1 .. z_{i-1}).

part       0          1            2
hidden     u          u + z0 V0    u + z0 V0 + z1 V1       what every part is read from, and what earlier ones add
logits     elu(.) O0  elu(.) O1    elu(.) O2

So a draw costs every weight once (the neural autoregressive distribution estimator of Larochelle and Murray, 2011),
and all conditionals of a known z are two matrix products.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from cascade.nn.distributions import one_hot_sample
from cascade.nn.layers import Linear, elu

UNROLL = 8
"""parts that are drawn in one loop body"""


def conditionals(
    says: Linear, reads: Linear, hidden: Float[Array, "*B H"], z: Float[Array, "*B G C"]
) -> Float[Array, "*B G C"]:
    """Logits of every part of `z` given the parts before it."""
    parts, classes = z.shape[-2:]
    before = jnp.triu(jnp.ones((parts, parts), says.weight.dtype), 1)  # [j, i]: part j comes before part i
    weight = says.weight.reshape(parts, classes, 1, -1) * before[:, None, :, None]
    said = z.reshape(*z.shape[:-2], -1).astype(weight.dtype) @ weight.reshape(parts * classes, -1)
    said = said.reshape(*hidden.shape[:-1], parts, -1)
    known = jnp.broadcast_to(hidden[..., None, :], said.shape) + said
    reads = _by_part(reads, parts)
    logits = jax.vmap(lambda layer, x: layer(x), (0, -2), -2)(reads, elu(known))
    return logits.astype(jnp.float32)


def draw(
    says: Linear, reads: Linear, hidden: Float[Array, "*B H"], uniform: Float[Array, "*B G"]
) -> Float[Array, "*B G C"]:
    """One z, part after part, one-hot with straight-through gradients; one number of [0, 1) for each part."""
    parts = uniform.shape[-1]

    def step(known: Float[Array, "*B H"], x: tuple[Array, Linear, Array]) -> tuple[Array, Array]:
        weight, reads, uniform = x
        z = one_hot_sample(reads(elu(known)).astype(jnp.float32), uniform)
        return known + (z.astype(weight.dtype) @ weight).astype(jnp.float32), z

    each = says.weight.reshape(parts, -1, says.weight.shape[-1])
    xs = (each, _by_part(reads, parts), jnp.moveaxis(uniform, -1, 0))
    _, z = jax.lax.scan(step, hidden.astype(jnp.float32), xs, unroll=min(parts, UNROLL))
    return jnp.moveaxis(z, 0, -2)


def _by_part(reads: Linear, parts: int) -> Linear:
    """A layer of G parts as G layers, along a leading axis."""
    return jax.tree.map(lambda x: jnp.moveaxis(x.reshape(*x.shape[:-1], parts, -1), -2, 0), reads)
