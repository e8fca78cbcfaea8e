"""The true worlds: binary trees, random stochastic MDPs and grid worlds, one per seed, as arrays.

Trees. The nodes of a tree of height L have *positions* in heap order: the root is 0, action a leads from
position i to 2i + 1 + a, and the last 2^L positions are leaves. What the learner observes are *labels*:
each seed's tree carries the labels 0..2^(L+1)-2 in a random order, with label 0 at the root. A labeling
is a deterministic MDP, and every connectivity of labelled complete binary trees is one labeling.
"""

import numpy as np
from jaxtyping import Bool, Float, Int

from cascade.tabular.noise import Draws

Labels = Int[np.ndarray, "S N"]
Transition = Float[np.ndarray, "S N A N"]


def tree_nodes(height: int) -> int:
    """2^(L+1) - 1 nodes."""
    return 2 ** (height + 1) - 1


def random_trees(draws: Draws, height: int) -> Labels:
    """One uniformly labelled binary tree per seed: the label at every position."""
    below_root = draws.permutation(tree_nodes(height) - 1) + 1
    return np.pad(below_root, ((0, 0), (1, 0)))


def random_mdps(draws: Draws, states: int, actions: int, successors: int = 3) -> Transition:
    """Stochastic MDPs: every (s, a) leads to a few random states with uniform-Dirichlet odds."""
    successors = min(successors, states)
    order = np.argsort(draws.at(0).uniform(states, actions, states), axis=-1)[..., :successors]
    odds = draws.at(1).dirichlet(np.ones(order.shape))
    transition = np.zeros((len(draws.keys), states, actions, states))
    np.put_along_axis(transition, order, odds, axis=-1)
    return transition


_MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))


def grid_worlds(draws: Draws, side: int, slip: float = 0.1, pillars: float = 0.5) -> Transition:
    """Grids with random pillars: a move into one stays, and with odds `slip` the move is a random one.

    Pillars stand only where row and column are both odd, so they never cut the grid in two.
    """
    odd = np.arange(side) % 2 == 1
    wall = (draws.uniform(side, side) < pillars) & odd[:, None] & odd
    padded = np.pad(wall, ((0, 0), (1, 1), (1, 1)), constant_values=True)
    cells = np.arange(side * side).reshape(side, side)
    moved = np.zeros((len(draws.keys), side * side, 4, side * side))
    for action, (down, right) in enumerate(_MOVES):
        blocked = padded[:, 1 + down : 1 + down + side, 1 + right : 1 + right + side]
        target = np.where(blocked, cells, cells + down * side + right).reshape(len(draws.keys), -1)
        np.put_along_axis(moved[:, :, action], target[..., None], 1.0, axis=-1)
    return (1.0 - slip) * moved + slip * moved.mean(axis=2, keepdims=True)


def reachable(transition: Transition, horizon: int) -> Bool[np.ndarray, "S N"]:
    """States in which some policy can act: reached from state 0 in fewer than `horizon` steps."""
    edges = (transition > 0.0).any(axis=2)
    inside = np.zeros(transition.shape[:2], dtype=bool)
    inside[:, 0] = True
    for _ in range(horizon - 1):
        inside |= (inside[:, :, None] & edges).any(axis=1)
    return inside
