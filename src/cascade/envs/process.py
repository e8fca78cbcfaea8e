"""One worker process as its parent sees it: what it owes, whether it lives, and its replacement."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import select
import signal
import subprocess
import time
from collections import deque
from multiprocessing import connection
from typing import NamedTuple

import numpy as np

from cascade.config import EnvConfig
from cascade.envs import worker as worker_side
from cascade.envs.buffers import Buffers

START_TIMEOUT = 300.0
"""Seconds for a process to start and make its environments."""
STOP_TIMEOUT = 5.0
"""Seconds for a process to close its environments when asked."""
LONGEST_WAIT = 60.0
"""Seconds of one wait for an answer, after which it is waited for again: system calls take no number at all."""
UNANSWERED = 16
"""Messages sent ahead of their answers, at most: few enough to fit any pipe, so sending never blocks."""


class Failure(NamedTuple):
    """A lane whose environment was lost, and why."""

    lane: int
    cause: str
    process: tuple[int, int] | None = None
    """the process that went with it, as (worker, how many this worker had before); None if it lives on"""
    culprit: int | None = None
    """the lane in whose environment that process was lost, where it is known"""


Failures = dict[int, Failure]
"""By lane."""


class Worker:
    """A process and the lanes it steps. One that is lost is replaced at once, with fresh environments."""

    def __init__(self, config: EnvConfig, index: int, buffers: Buffers, counts: tuple[int, int]):
        self._config = config
        self._index = index
        self._buffers = buffers
        self._counts = counts
        lanes, workers = counts
        self._lanes = range(index, lanes, workers)
        self._ready = False
        self._sent: deque[list[int]] = deque()
        self._queued: deque[list[int]] = deque()
        self._progress = -1
        self._since: float | None = None  # when it last showed progress, while someone waits for it
        self._replaced = 0
        self._start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def pipe(self) -> connection.Connection:
        return self._pipe

    def submit(self, lanes: np.ndarray) -> None:
        """Queue these lanes; their actions and seeds are in the buffers."""
        self._queued.append(lanes.tolist())
        self._pump()

    def owes(self, lanes: set[int]) -> bool:
        """Whether any of these lanes is not answered yet."""
        return any(not lanes.isdisjoint(batch) for batch in (*self._sent, *self._queued))

    def seconds_left(self, timeout: float) -> float:
        """Seconds until this process counts as hung; every lane that it finishes starts them anew."""
        progress = int(self._buffers.progress[self._index])
        now = time.monotonic()
        if progress != self._progress or self._since is None:
            self._progress, self._since = progress, now
        limit = timeout if self._ready else max(timeout, START_TIMEOUT)
        return self._since + limit - now

    def collect(self) -> Failures:
        """Take the answer that waits in the pipe; the lanes that were lost, all of them if the process died."""
        try:
            message = self._pipe.recv_bytes()
        except (EOFError, OSError):
            return self._replace(self._death())
        answer = json.loads(message) if message != worker_side.DONE else {}
        self._since = None
        if isinstance(answer, str):
            return self._replace(f"its environments could not be made: {answer}")
        if not self._ready:
            self._ready = True
        else:
            self._sent.popleft()
        self._pump()
        return {int(lane): Failure(int(lane), cause) for lane, cause in answer.items()}

    def give_up(self, timeout: float) -> Failures:
        """Replace a process that has used up its time; all of its lanes are lost."""
        return self._replace(self._hang(timeout))

    def start_failure(self, timeout: float) -> str | None:
        """Wait for the process to be ready; the cause if it will not be."""
        try:
            if not self._pipe.poll(timeout):
                return f"not ready after {timeout:g} s"
            answer = json.loads(self._pipe.recv_bytes())
        except (EOFError, OSError):
            return self._death()
        self._ready = True
        return answer if isinstance(answer, str) else None

    def ask_to_stop(self) -> None:
        with contextlib.suppress(OSError):
            self._pipe.send_bytes(b"")

    def stop(self) -> None:
        """End the process: by itself if it does so soon, by force otherwise."""
        try:
            self._process.wait(STOP_TIMEOUT if self._ready and not self._sent else 0.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._pipe.close()

    def _start(self) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        descriptors = (self._buffers.descriptor, theirs.fileno())
        try:
            self._process = subprocess.Popen(
                worker_side.command(self._config, self._lanes, self._index, self._counts, descriptors),
                env=worker_side.environ(),
                pass_fds=descriptors,
                stdin=subprocess.DEVNULL,
                stdout=2,  # what environments print must not mix with results
                start_new_session=True,  # Ctrl-C is for the parent
            )
        except BaseException:
            self._pipe.close()
            raise
        finally:
            theirs.close()
        self._ready = False
        self._sent.clear()
        self._queued.clear()
        self._since = None
        self._buffers.current[self._index] = -1

    def _pump(self) -> None:
        while self._queued and len(self._sent) < UNANSWERED:
            batch = self._queued.popleft()
            self._sent.append(batch)
            with contextlib.suppress(OSError):  # a dead process is noticed where its answer is collected
                self._pipe.send_bytes(np.array(batch, np.int32).tobytes())

    def _replace(self, cause: str) -> Failures:
        process, culprit = (self._index, self._replaced), self._culprit()
        self._process.kill()
        self._process.wait()
        self._pipe.close()
        self._replaced += 1
        self._start()
        return {lane: Failure(lane, cause, process, culprit) for lane in self._lanes}

    def _hang(self, timeout: float) -> str:
        if not self._ready:
            return f"worker {self._index} did not start within {max(timeout, START_TIMEOUT):g} s"
        return f"worker {self._index} gave no sign of life for {timeout:g} s{self._where()}; it was restarted"

    def _death(self) -> str:
        try:
            code = self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            return f"worker {self._index} closed its pipe{self._where()}"
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return f"worker {self._index} died ({how}){self._where()}; it was restarted"

    def _culprit(self) -> int | None:
        """The lane that is being stepped, or was when the process died."""
        lane = int(self._buffers.current[self._index])
        return lane if lane >= 0 else None

    def _where(self) -> str:
        lane = self._culprit()
        return "" if lane is None else f" in the environment of lane {lane}"


def first_ready(workers: list[Worker], timeout: float) -> tuple[list[Worker], list[Worker]]:
    """Wait until one of the workers has answered, died, or used up its time: those to hear, those to give up."""
    left = max(0.0, min(worker.seconds_left(timeout) for worker in workers))
    poller = select.poll()
    for worker in workers:
        poller.register(worker.pipe, select.POLLIN)
    answered = {descriptor for descriptor, _ in poller.poll(1e3 * min(left, LONGEST_WAIT))}
    heard = [worker for worker in workers if worker.pipe.fileno() in answered]
    if heard:
        return heard, []
    return [], [worker for worker in workers if worker.seconds_left(timeout) <= 0]
