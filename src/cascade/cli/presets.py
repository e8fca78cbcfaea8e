"""`cascade presets`: the settings that come with the package."""

from dataclasses import asdict, dataclass

from rich.table import Table

from cascade.cli.output import print_json, say
from cascade.presets import PRESETS


@dataclass(frozen=True)
class Presets:
    """List the presets, or print every setting of them."""

    json: bool = False
    """Print all settings of all presets as one JSON document on stdout."""

    def run(self) -> None:
        """Show them."""
        if self.json:
            print_json({name: asdict(config) for name, config in PRESETS.items()})
            return
        table = Table(title="Presets: cascade run PRESET")
        table.add_column("preset", no_wrap=True)
        table.add_column("environment")
        for column in ("deployments x steps", "model / explorer steps", "explorers", "λ"):
            table.add_column(column, justify="right")
        for name, config in PRESETS.items():
            table.add_row(
                name,
                f"{config.env.id}, {config.env.observation}",
                f"{config.deployments} x {config.deploy.steps:,}",
                f"{config.model_steps:,} / {config.explorer_steps:,}",
                str(config.explore.population),
                f"{config.explore.weight:g}",
            )
        say(table)
