"""The sampler for data larger than the device: a thread reads the memory maps ahead of the training."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key, Shaped

from cascade.config import SampleConfig
from cascade.data.fields import Column, Fields
from cascade.data.windows import Extra, Landmarks, as_column, check_rows, to_batch, window_starts
from cascade.errors import CascadeError
from cascade.types import Batch

SMALL = 1 << 20
"""bytes below which one thread reads faster than several"""
Drawn = tuple[Batch, dict[str, Array]]


@partial(jax.jit, static_argnames=("count", "config"))
def _starts(
    key: Key[Array, ""],
    step: Int[Array, ""],
    rows: Int[Array, ""],
    landmarks: Landmarks,
    count: int,
    config: SampleConfig,
) -> Int[Array, "count B"]:
    steps = step + jnp.arange(count, dtype=jnp.int32)
    return jax.vmap(lambda i: window_starts(key, i, rows, landmarks, config))(steps)


def host_device() -> jax.Device | None:
    """The CPU, where JAX has it, so that drawing indices never waits behind training."""
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        return None


class HostSampler:
    """Draws the same batches as `DeviceSampler` from the store's files, a few chunks ahead of the caller."""

    def __init__(
        self,
        fields: Fields,
        config: SampleConfig,
        key: Key[Array, ""],
        prefetch: int = 2,
        readers: int = 4,
        reason: str = "asked for",
        marks: np.ndarray | None = None,
    ):
        """At most `prefetch` chunks are read ahead, on the guess that the next call asks for what follows.
        `readers` threads share the reading of one, since a disk serves several requests at once. `marks` are rows
        that sequences are made to contain instead of the ends of episodes.
        """
        check_rows(fields, config)
        self.config, self.fields, self.reason = config, fields, reason
        self._device = host_device()
        self._key = jax.device_put(key, self._device)
        marks = fields.ends if marks is None else marks
        self._landmarks = jax.device_put(Landmarks.of(fields.starts, marks), self._device)
        self._prefetch = prefetch
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="cascade-sampler")
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="cascade-sampler-reader")
        self._ahead: deque[tuple[int, int, dict[str, Column], Future[Drawn]]] = deque()
        self._closed = False

    def chunk(self, step: int, count: int) -> Batch:
        """Batches of training steps step..step + count: [count, B, T, ...]."""
        return self.chunk_with(step, count, {})[0]

    def place(self, values: Column | np.ndarray) -> Extra:
        """A row-aligned array as a column; it stays where it is."""
        return as_column(values, self.fields.rows)

    def chunk_with(
        self, step: int, count: int, extras: Mapping[str, Extra]
    ) -> tuple[Batch, dict[str, Shaped[Array, "count B T ..."]]]:
        """The very windows of `chunk`, and the same rows of each of `extras`."""
        if self._closed:
            raise CascadeError("this sampler is closed; make a new one")
        columns = {name: value for name, value in extras.items() if isinstance(value, Column)}
        if len(columns) != len(extras):
            raise CascadeError(f"extra arrays {list(extras)}: pass each through this sampler's place() first")
        if not (self._ahead and _same(self._ahead[0][:3], (step, count, columns))):
            self._forget()
            self._submit(step, count, columns)
        future = self._ahead.popleft()[3]
        while len(self._ahead) < self._prefetch:
            following = self._ahead[-1][0] + count if self._ahead else step + count
            self._submit(following, count, columns)
        return future.result()

    def close(self) -> None:
        """Stop reading ahead and end the thread."""
        self._closed = True
        self._forget()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._readers.shutdown(wait=True)

    def _submit(self, step: int, count: int, extras: dict[str, Column]) -> None:
        self._ahead.append((step, count, extras, self._pool.submit(self._read, step, count, extras)))

    def _forget(self) -> None:
        while self._ahead:
            self._ahead.pop()[3].cancel()

    def _read(self, step: int, count: int, extras: dict[str, Column]) -> Drawn:
        """In the thread: draw the indices, read the rows, send them to the device."""
        with jax.default_device(self._device):
            starts = np.asarray(
                _starts(
                    self._key,
                    jnp.asarray(step, jnp.int32),
                    jnp.asarray(self.fields.rows, jnp.int32),
                    self._landmarks,
                    count,
                    self.config,
                )
            )
        read = {name: self._windows(column, starts) for name, column in self.fields.columns().items()}
        read["is_first"][..., 0] = True
        beside = {name: jax.device_put(self._windows(column, starts)) for name, column in extras.items()}
        return to_batch({name: jax.device_put(value) for name, value in read.items()}), beside

    def _windows(self, column: Column, starts: np.ndarray) -> np.ndarray:
        """The rows from each of `starts` [count, B] on: [count, B, T, ...]."""
        out = np.empty((*starts.shape, self.config.length, *column.shape[1:]), column.dtype)
        if out.nbytes < SMALL:
            column.read_windows(out, starts)
        else:
            list(self._readers.map(column.read_windows, out, starts))
        return out


def _same(ahead: tuple[int, int, Mapping[str, Column]], asked: tuple[int, int, Mapping[str, Column]]) -> bool:
    """Whether what was read ahead is what is asked for, down to the very columns."""
    mine, theirs = ahead[2], asked[2]
    return ahead[:2] == asked[:2] and mine.keys() == theirs.keys() and all(mine[n] is theirs[n] for n in mine)
