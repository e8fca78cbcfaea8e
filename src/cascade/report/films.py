"""Films side by side: several of one length or another in one grid, each with its label under it."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from cascade.report.predictions import enlarge, shrink
from cascade.report.style import INK

SIDE, LABEL, GAP = 144, 18, 6
"""Pixels: the longer side of each film, the line under it, and the room around it."""
MOST = 200
"""Frames of a film; longer ones are shown in time lapse."""


def grid(films: Sequence[np.ndarray], labels: Sequence[str], most: int = MOST) -> np.ndarray:
    """Films uint8 [T, height, width, 3] as one, uint8 [at most `most`, height, width, 3].

    All run at the same speed; one that ends before the others stays at its last frame.
    """
    if len(films) != len(labels) or not films:
        raise ValueError(f"{len(films)} films and {len(labels)} labels, expected as many, and one at least")
    longest = max(len(film) for film in films)
    times = np.linspace(0, longest - 1, min(longest, most)).round().astype(int)
    tiles = [np.stack([sized(film[min(t, len(film) - 1)]) for t in times]) for film in films]
    height, width = (max(tile.shape[axis] for tile in tiles) for axis in (1, 2))
    columns = ceil(sqrt(len(films)))
    lines = ceil(len(films) / columns)
    cell = (width + GAP, height + LABEL + GAP)
    paper = _paper(labels, columns, lines, cell)
    whole = np.repeat(paper[None], len(times), axis=0)
    for i, tile in enumerate(tiles):
        line, column = divmod(i, columns)
        top, left = GAP + line * cell[1], GAP + column * cell[0] + (width - tile.shape[2]) // 2
        whole[:, top : top + tile.shape[1], left : left + tile.shape[2]] = tile
    return whole


def sized(frame: np.ndarray) -> np.ndarray:
    """About SIDE pixels on the longer side."""
    return shrink(enlarge(frame, SIDE), SIDE)


def _paper(labels: Sequence[str], columns: int, lines: int, cell: tuple[int, int]) -> np.ndarray:
    """The white page with every label at its place."""
    page = Image.new("RGB", (GAP + columns * cell[0], GAP + lines * cell[1]), "white")
    pen = ImageDraw.Draw(page)
    for i, label in enumerate(labels):
        line, column = divmod(i, columns)
        middle = GAP + column * cell[0] + (cell[0] - GAP) // 2
        under = (line + 1) * cell[1] - LABEL // 2 - GAP // 2
        pen.text((middle, under), label, fill=INK, font=ImageFont.load_default(12), anchor="mm")
    return np.asarray(page)
