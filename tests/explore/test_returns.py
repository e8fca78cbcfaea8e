"""λ-returns and running scales."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cascade.explore.returns import RunningScale, lambda_returns, reach


@pytest.mark.parametrize("trace", [0.0, 0.6, 1.0])
def test_lambda_returns_equal_the_weighted_sum_of_n_step_returns(trace):
    rng = np.random.default_rng(0)
    horizon = 6
    reward, discount = rng.normal(size=horizon), rng.uniform(0.5, 1.0, size=horizon)
    value = rng.normal(size=horizon + 1)

    def n_step(t, n):
        total, weight = 0.0, 1.0
        for k in range(t, t + n):
            total += weight * reward[k]
            weight *= discount[k]
        return total + weight * value[t + n]

    returns = lambda_returns(
        *(jnp.asarray(x, jnp.float32) for x in (reward, discount)), jnp.asarray(value, jnp.float32), trace
    )
    for t in range(horizon):
        longest = horizon - t
        mix = sum((1 - trace) * trace ** (n - 1) * n_step(t, n) for n in range(1, longest))
        expected = mix + trace ** (longest - 1) * n_step(t, longest)
        np.testing.assert_allclose(returns[t], expected, rtol=1e-4)


def test_the_last_reward_enters_every_return():
    zeros = jnp.zeros(5)
    base = lambda_returns(zeros, jnp.ones(5), jnp.zeros(6), 0.95)
    changed = lambda_returns(zeros.at[-1].set(1.0), jnp.ones(5), jnp.zeros(6), 0.95)
    np.testing.assert_allclose(changed - base, 0.95 ** np.arange(4, -1, -1.0), rtol=1e-5)


def test_reach_stops_at_ends_and_starts_at_life():
    discount = jnp.array([[0.9, 0.9], [0.0, 0.5], [0.9, 0.9]])
    weight = reach(discount, jnp.array([1.0, 0.0]))
    np.testing.assert_allclose(weight[:, 0], [1.0, 0.9, 0.0], rtol=1e-6)
    np.testing.assert_array_equal(weight[:, 1], 0.0)


def test_running_scale_is_unbiased_from_the_first_update_and_follows_a_change():
    rng = np.random.default_rng(0)
    scale = RunningScale.create()
    scale = scale.update(jnp.asarray(rng.normal(5.0, 2.0, 10_000), jnp.float32))
    np.testing.assert_allclose(scale.std, 2.0, rtol=0.05)
    for _ in range(1500):
        scale = scale.update(jnp.asarray(rng.normal(0.0, 0.1, 64), jnp.float32))
    np.testing.assert_allclose(scale.std, 0.1, rtol=0.1)


def test_rounding_is_no_spread():
    """All rewards alike: what float32 leaves of their variance must not be divided by."""
    scale = RunningScale.create()
    for _ in range(300):
        scale = scale.update(jnp.full(64, 3.7e-3))
    assert float(scale.std) >= 0.99e-3 * float(scale.rms)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_leaves_a_running_scale_as_it_was(bad):
    before = RunningScale.create().update(jnp.array([1.0, 2.0]))
    after = before.update(jnp.array([1.0, bad]))
    assert jax.tree.leaves(after) == jax.tree.leaves(before)
    assert float(after.update(jnp.array([5.0, 5.0])).average) > float(before.average)
