"""The sampler for data that fits on the device: uploaded once, drawn there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key, Shaped

from cascade.config import SampleConfig
from cascade.data.fields import Column, Fields
from cascade.data.windows import Extra, Landmarks, as_column, check_rows, to_batch, window_starts
from cascade.errors import CascadeError
from cascade.types import Batch

UPLOAD_BYTES = 64 << 20


def padded(count: int) -> int:
    """The next size in steps of an eighth of a power of two: at most 12.5 % more, and few distinct sizes."""
    step = max(1, 1 << max(0, count.bit_length() - 4))
    return -(-count // step) * step


class DeviceRows(eqx.Module):
    """The stored rows on the device. The counts are arrays, so growing data keeps the compiled program.

    Arrays are as long as `padded` says; rows past `rows` are never drawn.
    """

    columns: dict[str, Shaped[Array, "capacity ..."]]
    rows: Int[Array, ""]
    landmarks: Landmarks


def draw(
    data: DeviceRows,
    extras: Mapping[str, Shaped[Array, "capacity ..."]],
    key: Key[Array, ""],
    step: Int[Array, ""] | int,
    config: SampleConfig,
) -> tuple[Batch, dict[str, Shaped[Array, "B T ..."]]]:
    """The batch of one training step, and the same rows of `extras`. Pure, for use in compiled code."""
    starts = window_starts(key, step, data.rows, data.landmarks, config)
    columns = {name: take_windows(column, starts, config.length) for name, column in data.columns.items()}
    columns["is_first"] = columns["is_first"].at[:, 0].set(True)
    beside = {name: take_windows(column, starts, config.length) for name, column in extras.items()}
    return to_batch(columns), beside


def take_windows(
    column: Shaped[Array, "capacity ..."], starts: Int[Array, " B"], length: int
) -> Shaped[Array, "B T ..."]:
    """`length` rows from each start: one contiguous copy a window, which flat rows make fastest."""
    flat = column.reshape(column.shape[0], -1)
    taken = jax.vmap(lambda start: jax.lax.dynamic_slice_in_dim(flat, start, length))(starts)
    return taken.reshape(*starts.shape, length, *column.shape[1:])


@partial(jax.jit, static_argnames=("count", "config"))
def _draw_chunk(
    data: DeviceRows,
    extras: dict[str, Shaped[Array, "capacity ..."]],
    key: Key[Array, ""],
    step: Int[Array, ""],
    count: int,
    config: SampleConfig,
) -> tuple[Batch, dict[str, Shaped[Array, "count B T ..."]]]:
    """`count` batches in one call. Compiled once per capacity, count and config, for all samplers."""
    return jax.vmap(lambda i: draw(data, extras, key, i, config))(step + jnp.arange(count, dtype=jnp.int32))


@partial(jax.jit, donate_argnums=0)
def _fill(
    target: Shaped[Array, "capacity ..."], rows: Shaped[Array, "n ..."], start: Int[Array, ""]
) -> Shaped[Array, "capacity ..."]:
    return jax.lax.dynamic_update_slice_in_dim(target, rows, start, axis=0)


def upload(column: Column, capacity: int) -> Shaped[Array, "capacity ..."]:
    """A column on the device, piece by piece, so that the host never holds it whole."""
    total = len(column)
    piece = max(1, min(total, UPLOAD_BYTES // max(1, column.row_bytes)))
    target = jnp.zeros((capacity, *column.shape[1:]), column.dtype)
    for start in range(0, total, piece):
        first = min(start, total - piece)
        target = _fill(target, jnp.asarray(column.read(first, first + piece)), jnp.asarray(first, jnp.int32))
    return target


class DeviceSampler:
    """Draws batches from rows that live on the device."""

    def __init__(
        self,
        fields: Fields,
        config: SampleConfig,
        key: Key[Array, ""],
        capacity: int | None = None,
        reason: str = "asked for",
        marks: np.ndarray | None = None,
    ):
        """`capacity` is how many rows to reserve; by default the stored ones, rounded up by an eighth at
        most, so that few deployments change the size for which the draw was compiled. `marks` are rows that
        sequences are made to contain instead of the ends of episodes.
        """
        check_rows(fields, config)
        self.config, self.key, self.reason = config, key, reason
        self.capacity = padded(fields.rows) if capacity is None else capacity
        if self.capacity < fields.rows:
            raise CascadeError(
                f"capacity: got {self.capacity}, expected at least the {fields.rows} rows stored"
            )
        self._rows = fields.rows
        marks = fields.ends if marks is None else marks
        self.data = DeviceRows(
            columns={name: upload(column, self.capacity) for name, column in fields.columns().items()},
            rows=jnp.asarray(fields.rows, jnp.int32),
            landmarks=Landmarks.of(fields.starts, marks, padded),
        )

    def chunk(self, step: int, count: int) -> Batch:
        """Batches of training steps step..step + count: [count, B, T, ...]."""
        return self.chunk_with(step, count, {})[0]

    def place(self, values: Column | np.ndarray) -> Extra:
        """Put a row-aligned array beside the data, once."""
        return upload(as_column(values, self._rows), self.capacity)

    def chunk_with(
        self, step: int, count: int, extras: Mapping[str, Extra]
    ) -> tuple[Batch, dict[str, Shaped[Array, "count B T ..."]]]:
        """The very windows of `chunk`, and the same rows of each of `extras`, which `place` has put there."""
        placed = {name: value for name, value in extras.items() if not isinstance(value, Column)}
        if len(placed) != len(extras) or any(len(value) != self.capacity for value in placed.values()):
            raise CascadeError(f"extra arrays {list(extras)}: pass each through this sampler's place() first")
        return _draw_chunk(self.data, placed, self.key, jnp.asarray(step, jnp.int32), count, self.config)

    def close(self) -> None:
        """Nothing to stop; the arrays go when the sampler does."""
