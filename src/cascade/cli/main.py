"""Parse, run the chosen command, and turn what the user can mend into one line."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from rich.markup import escape
from tyro.extras import subcommand_cli_from_dict

from cascade.cli.bench import Bench
from cascade.cli.output import console
from cascade.cli.report import Report
from cascade.cli.tabular import Tabular
from cascade.errors import CascadeError

DESCRIPTION = """\
Learn one general world model from a handful of reward-free deployments of a diverse population of
explorers, then solve tasks nobody named beforehand.

Every command takes --json: one JSON document on stdout, everything else on stderr.
Seeds are written 3, 0-9 or 0,2,5 everywhere.
"""

COMMANDS: dict[str, Callable[..., Any]] = {"bench": Bench, "report": Report, "tabular": Tabular}


def main(args: Sequence[str] | None = None) -> None:
    """Entry point of the `cascade` command."""
    try:
        command = subcommand_cli_from_dict(COMMANDS, prog="cascade", description=DESCRIPTION, args=args)
        command.run()
    except CascadeError as error:
        console.print(f"[bold red]cascade:[/] {escape(str(error))}", soft_wrap=True)
        sys.exit(error.code)
