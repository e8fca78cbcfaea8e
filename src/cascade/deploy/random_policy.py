"""The policy that knows nothing: uniform actions. It makes the first deployment, and is a baseline."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import numpy as np
from jaxtyping import Array, Bool, Key, Shaped, UInt32

from cascade.specs import ActionSpec


class RandomPolicy:
    """Uniform over the indices, or over [-1, 1] in every dimension; each lane draws from its key alone."""

    def __init__(self, action: ActionSpec):
        self._action = action
        shape = action.shape

        @jax.jit
        def bits(keys: Key[Array, " L"]) -> UInt32[Array, "L ..."]:
            return jax.vmap(lambda key: jax.random.bits(key, shape, "uint32"))(keys)

        self._bits = bits

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
        bits = np.asarray(self._bits(keys))
        if self._action.kind == "discrete":
            scaled = bits.astype(np.uint64) * np.uint64(self._action.size) >> np.uint64(32)
            return carry, scaled.astype(self._action.dtype)
        return carry, (bits * 2.0**-31 - 1.0).astype(self._action.dtype)
