"""Tables of what was measured in worlds, from the records under results/."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from speed_tables import where

from cascade.metrics.aggregate import mean_interval

ROOT = Path(__file__).parents[1]


def demo_table(document: dict[str, Any]) -> str:
    """What the demo's runs found: coverage after each deployment, the goal, and the policy's success."""
    lines = [
        "| | room covered after each deployment, % | episodes that found the goal | zero-shot success, % |",
        "|---|---|---:|---:|",
    ]
    for name, run in document["runs"].items():
        found = run["metrics"]
        for seed, values in found["coverage"].items():
            coverage = ", ".join(f"{100 * value:.1f}" for value in values)
            goals, success = (
                found[metric][seed][-1] for metric in ("rewarding_episodes@reward", "success@reward")
            )
            lines.append(f"| {name} | {coverage} | {goals:.0f} | {100 * success:.0f} |")
    return "\n".join(lines) + "\n"


def short_runs_table(document: dict[str, Any]) -> str:
    """Lengths and curves of the short runs."""
    lines = [
        where(document["machine"]),
        "",
        "| preset | steps deployed; of the model; of the explorers | loss of the world model | on held-out episodes "
        "| information gain | distance between deployed explorers |",
        "|---|---|---|---:|---|---:|",
    ]
    for name, found in document["runs"].items():
        loss, gain = found["world"]["loss"], found["explorers"]["information_gain"]
        cells = (
            f"`{name}`",
            f"{found['deployed_steps']:,}; {found['model_steps']:,}; {found['explorer_steps']:,}",
            f"{loss[0]:.0f} to {loss[-1]:.1f}",
            f"{found['measures']['held_out_loss']:.1f}",
            f"{1e3 * gain[0]:.2f} to {1e3 * gain[-1]:.2f} x 10^-3",
            f"{found['measures']['deployed_distance']:.2f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def lookahead_table(document: dict[str, Any]) -> str:
    """Saved policies alone and looking ahead, in the same episodes; means over seeds."""
    lines = [
        where(document["machine"]),
        "",
        "| imagined trajectories behind each action | w | zero-shot success, % | steps when found | seconds |",
        "|---:|---:|---:|---:|---:|",
    ]
    reported, total = document["settings"]["reported"], document["settings"]["episodes"]
    for setting, seeds in document["runs"].items():
        draws, _, weight = setting.partition("x")
        found = [
            (reported * one["success"] + (total - reported) * (one["success_in_others"] or 0.0)) / total
            for one in seeds.values()
        ]
        steps, seconds = (
            np.mean([one[name] for one in seeds.values()]) for name in ("steps_when_found", "seconds")
        )
        lines.append(f"| {draws} | {weight} | {100 * np.mean(found):.1f} | {steps:.0f} | {seconds:.0f} |")
    return "\n".join(lines) + "\n"


ALONE = ("random", "p2e")
"""Who has nobody to be distant from."""


def ablations_table(document: dict[str, Any]) -> str:
    """Populations with one setting changed, beside the default and random actions."""
    lines = [
        where(document["machine"]),
        "",
        "| explorers | coverage, % | less the default's | cells of an episode | distance between explorers |",
        "|---|---|---|---|---|",
    ]
    for name, found in document["summary"].items():
        cells = (
            name,
            _interval(found["coverage"], 100.0),
            "" if name == "cascade" else _interval(found["coverage_less_default"], 100.0),
            _interval(found["cells_per_episode"]),
            "" if name.split(",")[0] in ALONE else _interval(found["deployed_distance"], digits=2),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def members_table(document: dict[str, Any]) -> str:
    """The same populations with members of two kinds, and what the second kind adds, seed by seed."""
    numbers = json.loads((ROOT / "results/ablations.json").read_text(encoding="utf-8"))
    lines = [
        where(document["machine"]),
        "",
        "| explorers | coverage with members that predict numbers, % | classes, % | the second less the first |",
        "|---|---|---|---|",
    ]
    for name, found in document["summary"].items():
        if name == "random":
            continue
        gains = [
            own[name]["coverage"] - numbers["seeds"][seed][name]["coverage"]
            for seed, own in document["seeds"].items()
        ]
        cells = (
            name,
            _interval(numbers["summary"][name]["coverage"], 100.0),
            _interval(found["coverage"], 100.0),
            _interval(mean_interval(np.array([[gain] for gain in gains])), 100.0),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def comparison_table(document: dict[str, Any]) -> str:
    """Methods side by side: coverage at first and at last, goals found, zero-shot success."""
    lines = [
        "| method | coverage after the first deployment, % | after the last, % | episodes that found the goal "
        "| zero-shot success, % |",
        "|---|---|---|---|---|",
    ]
    for name, run in document["runs"].items():
        cells = (
            name,
            _interval(over_seeds(run, "coverage", 0), 100.0),
            _interval(over_seeds(run, "coverage", -1), 100.0),
            _interval(over_seeds(run, "rewarding_episodes@reward", -1), digits=0),
            _interval(over_seeds(run, "success@reward", -1), 100.0),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def deployments_table(document: dict[str, Any]) -> str:
    """Coverage by deployment; below it, of what comes last, zero-shot success and CASCADE's leads seed by seed."""
    runs = document["runs"]
    count = len(next(iter(runs["cascade"]["metrics"]["coverage"].values())))
    by_deployment = [
        f"| coverage, % | {' | '.join(f'after {k + 1}' for k in range(count))} |",
        "|---|" + "---|" * count,
    ]
    last = [
        f"| after {count} | CASCADE's lead in coverage, points | zero-shot success, % | CASCADE's lead in it, points "
        "| seconds |",
        "|---|---|---|---|---:|",
    ]
    for name, run in runs.items():
        lead, ahead = (
            "" if name == "cascade" else _interval(over_seeds(runs["cascade"], metric, -1, run), 100.0)
            for metric in ("coverage", "success@reward")
        )
        cells = [_interval(over_seeds(run, "coverage", k), 100.0) for k in range(count)]
        success = _interval(over_seeds(run, "success@reward", -1), 100.0)
        seconds = sum(sum(phase) for phase in run["seconds"].values())
        by_deployment.append(f"| {' | '.join([name, *cells])} |")
        last.append(f"| {' | '.join([name, lead, success, ahead, f'{seconds:.0f}'])} |")
    return "\n".join([where(runs["cascade"]["machine"]), "", *by_deployment, "", *last]) + "\n"


