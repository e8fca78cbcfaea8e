"""Parse, run the chosen command, and turn what the user can mend into one line."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import tyro
from rich.markup import escape
from tyro.extras import subcommand_cli_from_dict

from cascade.cli.bench import Bench
from cascade.cli.dataset import Dataset
from cascade.cli.doctor import Doctor
from cascade.cli.export import Export
from cascade.cli.output import console
from cascade.cli.presets import Presets
from cascade.cli.report import Report
from cascade.cli.run import Run, prepare
from cascade.cli.tabular import Tabular
from cascade.cli.transfer import Transfer
from cascade.cli.watch import Watch
from cascade.errors import CascadeError

DESCRIPTION = """\
Learn one general world model from a handful of reward-free deployments of a diverse population of
explorers, then solve tasks nobody named beforehand.

Every command takes --json: one JSON document on stdout, everything else on stderr.
Seeds are written 3, 0-9 or 0,2,5 everywhere.
"""

COMMANDS: dict[str, Callable[..., Any]] = {
    "run": Run,
    "transfer": Transfer,
    "report": Report,
    "watch": Watch,
    "export": Export,
    "dataset": Dataset,
    "presets": Presets,
    "doctor": Doctor,
    "bench": Bench,
    "tabular": Tabular,
}


def main(args: Sequence[str] | None = None) -> None:
    """Entry point of the `cascade` command."""
    try:
        parse(sys.argv[1:] if args is None else args).run()
    except CascadeError as error:
        console.print(f"[bold red]cascade:[/] {escape(str(error))}", soft_wrap=True)
        sys.exit(error.code)


def parse(args: Sequence[str]) -> Any:
    """The command that the words ask for. `run` has its preset's values as defaults, so it is read in two steps."""
    if args and args[0] == "run":
        default, rest = prepare(args[1:])
        return tyro.cli(Run, prog="cascade run", description=Run.__doc__, default=default, args=rest)
    return subcommand_cli_from_dict(COMMANDS, prog="cascade", description=DESCRIPTION, args=args)
