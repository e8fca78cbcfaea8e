"""State coverage: which share of the cells that can be reached was visited, on held-out levels.

Axes: P explorers, K levels, W and H cells.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Integer


def split_episodes(total: int, population: int) -> tuple[int, ...]:
    """Episodes of each explorer, when every method has the same `total`: even, the first take the rest."""
    if population < 1 or total < 0:
        raise ValueError(
            f"episodes: got {total} for {population} explorers, expected 0 or more for 1 or more"
        )
    each, rest = divmod(total, population)
    return tuple(each + (explorer < rest) for explorer in range(population))


def level_coverage(
    visits: Integer[np.ndarray, "P K W H"] | Bool[np.ndarray, "P K W H"], reachable: Bool[np.ndarray, "K W H"]
) -> Float[np.ndarray, " K"]:
    """Share of each level's reachable cells that any explorer visited."""
    cells = _reachable_cells(reachable)
    seen = (visits > 0).any(axis=0) & reachable
    return seen.sum(axis=(1, 2)) / cells


def coverage(
    visits: Integer[np.ndarray, "P K W H"] | Bool[np.ndarray, "P K W H"], reachable: Bool[np.ndarray, "K W H"]
) -> float:
    """Coverage of the whole population: union over explorers, mean over levels."""
    return float(level_coverage(visits, reachable).mean())


def _reachable_cells(reachable: np.ndarray) -> np.ndarray:
    """How many cells of each level can be reached; a level without any has no coverage."""
    cells = np.asarray(reachable.sum(axis=(1, 2)))
    if not len(cells) or not cells.all():
        raise ValueError("reachable: expected at least one level, and one reachable cell in every level")
    return cells
