"""`cascade dataset`: data at a stated return, made by a run's own policies."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from cascade.cli.output import print_json, say


def _shown(metavar: str, default: str) -> object:
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=f"(default: {default})")


@dataclass(frozen=True)
class Dataset:
    """Collect a dataset with a run's policy for a task: random, expert, or medium, which earns halfway between both.

    The folder can begin another run: cascade run PRESET --initial DIR. An expert needs `cascade transfer` first.
    """

    run_folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the run."""
    task: Annotated[str, tyro.conf.arg(metavar="NAME")]
    """Whose policy acts, and whose return is stated."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")]
    """Folder of the dataset."""
    kind: Literal["random", "medium", "expert"] = "expert"
    """Uniform actions, the transferred policy, or that one with a share of uniform actions."""
    steps: int = 20_000
    """Environment steps: exactly as many are stored."""
    seed: Annotated[int | None, _shown("INT", "the run's first")] = None
    """Whose policy."""
    deployment: Annotated[int | None, _shown("INT", "the last that was transferred")] = None
    """The policy as it was learned after this deployment; the first is 0, as in its folder's name."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print one JSON document on stdout: how it was made and what it earned."""

    def run(self) -> None:
        """Collect, and say what it is worth."""
        from cascade.run.api import open_run
        from cascade.run.generate import Request, generate
        from cascade.run.signals import listening

        run = open_run(self.run_folder, say)
        seed = run.seeds[0] if self.seed is None else self.seed
        run.store(seed)  # a seed that the run does not have is refused here
        request = Request(self.task, self.kind, self.steps, seed, self.deployment)
        with listening(say) as asked:
            about = generate(run, request, self.out, stop=asked)
        worth = (
            "no whole episode" if about["mean_return"] is None else f"mean return {about['mean_return']:.4g}"
        )
        say(
            f"wrote {self.out}: {self.steps:,} steps of {self.kind} for {self.task}, {about['episodes']} episodes, "
            f"{worth}, {about['random_actions']:.0%} random actions"
        )
        if self.json:
            print_json(about)
