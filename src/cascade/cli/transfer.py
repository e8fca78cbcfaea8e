"""`cascade transfer`: name a task, get a policy and its score."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from cascade.cli.output import console, print_json, say
from cascade.config import TransferConfig
from cascade.errors import SettingError

if TYPE_CHECKING:
    from cascade.run.api import Run
    from cascade.run.lesson import Report
    from cascade.run.transfer import Outcome

USAGE = """
Usage: cascade transfer RUN [--task NAME] [--reward MODULE:FUNCTION] [--any.setting VALUE]

The settings below are the run's, `transfer` in its run.json. Changed ones hold for this time, and are written
with the result.
"""


def _shown(metavar: str, default: str) -> Any:
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=f"(default: {default})")


@dataclass(frozen=True)
class Transfer:
    """Train a reward head and a policy for a task on a run's stored data, offline, and play it.

    The world model is frozen. Every seed of the run is transferred; results are added to the run's own.
    """

    run_folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the run."""
    task: Annotated[tuple[str, ...], _shown("NAME", "all recorded while collecting")] = ()
    """Tasks whose labels were recorded; several are trained side by side."""
    reward: Annotated[tuple[str, ...], _shown("MODULE:FUNCTION", "none")] = ()
    """Rewards of your own: functions of stored observations and info, one number per row."""
    deployment: Annotated[int | None, _shown("INT", "the last")] = None
    """Use the model and the data as they were after this deployment; the first is 0, as in its folder's name."""
    every: tyro.conf.FlagCreatePairsOff[bool] = False
    """Transfer after every deployment."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the results as one JSON document on stdout."""
    config: Annotated[TransferConfig, tyro.conf.arg(name="")] = field(default_factory=TransferConfig)

    def run(self) -> None:
        """Transfer, and show what came of it."""
        from cascade.run.api import open_run
        from cascade.run.signals import Interrupted, listening

        if self.every and self.deployment is not None:
            raise SettingError("--every", "given", "either --every or --deployment")
        run = open_run(self.run_folder, say)
        tasks = self._tasks(run)
        chosen = run.deployments if self.every else [self.deployment]
        outcomes = []
        with listening(say) as asked, bars() as bar:
            for deployment in chosen:
                for seed in run.seeds:
                    outcomes.append(self._one(run, seed, deployment, tasks, bar, asked))
                    if asked():
                        raise Interrupted(
                            "stopped; what was finished is kept, and the same command starts over"
                        )
        tell(outcomes)
        if self.json:
            print_json({"run": str(run.path), "records": [r for o in outcomes for r in o.records()]})

    def _tasks(self, run: "Run") -> list[str]:
        known = run.store().tasks
        if unknown := [task for task in self.task if task not in known]:
            raise SettingError(
                "--task", unknown[0], f"one of {', '.join(known)}, or --reward module:function"
            )
        if bad := [path for path in self.reward if ":" not in path]:
            raise SettingError("--reward", bad[0], "module:function")
        named = [*self.task, *self.reward]
        return named or list(run.spec.tasks)

    def _one(
        self, run: "Run", seed: int, deployment: int | None, tasks: list[str], bar: "Bar", stop: Any
    ) -> "Outcome":
        k = run.resolve(deployment)
        report = bar.reporter(f"deployment {k + 1}, seed {seed}")
        return run.transfer(tasks, seed, k, report=report, stop=stop, note=say, **vars(self.config))


def prepare(args: Sequence[str]) -> Transfer | None:
    """The command's defaults: the run that is among the words, and its settings; None if there is none."""
    folder = next((Path(arg) for arg in args if (Path(arg) / "run.json").is_file()), None)
    if folder is None:
        return None
    from cascade.run.folder import Folder

    return Transfer(folder, config=Folder(folder).read().config.transfer)


class Bar:
    """One bar for the phase under way."""

    def __init__(self, progress: Progress):
        self._progress, self._task = progress, progress.add_task("", total=None)

    def reporter(self, title: str) -> "Report":
        def report(now: Any) -> None:
            names = {"reward": "reward head", "behaviour": "policy", "evaluate": "playing"}
            text = f"{title}: {names.get(now.phase, now.phase)}"
            self._progress.update(self._task, description=text, completed=now.step, total=now.steps)

        return report


class bars:
    """A bar on the terminal, for as long as this lasts."""

    def __enter__(self) -> Bar:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            console=console,
            transient=True,
            expand=True,
            disable=not console.is_terminal,
        )
        self._progress.start()
        return Bar(self._progress)

    def __exit__(self, *error: object) -> None:
        self._progress.stop()


def tell(outcomes: "list[Outcome]") -> None:
    """The scores, and why there is none where there is none."""
    say(_table(outcomes))
    for outcome in outcomes:
        for result in outcome.results.values():
            if result.reason:
                say(f"deployment {outcome.deployment + 1}, seed {outcome.seed}: {result.reason}")


def _table(outcomes: "list[Outcome]") -> Table:
    table = Table(title="Zero-shot transfer: trained offline, then played")
    for column in ("task", "after", "seed", "success", "return", "episodes"):
        table.add_column(column, justify="left" if column == "task" else "right")
    for outcome in outcomes:
        for task, result in outcome.results.items():
            where = (task, str(outcome.deployment + 1), str(outcome.seed))
            if result.returns is None:
                table.add_row(*where, "-", "-", "0")
            else:
                numbers = (f"{result.success:.0%}", f"{result.mean_return:.3g}", str(len(result.returns)))
                table.add_row(*where, *numbers)
    return table
