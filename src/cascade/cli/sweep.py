"""`cascade sweep`: several methods with the same settings, and the comparison."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.live import Live
from rich.table import Table

from cascade.cli.output import console, print_json, say
from cascade.cli.progress import Bars, Quiet
from cascade.cli.tables import by_deployment
from cascade.config import RunConfig
from cascade.errors import CascadeError, SettingError
from cascade.presets import PRESETS
from cascade.seeds import Seeds

if TYPE_CHECKING:
    from cascade.run.api import Run
    from cascade.run.sweep import Cell

Done = tuple[dict["Cell", "Run"], dict["Cell", str]]

USAGE = """
Usage: cascade sweep [PRESET] --out DIR [--methods cascade random] [--seeds 0-4] [--transfer] [--any.setting VALUE]

PRESET is one of those that `cascade presets` lists, and comes first; the settings below are its values.
"""


@dataclass(frozen=True)
class Sweep:
    """Run several methods with the same settings and seeds, and compare them in one report.

    The same command goes on with what is there, run by run.
    """

    out: Annotated[
        Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: runs/sweep-PRESET)")
    ] = None
    """Folder for the runs and the report."""
    methods: Annotated[tuple[str, ...], tyro.conf.arg(metavar="{cascade,pp2e,p2e,random} ...")] = (
        "cascade",
        "pp2e",
        "p2e",
        "random",
    )
    """Methods to compare."""
    seeds: Seeds = (0,)
    """Seeds of every method: 3, 0-9 or 0,2,5."""
    group: int = 0
    """Seeds that train side by side in one run; 0 is all of them."""
    transfer: tyro.conf.FlagCreatePairsOff[bool] = False
    """Transfer every run to the tasks that were recorded, after its last deployment."""
    engine: Literal["local", "ray"] = "local"
    """One run after another here, or all of them as tasks of a Ray cluster (extra: ray)."""
    address: str = ""
    """The Ray cluster; without it one is started on this machine."""
    gpus: float = 0.0
    """GPUs of each run on the cluster; 0.25 puts four of them on one."""
    smoke: tyro.conf.FlagCreatePairsOff[bool] = False
    """Shrink everything to seconds, to see whether it works at all."""
    quiet: tyro.conf.FlagCreatePairsOff[bool] = False
    """No progress, only the final table."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the results as one JSON document on stdout."""
    preset: tyro.conf.Suppress[str] = "demo"
    config: Annotated[RunConfig, tyro.conf.arg(name="")] = field(default_factory=lambda: PRESETS["demo"])

    def run(self) -> None:
        """Run them all, compare, say where the page is."""
        from cascade.report.build import build
        from cascade.run.signals import Interrupted
        from cascade.run.sweep import cells

        if self.gpus < 0:
            raise SettingError("--gpus", self.gpus, "0 or more")
        out = self.out or Path("runs") / f"sweep-{self.preset}"
        todo = cells(self.methods, self.seeds, out, self.group)
        try:
            done, failed = self._on_ray(todo) if self.engine == "ray" else self._here(todo)
        except Interrupted as stopped:
            say(f"{stopped}; the same command goes on from here")
            raise SystemExit(stopped.code) from None
        why = "; ".join(f"{cell.name}: {reason}" for cell, reason in failed.items())
        if not done:
            raise CascadeError(why)
        runs = [done[cell] for cell in todo if cell in done]
        built = build([run.path for run in runs], out / "report")
        say(by_deployment(_by_method(runs)))
        say(f"the page: {built.page}")
        if self.json:
            document = {"runs": _by_method(runs), "failed": {c.name: x for c, x in failed.items()}}
            print_json(document | {"page": str(built.page)})
        if failed:
            raise CascadeError(why)

    def _here(self, todo: "list[Cell]") -> Done:
        from cascade.cli.transfer import bars, tell
        from cascade.run.signals import listening
        from cascade.run.sweep import on_this_machine, run_cell, transfer_cell

        watching = Quiet() if self.quiet else Bars(self.config.deployments)

        def work(cell: "Cell") -> "Run":
            watching.name = cell.name
            with watching:
                done = run_cell(self.config, cell, self.preset, watching)
            if self.transfer:
                with listening(say) as asked, bars() as bar:
                    outcomes = transfer_cell(done, asked, bar.reporter, say)
                if outcomes:
                    tell(outcomes)
            return done

        return on_this_machine(todo, work)

    def _on_ray(self, todo: "list[Cell]") -> Done:
        from cascade.run.signals import listening
        from cascade.run.sweep import on_ray

        shown = not self.quiet and console.is_terminal
        with listening(say) as asked, Live(console=console, transient=True, auto_refresh=False) as live:

            def look(standing: "Mapping[Cell, str]") -> None:
                if shown:
                    live.update(_standing(standing), refresh=True)

            how: dict[str, Any] = {"address": self.address, "gpus": self.gpus, "transfer": self.transfer}
            return on_ray(todo, self.config, self.preset, look=look, stop=asked, note=say, **how)


def _standing(standing: "Mapping[Cell, str]") -> Table:
    table = Table()
    table.add_column("run")
    table.add_column("at")
    for cell, words in standing.items():
        table.add_row(cell.name, words)
    return table


def _by_method(runs: "list[Run]") -> dict[str, list[dict[str, Any]]]:
    """The records of every method, over all its runs."""
    found: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        found.setdefault(run.settings.method, []).extend(run.results)
    return found
