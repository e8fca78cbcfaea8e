"""Plans are optimal in the model they were made in."""

from itertools import product

import numpy as np
import pytest
from tabular_helpers import tree_successors

from cascade.tabular import Draws
from cascade.tabular.mdp import random_mdps, random_trees
from cascade.tabular.planning import bonuses, follow_tree, plan_mdp, plan_tree, rollout_mdp


def test_bonus_is_one_over_root_count_and_2l_for_the_untried():
    counts = np.array([[[0.0, 1.0, 4.0, 100.0]]])
    assert bonuses(counts, 5)[0, 0].tolist() == [10.0, 1.0, 0.5, 0.1]


@pytest.mark.parametrize("height", [1, 3])
def test_tree_plan_is_the_best_of_all_sequences(height):
    seeds = 12
    labels = random_trees(Draws.of(range(seeds)), height)
    counts = np.floor(Draws.of(range(seeds)).at(1).uniform(labels.shape[1], 2) * 4)
    bonus, following = bonuses(counts, height), tree_successors(labels)
    path = follow_tree(plan_tree(labels, counts, Draws.of(range(seeds)).at(2)), height)
    actions = path[:, 1:] - 2 * path[:, :-1] - 1

    def value(seed: int, sequence) -> float:
        state, total = 0, 0.0
        for action in sequence:
            total += bonus[seed, state, action]
            state = following[seed, state, action]
        return total

    for seed in range(seeds):
        best = max(value(seed, sequence) for sequence in product(range(2), repeat=height))
        assert value(seed, actions[seed]) == pytest.approx(best, abs=1e-6)


def test_ties_are_broken_both_ways():
    seeds = 200
    labels = random_trees(Draws.of(range(seeds)), 2)
    actions = plan_tree(labels, np.zeros((seeds, 7, 2)), Draws.of(range(seeds)))
    assert 0.3 < actions[:, 0].mean() < 0.7


def test_mdp_plan_is_the_best_of_all_policies():
    states, actions, horizon = 2, 2, 2
    model = random_mdps(Draws.of([3]), states, actions)
    counts = np.array([[[1.0, 3.0], [0.0, 2.0]]])
    bonus = bonuses(counts, horizon)[0]

    def value(policy) -> float:
        here, total = np.array([1.0, 0.0]), 0.0
        for step in range(horizon):
            total += sum(here[s] * bonus[s, policy[step][s]] for s in range(states))
            here = sum(here[s] * model[0, s, policy[step][s]] for s in range(states))
        return total

    rules = list(product(range(actions), repeat=states))
    best = max(value(policy) for policy in product(rules, repeat=horizon))
    assert value(plan_mdp(model, counts, horizon, Draws.of([0]))[0]) == pytest.approx(best, abs=1e-6)


def test_rollouts_follow_the_policy_and_the_odds():
    model = random_mdps(Draws.of([1]), 4, 2)
    policy = np.array([[[1, 0, 1, 0], [0, 1, 0, 1]]])
    states, actions = rollout_mdp(model, policy, 20000, Draws.of([2]))
    assert (states[..., 0] == 0).all()
    for step in range(2):
        assert np.array_equal(actions[0, :, step], policy[0, step][states[0, :, step]])
    odds = np.bincount(states[0, :, 1], minlength=4) / 20000
    assert np.allclose(odds, model[0, 0, 1], atol=0.02)
