"""What environments and episodes are made of: NumPy only, so that worker processes start without JAX.

Time alignment of stored rows, for an episode of n steps (n + 1 rows):

    row         0        1        2      ...     n
    obs         o0       o1       o2     ...     on       the observation at this time
    action      a0       a1       a2     ...     0        the action taken AT this time; none after the last
    label       0        r1       r2     ...     rn       what arriving here was worth, per task; kept apart
    is_first    1        0        0      ...     0
    is_terminal 0        0        0      ...     1 if the episode truly ended, 0 if it was cut
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np


@dataclass(frozen=True)
class ObservationSpec:
    """One named part of an observation.

    `image`: uint8 [height, width, channels]. `grid`: uint8 [height, width, channels] of class indices, with
    `classes` saying how many each channel has. `vector`: float32 [size].
    """

    kind: Literal["image", "grid", "vector"]
    shape: tuple[int, ...]
    classes: tuple[int, ...] = ()

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float32 if self.kind == "vector" else np.uint8)


@dataclass(frozen=True)
class ActionSpec:
    """`discrete`: an index below `size`, stored int32 []. `continuous`: float32 [size] in [-1, 1]."""

    kind: Literal["discrete", "continuous"]
    size: int

    @property
    def shape(self) -> tuple[int, ...]:
        return () if self.kind == "discrete" else (self.size,)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.int32 if self.kind == "discrete" else np.float32)


@dataclass(frozen=True)
class ArraySpec:
    """Shape and dtype (its NumPy name) of one array an environment reports beside its observation."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class EnvSpec:
    """What an environment gives and takes. `tasks` name its rewards; `info` is for people and measures."""

    name: str
    observations: Mapping[str, ObservationSpec]
    action: ActionSpec
    tasks: tuple[str, ...] = ("reward",)
    info: Mapping[str, ArraySpec] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.name, *sorted(self.observations.items(), key=lambda item: item[0]), self.action))


class EpisodeKey(NamedTuple):
    """Which piece of work an episode is. A retry has the same key, so nothing is ever stored twice."""

    explorer: int
    lane: int
    episode: int


@dataclass(frozen=True)
class Episode:
    """A whole episode as collected: n steps, n + 1 rows, aligned as the module says."""

    key: EpisodeKey
    obs: Mapping[str, np.ndarray]
    action: np.ndarray
    labels: Mapping[str, np.ndarray]
    info: Mapping[str, np.ndarray]
    terminated: bool

    def __len__(self) -> int:
        return len(self.action) - 1
