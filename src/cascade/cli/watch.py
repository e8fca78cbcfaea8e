"""`cascade watch`: films of what a run learned."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from cascade.cli.output import print_json, say
from cascade.errors import SettingError


def _shown(metavar: str, default: str) -> object:
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=f"(default: {default})")


@dataclass(frozen=True)
class Watch:
    """Film the explorers side by side, the model's imagination beside what happened, or the transferred policies."""

    run_folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the run."""
    what: Literal["explorers", "imagination", "transfer"] = "explorers"
    """All explorers from one start; held-out episodes as the model imagines them; policies of tasks."""
    seed: Annotated[int | None, _shown("INT", "the run's first")] = None
    """Whose."""
    deployment: Annotated[int | None, _shown("INT", "the last")] = None
    """As they were after this deployment; the first is 0, as in its folder's name."""
    task: Annotated[tuple[str, ...], _shown("NAME", "all that were transferred")] = ()
    """Whose policies, for --what transfer."""
    steps: Annotated[int | None, _shown("INT", "the run's measure.steps")] = None
    """Actions after which an episode is cut."""
    format: Annotated[Literal["gif", "mp4"] | None, _shown("gif|mp4", "mp4 where ffmpeg is, else gif")] = None
    """Kind of file."""
    out: Annotated[Path | None, _shown("DIR", "RUN/films")] = None
    """Folder for the films."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print one JSON document on stdout: the files written."""

    def run(self) -> None:
        """Film, and say which files were written."""
        from cascade.run.api import open_run
        from cascade.run.films import make_films

        if self.steps is not None and self.steps < 1:
            raise SettingError("--steps", self.steps, "at least 1")
        if self.task and self.what != "transfer":
            raise SettingError("--task", " ".join(self.task), "nothing without --what transfer")
        written = make_films(
            open_run(self.run_folder, say),
            self.what,
            folder=self.out,
            kind=self.format,
            seed=self.seed,
            deployment=self.deployment,
            steps=self.steps,
            tasks=self.task,
        )
        for path in written:
            say(f"wrote {path}")
        if self.json:
            print_json({"files": [str(path) for path in written]})
