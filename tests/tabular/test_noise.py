"""Addressed random numbers: they belong to their seed, and have the distributions they claim."""

import numpy as np
import pytest
from scipy import stats

from cascade.tabular import Draws


def test_a_seed_draws_the_same_whoever_runs_beside_it():
    together, alone = Draws.of(range(5)).at(3, 1), Draws.of([2]).at(3, 1)
    assert np.array_equal(together.uniform(4, 6)[2], alone.uniform(4, 6)[0])
    alpha = np.linspace(0.1, 9.0, 5 * 7).reshape(5, 7)
    assert np.array_equal(together.gamma(alpha)[2], alone.gamma(alpha[2:3])[0])


def test_places_and_seeds_differ():
    draws = Draws.of([0, 1])
    first, second = draws.at(0).uniform(50), draws.at(1).uniform(50)
    assert len(np.unique(np.concatenate([first, second]))) == 200


def test_uniform_is_uniform():
    values = Draws.of(range(20)).at(5).uniform(500).ravel()
    assert stats.kstest(values, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("alpha", [0.05, 0.7, 1.0, 3.5, 40.0])
def test_gamma_is_gamma(alpha):
    values = Draws.of(range(20)).at(6).gamma(np.full((20, 500), alpha)).ravel()
    assert stats.kstest(values, stats.gamma(alpha).cdf).pvalue > 1e-3


def test_dirichlet_has_its_mean():
    alpha = np.array([0.5, 1.0, 2.5])
    values = Draws.of(range(50)).dirichlet(np.tile(alpha, (50, 200, 1)))
    assert np.allclose(values.sum(-1), 1.0)
    assert np.allclose(values.mean((0, 1)), alpha / alpha.sum(), atol=0.01)


def test_permutations_are_permutations_and_uniform():
    found = Draws.of(range(6000)).permutation(3)
    assert np.array_equal(np.sort(found, axis=1), np.tile(np.arange(3), (6000, 1)))
    _, counts = np.unique(found, axis=0, return_counts=True)
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > 1e-3
