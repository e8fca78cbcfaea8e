"""How different explorers are from each other, and how varied the stored rows are.

Axes: P explorers, K levels, W and H cells, N states, R rows, D numbers of a vector.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Integer, Shaped
from scipy.spatial.distance import cdist, pdist


def visit_distance(visits: Integer[np.ndarray, "P K W H"]) -> Float[np.ndarray, "P P"]:
    """Total variation between the explorers' visit distributions, mean over levels: 0 the same, 1 disjoint.

    A level that one of a pair never entered says nothing about that pair and is left out.
    """
    flat = visits.reshape(*visits.shape[:2], -1).astype(np.float64)
    total = flat.sum(axis=-1)
    share = flat / np.maximum(total, 1.0)[..., None]
    apart = 0.5 * np.abs(share[:, None] - share[None]).sum(axis=-1)
    both = (total[:, None] > 0) & (total[None] > 0)
    return (apart * both).sum(axis=-1) / np.maximum(both.sum(axis=-1), 1)


def mean_distance(vectors: Float[np.ndarray, "P N D"]) -> Float[np.ndarray, "P P"]:
    """Euclidean distance between the explorers' mean visited vectors."""
    means = vectors.mean(axis=1, dtype=np.float64)
    return cdist(means, means)


def population_diversity(distance: Float[np.ndarray, "P P"]) -> float:
    """Mean distance over pairs of explorers; 0 for one explorer."""
    count = len(distance)
    return float(distance.sum() - np.trace(distance)) / (count * (count - 1)) if count > 1 else 0.0


def dataset_diversity(rows: Shaped[np.ndarray, "R ..."], sample: int = 512, seed: int = 0) -> float:
    """Mean Euclidean distance over pairs of a fixed random sample of rows.

    The same number of rows and the same seed give the same sample, so datasets are compared like with like.
    """
    if len(rows) < 2:
        return 0.0
    chosen = np.random.default_rng(seed).choice(len(rows), min(sample, len(rows)), replace=False)
    vectors = rows[np.sort(chosen)].reshape(len(chosen), -1).astype(np.float64)
    return float(pdist(vectors).mean())
