"""Trees and what is known of them, computed in the plainest way."""

import numpy as np

from cascade.tabular import TreeBelief
from cascade.tabular.posterior import UNKNOWN


def tree_successors(labels: np.ndarray) -> np.ndarray:
    """The tree as a set of triplets: the label that follows each label and action (leaves stay put)."""
    seeds, nodes = labels.shape
    inner = nodes // 2
    following = np.broadcast_to(np.arange(nodes)[:, None], (seeds, nodes, 2)).copy()
    rows = np.arange(seeds)[:, None]
    for action in range(2):
        following[rows, labels[:, :inner], action] = labels[:, 1 + action :: 2]
    return following


def paths_tried(belief: TreeBelief) -> np.ndarray:
    """How many of the 2^L paths the data contain, by seed: as many as leaves that were met."""
    inner = belief.label_at.shape[1] // 2
    return (belief.label_at[:, inner:] != UNKNOWN).sum(axis=1)
