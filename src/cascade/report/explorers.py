"""What the explorers did: where they went, how they differ, what they and the model saw."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from cascade.metrics.coverage import coverage
from cascade.report import plots
from cascade.report.files import Files
from cascade.report.html import Chapter, Part, controls, frame, section, select, tag
from cascade.report.load import Run, list_measures, read_measure
from cascade.report.pictures import LEVELS, Album, contact_sheet, is_picture, measure
from cascade.report.predictions import stack

Document = dict[str, Any]
Measures = dict[tuple[int, int], dict[str, np.ndarray]]
WORDS = {
    "visits": (
        "Cells visited",
        "Stronger colour, more visits (logarithmic). The small maps choose one explorer.",
        "How often each cell of the level was visited.",
    ),
    "paths": (
        "Trajectories",
        "One episode of each explorer on the level's picture; rings mark starts, dots mark ends.",
        "The paths of the explorers drawn on the level.",
    ),
    "matrix": (
        "How different they are",
        "Distance between the states that two explorers visit: the larger, the further apart.",
        "A matrix of distances between explorers.",
    ),
    "films": (
        "Filmstrips",
        "Each explorer from the same start. Play, or move the slider; the strips below show every frame.",
        "Frames of one episode of each explorer, side by side.",
    ),
    "open_loop": (
        "What the model imagines",
        "What happened against what the model predicted; from the coloured mark on, it no longer looks.",
        "Open-loop predictions of the world model against what happened.",
    ),
}
"""Of each figure: its title, one sentence, and words for those who do not see it."""


def explorers_section(part: Part, run: Run, ident: str, files: Files, budget: int) -> Chapter | None:
    """The chapter, as far as `budget` bytes go: whole seeds first, of each the last deployment before others."""
    shown, kept, album = _within(run, budget)
    if not shown:
        return None
    part.figures[f"{ident}-explorers"] = {
        "measures": [{"seed": seed, "deployment": k} | shown[seed, k] for seed, k in kept],
        "pictures": album.uris,
    }
    cards = [
        _map(part, ident, kept, files),
        _paths(part, ident, kept, files),
        _matrix(part, ident, kept, files),
        _films(part, ident, kept, files),
        _open_loop(part, ident, kept, files),
    ]
    cards = [card for card in cards if card]
    if not cards:
        return None
    says = "On held-out levels. The choice below holds for every figure of this chapter."
    body = _choice(ident, kept) + tag("div", *cards, class_="cards")
    return "Explorers", section(f"{ident}-explorers-chapter", "What the explorers do", says, body)


def _within(run: Run, budget: int) -> tuple[dict[tuple[int, int], Document], Measures, Album]:
    """As many measures as the budget allows, for the page and as arrays; the first is always there."""
    files, album, size = list_measures(run), Album(), 0
    shown: dict[tuple[int, int], Document] = {}
    kept: Measures = {}
    for key in sorted(files, key=lambda key: _importance(key, files)):
        before, pictures = album.size, len(album.uris)
        arrays = read_measure(run, files[key])
        entry = measure(arrays, album)
        size += album.size - before + sum(len(e["data"]) for e in entry.values() if _packed(e))
        if size > budget and shown:
            words = f"{len(shown)} of {len(files)} measures are drawn on this page; the rest stay in the run folder."
            run.notes.append(words)
            album.forget(pictures)
            break
        if entry:
            shown[key], kept[key] = entry, arrays
    return shown, dict(sorted(kept.items())), album


def _importance(key: tuple[int, int], keys: Collection[tuple[int, int]]) -> tuple[int, int, int]:
    """Seed by seed; of each the last deployment before the others."""
    seed, deployment = key
    last = max(k for s, k in keys if s == seed)
    return seed, (0 if deployment == last else 1), deployment


def _packed(entry: Any) -> bool:
    return isinstance(entry, dict) and "data" in entry


def _choice(ident: str, kept: Measures) -> str:
    """One row of controls for all figures of the chapter."""
    seeds = sorted({seed for seed, _ in kept})
    deployments = sorted({k for _, k in kept})
    population = max((_population(arrays) for arrays in kept.values()), default=0)
    levels = max((_levels(arrays) for arrays in kept.values()), default=0)
    choices = [
        select("seed", "Seed", [(str(s), str(s)) for s in seeds]),
        select("deployment", "Deployment", [(str(k), str(k)) for k in deployments], str(deployments[-1])),
    ]
    if levels:
        choices.append(select("level", "Level", [(str(i), str(i + 1)) for i in range(levels)]))
    if population:
        each = [(str(i), f"{i + 1}") for i in range(population)] if population > 1 else []
        choices.append(select("explorer", "Explorer", [("all", "all"), *each]))
    return controls(*choices, link=f"{ident}-explorers")


def _population(arrays: dict[str, np.ndarray]) -> int:
    return max((len(arrays[name]) for name in ("visits", "paths", "films") if name in arrays), default=0)


def _levels(arrays: dict[str, np.ndarray]) -> int:
    return min(
        LEVELS, max((arrays[name].shape[1] for name in ("visits", "paths") if name in arrays), default=0)
    )


def _linked(
    part: Part, ident: str, name: str, files: list[str], alt: str | None = None, wide: bool = False
) -> str:
    """A figure that follows the chapter's controls."""
    title, says, described = WORDS[name]
    data = {"link": f"{ident}-explorers"}
    return frame(part, f"{ident}-{name}", name, title, says, alt or described, data, files, wide=wide)


