"""Tables of results, for the commands that end with one."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

Record = Mapping[str, Any]
SHOWN = ("coverage", "crafter_score", "rewarding_episodes", "deployed_distance", "success", "return")
SHARES = ("coverage", "success")
TITLES = {"success": "zero-shot success", "return": "zero-shot return"}


def by_deployment(records: Mapping[str, Sequence[Record]], first: int = 0) -> Table:
    """Every method after every deployment, means over seeds and tasks; `first` is the number of the first one."""
    found = [item for own in records.values() for item in own]
    columns = [metric for metric in SHOWN if any(item["metric"] == metric for item in found)]
    table = Table(title="After each deployment, mean over seeds")
    table.add_column("method")
    table.add_column("after", justify="right")
    for metric in columns:
        table.add_column(TITLES.get(metric, metric.replace("_", " ")), justify="right")
    for method, own in records.items():
        for k in sorted({item["deployment"] for item in own}):
            table.add_row(method, str(k - first + 1), *(_mean(own, k, metric) for metric in columns))
    return table


def _mean(records: Sequence[Record], deployment: int, metric: str) -> str:
    found = [x["value"] for x in records if (x["deployment"], x["metric"]) == (deployment, metric)]
    values = [value for value in found if value is not None]
    if not values:
        return "-"
    mean = sum(values) / len(values)
    return f"{mean:.1%}" if metric in SHARES else f"{mean:.3g}"
