"""The memory that the caller and its workers share: one row per lane, one slot of progress per worker.

The memory is an unnamed file, known only by its descriptor: when the last process that holds it is gone, by
whatever death, so is the memory.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from cascade.envs.protocol import Timestep
from cascade.specs import EnvSpec

ALIGNMENT = 64


def allocate(size: int) -> int:
    """A descriptor of `size` bytes of zeros that other processes can map."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("cascade-lanes")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor


class Buffers:
    """Arrays over shared memory. Which they are follows from the spec and the two counts alone."""

    def __init__(self, spec: EnvSpec, lanes: int, workers: int, descriptor: int | None = None):
        fields = _fields(spec, lanes, workers)
        size = sum(_padded(shape, dtype) for shape, dtype in fields.values())
        self.descriptor = allocate(size) if descriptor is None else descriptor
        memory = mmap.mmap(self.descriptor, size)
        arrays: dict[str, np.ndarray] = {}
        offset = 0
        for name, (shape, dtype) in fields.items():
            arrays[name] = np.ndarray(shape, dtype, memory, offset)
            offset += _padded(shape, dtype)
        self.obs = _under("obs/", arrays)
        self.info = _under("info/", arrays)
        self.rewards = _under("reward/", arrays)
        self.action, self.seed = arrays["action"], arrays["seed"]
        self.terminated, self.truncated = arrays["terminated"], arrays["truncated"]
        self.progress, self.current = arrays["progress"], arrays["current"]

    def close(self) -> None:
        """Let go of the memory: of its descriptor, and of the arrays that keep it mapped."""
        if self.descriptor < 0:
            return
        os.close(self.descriptor)
        self.descriptor = -1
        self.obs, self.info, self.rewards = {}, {}, {}
        self.action = self.seed = self.terminated = self.truncated = np.empty(0)
        self.progress = self.current = np.empty(0)

    def write(self, lane: int, step: Timestep) -> None:
        """Put what an environment returned into the lane's row, if it is what its spec promised."""
        _copy(self.obs, lane, step.obs, "observation")
        for name, part in step.obs.items():
            if part.dtype.kind == "f" and not np.isfinite(part).all():
                raise ValueError(f"observation {name!r} has a value that is not finite")
        _copy(self.info, lane, step.info, "info")
        for task, row in self.rewards.items():
            reward = step.rewards[task]
            if not math.isfinite(reward):
                raise ValueError(f"reward {task!r} is {reward}")
            row[lane] = reward
        self.terminated[lane] = step.terminated
        self.truncated[lane] = step.truncated


def _copy(rows: Mapping[str, np.ndarray], lane: int, parts: Mapping[str, np.ndarray], what: str) -> None:
    for name, row in rows.items():
        part = parts[name]
        if part.shape != row.shape[1:]:
            raise ValueError(f"{what} {name!r} has shape {part.shape}, its spec says {row.shape[1:]}")
        if part.dtype != row.dtype and not np.can_cast(part.dtype, row.dtype, "same_kind"):
            raise ValueError(f"{what} {name!r} is {part.dtype}, its spec says {row.dtype}")
        row[lane] = part


def _fields(spec: EnvSpec, lanes: int, workers: int) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Shape and dtype of every array, in the order in which they lie in memory."""
    fields: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {
        "progress": ((workers,), np.dtype(np.int64)),
        "current": ((workers,), np.dtype(np.int64)),
        "seed": ((lanes,), np.dtype(np.int64)),
        "action": ((lanes, *spec.action.shape), spec.action.dtype),
        "terminated": ((lanes,), np.dtype(bool)),
        "truncated": ((lanes,), np.dtype(bool)),
    }
    fields |= {f"reward/{task}": ((lanes,), np.dtype(np.float32)) for task in spec.tasks}
    fields |= {f"obs/{name}": ((lanes, *part.shape), part.dtype) for name, part in spec.observations.items()}
    fields |= {
        f"info/{name}": ((lanes, *part.shape), np.dtype(part.dtype)) for name, part in spec.info.items()
    }
    return fields


def _padded(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return max(1, -(-size // ALIGNMENT)) * ALIGNMENT


def _under(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
