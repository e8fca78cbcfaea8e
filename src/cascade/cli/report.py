"""`cascade report`: one page of everything that runs left behind."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from cascade.cli.output import print_json, say
from cascade.cli.tables import by_deployment


@dataclass(frozen=True)
class Report:
    """Make one self-contained page from one or more runs, with every figure as PNG and SVG and its numbers as CSV."""

    runs: Annotated[
        tuple[Path, ...],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="RUN [RUN ...]", help_behavior_hint="(required)"),
    ]
    """Run folders; several are compared."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: RUN/report)")] = (
        None
    )
    """Folder for index.html and figures/."""
    json: bool = False
    """Print one JSON document on stdout: the paths written."""

    def run(self) -> None:
        """Read, draw, write, say where."""
        from cascade.errors import SettingError
        from cascade.report.build import build

        if not self.runs:
            raise SettingError("RUN", "nothing", "one or more run folders")
        if self.out is None and len(self.runs) > 1:
            raise SettingError("--out", "nothing", "a folder for the page when there is more than one run")
        built = build(self.runs, self.out if self.out is not None else self.runs[0] / "report")
        for note in built.notes:
            say(f"note: {note}")
        say(by_deployment(built.records, first=1))
        say(f"wrote {built.page} and {len(built.figures)} files of figures beside it")
        if self.json:
            print_json(
                {
                    "page": str(built.page),
                    "figures": [str(path) for path in built.figures],
                    "runs": built.runs,
                }
            )
