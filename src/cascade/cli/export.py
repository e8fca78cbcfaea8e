"""`cascade export`: a run's data as a Minari dataset."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from cascade.cli.output import print_json, say

if TYPE_CHECKING:
    from cascade.run.api import Run


@dataclass(frozen=True)
class Export:
    """Write everything that a seed collected as a Minari dataset, without any loss.

    It lies at DIR/ID. With DIR where Minari keeps its own, it is loaded by its id; else by its path.
    """

    run_folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the run."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")]
    """Folder for datasets."""
    seed: Annotated[
        int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: the run's first)")
    ] = None
    """Whose data."""
    id: Annotated[
        str | None, tyro.conf.arg(metavar="ID", help_behavior_hint="(default: PRESET-METHOD-seedSEED-v0)")
    ] = None
    """Name of the dataset."""
    task: Annotated[str | None, tyro.conf.arg(metavar="NAME", help_behavior_hint="(default: the first)")] = (
        None
    )
    """Whose labels are its rewards; those of all tasks are in its infos."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print one JSON document on stdout: where it is, and how large."""

    def run(self) -> None:
        """Write, and say where."""
        from cascade.data.minari import export
        from cascade.run.api import open_run

        run = open_run(self.run_folder, say)
        store = run.store(self.seed, verify=True)
        name = self.id or default_id(run, self.seed)
        path = export(store, self.out, name, self.task)
        say(f"wrote {path}: {store.steps:,} steps in {store.fields().episodes:,} episodes")
        if self.json:
            size = {"steps": store.steps, "episodes": store.fields().episodes}
            print_json({"path": str(path), "id": name, **size})


def default_id(run: "Run", seed: int | None) -> str:
    """An id that Minari accepts and that says what it is."""
    seed = run.seeds[0] if seed is None else seed
    return re.sub(r"[^\w-]+", "-", f"{run.preset}-{run.settings.method}-seed{seed}") + "-v0"
