"""What the lanes have seen of their current episodes: one array per field, written for many lanes at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cascade.envs import Tick
from cascade.specs import EnvSpec, Episode, EpisodeKey


class Rows:
    """Arrays [lanes, capacity, ...], aligned as `cascade.specs` says; the capacity doubles when needed."""

    def __init__(self, spec: EnvSpec, lanes: int, capacity: int = 128):
        def part(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
            return np.empty((lanes, capacity, *shape), dtype)

        self._capacity = capacity
        self._times = np.zeros(lanes, np.int64)
        self._action = part(spec.action.shape, spec.action.dtype)
        self._obs = {name: part(obs.shape, obs.dtype) for name, obs in spec.observations.items()}
        self._labels = {task: part((), np.float32) for task in spec.tasks}
        self._info = {name: part(info.shape, info.dtype) for name, info in spec.info.items()}

    def put(self, lanes: np.ndarray, times: np.ndarray, tick: Tick) -> None:
        """Write what came of a tick at each lane's time."""
        while times.max() >= self._capacity:
            self._grow()
        self._times[lanes] = times
        for fields, values in (
            (self._obs, tick.obs),
            (self._labels, tick.rewards),
            (self._info, tick.info),
        ):
            for name, field in fields.items():
                field[lanes, times] = values[name]

    def put_actions(self, lanes: np.ndarray, times: np.ndarray, actions: np.ndarray) -> None:
        """Write the actions taken at each lane's time."""
        self._action[lanes, times] = actions

    def episode(self, key: EpisodeKey, lane: int, steps: int, terminated: bool) -> Episode:
        """A copy of a lane's first `steps` steps."""
        kinds = (self._obs, self._labels, self._info)
        obs, labels, info = (_first_rows(fields, lane, steps + 1) for fields in kinds)
        action = self._action[lane, : steps + 1].copy()
        action[-1] = 0
        return Episode(key, obs, action, labels, info, terminated)

    def _grow(self) -> None:
        """Twice the capacity. Only what was written is copied, so lanes with short episodes take no memory."""
        used = self._times + 1
        self._capacity *= 2

        def larger(field: np.ndarray) -> np.ndarray:
            grown = np.empty((len(field), self._capacity, *field.shape[2:]), field.dtype)
            for lane, rows in enumerate(used.tolist()):
                grown[lane, :rows] = field[lane, :rows]
            return grown

        self._action = larger(self._action)
        for fields in (self._obs, self._labels, self._info):
            fields.update({name: larger(field) for name, field in fields.items()})


def _first_rows(fields: Mapping[str, np.ndarray], lane: int, count: int) -> dict[str, np.ndarray]:
    return {name: field[lane, :count].copy() for name, field in fields.items()}
