"""Random numbers with an address, so that many seeds run as one array.

A number depends only on its seed, on the place that asks for it and on its index there. Hence a seed
gives the same result whichever other seeds run beside it, and two strategies that ask at the same place
share their luck (common random numbers).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, UInt64

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def _mix(bits: UInt64[np.ndarray, "..."]) -> UInt64[np.ndarray, "..."]:
    """The output function of SplitMix64 (Steele, Lea, Flood 2014): a bijection that scrambles every bit."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(_FIRST)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(_SECOND)
    return bits ^ (bits >> np.uint64(31))


@dataclass(frozen=True)
class Draws:
    """One key per seed; `at` walks to a place, the other methods draw there."""

    keys: UInt64[np.ndarray, "S"]

    @classmethod
    def of(cls, seeds: Sequence[int]) -> "Draws":
        """The root of every seed's numbers."""
        return cls(_mix(np.array([(seed + 1) * _GOLDEN & _MASK for seed in seeds], np.uint64)))

    def at(self, *place: int) -> "Draws":
        """The numbers of another place, for every seed."""
        keys = self.keys
        for step in place:
            keys = _mix(keys + np.uint64((2 * step + 1) * _FIRST & _MASK))
        return Draws(keys)

    def _uniform_at(self, rows: Int[np.ndarray, "..."], columns: Int[np.ndarray, "..."]) -> np.ndarray:
        offsets = (columns.astype(np.uint64) + np.uint64(1)) * np.uint64(_GOLDEN)
        bits = _mix(self.keys[rows] + offsets) >> np.uint64(11)
        return (bits.astype(np.float64) + 0.5) * 2.0**-53

    def uniform(self, *shape: int) -> Float[np.ndarray, "S ..."]:
        """Uniform on (0, 1), never its ends, of shape [S, *shape]."""
        rows = np.arange(len(self.keys))[:, None]
        columns = np.arange(int(np.prod(shape)))[None]
        return self._uniform_at(rows, columns).reshape(len(self.keys), *shape)

    def permutation(self, size: int) -> Int[np.ndarray, "S N"]:
        """A uniform permutation of 0..size-1 for every seed."""
        return np.argsort(self.uniform(size), axis=1)

    def gamma(self, alpha: Float[np.ndarray, "S ..."]) -> Float[np.ndarray, "S ..."]:
        """Gamma(alpha, 1) by Marsaglia and Tsang (2000), every seed at once."""
        flat = alpha.reshape(len(self.keys), -1)
        size = flat.shape[1]
        result = np.empty(flat.size)
        pending, attempt = np.arange(flat.size), 0
        shape = np.where(flat < 1.0, flat + 1.0, flat).ravel()
        while len(pending):
            value, accepted = self.at(attempt)._gamma_try(shape[pending], pending // size, pending % size)
            result[pending[accepted]] = value[accepted]
            pending, attempt = pending[~accepted], attempt + 1
        boost = np.where(flat < 1.0, self.at(-1).uniform(size) ** (1.0 / flat), 1.0)
        return (result.reshape(flat.shape) * boost).reshape(alpha.shape)

    def _gamma_try(
        self, shape: Float[np.ndarray, "K"], rows: Int[np.ndarray, "K"], columns: Int[np.ndarray, "K"]
    ) -> tuple[Float[np.ndarray, "K"], Bool[np.ndarray, "K"]]:
        first, second, third = (self._uniform_at(rows, 3 * columns + i) for i in range(3))
        normal = np.sqrt(-2.0 * np.log(first)) * np.cos(2.0 * np.pi * second)
        d = shape - 1.0 / 3.0
        cubed = (1.0 + normal / np.sqrt(9.0 * d)) ** 3
        positive = cubed > 0.0
        cubed = np.where(positive, cubed, 1.0)
        bound = 0.5 * normal**2 + d * (1.0 - cubed + np.log(cubed))
        return d * cubed, positive & (np.log(third) < bound)

    def dirichlet(self, alpha: Float[np.ndarray, "S ... N"]) -> Float[np.ndarray, "S ... N"]:
        """Dirichlet(alpha) over the last axis."""
        weights = np.maximum(self.gamma(alpha), 1e-300)
        return weights / weights.sum(-1, keepdims=True)
