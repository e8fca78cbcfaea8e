"""The figures of one run for a paper or a slide: drawn by matplotlib from the numbers the page shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cascade.metrics.aggregate import Interval
from cascade.report.curves import PHASES as PHASE_NAMES
from cascade.report.curves import Phase, thin
from cascade.report.files import RC_PAGE, new_figure
from cascade.report.series import Table
from cascade.report.style import EXPLORERS, GRAY, INK, PHASES

Document = dict[str, Any]


def grid(count: int, columns: int = 3, width: float = 3.2) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels of a width in inches."""
    columns = min(columns, max(count, 1))
    rows = max(1, math.ceil(count / columns))
    figure, axes = new_figure(width * columns, 0.4 + 2.2 * rows, rows, columns)
    for extra in axes.flat[count:]:
        extra.set_axis_off()
    return figure, list(axes.flat[:count])


def by_deployment(found: Sequence[Table], color: str) -> Figure:
    """Each metric after each deployment: seeds thin, their mean thick, its interval shaded."""
    figure, panels = grid(len(found))
    with rc_context(RC_PAGE):
        for axes, table in zip(panels, found, strict=True):
            seeds = [(np.array(table.deployments), table.scale * row) for row in table.values]
            draw_many(axes, seeds, [color], linewidth=0.9, alpha=0.3)
            draw_interval(axes, table.deployments, table.intervals(), table.scale, color)
            unit = f" ({table.about.unit})" if table.about.unit else ""
            axes.set(title=table.label + unit, xlabel="deployment")
            axes.set_xticks(table.deployments[:: max(1, len(table.deployments) // 5)])
            axes.yaxis.set_major_locator(MaxNLocator(4))
    return figure


def draw_many(
    axes: Axes, lines: Sequence[tuple[np.ndarray, np.ndarray]], colors: Sequence[str], **look: Any
) -> None:
    """Many thin lines at once; colours repeat."""
    pieces = [np.column_stack(line)[np.isfinite(line[1])] for line in lines]
    axes.add_collection(LineCollection(pieces, colors=list(colors), **look), autolim=True)
    axes.autoscale_view()


def draw_interval(
    axes: Axes,
    where: Sequence[int],
    found: Sequence[Interval | None],
    scale: float,
    color: str,
    label: str | None = None,
) -> None:
    """A line with its interval; where there is nothing, a gap."""
    value, low, high = (
        np.array([np.nan if i is None else scale * i[part] for i in found]) for part in range(3)
    )
    axes.fill_between(where, low, high, color=color, alpha=0.18, linewidth=0)
    axes.plot(where, value, color=color, marker="o", markersize=4, label=label)


def learning(phase: Phase) -> Figure:
    """Every logged value of a phase: a line for each seed and explorer, explorers by colour."""
    names = list(phase.curves)[:12]
    figure, panels = grid(len(names))
    with rc_context(RC_PAGE):
        for axes, name in zip(panels, names, strict=True):
            curves = [thin(curve, 200) for curve in phase.curves[name].values()]
            lines = [(curve.steps, values) for curve in curves for values in curve.values.T]
            width = curves[0].values.shape[1]
            colors = [EXPLORERS[line % len(EXPLORERS)] for line in range(width)]
            draw_many(axes, lines, colors, linewidth=1.1, alpha=max(0.35, 1 / len(curves)))
            for start in list(phase.starts.values())[1:]:
                axes.axvline(start, color=GRAY, linewidth=0.7, linestyle=":")
            axes.set(title=name, xlabel="step")
            axes.xaxis.set_major_locator(MaxNLocator(4))
            axes.yaxis.set_major_locator(MaxNLocator(4))
    return figure


def transfer_learning(sets: dict[str, Document], names: Sequence[str]) -> Figure:
    """How each task was learned: a panel for each value, a line for each task and deployment."""
    figure, panels = grid(len(names))
    with rc_context(RC_PAGE):
        for axes, name in zip(panels, names, strict=True):
            for number, (label, found) in enumerate(sets.items()):
                if name in found:
                    y = np.array(found[name], dtype=float).reshape(len(found["x"]), -1).mean(axis=1)
                    axes.plot(
                        found["x"], y, color=EXPLORERS[number % len(EXPLORERS)], linewidth=1.2, label=label
                    )
            axes.set(title=name.replace("_", " "), xlabel="step")
        panels[-1].legend(fontsize=6)
    return figure


def matrices(found: dict[int, np.ndarray]) -> Figure:
    """Distance between explorers after each deployment, mean over seeds."""
    figure, panels = grid(len(found), columns=5, width=2.3)
    top = max(float(np.nan_to_num(matrix).max()) for matrix in found.values()) or 1.0
    with rc_context(RC_PAGE):
        for axes, (deployment, matrix) in zip(panels, found.items(), strict=True):
            axes.imshow(matrix, cmap="Blues", vmin=0.0, vmax=top)
            axes.grid(visible=False)
            axes.set_title(f"deployment {deployment}")
            ends = [0, len(matrix) - 1]  # drawing ticks is what takes the time
            axes.set_xticks(ends, [str(i + 1) for i in ends])
            axes.set_yticks(ends, [str(i + 1) for i in ends])
    return figure


def trajectories(pictures: np.ndarray, paths: np.ndarray, cells: tuple[int, int]) -> Figure:
    """Every explorer's path [P, levels, T, 2] over the picture of each level."""
    figure, panels = grid(len(pictures), columns=4, width=2.3)
    population = len(paths)
    with rc_context(RC_PAGE):
        for level, (axes, picture) in enumerate(zip(panels, pictures, strict=True)):
            axes.imshow(picture, extent=(0, cells[0], cells[1], 0), interpolation="nearest", alpha=0.75)
            axes.set_axis_off()
            axes.set_title(f"level {level + 1}")
            for explorer in range(population):
                path = paths[explorer, level]
                path = path[(path >= 0).all(axis=1)] + 0.5 + 0.3 * offset(explorer, population)
                axes.plot(path[:, 0], path[:, 1], color=EXPLORERS[explorer % len(EXPLORERS)], linewidth=1.3)
    return figure


def offset(explorer: int, population: int) -> np.ndarray:
    """Where in its cell an explorer's line runs, so that lines on one cell stay apart."""
    angle = 2 * np.pi * explorer / max(population, 1)
    return np.array([np.cos(angle), np.sin(angle)]) * (population > 1)


def durations(phases: Sequence[Document]) -> Figure:
    """Minutes of each phase, stacked, one bar for each deployment."""
    names = phase_order(phases)
    deployments = sorted({int(p.get("deployment", 0)) for p in phases})
    figure, axes = new_figure(6.4, 0.9 + 0.4 * len(deployments))
    with rc_context(RC_PAGE):
        bars = axes[0, 0]
        left = np.zeros(len(deployments))
        for name in names:
            width = np.array([phase_seconds(phases, name, k) / 60 for k in deployments])
            bars.barh(deployments, width, left=left, height=0.6, color=PHASES.get(name, GRAY),
                      label=PHASE_NAMES.get(name, name))  # fmt: skip
            left += width
        bars.invert_yaxis()
        bars.set_yticks(deployments)
        bars.set(xlabel="minutes", ylabel="deployment")
        bars.grid(visible=False, axis="y")
        bars.legend(ncols=len(names), loc="lower left", bbox_to_anchor=(0, 1), fontsize=8, labelcolor=INK)
    return figure


def phase_order(phases: Sequence[Document]) -> list[str]:
    """Phases that took any time, in the order in which they happen."""
    names = dict.fromkeys(str(phase["phase"]) for phase in phases)
    known = [name for name in PHASE_NAMES if name in names]
    return known + [name for name in names if name not in known]


def phase_seconds(phases: Sequence[Document], name: str, deployment: int) -> float:
    """Time of a phase in one deployment; a phase that was resumed has several entries."""
    return sum(
        float(p.get("seconds") or 0.0)
        for p in phases
        if p["phase"] == name and int(p.get("deployment", 0)) == deployment
    )
