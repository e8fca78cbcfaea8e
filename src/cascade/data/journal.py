"""The journal of a deployment in progress: finished episodes survive a kill; commit makes the deployment.

data/deploy-002.journal/shard-00000/ ...     while collecting
data/deploy-002.tmp/                         while committing
data/deploy-002/                             committed: the folder appears whole, by one rename
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cascade.data.files import (
    ArrayWriter,
    FileEntry,
    Unusable,
    publish,
    remove,
    sync,
    write_array,
)
from cascade.data.labels import DTYPE, FOLDER, label_file, record_labels
from cascade.data.manifest import EPISODES, MANIFEST, Manifest, file_name, row_files
from cascade.data.shards import Shard, episode_rows, make_table
from cascade.data.store import Deployment, deployment_folder
from cascade.errors import CascadeError, disk_errors
from cascade.specs import EnvSpec, Episode, EpisodeKey

FEWEST_OPEN, MOST_OPEN = 64, 8192
"""Shards that a commit keeps open: each is a file and a map, and of both a process may have so many."""


class _Place(NamedTuple):
    """Where a stored episode is: rows start..stop of a shard."""

    shard: int
    start: int
    stop: int
    terminated: bool


class Journal:
    """Collects the episodes of one deployment, in any order, each key once."""

    def __init__(
        self,
        root: Path | str,
        deployment: int,
        spec: EnvSpec,
        flush_bytes: int = 64 << 20,
        flush_seconds: float = 30.0,
    ):
        """Start, or resume with what an earlier process had stored. Episodes wait in memory until they
        amount to `flush_bytes` or until `flush_seconds` after the last flush, whichever is first.
        """
        self.root, self.deployment, self.spec = Path(root), deployment, spec
        self.problems: list[str] = []
        """torn shards that were dropped; their episodes are collected again"""
        self._flush_bytes, self._flush_seconds = flush_bytes, flush_seconds
        self._final = deployment_folder(self.root, deployment)
        self.path = self._final.with_name(self._final.name + ".journal")
        self._buffer: dict[EpisodeKey, Episode] = {}
        self._buffered, self._flushed_at, self._next = 0, time.monotonic(), 0
        self._shards: list[Shard] = []
        self._places: dict[EpisodeKey, _Place] = {}
        with disk_errors(self.root):
            self._prepare()

    @property
    def steps(self) -> int:
        """Environment steps of all finished episodes."""
        return sum(self.finished().values())

    def finished(self) -> dict[EpisodeKey, int]:
        """Steps of every episode there is, stored or waiting to be."""
        stored = {key: place.stop - place.start - 1 for key, place in self._places.items()}
        return stored | {key: len(episode) for key, episode in self._buffer.items()}

    def append(self, episode: Episode) -> bool:
        """Take an episode, whose arrays are not to be changed any more; false if its key is there already."""
        key = EpisodeKey(*episode.key)
        if key in self._places or key in self._buffer:
            return False
        self._buffered += sum(rows.nbytes for rows in episode_rows(self.spec, episode).values())
        self._buffer[key] = episode
        waited = time.monotonic() - self._flushed_at
        if self._buffered >= self._flush_bytes or waited >= self._flush_seconds:
            self.flush()
        return True

    def flush(self) -> None:
        """Write what waits in memory as one shard. If that fails it keeps waiting, and can be tried again."""
        if self._buffer:
            with disk_errors(self.path):
                shard = Shard.write(self._shard_path(), self.spec, list(self._buffer.values()))
            self._adopt(shard)
            self._next += 1
            self._buffer.clear()
            self._buffered = 0
        self._flushed_at = time.monotonic()

    def commit(self, metadata: Mapping[str, Any] | None = None) -> Deployment:
        """Build the deployment from every episode, ordered by key, and remove the journal.

        Its bytes depend on the episodes and the metadata alone, not on how they arrived. Rows stream from
        the shards to the final files, so that a deployment may be larger than memory.
        """
        self.flush()
        if not self._places:
            raise CascadeError(f"{self.path}: no episode was collected, there is nothing to commit")
        temporary = self._final.with_name(self._final.name + ".tmp")
        with disk_errors(self._final):
            remove(temporary)
            temporary.mkdir()
            try:
                self._build(temporary, dict(metadata or {}))
                publish(temporary, self._final)
            except BaseException:
                remove(temporary)
                raise
        remove(self.path)
        return Deployment.open(self._final, verify=False)

    def _prepare(self) -> None:
        """Make the folder, clear what earlier kills left, and read the shards there are."""
        if self._final.exists():
            raise CascadeError(
                f"{self._final}: deployment {self.deployment} is stored already; collect the next, or move "
                "this one aside with Store.quarantine if it cannot be used"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        sync(self.root)
        for folder in self.root.glob("deploy-*.journal"):
            if (folder.with_suffix("") / MANIFEST).exists():
                remove(folder)
        for folder in sorted(self.path.glob("shard-*")):
            number, _, kind = folder.name.removeprefix("shard-").partition(".")
            self._next = max(self._next, int(number) + 1)  # that of a torn one is not used again
            if kind == "tmp":
                remove(folder)
            elif kind != "torn":
                self._resume(folder)

    def _resume(self, folder: Path) -> None:
        try:
            self._adopt(Shard.open(folder, self.spec))
        except Unusable as error:
            self.problems.append(f"{folder}: torn shard dropped ({error}); its episodes are collected again")
            folder.rename(folder.with_name(folder.name + ".torn"))

    def _shard_path(self) -> Path:
        return self.path / f"shard-{self._next:05d}"

    def _adopt(self, shard: Shard) -> None:
        for explorer, lane, episode, start, steps, terminated in shard.table.tolist():
            place = _Place(len(self._shards), start, start + steps + 1, terminated)
            self._places[EpisodeKey(explorer, lane, episode)] = place
        self._shards.append(shard)

    def _build(self, folder: Path, metadata: dict[str, Any]) -> None:
        """All files of the deployment, the manifest last."""
        keys = sorted(self._places)
        places = [self._places[key] for key in keys]
        table = make_table(keys, [p.stop - p.start - 1 for p in places], [p.terminated for p in places])
        files = {
            name: self._stream(name, folder / name, places, shape, dtype)
            for name, (shape, dtype) in row_files(self.spec).items()
        }
        files[EPISODES] = write_array(folder / EPISODES, table)
        (folder / FOLDER).mkdir()
        for task in self.spec.tasks:
            target = label_file(folder, task)
            record_labels(target, self._stream(file_name("label", task), target, places, (), DTYPE))
        sync(folder / FOLDER)
        Manifest.describe(self.deployment, self.spec, table, files, metadata).write(folder)

    def _stream(
        self, name: str, target: Path, places: list[_Place], shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> FileEntry:
        """One field of all episodes, in order, from the shards to its final file."""
        opened = lru_cache(shards_kept_open())(lambda shard: self._shards[shard].array(name))
        rows = sum(place.stop - place.start for place in places)
        with ArrayWriter(target, (rows, *shape), dtype) as writer:
            for piece in _joined(places):
                writer.append(opened(piece.shard)[piece.start : piece.stop])
        return writer.entry


def shards_kept_open() -> int:
    """Half of the files that this process may open: lanes in order need every shard again and again."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(max(FEWEST_OPEN, files // 2), MOST_OPEN)


def _joined(places: list[_Place]) -> Iterator[_Place]:
    """The same rows in as few pieces as possible: neighbours in one shard are copied at once."""
    current = places[0]
    for place in places[1:]:
        if (place.shard, place.start) == (current.shard, current.stop):
            current = current._replace(stop=place.stop)
        else:
            yield current
            current = place
    yield current
