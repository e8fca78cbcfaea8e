"""Reward heads and behaviour policies on batches: alignment, independence of tasks, units, chunks, a frozen world."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import SMALL, env_spec, random_batch

from cascade.config import ActorCriticConfig, OptimizerConfig, TransferConfig
from cascade.explore.imagine import Imagined
from cascade.explore.returns import RunningScale
from cascade.transfer import behaviour, reward_head
from cascade.transfer.behaviour import behaviour_phase
from cascade.transfer.reward_head import RewardHeads, reward_phase
from cascade.world.model import WorldModel
from cascade.world.rssm import State

SPEC = env_spec("vector")
CONFIG = TransferConfig(
    reward_layers=1,
    reward_units=8,
    reward=OptimizerConfig(lr=3e-3),
    agent=ActorCriticConfig(layers=1, units=8, horizon=3, starts=5, slow_every=2),
)
CHUNK = jax.tree.map(lambda *rows: jnp.stack(rows), *(random_batch(SPEC, seed=seed) for seed in range(3)))
RNG = np.random.default_rng(0)
LABELS = jnp.asarray(
    RNG.normal(size=(3, 3, 3, 7)) * (RNG.random((3, 3, 3, 7)) < 0.4), jnp.float32
)  # [K, P, B, T]
UNITS = jnp.array([0.5, 1.0, 4.0])
KEY = jax.random.key(7)


@pytest.fixture(scope="module")
def world():
    return jax.jit(lambda key: WorldModel(SPEC, SMALL, key=key))(jax.random.key(0))


def new_heads(units):
    shares, final = jnp.full(units.shape, 0.1), jnp.zeros(units.shape, bool)
    return reward_head.create(SMALL, units, shares, final, CONFIG, key=jax.random.key(1))


def new_agents(tasks):
    return behaviour.create(SMALL, SPEC.action, tasks, CONFIG, key=jax.random.key(2))


@jax.jit
def heads_step(heads, world, chunk, labels, step):
    return reward_phase(heads, world, chunk, labels, step, KEY, CONFIG)


@jax.jit
def agents_step(agents, heads, world, chunk, step):
    return behaviour_phase(agents, heads, world, chunk, step, KEY, CONFIG)


def train_heads(world, chunk, labels, units):
    return heads_step(new_heads(units), world, chunk, labels, jnp.int32(4))


def train_agents(world, heads, chunk):
    return agents_step(new_agents(heads.unit.shape[0]), heads, world, chunk, jnp.int32(4))


def assert_close(left, right, rtol=2e-4, atol=1e-6):
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def assert_same(left, right):
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_array_equal(a, b)


def test_tasks_side_by_side_equal_tasks_alone(world):
    """Heads and policies of three tasks at once, and of each by itself, on the same draws."""
    heads, seen = train_heads(world, CHUNK, LABELS, UNITS)
    agents, metrics = train_agents(world, heads, CHUNK)
    assert metrics["return"].shape == seen["loss"].shape == (3,)
    for task in range(3):
        alone, _ = train_heads(world, CHUNK, LABELS[:, task : task + 1], UNITS[task : task + 1])
        assert_close(alone, jax.tree.map(lambda x, i=task: x[i : i + 1], heads))
        own, own_metrics = train_agents(world, alone, CHUNK)
        assert_close(own, jax.tree.map(lambda x, i=task: x[i : i + 1], agents), rtol=1e-3)
        np.testing.assert_allclose(own_metrics["return"][0], metrics["return"][task], rtol=1e-3, atol=1e-6)
    weights = np.asarray(agents.agents.actor.model.mlp.out.weight)
    assert np.abs(weights[0] - weights[1]).max() > 1e-5


def test_the_order_of_tasks_does_not_matter(world):
    order = jnp.array([2, 0, 1])
    heads, _ = train_heads(world, CHUNK, LABELS, UNITS)
    mixed, _ = train_heads(world, CHUNK, LABELS[:, order], UNITS[order])
    assert_close(mixed, jax.tree.map(lambda x: x[order], heads))
    agents, mixed_agents = (train_agents(world, one, CHUNK)[0] for one in (heads, mixed))
    assert_close(mixed_agents, jax.tree.map(lambda x: x[order], agents), rtol=1e-3)


def test_rewards_in_other_units_give_the_same_policy_bit_for_bit(world):
    """Rewards are learned in units of the labels' own size: eight times the reward is the same task."""
    results = []
    for factor in (1.0, 8.0):
        heads, seen = train_heads(world, CHUNK, factor * LABELS, factor * UNITS)
        agents, metrics = train_agents(world, heads, CHUNK)
        results.append((heads.learner, heads.excess, agents))
        errors = np.asarray(seen["error_rewarding"]) / factor, np.asarray(metrics["imagined_reward"]) / factor
        results[-1] += errors
    assert_same(*results)


