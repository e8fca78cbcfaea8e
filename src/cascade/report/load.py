"""A run folder, read: what is there is taken, what is missing or damaged is left out and noted.

Only a folder that is no run at all is refused. Reading executes nothing. A run's files number its deployments from 0;
from here on they are counted, as people do: what is said of deployment 1 is of the first.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cascade.errors import DAMAGED, CascadeError

FORMAT = 1
AXES = {"visits": 4, "reachable": 3, "paths": 4, "pictures": 4, "films": 5, "open_loop": 3, "distance": 2}
"""Arrays of measures/seed-N/deploy-NNN.npz and how many axes each has."""

Document = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """Everything the report needs of one run."""

    path: Path
    info: Document
    """run.json"""
    records: list[Document]
    """results.json's records, and those of transfer that are not among them"""
    phases: list[Document]
    logs: list[Document]
    """metrics.jsonl"""
    transfers: list[Document]
    notes: list[str] = field(default_factory=list)
    """what could not be read, one sentence each"""
    title: str = ""
    """what it is called among others; by default as its folder is"""

    @property
    def name(self) -> str:
        return self.title or self.path.resolve().name

    @property
    def method(self) -> str:
        return str(self.info.get("method", "run"))

    @property
    def environment(self) -> str:
        found = self.info.get("environment")
        return str(found.get("name", "") if isinstance(found, dict) else found or "")

    @property
    def settings(self) -> Document:
        found = self.info.get("settings")
        return found if isinstance(found, dict) else {}

    @property
    def seeds(self) -> list[int]:
        """Seeds named in run.json, or those that left records."""
        named = self.info.get("seeds") or sorted({record["seed"] for record in self.records})
        return [int(seed) for seed in named]


def read_run(path: Path, title: str = "") -> Run:
    """The run at a folder; one clear line if there is none."""
    source = path / "run.json"
    if not source.is_file():
        there = "a folder without run.json" if path.is_dir() else "nothing there"
        raise CascadeError(f"{path}: expected a run folder, as `cascade run --out` makes it, found {there}")
    try:
        info = json.loads(source.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CascadeError(f"{source}: cannot be read ({error}); restore it or leave this run out") from error
    version = info.get("format", FORMAT) if isinstance(info, dict) else type(info).__name__
    if version != FORMAT:
        raise CascadeError(f"{source}: got format {version!r}, expected {FORMAT}; update cascade to read it")
    notes: list[str] = []
    results = _document(path / "results.json", notes)
    documents = [_document(file, notes) for file in sorted(path.glob("transfer/*/deploy-*/result.json"))]
    transfers = [_counted(document) for document in documents if document]
    records = [_counted(found) for record in results.get("records", []) if (found := _record(record))]
    return Run(
        path=path,
        info=info,
        records=_with_transfers(records, transfers),
        phases=[_counted(x) for x in results.get("phases", []) if isinstance(x, dict) and "phase" in x],
        logs=list(_lines(path / "metrics.jsonl", notes)),
        transfers=transfers,
        notes=notes,
        title=title,
    )


def list_measures(run: Run) -> dict[tuple[int, int], Path]:
    """The file of every measure by seed and deployment."""
    files = {}
    for file in run.path.glob("measures/seed-*/deploy-*.npz"):
        seed, deployment = file.parent.name.removeprefix("seed-"), file.stem.removeprefix("deploy-")
        if seed.isdigit() and deployment.isdigit():
            files[int(seed), int(deployment) + 1] = file
    return dict(sorted(files.items()))


def read_measure(run: Run, file: Path) -> dict[str, np.ndarray]:
    """The arrays of a measure that can be used."""
    arrays = {}
    try:
        with np.load(file, allow_pickle=False) as stored:
            for name in sorted(set(stored.files) & set(AXES)):
                array = stored[name]
                if array.ndim == AXES[name] and array.size and array.dtype.kind in "buif":
                    arrays[name] = array
                else:
                    run.notes.append(f"{_short(file)}: `{name}` has a shape nobody expects; left out.")
    except DAMAGED as error:
        run.notes.append(f"{_short(file)} cannot be read ({error}); left out.")
        return {}
    return arrays


def _short(file: Path) -> str:
    return "/".join(file.parts[-3:])


def _document(file: Path, notes: list[str]) -> Document:
    """A JSON object, or nothing and a note."""
    if not file.is_file():
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        notes.append(f"{file.name} cannot be read ({error}); left out.")
        return {}
    return found if isinstance(found, dict) else {}


def _counted(document: Document) -> Document:
    """The same, with its deployment counted from 1; as it is if it names none."""
    number = document.get("deployment")
    return document | {"deployment": number + 1} if isinstance(number, int) else document


def _record(record: Any) -> Document | None:
    """A record with all its parts, numbers as numbers; None if it says nothing."""
    try:
        task = record.get("task")
        return {
            "seed": int(record["seed"]),
            "deployment": int(record["deployment"]),
            "metric": str(record["metric"]),
            "task": None if task is None else str(task),
            "value": float(record["value"]),
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _with_transfers(records: list[Document], transfers: list[Document]) -> list[Document]:
    """Success and return of each transfer as records, where results.json has none of them."""
    known = {(r["seed"], r["deployment"], r["metric"], r["task"]) for r in records}
    added = []
    for document in transfers:
        seeds = document.get("seeds")
        for seed, found in seeds.items() if isinstance(seeds, dict) else ():
            for metric in ("success", "return"):
                value = found.get(metric) if isinstance(found, dict) else None
                raw = {"seed": seed, "deployment": document.get("deployment"), "metric": metric,
                       "task": document.get("task"), "value": value}  # fmt: skip
                record = _record(raw)
                if record and (record["seed"], record["deployment"], metric, record["task"]) not in known:
                    added.append(record)
    return records + added


def _lines(file: Path, notes: list[str]) -> Iterator[Document]:
    """Lines of a log; a line cut short by a kill is no loss and only counted."""
    if not file.is_file():
        return
    broken = 0
    with file.open(encoding="utf-8", errors="replace") as stream:
        for line in stream:
            try:
                found = json.loads(line)
                if isinstance(found["values"], dict):
                    yield _counted(found)
            except (ValueError, KeyError, TypeError):
                broken += bool(line.strip())
    if broken:
        notes.append(f"{file.name}: {broken} line{'s' * (broken > 1)} cannot be read; left out.")


def clean(value: Any, digits: int = 5) -> Any:
    """A number, or nested lists of them, for the page: few digits, and None where it is not finite."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [clean(item, digits) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{digits}g}") if math.isfinite(value) else None
    return value
