"""Looking ahead: the values of actions two ways, what they may depend on, and what a policy does with them."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import SMALL, env_spec, random_batch, world_model

from cascade.config import ActorCriticConfig, TransferConfig
from cascade.explore.policy import PopulationPolicy
from cascade.transfer import behaviour, reward_head
from cascade.transfer.lookahead import Lookahead, advantages, restored, settings
from cascade.transfer.saved import Behaviour
from cascade.world.rssm import State

SPEC = env_spec("vector")
TASKS, LANES = 2, 6  # lanes of each task
AGENT = ActorCriticConfig(layers=1, units=8, horizon=4, discount=0.9, trace=0.7)
CONFIG = TransferConfig(reward_layers=1, reward_units=8, agent=AGENT, lookahead=3, lookahead_weight=5.0)


def opinionated(tree, seed):
    """Weights that are not as they begin, when every value and reward is 0."""
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(jax.random.key(seed), len(leaves))
    drawn = [
        x + jax.random.normal(k, x.shape) if jnp.issubdtype(x.dtype, jnp.floating) else x
        for x, k in zip(leaves, keys, strict=True)
    ]
    return jax.tree.unflatten(structure, drawn)


def models(config=CONFIG, world_config=SMALL):
    """A world model, the actors of two tasks and what they look ahead with; one task's rewards are final."""
    world = world_model(SPEC, world_config)
    final = jnp.array([False, True])
    heads = reward_head.create(
        world_config, jnp.ones(TASKS), jnp.full(TASKS, 0.1), final, config, key=jax.random.key(1)
    )
    behaviours = behaviour.create(world_config, SPEC.action, TASKS, config, key=jax.random.key(2))
    look = Lookahead.of(behaviours, heads, config)
    judges = replace(look.heads, head=opinionated(look.heads.head, 4), excess=jnp.array([0.3, -0.4]))
    look = replace(look, critic=opinionated(look.critic, 3), heads=judges, unit=jnp.array([1.0, 2.5]))
    return world, opinionated(behaviours.agents.actor.model, 5), look


def belief(world, count=LANES):
    states, _ = world.observe(
        random_batch(SPEC, (TASKS, count)), world.rssm.noise(jax.random.key(6), TASKS, count)
    )
    return states


def alone(tree, index):
    return jax.tree.map(lambda x: x[index], tree)


def one_by_one(world, actor, look, state, key):
    """Returns [A, K] by the definition: one trajectory after another, with the same draws for each action."""
    first, later = jax.random.split(key)
    count, horizon = CONFIG.lookahead, AGENT.horizon
    moves = [world.rssm.noise(first, count)]
    acts = []
    for time in range(horizon - 1):
        act, move = jax.random.split(jax.random.fold_in(later, time))
        acts.append(actor.noise(act, count))
        moves.append(world.rssm.noise(move, count))
    values = []
    for taken in jnp.eye(SPEC.action.size):
        returns = []
        for draw in range(count):
            here, action, steps = state, taken, []
            for time in range(horizon):
                here = world.rssm.imagine(here, action, moves[time][draw])
                reward, alive = look.heads.one(here.feature)
                going = AGENT.discount * world.continues(here.feature) * alive
                steps.append((reward / look.unit, going, look.critic(here.feature)))
                if time < horizon - 1:
                    action = actor.sample(here.feature, acts[time][draw])
            after = steps[-1][2]
            for reward, going, value in reversed(steps):
                after = reward + going * ((1 - AGENT.trace) * value + AGENT.trace * after)
            returns.append(float(after))
        values.append(returns)
    return np.array(values)


def test_returns_are_those_of_trajectories_one_by_one():
    world, actors, look = models()
    states, keys = belief(world), jax.random.split(jax.random.key(7), (TASKS, LANES))
    advice = jax.jit(lambda *args: look(*args))(world, actors, states, keys)
    assert advice.shape == (TASKS, LANES, SPEC.action.size)
    sample = jax.jit(lambda look, *args: look.samples(world, *args))
    for task in range(TASKS):
        for lane in (0, LANES - 1):
            actor, own, state = alone(actors, task), alone(look, task), alone(states, (task, lane))
            found = sample(own, actor, state, keys[task, lane])
            expected = one_by_one(world, actor, own, state, keys[task, lane])
            np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)
            assert np.ptp(found.mean(1)) > 1e-4, "actions differ"
            weighed = CONFIG.lookahead_weight * advantages(found)
            np.testing.assert_allclose(advice[task, lane], weighed, rtol=2e-3, atol=2e-4)


