"""Shards: whole episodes written together while a deployment is still being collected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cascade.data.files import (
    ArrayWriter,
    FileEntry,
    Unusable,
    check_bytes,
    open_array,
    publish,
    read_json,
    remove,
    write_array,
    write_json,
)
from cascade.data.labels import DTYPE
from cascade.data.manifest import TABLE, file_name, row_files, spec_from_json, spec_to_json
from cascade.errors import CascadeError
from cascade.specs import EnvSpec, Episode, EpisodeKey

RECORD = "shard.json"
SHARD_TABLE = "table.npy"


def shard_files(spec: EnvSpec) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """The files of a shard with one entry per row: those of a deployment, and the recorded labels."""
    return {**row_files(spec), **{file_name("label", task): ((), DTYPE) for task in spec.tasks}}


def episode_rows(spec: EnvSpec, episode: Episode) -> dict[str, np.ndarray]:
    """An episode as row-aligned arrays under their files' names, checked against the spec."""
    rows = len(episode) + 1
    if rows < 2:
        raise CascadeError(
            f"{spec.name}: episode {tuple(episode.key)} has no step; an episode has at least one"
        )
    marks = np.zeros((2, rows), np.bool_)
    marks[0, 0], marks[1, -1] = True, episode.terminated
    arrays = {file_name("obs", name): value for name, value in episode.obs.items()}
    arrays[file_name("action")] = episode.action
    arrays[file_name("is_first")], arrays[file_name("is_terminal")] = marks
    arrays |= {file_name("info", name): value for name, value in episode.info.items()}
    arrays |= {file_name("label", task): np.asarray(value, DTYPE) for task, value in episode.labels.items()}
    wanted = shard_files(spec)
    if arrays.keys() != wanted.keys():
        odd = sorted(arrays.keys() ^ wanted.keys())
        raise CascadeError(f"{spec.name}: episodes and spec differ in {odd}; make them name the same parts")
    for name, (shape, dtype) in wanted.items():
        found = arrays[name]
        if found.dtype != dtype or found.shape != (rows, *shape):
            raise CascadeError(
                f"{spec.name}: {name} of episode {tuple(episode.key)} is {found.dtype}{found.shape}, "
                f"expected {dtype}{(rows, *shape)}: fix the environment's spec or what it returns"
            )
    return arrays


def make_table(keys: Sequence[EpisodeKey], steps: Sequence[int], terminated: Sequence[bool]) -> np.ndarray:
    """The table of episodes that lie back to back in this order."""
    table = np.zeros(len(keys), TABLE)
    for name in EpisodeKey._fields:
        table[name] = [getattr(key, name) for key in keys]
    table["steps"], table["terminated"] = steps, terminated
    table["start"] = np.cumsum(table["steps"].astype(np.int64) + 1) - table["steps"] - 1
    return table


@dataclass(frozen=True)
class Shard:
    """One folder of finished episodes."""

    path: Path
    table: np.ndarray
    files: dict[str, FileEntry]

    @classmethod
    def write(cls, path: Path, spec: EnvSpec, episodes: Sequence[Episode]) -> Shard:
        """Put the episodes at `path`, all or nothing."""
        temporary = path.with_name(path.name + ".tmp")
        remove(temporary)
        temporary.mkdir()
        try:
            table = make_table(*zip(*((e.key, len(e), e.terminated) for e in episodes), strict=True))
            columns = [episode_rows(spec, episode) for episode in episodes]
            total = int(table["steps"].sum()) + len(table)
            files = {SHARD_TABLE: write_array(temporary / SHARD_TABLE, table)}
            for name, (shape, dtype) in shard_files(spec).items():
                with ArrayWriter(temporary / name, (total, *shape), dtype) as writer:
                    for column in columns:
                        writer.append(column[name])
                files[name] = writer.entry
            entries = {name: entry.to_json() for name, entry in files.items()}
            write_json(temporary / RECORD, {"spec": spec_to_json(spec), "files": entries})
            publish(temporary, path)
        except BaseException:
            remove(temporary)
            raise
        return cls(path, table, files)

    @classmethod
    def open(cls, path: Path, spec: EnvSpec) -> Shard:
        """A shard as it was written; `Unusable` if it is torn, an error if it is another environment's."""
        record = read_json(path / RECORD)
        try:
            found = spec_from_json(record["spec"])
            files = {name: FileEntry.from_json(entry) for name, entry in record["files"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Unusable(f"{RECORD}: incomplete ({error!r})") from None
        if found != spec:
            raise CascadeError(
                f"{path.parent}: holds episodes of {found.name!r} under another spec than {spec.name!r} has; "
                "resume with the settings it was started with, or remove that folder"
            )
        if files.keys() != {SHARD_TABLE, *shard_files(spec)}:
            raise Unusable(f"{RECORD}: the files it lists do not fit its spec")
        for name, entry in files.items():
            open_array(path / name, entry)
            check_bytes(path / name, entry)
        return cls(path, np.array(open_array(path / SHARD_TABLE, files[SHARD_TABLE])), files)

    def array(self, name: str) -> np.ndarray:
        """One file, memory-mapped."""
        return open_array(self.path / name, self.files[name])
