"""The world model's loss and training step."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import SMALL, env_spec, random_batch, world_model

from cascade.nn.learner import Learner
from cascade.world.model import WorldModel, kl_loss, loss, step
from cascade.world.rssm import State

LEARNS = dataclasses.replace(SMALL, optimizer=dataclasses.replace(SMALL.optimizer, lr=3e-3))
STEP = jax.jit(step)


@pytest.mark.parametrize("kinds", [("vector",), ("grid",), ("image",), ("grid", "image", "vector")])
@pytest.mark.parametrize("action", ["discrete", "continuous"])
def test_it_learns_whatever_it_is_shown(kinds, action):
    spec = env_spec(*kinds, action=action)
    learner = Learner.create(world_model(spec, LEARNS), LEARNS.optimizer)
    batch = random_batch(spec)
    first = None
    for i in range(40):
        learner, states, metrics = STEP(learner, batch, jax.random.key(i))
        first = first or metrics
    for name in ("loss", *(f"loss/{kind}" for kind in kinds)):
        assert float(metrics[name]) < 0.98 * float(first[name]), name
    assert states.feature.shape == (3, 7, 24 + 20)


def test_kl_balancing_matches_finite_differences_of_its_two_halves():
    """Gradients of the loss are 0.8 of the prior's half and 0.2 of the posterior's half."""
    model = world_model(env_spec())
    keys = jax.random.split(jax.random.key(1), 4)
    post, prior, d_post, d_prior = (jax.random.normal(key, (2, 20)) for key in keys)

    def directional(f, x, direction, eps=1e-2):
        return (f(x + eps * direction) - f(x - eps * direction)) / (2 * eps)

    g_post, g_prior = jax.grad(lambda q, p: kl_loss(model.rssm, q, p, SMALL)[0], argnums=(0, 1))(post, prior)
    half_prior = directional(lambda p: model.rssm.kl(post, p).mean(), prior, d_prior)
    half_post = directional(lambda q: model.rssm.kl(q, prior).mean(), post, d_post)
    np.testing.assert_allclose((g_prior * d_prior).sum(), 0.8 * half_prior, rtol=2e-3)
    np.testing.assert_allclose((g_post * d_post).sum(), 0.2 * half_post, rtol=2e-3)


def test_free_nats_stop_the_gradient_below_them():
    model = world_model(env_spec())
    config = dataclasses.replace(SMALL, free_nats=100.0)
    post, prior = jax.random.normal(jax.random.key(0), (2, 1, 20))
    grad = jax.grad(lambda q: kl_loss(model.rssm, q, prior, config)[0])(post)
    np.testing.assert_array_equal(grad, 0.0)
    assert kl_loss(model.rssm, post, prior, config)[0] == 100.0


@pytest.mark.parametrize(
    ("kinds", "prior"),
    [(("grid",), "independent"), (("image", "vector"), "independent"), (("grid",), "joint")],
)
def test_bfloat16_loss_is_within_one_percent_of_float32(kinds, prior):
    spec, config = env_spec(*kinds), dataclasses.replace(SMALL, prior=prior)
    batch, key = random_batch(spec, (8, 12)), jax.random.key(3)
    wide = world_model(spec, config)
    narrow = world_model(spec, dataclasses.replace(config, precision="bfloat16"))
    if prior == "joint":  # it begins as an independent one
        earlier = jax.random.normal(jax.random.key(4), wide.rssm.prior_earlier.weight.shape)
        wide, narrow = (
            eqx.tree_at(lambda model: model.rssm.prior_earlier.weight, model, earlier)
            for model in (wide, narrow)
        )
    expected, (_, full) = jax.jit(loss)(wide, batch, key)
    value, (states, metrics) = jax.jit(loss)(narrow, batch, key)
    assert value.dtype == jnp.float32
    assert states.deter.dtype == jnp.bfloat16
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(narrow))
    np.testing.assert_allclose(value, expected, rtol=0.01)
    np.testing.assert_allclose(metrics["kl"], full["kl"], rtol=0.05)


def test_a_joint_prior_learns_and_the_posterior_does_not_follow_it():
    """The weights between categoricals have a gradient; the z that they are given has none."""
    spec, config = env_spec("vector"), dataclasses.replace(SMALL, prior="joint")
    model = world_model(spec, config)
    grads = jax.jit(jax.grad(lambda model: loss(model, random_batch(spec), jax.random.key(3))[0]))(model)
    assert np.abs(grads.rssm.prior_earlier.weight).max() > 1e-6
    earlier = jax.random.normal(jax.random.key(4), model.rssm.prior_earlier.weight.shape)
    rssm = eqx.tree_at(lambda rssm: rssm.prior_earlier.weight, model.rssm, earlier)
    z = jax.nn.one_hot(jnp.array([1, 0, 3, 2]), SMALL.classes).reshape(-1)
    slope = jax.grad(lambda z: rssm.prior(State(jnp.ones(SMALL.deter), z)).sum())(z)
    np.testing.assert_array_equal(slope, 0.0)


@pytest.mark.parametrize("prior", ["independent", "joint"])
def test_seeds_train_together_as_they_would_alone(prior):
    spec, config = env_spec("vector"), dataclasses.replace(LEARNS, prior=prior)

    def one(seed):
        model = WorldModel(spec, config, key=jax.random.key(seed))
        return Learner.create(model, config.optimizer)

    learners = jax.jit(jax.vmap(one))(jnp.arange(3))
    batches = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(random_batch(spec, seed=s) for s in range(3)))
    keys = jax.random.split(jax.random.key(0), 3)
    together, _, _ = jax.jit(jax.vmap(step))(learners, batches, keys)
    for seed in range(3):
        pick = lambda leaf, s=seed: leaf[s]  # noqa: E731
        alone, _, _ = STEP(*jax.tree.map(pick, (learners, batches)), keys[seed])
        for left, right in zip(jax.tree.leaves(together.model), jax.tree.leaves(alone.model), strict=True):
            np.testing.assert_allclose(left[seed], right, rtol=1e-4, atol=1e-6)


def test_one_trace_serves_every_step():
    spec = env_spec("grid")
    learner = Learner.create(world_model(spec, LEARNS), LEARNS.optimizer)
    learner, _, _ = STEP(learner, random_batch(spec), jax.random.key(0))
    compiled = STEP._cache_size()
    for i in range(1, 3):
        learner, _, _ = STEP(learner, random_batch(spec, seed=i), jax.random.key(i))
    assert STEP._cache_size() == compiled


def test_a_batch_has_no_place_for_a_reward():
    assert set(vars(random_batch(env_spec()))) == {"obs", "action", "is_first", "is_terminal"}


def test_the_discount_head_sees_terminations():
    spec = env_spec("vector")
    config = dataclasses.replace(SMALL, optimizer=dataclasses.replace(SMALL.optimizer, lr=1e-2))
    learner = Learner.create(world_model(spec, config), config.optimizer)
    batch = random_batch(spec, (8, 6))
    for i in range(150):
        learner, states, _ = STEP(learner, batch, jax.random.key(i))
    alive = learner.model.continues(states.feature)
    assert alive[batch.is_terminal].mean() < 0.3
    assert alive[~batch.is_terminal].mean() > 0.9
