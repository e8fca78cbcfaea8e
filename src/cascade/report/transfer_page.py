"""Zero-shot transfer as a chapter of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from cascade.report import plots
from cascade.report.cards import metric_cards
from cascade.report.files import Files
from cascade.report.html import Chapter, Part, controls, frame, section, select, table, tag
from cascade.report.load import Run, clean
from cascade.report.series import Table, number
from cascade.report.style import COLORS, GRAY

Document = dict[str, Any]
TRANSFER = ("success", "return")
"""Metrics of this chapter; all others are progress."""
POINTS = 120
"""Of each curve on the page; its file has them all."""


def transfer_section(part: Part, run: Run, ident: str, found: list[Table], files: Files) -> Chapter | None:
    """Every task after every deployment, and how its policy was learned."""
    if not found:
        return None
    cards = metric_cards(part, f"{ident}-task", found, COLORS.get(run.method, GRAY), files, "transfer")
    rows = [
        [
            shown.label,
            str(k),
            str(len(shown.at(k))),
            number(i.value, unit),
            number(i.low, unit),
            number(i.high, unit),
        ]
        for shown in found
        for unit in [shown.about.unit]
        for k, i in zip(shown.deployments, shown.intervals(), strict=True)
        if i is not None
    ]
    listed = table(["measure", "deployment", "seeds", "mean", "low", "high"], rows,
                   "Zero-shot results with 95 % bootstrap intervals over seeds")  # fmt: skip
    curves_card = _transfer_curves(part, run, ident, files)
    says = (
        "Tasks named only afterwards: a policy learned from the stored data alone, then tested in the world."
    )
    body = tag("div", *cards, curves_card, class_="cards two" if len(cards) in (2, 4) else "cards") + tag(
        "details", tag("summary", "As a table"), listed
    )
    return "Transfer", section(f"{ident}-transfer", "Zero-shot transfer", says, body)


def _transfer_curves(part: Part, run: Run, ident: str, files: Files) -> str:
    """How the reward head and the behaviour policy learned, where that was kept."""
    sets: dict[str, Document] = {}
    rows: list[list[Any]] = []
    for task, deployment, seed, found in _each_seed(run.transfers):
        steps, values = _logged(found.get("curves"))
        if values:
            title = f"{task}, deployment {deployment}, seed {seed}"
            shown = np.unique(np.linspace(0, len(steps) - 1, min(len(steps), POINTS)).round().astype(int))
            sets[title] = {"x": [steps[i] for i in shown]}
            sets[title] |= {key: clean([y[i] for i in shown]) for key, y in values.items()}
            for key, column in values.items():
                rows += [
                    [task, deployment, seed, step, key, y] for step, y in zip(steps, column, strict=True)
                ]
    if not sets:
        return ""
    names = list(dict.fromkeys(key for found in sets.values() for key in found if key != "x"))
    paths = files.figure("transfer-curves", plots.transfer_learning(sets, names)) + files.numbers(
        "transfer-curves", ["task", "deployment", "seed", "step", "value", "number"], rows
    )
    form = controls(
        select("set", "Task", [(name, name) for name in sets], list(sets)[-1]),
        select("value", "Value", [(name, name.replace("_", " ")) for name in names]),
    )
    says = "The reward head on frozen features, and the policy in imagination."
    alt = "Learning curves of the reward head and the behaviour policy."
    title = "How the policy learned"
    return frame(part, f"{ident}-transfer-curves", "sets", title, says, alt, {"sets": sets}, paths, form)


def _each_seed(transfers: Iterable[Document]) -> Iterator[tuple[Any, Any, str, Document]]:
    """Task, deployment, seed and what is kept of it."""
    for document in transfers:
        seeds = document.get("seeds")
        for seed, found in seeds.items() if isinstance(seeds, dict) else ():
            if isinstance(found, dict):
                yield document.get("task"), document.get("deployment"), seed, found


def _logged(found: Any) -> tuple[list[Any], dict[str, list[Any]]]:
    """Steps, and every list of the same length beside them."""
    steps = found.get("step") if isinstance(found, dict) else None
    if not isinstance(steps, list):
        return [], {}
    columns = {key: y for key, y in found.items() if key != "step" and isinstance(y, list)}
    return steps, {key: y for key, y in columns.items() if len(y) == len(steps) and _numbers_only(y)}


def _numbers_only(column: list[Any]) -> bool:
    """Numbers, or as many of them in every row."""
    try:
        return np.array(column, dtype=float).ndim in (1, 2)
    except (TypeError, ValueError):
        return False
