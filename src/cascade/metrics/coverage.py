"""State coverage: which share of the cells that can be reached was visited, on held-out levels.

Axes: P explorers, K levels, W and H cells, N episodes.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Integer
from scipy.special import gammaln


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


def explorer_coverage(
    visits: Integer[np.ndarray, "P K W H"] | Bool[np.ndarray, "P K W H"], reachable: Bool[np.ndarray, "K W H"]
) -> Float[np.ndarray, " P"]:
    """Coverage of each explorer alone, mean over levels."""
    cells = _reachable_cells(reachable)
    return (((visits > 0) & reachable).sum(axis=(2, 3)) / cells).mean(axis=1)


def expected_coverage(
    seen: Bool[np.ndarray, "N K W H"], reachable: Bool[np.ndarray, "K W H"], episodes: int
) -> float:
    """Coverage that `episodes` of the N recorded ones give on average, over every way to choose them.

    Exact: a cell seen in m of N episodes is missed by n of them with odds C(N - m, n) / C(N, n). It compares
    methods with unequal numbers of episodes on equal terms.
    """
    total = len(seen)
    if not 0 <= episodes <= total:
        raise ValueError(f"episodes: got {episodes}, expected 0 to the {total} recorded")
    cells = _reachable_cells(reachable)
    without = total - np.arange(total + 1)  # episodes that missed a cell, if m saw it
    missed = np.where(
        without >= episodes,
        np.exp(_log_choose(np.maximum(without, episodes), episodes) - _log_choose(np.array(total), episodes)),
        0.0,
    )
    chance = (1.0 - missed)[seen.sum(axis=0)]
    return float(((chance * reachable).sum(axis=(1, 2)) / cells).mean())


def _log_choose(items: np.ndarray, chosen: int) -> np.ndarray:
    return np.asarray(gammaln(items + 1.0) - gammaln(chosen + 1.0) - gammaln(items - chosen + 1.0))


def _reachable_cells(reachable: np.ndarray) -> np.ndarray:
    """How many cells of each level can be reached; a level without any has no coverage."""
    cells = np.asarray(reachable.sum(axis=(1, 2)))
    if not len(cells) or not cells.all():
        raise ValueError("reachable: expected at least one level, and one reachable cell in every level")
    return cells
