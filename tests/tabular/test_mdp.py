"""The true worlds are what they claim to be."""

import numpy as np
import pytest
from tabular_helpers import tree_successors

from cascade.tabular import Draws
from cascade.tabular.mdp import (
    grid_worlds,
    random_mdps,
    random_trees,
    reachable,
    tree_nodes,
)


@pytest.mark.parametrize("height", [1, 2, 5])
def test_every_node_but_the_root_has_one_parent_and_leaves_stay(height):
    labels = random_trees(Draws.of(range(7)), height)
    following = tree_successors(labels)
    leaves = labels[:, 2**height - 1 :]
    for seed in range(7):
        moves = following[seed][np.setdiff1d(np.arange(tree_nodes(height)), leaves[seed])]
        assert sorted(moves.ravel()) == list(range(1, tree_nodes(height)))
        assert np.array_equal(following[seed, leaves[seed], 0], leaves[seed])


def test_action_leads_to_the_child_it_names():
    labels = random_trees(Draws.of([4]), 2)
    following = tree_successors(labels)[0]
    for position in range(3):
        for action in range(2):
            assert following[labels[0, position], action] == labels[0, 2 * position + 1 + action]


def test_seeds_carry_different_trees():
    assert len(np.unique(random_trees(Draws.of(range(30)), 4), axis=0)) == 30


def test_random_mdps_have_a_few_successors_each():
    transition = random_mdps(Draws.of(range(3)), 9, 2, successors=3)
    assert np.allclose(transition.sum(-1), 1.0)
    assert np.array_equal((transition > 0).sum(-1), np.full((3, 9, 2), 3))


def test_grid_moves_where_nothing_stands_and_slips_as_told():
    transition = grid_worlds(Draws.of([0]), 3, slip=0.2, pillars=0.0)[0]
    centre, up = 4, 1
    assert np.allclose(transition[centre, 0, up], 0.8 + 0.2 / 4)
    assert np.allclose(transition[0, 0, 0], 0.8 + 0.2 * 2 / 4)  # the border stops it, and two of four slips
    assert np.allclose(transition.sum(-1), 1.0)


def test_pillars_block_their_cell_and_nothing_else():
    transition = grid_worlds(Draws.of(range(20)), 6, pillars=1.0)
    inside = reachable(transition, horizon=40)
    odd = np.arange(6) % 2 == 1
    assert np.array_equal(inside, np.tile(~(odd[:, None] & odd).ravel(), (20, 1)))


def test_reachable_counts_the_steps_in_which_one_can_still_act():
    line = np.zeros((1, 4, 1, 4))
    line[0, np.arange(4), 0, np.minimum(np.arange(4) + 1, 3)] = 1.0
    assert reachable(line, horizon=1)[0].tolist() == [True, False, False, False]
    assert reachable(line, horizon=3)[0].tolist() == [True, True, True, False]