def weights_table(document: dict[str, Any]) -> str:
    """λ over several deployments; 0 and the default are the populations of the comparison in the same room."""
    compared = json.loads((ROOT / "results/demo_methods.json").read_text(encoding="utf-8"))["runs"]
    default = compared["cascade"]
    runs = {0.0: compared["pp2e"], 0.2: default}
    runs |= {float(name.removeprefix("weight-")): run for name, run in document["runs"].items()}
    count = len(next(iter(default["metrics"]["coverage"].values())))
    lines = [
        where(next(iter(document["runs"].values()))["machine"]),
        "",
        f"| λ | {' | '.join(f'coverage after {k + 1}, %' for k in range(count))} | the last less the default's "
        "| distance between explorers after the last | episodes that found the goal |",
        "|---|" + "---|" * (count + 3),
    ]
    for weight, run in sorted(runs.items()):
        cells = [_interval(over_seeds(run, "coverage", k), 100.0) for k in range(count)]
        cells += [
            "" if run is default else _interval(over_seeds(run, "coverage", -1, default), 100.0),
            _interval(over_seeds(run, "deployed_distance", -1), digits=2),
            _interval(over_seeds(run, "rewarding_episodes@reward", -1), digits=0),
        ]
        lines.append(f"| {weight:g} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def whole_table(document: dict[str, Any]) -> str:
    """CASCADE with a model trained on whole episodes, beside the one of the comparison, and the gain seed by seed."""
    compared = json.loads((ROOT / "results/fourrooms_forty.json").read_text(encoding="utf-8"))["runs"][
        "cascade"
    ]
    whole = document["runs"]["cascade"]
    lines = [
        where(whole["machine"]),
        "",
        "| CASCADE after 5 deployments | coverage, % | episodes that found the goal | zero-shot success, % "
        "| seconds |",
        "|---|---|---|---|---:|",
    ]
    columns = (("coverage", 100.0, 1), ("rewarding_episodes@reward", 1.0, 0), ("success@reward", 100.0, 1))
    rows: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
        "sequences of 40, 7,000 steps of the model": (compared, None),
        "whole episodes, 3,000 steps": (whole, None),
        "the second less the first": (whole, compared),
    }
    for name, (run, less) in rows.items():
        cells = [
            _interval(over_seeds(run, metric, -1, less), unit, digits) for metric, unit, digits in columns
        ]
        seconds = "" if less else f"{sum(sum(phase) for phase in run['seconds'].values()):.0f}"
        lines.append(f"| {' | '.join([name, *cells, seconds])} |")
    return "\n".join(lines) + "\n"


