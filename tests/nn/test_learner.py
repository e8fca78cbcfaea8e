"""The optimiser: clipping, decay, and refusing what is not finite."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from cascade.config import OptimizerConfig
from cascade.nn.layers import Linear
from cascade.nn.learner import Learner, update


@pytest.fixture
def learner():
    config = OptimizerConfig(lr=0.1, clip=1.0, weight_decay=0.0)
    return Learner.create(Linear(3, 2, key=jax.random.key(0)), config), config


def test_a_gradient_that_is_not_finite_changes_nothing_and_is_counted(learner):
    learner, config = learner
    bad = jax.tree.map(lambda leaf: leaf.at[0].set(jnp.nan), learner.model)
    after, metrics = update(learner, bad, config)
    for left, right in zip(
        jax.tree.leaves((after.model, after.opt_state)),
        jax.tree.leaves((learner.model, learner.opt_state)),
        strict=True,
    ):
        np.testing.assert_array_equal(left, right)
    assert int(after.skipped) == 1
    assert metrics["skipped"] == 1.0
    again, _ = update(after, jax.tree.map(jnp.ones_like, learner.model), config)
    assert int(again.skipped) == 1
    assert not np.array_equal(again.model.weight, learner.model.weight)


def test_members_of_a_vmapped_population_are_clipped_apart(learner):
    """One member's huge gradient must not shrink another's step."""
    one, config = learner
    pair = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), one)
    small = jax.tree.map(lambda leaf: 0.1 * jnp.ones_like(leaf), one.model)
    grads = jax.tree.map(lambda leaf: jnp.stack([leaf, 1e7 * leaf]), small)
    both, metrics = jax.vmap(lambda member, grad: update(member, grad, config))(pair, grads)
    alone, _ = update(one, small, config)
    np.testing.assert_allclose(both.model.weight[0], alone.model.weight, rtol=1e-6)
    assert metrics["grad_norm"].shape == (2,)


def test_weight_decay_takes_its_share_whatever_the_learning_rate():
    config = OptimizerConfig(lr=1e-9, weight_decay=0.25)
    learner = Learner.create(Linear(3, 2, key=jax.random.key(0)), config)
    after, _ = update(learner, jax.tree.map(jnp.zeros_like, learner.model), config)
    np.testing.assert_allclose(after.model.weight, 0.75 * learner.model.weight, rtol=1e-5)


def test_a_large_gradient_is_clipped_to_its_norm(learner):
    """Adam forgets the size of a first gradient; the second step shows what the first was counted as."""
    learner, config = learner
    large = jax.tree.map(lambda leaf: 100.0 * jnp.ones_like(leaf), learner.model)
    norm = optax.tree.norm(large)
    clipped = jax.tree.map(lambda leaf: leaf / norm, large)
    small = jax.tree.map(lambda leaf: 0.1 * jnp.ones_like(leaf), learner.model)
    ends = [update(update(learner, first, config)[0], small, config)[0] for first in (large, clipped)]
    np.testing.assert_allclose(ends[0].model.weight, ends[1].model.weight, rtol=1e-6)
    free = OptimizerConfig(lr=0.1, clip=0.0, weight_decay=0.0)
    other = update(update(learner, large, free)[0], small, free)[0]
    assert not np.allclose(ends[0].model.weight, other.model.weight, rtol=1e-3)
