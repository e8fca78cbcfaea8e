"""Distances between explorers and within stored rows."""

import numpy as np
import pytest

from cascade.metrics.diversity import (
    dataset_diversity,
    mean_distance,
    population_diversity,
    visit_distance,
)


def test_total_variation_by_hand():
    visits = np.array([[[[2, 2]]], [[[4, 0]]], [[[0, 1]]]], dtype=np.uint16)  # shares 1/2 1/2, 1 0, 0 1
    expected = [[0, 0.5, 0.5], [0.5, 0, 1], [0.5, 1, 0]]
    np.testing.assert_allclose(visit_distance(visits), expected)
    assert population_diversity(visit_distance(visits)) == pytest.approx(2 / 3)


def test_how_often_does_not_matter_but_where_does():
    rng = np.random.default_rng(0)
    visits = rng.integers(0, 9, size=(3, 4, 5, 5)).astype(np.int64)
    found = visit_distance(visits)
    np.testing.assert_allclose(visit_distance(visits * np.array([1, 5, 30])[:, None, None, None]), found)
    order = np.array([2, 0, 1])
    np.testing.assert_allclose(visit_distance(visits[order]), found[np.ix_(order, order)])
    np.testing.assert_allclose(found, found.T)
    assert (np.diag(found) == 0).all()
    assert (found <= 1).all()


def test_a_level_one_of_a_pair_never_entered_is_left_out():
    visits = np.array([[[[1, 0]], [[1, 0]]], [[[0, 1]], [[0, 0]]]], dtype=np.uint16)
    np.testing.assert_allclose(visit_distance(visits), [[0, 1], [1, 0]])
    assert visit_distance(np.zeros((2, 1, 2, 2), np.uint16)).tolist() == [[0, 0], [0, 0]]


def test_distance_of_means():
    vectors = np.array([[[0.0, 0], [2, 0]], [[1, 3], [1, 5]]])  # means (1, 0) and (1, 4)
    np.testing.assert_allclose(mean_distance(vectors), [[0, 4], [4, 0]])


def test_one_explorer_has_no_diversity():
    assert population_diversity(np.zeros((1, 1))) == 0.0


def test_dataset_diversity_by_hand_and_for_a_constant():
    rows = np.array([[0, 0], [3, 4], [0, 8]], dtype=np.uint8)  # distances 5, 8, 5
    assert dataset_diversity(rows) == pytest.approx(6.0)
    assert dataset_diversity(np.ones((10, 2, 2), np.uint8)) == 0.0
    assert dataset_diversity(rows[:1]) == 0.0


def test_a_sample_estimates_the_whole_and_stays_fixed():
    rows = np.random.default_rng(0).normal(size=(3000, 8))
    whole = dataset_diversity(rows, sample=3000)
    assert dataset_diversity(rows) == pytest.approx(whole, rel=0.05)
    assert dataset_diversity(rows) == dataset_diversity(rows)
    assert dataset_diversity(rows, seed=1) != dataset_diversity(rows)
    assert dataset_diversity(10 * rows) == pytest.approx(10 * dataset_diversity(rows))
