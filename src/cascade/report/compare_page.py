"""Several runs, compared: the first part of the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cascade.metrics.aggregate import Interval
from cascade.report import plots
from cascade.report.compare import Comparison, Group
from cascade.report.files import RC_PAGE, Files, new_figure
from cascade.report.html import Part, controls, frame, section, select, table, tag, text
from cascade.report.load import clean
from cascade.report.series import number
from cascade.report.style import GRAY, group_colors

Document = dict[str, Any]
LINK = "compare"


def compare_part(groups: Sequence[Group], found: Sequence[Comparison], root: Path) -> Part:
    """Curves, aggregates and tests for every metric that runs have in common."""
    part, files = Part(), Files(root, "figures/compare")
    colors = _colors(groups)
    paths = {name: _export(found, name, colors, files) for name in ("curves", "iqm", "improvement", "seeds")}
    part.files = files.written
    part.figures[LINK] = {"metrics": [_data(comparison, colors) for comparison in found]}
    options = [(str(i), _name(comparison, found)) for i, comparison in enumerate(found)]
    says = "All figures of this page follow the metric chosen here."
    cards = [
        _card(part, "curves", "By deployment", "Interquartile mean over seeds; the shade is its 95 % interval.",
              "The metric after each deployment, a line for each method.", paths["curves"], wide=True),
        _card(part, "iqm", "Interquartile mean",
              "After the last deployment all have in common: the mean of the middle half of seeds, 95 % interval.",
              _iqm_alt(found[0]), paths["iqm"]),
        _card(part, "improvement", "Probability of improvement",
              "How likely a run of the first beats a run of the second; 50 % means no difference.",
              _improvement_alt(found[0]), paths["improvement"]),
    ]  # fmt: skip
    chooser = controls(select("metric", "Metric", options), link=LINK)
    tests = tag(
        "div", data_kind="tests", data_key=LINK, class_="plot plain", data_alt="Tests between methods"
    )
    seeds = tag("div", data_kind="seeds", data_key=LINK, class_="plot plain", data_alt="Values of each seed")
    part.add(
        tag("header", tag("h1", "Comparison"), tag("p", text(_facts(groups)), class_="facts"), class_="run-header"),
        _overview(groups, found),
        section("compare-metric", "Method by method", says, chooser, tag("div", *cards, class_="cards two")),
        section("compare-tests", "Differences", "Mann-Whitney tests, and differences over shared seeds.", tests),
        section("compare-seeds", "Every seed", "The numbers behind the figures above.", seeds),
    )  # fmt: skip
    return part


def _card(
    part: Part, name: str, title: str, says: str, alt: str, files: list[str], wide: bool = False
) -> str:
    return frame(
        part, f"compare-{name}", f"compare-{name}", title, says, alt, {"link": LINK}, files, wide=wide
    )


def _facts(groups: Sequence[Group]) -> str:
    runs = sum(len(g.runs) for g in groups)
    where = dict.fromkeys(g.environment for g in groups)
    return f"{runs} runs · {len({g.label for g in groups})} methods · {', '.join(where)}"


def _colors(groups: Sequence[Group]) -> dict[str, str]:
    """A method keeps its colour in every environment."""
    labels: dict[str, str] = {}
    for g in groups:
        labels.setdefault(g.label, g.method)
    return dict(zip(labels, group_colors(list(labels.values())), strict=True))


def _name(comparison: Comparison, found: Sequence[Comparison]) -> str:
    several = len({c.environment for c in found}) > 1
    return f"{comparison.label} · {comparison.environment}" if several else comparison.label


def _overview(groups: Sequence[Group], found: Sequence[Comparison]) -> str:
    """A line for each method: what matters most, in one look."""
    several = len({g.environment for g in groups}) > 1
    labels = list(dict.fromkeys(c.label for c in found))[:5]
    rows = []
    for g in groups:
        row = [f"{g.label} · {g.environment}" if several else g.label, str(_seeds(g))]
        for label in labels:
            fitting = [
                c for c in found if (c.label, c.environment) == (label, g.environment) and g.label in c.curves
            ]
            row.append(_cell(fitting[0], g) if fitting else "–")
        rows.append(row)
    caption = "Interquartile mean and 95 % interval after the last common deployment"
    return section("compare-overview", "In one look", "Higher is better, except for losses.",
                   table(["method", "seeds", *labels], rows, caption))  # fmt: skip


def _cell(c: Comparison, g: Group) -> str:
    """A method's number, and of how many of its seeds it is where some are not so far yet."""
    words, there, seeds = _words(c.final(g.label), c.table.about.unit), len(c.seeds[g.label]), _seeds(g)
    return words if there == seeds else f"{words} ({there} of {seeds} seeds)"


def _seeds(g: Group) -> int:
    return len({seed for shown in g.tables.values() for seed in shown.seeds})


def _words(found: Interval, unit: str) -> str:
    value, low, high = (number(v, unit).removesuffix(" %") for v in found)
    end = " %" if unit == "%" else ""
    return f"{value}{end}" if found.low == found.high else f"{value}{end} [{low}, {high}]"


def _iqm_alt(c: Comparison) -> str:
    unit = c.table.about.unit
    return f"{c.label}: " + ", ".join(f"{name} {_words(c.final(name), unit)}" for name in c.curves) + "."


def _improvement_alt(c: Comparison) -> str:
    return ", ".join(f"{p.first} over {p.second}: {100 * p.improvement.value:.0f} %" for p in c.pairs) + "."


