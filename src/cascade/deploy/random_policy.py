"""Policies that know nothing. Uniform actions make the first deployment, and are a baseline."""

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


class VariedPolicy:
    """Random actions, every episode with odds of its own: uniform over all odds there are, or, for continuous
    actions, an interval in every dimension between two uniform ends.

    Uniform actions never press on against a wall, or turn the same way, for long; a model that has not seen it cannot
    foresee it, and explorers would spend a deployment on finding out.
    """

    def __init__(self, action: ActionSpec):
        self._action = action
        self._cuts = (action.size - 1,) if action.kind == "discrete" else (2, *action.shape)

    def initial(self, lanes: int) -> UInt32[np.ndarray, "L ..."]:
        """The odds of each lane's episode: where they cut the range of a draw."""
        return np.zeros((lanes, *self._cuts), np.uint32)

    def act(
        self,
        carry: UInt32[np.ndarray, "L ..."],
        obs: Mapping[str, Shaped[np.ndarray, "L ..."]],
        is_first: Bool[np.ndarray, " L"],
        keys: Key[Array, " L"],
    ) -> tuple[UInt32[np.ndarray, "L ..."], np.ndarray]:
        """One action per lane. The gaps between sorted uniform draws are odds that favour none; all exact."""
        bits = np.asarray(bits_of(keys, (self._cuts[0] + 1, *self._cuts[1:])))
        cuts, draw = np.sort(bits[:, :-1], axis=1), bits[:, -1]
        cuts = np.where(is_first.reshape(-1, *[1] * (cuts.ndim - 1)), cuts, carry)
        if self._action.kind == "discrete":
            return cuts, (draw[:, None] >= cuts).sum(1).astype(self._action.dtype)
        low, high = (cuts[:, i].astype(np.uint64) for i in range(2))
        between = low + (draw.astype(np.uint64) * (high - low) >> np.uint64(32))
        return cuts, (between * 2.0**-31 - 1.0).astype(self._action.dtype)
