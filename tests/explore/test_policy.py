"""The deployed policy: its belief is the training-time posterior, and every lane is on its own."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import SMALL, env_spec

from cascade.config import ActorCriticConfig
from cascade.explore.actor import Actor
from cascade.explore.policy import PopulationPolicy
from cascade.types import Batch, Policy
from cascade.world.encoder import Encoder
from cascade.world.model import WorldModel
from cascade.world.rssm import feature_size

P, N, T = 2, 3, 8
LANES = P * N
ACTIONS = ("discrete", "continuous")


def models(action="discrete", config=SMALL, size=3):
    """A world model with a grid and a vector, and P actors with opinions."""
    spec = env_spec("grid", "vector", action=action, size=size)
    agent = ActorCriticConfig(layers=1, units=8)
    world = WorldModel(spec, config, key=jax.random.key(0))
    actors = jax.vmap(lambda key: Actor(feature_size(config), spec.action, agent, config.precision, key=key))(
        jax.random.split(jax.random.key(1), P)
    )
    return world, jax.tree.map(lambda x: 3.0 * x, actors)


def observations(lanes=LANES, seed=0):
    """T observations for each lane, [T, L, ...]."""
    rng = np.random.default_rng(seed)
    grid = rng.integers(0, (11, 6, 4), size=(T, lanes, 7, 7, 3)).astype(np.uint8)
    return {"grid": grid, "vector": rng.normal(size=(T, lanes, 5)).astype(np.float32)}


def first_rows(*more: tuple[int, int]):
    """`is_first` [T, L]: at time 0, and at each (time, lane) given."""
    first = np.zeros((T, LANES), bool)
    first[0] = True
    for time, lane in more:
        first[time, lane] = True
    return first


def keys(seed=7):
    return jax.random.split(jax.random.key(seed), (T, LANES))


def play(policy, obs, first, noise_keys):
    """Beliefs and actions [T, L, ...] of a policy over given observations."""
    carry, beliefs, actions = policy.initial(first.shape[1]), [], []
    for time in range(len(first)):
        now = {name: part[time] for name, part in obs.items()}
        carry, action = policy.act(carry, now, first[time], noise_keys[time])
        beliefs.append(np.concatenate([carry.deter, carry.stoch], -1))
        actions.append(action)
    return np.stack(beliefs), np.stack(actions)


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("latent", ["discrete", "gaussian"])
def test_the_belief_is_the_posterior_that_training_sees(action, latent):
    """Filtering step by step equals `observe` over the whole episode, for the same noise and actions."""
    world, actors = models(action, replace(SMALL, latent=latent))
    obs, first, noise_keys = observations(), first_rows((3, 1), (5, 4)), keys()
    beliefs, actions = play(PopulationPolicy(world, actors), obs, first, noise_keys)
    halves = jax.vmap(jax.vmap(jax.random.split))(noise_keys)
    noise = jax.vmap(jax.vmap(world.rssm.noise))(halves[:, :, 0])
    rows = jax.tree.map(lambda x: jnp.asarray(x).swapaxes(0, 1), (obs, actions, first, noise))
    batch = Batch(*rows[:3], jnp.zeros((LANES, T), bool))
    states, _ = world.observe(batch, rows[3])
    np.testing.assert_allclose(beliefs.swapaxes(0, 1), states.feature, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("action", ACTIONS)
def test_actions_are_of_the_kind_that_is_stored(action):
    world, actors = models(action)
    _, actions = play(PopulationPolicy(world, actors), observations(), first_rows(), keys())
    spec = world.action
    assert actions.dtype == spec.dtype
    assert actions.shape == (T, LANES, *spec.shape)
    assert np.abs(actions).max() <= (spec.size - 1 if action == "discrete" else 1.0)
    assert actions.std() > 0


def test_is_first_forgets_everything_in_its_lane_and_nothing_elsewhere():
    world, actors = models()
    policy, obs, noise_keys = PopulationPolicy(world, actors), observations(), keys()
    whole, _ = play(policy, obs, first_rows(), noise_keys)
    cut, _ = play(policy, obs, first_rows((4, 1)), noise_keys)
    later = {name: part[4:] for name, part in obs.items()}
    fresh, _ = play(policy, later, first_rows()[: T - 4], noise_keys[4:])
    np.testing.assert_array_equal(cut[4:, 1], fresh[:, 1])
    assert (cut[4, 1] != whole[4, 1]).any()
    others = np.arange(LANES) != 1
    np.testing.assert_array_equal(cut[:, others], whole[:, others])


@pytest.mark.parametrize("change", ["observation", "key", "is_first"])
def test_a_lane_is_moved_by_nothing_in_another(change):
    world, actors = models()
    policy, obs, first, noise_keys = PopulationPolicy(world, actors), observations(), first_rows(), keys()
    before = play(policy, obs, first, noise_keys)
    lane, others = 2, np.arange(LANES) != 2
    if change == "observation":
        obs = {name: part.copy() for name, part in obs.items()}
        obs["vector"][:, lane] += 5.0
    elif change == "key":
        noise_keys = noise_keys.at[:, lane].set(keys(8)[:, lane])
    else:
        first = first_rows((2, lane), (5, lane))
    after = play(policy, obs, first, noise_keys)
    for was, is_now in zip(before, after, strict=True):
        np.testing.assert_array_equal(was[:, others], is_now[:, others])
    assert (before[0][:, lane] != after[0][:, lane]).any()


def test_the_same_key_draws_the_same_and_another_draws_anew():
    world, actors = models("continuous")
    policy, obs, first = PopulationPolicy(world, actors), observations(), first_rows()
    one, again, other = (play(policy, obs, first, keys(seed))[1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert (one != other).all()


@pytest.mark.parametrize("action", ACTIONS)
def test_greedy_takes_the_most_likely_action_of_the_same_belief(action):
    """At the first step the belief is the same for both; the sampled actions scatter around the greedy one."""
    world, actors = models(action)
    obs, first = observations(), first_rows()
    now = {name: part[0] for name, part in obs.items()}
    greedy, sampled = PopulationPolicy(world, actors, greedy=True), PopulationPolicy(world, actors)
    mine, chosen = greedy.act(greedy.initial(LANES), now, first[0], keys()[0])
    theirs, _ = sampled.act(sampled.initial(LANES), now, first[0], keys()[0])
    np.testing.assert_array_equal(mine.stoch, theirs.stoch)
    feature = jnp.concatenate([mine.deter, mine.stoch], -1).reshape(P, N, -1)
    best = jax.vmap(lambda actor, x: actor.mode(actor.parameters(x)))(actors, feature).reshape(LANES, -1)
    expected = best.argmax(-1) if action == "discrete" else best
    np.testing.assert_allclose(chosen, expected, rtol=1e-5, atol=1e-6)
    draws = [sampled.act(sampled.initial(LANES), now, first[0], keys(seed)[0])[1] for seed in range(20)]
    assert (np.stack(draws) != chosen).any()


def test_lanes_belong_to_explorers_in_order():
    """Explorer-major: the same observation in every lane gets the first explorer's action in the first n."""
    world, actors = models("continuous")
    obs = {name: np.repeat(part[:, :1], LANES, 1) for name, part in observations().items()}
    now = {name: part[0] for name, part in obs.items()}
    same = jnp.broadcast_to(keys()[0, :1], (LANES,))
    policy = PopulationPolicy(world, actors, greedy=True)
    _, action = policy.act(policy.initial(LANES), now, first_rows()[0], same)
    by_explorer = action.reshape(P, N, -1)
    np.testing.assert_allclose(by_explorer, by_explorer[:, :1].repeat(N, 1), rtol=1e-5)
    assert np.abs(by_explorer[0, 0] - by_explorer[1, 0]).max() > 1e-3
    swapped = PopulationPolicy(world, jax.tree.map(lambda x: x[::-1], actors), greedy=True)
    _, exchanged = swapped.act(swapped.initial(LANES), now, first_rows()[0], same)
    np.testing.assert_allclose(exchanged.reshape(P, N, -1), by_explorer[::-1], rtol=1e-5)


def test_one_trace_serves_all_ticks_and_all_policies_of_one_architecture(monkeypatch):
    traces, encode = [], Encoder.__call__

    def counted(self, obs):
        traces.append(sorted(obs))
        return encode(self, obs)

    monkeypatch.setattr(Encoder, "__call__", counted)
    world, actors = models(size=5)  # a size no other test has compiled
    retrained = jax.tree.map(lambda x: 0.5 * x, world)
    for policy in (PopulationPolicy(world, actors), PopulationPolicy(retrained, actors)):
        play(policy, observations(), first_rows((2, 3)), keys())
    assert len(traces) == 1


def test_bfloat16_models_remember_in_bfloat16_and_act_in_float32():
    world, actors = models("continuous", replace(SMALL, precision="bfloat16"))
    policy = PopulationPolicy(world, actors)
    assert isinstance(policy, Policy)
    start = policy.initial(LANES)
    now = {name: part[0] for name, part in observations().items()}
    after, action = policy.act(start, now, first_rows()[0], keys()[0])
    assert [x.dtype for x in after] == [x.dtype for x in start] == [jnp.bfloat16, jnp.bfloat16, jnp.float32]
    assert action.dtype == np.float32
