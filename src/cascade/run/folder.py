"""A run's folder: where everything is, what it was started with, and who may write to it.

RUN/run.json             resolved settings, versions, commit, hardware, seeds
RUN/data/seed-0/         the store of each seed
RUN/checkpoints/         weights, optimisers, keys, position and data in one commit
RUN/metrics.jsonl  tb/   every logged value, by phase and step
RUN/measures/seed-0/     what explorers did from the held-out starts, for figures
RUN/results.json         one record for each seed, deployment, metric and task
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cascade.config import RunConfig
from cascade.data.files import Unusable, one_writer, read_json, write_json
from cascade.data.store import Store
from cascade.errors import CascadeError, disk_errors
from cascade.run.machine import describe
from cascade.run.settings import differences, from_document, to_document
from cascade.seeds import format_seeds
from cascade.specs import EnvSpec

FORMAT = 1
WHO_COLLECTS = ("engine", "address", "runners")
"""Settings of deployments that change nothing in the data: a run may go on with others."""


@dataclass(frozen=True)
class Started:
    """What run.json says."""

    config: RunConfig
    seeds: tuple[int, ...]
    preset: str
    settings: dict[str, Any]


@dataclass(frozen=True)
class Folder:
    """The paths of a run."""

    path: Path

    @property
    def about(self) -> Path:
        return self.path / "run.json"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def results(self) -> Path:
        return self.path / "results.json"

    def data(self, seed: int) -> Path:
        return self.path / "data" / f"seed-{seed}"

    def checkpoints(self, seeds: tuple[int, ...]) -> Path:
        return self.path / "checkpoints" / f"seeds-{format_seeds(seeds)}"

    def snapshot(self, seed: int, deployment: int) -> Path:
        return self.path / "models" / f"seed-{seed}" / f"deploy-{deployment:03d}.npz"

    def measures(self, seed: int, deployment: int) -> Path:
        return self.path / "measures" / f"seed-{seed}" / f"deploy-{deployment:03d}.npz"

    def store(self, seed: int, *, verify: bool = False) -> Store:
        """A seed's data. A deployment that cannot be used ends the run with one line that says which and why."""
        store = Store.open(self.data(seed), verify=verify)
        if any(problem.whole for problem in store.problems):
            raise CascadeError(
                f"{store.trouble}; restore the named files from a copy and give the same command again"
            )
        return store

    @property
    def exists(self) -> bool:
        return self.about.exists()

    def read(self) -> Started:
        """What the run was started with."""
        try:
            document = read_json(self.about)
        except Unusable as error:
            raise CascadeError(
                f"{self.path}: not a run of cascade ({error}); name the folder that `cascade run` was given as --out"
            ) from None
        if document.get("format") != FORMAT:
            raise CascadeError(
                f"{self.path}: written in format {document.get('format')}, this version reads {FORMAT}; go on with "
                f"cascade {document.get('machine', {}).get('cascade', 'as it was then')}, or choose another --out"
            )
        settings = document["settings"]
        return Started(from_document(settings), tuple(document["seeds"]), document["preset"], settings)

    def start(self, config: RunConfig, seeds: tuple[int, ...], preset: str, spec: EnvSpec) -> None:
        """Write run.json."""
        document = {
            "format": FORMAT,
            "preset": preset,
            "method": config.method,
            "seeds": list(seeds),
            "settings": to_document(config),
            "environment": asdict(spec) | {"tasks": list(spec.tasks)},
            "machine": describe(),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        with disk_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            write_json(self.about, document)

    def refuse_remains(self) -> None:
        """A new run does not take over what another left: without run.json nobody knows how that was made."""
        for pattern in ("data/*/deploy-*", "checkpoints/*/*"):
            for found in sorted(self.path.glob(pattern)):
                raise CascadeError(
                    f"{self.path}: holds {found.relative_to(self.path)}, but no run.json that says what it was made "
                    "with; put run.json back, or choose another --out"
                )

    def check(self, config: RunConfig, seeds: tuple[int, ...], allow: bool) -> None:
        """Refuse to go on with other settings than the run was started with, and show which."""
        started = self.read()
        if seeds != started.seeds:
            raise CascadeError(
                f"{self.path}: was started with --seeds {format_seeds(started.seeds)}, now "
                f"{format_seeds(seeds)}; give the same seeds, or another --out"
            )
        changed = differences(_decisive(started.config), _decisive(config))
        if changed and not allow:
            shown = "; ".join(changed[:8]) + (f"; and {len(changed) - 8} more" if len(changed) > 8 else "")
            raise CascadeError(
                f"{self.path}: was started with other settings ({shown}); give the same ones, or --allow-changes to "
                "go on with the new ones, or another --out"
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Only one process at a time works on a run."""
        with disk_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        busy = f"{self.path}: another process is working on this run; wait for it, or choose another --out"
        with one_writer(self.path, busy):
            yield


def _decisive(config: RunConfig) -> dict[str, Any]:
    """The settings that decide what comes of a run."""
    document = to_document(config)
    for name in WHO_COLLECTS:
        del document["deploy"][name]
    return document
