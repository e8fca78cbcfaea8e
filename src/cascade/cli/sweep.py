"""`cascade sweep`: several methods with the same settings, and the comparison."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.table import Table

from cascade.cli.output import print_json, say
from cascade.cli.progress import Bars, Quiet
from cascade.config import RunConfig
from cascade.errors import CascadeError
from cascade.presets import PRESETS
from cascade.seeds import Seeds

if TYPE_CHECKING:
    from cascade.run.api import Run
    from cascade.run.loop import Watch

USAGE = """
Usage: cascade sweep [PRESET] --out DIR [--methods cascade random] [--seeds 0-4] [--transfer] [--any.setting VALUE]

PRESET is one of those that `cascade presets` lists, and comes first; the settings below are its values.
"""
METHODS = ("cascade", "pp2e", "p2e", "random")


@dataclass(frozen=True)
class Sweep:
    """Run several methods with the same settings and seeds, and compare them in one report.

    The same command goes on with what is there, method by method.
    """

    out: Annotated[
        Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: runs/sweep-PRESET)")
    ] = None
    """Folder for a run of each method and the report."""
    methods: Annotated[tuple[str, ...], tyro.conf.arg(metavar="{cascade,pp2e,p2e,random} ...")] = METHODS
    """Methods to compare."""
    seeds: Seeds = (0,)
    """Seeds of every method, trained side by side: 3, 0-9 or 0,2,5."""
    transfer: tyro.conf.FlagCreatePairsOff[bool] = False
    """Transfer every run to the tasks that were recorded, after its last deployment."""
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
        from cascade.run.sweep import cell, sweep

        out = self.out or Path("runs") / f"sweep-{self.preset}"
        watching = Quiet() if self.quiet else Bars(self.config.deployments)

        def watch(method: str) -> "Watch":
            watching.name = method
            return watching

        try:
            with watching:
                runs, failed = sweep(
                    self.config,
                    self.methods,
                    self.seeds,
                    out,
                    preset=self.preset,
                    watch=watch,
                    after=self._after if self.transfer else None,
                )
        except Interrupted as stopped:
            say(f"{stopped}; the same command goes on from here")
            raise SystemExit(stopped.code) from None
        if not runs:
            raise CascadeError("; ".join(f"{method}: {why}" for method, why in failed.items()))
        built = build([cell(out, run.settings.method) for run in runs], out / "report")
        say(_table(runs))
        say(f"the page: {built.page}")
        if self.json:
            print_json(
                {
                    "runs": {r.settings.method: r.results for r in runs},
                    "failed": failed,
                    "page": str(built.page),
                }
            )
        if failed:
            raise CascadeError("; ".join(f"{method} failed: {why}" for method, why in failed.items()))

    def _after(self, run: "Run") -> None:
        """Transfer the seeds that have not been transferred yet."""
        from cascade.cli.transfer import bars, tell
        from cascade.run.signals import Interrupted, listening

        k = run.resolve(None)
        done = {
            item["seed"] for item in run.results if (item["metric"], item["deployment"]) == ("success", k)
        }
        outcomes = []
        with listening(say) as asked, bars() as bar:
            for seed in run.seeds:
                if seed not in done:
                    title = f"{run.settings.method}: transfer, seed {seed}"
                    outcomes.append(
                        run.transfer(seed=seed, deployment=k, report=bar.reporter(title), stop=asked)
                    )
                if asked():
                    raise Interrupted("stopped during transfer")
        if outcomes:
            tell(outcomes)


SHOWN = ("coverage", "rewarding_episodes", "deployed_distance", "success", "return")


def _table(runs: "list[Run]") -> Table:
    """Every method after every deployment, means over seeds."""
    table = Table(title="After each deployment, mean over seeds")
    records = {run.settings.method: run.results for run in runs}
    columns = [
        name for name in SHOWN if any(x["metric"] == name for found in records.values() for x in found)
    ]
    table.add_column("method")
    table.add_column("deployment", justify="right")
    for column in columns:
        table.add_column(
            "zero-shot " + column if column in ("success", "return") else column.replace("_", " "),
            justify="right",
        )
    for method, found in records.items():
        for k in sorted({x["deployment"] for x in found}):
            row = []
            for metric in columns:
                values = [x["value"] for x in found if (x["deployment"], x["metric"]) == (k, metric)]
                mean = sum(values) / len(values) if values else None
                share = metric in ("coverage", "success")
                row.append("-" if mean is None else f"{mean:.1%}" if share else f"{mean:.3g}")
            table.add_row(method, str(k), *row)
    return table
