"""Runs, drawn; many of them by several processes.

A process is a fresh interpreter that knows nothing of the program that asks for the report. It reads its share of the
runs from stdin and answers with what it drew on stdout, both as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cascade.report.compare import Member
from cascade.report.html import Part
from cascade.report.load import read_run
from cascade.report.run_page import run_part

ALONE = 3
"""Runs that are drawn in this process; more are shared among several."""
MOST = 8
"""Processes."""
CODE = (
    "import json, sys; job = json.load(sys.stdin); sys.path[:] = job['path']; "
    "from cascade.report.draw import answer; answer(job['works'])"
)


@dataclass(frozen=True)
class Work:
    """One run to draw, and how much room it has."""

    path: str
    name: str
    ident: str
    folder: str
    root: str
    points: int
    budget: int


class Drawn(NamedTuple):
    """One run as it was drawn."""

    member: Member
    part: Part
    notes: list[str]


def draw(works: Sequence[Work]) -> list[Drawn]:
    """Every run, in order."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = min(cores, len(works), MOST)
    if len(works) <= ALONE or count < 2:
        return [draw_one(work) for work in works]
    shares = [works[first::count] for first in range(count)]
    with ThreadPoolExecutor(count) as pool:
        answers = list(pool.map(_drawn_elsewhere, shares))
    found = [
        answered or [draw_one(work) for work in share]  # an error is raised here, where it is understood
        for share, answered in zip(shares, answers, strict=True)
    ]
    return [found[place % count][place // count] for place in range(len(works))]


def draw_one(work: Work) -> Drawn:
    """A run's part of the page, and its files."""
    run = read_run(Path(work.path), work.name)
    part = run_part(run, work.ident, Path(work.root), work.points, work.budget, work.folder)
    member = Member(run.name, run.method, run.environment, run.settings, run.seeds, run.records)
    return Drawn(member, part, run.notes)


def _drawn_elsewhere(works: Sequence[Work]) -> list[Drawn]:
    """What another process draws; nothing if it fails."""
    job = {"path": sys.path, "works": [asdict(work) for work in works]}
    try:
        done = subprocess.run(
            [sys.executable, "-c", CODE], input=json.dumps(job), capture_output=True, text=True, check=True
        )
        return [Drawn(Member(*one), Part(**part), notes) for one, part, notes in json.loads(done.stdout)]
    except (OSError, subprocess.CalledProcessError, ValueError):
        return []


def answer(works: Sequence[dict[str, Any]]) -> None:
    """The other process: draw these, and say so."""
    drawn = (draw_one(Work(**work)) for work in works)
    json.dump([(one.member, asdict(one.part), one.notes) for one in drawn], sys.stdout)
