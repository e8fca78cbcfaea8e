"""Figures of the tabular theory, drawn from the record of `cascade tabular --out`."""

from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from cascade.report.style import COLORS, GRAY, NAMES, RC

_ORDER = ("sequential", "cascade_ts", "single_policy_batch")
_MARKERS = {"sequential": "D", "cascade_ts": "o", "single_policy_batch": "s"}
_PLAIN = FuncFormatter(lambda value, _: f"{value:g}")


def _drawn(record: dict[str, Any]) -> list[str]:
    return [name for name in _ORDER if name in record["rounds"]]


def _look(name: str, record: dict[str, Any]) -> dict[str, Any]:
    """On trees Sequential is a halo, because CASCADE-TS lies exactly on it."""
    if name == "sequential" and record["settings"]["world"] == "tree":
        return {"linewidth": 7.0, "alpha": 0.45, "solid_capstyle": "round"}
    return {"linewidth": 2.0}


def draw_accuracy(axes: Axes, record: dict[str, Any]) -> None:
    """How much of the model is known after each round: mean, and the middle 80% of seeds."""
    last = 1
    for name in _drawn(record):
        curve = record["accuracy"][name]
        rounds = [value + 1 for value in curve["round"]]  # a logarithmic axis has no 0
        last = max(last, rounds[-1])
        percent = {key: [100 * value for value in curve[key]] for key in ("mean", "low", "high")}
        axes.fill_between(
            rounds, percent["low"], percent["high"], color=COLORS[name], alpha=0.18, linewidth=0
        )
        axes.plot(rounds, percent["mean"], color=COLORS[name], label=NAMES[name], **_look(name, record))
    goal = 100 * (1 - record["settings"]["epsilon"])
    axes.axhline(goal, color=GRAY, linewidth=1, linestyle=":")
    ticks = [value for value in (0, 1, 3, 10, 30, 100, 300, 1000) if value < last]
    axes.set_xscale("log")
    axes.set_xticks([value + 1 for value in ticks], [str(value) for value in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(0, 104)
    axes.set(title="What the learner knows", xlabel="rounds deployed", ylabel="accuracy of the model (%)")


def draw_populations(axes: Axes, record: dict[str, Any]) -> None:
    """Rounds to ε-accuracy against the size of the population, with 95% intervals of the mean."""
    for name in _drawn(record):
        points = record["by_population"][name]
        where, mean = [p["population"] for p in points], [p["mean"] for p in points]
        axes.fill_between(
            where,
            [p["low"] for p in points],
            [p["high"] for p in points],
            color=COLORS[name],
            alpha=0.18,
            linewidth=0,
        )
        axes.plot(
            where,
            mean,
            color=COLORS[name],
            markersize=5,
            label=NAMES[name],
            marker=_MARKERS[name],
            **_look(name, record),
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(where, [str(value) for value in where])
    axes.yaxis.set_major_formatter(_PLAIN)
    axes.yaxis.set_minor_formatter(
        FuncFormatter(lambda value, _: f"{value:g}" if f"{value:g}"[0] in "25" else "")
    )
    axes.set(title="What a larger population buys", xlabel="population P", ylabel="rounds needed")


def _caption(settings: dict[str, Any]) -> str:
    where = {
        "tree": f"binary trees of height {settings['height']}",
        "stochastic": f"random MDPs, {settings.get('states')} states, episodes of {settings['height']} steps",
        "grid": f"slippery grids, side {settings.get('side')}, episodes of {settings['height']} steps",
    }[settings["world"]]
    seeds = len(settings["seeds"])
    return f"{where} · P = {settings['population']} · ε = {settings['epsilon']:g} · {seeds} seeds"


def draw(record: dict[str, Any]) -> Figure:
    """The figure of Lemma 2: accuracy by round, rounds by population."""
    with rc_context(RC):
        figure = Figure(figsize=(9.0, 4.0), layout="constrained")
        left, right = figure.subplots(1, 2)
        draw_accuracy(left, record)
        draw_populations(right, record)
        handles, labels = left.get_legend_handles_labels()
        figure.legend(
            handles,
            labels,
            loc="outside upper left",
            ncols=3,
            title=_caption(record["settings"]),
            alignment="left",
        )
        return figure


def save(record: dict[str, Any], folder: Path, name: str = "theory") -> list[Path]:
    """Write the figure as PNG and SVG; the same record gives the same files."""
    with rc_context(RC):
        figure = draw(record)
        png, svg = folder / f"{name}.png", folder / f"{name}.svg"
        figure.savefig(png, dpi=160, metadata={"Software": None})
        figure.savefig(svg, metadata={"Date": None})
    return [png, svg]
