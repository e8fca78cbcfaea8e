"""The world model learns real worlds: FourRooms by heart, and a table of transitions from random data."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cascade.config import DeployConfig, EnvConfig, OptimizerConfig, SampleConfig, WorldConfig
from cascade.data.fields import split
from cascade.data.journal import Journal
from cascade.data.sampler import make_sampler
from cascade.data.store import Store
from cascade.deploy import Plan, RandomPolicy, collect
from cascade.envs import InProcess, make
from cascade.nn.learner import Learner
from cascade.run.look import opening_rows
from cascade.types import Batch
from cascade.world.model import WorldModel, step
from cascade.world.predict import held_out_loss, open_loop

CONTEXT, HORIZON, EPISODES = 5, 10, 4
TABLE = "probe:table"
# Hundreds of steps of one program: worth optimising, unlike what other tests run once.
FAST = {"xla_backend_optimization_level": 3}


def random_data(root, id, steps, lanes):
    """Fields of one random deployment, as a run would have them."""
    plan = Plan(seed=0, deployment=0, steps=steps, each=lanes)
    with InProcess(EnvConfig(id=id), lanes) as envs:
        policy = RandomPolicy(envs.spec.action)
        collect(policy, envs, Journal(root, 0, envs.spec), plan, DeployConfig())
    return Store.open(root).fields()


def create(id, config):
    spec = make(EnvConfig(id=id)).spec
    world = jax.jit(lambda key: WorldModel(spec, config, key=key))(jax.random.key(0))
    return Learner.create(world, config.optimizer)


def train(learner, batches, options=None):
    """One step for each batch."""
    run = jax.jit(step, compiler_options=options)
    for index, batch in enumerate(batches):
        learner, _, _ = run(learner, batch, jax.random.fold_in(jax.random.key(1), index))
    return learner.model


def test_it_knows_real_episodes_by_heart_and_predicts_ten_steps_of_them(tmp_path):
    """Four FourRooms episodes. After five rows, 99% of the objects in the cells of the next ten views are right,
    on average over 20 draws of the noise, and 95% in every draw; expecting no change gets fewer than 80%."""
    config = WorldConfig(
        deter=128,
        hidden=128,
        stoch=8,
        classes=8,
        mlp_layers=2,
        mlp_units=128,
        precision="float32",
        optimizer=OptimizerConfig(lr=1e-3),
    )
    id = "minigrid:FourRooms-v0"
    fields = random_data(tmp_path, id, steps=20 * EPISODES, lanes=EPISODES)
    batch = opening_rows(fields, CONTEXT + HORIZON, EPISODES)
    assert batch.is_first.shape == (EPISODES, CONTEXT + HORIZON)
    world = train(create(id, config), [batch] * 400, FAST)
    grid = np.asarray(batch.obs["grid"])
    truth, still = grid[:, CONTEXT:], grid[:, CONTEXT - 1 : CONTEXT]
    assert (truth == still)[..., 0].mean() < 0.8
    predict = jax.jit(jax.vmap(lambda key: open_loop(world, batch, key, context=CONTEXT)))
    prediction = predict(jax.random.split(jax.random.key(0), 20))
    assert prediction.valid.all()
    right = np.asarray(prediction.obs["grid"])[:, :, CONTEXT:] == truth
    assert right[..., 0].mean() >= 0.99
    assert right[..., 0].mean(axis=(1, 2, 3, 4)).min() >= 0.95
    assert right.mean() >= 0.99


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A model before and after training on random steps of the table world, and episodes held out."""
    config = WorldConfig(
        deter=32,
        hidden=32,
        stoch=4,
        classes=8,
        mlp_layers=1,
        mlp_units=32,
        precision="float32",
        kl_scale=0.03,
        optimizer=OptimizerConfig(lr=3e-3),
    )
    fields = random_data(tmp_path_factory.mktemp("table"), TABLE, steps=2000, lanes=20)
    kept, held_out = split(fields, every=10)
    sample = SampleConfig(batch=16, length=16)
    chunk = make_sampler(kept, sample, jax.random.key(0)).chunk(0, 700)
    new = create(TABLE, config)
    host = jax.tree.map(np.asarray, chunk)
    world = train(new, (jax.tree.map(lambda x, i=i: x[i], host) for i in range(700)))
    return new.model, world, make_sampler(held_out, sample, jax.random.key(1)).chunk(0, 4)


def next_states(world, draws):
    """For every state and action, the next state in each of `draws` imagined steps: [draws, states, actions]."""
    states, actions = make(EnvConfig(id=TABLE)).transitions.shape
    seen = jax.nn.one_hot(jnp.repeat(jnp.arange(states), actions), states)
    action = jnp.tile(jnp.arange(actions), states)
    pairs = Batch(
        {"vector": jnp.stack([seen, jnp.zeros_like(seen)], 1)},
        jnp.stack([action, jnp.zeros_like(action)], 1),
        jnp.zeros((len(seen), 2), bool).at[:, 0].set(True),
        jnp.zeros((len(seen), 2), bool),
    )
    keys = jax.random.split(jax.random.key(2), draws)
    imagine = jax.jit(jax.vmap(lambda key: open_loop(world, pairs, key, context=1).obs["vector"][:, 1]))
    return np.asarray(imagine(keys).argmax(-1)).reshape(draws, states, actions)


def test_the_transition_table_is_recovered(table):
    """One row is seen, one step imagined, 64 times: the most frequent next state is the true one for every
    state and action (all can be reached), no pair is right less than half the time, and the mean is over 90%."""
    before, after, _ = table
    truth = make(EnvConfig(id=TABLE)).transitions
    drawn = next_states(after, 64)
    often = np.array([np.bincount(column, minlength=8) for column in drawn.reshape(64, -1).T])
    np.testing.assert_array_equal(often.argmax(-1).reshape(truth.shape), truth)
    share = (drawn == truth).mean(0)
    assert share.min() > 0.5
    assert share.mean() > 0.9
    assert (next_states(before, 64) == truth).mean() < 0.4


def test_the_loss_on_held_out_episodes_falls(table):
    before, after, chunk = table
    evaluate = jax.jit(held_out_loss)
    first, last = (evaluate(world, chunk, jax.random.key(0)) for world in (before, after))
    assert last["loss"] < 0.1 * first["loss"]
    assert last["loss/vector"] < 0.05 * first["loss/vector"]
    assert last["loss/discount"] < 0.01


def test_held_out_episodes_are_predicted_from_their_first_rows(table):
    """Ten steps ahead, through states and actions in an order that was not trained on."""
    _, world, chunk = table
    batch = jax.tree.map(lambda x: x[0], chunk)
    prediction = jax.jit(functools.partial(open_loop, context=CONTEXT))(world, batch, jax.random.key(3))
    rows = np.array(prediction.valid)
    rows[:, :CONTEXT] = rows[:, CONTEXT + HORIZON :] = False
    assert rows.sum() > 50
    right = np.asarray(prediction.obs["vector"].argmax(-1) == batch.obs["vector"].argmax(-1))
    assert right[rows].mean() > 0.8
