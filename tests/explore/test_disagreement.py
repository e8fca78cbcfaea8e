"""The ensemble learns what the action AT t leads to, and members disagree about what was never tried."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import SMALL, env_spec, random_batch

from cascade.config import EnsembleConfig, OptimizerConfig, RunConfig
from cascade.errors import SettingError
from cascade.explore import disagreement
from cascade.world import model
from cascade.world.model import encode_action
from cascade.world.rssm import State

ACTIONS, TRIED, B, T = 6, 4, 8, 10
CONFIG = EnsembleConfig(members=5, layers=2, units=32, optimizer=OptimizerConfig(lr=3e-3))
CATEGORICAL = dataclasses.replace(CONFIG, likelihood="categorical")
learn = jax.jit(disagreement.step)


def world_of_actions(seed, actions=TRIED):
    """Posteriors of a world in which z_{t+1} says which action was taken at t, and h is noise.

    Only the first `actions` are ever tried. Each action is independent of all others, so that the one INTO t
    tells nothing about z_{t+1}.
    """
    rng = np.random.default_rng(seed)
    action = rng.integers(0, actions, size=(B, T))
    code = np.random.default_rng(0).integers(0, SMALL.classes, size=(ACTIONS, SMALL.stoch))
    before = np.concatenate([rng.integers(0, actions, size=(B, 1)), action[:, :-1]], 1)
    stoch = np.eye(SMALL.classes, dtype=np.float32)[code[before]].reshape(B, T, -1)
    deter = 0.3 * rng.normal(size=(B, T, SMALL.deter)).astype(np.float32)
    hot = np.eye(ACTIONS, dtype=np.float32)[action]
    return State(jnp.asarray(deter), jnp.asarray(stoch)), jnp.asarray(hot), jnp.zeros((B, T), bool)


def create(seed=0, config=CONFIG):
    return jax.jit(lambda key: disagreement.create(SMALL, ACTIONS, config, key=key))(jax.random.key(seed))


def train(change=lambda *data: data, steps=300, config=CONFIG):
    learner = create(config=config)
    for i in range(steps):
        learner, metrics = learn(learner, *change(*world_of_actions(i)))
    return learner.model, float(metrics["ensemble/loss"])


@pytest.fixture(scope="module")
def trained():
    return train()


@pytest.fixture(scope="module")
def trained_categorical():
    return train(config=CATEGORICAL)


def sigma_by_action(ensemble):
    """Mean disagreement of each action, over states that were not trained on."""
    states, _, _ = world_of_actions(10_000)
    measure = jax.jit(lambda feature, action: ensemble.disagreement(feature, action))
    hot = jnp.broadcast_to(jnp.eye(ACTIONS)[:, None, None], (ACTIONS, B, T, ACTIONS))
    return np.array([measure(states.feature, action).mean() for action in hot])


def test_members_disagree_about_actions_never_tried(trained):
    before, after = sigma_by_action(create().model), sigma_by_action(trained[0])
    assert after[TRIED:].min() > 10.0 * after[:TRIED].max()
    assert after[:TRIED].max() < 0.1 * before.min()


def test_distributions_agree_far_better_about_what_is_certain(trained, trained_categorical):
    """The same training, in a world where an action decides the next state: members that say how likely each class
    is come to agree about actions that were tried, and disagree no less about the others."""
    before, after = (sigma_by_action(e) for e in (create(config=CATEGORICAL).model, trained_categorical[0]))
    assert after[TRIED:].min() > before.max()
    numbers = sigma_by_action(trained[0])
    assert after[:TRIED].max() < 0.01 * numbers[:TRIED].max()
    assert after[TRIED:].min() > 0.3 * numbers[TRIED:].min()


def test_categorical_members_predict_distributions():
    ensemble = create(config=CATEGORICAL).model
    states, action, first = world_of_actions(0)
    probs = np.asarray(ensemble.predict(states.feature, action)).reshape(5, B, T, SMALL.stoch, SMALL.classes)
    np.testing.assert_allclose(probs.sum(-1), 1.0, rtol=1e-5)
    assert probs.min() > 0.0
    # The loss, looked up class by class instead of multiplied out.
    hot = np.asarray(states.stoch).reshape(B, T, SMALL.stoch, SMALL.classes)[:, 1:]
    chosen = np.take_along_axis(probs[:, :, :-1], hot.argmax(-1)[None, ..., None], -1)
    expected = -np.log(chosen).sum((0, 3, 4)).mean()
    np.testing.assert_allclose(disagreement.loss(ensemble, states, action, first), expected, rtol=1e-5)


def test_a_gaussian_latent_has_no_classes_to_predict():
    with pytest.raises(SettingError, match=r"ensemble\.likelihood: got .*categorical.*world\.latent"):
        RunConfig(world=dataclasses.replace(SMALL, latent="gaussian"), ensemble=CATEGORICAL)


def test_it_is_the_action_at_t_that_counts(trained):
    """The action into t is known from z_t already and says nothing new: with it the error stays at that of
    guessing, the variance of z under the actions tried."""
    _, error = trained
    _, shifted = train(lambda states, action, first: (states, jnp.roll(action, 1, axis=1), first))
    targets = np.concatenate([world_of_actions(i)[0].stoch[:, 1:].reshape(-1, 20) for i in range(50)])
    guessing = 0.5 * targets.var(0).sum()
    assert error < 0.05 * guessing
    assert shifted > 0.9 * guessing


def test_members_start_out_different():
    ensemble = create().model
    states, action, _ = world_of_actions(0)
    predictions = np.asarray(ensemble.predict(states.feature, action))
    for left in range(CONFIG.members):
        for right in range(left):
            assert np.abs(predictions[left] - predictions[right]).mean() > 0.05
    assert float(ensemble.disagreement(states.feature, action).min()) > 0.0


def test_a_pair_across_episodes_does_not_count():
    """The last row is only ever a target: where it starts another episode, what is in it changes nothing."""
    ensemble = create().model
    states, action, first = world_of_actions(0)
    other = State(states.deter, states.stoch.at[:, -1].multiply(-3.0))
    value = jax.jit(disagreement.loss)
    cut = first.at[:, -1].set(True)
    assert value(ensemble, states, action, cut) == value(ensemble, other, action, cut)
    assert value(ensemble, states, action, first) != value(ensemble, other, action, first)
    shorter = jax.tree.map(lambda x: x[:, :-1], (states, action, first))
    np.testing.assert_allclose(value(ensemble, states, action, cut), value(ensemble, *shorter), rtol=1e-5)


def test_no_gradient_of_the_ensemble_reaches_the_world_model():
    spec = env_spec("vector", size=ACTIONS)
    batch, key = random_batch(spec, (4, 6)), jax.random.key(1)
    world = jax.jit(lambda key: model.WorldModel(spec, SMALL, key=key))(key)

    def error(world, ensemble):
        _, (states, _) = model.loss(world, batch, key)
        action = encode_action(world.action, batch.action)
        return disagreement.loss(ensemble, states, action, batch.is_first)

    to_world, to_ensemble = jax.jit(jax.grad(error, argnums=(0, 1)))(world, create().model)
    assert all((np.asarray(leaf) == 0.0).all() for leaf in jax.tree.leaves(to_world))
    assert any((np.asarray(leaf) != 0.0).any() for leaf in jax.tree.leaves(to_ensemble))


@pytest.mark.parametrize("measure", ["variance", "std"])
@pytest.mark.parametrize("likelihood", ["gaussian", "categorical"])
def test_disagreement_is_the_mean_over_z_of_the_spread_of_members(measure, likelihood):
    config = dataclasses.replace(CONFIG, measure=measure, likelihood=likelihood)
    ensemble = create(1, config).model
    states, action, _ = world_of_actions(0)
    predictions = np.asarray(ensemble.predict(states.feature, action), np.float64)
    spread = {"variance": np.var, "std": np.std}[measure](predictions, axis=0).mean(-1)
    np.testing.assert_allclose(ensemble.disagreement(states.feature, action), spread, rtol=1e-4)
