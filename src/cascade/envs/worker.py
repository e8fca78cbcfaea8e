"""What steps environments: the lanes of one worker, and the process around them.

The process is a fresh interpreter, never a fork, and imports no JAX. It takes messages of lane numbers
(int32), works through them with the actions and seeds it finds in shared memory, and answers each message
with the lanes that failed and why, as JSON; an empty message ends it, and so does the death of its parent.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import threading
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from cascade.config import EnvConfig
from cascade.envs.buffers import Buffers
from cascade.envs.protocol import Environment
from cascade.envs.registry import make
from cascade.errors import cause_of
from cascade.specs import EnvSpec

LONGEST_CAUSE = 2000
DONE = b"{}"
"""The answer in which no lane failed."""
LOOK_FOR_PARENT = 5.0
"""Seconds between two looks at whether this process is an orphan."""
THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class Lanes:
    """The environments of some lanes. One that raises is thrown away, and made again at its next reset."""

    def __init__(self, config: EnvConfig, lanes: Iterable[int], worker: int = 0):
        self._config = config
        self._worker = worker
        self._envs: dict[int, Environment | None] = {lane: make(config) for lane in lanes}
        self.spec: EnvSpec = next(env.spec for env in self._envs.values() if env is not None)
        self._discrete = self.spec.action.kind == "discrete"

    def run(self, lanes: Sequence[int], buffers: Buffers) -> dict[int, str]:
        """Reset (seed >= 0) or step each lane. Returns the lanes that failed, and why."""
        failures = {}
        seeds = buffers.seed[lanes].tolist()
        actions = buffers.action[lanes]
        for lane, seed, action in zip(
            lanes, seeds, actions.tolist() if self._discrete else actions, strict=True
        ):
            buffers.current[self._worker] = lane
            try:
                env = self._envs[lane]
                if env is None:
                    env = self._envs[lane] = make(self._config)
                buffers.write(lane, env.reset(seed) if seed >= 0 else env.step(action))
            except Exception as error:
                failures[lane] = cause_of(error)[:LONGEST_CAUSE]
                self._discard(lane)
            buffers.progress[self._worker] += 1
        buffers.current[self._worker] = -1
        return failures

    def close(self) -> None:
        for lane in self._envs:
            self._discard(lane)

    def _discard(self, lane: int) -> None:
        env, self._envs[lane] = self._envs[lane], None
        if env is not None:
            with contextlib.suppress(Exception):
                env.close()


def command(
    config: EnvConfig,
    lanes: Sequence[int],
    worker: int,
    counts: tuple[int, int],
    descriptors: tuple[int, int],
) -> list[str]:
    """The command line of a worker process. It imports from where its parent does."""
    job = {
        "path": sys.path,
        "parent": os.getpid(),
        "config": asdict(config),
        "lanes": list(lanes),
        "worker": worker,
        "counts": counts,
        "descriptors": descriptors,
    }
    code = (
        "import json, sys; job = json.loads(sys.argv[1]); sys.path[:] = job['path']; "
        "from cascade.envs.worker import main; main(job)"
    )
    return [sys.executable, "-c", code, json.dumps(job)]


def environ() -> dict[str, str]:
    """A worker's environment variables: one thread each, and no accelerator should a world use JAX."""
    return os.environ | dict.fromkeys(THREAD_LIMITS, "1") | {"JAX_PLATFORMS": "cpu"}


def main(job: dict[str, Any]) -> None:
    """The process: make the environments, say so, then serve until told to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    memory, pipe = job["descriptors"]
    connection = Connection(pipe)
    _exit_with_parent(pipe, job["parent"])
    try:
        lanes = Lanes(EnvConfig(**job["config"]), job["lanes"], job["worker"])
        buffers = Buffers(lanes.spec, job["counts"][0], job["counts"][1], memory)
    except Exception as error:
        connection.send_bytes(json.dumps(cause_of(error)[:LONGEST_CAUSE]).encode())
        return
    connection.send_bytes(DONE)
    with contextlib.suppress(EOFError, ConnectionError):
        while message := connection.recv_bytes():
            failures = lanes.run(np.frombuffer(message, np.int32).tolist(), buffers)
            connection.send_bytes(json.dumps(failures).encode() if failures else DONE)
    lanes.close()


def _exit_with_parent(pipe: int, parent: int) -> None:
    """End this process when the other end of the pipe is gone, even while an environment hangs.

    Not every system wakes for a hang-up alone; an orphan has another parent on all of them.
    """

    def watch() -> None:
        poller = select.poll()
        poller.register(pipe, 0)  # wakes for a hang-up only
        while not poller.poll(LOOK_FOR_PARENT * 1000) and os.getppid() == parent:
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
