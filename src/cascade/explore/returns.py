"""Returns of imagined rewards, and the scale they are measured on."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def lambda_returns(
    reward: Float[Array, "H *B"], discount: Float[Array, "H *B"], value: Float[Array, "H1 *B"], trace: float
) -> Float[Array, "H *B"]:
    """R_t = r_t + c_{t+1} ((1 - λ) v(s_{t+1}) + λ R_{t+1}), with R_H = v(s_H).

    time       0        1       ...     H-1       H
    reward     r0       r1      ...     r(H-1)             every one of them enters, the last too
    discount   c1       c2      ...     cH                 of arriving at the next state
    value      v0       v1      ...     v(H-1)    vH
    """

    def step(after: Float[Array, "*B"], x: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        reward, discount, value = x
        now = reward + discount * ((1.0 - trace) * value + trace * after)
        return now, now

    return jax.lax.scan(step, value[-1], (reward, discount, value[1:]), reverse=True)[1]


def reach(discount: Float[Array, "H *B N"], alive: Float[Array, " N"]) -> Float[Array, "H *B N"]:
    """How much each imagined step counts: the chance that life went on until there, discounted."""
    first = jnp.broadcast_to(alive, discount.shape[1:])
    return jnp.cumprod(jnp.concatenate([first[None], discount[:-1]]), 0)


class RunningScale(eqx.Module):
    """The level and the spread of a stream, over about the last 1 / (1 - decay) updates."""

    mean: Float[Array, "*P"]
    square: Float[Array, "*P"]
    weight: Float[Array, "*P"]

    @classmethod
    def create(cls) -> RunningScale:
        return cls(*jnp.zeros(3))

    def update(self, values: Float[Array, "..."], decay: float = 0.99) -> RunningScale:
        """The scale after seeing these values; the same scale if one of them is not finite."""
        values = jax.lax.stop_gradient(values)
        square = jnp.square(values).mean()
        seen = RunningScale(values.mean(), square, jnp.ones(()))
        usable = jnp.isfinite(square)
        return jax.tree.map(
            lambda old, new: jnp.where(usable, decay * old + (1.0 - decay) * new, old), self, seen
        )

    def _unbiased(self, total: Float[Array, "*P"]) -> Float[Array, "*P"]:
        """Without the bias of the start, when everything was zero."""
        return total / jnp.maximum(self.weight, 1e-6)

    @property
    def average(self) -> Float[Array, "*P"]:
        """The mean."""
        return self._unbiased(self.mean)

    @property
    def std(self) -> Float[Array, "*P"]:
        """The standard deviation of the whole stream, so that a level that moves adds to it; never below 1e-8, nor a
        thousandth of `rms`.

        Below that the difference of two float32 numbers is rounding, and to divide by it would make noise of rewards.
        """
        square = self._unbiased(self.square)
        variance = square - jnp.square(self.average)
        return jnp.sqrt(jnp.maximum(variance, jnp.maximum(1e-6 * square, 1e-16)))

    @property
    def rms(self) -> Float[Array, "*P"]:
        """The root of the mean square; unlike `std` it keeps what all share."""
        return jnp.sqrt(self._unbiased(self.square))
