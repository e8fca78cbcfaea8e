"""Open-loop prediction against a step-by-step loop, and the loss on data that was not trained on."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import SMALL, env_spec, random_batch

from cascade.world.model import WorldModel, encode_action, loss
from cascade.world.predict import first_episode, held_out_loss, open_loop
from cascade.world.rssm import State

B, T, CONTEXT = 3, 9, 4
KEY = jax.random.key(7)
predict = jax.jit(open_loop, static_argnames="context")


@functools.cache
def small(*kinds, action="discrete", config=SMALL):
    spec = env_spec(*kinds, action=action)
    return jax.jit(lambda key: WorldModel(spec, config, key=key))(jax.random.key(0))


def rows(world, *kinds, resets=False, seed=0):
    return random_batch(env_spec(*kinds, action=world.action.kind), (B, T), resets=resets, seed=seed)


@pytest.mark.parametrize(("action", "latent"), [("discrete", "discrete"), ("continuous", "gaussian")])
def test_it_is_a_loop_over_imagine_from_the_last_row_seen(action, latent):
    world = small("vector", action=action, config=dataclasses.replace(SMALL, latent=latent))
    batch = rows(world, "vector")
    prediction = predict(world, batch, KEY, context=CONTEXT)
    noise = world.rssm.noise(KEY, B, T)
    actions = encode_action(world.action, batch.action)

    @jax.jit
    def one_step(state, action, noise):
        state = world.rssm.imagine(state, action, noise)
        return state, world.decoder.mode(state.feature)["vector"], world.continues(state.feature)

    state = State(prediction.state.deter[:, CONTEXT - 1], prediction.state.stoch[:, CONTEXT - 1])
    for t in range(CONTEXT, T):
        state, obs, alive = one_step(state, actions[:, t - 1], noise[:, t])
        np.testing.assert_allclose(prediction.state.deter[:, t], state.deter, atol=1e-5)
        np.testing.assert_allclose(prediction.state.stoch[:, t], state.stoch, atol=1e-5)
        np.testing.assert_allclose(prediction.obs["vector"][:, t], obs, atol=1e-4)
        np.testing.assert_allclose(prediction.alive[:, t], alive, atol=1e-5)


def test_what_is_seen_is_the_posterior():
    world = small("vector")
    batch = rows(world, "vector", resets=True)
    states, _ = jax.jit(lambda batch: world.observe(batch, world.rssm.noise(KEY, B, T)))(batch)
    prediction = predict(world, batch, KEY, context=CONTEXT)
    np.testing.assert_allclose(prediction.state.feature[:, :CONTEXT], states.feature[:, :CONTEXT], atol=1e-5)
    assert not np.allclose(
        prediction.state.deter[:, CONTEXT + 1 :], states.deter[:, CONTEXT + 1 :], atol=1e-3
    )
    everything = predict(world, batch, KEY, context=T)
    np.testing.assert_allclose(everything.state.feature, states.feature, atol=1e-5)


def test_observations_after_the_context_are_not_looked_at():
    world = small("vector")
    batch = rows(world, "vector")
    obs = {"vector": batch.obs["vector"].at[:, CONTEXT:].add(1.0)}
    other = dataclasses.replace(batch, obs=obs)
    left, right = (predict(world, x, KEY, context=CONTEXT) for x in (batch, other))
    np.testing.assert_array_equal(left.state.feature, right.state.feature)
    seen = [predict(world, x, KEY, context=T) for x in (batch, other)]
    assert not np.allclose(seen[0].state.stoch[:, CONTEXT:], seen[1].state.stoch[:, CONTEXT:])


@pytest.mark.parametrize("time", [1, CONTEXT - 1, CONTEXT, T - 2, T - 1])
def test_the_action_at_t_matters_from_t_plus_one_on(time):
    """And the last one not at all: it is taken after the window."""
    world = small("vector", action="continuous")
    batch = rows(world, "vector")
    other = dataclasses.replace(batch, action=batch.action.at[:, time].multiply(-1.0))
    left, right = (predict(world, x, KEY, context=CONTEXT) for x in (batch, other))
    np.testing.assert_array_equal(left.state.feature[:, : time + 1], right.state.feature[:, : time + 1])
    np.testing.assert_array_equal(left.obs["vector"][:, : time + 1], right.obs["vector"][:, : time + 1])
    if time + 1 < T:
        assert not np.allclose(left.state.deter[:, time + 1], right.state.deter[:, time + 1])
        assert not np.allclose(left.obs["vector"][:, time + 1], right.obs["vector"][:, time + 1])


def test_rows_after_the_next_reset_are_not_valid():
    is_first = jnp.array([[1, 0, 0, 1, 0], [1, 0, 0, 0, 0], [0, 0, 1, 0, 1], [1, 1, 0, 0, 0]], bool)
    expected = [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 0, 0, 0]]
    np.testing.assert_array_equal(first_episode(is_first), np.array(expected, bool))
    world = small("vector")
    batch = rows(world, "vector", resets=True)
    prediction = predict(world, batch, KEY, context=CONTEXT)
    np.testing.assert_array_equal(prediction.valid, first_episode(batch.is_first))
    assert 0 < prediction.valid.mean() < 1


def test_predictions_look_like_stored_rows():
    kinds = ("grid", "image", "vector")
    world = small(*kinds, config=dataclasses.replace(SMALL, precision="bfloat16"))
    batch = rows(world, *kinds)
    prediction = predict(world, batch, KEY, context=CONTEXT)
    for name, value in batch.obs.items():
        assert prediction.obs[name].shape == value.shape
        assert prediction.obs[name].dtype == value.dtype
    assert (np.asarray(prediction.obs["grid"]) < np.array([11, 6, 4])).all()
    assert prediction.state.deter.dtype == jnp.bfloat16
    assert ((prediction.alive >= 0.0) & (prediction.alive <= 1.0)).all()


@pytest.mark.parametrize("context", [0, T + 1])
def test_a_context_that_does_not_fit_is_named(context):
    world = small("vector")
    batch = rows(world, "vector")
    with pytest.raises(ValueError, match=f"context: got {context}, expected 1 to the {T} rows"):
        open_loop(world, batch, KEY, context=context)


def test_seeds_predict_together_as_they_would_alone():
    world = small("vector")
    worlds = jax.tree.map(lambda leaf: jnp.stack([leaf, 0.5 * leaf]), world)
    batch, keys = rows(world, "vector"), jax.random.split(KEY, 2)
    together = jax.jit(jax.vmap(lambda w, k: open_loop(w, batch, k, CONTEXT)))(worlds, keys)
    for s in range(2):
        alone = predict(jax.tree.map(lambda leaf, s=s: leaf[s], worlds), batch, keys[s], context=CONTEXT)
        np.testing.assert_allclose(together.obs["vector"][s], alone.obs["vector"], atol=1e-4)


def test_held_out_loss_is_the_mean_of_the_training_loss():
    world = small("vector")
    batches = [rows(world, "vector", resets=True, seed=s) for s in range(3)]
    chunk = jax.tree.map(lambda *x: jnp.stack(x), *batches)
    metrics = jax.jit(held_out_loss)(world, chunk, KEY)
    train = jax.jit(lambda batch, index: loss(world, batch, jax.random.fold_in(KEY, index))[1][1])
    each = [train(batch, i) for i, batch in enumerate(batches)]
    assert set(metrics) == {"loss", "kl", "loss/vector", "loss/discount"}
    for name, value in metrics.items():
        np.testing.assert_allclose(value, np.mean([part[name] for part in each]), rtol=1e-4)
