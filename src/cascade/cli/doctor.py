"""`cascade doctor`: what works here, and how to fix the rest."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import tyro
from rich.table import Table
from rich.text import Text

from cascade.cli.output import console, print_json, say

if TYPE_CHECKING:
    from cascade.run.doctor import Finding


@dataclass(frozen=True)
class Doctor:
    """Say what is installed, which worlds run, what computes and draws, and the command that fixes what does not."""

    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print one JSON document on stdout."""

    def run(self) -> None:
        """Look, tell, and fail only if the base does not work."""
        from cascade.run.doctor import examine, to_json, works

        with console.status("trying everything once"):
            findings = examine()
        say(table(findings))
        for one in findings:
            if not one.ok:
                say(f"{one.name}: {one.remedy}")
        fine = works(findings)
        say("the base works" if fine else "the base does not work; see above")
        if self.json:
            print_json(to_json(findings))
        if not fine:
            raise SystemExit(1)


def table(findings: "list[Finding]") -> Table:
    """A row for each thing."""
    shown = Table(title="cascade on this machine")
    for column in ("", "what", "", "found"):
        shown.add_column(column)
    group = ""
    for one in findings:
        first = one.group if one.group != group else ""
        mark = Text("yes", "green") if one.ok else Text("no", "bold red" if one.base else "yellow")
        shown.add_row(first, one.name, mark, one.found)
        group = one.group
    return shown