def first_views_table(document: dict[str, Any]) -> str:
    """What models of first views alone came to, on views that they were not trained on."""
    lines = [
        where(document["machine"]),
        "",
        "| categoricals x classes | prior | nats a view | of it the KL | goals in views drawn, % "
        "| recognised where there is one, % | made up where there is none, % |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for one in document["models"]:
        last = one["held_out"][-1]
        cells = (
            f"{one['stoch']} x {one['classes']}",
            one["prior"],
            f"{last['loss']:.1f}",
            f"{last['kl']:.1f}",
            *(f"{100 * last[name]:.1f}" for name in ("goals_drawn", "goals_recognised", "goals_made_up")),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


SEARCHES = (
    "| who searches | success, % | lost, of which | goal never in sight | in sight in the last 20 steps only "
    "| rooms entered | steps that show nothing new, % |\n|---|---:|---:|---:|---:|---:|---:|"
)


def _searches(name: str, found: dict[str, Any]) -> str:
    """How one searcher's episodes ended."""
    cells = (
        name,
        f"{100 * found['success']:.0f}",
        f"{found['lost']}",
        f"{found['lost_unseen']}",
        f"{found['lost_seen_late']}",
        f"{found['rooms_of_the_lost']:.1f}",
        f"{100 * found['lost_steps_without_news']:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def search_table(document: dict[str, Any]) -> str:
    """How searches for the goal ended, and what the model expects in those that were lost."""
    lines = [
        SEARCHES,
        *(_searches(name, document[name]) for name in ("scripted", "policy")),
        "",
        "| steps of the policy's lost episodes | KL of views with something new | KL of views with nothing new "
        "| views with something new, % |",
        "|---|---:|---:|---:|",
    ]
    for row in document["policy"]["surprise_of_the_lost"]:
        low, high = row["steps"]
        cells = (
            f"{row['kl']['news']:.2f}",
            f"{row['kl']['no_news']:.2f}",
            f"{100 * row['share_of_news']:.0f}",
        )
        lines.append(f"| {low} to {high - 1} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def searches_table(document: dict[str, Any]) -> str:
    """How searches ended, of one policy for each seed; the other seeds' records lie beside this one."""
    lines = [SEARCHES, _searches("scripted", document["scripted"])]
    for path in sorted((ROOT / "results/fourrooms_search").glob("*.json")):
        policy = json.loads(path.read_text(encoding="utf-8"))["policy"]
        lines.append(_searches(f"policy, {path.stem.replace('-', ' ')}", policy))
    return "\n".join(lines) + "\n"


def foresight_table(document: dict[str, Any]) -> str:
    """How often a goal comes into view, is expected and is recognised, by how much of a view is new."""
    kinds = ("learned", "new")
    columns = [f"{kind}: {what}" for kind in kinds for what in ("came", "expected", "recognised", "KL")]
    lines = [
        where(document["machine"]),
        "",
        f"| new cells | {' | '.join(columns)} |",
        "|---|" + "---:|" * len(columns),
    ]
    for rows in zip(*(document[kind]["views"] for kind in kinds), strict=True):
        low, high = rows[0]["new_cells"]
        cells = [
            f"{row[name]:.{digits}f}"
            for row in rows
            for name, digits in (("came", 4), ("expected", 4), ("recognised", 4), ("kl", 2))
        ]
        lines.append(
            f"| {low} to {high} | {' | '.join(cells)} |" if high else f"| none | {' | '.join(cells)} |"
        )
    return "\n".join(lines) + "\n"


def over_seeds(
    run: dict[str, Any], metric: str, deployment: int, less: dict[str, Any] | None = None
) -> tuple[float, float, float]:
    """Mean over seeds and its interval; of the difference from another run's, seed by seed, if given."""
    values = {seed: series[deployment] for seed, series in run["metrics"][metric].items()}
    if less is not None:
        other = less["metrics"][metric]
        values = {seed: value - other[seed][deployment] for seed, value in values.items()}
    return mean_interval(np.array([[value] for value in values.values()]))


def _interval(found: Sequence[float], unit: float = 1.0, digits: int = 1) -> str:
    """A mean and its interval."""
    mean, low, high = (f"{unit * value:.{digits}f}" for value in found)
    return f"{mean} [{low}, {high}]"
