"""The recurrent model against a step-by-step loop, and what may and may not influence what."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import SMALL

from cascade.errors import SettingError
from cascade.world.rssm import RSSM, State

T, B, X, A = 6, 4, 10, 3


def inputs(config):
    keys = jax.random.split(jax.random.key(1), 4)
    embed = jax.random.normal(keys[0], (T, B, X))
    action = jax.random.normal(keys[1], (T, B, A))
    first = jax.random.bernoulli(keys[2], 0.3, (T, B)).at[0].set(True)
    return embed, action, first, jax.random.uniform(keys[3], (T, B, config.stoch))


@pytest.mark.parametrize("latent", ["discrete", "gaussian"])
@pytest.mark.parametrize("unroll", [1, 4])
def test_the_scan_is_the_loop(latent, unroll):
    config = dataclasses.replace(SMALL, latent=latent, unroll=unroll)
    rssm = RSSM(X, A, config, key=jax.random.key(0))
    embed, action, first, noise = inputs(config)
    states, stats = rssm.observe(embed, action, first, noise)
    imagine, correct = jax.jit(lambda *x: rssm.imagine(*x)), jax.jit(lambda *x: rssm.correct(*x))
    for b in range(B):
        state = rssm.initial()
        for t in range(T):
            if first[t, b]:
                state, before = rssm.initial(), jnp.zeros(A)
            else:
                before = action[t - 1, b]
            moved = imagine(state, before, jnp.zeros(config.stoch))
            state, expected = correct(moved.deter, embed[t, b], noise[t, b])
            np.testing.assert_allclose(states.deter[t, b], state.deter, atol=1e-5)
            np.testing.assert_allclose(states.stoch[t, b], state.stoch, atol=1e-5)
            np.testing.assert_allclose(stats[t, b], expected, atol=1e-5)


def test_is_first_cuts_all_history():
    rssm = RSSM(X, A, SMALL, key=jax.random.key(0))
    embed, action, _, noise = inputs(SMALL)
    first = jnp.zeros((T, B), bool).at[0].set(True).at[3].set(True)
    states, _ = rssm.observe(embed, action, first, noise)
    other, _ = rssm.observe(embed.at[:3].add(1.0), action.at[:3].add(1.0), first, noise.at[:3].multiply(0.5))
    np.testing.assert_array_equal(states.feature[3:], other.feature[3:])
    assert not np.allclose(states.feature[:3], other.feature[:3])
    without, _ = rssm.observe(embed.at[:3].add(1.0), action, first.at[3].set(False), noise)
    assert not np.allclose(states.feature[3:], without.feature[3:])


def test_the_action_at_t_moves_the_state_at_t_plus_one_and_not_before():
    rssm = RSSM(X, A, SMALL, key=jax.random.key(0))
    embed, action, _, noise = inputs(SMALL)
    first = jnp.zeros((T, B), bool).at[0].set(True)
    base, _ = rssm.observe(embed, action, first, noise)
    changed, _ = rssm.observe(embed, action.at[2].add(1.0), first, noise)
    np.testing.assert_array_equal(base.deter[:3], changed.deter[:3])
    assert not np.allclose(base.deter[3], changed.deter[3])


def test_imagination_and_observation_share_one_recurrence():
    rssm = RSSM(X, A, SMALL, key=jax.random.key(0))
    embed, action, _, noise = inputs(SMALL)
    first = jnp.zeros((T, B), bool).at[0].set(True)
    states, _ = rssm.observe(embed, action, first, noise)
    before = State(states.deter[2], states.stoch[2])
    np.testing.assert_allclose(rssm.imagine(before, action[2], noise[3]).deter, states.deter[3], atol=1e-5)


def test_discrete_states_are_one_hot():
    rssm = RSSM(X, A, SMALL, key=jax.random.key(0))
    states, _ = rssm.observe(*inputs(SMALL))
    hot = np.asarray(states.stoch).reshape(T, B, SMALL.stoch, SMALL.classes)
    assert set(np.unique(hot)) == {0.0, 1.0}
    np.testing.assert_array_equal(hot.sum(-1), 1.0)


JOINT = dataclasses.replace(SMALL, prior="joint")


def related(config=JOINT):
    """A model whose categoricals depend on each other."""
    rssm = RSSM(X, A, config, key=jax.random.key(0))
    weight = 3.0 * jax.random.normal(jax.random.key(5), rssm.prior_earlier.weight.shape)
    return eqx.tree_at(lambda rssm: rssm.prior_earlier.weight, rssm, weight)


def test_a_joint_prior_begins_as_an_independent_one():
    plain, joint = (RSSM(X, A, config, key=jax.random.key(0)) for config in (SMALL, JOINT))
    state = plain.observe(*inputs(SMALL))[0]
    np.testing.assert_allclose(joint.prior(state), plain.prior(state), atol=1e-5)
    noise = jax.random.uniform(jax.random.key(2), (T, B, SMALL.stoch))
    np.testing.assert_array_equal(joint.draw(state.deter, noise), plain.draw(state.deter, noise))


def test_imagination_draws_from_the_prior_that_is_learned():
    rssm, count = related(), 4_000
    deter = jnp.broadcast_to(jax.random.normal(jax.random.key(1), (JOINT.deter,)), (count, JOINT.deter))
    noise = jax.random.uniform(jax.random.key(2), (count, JOINT.stoch))
    z = rssm.draw(deter, noise)
    shape = (count, JOINT.stoch, JOINT.classes)
    # Given the parts before it, every part is drawn by its own number: the same draw as from known statistics.
    again = rssm.sample(rssm.prior(State(deter, z)), noise)
    np.testing.assert_array_equal(z, again)
    # And it matters what came before: the same numbers with other first parts give other last ones.
    other = rssm.draw(deter, noise.at[:, 0].set(1.0 - noise[:, 0])).reshape(shape)
    assert (other[:, -1].argmax(-1) != z.reshape(shape)[:, -1].argmax(-1)).mean() > 0.05


def test_a_joint_prior_is_refused_for_gaussian_latents():
    with pytest.raises(SettingError, match=r"world\.prior.*independent"):
        dataclasses.replace(SMALL, latent="gaussian", prior="joint")