def _scaled(found: Interval | None, scale: float) -> list[float | None] | None:
    return None if found is None else clean([scale * part for part in found])


def _data(c: Comparison, colors: dict[str, str]) -> Document:
    """One metric for the page."""
    scale = c.table.scale
    return {
        "label": c.label,
        "environment": c.environment,
        "unit": c.table.about.unit,
        "says": c.table.about.says,
        "lower": c.table.about.lower,
        "deployment": c.deployment,
        "groups": [
            {
                "name": name,
                "color": colors[name],
                "deployments": [point.deployment for point in points],
                "iqm": [_scaled(point.iqm, scale) for point in points],
                "final": _scaled(c.final(name), scale),
                "seeds": [[seed, clean(scale * value)] for seed, value in c.seeds[name].items()],
            }
            for name, points in c.curves.items()
        ],
        "pairs": [
            {
                "first": p.first,
                "second": p.second,
                "improvement": _scaled(p.improvement, 100.0),
                "u": clean(p.test.statistic),
                "p": clean(p.test.p, 3),
                "difference": _scaled(p.difference, scale),
                "shared": p.shared,
            }
            for p in c.pairs
        ],
    }


def _export(found: Sequence[Comparison], name: str, colors: dict[str, str], files: Files) -> list[str]:
    """One figure over all metrics, and the numbers in it."""
    header, rows = _rows(found, name)
    paths = files.numbers(name, ["environment", "metric", *header], rows)
    if name == "seeds":
        return paths
    draw = {"curves": _draw_curves, "iqm": _draw_iqm, "improvement": _draw_improvement}[name]
    return files.figure(name, _panels(found[:9], draw, colors, name)) + paths


def _rows(found: Sequence[Comparison], name: str) -> tuple[list[str], list[list[Any]]]:
    ends = ["low", "high"]
    if name == "curves":
        return ["method", "deployment", "iqm", *ends], [
            [c.environment, c.key, g, point.deployment, *point.iqm]
            for c in found for g, points in c.curves.items() for point in points
        ]  # fmt: skip
    if name == "iqm":
        return ["method", "deployment", "seeds", "iqm", *ends], [
            [c.environment, c.key, g, c.deployment, len(c.seeds[g]), *c.final(g)]
            for c in found
            for g in c.curves
        ]
    if name == "seeds":
        return ["method", "deployment", "seed", "value"], [
            [c.environment, c.key, g, c.deployment, seed, value]
            for c in found for g, values in c.seeds.items() for seed, value in values.items()
        ]  # fmt: skip
    header = [
        "first",
        "second",
        "improvement",
        *ends,
        "u",
        "p",
        "difference",
        "difference_low",
        "difference_high",
    ]
    return [*header, "shared_seeds"], [
        [c.environment, c.key, p.first, p.second, *p.improvement, *p.test, *(p.difference or ("", "", "")), p.shared]
        for c in found for p in c.pairs
    ]  # fmt: skip


def _panels(found: Sequence[Comparison], draw: Any, colors: dict[str, str], name: str) -> Figure:
    if name == "curves":
        figure, panels = plots.grid(len(found))
    else:
        lines = max(len(c.curves) if name == "iqm" else len(c.pairs) for c in found)
        columns = min(3, len(found))
        rows = -(-len(found) // columns)
        figure, axes = new_figure(4.4 * columns, rows * (0.9 + 0.24 * lines), rows, columns)
        figure.subplots_adjust(left=0.9 / (2.2 * columns), wspace=0.95)
        panels = list(axes.flat[: len(found)])
        for extra in axes.flat[len(found) :]:
            extra.set_axis_off()
    with rc_context(RC_PAGE):
        for panel, comparison in zip(panels, found, strict=True):
            draw(panel, comparison, colors)
            unit = " (%)" if comparison.table.about.unit == "%" and name != "improvement" else ""
            panel.set_title(_name(comparison, found) + unit)
        if name == "curves":
            panels[0].legend(fontsize=7)
    return figure


def _draw_curves(axes: Axes, c: Comparison, colors: dict[str, str]) -> None:
    for name, points in c.curves.items():
        where = [point.deployment for point in points]
        plots.draw_interval(axes, where, [p.iqm for p in points], c.table.scale, colors[name], name)
    axes.set_xlabel("deployment")


def _draw_iqm(axes: Axes, c: Comparison, colors: dict[str, str]) -> None:
    names = list(c.curves)
    _forest(axes, names, [c.final(name) for name in names], c.table.scale, [colors[name] for name in names])


def _draw_improvement(axes: Axes, c: Comparison, colors: dict[str, str]) -> None:
    names = [f"{p.first} over {p.second}" for p in c.pairs]
    _forest(axes, names, [p.improvement for p in c.pairs], 100.0, [colors[p.first] for p in c.pairs])
    axes.axvline(50, color=GRAY, linewidth=0.8, linestyle=":")
    axes.set(xlim=(-3, 103), xlabel="%")


def _forest(axes: Axes, names: list[str], found: list[Interval], scale: float, colors: list[str]) -> None:
    """Dots with intervals, one line each."""
    for row, (interval, color) in enumerate(zip(found, colors, strict=True)):
        axes.plot(
            [scale * interval.low, scale * interval.high], [row, row], color=color, linewidth=3, alpha=0.35
        )
        axes.plot([scale * interval.value], [row], color=color, marker="o", markersize=5)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
