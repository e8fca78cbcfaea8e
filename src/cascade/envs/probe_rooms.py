"""Probe worlds with a place in them: two rooms at the ends of a corridor, a point mass, a dot on a screen."""

from __future__ import annotations

import numpy as np

from cascade.config import EnvConfig
from cascade.envs.probe import Kind, Probe
from cascade.specs import ActionSpec, ArraySpec, ObservationSpec

MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))
"""What the actions left, right, up and down add to (x, y)."""


class TwoRooms(Probe):
    """The paper's Figure 2: a bare corridor, an informative room at each end, the right one slightly richer.

    The episode starts in the middle of the corridor and is too short to see both rooms. Every cell of a room
    shows a pattern of its own, random but fixed, so that there is something to learn there; the corridor's
    cells all look alike. `info` has the position (x, y) and the region: 0 corridor, 1 left, 2 right.
    """

    CORRIDOR, LEFT, RIGHT = 0, 1, 2
    HEIGHT, BITS = 3, 8

    def __init__(
        self,
        config: EnvConfig,
        *,
        left: int = 3,
        right: int = 4,
        corridor: int = 9,
        limit: int = 14,
        table: int = 0,
    ):
        size = 2 + self.BITS
        parts: dict[Kind, ObservationSpec] = {
            "vector": ObservationSpec("vector", (size,)),
            "grid": ObservationSpec("grid", (1, self.BITS, 1), (2,)),
        }
        info = {"position": ArraySpec((2,), "int16"), "region": ArraySpec((), "int8")}
        super().__init__(config, parts, ActionSpec("discrete", 4), limit=limit, info=info)
        self.width = left + corridor + right
        self.start = (left + corridor // 2, self.HEIGHT // 2)
        self.region = np.full((self.width, self.HEIGHT), -1, np.int8)
        self.region[:left], self.region[-right:] = self.LEFT, self.RIGHT
        self.region[left : left + corridor, self.HEIGHT // 2] = self.CORRIDOR
        patterns = np.random.default_rng(table).integers(2, size=(self.width, self.HEIGHT, self.BITS))
        self.patterns = np.where((self.region > 0)[..., None], patterns, 0).astype(np.uint8)

    def begin(self, rng: np.random.Generator) -> None:
        self.position = self.start

    def move(self, action: int) -> tuple[tuple[float, ...], bool]:
        x, y = self.position[0] + MOVES[action][0], self.position[1] + MOVES[action][1]
        if 0 <= x < self.width and 0 <= y < self.HEIGHT and self.region[x, y] >= 0:
            self.position = (x, y)
        return (float(self.region[self.position] == self.RIGHT),), False

    def see(self) -> np.ndarray:
        pattern = self.patterns[self.position]
        if self.kind == "grid":
            return pattern.reshape(1, -1, 1).copy()
        place = np.array(self.position, np.float32) / (self.width - 1, self.HEIGHT - 1) * 2 - 1
        return np.concatenate([place, pattern]).astype(np.float32)

    def tell(self) -> dict[str, np.ndarray]:
        return {
            "position": np.array(self.position, np.int16),
            "region": np.array(self.region[self.position], np.int8),
        }


class Point(Probe):
    """A point mass in the square [-1, 1]²: v' = 0.9 v + 0.1 a, x' = x + v', stopped by the walls.

    Observed: x and v. Two tasks: being far to the `right`, and far `up`, each worth 0 to 1 a step.
    """

    DRAG, GAIN = 0.9, 0.1

    def __init__(self, config: EnvConfig, *, limit: int = 50):
        parts: dict[Kind, ObservationSpec] = {"vector": ObservationSpec("vector", (4,))}
        super().__init__(config, parts, ActionSpec("continuous", 2), limit=limit, tasks=("right", "up"))

    def begin(self, rng: np.random.Generator) -> None:
        self.x = rng.uniform(-0.5, 0.5, 2).astype(np.float32)
        self.v = np.zeros(2, np.float32)

    def move(self, action: np.ndarray) -> tuple[tuple[float, ...], bool]:
        self.v = self.DRAG * self.v + self.GAIN * np.clip(action, -1.0, 1.0)
        moved = self.x + self.v
        self.x = np.clip(moved, -1.0, 1.0)
        self.v = np.where(self.x == moved, self.v, 0.0).astype(np.float32)
        return (float(self.x[0] + 1) / 2, float(self.x[1] + 1) / 2), False

    def see(self) -> np.ndarray:
        return np.concatenate([self.x, self.v]).astype(np.float32)


class Pixels(Probe):
    """A white dot on a black screen of 8x8 places, moved left, right, up, down. The last corner pays 1."""

    PLACES = 8

    def __init__(self, config: EnvConfig, *, limit: int = 30, channels: int = 3):
        shape = (config.image_size, config.image_size, channels)
        parts: dict[Kind, ObservationSpec] = {"image": ObservationSpec("image", shape)}
        info = {"position": ArraySpec((2,), "int16")}
        super().__init__(config, parts, ActionSpec("discrete", 4), limit=limit, info=info)
        self.shape = shape

    def begin(self, rng: np.random.Generator) -> None:
        self.position = rng.integers(self.PLACES, size=2)

    def move(self, action: int) -> tuple[tuple[float, ...], bool]:
        self.position = np.clip(self.position + MOVES[action], 0, self.PLACES - 1)
        return (float((self.position == self.PLACES - 1).all()),), False

    def see(self) -> np.ndarray:
        image = np.zeros(self.shape, np.uint8)
        dot = self.shape[0] // self.PLACES
        x, y = (self.position * dot).tolist()
        image[y : y + dot, x : x + dot] = 255
        return image

    def tell(self) -> dict[str, np.ndarray]:
        return {"position": self.position.astype(np.int16)}
