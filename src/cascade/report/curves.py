"""Learning curves from the log: every value by phase, thinned for the page, whole for the file of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

Document = dict[str, Any]
PHASES = {
    "deploy": "Deployment",
    "model": "World model",
    "explore": "Explorers",
    "measure": "Measuring",
    "transfer": "Transfer",
}
"""Phases in the order in which they happen, as people call them."""


@dataclass(frozen=True)
class Curve:
    """One value over all deployments for one seed: `steps` go on counting, `values` are [points, lines].

    A value logged for each explorer has one line for each; any other has one.
    """

    steps: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class Phase:
    """Curves of one phase by value and seed. `starts` are the steps at which a deployment begins."""

    name: str
    starts: dict[int, float]
    curves: dict[str, dict[int, Curve]]

    @property
    def label(self) -> str:
        return PHASES.get(self.name, self.name.capitalize())


def phases(logs: list[Document]) -> list[Phase]:
    """The curves of every phase that logged anything."""
    names = sorted({str(line.get("phase", "")) for line in logs}, key=lambda n: (_rank(n), n))
    found = [_phase(name, [line for line in logs if line.get("phase") == name]) for name in names]
    return [phase for phase in found if phase.curves]


def _rank(name: str) -> int:
    return list(PHASES).index(name) if name in PHASES else len(PHASES)


def _phase(name: str, lines: list[Document]) -> Phase:
    starts = _starts(lines)
    points: dict[str, dict[int, list[tuple[float, list[float]]]]] = {}
    for line in lines:
        step = starts[int(line.get("deployment", 0))] + _number(line.get("step", 0))
        for key, value in line["values"].items():
            items = value if isinstance(value, list) else [value]
            if items and all(isinstance(item, int | float) for item in items):
                row = (step, [float(item) for item in items])
                points.setdefault(key, {}).setdefault(int(line.get("seed", 0)), []).append(row)
    curves = {
        key: {seed: curve for seed in sorted(seeds) if (curve := _curve(seeds[seed]))}
        for key, seeds in points.items()
    }
    return Phase(name, starts, {key: found for key, found in curves.items() if found})


def _starts(lines: list[Document]) -> dict[int, float]:
    """Where each deployment begins on an axis that goes on counting steps."""
    last: dict[int, float] = {}
    for line in lines:
        deployment = int(line.get("deployment", 0))
        last[deployment] = max(last.get(deployment, 0.0), _number(line.get("step", 0)))
    starts, total = {}, 0.0
    for deployment in sorted(last):
        starts[deployment] = total
        total += last[deployment] + 1.0
    return starts


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _curve(rows: list[tuple[float, list[float]]]) -> Curve | None:
    """Rows by step; rows with another number of lines than the first are left out."""
    width = len(rows[0][1])
    kept = sorted((row for row in rows if len(row[1]) == width), key=lambda row: row[0])
    if not kept:
        return None
    return Curve(np.array([step for step, _ in kept]), np.array([values for _, values in kept]))


def thin(curve: Curve, points: int) -> Curve:
    """At most `points` points: means of equal shares of the curve, so that no spike is invented or moved far."""
    count = len(curve.steps)
    if count <= points:
        return curve
    edges = np.linspace(0, count, points + 1).astype(int)[:-1]
    sizes = np.diff(np.append(edges, count))
    values = np.add.reduceat(curve.values, edges, axis=0) / sizes[:, None]
    return Curve(np.add.reduceat(curve.steps, edges) / sizes, values)


def rows(logs: list[Document], phase: str) -> Iterator[list[Any]]:
    """Every logged number of a phase, as it was logged, for the file of numbers."""
    for line in logs:
        if line.get("phase") == phase:
            where = [line.get("seed", 0), line.get("deployment", 0), line.get("step", 0)]
            for key, value in line["values"].items():
                for explorer, item in enumerate(value) if isinstance(value, list) else [("", value)]:
                    yield [*where, key, explorer, item]
