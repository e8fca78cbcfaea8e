"""`cascade presets`: the settings that come with the package."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from shlex import quote
from typing import Annotated, Any

import tyro
from rich.box import SIMPLE_HEAD
from rich.table import Table

from cascade.cli.output import print_json, say
from cascade.presets import PRESETS, preset


@dataclass(frozen=True)
class Presets:
    """List the presets, or print every setting of one of them as it is written on the command line."""

    name: Annotated[
        str, tyro.conf.Positional, tyro.conf.arg(metavar="PRESET", help_behavior_hint="(default: all)")
    ] = ""
    """A preset, whose settings are printed."""
    json: bool = False
    """Print all settings, of this preset or of each, as one JSON document on stdout."""

    def run(self) -> None:
        """Show them."""
        if self.name:
            settings = asdict(preset(self.name))
            if self.json:
                print_json({self.name: settings})
            else:
                say("\n".join(options(settings)))
            return
        if self.json:
            print_json({name: asdict(config) for name, config in PRESETS.items()})
            return
        table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
        table.title = "Presets: cascade run PRESET"
        table.caption = "deploy: deployments x steps. train: steps of the model/of the explorers."
        for column in ("preset", "world", "shown"):
            table.add_column(column, no_wrap=True)
        for column in ("deploy", "train"):
            table.add_column(column, justify="right", no_wrap=True)
        for name, config in PRESETS.items():
            table.add_row(
                name,
                config.env.id.partition(":")[2].partition("?")[0],
                config.env.observation,
                f"{config.deployments} x {_short(config.deploy.steps)}",
                f"{_short(config.model_steps)}/{_short(config.explorer_steps)}",
            )
        say(table)


def options(settings: Mapping[str, Any], group: str = "--") -> Iterator[str]:
    """Every setting with its value, as they are written on the command line."""
    for name, value in settings.items():
        option = name.replace("_", "-")
        if isinstance(value, Mapping):
            yield from options(value, f"{group}{option}.")
        elif isinstance(value, bool):
            yield f"{group}{'' if value else 'no-'}{option}"
        else:
            yield f"{group}{option} {quote(str(value))}"


def _short(count: int) -> str:
    """1,200 as 1.2k."""
    return str(count) if count < 1000 else f"{count / 1000:g}k"
