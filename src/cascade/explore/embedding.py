"""Φ: what a trajectory is summarised by.

A function of one explorer's imagined trajectories, whose arrays then have no P: states [H+1, N, ...], action
[H, N, A], discount [H, N]. It returns one vector per trajectory, [N, d], and is vmapped over the population.
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
    return imagined.states.deter[-1]


@EMBEDDINGS.add("mean")
def mean_state(imagined: Imagined) -> Float[Array, "N D"]:
    """Φ(τ) = the discounted mean of h_1 .. h_H: visitation frequencies, for states that are vectors."""
    weight = jnp.cumprod(imagined.discount, 0)
    weight = weight / jnp.broadcast_to(jnp.maximum(weight.sum(0), 1e-6), weight.shape)
    return jnp.einsum("hn,hnd->nd", weight, imagined.states.deter[1:].astype(jnp.float32))
