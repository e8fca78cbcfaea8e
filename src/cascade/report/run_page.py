"""One run as a part of the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cascade.report import curves, plots
from cascade.report.cards import metric_cards
from cascade.report.explorers import explorers_section
from cascade.report.files import Files
from cascade.report.html import Chapter, Part, controls, frame, section, select, table, tag, text
from cascade.report.load import Run, clean
from cascade.report.places import places_section
from cascade.report.series import Table, number, seconds, tables
from cascade.report.style import COLORS, GRAY, NAMES, PHASES
from cascade.report.transfer_page import TRANSFER, transfer_section

Document = dict[str, Any]
TILES = (
    "coverage",
    "success",
    "rewarding_episodes",
    "maximum_return",
    "population_diversity",
    "held_out_loss",
)


def run_part(run: Run, ident: str, root: Path, points: int, budget: int, folder: str) -> Part:
    """The whole run: `points` numbers for a learning curve, `budget` bytes of pictures."""
    part, files = Part(), Files(root, folder)
    found = tables(run.records)
    chapters = [
        _progress(part, run, ident, [t for t in found if t.metric not in (*TRANSFER, "episodes")], files),
        explorers_section(part, run, ident, files, budget),
        places_section(run, ident, files),
        transfer_section(part, run, ident, [t for t in found if t.metric in TRANSFER], files),
        _learning(part, run, ident, files, points),
        _time(part, run, ident, files),
        _settings(run, ident),
    ]
    part.files = files.written
    part.add(_header(run, found), _contents(chapters), *(html for _, html in filter(None, chapters)))
    return part


def _contents(chapters: list[Chapter | None]) -> str:
    """Links to the chapters that there are; a chapter's first id and title are its own."""
    shown = [
        tag("a", text(title), href="#" + html.split('id="', 1)[1].split('"', 1)[0])
        for title, html in filter(None, chapters)
    ]
    return tag("nav", *shown, class_="contents", aria_label="Chapters")


def _header(run: Run, found: list[Table]) -> str:
    name = NAMES.get(run.method, run.method)
    created = str(run.info.get("created", ""))[:16].replace("T", " ")
    seeds = run.seeds
    world, _, options = run.environment.partition("?")
    facts = [
        run.name,
        options.replace("&", ", "),
        f"preset {run.info['preset']}" if run.info.get("preset") else "",
        f"{len(seeds)} seed{'s' * (len(seeds) != 1)}" if seeds else "",
        f"made {created}" if created else "",
    ]
    title = text(name) + (f" {tag('span', 'in')} {text(world)}" if world else "")
    words = tag("p", " · ".join(text(fact) for fact in facts if fact), class_="facts")
    notes = "".join(tag("p", text(note), class_="note") for note in run.notes)
    tiles = tag("dl", *_tiles(run, found), class_="tiles")
    return tag("header", tag("h1", title), words, tiles, notes, class_="run-header")


def _tiles(run: Run, found: list[Table]) -> list[str]:
    """The numbers one asks for first, after the last deployment."""
    tiles = []
    for metric in TILES:
        for shown in [t for t in found if t.metric == metric][:2]:
            last = shown.intervals()[-1]
            if last is not None:
                unit = shown.about.unit
                spread = f"{number(last.low, unit)} to {number(last.high, unit)}"
                detail = spread if len(shown.at(shown.deployments[-1])) > 1 else "one seed"
                tiles.append(_tile(shown.label, number(last.value, unit), detail))
    total = sum(float(phase.get("seconds") or 0) for phase in run.phases)
    if total:
        count = len({phase.get("deployment") for phase in run.phases})
        tiles.append(_tile("Time", seconds(total), f"{count} deployment{'s' * (count != 1)}"))
    return tiles[:6]


def _tile(label: str, value: str, detail: str) -> str:
    return tag("div", tag("dt", text(label)), tag("dd", tag("b", text(value)), tag("small", text(detail))))


def _progress(part: Part, run: Run, ident: str, found: list[Table], files: Files) -> Chapter | None:
    if not found:
        return None
    cards = metric_cards(part, f"{ident}-by", found, COLORS.get(run.method, GRAY), files, "deployments")
    says = (
        "After each deployment and the training that follows: each seed, their mean, and its 95 % interval."
    )
    return "Progress", section(f"{ident}-progress", "Progress", says, tag("div", *cards, class_="cards"))


