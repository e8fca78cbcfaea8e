"""Write the table of the benchmarks page from its record.

From the repository's root:  python scripts/bench_table.py  reads benchmarks/cpu.json and rewrites the table in
docs/benchmarks.md, between its two marks.
"""

import json
from pathlib import Path
from typing import Any

from cascade.cli.bench import rows

ROOT = Path(__file__).parents[1]
RECORD, PAGE = ROOT / "benchmarks" / "cpu.json", ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- table of benchmarks/cpu.json -->\n", "<!-- end of the table -->\n"


def table(document: dict[str, Any]) -> str:
    """The measurements in Markdown, under the command and the machine that made them."""
    machine = document["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    lines = [
        "```console",
        document["command"],
        "```",
        "",
        f"{machine['cores']} cores, {machine['platform']}, Python {machine['python']}, {versions}.",
        "",
        "| what | median | best | notes |",
        "|---|---:|---:|---|",
        *(f"| {' | '.join(row)} |" for row in rows(document)),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    document = json.loads(RECORD.read_text(encoding="utf-8"))
    PAGE.write_text(f"{before}{BEGIN}\n{table(document)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
