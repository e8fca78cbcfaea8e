"""Lemma 2: T(ε, Sequential) <= T(ε, CASCADE-TS) <= T(ε, SinglePolicyBatch), and what its proof says."""

import math

import numpy as np
import pytest
from tabular_helpers import paths_tried

from cascade.tabular import (
    NOT_REACHED,
    STRATEGIES,
    Draws,
    TreeWorld,
    World,
    grid_world,
    rounds_to_accuracy,
    stochastic_world,
    tree_world,
)

SEEDS = range(10)


def measure(world: World, strategy: str, population: int, epsilon: float = 0.0, seeds=SEEDS, **settings):
    return rounds_to_accuracy(
        world, STRATEGIES[strategy], Draws.of(seeds), population=population, epsilon=epsilon, **settings
    ).rounds


def trees(height: int, seeds=SEEDS, react: bool = False) -> TreeWorld:
    return tree_world(Draws.of(seeds), height, react)


@pytest.mark.parametrize("population", range(2, 17))
@pytest.mark.parametrize("height", [3, 4, 5, 6])
def test_lemma_2_on_trees(height, population):
    rounds = {name: measure(trees(height), name, population) for name in STRATEGIES}
    assert all((values != NOT_REACHED).all() for values in rounds.values())
    means = {name: values.mean() for name, values in rounds.items()}
    assert means["sequential"] <= means["cascade_ts"] < means["single_policy_batch"]
    assert (rounds["cascade_ts"] <= math.ceil((2**height - 1) / population)).all()
    assert (rounds["single_policy_batch"] == 2**height - 1).all()


@pytest.mark.parametrize("epsilon", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("population", [2, 5, 16])
def test_lemma_2_holds_for_looser_models(epsilon, population):
    rounds = {name: measure(trees(5), name, population, epsilon) for name in STRATEGIES}
    assert rounds["sequential"].mean() <= rounds["cascade_ts"].mean() < rounds["single_policy_batch"].mean()
    # Any K of the 2^L paths hold at least K / 2^L of the triplets.
    enough = math.ceil((1 - epsilon) * 32)
    assert (rounds["cascade_ts"] <= math.ceil(enough / population)).all()
    assert (rounds["single_policy_batch"] <= enough).all()


@pytest.mark.parametrize("fake_samples", [1, 3])
@pytest.mark.parametrize("population", [2, 3, 7, 16])
def test_cascade_ts_tries_p_new_paths_a_round_while_p_remain(population, fake_samples):
    world, draws = trees(5), Draws.of(SEEDS)
    belief = world.prior()
    for number in range(math.ceil(32 / population)):
        before = paths_tried(belief)
        luck = draws.at(number)
        belief = STRATEGIES["cascade_ts"](world, belief, population, fake_samples, luck)
        new = paths_tried(belief) - before
        assert np.array_equal(new, np.minimum(population, 32 - before))


def test_single_policy_batch_tries_one_new_path_a_round():
    world, draws = trees(4), Draws.of(SEEDS)
    belief = world.prior()
    for number in range(15):
        belief = STRATEGIES["single_policy_batch"](world, belief, 8, 1, draws.at(number))
        assert (paths_tried(belief) == number + 1).all()
        assert (belief.counts.sum((1, 2)) == 8 * 4 * (number + 1)).all()


def test_sequential_learns_inside_a_round():
    world = trees(4)
    belief = STRATEGIES["sequential"](world, world.prior(), 15, 1, Draws.of(SEEDS))
    assert (belief.accuracy() == 1.0).all()


def test_without_fake_counts_the_population_repeats_itself():
    world = trees(6)
    with_fakes = measure(world, "cascade_ts", 8)
    without = measure(world, "cascade_ts", 8, fake_samples=0)
    alone = measure(world, "single_policy_batch", 8)
    assert (without > with_fakes).all()
    assert without.mean() < alone.mean()  # chance still tells some of the policies apart


def test_reacting_policies_lose_what_imagination_gets_wrong():
    """Policies that map states to actions may meet a state elsewhere than imagined: the gap is then real."""
    world = trees(5, seeds=range(40), react=True)
    rounds = {name: measure(world, name, 8, seeds=range(40)).mean() for name in STRATEGIES}
    assert rounds["sequential"] < rounds["cascade_ts"] < rounds["single_policy_batch"]
    assert rounds["sequential"] == math.ceil(31 / 8)


def test_population_of_one_makes_all_strategies_one():
    for world in (trees(4), grid_world(Draws.of(SEEDS), 4, 3)):
        epsilon = 0.0 if isinstance(world, TreeWorld) else 0.4
        rounds = [measure(world, name, 1, epsilon) for name in STRATEGIES]
        assert np.array_equal(rounds[0], rounds[1])
        assert np.array_equal(rounds[0], rounds[2])


def test_a_seed_counts_the_same_rounds_whoever_runs_beside_it():
    together = measure(grid_world(Draws.of(SEEDS), 5, 3), "cascade_ts", 4, 0.3)
    alone = measure(grid_world(Draws.of([6]), 5, 3), "cascade_ts", 4, 0.3, seeds=[6])
    assert together[6] == alone[0]
    assert len(set(together)) > 1


@pytest.mark.parametrize("kind", ["stochastic", "grid"])
def test_the_order_holds_beyond_trees(kind):
    seeds = range(40)
    draws = Draws.of(seeds)
    world = grid_world(draws, 6, 4) if kind == "grid" else stochastic_world(draws, 6, 12, 4)
    means = [measure(world, name, 8, 0.25, seeds).mean() for name in STRATEGIES]
    assert means == sorted(means)
    assert means[0] < means[2]


def test_giving_up_is_said_not_hidden():
    outcome = rounds_to_accuracy(
        trees(4), STRATEGIES["sequential"], Draws.of(SEEDS), population=2, epsilon=0.0, max_rounds=3
    )
    assert (outcome.rounds == NOT_REACHED).all()
    assert outcome.accuracy.shape == (4, 10)
    assert (np.diff(outcome.accuracy, axis=0) > 0).all()
