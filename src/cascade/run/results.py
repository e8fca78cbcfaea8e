"""Results: one record for each seed, deployment, metric and task, in one file that is always whole."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cascade.data.files import Unusable, one_writer, read_json, write_json
from cascade.errors import CascadeError, disk_errors

FORMAT = 1
Record = dict[str, Any]


def record(seed: int, deployment: int, metric: str, value: Any, task: str | None = None) -> Record:
    """One number, or None where what was measured is none."""
    value = plain(float(value))
    return {"seed": seed, "deployment": deployment, "metric": metric, "task": task, "value": value}


def plain(value: Any) -> Any:
    """A document as JSON has it: a number that is not finite is null, however deep it lies."""
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def explorer_records(seeds: Sequence[int], deployment: int, metrics: Mapping[str, Any]) -> list[Record]:
    """How the explorers were at last, [seeds, explorers], as means over explorers."""
    names = {
        "information_gain": "information_gain",
        "pairwise_distance": "population_diversity",
        "entropy": "entropy",
    }
    means = {new: np.asarray(metrics[old]).mean(-1) for old, new in names.items()}
    return [
        record(seed, deployment, name, mean[i])
        for i, seed in enumerate(seeds)
        for name, mean in means.items()
    ]


def _identity(item: Record) -> tuple[Any, ...]:
    return item["seed"], item["deployment"], item["metric"], item["task"] or ""


@dataclass
class Results:
    """The numbers of a run, and how long its phases took."""

    path: Path
    about: dict[str, Any] = field(default_factory=dict)
    """preset, method and environment"""
    records: list[Record] = field(default_factory=list)
    phases: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path, about: dict[str, Any] | None = None) -> Results:
        """What is there, or nothing yet."""
        if not path.exists():
            return cls(path, about or {})
        try:
            document = read_json(path)
        except Unusable as error:
            raise CascadeError(
                f"{path}: cannot be used ({error}); restore it from a copy, or move it aside to go on with a new "
                "one, which begins empty"
            ) from None
        records, phases = document.pop("records"), document.pop("phases")
        document.pop("format")
        return cls(path, document | (about or {}), records, phases)

    def add(self, records: list[Record]) -> None:
        """Put records in, in place of those that say the same thing, and write the file."""
        with self._changing():
            merged = {_identity(item): item for item in [*self.records, *records]}
            self.records = [merged[key] for key in sorted(merged)]

    def add_phase(self, seeds: list[int], phase: str, deployment: int, steps: int, seconds: float) -> None:
        """How long a phase took, over all processes that worked on it, each until its last save."""
        item = {"seeds": seeds, "phase": phase, "deployment": deployment, "steps": steps}
        with self._changing():
            same = [old for old in self.phases if all(old[name] == value for name, value in item.items())]
            self.phases = [old for old in self.phases if old not in same] + [
                item | {"seconds": round(seconds, 3)}
            ]

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Change what is in the file now: a transfer may have added to it while the run goes on."""
        with disk_errors(self.path), one_writer(self.path):
            if self.path.exists():
                there = Results.open(self.path)
                self.records, self.phases = there.records, there.phases
            yield
            lists = {"records": self.records, "phases": self.phases}
            write_json(self.path, {"format": FORMAT, **self.about, **lists})
