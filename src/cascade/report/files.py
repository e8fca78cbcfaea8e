"""What lies beside the page: every figure as PNG and SVG, and its numbers as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from PIL import Image

from cascade.report.style import RC

DPI = 120
RC_PAGE = RC | {"font.size": 9, "axes.titlesize": 10, "axes.titlepad": 6, "axes.titley": 1.0}


@dataclass
class Files:
    """A folder of figures under the page, and the links to what is in it."""

    root: Path
    """where the page is"""
    folder: str
    """relative to it"""
    written: list[str] = field(default_factory=list)

    def figure(self, name: str, figure: Figure) -> list[str]:
        """PNG and SVG; the same figure gives the same files."""
        with rc_context(RC_PAGE):
            paths = [self._path(f"{name}.png"), self._path(f"{name}.svg")]
            figure.savefig(self.root / paths[0], dpi=DPI, metadata={"Software": None})
            figure.savefig(self.root / paths[1], metadata={"Date": None})
        return paths

    def image(self, name: str, image: np.ndarray) -> list[str]:
        """A picture of pixels, as PNG."""
        path = self._path(f"{name}.png")
        Image.fromarray(image).save(self.root / path)
        return [path]

    def numbers(self, name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
        """A table, as CSV with every digit."""
        path = self._path(f"{name}.csv")
        with (self.root / path).open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(header)
            writer.writerows(rows)
        return [path]

    def _path(self, file: str) -> str:
        (self.root / self.folder).mkdir(parents=True, exist_ok=True)
        path = f"{self.folder}/{file}"
        self.written.append(path)
        return path


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Figure, np.ndarray]:
    """A figure in the house style, and its axes as an array [rows, columns]."""
    with rc_context(RC_PAGE):
        figure = Figure(figsize=(width, height))
        axes = figure.subplots(rows, columns, squeeze=False)
        side, foot = 0.62 / width, 0.5 / height
        figure.subplots_adjust(
            left=side, right=1 - 0.2 / width, bottom=foot, top=1 - 0.38 / height, wspace=0.32, hspace=0.55
        )
    return figure, axes
