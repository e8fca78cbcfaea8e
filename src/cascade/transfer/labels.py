"""What there is to learn from: labels of a task in numbers, and the plain words when it is nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cascade.errors import CascadeError

RARE = 0.1
"""A reward that fewer rows have than this share is rare: sequences are drawn so that it is seen."""


@dataclass(frozen=True)
class Summary:
    """Labels of one task. Rows that begin an episode are not counted: nothing is arrived at there."""

    task: str
    rows: int
    nonzero: int
    minimum: float
    maximum: float
    mean: float
    ends: int
    """of the labels that are not 0, those of a row that ends its episode"""
    size: float
    """root mean square of the labels that are not 0; 1 if all are: the unit that rewards are learned in"""

    @property
    def share(self) -> float:
        """Of rows, how many are worth something."""
        return self.nonzero / max(self.rows, 1)

    @property
    def final(self) -> bool:
        """Whether whatever is worth something ends the episode."""
        return 0 < self.nonzero == self.ends

    @property
    def rare(self) -> bool:
        return 0.0 < self.share < RARE

    @property
    def refusal(self) -> str | None:
        """Why nothing can be learned from these labels, or None."""
        if self.nonzero:
            return None
        return (
            f"all labels of task {self.task} are 0 in the {self.rows} rows: there is nothing to learn, and "
            "random actions are scored; explore more, or bring other labels"
        )

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "nonzero_share": self.share}


def summarise(task: str, pieces: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Summary:
    """Labels in pieces of (labels, whether a row begins an episode, whether it ends one for good), so that they need
    not fit in memory."""
    rows = nonzero = ends = 0
    total = square = 0.0
    minimum, maximum = np.inf, -np.inf
    for labels, is_first, is_terminal in pieces:
        counts = ~np.asarray(is_first)
        values = np.asarray(labels, np.float64)[counts]
        if not np.isfinite(values).all():
            raise CascadeError(f"labels of task {task!r}: some are not finite; fix them and add them again")
        if len(values):
            minimum, maximum = min(minimum, values.min()), max(maximum, values.max())
        rows, nonzero = rows + len(values), nonzero + int(np.count_nonzero(values))
        ends += int(np.count_nonzero(values[np.asarray(is_terminal)[counts]]))
        total, square = total + values.sum(), square + np.square(values).sum()
    if not rows:
        minimum = maximum = 0.0
    size = float(np.sqrt(square / nonzero)) if nonzero else 1.0
    return Summary(
        task, rows, nonzero, float(minimum), float(maximum), float(total / max(rows, 1)), ends, size
    )
