"""A group of lanes that are acted for together: one policy call of a fixed shape, whatever each lane is at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax
import numpy as np
from jaxtyping import Array, Int32, Key, UInt32

from cascade.deploy.plan import Stream
from cascade.envs import Tick
from cascade.specs import ActionSpec
from cascade.types import Policy

STEP = -1
"""What the vectoriser takes for a seed when a lane is stepped instead of reset."""


@jax.jit
def keys_at(words: UInt32[Array, "L 2"], times: Int32[Array, " L"]) -> Key[Array, " L"]:
    """Each lane's key for one time of its episode."""
    keys = jax.random.wrap_key_data(words, impl="threefry2x32")
    return jax.vmap(jax.random.fold_in)(keys, times)


class Group:
    """Lanes in lockstep. Lanes without budget stay in the batch as rows that nobody reads."""

    def __init__(self, policy: Policy, action: ActionSpec, slots: np.ndarray, streams: Sequence[Stream]):
        size = len(slots)
        self.slots, self.streams = slots, streams
        """which environment each row has, and its episodes"""
        self.rows = np.arange(0)
        """which of the group's lanes have budget left"""
        self.times = np.zeros(size, np.int32)
        """how many steps each lane's episode has"""
        self.limits = np.zeros(size, np.int64)
        """how many it may have: what is left of the lane's budget"""
        self._seeds = np.full(size, STEP, np.int64)
        self._words = np.zeros((size, 2), np.uint32)
        self._sent = self.rows
        self._policy, self._carry = policy, policy.initial(size)
        self.actions = np.zeros((size, *action.shape), action.dtype)
        """what the policy chose last"""
        for row in range(size):
            self.begin(row)

    def begin(self, row: int) -> None:
        """Start the next episode of a lane at the coming turn; none if its budget is spent."""
        stream = self.streams[row]
        self.limits[row] = stream.remaining
        self._seeds[row] = STEP
        if stream.remaining > 0:
            self._seeds[row], self._words[row] = stream.draw()
        self.rows = np.flatnonzero(self.limits > 0)

    def act(self, tick: Tick) -> None:
        """Ask the policy about what the lanes now see."""
        first = (self.times == 0) & (self._seeds == STEP)
        keys = keys_at(self._words, self.times)
        self._carry, actions = self._policy.act(self._carry, self._padded(tick), first, keys)
        if actions.shape != self.actions.shape or actions.dtype != self.actions.dtype:
            raise TypeError(
                f"the policy gave actions {actions.dtype}{actions.shape}, "
                f"expected {self.actions.dtype}{self.actions.shape}"
            )
        self.actions = actions

    def turn(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Environments, actions and seeds to send; the rows' times are then those of what comes back."""
        rows = self._sent = self.rows
        message = self.slots[rows], self.actions[rows], self._seeds[rows]
        self.times[rows] = np.where(self._seeds[rows] == STEP, self.times[rows] + 1, 0)
        self._seeds[rows] = STEP
        return message

    @property
    def under_way(self) -> int:
        """Steps of the episodes that have not ended."""
        return int(self.times[self.rows].sum())

    def _padded(self, tick: Tick) -> Mapping[str, np.ndarray]:
        if len(self._sent) == len(self.slots):
            return tick.obs
        padded = {
            name: np.zeros((len(self.slots), *part.shape[1:]), part.dtype) for name, part in tick.obs.items()
        }
        for name, part in tick.obs.items():
            padded[name][self._sent] = part
        return padded
