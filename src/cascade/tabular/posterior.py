"""What the learner believes: a posterior over trees, and Dirichlet posteriors over stochastic MDPs.

Beliefs are values: `observe` returns a new belief. Real and imagined data enter the same way, which is
how Algorithm 2 conditions its samples on both.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from cascade.tabular.mdp import Labels, Transition, tree_nodes
from cascade.tabular.noise import Draws

Counts = Float[np.ndarray, "S N A"]
UNKNOWN = -1


@dataclass(frozen=True)
class TreeBelief:
    """Uniform over all labelled trees of one height that agree with the data."""

    label_at: Labels  # the label seen at each position, or UNKNOWN
    counts: Counts  # how often each (label, action) was tried

    @classmethod
    def prior(cls, seeds: int, height: int) -> "TreeBelief":
        """Only the root's label is known."""
        label_at = np.full((seeds, tree_nodes(height)), UNKNOWN)
        label_at[:, 0] = 0
        return cls(label_at, np.zeros((seeds, tree_nodes(height), 2)))

    def observe(
        self, path: Int[np.ndarray, "S H"], labels: Int[np.ndarray, "S H"], times: int
    ) -> "TreeBelief":
        """One path from root to leaf, as positions and the labels met there, played `times` times."""
        if times == 0:
            return self
        label_at, counts = self.label_at.copy(), self.counts.copy()
        np.put_along_axis(label_at, path, labels, axis=1)
        actions = path[:, 1:] - 2 * path[:, :-1] - 1
        counts[np.arange(len(path))[:, None], labels[:, :-1], actions] += times
        return TreeBelief(label_at, counts)

    def sample(self, draws: Draws) -> Labels:
        """A tree from the posterior: labels not seen yet take the open positions in random order."""
        seeds, nodes = self.label_at.shape
        unknown = self.label_at == UNKNOWN
        met = np.zeros((seeds, nodes + 1), dtype=bool)
        np.put_along_axis(met, np.where(unknown, nodes, self.label_at), True, axis=1)
        shuffled = np.argsort(draws.uniform(nodes) + met[:, :nodes], axis=1)  # unseen labels come first
        rank = np.cumsum(unknown, axis=1) - 1
        filling = np.take_along_axis(shuffled, np.maximum(rank, 0), axis=1)
        return np.where(unknown, filling, self.label_at)

    def accuracy(self) -> Float[np.ndarray, "S"]:
        """Fraction of triplets (s, a, s') that all trees in the posterior share.

        A triplet is shared once it was tried. When a single triplet is left its end is the one label
        never met, so it is known as well: this is the paper's `2^L - 1 paths are enough`.
        """
        triplets = self.label_at.shape[1] - 1
        known = (self.label_at[:, 1:] != UNKNOWN).sum(axis=1)
        return np.where(triplets - known <= 1, triplets, known) / triplets


@dataclass(frozen=True)
class DirichletBelief:
    """Independent Dirichlet posteriors over the successors of every (s, a)."""

    seen: Transition  # how often each (s, a, s') was seen
    concentration: float  # of the prior, per successor

    @classmethod
    def prior(cls, seeds: int, states: int, actions: int) -> "DirichletBelief":
        """Every successor is possible, with the weight of one observation spread over all of them."""
        return cls(np.zeros((seeds, states, actions, states)), 1.0 / states)

    @property
    def counts(self) -> Counts:
        """How often each (s, a) was tried."""
        return self.seen.sum(axis=-1)

    def observe(
        self, states: Int[np.ndarray, "S K T"], actions: Int[np.ndarray, "S K H"]
    ) -> "DirichletBelief":
        """K trajectories per seed."""
        seen = self.seen.copy()
        rows = np.arange(len(states))[:, None, None]
        np.add.at(seen, (rows, states[..., :-1], actions, states[..., 1:]), 1.0)
        return replace(self, seen=seen)

    def sample(self, draws: Draws) -> Transition:
        """A stochastic MDP from the posterior."""
        return draws.dirichlet(self.seen + self.concentration)

    def mean(self) -> Transition:
        """The posterior mean."""
        weights = self.seen + self.concentration
        return weights / weights.sum(axis=-1, keepdims=True)
