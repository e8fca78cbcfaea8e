"""Write the tables of the benchmarks page from their records.

From the repository's root:  python scripts/bench_table.py  reads the JSON files under benchmarks/ and rewrites each
table in docs/benchmarks.md, between its two marks.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cascade.cli.bench import rows

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"


def where(machine: dict[str, Any]) -> str:
    """The machine and the versions, in a line."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    hardware = {"cpu": f"{machine['cores']} cores"}.get(machine["devices"][0], machine["devices"][0])
    return f"{hardware}, {machine['platform']}, Python {machine['python']}, {versions}."


def cpu_table(document: dict[str, Any]) -> str:
    """What `cascade bench` measured, under its command and its machine."""
    lines = [
        "```console",
        document["command"],
        "```",
        "",
        where(document["machine"]),
        "",
        "| what | median | best | notes |",
        "|---|---:|---:|---|",
        *(f"| {' | '.join(row)} |" for row in rows(document)),
    ]
    return "\n".join(lines) + "\n"


def gpu_table(document: dict[str, Any]) -> str:
    """Step times of the full-size and the compact model."""
    lines = [
        where(document["machine"]),
        "",
        "| step | ms | GFLOP | TFLOP/s | first call, s |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, step in document["steps"].items():
        cells = (
            f"{step['ms']:.2f}",
            f"{step['gflop']:,.0f}",
            f"{step['tflop_per_s']:.0f}",
            f"{step['first_call_s']:.0f}",
        )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def families_table(document: dict[str, Any]) -> str:
    """Environments and steps of the other families' small presets."""
    settings = document["settings"]
    lines = [
        where(document["machine"]),
        "",
        f"| preset | environment steps/s, {settings['workers']} workers | world model, ms | explorers, ms |",
        "|---|---:|---:|---:|",
    ]
    for name, found in document["presets"].items():
        steps = (
            f"{found[part]['ms']:.2f}" if part in found else "not measured" for part in ("world", "explorers")
        )
        lines.append(f"| `{name}` | {found['vectoriser']['steps_per_s']:,} | {' | '.join(steps)} |")
    return "\n".join(lines) + "\n"


TABLES: dict[str, Callable[[dict[str, Any]], str]] = {
    "cpu.json": cpu_table,
    "gpu_steps.json": gpu_table,
    "gpu_families.json": families_table,
}


def section(record: str) -> tuple[str, str, str]:
    """The two marks around a record's table, and the table itself."""
    document = json.loads((ROOT / "benchmarks" / record).read_text(encoding="utf-8"))
    begin, end = f"<!-- table of benchmarks/{record} -->\n", f"<!-- end of benchmarks/{record} -->\n"
    return begin, f"\n{TABLES[record](document)}\n", end


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for record in TABLES:
        begin, table, end = section(record)
        before, _, rest = page.partition(begin)
        page = before + begin + table + end + rest.partition(end)[2]
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
