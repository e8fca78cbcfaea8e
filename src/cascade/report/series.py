"""Results as tables: one for each metric and task, seeds by deployments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cascade.metrics.aggregate import Interval, iqm_interval, mean_interval

Document = dict[str, Any]


class Metric(NamedTuple):
    """How a metric is called and shown. `unit` % means that fractions are shown as per cent."""

    label: str
    says: str
    unit: str = ""
    lower: bool = False
    """whether lower is better"""


METRICS = {
    "coverage": Metric("Coverage", "Share of the reachable cells of held-out levels that explorers visited.", "%"),
    "success": Metric("Success", "Share of test episodes in which the zero-shot policy solved the task.", "%"),
    "return": Metric("Return", "Mean return of the zero-shot policy."),
    "rewarding_episodes": Metric("Rewarding episodes", "Deployed episodes that met a reward nobody had told of."),
    "maximum_return": Metric("Highest return", "The best episode met so far while exploring."),
    "crafter_score": Metric("Crafter score", "How often skills are unlocked, on a scale on which rare ones count."),
    "unique_skills": Metric("Skills", "Skills that were unlocked at least once."),
    "population_diversity": Metric("Population diversity", "Distance between explorers where imagination ends."),
    "dataset_diversity": Metric("Dataset diversity", "Mean distance between stored observations."),
    "deployed_distance": Metric("Deployed distance", "Distance between explorers in the states they really visited."),
    "information_gain": Metric("Information gain", "Disagreement of the ensemble where the explorers go."),
    "entropy": Metric("Entropy", "How undecided the explorers are about their actions, in nats."),
    "held_out_loss": Metric("Held-out loss", "Loss of the world model on episodes it never saw.", lower=True),
    "episodes": Metric("Episodes", "Episodes that are stored by then."),
    "steps": Metric("Steps", "Steps in the environment that are stored by then."),
}  # fmt: skip
ORDER = {name: number for number, name in enumerate(METRICS)}


@dataclass(frozen=True)
class Table:
    """Values of one metric, [seeds, deployments], NaN where there is none."""

    metric: str
    task: str | None
    seeds: list[int]
    deployments: list[int]
    values: np.ndarray

    @property
    def key(self) -> str:
        return self.metric if self.task is None else f"{self.metric}-{self.task}"

    @property
    def about(self) -> Metric:
        return METRICS.get(self.metric, Metric(self.metric.replace("_", " ").capitalize(), "As recorded."))

    @property
    def label(self) -> str:
        return self.about.label if self.task is None else f"{self.about.label}: {self.task}"

    @property
    def scale(self) -> float:
        """What values are multiplied by when shown."""
        return 100.0 if self.about.unit == "%" else 1.0

    def at(self, deployment: int) -> dict[int, float]:
        """Value of each seed that has one."""
        if deployment not in self.deployments:
            return {}
        column = self.values[:, self.deployments.index(deployment)]
        return {seed: float(v) for seed, v in zip(self.seeds, column, strict=True) if np.isfinite(v)}

    def intervals(self, middle: bool = False) -> list[Interval | None]:
        """For each deployment the mean over seeds (or the interquartile mean), with a bootstrap interval."""
        summary = iqm_interval if middle else mean_interval
        found = [np.array(list(self.at(k).values()))[:, None] for k in self.deployments]
        return [summary(scores) if len(scores) else None for scores in found]


def tables(records: Iterable[Document]) -> list[Table]:
    """One table for each metric and task, in the order in which a reader wants them."""
    grouped: dict[tuple[str, str | None], list[Document]] = {}
    for record in records:
        grouped.setdefault((record["metric"], record["task"]), []).append(record)
    found = [_table(metric, task, rows) for (metric, task), rows in grouped.items()]
    return sorted(found, key=reading_order)


def reading_order(table: Table) -> tuple[int, str, str]:
    """For sorting: known metrics first, as listed above."""
    return ORDER.get(table.metric, len(ORDER)), table.metric, table.task or ""


def _table(metric: str, task: str | None, rows: list[Document]) -> Table:
    seeds = sorted({row["seed"] for row in rows})
    deployments = sorted({row["deployment"] for row in rows})
    values = np.full((len(seeds), len(deployments)), np.nan)
    for row in rows:
        values[seeds.index(row["seed"]), deployments.index(row["deployment"])] = row["value"]
    return Table(metric, task, seeds, deployments, values)


def number(value: float, unit: str = "") -> str:
    """A value as people read it: 31.4 %, 0.0123, 1,240."""
    if not np.isfinite(value):
        return "–"
    if unit == "%":
        return f"{100 * value:.1f} %"
    size = abs(value)
    if value == round(value) and size < 1e6:
        return f"{value:,.0f}"
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def seconds(value: float) -> str:
    """A duration in the unit that suits it."""
    if value < 90:
        return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"
    minutes = value / 60
    return f"{minutes:.1f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
