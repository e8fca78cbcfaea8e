"""A policy in a plain loop around one environment: call it with what is seen, get an action."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from cascade.errors import CascadeError
from cascade.specs import ActionSpec, ObservationSpec
from cascade.types import Policy


class Player:
    """Any policy, for one environment; it remembers the episode so far.

        obs, _ = env.reset()
        action = player(obs, first=True)
        obs, reward, terminated, truncated, _ = env.step(action)
        action = player(obs)

    An observation is a dict with the parts that the policy was trained on, or the array itself where there is only
    one part. A discrete action is an int; a continuous one is float32 in [-1, 1].
    """

    def __init__(
        self,
        policy: Policy,
        observations: Mapping[str, ObservationSpec],
        action: ActionSpec,
        seed: int = 0,
    ):
        self._policy, self._observations, self._action = policy, dict(observations), action
        self._key = jax.random.key(seed)
        self._calls = 0
        self._memory = policy.initial(1)

    def __call__(self, obs: Any, first: bool = False) -> int | np.ndarray:
        """The action to take now; `first` begins a new episode and forgets the one before."""
        row = self._read(obs)
        keys = jax.random.fold_in(self._key, self._calls)[None]
        is_first = np.array([first or self._calls == 0])
        self._memory, action = self._policy.act(self._memory, row, is_first, keys)
        self._calls += 1
        return int(action[0]) if self._action.kind == "discrete" else action[0]

    def _read(self, obs: Any) -> dict[str, np.ndarray]:
        """One row of every part."""
        names = list(self._observations)
        if not isinstance(obs, Mapping):
            if len(names) != 1:
                raise CascadeError(f"observation: got one {type(obs).__name__}, expected a dict with {names}")
            obs = {names[0]: obs}
        if missing := [name for name in names if name not in obs]:
            raise CascadeError(f"observation: got {list(obs)}, but {missing} is missing")
        return {name: self._part(name, np.asarray(obs[name])) for name in names}

    def _part(self, name: str, value: np.ndarray) -> np.ndarray:
        spec = self._observations[name]
        if spec.kind == "vector" and value.size == spec.shape[0]:
            value = value.reshape(spec.shape)
        if value.shape != spec.shape:
            raise CascadeError(f"observation {name!r}: got shape {value.shape}, expected {spec.shape}")
        return value.astype(spec.dtype)[None]