def test_what_chance_explains_is_not_believed():
    noise = jax.random.normal(jax.random.key(8), (500, 3, 16))
    truth = jnp.array([0.6, 0.0, -0.6])
    differ = jnp.broadcast_to(truth[None, :, None], noise.shape)
    find = jax.jit(jax.vmap(advantages))
    plain = noise.mean(-1) - noise.mean((1, 2), keepdims=True)[..., 0]
    nothing, something = find(noise), find(noise + differ) - differ[..., 0]
    assert jnp.square(nothing).mean() < 0.3 * jnp.square(plain).mean()
    assert jnp.square(something).mean() < 1.5 * jnp.square(plain).mean(), "and what differs mostly is"
    same_luck = jnp.broadcast_to(
        10.0 * noise[:, :1], noise.shape
    )  # for every action: it says nothing of them
    np.testing.assert_allclose(find(same_luck + differ), differ[..., 0], atol=1e-4)
    np.testing.assert_array_equal(find(jnp.ones((2, 3, 16))), 0.0)
    np.testing.assert_allclose(advantages(truth[:, None]), truth, atol=1e-6)  # one draw tells of no chance


def test_a_state_is_moved_by_nothing_in_another():
    world, actors, look = models()
    states, keys = belief(world), jax.random.split(jax.random.key(7), (TASKS, LANES))
    run = jax.jit(lambda *args: look(*args))
    before = run(world, actors, states, keys)
    other = State(states.deter.at[0, 2].add(1.0), states.stoch)
    after = run(world, actors, other, keys)
    rest = np.ones((TASKS, LANES), bool)
    rest[0, 2] = False
    np.testing.assert_array_equal(before[rest], after[rest])
    assert np.abs(before[0, 2] - after[0, 2]).max() > 1e-4
    fewer = jax.tree.map(lambda x: x[:, 1:4], (states, keys))
    np.testing.assert_allclose(run(world, actors, *fewer), before[:, 1:4], rtol=2e-4, atol=2e-5)


def certain(look):
    """One draw for each action, which tells of no chance, and all the weight on it."""
    return replace(look, config=replace(look.config, lookahead=1, lookahead_weight=1e6))


def acted(policy, steps=5):
    """Actions in episodes that begin together, [steps, lanes]."""
    rng, memory, actions = np.random.default_rng(0), policy.initial(TASKS * LANES), []
    for step in range(steps):
        obs = {"vector": rng.normal(size=(TASKS * LANES, 5)).astype(np.float32)}
        keys = jax.random.split(jax.random.key(step), TASKS * LANES)
        memory, action = policy.act(memory, obs, np.full(TASKS * LANES, step == 0), keys)
        actions.append(action)
    return np.stack(actions)


def test_without_weight_it_changes_no_action_and_with_a_large_one_it_takes_the_best():
    world, actors, look = models()
    plain = acted(PopulationPolicy(world, actors))
    ignored = replace(look, config=replace(look.config, lookahead_weight=0.0))
    np.testing.assert_array_equal(acted(PopulationPolicy(world, actors, advice=ignored)), plain)
    sure = certain(look)
    drawn, greedy = (acted(PopulationPolicy(world, actors, flag, advice=sure)) for flag in (False, True))
    np.testing.assert_array_equal(drawn, greedy)
    assert (drawn != plain).any()


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_saved_behaviour_looks_ahead_as_it_did(precision, tmp_path):
    world, actors, look = models(world_config=replace(SMALL, precision=precision))
    look = certain(look)
    one = Behaviour(world, alone(actors, 1), SPEC, "reward", False, alone(look, 1))
    loaded = Behaviour.load(one.save(tmp_path / "policy"))
    assert loaded.lookahead.config == look.config
    np.testing.assert_array_equal(acted(loaded.policy()), acted(one.policy()))
    assert (acted(one.policy()) != acted(replace(one, lookahead=None).policy())).any()


def test_only_what_matters_is_written():
    config = replace(CONFIG, reward_steps=7, episodes=3, agent=replace(AGENT, entropy=0.5))
    assert restored(settings(config)) == restored(settings(CONFIG))
    assert settings(restored(settings(CONFIG))) == settings(CONFIG)
