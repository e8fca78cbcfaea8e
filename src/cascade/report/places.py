"""Figures that only some worlds have: the rooms of a game with everybody's way through them, and Crafter's skills."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from cascade.errors import DAMAGED
from cascade.report.files import RC_PAGE, Files, new_figure
from cascade.report.html import Chapter, links, section, tag, text
from cascade.report.load import Run, list_measures
from cascade.report.plots import grid
from cascade.report.style import COLORS, EXPLORERS, GRAY

NAMES = ("positions", "rooms", "room_pictures", "skills", "skill_names")
Arrays = dict[str, np.ndarray]


def places_section(run: Run, ident: str, files: Files) -> Chapter | None:
    """The chapter, where the run's world has rooms or skills."""
    found = {key: arrays for key, file in list_measures(run).items() if (arrays := _read(run, file))}
    cards = [_rooms(found, ident, files), _skills(run, found, ident, files)]
    if not any(cards):
        return None
    says = "What this world tells beside its observations; learning does not read it."
    return "Places", section(f"{ident}-places", "Places and skills", says, *filter(None, cards))


def _read(run: Run, file: Any) -> Arrays:
    """The arrays that are drawn here; a damaged file is noted elsewhere already."""
    try:
        with np.load(file, allow_pickle=False) as stored:
            return {name: stored[name] for name in NAMES if name in stored.files}
    except DAMAGED:
        return {}


def _rooms(found: dict[tuple[int, int], Arrays], ident: str, files: Files) -> str:
    having = {key: a for key, a in found.items() if _has_rooms(a)}
    if not having:
        return ""
    seed = min(seed for seed, _ in having)
    last = having[seed, max(k for one, k in having if one == seed)]
    rows = (
        [*key, *index[:3], *a["positions"][tuple(index)].tolist()]
        for key, a in having.items()
        for index in np.argwhere(a["positions"][..., 2] >= 0).tolist()
    )
    header = ["seed", "deployment", "explorer", "start", "time", "column", "row", "room"]
    figure = rooms_figure(last["positions"], last["rooms"], last["room_pictures"])
    paths = files.figure("rooms", figure) + files.numbers("rooms", header, rows)
    count = len(
        {int(room) for a in having.values() for room in np.unique(a["positions"][..., 2]) if room >= 0}
    )
    says = (
        f"Where each explorer went, one colour each, after the last deployment. Rooms seen in all: {count}."
    )
    return _card(files, paths, f"{ident}-rooms", "Rooms", says, "The explorers' ways drawn on the rooms.")


def _has_rooms(arrays: Arrays) -> bool:
    """Whether everything is there, in the shape that is drawn."""
    if not {"positions", "rooms", "room_pictures"} <= arrays.keys():
        return False
    positions, pictures = arrays["positions"], arrays["room_pictures"]
    whole = positions.ndim == 4 and positions.shape[-1] == 3 and pictures.ndim == 4
    return whole and len(pictures) == len(arrays["rooms"]) > 0


def rooms_figure(positions: np.ndarray, rooms: np.ndarray, pictures: np.ndarray) -> Figure:
    """Every explorer's positions [P, levels, T, 3] (column, row, room) on the picture of each room."""
    figure, panels = grid(len(rooms), columns=3)
    with rc_context(RC_PAGE):
        for axes, room, picture in zip(panels, rooms.tolist(), pictures, strict=True):
            axes.imshow(picture, interpolation="nearest", alpha=0.6)
            axes.set_axis_off()
            axes.set_title(f"room {room}")
            for explorer, tracks in enumerate(positions):
                color = EXPLORERS[explorer % len(EXPLORERS)]
                for track in tracks:
                    here = np.where((track[:, 2] == room)[:, None], track[:, :2], np.nan).astype(float)
                    axes.plot(here[:, 0], here[:, 1], color=color, linewidth=1.0, marker=".", markersize=1.5)
    return figure


def _skills(run: Run, found: dict[tuple[int, int], Arrays], ident: str, files: Files) -> str:
    having = {key: a for key, a in found.items() if "skills" in a and _named(a)}
    if not having:
        return ""
    last = max(k for _, k in having)
    drawn = [a for (_, k), a in having.items() if k == last]
    names = [str(name) for name in drawn[0]["skill_names"]]
    same = [a["skills"] for a in drawn if len(a["skills"]) == len(names)]
    figure = skills_figure(np.stack(same), names, COLORS.get(run.method, GRAY))
    rows = (
        [*key, str(name), float(value)]
        for key, a in having.items()
        for name, value in zip(a["skill_names"], a["skills"], strict=True)
    )
    paths = files.figure("skills", figure) + files.numbers(
        "skills", ["seed", "deployment", "skill", "per cent"], rows
    )
    says = "Per cent of the whole episodes collected so far in which each skill was unlocked; dots are seeds."
    return _card(files, paths, f"{ident}-skills", "Skills", says, f"Success rate of {len(names)} skills.")


def _named(arrays: Arrays) -> bool:
    names = arrays.get("skill_names")
    return names is not None and names.dtype.kind == "U" and names.shape == arrays["skills"].shape


def skills_figure(success: np.ndarray, names: list[str], color: str) -> Figure:
    """Per cent [seeds, K] of each skill: a bar for the mean, a dot for each seed."""
    figure, axes = new_figure(6.4, 0.8 + 0.2 * len(names))
    panel, places = axes[0, 0], np.arange(len(names))
    with rc_context(RC_PAGE):
        panel.barh(places, success.mean(0), color=color, alpha=0.75)
        for one in success:
            panel.plot(one, places, ".", color=GRAY, markersize=4)
        panel.set_yticks(places, [name.replace("_", " ") for name in names])
        panel.set(xlabel="% of whole episodes", xlim=(0.0, max(1.0, 1.05 * float(success.max()))))
        panel.invert_yaxis()
        figure.subplots_adjust(left=0.3)
    return figure


def _card(files: Files, paths: list[str], ident: str, title: str, says: str, alt: str) -> str:
    """A drawn figure inside the page, which stays whole without the files beside it."""
    data = base64.b64encode((files.root / paths[0]).read_bytes()).decode("ascii")
    image = tag("img", src=f"data:image/png;base64,{data}", alt=alt, style="max-width:100%;height:auto")
    caption = tag("figcaption", tag("h3", text(title)), tag("p", text(says)))
    return tag("figure", caption, image, links(paths), id=ident, class_="card wide")
