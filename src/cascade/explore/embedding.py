"""Φ: what a trajectory is summarised by.

A function of one explorer's imagined trajectories, whose arrays then have no P: feature [H, N, F], final
state [N, ...], action [H, N, A], discount [H, N]. It returns one vector per trajectory, [N, D], and is vmapped
over the population.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from cascade.explore.imagine import Imagined
from cascade.registry import Registry

EMBEDDINGS = Registry("explore.embedding")


@EMBEDDINGS.add("final")
def final_state(imagined: Imagined) -> Float[Array, "N D"]:
    """Φ(τ) = h_H, the last recurrent state."""
    return imagined.final.deter


@EMBEDDINGS.add("mean")
def mean_state(imagined: Imagined) -> Float[Array, "N D"]:
    """Φ(τ) = the discounted mean of h_1 .. h_H: visitation frequencies, for states that are vectors."""
    weight = jnp.cumprod(imagined.discount, 0)
    weight = weight / jnp.broadcast_to(jnp.maximum(weight.sum(0), 1e-6), weight.shape)
    visited = jnp.concatenate([imagined.deter[1:], imagined.final.deter[None]]).astype(jnp.float32)
    return jnp.einsum("hn,hnd->nd", weight, visited)
