"""Population diversity: how far each trajectory ends from those of the explorers before it.

Every measure maps the summaries of all explorers, [P, N, D], to one reward per trajectory, [P, N]. Explorer i
is compared with explorers 1 .. i-1, whose summaries are constants to it; the first gets none. All of them are
closed forms with exclusive prefix sums over the population: no loop over explorers, no matrix of pairs.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from cascade.registry import Registry

DIVERSITIES = Registry("explore.diversity")

Summaries = Float[Array, "P N D"]
Rewards = Float[Array, "P N"]


def _before(x: Float[Array, "P *d"]) -> Float[Array, "P *d"]:
    """Sum over the explorers before each: an exclusive prefix sum, constant to the explorer itself."""
    total = jnp.cumsum(jax.lax.stop_gradient(x), axis=0)
    return jnp.concatenate([jnp.zeros_like(total[:1]), total[:-1]])


def _centred(summaries: Summaries, over: tuple[int, ...] = (0, 1)) -> Summaries:
    """float32, less a mean that the compared share: distances are unchanged, and their closed forms cancel less."""
    wide = summaries.astype(jnp.float32)
    centre = jax.lax.stop_gradient(wide.mean(over, keepdims=True))
    return wide - jnp.broadcast_to(centre, wide.shape)


def _products(subscripts: str, *arrays: Array) -> Array:
    """Sums of products in full float32: what they are subtracted from is nearly as large."""
    return jnp.einsum(subscripts, *arrays, precision="highest")


def _column(values: Float[Array, " P"], like: Rewards) -> Rewards:
    return jnp.broadcast_to(values[:, None], like.shape)


@DIVERSITIES.add("distance")
def distance(summaries: Summaries) -> Rewards:
    """PopDiv: 1/(n-1) Σ ||Φ(τ) - Φ(τ')||² over all n trajectories τ' of all earlier explorers, exactly.

    Σ ||Φ - Φ'||² = n ||Φ||² - 2 Φ·ΣΦ' + Σ ||Φ'||²
    """
    phi = _centred(summaries)
    population, count, _ = phi.shape
    square = jnp.square(phi).sum(-1)
    earlier = count * jnp.arange(population, dtype=jnp.float32)
    cross = _products("pnd,pd->pn", phi, _before(phi.sum(1)))
    total = _column(earlier, square) * square - 2.0 * cross + _column(_before(square.sum(1)), square)
    return total / _column(jnp.maximum(earlier - 1.0, 1.0), square)


@DIVERSITIES.add("paired")
def paired(summaries: Summaries) -> Rewards:
    """Mean of ||Φ(τ) - Φ(τ')||² over the earlier explorers' trajectories τ' from the same start.

    What the starts have in common drops out, which leaves less noise in the reward than `distance` has.
    """
    phi = _centred(summaries, over=(0,))
    square = jnp.square(phi).sum(-1)
    earlier = _column(jnp.arange(len(phi), dtype=jnp.float32), square)
    total = earlier * square - 2.0 * _products("pnd,pnd->pn", phi, _before(phi)) + _before(square)
    return total / jnp.maximum(earlier, 1.0)


@DIVERSITIES.add("variance")
def variance(summaries: Summaries) -> Rewards:
    """Var(π | π1 .. πi-1) of the appendix, with Φ(τ) in the place of explorer i's mean summary.

    Adding a point x to k points of mean m and squared deviations Q gives (Q + k/(k+1) ||x - m||²) / k.
    """
    phi = _centred(summaries)
    means = phi.mean(1)
    k = jnp.arange(len(phi), dtype=jnp.float32)
    safe = jnp.maximum(k, 1.0)
    centre = _before(means) / jnp.broadcast_to(safe[:, None], means.shape)
    spread = _before(jnp.square(means).sum(-1)) - k * jnp.square(centre).sum(-1)
    away = jnp.square(phi - jnp.broadcast_to(centre[:, None], phi.shape)).sum(-1)
    total = _column(jnp.maximum(spread, 0.0), away) + _column(k / (k + 1.0), away) * away
    return jnp.where(_column(k, away) > 0, total / _column(safe, away), 0.0)


@DIVERSITIES.add("determinant")
def determinant(summaries: Summaries) -> Rewards:
    """How much Φ(τ) adds to the log-determinant of the explorers' kernel matrix.

    With K the squared-exponential kernel of the earlier explorers' mean summaries and k that of Φ(τ) with
    them, log det grows by log(1 - k' K^-1 k): 0 for a point far from all, very negative beside one. One is
    added, so that the reward is about 1 far away and the first explorer has none. The kernel's length is the
    spread of all trajectories, so explorers that differ less than their own trajectories do count as alike.
    """
    phi = _centred(summaries)
    fixed = jax.lax.stop_gradient(phi.mean(1))
    population = len(phi)
    gaps = jnp.square(fixed[:, None] - fixed[None]).sum(-1)
    scale = jnp.maximum(jax.lax.stop_gradient(jnp.square(phi).sum(-1).mean()), 1e-6)
    jitter = 1e-3 * jnp.eye(population)
    kernel = jnp.exp(-gaps / (2.0 * scale)) + jitter
    to_means = jnp.square(phi).sum(-1)[..., None] - 2.0 * _products("pnd,qd->pnq", phi, fixed)
    to_means = to_means + jnp.broadcast_to(jnp.square(fixed).sum(-1), to_means.shape)
    near = jnp.exp(-jnp.maximum(to_means, 0.0) / (2.0 * scale))

    def added(index: Array, near: Float[Array, "N P"]) -> Float[Array, " N"]:
        known = jnp.arange(population) < index
        both = jnp.outer(known, known)
        inverse = jnp.linalg.inv(jnp.where(both, kernel, jnp.eye(population)))
        masked = jnp.where(jnp.broadcast_to(known, near.shape), near, 0.0)
        explained = _products("nq,qr,nr->n", masked, inverse, masked)
        return jnp.log(jnp.clip(1.0 + 1e-3 - explained, 1e-3, 1.0))

    gain = jax.vmap(added)(jnp.arange(population), near)
    first = _column(jnp.arange(population, dtype=jnp.float32), gain) == 0
    return jnp.where(first, 0.0, 1.0 + gain)