def test_the_chunk_does_not_matter(world):
    """A chunk of three equals three chunks of one."""
    heads, _ = train_heads(world, CHUNK, LABELS, UNITS)
    agents, _ = train_agents(world, heads, CHUNK)
    apart, one_by_one = new_heads(UNITS), new_agents(3)
    for i in range(3):
        piece, step = jax.tree.map(lambda x, i=i: x[i : i + 1], CHUNK), jnp.int32(4 + i)
        apart, _ = heads_step(apart, world, piece, LABELS[i : i + 1], step)
        one_by_one, _ = agents_step(one_by_one, heads, world, piece, step)
    assert_close(heads, apart)
    assert_close(agents, one_by_one, rtol=1e-3)


def test_labels_of_first_rows_are_not_read(world):
    """Nothing is arrived at there: whatever they hold, the heads are the same, bit for bit."""
    first = jnp.broadcast_to(CHUNK.is_first[:, None], LABELS.shape)
    assert_same(
        train_heads(world, CHUNK, jnp.where(first, 99.0, LABELS), UNITS),
        train_heads(world, CHUNK, jnp.where(first, -1.0, LABELS), UNITS),
    )
    others = train_heads(world, CHUNK, LABELS + 1.0, UNITS)[0].learner.model.mlp.out.weight
    assert not np.allclose(others, train_heads(world, CHUNK, LABELS, UNITS)[0].learner.model.mlp.out.weight)


def test_the_odds_of_a_reward_are_those_of_the_store(world):
    """Drawn in 4 of 10 rows and stored in 1 of 10: odds of 6 to 1 in training are 1 to 1 in the store."""
    heads = new_heads(jnp.ones(1))
    assert heads.excess[0] == 0.0
    heads = replace(heads, rewarding=jnp.array([40.0]), rows=jnp.array([100.0]))
    np.testing.assert_allclose(jnp.exp(heads.excess), (0.4 / 0.6) / (0.1 / 0.9), rtol=1e-5)
    bias = jnp.array([[np.log(6.0), 3.0]])
    certain = eqx.tree_at(lambda h: h.learner.model.mlp.out.bias, heads, bias)
    reward, going = certain(jnp.zeros((1, 2, 44)))
    np.testing.assert_allclose(reward, np.full((1, 2), 1.5), rtol=1e-5)
    np.testing.assert_array_equal(going, 1.0)
    reward, going = replace(certain, final=jnp.array([True]))(jnp.zeros((1, 2, 44)))
    np.testing.assert_allclose(reward, np.full((1, 2), 1.5), rtol=1e-5)
    np.testing.assert_allclose(going, np.full((1, 2), 0.5), rtol=1e-5)


def test_errors_are_means_over_their_rows_in_the_units_of_the_labels():
    """Two batches: errors 2 and 4 on three rewarding rows, 1 on one other row; the unit is 10."""
    means = {
        "rewarding": jnp.array([1.5]),
        "other": jnp.array([0.5]),
        "rewarding_error": jnp.array([(2.0 + 4.0 + 4.0) / 2]),
        "other_error": jnp.array([0.5]),
    }
    found = reward_head.errors(means, jnp.array([10.0]))
    assert found["error_rewarding"][0] == pytest.approx(100 / 3)
    assert found["error_other"][0] == pytest.approx(10.0)
    assert found["rewarding_rows"][0] == pytest.approx(0.75)


def test_measured_errors_are_those_of_the_heads_as_they_are(world):
    """A head that knows nothing is wrong by the whole of every label, in the last batch as in the first."""
    heads = new_heads(UNITS)
    found = reward_head.measure(heads, world, CHUNK, LABELS, KEY)
    counts = ~np.asarray(CHUNK.is_first)
    for task in range(len(UNITS)):
        labels = np.asarray(LABELS)[:, task][counts]
        right = np.abs(labels[labels != 0]).mean()
        assert found["error_rewarding"][task] == pytest.approx(right, rel=1e-4)
        assert found["rewarding_rows"][task] == pytest.approx((labels != 0).mean(), rel=1e-4)
    np.testing.assert_array_equal(found["error_other"], 0.0)


