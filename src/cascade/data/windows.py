"""Which rows a batch consists of: one pure function, the same on the device and on the host.

A window is T consecutive rows. Episodes lie back to back, so a window may cross their ends; `is_first` marks
each start. The batch of training step i depends on the key and on i alone: how many steps are drawn in one
call, and where a run was resumed, change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key, Shaped, UInt32

from cascade.config import SampleConfig
from cascade.data.fields import Column, Fields, Spans
from cascade.errors import CascadeError
from cascade.types import Batch

MAX_ROWS = np.iinfo(np.int32).max


class Places(eqx.Module):
    """Some rows of the stored ones, of which the first `count` are meant; the rest is padding."""

    at: Int[Array, " capacity"]
    count: Int[Array, ""]

    @classmethod
    def of(cls, at: np.ndarray, capacity: int) -> Places:
        """Padded to `capacity`, so that growing data keep the compiled program."""
        padding = capacity - len(at)
        return cls(jnp.asarray(np.pad(at.astype(np.int32), (0, padding))), jnp.asarray(len(at), jnp.int32))

    def choose(self, bits: UInt32[Array, " B"]) -> Int[Array, " B"]:
        """One of them for each word of bits."""
        return self.at[_below(bits, self.count)]


class Landmarks(eqx.Module):
    """Rows that windows are laid by."""

    starts: Places
    """first rows of the episodes"""
    marks: Places
    """rows that windows are made to contain: the last rows of the episodes, unless others matter more"""
    begins: Places
    """first rows of the episodes that hold the marks, mark by mark"""

    @classmethod
    def of(cls, starts: np.ndarray, marks: np.ndarray, size: Callable[[int], int] = int) -> Landmarks:
        """Of episodes whose first rows are `starts`, in order; `size` says what capacity so many rows are given."""
        begins = starts[np.searchsorted(starts, marks, side="right") - 1]
        return cls(*(Places.of(at, size(len(at))) for at in (starts, marks, begins)))


def window_starts(
    key: Key[Array, ""],
    step: Int[Array, ""] | int,
    rows: Int[Array, ""] | int,
    landmarks: Landmarks,
    config: SampleConfig,
) -> Int[Array, " B"]:
    """First rows of the B windows of training step `step`.

    Uniform over all windows of the `rows` stored; with probability `prioritize_ends` instead uniform over the
    windows that contain one uniformly drawn mark. Of either kind the share `prioritize_starts` begins where an
    episode does, or as near to it as the last of the rows allow: one that is drawn uniformly, or the mark's own
    where it is not so long that the mark would lie outside. In a drawn episode that is longer than a window,
    a row is drawn too: the window begins with the episode if it then holds that row, else it ends with that row.
    """
    bits = jax.random.bits(jax.random.fold_in(key, step), (4, config.batch), jnp.uint32)
    bits = jax.lax.optimization_barrier(bits)  # else XLA computes, and compiles, the hash once per use
    last = jnp.asarray(rows, jnp.int32) - config.length
    anywhere = _below(bits[0], last + 1)
    if config.prioritize_ends == 0.0 and config.prioritize_starts == 0.0:
        return anywhere
    mark = landmarks.marks.choose(bits[1])
    lowest, highest = jnp.maximum(mark - (config.length - 1), 0), jnp.minimum(mark, last)
    at_mark = lowest + _below(bits[2], highest - lowest + 1)
    begin = jnp.minimum(landmarks.begins.choose(bits[1]), last)
    at_begin = jnp.where(begin < lowest, at_mark, begin)
    at_start = jnp.minimum(_of_episode(landmarks.starts, rows, config.length, bits[1], bits[2]), last)
    share = (bits[3] >> 8).astype(jnp.float32) * 2.0**-24
    ends, starts = config.prioritize_ends, config.prioritize_starts
    marked = jnp.where(share < ends * starts, at_begin, at_mark)
    free = jnp.where(share < ends + (1.0 - ends) * starts, at_start, anywhere)
    return jnp.where(share < ends, marked, free)


def _of_episode(
    starts: Places,
    rows: Int[Array, ""] | int,
    length: int,
    which: UInt32[Array, " B"],
    where: UInt32[Array, " B"],
) -> Int[Array, " B"]:
    """First rows of windows that begin with an episode, unless a row that is drawn from it would lie outside; then
    that row is their last."""
    index = _below(which, starts.count)
    after = jnp.where(index + 1 < starts.count, starts.at[index + 1], rows)
    offset = _below(where, after - starts.at[index])
    return starts.at[index] + jnp.maximum(offset - (length - 1), 0)


def _below(bits: UInt32[Array, " B"], count: Int[Array, "..."]) -> Int[Array, " B"]:
    """A number below `count` for each word of bits: even to within count / 2**32, and quick to compile."""
    return (bits % count.astype(jnp.uint32)).astype(jnp.int32)


def to_batch(columns: Mapping[str, Shaped[Array, "..."]]) -> Batch:
    """Windows of every column under their names in a batch.

    The first row of each window must say `is_first` already: what happened before it is unknown.
    """
    obs = {name.removeprefix("obs."): value for name, value in columns.items() if name.startswith("obs.")}
    return Batch(
        obs=obs,
        action=columns["action"],
        is_first=columns["is_first"],
        is_terminal=columns["is_terminal"],
    )


def check_rows(fields: Fields, config: SampleConfig) -> None:
    """There is at least one window, and rows can be counted in 32 bits."""
    if fields.rows < config.length:
        raise CascadeError(
            f"sample.length (or transfer.length): got {config.length}, but only {fields.rows} rows are stored; "
            "collect more, hold out less, or draw shorter sequences"
        )
    if fields.rows > MAX_ROWS:
        raise CascadeError(
            f"{fields.rows} rows are more than the {MAX_ROWS} that can be drawn from; split them"
        )


Extra = Column | Shaped[Array, "capacity ..."]
"""A row-aligned array beside the fields, as a sampler's `place` gives it."""


def as_column(values: Column | np.ndarray, rows: int) -> Column:
    """A row-aligned array as a column of exactly `rows` rows."""
    if len(values) != rows:
        raise CascadeError(f"extra array: got {len(values)} rows, expected the {rows} of the fields")
    return values if isinstance(values, Column) else Column((values,), Spans.whole([rows]))


@runtime_checkable
class Sampler(Protocol):
    """Draws the batches of consecutive training steps."""

    reason: str
    """why batches come from where they do"""

    def chunk(self, step: int, count: int) -> Batch:
        """Batches of training steps step..step + count, on a leading axis: [count, B, T, ...]."""

    def place(self, values: Column | np.ndarray) -> Extra:
        """Make a row-aligned array ready to be drawn beside the fields."""

    def chunk_with(
        self, step: int, count: int, extras: Mapping[str, Extra]
    ) -> tuple[Batch, dict[str, Shaped[Array, "count B T ..."]]]:
        """The very windows of `chunk`, and the same rows of each of `extras`."""

    def close(self) -> None:
        """Let go of threads and memory."""
