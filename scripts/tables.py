"""Write the tables of the README and of the documentation from their records.

From the repository's root:  python scripts/tables.py  reads the JSON files under benchmarks/ and results/ and
rewrites each table on its page, between its two marks.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import result_tables as results
import speed_tables as speed

ROOT = Path(__file__).parents[1]

Table = Callable[[dict[str, Any]], str]
TABLES: dict[str, dict[str, Table]] = {
    "docs/benchmarks.md": {
        "benchmarks/cpu.json": speed.cpu_table,
        "benchmarks/cpu_pixels.json": speed.cpu_table,
        "benchmarks/gpu_steps.json": speed.gpu_table,
        "benchmarks/gpu_graphs.json": speed.graphs_table,
        "benchmarks/roofline.json": speed.roofline_table,
        "benchmarks/gpu_families.json": speed.families_table,
    },
    "README.md": {
        "results/demo.json": results.demo_table,
        "results/demo_methods.json": results.comparison_table,
        "results/fourrooms.json": results.comparison_table,
        "results/multiroom.json": results.comparison_table,
    },
    "docs/evidence.md": {
        "results/fourrooms.json": results.deployments_table,
        "results/fourrooms_search/seed-0.json": results.searches_table,
        "results/fourrooms_foresight.json": results.foresight_table,
        "results/first_views.json": results.first_views_table,
        "results/multiroom.json": results.deployments_table,
        "results/short_runs.json": results.short_runs_table,
        "results/demo_methods.json": results.deployments_table,
    },
    "docs/transfer.md": {"results/lookahead.json": results.lookahead_table},
    "docs/ablations.md": {
        "results/defaults.json": results.ablations_table,
        "results/ablations.json": results.ablations_table,
        "results/members.json": results.members_table,
        "results/population.json": results.ablations_table,
        "results/weights.json": results.weights_table,
    },
    "docs/earlier.md": {
        "results/fourrooms_forty.json": results.deployments_table,
        "results/fourrooms_forty_search.json": results.search_table,
        "results/fourrooms_whole.json": results.whole_table,
        "results/fourrooms_short.json": results.deployments_table,
        "results/fourrooms_small.json": results.deployments_table,
        "results/multiroom_small.json": results.deployments_table,
    },
}
"""Which records are shown on which page, and how."""


def section(page: str, record: str) -> tuple[str, str, str]:
    """The two marks around a record's table, and the table itself."""
    document = json.loads((ROOT / record).read_text(encoding="utf-8"))
    begin, end = f"<!-- table of {record} -->\n", f"<!-- end of {record} -->\n"
    return begin, f"\n{TABLES[page][record](document)}\n", end


def written(page: str) -> str:
    """The page with its tables as the records have them."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for record in TABLES[page]:
        begin, table, end = section(page, record)
        before, _, rest = text.partition(begin)
        text = before + begin + table + end + rest.partition(end)[2]
    return text


def main() -> None:
    for page in TABLES:
        (ROOT / page).write_text(written(page), encoding="utf-8")


if __name__ == "__main__":
    main()
