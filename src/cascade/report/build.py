"""`cascade report`: run folders in, one page and its figures out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cascade.errors import CascadeError, SettingError, disk_errors
from cascade.report.compare import Group, Member, compare, group
from cascade.report.compare_page import compare_part
from cascade.report.draw import Work, draw
from cascade.report.html import Part, as_script, select, tag, text
from cascade.report.load import read_run
from cascade.report.style import EXPLORERS, NAMES

ASSETS = Path(__file__).parent / "assets"
SCRIPTS = ("base.js", "charts.js", "explorers.js", "page.js")
PICTURES, NUMBERS = 18_000_000, 400_000
"""Bytes of pictures and numbers of learning curves on a page, over all runs: it stays below 30 MB."""


@dataclass(frozen=True)
class Built:
    """What was written."""

    page: Path
    figures: list[Path]
    runs: list[str]
    notes: list[str]
    records: dict[str, list[dict[str, Any]]]
    """results by method; where runs of one method differ, by its folder too"""


def build(paths: Sequence[Path], out: Path) -> Built:
    """Write index.html and figures/ into `out`."""
    names = short_names(paths)
    folders = _folders(names)
    for path in paths:
        if not (path / "run.json").is_file():
            read_run(path)  # says what is wrong before anything is written
    _make(out)
    points, budget = _points(len(paths)), PICTURES // len(paths)
    works = [
        Work(str(path), name, f"run-{i}", f"figures/{folder}", str(out), points, budget)
        for i, (path, name, folder) in enumerate(zip(paths, names, folders, strict=True))
    ]
    with disk_errors(out):
        drawn = draw(works)
        members, parts = [one.member for one in drawn], [one.part for one in drawn]
        groups = group(members)
        found = compare(groups) if len(members) > 1 else None
        if found:
            parts.insert(0, compare_part(groups, found, out))
        page = out / "index.html"
        page.write_text(_document(members, parts), encoding="utf-8")
    figures = [out / file for part in parts for file in part.files]
    notes = [note for one in drawn for note in one.notes]
    return Built(page, figures, [m.name for m in members], notes, _records(groups))


def _records(groups: Sequence[Group]) -> dict[str, list[dict[str, Any]]]:
    several = len({one.environment for one in groups}) > 1
    return {f"{one.label}, {one.environment}" if several else one.label: one.records for one in groups}


def _make(out: Path) -> None:
    try:
        (out / "figures").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CascadeError(
            f"--out: got {str(out)!r}, expected a folder that can be created ({error.strerror})"
        ) from error


def _points(runs: int) -> int:
    """Points of one learning curve: a run has some hundred curves."""
    return max(40, min(400, NUMBERS // (200 * runs)))


def short_names(paths: Sequence[Path]) -> list[str]:
    """What each run is called: as much of the end of its path as no other has."""
    every = [path.resolve().parts for path in paths]

    def name(own: tuple[str, ...]) -> str:
        ends = (own[-length:] for length in range(1, len(own) + 1))
        unique = (end for end in ends if sum(other[-len(end) :] == end for other in every) == 1)
        end = next(unique, None)
        if end is None:
            raise SettingError("RUN", str(Path(*own)), "every run once")
        return str(Path(*end))

    return [name(own) for own in every]


def _folders(names: Sequence[str]) -> list[str]:
    """A folder for each run's figures: its name, numbered where two come out the same."""
    plain = [re.sub(r"[^\w.-]+", "-", name).strip(".-") or "run" for name in names]
    return [name if plain.count(name) == 1 else f"{name}-{i + 1}" for i, name in enumerate(plain)]


def _document(members: Sequence[Member], parts: Sequence[Part]) -> str:
    """The page: a bar, the views of which one is shown, the data, the script."""
    names = [f"{NAMES.get(m.method, m.method)} · {m.name}" for m in members]
    idents = ([("compare", "Comparison")] if len(parts) > len(members) else []) + [
        (f"run-{i}", name) for i, name in enumerate(names)
    ]
    shown = [
        tag("article", *part.html, id=ident, class_="view", hidden=bool(position))
        for position, ((ident, _), part) in enumerate(zip(idents, parts, strict=True))
    ]
    figures: dict[str, Any] = {}
    for part in parts:
        figures |= part.figures
    title = "Comparison" if len(members) > 1 else names[0]
    chooser = select("view", "Show", idents) if len(idents) > 1 else ""
    theme = tag("button", "Dark", type="button", id="theme", aria_pressed="false")
    bar = tag(
        "div",
        tag("b", "cascade", class_="brand"),
        tag("form", chooser, class_="controls"),
        theme,
        class_="bar",
    )
    missing = tag("noscript", tag("p", "The figures are drawn by the page's own script, which is switched off. ",
                                  "They are also in the folder figures/ beside it.", class_="note"))  # fmt: skip
    template = (ASSETS / "page.html").read_text(encoding="utf-8")
    filling = {
        "title": text(f"{title} · cascade report"),
        "style": (ASSETS / "page.css").read_text(encoding="utf-8"),
        "bar": bar,
        "body": missing + "".join(shown),
        "data": as_script({"figures": figures, "colors": list(EXPLORERS)}),
        "script": "\n".join((ASSETS / name).read_text(encoding="utf-8") for name in SCRIPTS),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: filling[found[1]], template)
