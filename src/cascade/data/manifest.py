"""What one deployment's folder holds, and the manifest that says so.

The manifest is written last: a deployment without one was never committed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from cascade.data.files import FileEntry, Unusable, dtype_name, read_json, write_json
from cascade.specs import ActionSpec, ArraySpec, EnvSpec, ObservationSpec

FORMAT = "cascade-deployment"
VERSION = 1
MANIFEST = "manifest.json"
EPISODES = "episodes.npy"
TABLE = np.dtype(
    [
        ("explorer", "<i4"),
        ("lane", "<i4"),
        ("episode", "<i4"),
        ("start", "<i8"),
        ("steps", "<i4"),
        ("terminated", "?"),
    ]
)
"""One record per episode: whose it is, its first row, and how many steps (rows less one) it has."""


def file_name(kind: str, name: str = "") -> str:
    """`obs.image.npy`, `action.npy`; characters that are not safe in file names are percent-encoded."""
    return f"{kind}.{quote(name, safe='')}.npy" if name else f"{kind}.npy"


def row_files(spec: EnvSpec) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """The files with one entry per row, with the shape and type of a row. Labels are not among them."""
    files = {file_name("obs", name): (part.shape, part.dtype) for name, part in spec.observations.items()}
    files[file_name("action")] = (spec.action.shape, spec.action.dtype)
    files[file_name("is_first")] = ((), np.dtype(np.bool_))
    files[file_name("is_terminal")] = ((), np.dtype(np.bool_))
    for name, part in spec.info.items():
        files[file_name("info", name)] = (part.shape, np.dtype(part.dtype))
    return files


def spec_to_json(spec: EnvSpec) -> dict[str, Any]:
    """An environment's spec as plain JSON."""
    return {
        "name": spec.name,
        "observations": {
            name: {"kind": part.kind, "shape": list(part.shape), "classes": list(part.classes)}
            for name, part in spec.observations.items()
        },
        "action": {"kind": spec.action.kind, "size": spec.action.size},
        "tasks": list(spec.tasks),
        "info": {name: {"shape": list(part.shape), "dtype": part.dtype} for name, part in spec.info.items()},
    }


def spec_from_json(value: Mapping[str, Any]) -> EnvSpec:
    """The inverse of `spec_to_json`."""
    return EnvSpec(
        name=value["name"],
        observations={
            name: ObservationSpec(part["kind"], tuple(part["shape"]), tuple(part["classes"]))
            for name, part in value["observations"].items()
        },
        action=ActionSpec(value["action"]["kind"], value["action"]["size"]),
        tasks=tuple(value["tasks"]),
        info={name: ArraySpec(tuple(part["shape"]), part["dtype"]) for name, part in value["info"].items()},
    )


@dataclass(frozen=True)
class Manifest:
    """The commit mark of one deployment."""

    deployment: int
    spec: EnvSpec
    steps: int
    rows: int
    episodes: int
    explorers: Mapping[int, int]
    """steps of each explorer"""
    files: Mapping[str, FileEntry]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """whatever the collector wants remembered: failures, dropped episodes, ..."""

    @classmethod
    def describe(
        cls,
        deployment: int,
        spec: EnvSpec,
        table: np.ndarray,
        files: Mapping[str, FileEntry],
        metadata: Mapping[str, Any],
    ) -> Manifest:
        """The manifest of the episodes in `table`."""
        steps = int(table["steps"].sum())
        explorers = {int(i): int(table["steps"][table["explorer"] == i].sum()) for i in table["explorer"]}
        return cls(
            deployment, spec, steps, steps + len(table), len(table), explorers, dict(files), dict(metadata)
        )

    def write(self, folder: Path) -> None:
        """Put it in place; everything it names has been flushed before."""
        document = {
            "format": FORMAT,
            "version": VERSION,
            "deployment": self.deployment,
            "steps": self.steps,
            "rows": self.rows,
            "episodes": self.episodes,
            "explorers": {str(explorer): steps for explorer, steps in self.explorers.items()},
            "spec": spec_to_json(self.spec),
            "files": {name: entry.to_json() for name, entry in self.files.items()},
            "metadata": dict(self.metadata),
        }
        write_json(folder / MANIFEST, document)

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest in `folder`, or `Unusable` with what is wrong."""
        document = read_json(folder / MANIFEST)
        if document.get("format") != FORMAT or document.get("version") != VERSION:
            kind = f"{document.get('format')!r} version {document.get('version')!r}"
            raise Unusable(f"{MANIFEST}: {kind}, this release reads {FORMAT!r} version {VERSION}")
        try:
            manifest = cls(
                deployment=document["deployment"],
                spec=spec_from_json(document["spec"]),
                steps=document["steps"],
                rows=document["rows"],
                episodes=document["episodes"],
                explorers={int(explorer): steps for explorer, steps in document["explorers"].items()},
                files={name: FileEntry.from_json(entry) for name, entry in document["files"].items()},
                metadata=document["metadata"],
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Unusable(f"{MANIFEST}: incomplete ({error!r})") from None
        manifest._check()
        return manifest

    def _check(self) -> None:
        """The files are exactly those the spec asks for, each with one entry per row."""
        wanted = {
            name: ((self.rows, *shape), dtype_name(dtype))
            for name, (shape, dtype) in row_files(self.spec).items()
        }
        wanted[EPISODES] = ((self.episodes,), dtype_name(TABLE))
        if {name: (entry.shape, entry.dtype) for name, entry in self.files.items()} != wanted:
            raise Unusable(f"{MANIFEST}: the files it lists do not fit its own spec and counts")