def _learning(part: Part, run: Run, ident: str, files: Files, points: int) -> Chapter | None:
    found = curves.phases(run.logs)
    cards = []
    for phase in found:
        paths = files.figure(f"curves-{phase.name}", plots.learning(phase)) + files.numbers(
            f"curves-{phase.name}",
            ["seed", "deployment", "step", "value", "explorer", "number"],
            curves.rows(run.logs, phase.name),
        )
        seeds = sorted({seed for by_seed in phase.curves.values() for seed in by_seed})
        form = controls(
            select("value", "Value", [(name, name.replace("_", " ")) for name in phase.curves]),
            select("seed", "Seed", [("all", "all seeds"), *((str(s), str(s)) for s in seeds)],
                   "all" if len(seeds) > 1 else str(seeds[0])),
            tag("label", '<input type="checkbox" name="log"> ', tag("span", "logarithmic"), class_="check"),
        )  # fmt: skip
        data = {"starts": list(phase.starts.items()), "curves": {
            name: {str(seed): _points(curves.thin(curve, points)) for seed, curve in by_seed.items()}
            for name, by_seed in phase.curves.items()
        }}  # fmt: skip
        says = "Over all deployments; dotted lines mark where new data came in. One seed shows each explorer."
        alt = f"Learning curves of the phase {phase.label}: {', '.join(phase.curves)}."
        cards.append(
            frame(part, f"{ident}-curves-{phase.name}", "curves", phase.label, says, alt, data, paths, form)
        )
    if not cards:
        return None
    says = "What was logged while training, by phase."
    return "Learning", section(f"{ident}-learning", "Learning curves", says, *cards)


def _points(curve: curves.Curve) -> Document:
    return {"x": clean(curve.steps, 6), "y": clean(curve.values.T, 4)}


def _time(part: Part, run: Run, ident: str, files: Files) -> Chapter | None:
    names = plots.phase_order(run.phases)
    deployments = sorted({int(phase.get("deployment", 0)) for phase in run.phases})
    if not names:
        return None
    paths = files.figure("time", plots.durations(run.phases)) + files.numbers(
        "time", ["phase", "deployment", "seconds", "steps"],
        [[p["phase"], p.get("deployment"), p.get("seconds"), p.get("steps")] for p in run.phases],
    )  # fmt: skip
    rows = [
        {
            "name": f"Deployment {k}",
            "parts": clean([plots.phase_seconds(run.phases, name, k) for name in names]),
        }
        for k in deployments
    ]
    totals = [sum(plots.phase_seconds(run.phases, name, k) for k in deployments) for name in names]
    parts = [{"name": curves.PHASES.get(name, name), "color": PHASES.get(name, GRAY)} for name in names]
    listed = ", ".join(f"{p['name']} {seconds(s)}" for p, s in zip(parts, totals, strict=True))
    card = frame(part, f"{ident}-time-bars", "stack", "Time by phase", f"In all: {listed}.",
                 f"Time of each phase in each deployment. In all: {listed}.",
                 {"rows": rows, "parts": parts}, paths)  # fmt: skip
    return "Time", section(f"{ident}-time", "Time", "How long each phase took.", card)


def _settings(run: Run, ident: str) -> Chapter | None:
    flat = {
        **_flat(run.settings),
        **{f"machine.{key}": v for key, v in _flat(run.info.get("machine") or {}).items()},
    }
    if not flat:
        return None
    rows = [[key, value] for key, value in flat.items()]
    search = tag("label", tag("span", "Search settings"),
                 '<input type="search" class="filter" placeholder="population, lr, …">', class_="search")  # fmt: skip
    listed = table(["setting", "value"], rows, "Every setting of this run", numbers_from=9)
    body = tag("details", tag("summary", f"{len(rows)} settings"), search, listed, class_="settings")
    return "Settings", section(
        f"{ident}-settings", "Settings", "What this run was told, and where it was made.", body
    )


def _flat(found: Any, path: str = "") -> dict[str, str]:
    """Nested settings by their dotted names."""
    if isinstance(found, dict):
        return {
            key: value
            for name, inner in found.items()
            for key, value in _flat(inner, f"{path}.{name}" if path else str(name)).items()
        }
    words = ", ".join(map(str, found)) if isinstance(found, list) else str(found)
    return {path: words} if path else {}
