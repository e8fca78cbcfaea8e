"""A probe world that fails on purpose, to test whoever must survive it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np

from cascade.config import EnvConfig
from cascade.envs.probe import Probe, one_hot, vector_of
from cascade.envs.protocol import Timestep
from cascade.specs import ActionSpec

NEVER = -1


class Faulty(Probe):
    """Counts its steps, and at a given step of an episode (0 is the reset) raises, crashes or hangs.

    `crash_at` kills the process it runs in. `seed` restricts the fault to episodes reset with that seed.
    `once` is the path of a file: the fault happens only while it does not exist, and creates it, so that the
    same episode succeeds when tried again. `start=fail` raises when the world is made.
    """

    def __init__(
        self,
        config: EnvConfig,
        *,
        raise_at: int = NEVER,
        crash_at: int = NEVER,
        hang_at: int = NEVER,
        seed: int = NEVER,
        once: str = "",
        start: str = "",
        limit: int = 10,
    ):
        if start == "fail":
            raise RuntimeError("this probe world fails to start, as asked")
        super().__init__(config, vector_of(limit + 1), ActionSpec("discrete", 2), limit=limit)
        self._at = {"raise": raise_at, "crash": crash_at, "hang": hang_at}
        self._only_seed = seed
        self._once = Path(once) if once else None
        self._seed = NEVER

    def reset(self, seed: int) -> Timestep:
        self._seed = seed
        return super().reset(seed)

    def begin(self, rng: np.random.Generator) -> None:
        self._fail()

    def move(self, action: int) -> tuple[tuple[float, ...], bool]:
        self._fail()
        return (float(action),), False

    def see(self) -> np.ndarray:
        return one_hot(min(self.steps, self.limit), self.spec.observations["vector"].shape[0])

    def _fail(self) -> None:
        due = [fault for fault, step in self._at.items() if step == self.steps]
        if not due or self._only_seed not in (NEVER, self._seed):
            return
        if self._once is not None:
            if self._once.exists():
                return
            self._once.touch()
        if due[0] == "raise":
            raise RuntimeError(f"this probe world raises at step {self.steps}, as asked")
        if due[0] == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        while True:
            time.sleep(3600)