class Coordinate(RewardHeads):
    """A reward head with a known answer: the first number of the state; life ends at `goal`."""

    goal: float

    def __init__(self, goal=0.0):
        self.learner = self.share = self.final = self.rewarding = self.rows = None
        self.unit, self.goal = jnp.array([2.0]), goal

    def __call__(self, feature):
        return feature[..., 0], jnp.where(feature[..., 0] == self.goal, 0.0, 1.0)


def imagined(going):
    """One trajectory of three steps whose states are 1, 2, 3 and 4."""
    feature = jnp.array([1.0, 2.0, 3.0]).reshape(3, 1, 1, 1)
    final = State(jnp.full((1, 1, 1), 4.0), jnp.zeros((1, 1, 0)))
    return Imagined(feature, final, jnp.zeros((3, 1, 1, 2)), jnp.asarray(going).reshape(3, 1, 1))


@pytest.mark.parametrize(
    ("going", "alive", "earned"),
    [([1, 1, 1], 1, 2 + 3 + 4), ([0.5, 0.5, 0.5], 1, 2 + 1.5 + 1), ([1, 0, 1], 1, 2 + 3), ([1, 1, 1], 0, 0)],
)
def test_the_reward_of_a_step_is_that_of_the_state_it_arrives_at(going, alive, earned):
    """And what is imagined after an end, or from one, is not earned."""
    size = jax.tree.map(lambda x: x[None], RunningScale.create())
    config = replace(CONFIG, normalize="none")
    reward, discount, (after, metrics) = behaviour.rewards(
        size, Coordinate(), imagined(jnp.array(going, jnp.float32)), jnp.array([float(alive)]), config
    )
    np.testing.assert_array_equal(discount[:, 0, 0], going)
    np.testing.assert_array_equal(reward[:, 0, 0], [2.0, 3.0, 4.0])
    assert metrics["imagined_reward"][0] == pytest.approx(2.0 * earned)
    assert after.rms[0] == pytest.approx(earned)
    scaled, *_ = behaviour.rewards(
        size, Coordinate(), imagined(jnp.array(going, jnp.float32)), jnp.array([float(alive)]), CONFIG
    )
    np.testing.assert_allclose(scaled, reward / max(earned, behaviour.SMALLEST), rtol=1e-5)


def test_nothing_is_earned_after_a_final_reward_whatever_the_model_imagines():
    """The model lets life go on throughout; the head knows that the reward of 3 was the last."""
    size = jax.tree.map(lambda x: x[None], RunningScale.create())
    reward, discount, (after, metrics) = behaviour.rewards(
        size, Coordinate(goal=3.0), imagined(jnp.full(3, 0.5)), jnp.ones(1), replace(CONFIG, normalize="none")
    )
    np.testing.assert_array_equal(reward[:, 0, 0], [2.0, 3.0, 4.0])
    np.testing.assert_array_equal(discount[:, 0, 0], [0.5, 0.0, 0.5])
    assert metrics["imagined_reward"][0] == pytest.approx(2.0 * (2 + 0.5 * 3))
    assert after.rms[0] == pytest.approx(2 + 0.5 * 3)


def test_a_policy_learns_from_the_discount_of_its_heads(world):
    """Heads that say of every state that it is a reward: final ones leave nothing to look forward to."""
    heads = new_heads(jnp.ones(1))
    sure = eqx.tree_at(lambda h: h.learner.model.mlp.out.bias, heads, jnp.array([[50.0, 1.0]]))
    quiet = replace(CONFIG, normalize="none")
    values = []
    for final in (False, True):
        own = replace(sure, final=jnp.array([final]))
        _, metrics = behaviour_phase(new_agents(1), own, world, CHUNK, jnp.int32(0), KEY, quiet)
        values.append(float(metrics["return"][0]))
    assert values[1] == pytest.approx(1.0, rel=1e-3)
    assert values[0] > 1.2


def test_seeds_train_under_vmap(world):
    """Two seeds at once are the two seeds."""
    worlds = jax.jit(jax.vmap(lambda key: WorldModel(SPEC, SMALL, key=key)))(
        jax.random.split(jax.random.key(5), 2)
    )
    heads = jax.jit(lambda: new_heads(UNITS))()
    both = jax.tree.map(lambda x: jnp.stack([x, x]), heads)

    def one(heads, world):
        return reward_phase(heads, world, CHUNK, LABELS, jnp.int32(0), KEY, CONFIG)[0]

    together = jax.jit(jax.vmap(one))(both, worlds)
    for seed in range(2):
        alone = jax.jit(one)(heads, jax.tree.map(lambda x, i=seed: x[i], worlds))
        assert_close(alone, jax.tree.map(lambda x, i=seed: x[i], together), rtol=1e-3)
