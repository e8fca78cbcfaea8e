"""Posteriors: what they draw agrees with what was seen, and they know what can be inferred."""

from itertools import permutations

import numpy as np
import pytest
from scipy import stats
from tabular_helpers import paths_tried, tree_successors

from cascade.tabular import DirichletBelief, Draws, TreeBelief, tree_world
from cascade.tabular.posterior import UNKNOWN


def explored(height: int, steps: int, seeds: int) -> tuple[TreeBelief, np.ndarray]:
    """A belief after some real paths, and the true labels."""
    draws = Draws.of(range(seeds))
    world = tree_world(draws, height)
    belief = world.prior()
    for step in range(steps):
        luck = draws.at(step)
        belief = world.deploy(belief, world.plan(world.sample(belief, luck), belief, luck), 1, luck)
    return belief, world.labels


@pytest.mark.parametrize("steps", [0, 1, 3, 7])
def test_samples_are_trees_consistent_with_the_data(steps):
    belief, truth = explored(3, steps, seeds=40)
    sample = belief.sample(Draws.of(range(40)).at(99))
    assert np.array_equal(np.sort(sample, axis=1), np.tile(np.arange(15), (40, 1)))
    known = belief.label_at != UNKNOWN
    assert np.array_equal(sample[known], truth[known])
    assert known.sum() > 40 * steps
    tried = belief.counts > 0
    assert np.array_equal(tree_successors(sample)[tried], tree_successors(truth)[tried])


def test_samples_are_consistent_with_imagined_data_too():
    belief, _ = explored(3, 1, seeds=20)
    draws = Draws.of(range(20))
    world = tree_world(draws, 3)
    model = world.sample(belief, draws.at(7))
    policy = world.plan(model, belief, draws.at(7))
    imagined = world.imagine(belief, model, policy, 2, draws.at(7))
    again = world.sample(imagined, draws.at(8))
    assert np.array_equal(
        np.take_along_axis(again, policy.path, axis=1), np.take_along_axis(model, policy.path, axis=1)
    )
    assert not np.array_equal(again, model)
    assert np.array_equal(imagined.counts.sum((1, 2)), belief.counts.sum((1, 2)) + 2 * 3)


def test_imagining_leaves_the_real_belief_alone():
    belief, _ = explored(3, 2, seeds=5)
    before = belief.label_at.copy(), belief.counts.copy()
    belief.observe(np.tile([0, 1, 3, 7], (5, 1)), np.tile([0, 1, 2, 3], (5, 1)), 3)
    assert np.array_equal(before[0], belief.label_at)
    assert np.array_equal(before[1], belief.counts)


def test_the_posterior_over_trees_is_uniform():
    seeds = 6000
    belief = TreeBelief.prior(seeds, 2)
    belief = belief.observe(np.tile([0, 1, 3], (seeds, 1)), np.tile([0, 5, 2], (seeds, 1)), 1)
    trees, counts = np.unique(belief.sample(Draws.of(range(seeds))), axis=0, return_counts=True)
    assert len(trees) == 24  # four labels left for four open positions
    assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4])
def test_accuracy_is_the_share_of_triplets_on_which_all_consistent_trees_agree(steps):
    belief, _ = explored(2, steps, seeds=3)
    every = np.array([[0, *rest] for rest in permutations(range(1, 7))])
    for seed in range(3):
        seen = belief.label_at[seed]
        consistent = every[((every == seen) | (seen == UNKNOWN)).all(axis=1)]
        triplets = [
            {(tree[i], a, tree[2 * i + 1 + a]) for i in range(3) for a in range(2)} for tree in consistent
        ]
        assert belief.accuracy()[seed] == pytest.approx(len(set.intersection(*triplets)) / 6)


def test_the_last_leaf_is_known_by_elimination():
    before, _ = explored(3, 6, seeds=4)
    after, _ = explored(3, 7, seeds=4)
    assert (before.accuracy() < 1.0).all()
    assert (after.accuracy() == 1.0).all()
    assert (paths_tried(after) == 7).all()


def test_dirichlet_posterior_concentrates_on_what_was_seen():
    belief = DirichletBelief.prior(1, 3, 2)
    assert np.allclose(belief.mean(), 1 / 3)
    states = np.array([[[0, 1]] * 8 + [[0, 2]] * 2])
    belief = belief.observe(states, np.zeros((1, 10, 1), dtype=np.int64))
    assert belief.counts[0].tolist() == [[10.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    assert np.allclose(belief.mean()[0, 0, 0], np.array([1 / 3, 8 + 1 / 3, 2 + 1 / 3]) / 11)
    many = DirichletBelief(np.tile(belief.seen, (4000, 1, 1, 1)), belief.concentration)
    assert np.allclose(many.sample(Draws.of(range(4000))).mean(0), belief.mean()[0], atol=0.03)
