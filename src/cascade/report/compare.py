"""Several runs against each other: who belongs together, and what the seeds say about the differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from cascade.metrics.aggregate import (
    Interval,
    RankTest,
    iqm_interval,
    mann_whitney,
    paired_difference,
    probability_of_improvement,
)
from cascade.report.series import Table, reading_order, tables
from cascade.report.style import NAMES

Document = dict[str, Any]
ORDER = ("cascade", "pp2e", "p2e", "random")


class Member(NamedTuple):
    """What the comparison needs of one run."""

    name: str
    method: str
    environment: str
    settings: Document
    seeds: list[int]
    records: list[Document]


@dataclass(frozen=True)
class Group:
    """Runs of one method in one environment, their seeds pooled."""

    label: str
    method: str
    environment: str
    runs: list[str]
    records: list[Document]
    tables: dict[str, Table]


class Pair(NamedTuple):
    """Two groups, the first against the second, after the same deployment."""

    first: str
    second: str
    improvement: Interval
    test: RankTest
    difference: Interval | None
    """over the seeds both have, if any"""
    shared: int


class Point(NamedTuple):
    """The interquartile mean of a group after one deployment."""

    deployment: int
    iqm: Interval


@dataclass(frozen=True)
class Comparison:
    """One metric in one environment, over all groups that have it; several tasks may be taken together."""

    environment: str
    table: Table
    """any group's, for the metric's name and unit"""
    label: str
    key: str
    deployment: int
    """the last one that every group has: where they are compared"""
    groups: list[Group]
    curves: dict[str, list[Point]]
    seeds: dict[str, dict[int, float]]
    """value of each seed after that deployment, the mean over tasks"""
    pairs: list[Pair]

    def final(self, label: str) -> Interval:
        """The interquartile mean where groups are compared."""
        return next(point.iqm for point in self.curves[label] if point.deployment == self.deployment)


def group(members: Sequence[Member]) -> list[Group]:
    """Runs that share environment, method and settings are one group if no seed is in two of them.

    Runs of one method whose settings differ stay apart and carry their folders' names.
    """
    pools: list[list[Member]] = []
    for member in members:
        for pool in pools:
            if _same(pool[0], member) and not any(set(m.seeds) & set(member.seeds) for m in pool):
                pool.append(member)
                break
        else:
            pools.append([member])
    labels = [NAMES.get(pool[0].method, pool[0].method) for pool in pools]
    where = [(pool[0].environment, label) for pool, label in zip(pools, labels, strict=True)]
    groups = []
    for pool, label, place in zip(pools, labels, where, strict=True):
        name = label if where.count(place) == 1 else f"{label} ({pool[0].name})"
        records = [record for member in pool for record in member.records]
        found = {table.key: table for table in tables(records)}
        names = [member.name for member in pool]
        groups.append(Group(name, pool[0].method, pool[0].environment, names, records, found))
    return sorted(groups, key=lambda g: (g.environment, _rank(g.method), g.label))


def _rank(method: str) -> int:
    return ORDER.index(method) if method in ORDER else len(ORDER)


def _same(a: Member, b: Member) -> bool:
    return (a.environment, a.method, a.settings) == (b.environment, b.method, b.settings)


def compare(groups: Sequence[Group]) -> list[Comparison]:
    """Every metric that at least two groups of one environment have in common."""
    found = []
    for environment in dict.fromkeys(g.environment for g in groups):
        here = [g for g in groups if g.environment == environment]
        one = {table.key: table for g in here for table in g.tables.values() if table.metric != "episodes"}
        ordered = sorted(one.values(), key=reading_order)
        by_metric: dict[str, list[str]] = {}
        for table in ordered:
            by_metric.setdefault(table.metric, []).append(table.key)
        for table in ordered:
            keys = by_metric[table.metric]
            if len(keys) > 1 and table.key == keys[0]:
                label = f"{table.about.label}: all {len(keys)} tasks"
                found.append(_comparison(here, keys, table, label, f"{table.metric}-all-tasks"))
            found.append(_comparison(here, [table.key], table, table.label, table.key))
    return [comparison for comparison in found if comparison is not None]


def _comparison(
    groups: list[Group], keys: list[str], table: Table, label: str, key: str
) -> Comparison | None:
    """The groups that have all of `keys`, compared; None if fewer than two have."""
    scores = {g.label: found for g in groups if (found := _scores(g, keys))}
    common = set.intersection(*map(set, scores.values())) if scores else set()
    if len(scores) < 2 or not common:
        return None
    last = max(common)
    curves = {
        name: [Point(k, iqm_interval(matrix)) for k, (_, matrix) in found.items()]
        for name, found in scores.items()
    }
    ends = {name: found[last] for name, found in scores.items()}
    pairs = [_pair(a, b, ends[a], ends[b]) for a, b in combinations(ends, 2)]
    seeds = {name: dict(zip(s, m.mean(axis=1).tolist(), strict=True)) for name, (s, m) in ends.items()}
    having = [g for g in groups if g.label in scores]
    return Comparison(groups[0].environment, table, label, key, last, having, curves, seeds, pairs)


Scores = tuple[list[int], np.ndarray]


def _scores(found: Group, keys: list[str]) -> dict[int, Scores]:
    """By deployment: the seeds that have every task, and their values [seeds, tasks]."""
    if not all(key in found.tables for key in keys):
        return {}
    columns = [found.tables[key] for key in keys]
    scores = {}
    for deployment in columns[0].deployments:
        values = [column.at(deployment) for column in columns]
        seeds = sorted(set.intersection(*map(set, values)))
        if seeds:
            scores[deployment] = (seeds, np.array([[value[seed] for value in values] for seed in seeds]))
    return scores


def _pair(first: str, second: str, x: Scores, y: Scores) -> Pair:
    """Improvement is taken within tasks; test and difference of each seed's mean over them."""
    a, b = (dict(zip(seeds, matrix.mean(axis=1), strict=True)) for seeds, matrix in (x, y))
    shared = sorted(set(a) & set(b))
    difference = None
    if shared:
        difference = paired_difference(np.array([a[s] for s in shared]), np.array([b[s] for s in shared]))
    test = mann_whitney(x[1].mean(axis=1), y[1].mean(axis=1))
    return Pair(first, second, probability_of_improvement(x[1], y[1]), test, difference, len(shared))
