"""`cascade run`: start a run, or go on with the one that is there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Annotated

import tyro

from cascade.cli.output import print_json, say
from cascade.cli.progress import Bars, Quiet
from cascade.cli.refusals import BadWords
from cascade.cli.tables import by_deployment
from cascade.config import EnvConfig, RunConfig
from cascade.presets import PRESETS, preset
from cascade.presets.smoke import smoke
from cascade.seeds import Seeds

DEFAULT = "demo"
USAGE = """
Usage: cascade run [PRESET] --out RUN [--method pp2e] [--seeds 0-4] [--env ID] [--smoke] [--any.setting VALUE]

PRESET is one of those that `cascade presets` lists, and comes first; the settings below are its values.
`cascade run --out RUN` goes on with the run that is there. `--env ID` puts another environment under the preset's
settings, observed and ended as it is by itself; `--env.id ID` changes nothing else.
`--engine ray [--address HOST:PORT]` deploys on a Ray cluster.
"""
SHORT = {"--env": "--env.id", "--engine": "--deploy.engine", "--address": "--deploy.address"}
"""Options that have a name of their own besides their setting's."""


@dataclass(frozen=True)
class Run:
    """Deploy, train the world model, train the explorers, and again: the paper's Algorithm 1.

    The same command goes on with a run that was stopped or killed.
    """

    out: Annotated[
        Path | None, tyro.conf.arg(metavar="RUN", help_behavior_hint="(default: runs/PRESET-METHOD)")
    ] = None
    """Folder of the run."""
    seeds: Seeds = (0,)
    """Seeds, trained side by side: 3, 0-9 or 0,2,5."""
    smoke: tyro.conf.FlagCreatePairsOff[bool] = False
    """Shrink everything to seconds, to see whether it works at all."""
    allow_changes: tyro.conf.FlagCreatePairsOff[bool] = False
    """Go on with a run although settings differ from those it was started with."""
    wandb: Annotated[
        str | None, tyro.conf.arg(metavar="PROJECT", help_behavior_hint="(default: not used)")
    ] = None
    """Log to this project of Weights & Biases too (extra: wandb)."""
    quiet: tyro.conf.FlagCreatePairsOff[bool] = False
    """No progress, only the final table."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the results as one JSON document on stdout."""
    preset: tyro.conf.Suppress[str] = DEFAULT
    config: Annotated[RunConfig, tyro.conf.arg(name="")] = field(default_factory=lambda: PRESETS[DEFAULT])

    def run(self) -> None:
        """Run, and show what came of it."""
        from cascade.run.api import run
        from cascade.run.signals import Interrupted

        out = self.out or Path("runs") / f"{self.preset}-{self.config.method}"
        watch = Quiet() if self.quiet else Bars(self.config.deployments)
        try:
            with watch:
                done = run(
                    self.config,
                    out,
                    seeds=self.seeds,
                    watch=watch,
                    allow_changes=self.allow_changes,
                    wandb=self.wandb,
                    preset=self.preset,
                )
        except Interrupted as stopped:
            say(f"{stopped}; go on with: cascade run --out {quote(str(out))}")
            raise SystemExit(stopped.code) from None
        records = done.results
        say(by_deployment({self.config.method: records}))
        say(f"results: {out / 'results.json'}")
        if self.json:
            print_json(
                {"run": str(out), "preset": self.preset, "method": self.config.method, "records": records}
            )


def prepare(args: Sequence[str]) -> tuple[Run, list[str]]:
    """The command's defaults, from the preset or the run that is named, and what is left to parse."""
    out = _value(args, "--out")
    if out is not None and args[0].startswith("-"):
        from cascade.run.folder import Folder

        if Folder(Path(out)).exists:
            started = Folder(Path(out)).read()
            return Run(config=started.config, seeds=started.seeds, preset=started.preset), _plain(args)
        if not {"-h", "--help"} & set(args):
            new = f"cascade run {DEFAULT} --out {quote(out)}"
            raise BadWords(f"{out}: there is no run to go on with; a new one begins with a preset: {new}")
    name, config, rest = chosen(args)
    return Run(config=config, preset=name), rest


def chosen(args: Sequence[str], short: Mapping[str, str] = SHORT) -> tuple[str, RunConfig, list[str]]:
    """The preset that comes first among the words, or the default one, its settings, and the other words.

    Another environment is not bound to how the preset's own is observed, and when it ends.
    """
    rest = _plain(args, short)
    name = rest.pop(0) if rest and not rest[0].startswith("-") else DEFAULT
    config = preset(name)
    if (other := _value(args, "--env")) is not None:
        config = replace(config, env=EnvConfig(other, image_size=config.env.image_size))
    return name, smoke(config) if "--smoke" in rest else config, rest


def _plain(args: Sequence[str], short: Mapping[str, str] = SHORT) -> list[str]:
    """Short options as the settings that they stand for."""
    parted = (arg.partition("=") for arg in args)
    return [short.get(name, name) + equals + value for name, equals, value in parted]


def _value(args: Sequence[str], flag: str) -> str | None:
    for i, arg in enumerate(args):
        if arg == flag and i + 1 < len(args):
            return args[i + 1]
        if arg.startswith(f"{flag}="):
            return arg.partition("=")[2]
    return None
