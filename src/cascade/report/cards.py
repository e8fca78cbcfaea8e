"""A metric over deployments: one card each, their figure and their numbers."""

from __future__ import annotations

from typing import Any

from cascade.report import plots
from cascade.report.files import Files
from cascade.report.html import Part, frame
from cascade.report.load import clean
from cascade.report.series import Table, number

Document = dict[str, Any]


def metric_cards(
    part: Part, ident: str, found: list[Table], color: str, files: Files, name: str
) -> list[str]:
    """A card for each table; all share the files called `name`."""
    paths = files.figure(name, plots.by_deployment(found, color)) + _numbers(found, files, name)
    return [
        frame(part, f"{ident}-{i}", "metric", shown.label, shown.about.says, _sentence(shown),
              _data(shown, color), paths, wide=False)
        for i, shown in enumerate(found)
    ]  # fmt: skip


def _data(shown: Table, color: str) -> Document:
    """A table for the page, multiplied as it is shown."""
    found = shown.intervals()
    ends = [[None if i is None else shown.scale * i[part] for i in found] for part in range(3)]
    return {
        "label": shown.label,
        "says": shown.about.says,
        "unit": shown.about.unit,
        "color": color,
        "deployments": shown.deployments,
        "seeds": shown.seeds,
        "values": clean(shown.scale * shown.values),
        "mean": clean(ends[0]),
        "low": clean(ends[1]),
        "high": clean(ends[2]),
    }


def _numbers(found: list[Table], files: Files, name: str) -> list[str]:
    """Values as they were recorded."""
    rows = [
        [shown.metric, shown.task or "", seed, deployment, value]
        for shown in found
        for deployment in shown.deployments
        for seed, value in shown.at(deployment).items()
    ]
    return files.numbers(name, ["metric", "task", "seed", "deployment", "value"], rows)


def _sentence(shown: Table) -> str:
    """What a figure shows, for those who do not see it."""
    unit = shown.about.unit
    values = [
        f"{number(found.value, unit)} after deployment {k}"
        for k, found in zip(shown.deployments, shown.intervals(), strict=True)
        if found is not None
    ]
    return f"{shown.label}, mean over seeds: {', '.join(values)}."
