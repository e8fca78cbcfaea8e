"""The stored rows as learning sees them: one virtual array per field over all deployments, and no labels.

Rows of all deployments lie back to back, episode after episode. Nothing is read until it is asked for, and
choosing episodes copies no data: it only lists which rows of which file are meant.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cascade.errors import CascadeError


@dataclass(frozen=True)
class Spans:
    """Which rows of which part make up a virtual array: span k is rows `start[k]` on of `part[k]`."""

    part: np.ndarray
    start: np.ndarray
    offset: np.ndarray
    """[K + 1]: the virtual row at which each span begins, and the total"""

    @classmethod
    def whole(cls, lengths: Sequence[int]) -> Spans:
        """Every row of every part, in order."""
        offset = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
        return cls(np.arange(len(lengths)), np.zeros(len(lengths), np.int64), offset)

    def __len__(self) -> int:
        return int(self.offset[-1])

    def pieces(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """The (part, first row, end row) triples that virtual rows start..stop consist of."""
        span = int(np.searchsorted(self.offset, start, side="right")) - 1
        while start < stop:
            end = min(stop, int(self.offset[span + 1]))
            first = int(self.start[span]) + start - int(self.offset[span])
            if end > start:
                yield int(self.part[span]), first, first + end - start
            start, span = end, span + 1

    def select(self, ranges: np.ndarray) -> Spans:
        """The virtual rows of `ranges` [n, 2], (start, stop) each, joined where they touch."""
        found: list[list[int]] = []
        for start, stop in ranges.tolist():
            for part, first, end in self.pieces(start, stop):
                if found and found[-1][0] == part and found[-1][2] == first:
                    found[-1][2] = end
                else:
                    found.append([part, first, end])
        spans = np.array(found, np.int64).reshape(-1, 3)
        lengths = spans[:, 2] - spans[:, 1]
        return Spans(spans[:, 0], spans[:, 1], np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))


@dataclass(frozen=True)
class Column:
    """One row-aligned array, spread over the deployments' memory maps."""

    parts: tuple[np.ndarray, ...]
    spans: Spans

    def __len__(self) -> int:
        return len(self.spans)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), *self.parts[0].shape[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.parts[0].dtype

    @property
    def row_bytes(self) -> int:
        return int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize

    def read(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Rows start..stop: a view of the file where they lie together, else a copy."""
        stop = len(self) if stop is None else stop
        if not 0 <= start <= stop <= len(self):
            raise IndexError(f"rows {start}..{stop} of {len(self)}")
        pieces = list(self.spans.pieces(start, stop))
        if len(pieces) == 1:
            part, first, end = pieces[0]
            return self.parts[part][first:end]
        out = np.empty((stop - start, *self.shape[1:]), self.dtype)
        self.read_into(out, start)
        return out

    def read_into(self, out: np.ndarray, start: int) -> None:
        """Fill `out` with the rows from `start` on."""
        filled = 0
        for part, first, end in self.spans.pieces(start, start + len(out)):
            out[filled : filled + end - first] = self.parts[part][first:end]
            filled += end - first

    def read_windows(self, out: np.ndarray, starts: np.ndarray) -> None:
        """Fill `out` [..., T, ...row] with the T rows from each of `starts` [...] on."""
        flat = out.reshape(starts.size, *out.shape[starts.ndim :])
        for window, start in zip(flat, starts.reshape(-1).tolist(), strict=True):
            self.read_into(window, start)


@dataclass(frozen=True)
class Fields:
    """What learning may read. There is no label and no reward in it, by construction."""

    obs: Mapping[str, Column]
    action: Column
    is_first: Column
    is_terminal: Column
    starts: np.ndarray
    """int64 [episodes]: first row of each episode"""
    ends: np.ndarray
    """int64 [episodes]: last row of each episode"""

    @property
    def rows(self) -> int:
        return len(self.action)

    @property
    def episodes(self) -> int:
        return len(self.ends)

    @property
    def row_bytes(self) -> int:
        """Bytes of one row over all fields."""
        return sum(column.row_bytes for column in self.columns().values())

    def columns(self) -> dict[str, Column]:
        """Every column under its file's name without the ending: `obs.<name>`, `action`, ..."""
        named = {f"obs.{name}": column for name, column in self.obs.items()}
        return {
            **named,
            "action": self.action,
            "is_first": self.is_first,
            "is_terminal": self.is_terminal,
        }

    def select(self, mask: np.ndarray) -> Fields:
        """Only the episodes where `mask` [episodes] is true, back to back; no data is copied."""
        if mask.shape != self.ends.shape or mask.dtype != np.bool_:
            raise ValueError(f"mask: got {mask.dtype}{mask.shape}, expected one bool per episode")
        starts, stops = self.starts[mask], self.ends[mask] + 1
        spans = self.action.spans.select(np.stack([starts, stops], axis=1))
        lengths = stops - starts
        offset = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return Fields(
            obs={name: Column(column.parts, spans) for name, column in self.obs.items()},
            action=Column(self.action.parts, spans),
            is_first=Column(self.is_first.parts, spans),
            is_terminal=Column(self.is_terminal.parts, spans),
            starts=offset[:-1],
            ends=offset[1:] - 1,
        )

    def align(self, column: Column) -> Column:
        """A column of the whole store (labels, info), cut down to the rows these fields have."""
        ours, theirs = ([len(part) for part in parts] for parts in (self.action.parts, column.parts))
        if ours != theirs:
            raise CascadeError(
                f"labels of {sum(theirs)} rows do not fit fields of {sum(ours)}: open both from one Store"
            )
        return Column(column.parts, self.action.spans)


def split(fields: Fields, every: int = 20) -> tuple[Fields, Fields]:
    """Training and held-out episodes: one whole episode of each `every` in a row is held out.

    Which one of them is fixed by a hash of their number, so that it does not fall on the same lane each time,
    and an episode stays on its side when later deployments are added. Fewer than `every` episodes may give
    no held-out episode at all.
    """
    if every < 2:
        raise CascadeError(f"split: got every={every}, expected 2 or more, to leave some for training")
    block, place = np.divmod(np.arange(fields.episodes), every)
    chosen = np.array([zlib.crc32(b"held-out %d" % number) % every for number in block.tolist()], np.int64)
    held_out = place == chosen
    return fields.select(~held_out), fields.select(held_out)
