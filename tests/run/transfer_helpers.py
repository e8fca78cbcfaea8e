"""A world model of the table world, learned from random steps, for tests of transfer."""

import jax
import numpy as np

from cascade.config import (
    ActorCriticConfig,
    DeployConfig,
    EnvConfig,
    OptimizerConfig,
    RunConfig,
    SampleConfig,
    TransferConfig,
    WorldConfig,
)
from cascade.data.journal import Journal
from cascade.data.sampler import make_sampler
from cascade.data.store import Store
from cascade.deploy import Plan, RandomPolicy, collect
from cascade.envs import InProcess, make
from cascade.nn.learner import Learner
from cascade.world.model import WorldModel, step

TABLE = "probe:table"
GOAL = 3
# Hundreds of steps of one program: worth optimising, unlike what other tests run once.
FAST = {"xla_backend_optimization_level": 3}

WORLD = WorldConfig(
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
TRANSFER = TransferConfig(
    reward_layers=1,
    reward_units=32,
    reward=OptimizerConfig(lr=3e-3),
    reward_steps=200,
    behaviour_steps=200,
    agent=ActorCriticConfig(
        layers=1,
        units=32,
        horizon=8,
        discount=0.95,
        entropy=1e-2,
        starts=128,
        slow_every=10,
        actor=OptimizerConfig(lr=3e-3),
        critic=OptimizerConfig(lr=3e-3),
    ),
    episodes=40,
    greedy=True,
)


def at_goal(obs, info):
    """A user's reward: 1 for being in one of the table's states."""
    return (info["state"] == GOAL).astype(np.float64)


def configuration(id=TABLE, **changes):
    return RunConfig(
        env=EnvConfig(id=id),
        deploy=DeployConfig(lanes=40),
        sample=SampleConfig(batch=16, length=16),
        world=WORLD,
        transfer=TRANSFER,
        **changes,
    )


def random_store(root, id, steps, deployments=1, lanes=20):
    """Random deployments, as a run would have them."""
    with InProcess(EnvConfig(id=id), lanes) as envs:
        for index in range(deployments):
            plan = Plan(seed=0, deployment=index, steps=steps, each=lanes)
            collect(
                RandomPolicy(envs.spec.action), envs, Journal(root, index, envs.spec), plan, DeployConfig()
            )
    return Store.open(root)


def learn_world(store, config, steps):
    """A world model of the stored data."""
    world = jax.jit(lambda key: WorldModel(store.spec, config.world, key=key))(jax.random.key(0))
    learner = Learner.create(world, config.world.optimizer)
    chunk = jax.tree.map(
        np.asarray, make_sampler(store.fields(), config.sample, jax.random.key(0)).chunk(0, steps)
    )
    run = jax.jit(step, compiler_options=FAST)
    for index in range(steps):
        batch = jax.tree.map(lambda x, i=index: x[i], chunk)
        learner, _, _ = run(learner, batch, jax.random.fold_in(jax.random.key(1), index))
    return learner.model


def best_returns(payoffs):
    """The most that can be earned in an episode of the table world, from each first state."""
    env = make(EnvConfig(id=TABLE))
    value = np.zeros(len(env.transitions))
    for _ in range(env.limit):
        value = (payoffs + value)[env.transitions].max(1)
    return value
