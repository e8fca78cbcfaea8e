"""Population diversity: the closed forms against their definitions, and what they must not do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade.errors import SettingError
from cascade.explore.diversity import DIVERSITIES, determinant, distance, paired, variance

MEASURES = list(DIVERSITIES)


def draw(shape, seed=0, offset=0.0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape).astype(np.float32) + np.float32(offset))


def distance_by_loops(phi):
    """1/(|D|-1) Σ over every trajectory of every earlier explorer, one pair at a time, in float64."""
    phi = np.asarray(phi, np.float64)
    out = np.zeros(phi.shape[:2])
    for i in range(1, len(phi)):
        for n in range(phi.shape[1]):
            gaps = [np.sum((phi[i, n] - phi[j, m]) ** 2) for j in range(i) for m in range(phi.shape[1])]
            out[i, n] = sum(gaps) / max(len(gaps) - 1, 1)
    return out


@settings(max_examples=12, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 5), st.integers(1, 6), st.integers(1, 7)),
    seed=st.integers(0, 1000),
    offset=st.sampled_from([0.0, 1.0, 300.0]),
)
def test_prefix_sums_equal_the_double_loop(shape, seed, offset):
    phi = draw(shape, seed, offset)
    np.testing.assert_allclose(distance(phi), distance_by_loops(phi), rtol=2e-3, atol=2e-3)


def test_paired_compares_trajectories_from_the_same_start():
    phi = draw((4, 5, 3))
    wide = np.asarray(phi, np.float64)
    for i in range(1, 4):
        expected = np.mean([np.sum((wide[i] - wide[j]) ** 2, -1) for j in range(i)], 0)
        np.testing.assert_allclose(paired(phi)[i], expected, rtol=1e-4)


def test_paired_sees_small_differences_between_trajectories_whose_starts_lie_far_apart():
    starts = draw((1, 64, 8))
    phi = starts + 1e-3 * draw((4, 64, 8), seed=1)
    wide = np.asarray(phi, np.float64)
    expected = np.mean([np.sum((wide[3] - wide[j]) ** 2, -1) for j in range(3)], 0)
    np.testing.assert_allclose(paired(phi)[3], expected, rtol=1e-3)


def test_variance_is_that_of_the_earlier_means_and_this_trajectory():
    phi = draw((4, 5, 3), offset=2.0)
    wide = np.asarray(phi, np.float64)
    for i in range(1, 4):
        for n in range(5):
            points = np.concatenate([wide[:i].mean(1), wide[i, n][None]])
            expected = np.sum((points - points.mean(0)) ** 2) / (len(points) - 1)
            np.testing.assert_allclose(variance(phi)[i, n], expected, rtol=1e-3)


def test_determinant_gain_is_the_growth_of_the_log_determinant():
    phi = draw((3, 2, 4))
    wide = np.asarray(phi, np.float64)
    means = wide.mean(1)
    scale = np.mean(np.sum((wide - wide.mean((0, 1))) ** 2, -1))

    def kernel(points):
        squared = np.sum((points[:, None] - points[None]) ** 2, -1)
        return np.exp(-squared / (2 * scale)) + 1e-3 * np.eye(len(points))

    for n in range(2):
        points = np.concatenate([means[:2], wide[2, n][None]])
        growth = np.linalg.slogdet(kernel(points))[1] - np.linalg.slogdet(kernel(points[:2]))[1]
        np.testing.assert_allclose(determinant(phi)[2, n], 1 + growth, atol=1e-3)


@pytest.mark.parametrize("name", MEASURES)
def test_the_first_explorer_gets_none_and_the_rest_get_something(name):
    reward = DIVERSITIES[name](draw((4, 6, 5)))
    np.testing.assert_array_equal(reward[0], 0.0)
    assert (np.abs(reward[1:]) > 1e-4).all()


@pytest.mark.parametrize("name", MEASURES)
def test_a_constant_added_to_every_summary_changes_nothing(name):
    phi = draw((4, 6, 5))
    shift = draw((5,), 1) * 100
    np.testing.assert_allclose(
        DIVERSITIES[name](phi + jnp.broadcast_to(shift, phi.shape)),
        DIVERSITIES[name](phi),
        rtol=2e-3,
        atol=2e-3,
    )


@pytest.mark.parametrize("name", ["distance", "variance", "determinant"])
def test_permuting_trajectories_within_an_explorer_permutes_its_rewards(name):
    phi, order = draw((4, 6, 5)), np.random.default_rng(3).permutation(6)
    shuffled = phi.at[2].set(phi[2][order])
    before, after = DIVERSITIES[name](phi), DIVERSITIES[name](shuffled)
    np.testing.assert_allclose(after[2], before[2][order], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(after[3], before[3], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MEASURES)
def test_no_gradient_reaches_an_earlier_explorer(name):
    phi = draw((4, 6, 5))
    for i in range(4):
        grad = jax.grad(lambda x, i=i: DIVERSITIES[name](x)[i].sum())(phi)
        others = np.delete(np.asarray(grad), i, axis=0)
        np.testing.assert_allclose(others, 0.0, atol=1e-6)
        assert (np.abs(grad[i]).sum() > 0) == (i > 0)


@pytest.mark.parametrize("name", MEASURES)
def test_a_spread_population_earns_more_than_an_identical_one(name):
    """The variance must be over explorers: identical explorers with varied features are not diverse."""
    common = draw((1, 6, 5)) * 3
    identical = jnp.broadcast_to(common, (4, 6, 5)) + 1e-3 * draw((4, 6, 5), 1)
    spread = identical + 10 * jnp.broadcast_to(draw((4, 1, 5), 2), (4, 6, 5))
    low, high = (DIVERSITIES[name](phi)[1:].mean() for phi in (identical, spread))
    assert high > 1.3 * low


@pytest.mark.parametrize("name", MEASURES)
def test_rewards_differ_between_trajectories_of_one_explorer(name):
    """One scalar broadcast to all would be removed by the baseline."""
    reward = DIVERSITIES[name](draw((3, 8, 5)))
    assert (np.asarray(reward[1:]).std(-1) > 1e-3).all()


def test_unknown_measures_are_named_and_own_ones_are_found():
    with pytest.raises(SettingError, match=r"explore.diversity: got 'distnce'.*did you mean distance"):
        DIVERSITIES.find("distnce")
    with pytest.raises(SettingError, match="module:function"):
        DIVERSITIES.find("nowhere:nothing")
    assert DIVERSITIES.find("cascade.explore.diversity:paired") is paired
