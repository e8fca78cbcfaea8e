"""Lemma 1 by enumeration, and the entropy lemmas it rests on."""

import math
from itertools import product

import numpy as np
import pytest

from cascade.tabular import info_cascade, information, last_layer_endpoints, lemma1
from cascade.tabular.information import entropy

GREEDY_BOUND = 1 - 1 / math.e


@pytest.mark.parametrize("share", [0.01, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("p", [0.2, 1.0])
def test_splitting_a_probability_raises_its_entropy_term(p, share):
    """Supporting lemma one."""
    split = entropy(np.array([share * p, (1 - share) * p]))
    assert entropy(np.array([p])) < split


def test_a_coarser_partition_has_less_entropy():
    """Supporting lemma two: strictly, unless every merged set has one positive element."""
    p = np.array([0.1, 0.2, 0.3, 0.4])
    assert entropy(np.array([p[0] + p[1], p[2], p[3]])) < entropy(p)
    assert entropy(np.array([p.sum()])) == 0.0
    with_zero = np.array([0.5, 0.0, 0.5])
    assert entropy(with_zero) == entropy(np.array([0.5, 0.5])) == pytest.approx(math.log(2))


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("height", [1, 2, 3])
def test_the_posterior_holds_every_tree_once(height, ordered):
    endpoints = last_layer_endpoints(height, ordered)
    leaves = 2**height
    assert len(np.unique(endpoints, axis=0)) == len(endpoints)
    assert np.array_equal(np.sort(endpoints, axis=1)[-1], np.arange(leaves))
    assert len(endpoints) == math.factorial(leaves) // (1 if ordered else 2 ** (leaves // 2))


@pytest.mark.parametrize("ordered", [True, False])
def test_lemma_1_over_every_ordered_tuple(ordered):
    """Height 2, all 4^P tuples one by one: the shortcut over sets loses nothing."""
    endpoints = last_layer_endpoints(2, ordered)
    for population in (2, 3, 4):
        values = {t: information(endpoints, t) for t in product(range(4), repeat=population)}
        result = lemma1(endpoints, population)
        assert result.best == pytest.approx(max(values.values()))
        assert result.best_repeated == pytest.approx(max(values[(i,) * population] for i in range(4)))
        distinct = max(v for t, v in values.items() if len(set(t)) == population)
        assert result.distinct
        assert distinct == pytest.approx(result.best)
        assert result.best_repeated < result.best - 1e-9
        assert result.greedy >= GREEDY_BOUND * result.best


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("population", [2, 4, 8])
def test_lemma_1_at_height_3(population, ordered):
    result = lemma1(last_layer_endpoints(3, ordered), population)
    assert result.distinct
    assert result.best_repeated < result.best - 1e-9
    assert GREEDY_BOUND <= result.greedy_ratio <= 1 + 1e-12


def test_known_values():
    """k distinct paths have 8!/(8-k)! equally likely endpoints; the last leaf is known before it is met."""
    endpoints = last_layer_endpoints(3)
    for k in (1, 2, 5, 7, 8):
        expected = math.log(math.factorial(8) / math.factorial(8 - k))
        assert information(endpoints, range(k)) == pytest.approx(expected)
    assert information(endpoints, range(7)) == pytest.approx(information(endpoints, range(8)))


def test_information_ignores_order_and_repetition_and_grows():
    endpoints = last_layer_endpoints(2, ordered=False)
    assert information(endpoints, (0, 2)) == pytest.approx(information(endpoints, (2, 0, 0)))
    assert information(endpoints, (0,)) < information(endpoints, (0, 2))


def test_information_is_submodular_so_greedy_keeps_its_bound():
    """Random deterministic families, where greedy is not always the best."""
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(150):
        endpoints = rng.integers(0, rng.integers(2, 4), size=(7, 6))
        gain = [information(endpoints, s) for s in [(0,), (0, 2), (0, 1), (0, 1, 2)]]
        assert gain[3] - gain[2] <= gain[1] - gain[0] + 1e-9
        ratios.append(lemma1(endpoints, 3).greedy_ratio)
    assert min(ratios) >= GREEDY_BOUND
    assert min(ratios) < 1 - 1e-6


def test_info_cascade_picks_new_policies_while_there_are_any():
    assert sorted(info_cascade(last_layer_endpoints(2), 4)) == [0, 1, 2, 3]


def test_more_policies_than_paths_cannot_be_distinct():
    assert not lemma1(last_layer_endpoints(1), 3).distinct