def _map(part: Part, ident: str, kept: Measures, files: Files) -> str:
    having = {key: a for key, a in kept.items() if "visits" in a and _fits(a)}
    if not having:
        return ""
    paths: list[str] = []
    first, _ = _last(having)
    last = having[_last(having)]
    rows = [a["visits"][:, 0] for (s, _), a in having.items() if s == first]
    rows = [counts for counts in rows if counts.shape == last["visits"][:, 0].shape]
    floor = last["reachable"][0] if "reachable" in last else None
    paths += files.image("visits", contact_sheet(np.stack(rows), floor))
    paths += files.numbers("visits", ["seed", "deployment", "explorer", "level", "x", "y", "visits"],
                           (row for key, a in having.items() for row in _cells(key, a["visits"])))  # fmt: skip
    alt = WORDS["visits"][2]
    with_cells = [
        (key, a) for key, a in having.items() if "reachable" in a and a["reachable"].any(axis=(1, 2)).all()
    ]
    if with_cells:
        (seed, k), arrays = with_cells[-1]
        share = coverage(arrays["visits"].astype(np.int64), arrays["reachable"].astype(bool))
        alt += f" Over all levels, seed {seed} covered {100 * share:.0f} % after deployment {k}."
    return _linked(part, ident, "visits", paths, alt)


def _fits(arrays: dict[str, np.ndarray]) -> bool:
    return "reachable" not in arrays or arrays["visits"].shape[1:] == arrays["reachable"].shape


def _cells(key: tuple[int, int], visits: np.ndarray) -> list[list[int]]:
    where = np.argwhere(visits)
    return [[*key, *index, int(visits[tuple(index)])] for index in where.tolist()]


def _paths(part: Part, ident: str, kept: Measures, files: Files) -> str:
    having = {key: a for key, a in kept.items() if "paths" in a and a["paths"].shape[-1] == 2}
    if not having:
        return ""
    last = having[_last(having)]
    paths = []
    if is_picture(last.get("pictures")) and "reachable" in last:
        shown = min(4, len(last["pictures"]), last["paths"].shape[1])
        figure = plots.trajectories(last["pictures"][:shown], last["paths"], last["reachable"].shape[1:])
        paths += files.figure("trajectories", figure)
    header = ["seed", "deployment", "explorer", "level", "time", "x", "y"]
    paths += files.numbers(
        "trajectories", header, (row for key, a in having.items() for row in _steps(key, a))
    )
    return _linked(part, ident, "paths", paths)


def _steps(key: tuple[int, int], arrays: dict[str, np.ndarray]) -> list[list[int]]:
    """Paths of the levels that are drawn, cell by cell."""
    walks = arrays["paths"][:, : max(1, len(arrays.get("pictures", ())))]
    where = np.argwhere((walks >= 0).all(axis=-1))
    return [[*key, *index, *walks[tuple(index)].tolist()] for index in where.tolist()]


def _last(keys: Collection[tuple[int, int]]) -> tuple[int, int]:
    """The first seed's last deployment."""
    first = min(seed for seed, _ in keys)
    return first, max(k for seed, k in keys if seed == first)


def _matrix(part: Part, ident: str, kept: Measures, files: Files) -> str:
    square = {key: a["distance"] for key, a in kept.items() if "distance" in a and _square(a["distance"])}
    having = {key: matrix for key, matrix in square.items() if len(matrix) > 1}
    if not having:
        return ""
    size = having[_last(having)].shape
    drawn = {key: matrix for key, matrix in having.items() if matrix.shape == size}
    deployments = sorted({k for _, k in drawn})
    means = {k: np.mean([d for (_, j), d in drawn.items() if j == k], axis=0) for k in deployments}
    rows = (
        [*key, i, j, float(d[i, j])]
        for key, d in having.items()
        for i in range(len(d))
        for j in range(len(d))
    )
    paths = files.figure("diversity", plots.matrices(means)) + files.numbers(
        "diversity", ["seed", "deployment", "explorer", "other", "distance"], rows
    )
    return _linked(part, ident, "matrix", paths)


def _square(matrix: np.ndarray) -> bool:
    return matrix.shape[0] == matrix.shape[1]


def _films(part: Part, ident: str, kept: Measures, files: Files) -> str:
    having = {key: a["films"] for key, a in kept.items() if is_picture(a.get("films"))}
    if not having:
        return ""
    last = _last(having)
    paths = files.image("films", stack([np.concatenate(list(film), axis=1) for film in having[last]], gap=4))
    return _linked(part, ident, "films", paths, wide=True)


def _open_loop(part: Part, ident: str, kept: Measures, files: Files) -> str:
    having = {key: a["open_loop"] for key, a in kept.items() if is_picture(a.get("open_loop"))}
    if not having:
        return ""
    seed, k = _last(having)
    paths = files.image("open-loop", having[seed, k])
    return _linked(part, ident, "open_loop", paths, wide=True)
