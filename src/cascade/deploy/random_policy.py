"""The policy that knows nothing: uniform actions. It makes the first deployment, and is a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import jax
import numpy as np
from jaxtyping import Array, Bool, Key, Shaped, UInt32

from cascade.specs import ActionSpec


@partial(jax.jit, static_argnames="shape")
def bits_of(keys: Key[Array, " L"], shape: tuple[int, ...]) -> UInt32[Array, "L ..."]:
    """Random bits of each key."""
    return jax.vmap(lambda key: jax.random.bits(key, shape, "uint32"))(keys)


class RandomPolicy:
    """Uniform over the indices, or over [-1, 1] in every dimension; each lane draws from its key alone."""

    def __init__(self, action: ActionSpec):
        self._action = action

    def initial(self, lanes: int) -> tuple[()]:
        """Nothing is remembered."""
        return ()

    def act(
        self,
        carry: tuple[()],
        obs: Mapping[str, Shaped[np.ndarray, "L ..."]],
        is_first: Bool[np.ndarray, " L"],
        keys: Key[Array, " L"],
    ) -> tuple[tuple[()], np.ndarray]:
        """One action per lane. The arithmetic is exact, so it is the same on every machine."""
        bits = np.asarray(bits_of(keys, self._action.shape))
        if self._action.kind == "discrete":
            scaled = bits.astype(np.uint64) * np.uint64(self._action.size) >> np.uint64(32)
            return carry, scaled.astype(self._action.dtype)
        return carry, (bits * 2.0**-31 - 1.0).astype(self._action.dtype)
