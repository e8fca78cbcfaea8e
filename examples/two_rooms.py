"""The paper's Figure 2, run: two informative rooms, one slightly richer, and a population of explorers.

A world model is learned from random walks in a corridor with a room at each end. Both rooms hold information, the
right one a little more. Explorers that look for information alone (PP2E) all go right; with the cascade, those that
come later go where the first ones do not. Information is given here as a known map, read off the model's own
prediction of where it is, so that the right answer is known too; everything else is the real thing.

    python examples/two_rooms.py --seeds 100-119
"""

import json
import sys
from dataclasses import asdict, dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import tyro

from cascade.config import ActorCriticConfig, EnvConfig, ExploreConfig, OptimizerConfig, WorldConfig
from cascade.envs import make
from cascade.explore import population
from cascade.explore.imagine import choose_starts
from cascade.explore.policy import PopulationPolicy
from cascade.nn.learner import Learner
from cascade.seeds import Seeds
from cascade.types import Batch
from cascade.world import model
from cascade.world.model import WorldModel

LIMIT, STARTS = 10, 96
ENV = EnvConfig(f"probe:two-rooms?corridor=3&limit={LIMIT}", observation="vector")
WORLD = WorldConfig(
    deter=48,
    hidden=32,
    stoch=4,
    classes=8,
    mlp_layers=2,
    mlp_units=48,
    precision="float32",
    optimizer=OptimizerConfig(lr=2e-3),
)
AGENT = ActorCriticConfig(
    layers=1,
    units=48,
    horizon=LIMIT,
    discount=0.95,
    entropy=0.1,
    slow_every=5,
    actor=OptimizerConfig(lr=1.2e-3),
    critic=OptimizerConfig(lr=3e-3),
)
LEFT, RIGHT = 1, 2  # regions, as the environment's info names them


@dataclass(frozen=True)
class Args:
    """Compare PP2E and CASCADE on two informative rooms."""

    seeds: Seeds = tuple(range(100, 110))
    """populations to train, side by side"""
    richness: float = 1.2
    """information per step in the right room; the left one has 1"""
    weight: float = 0.5
    """the cascade's λ"""
    explorers: int = 5
    """explorers in a population"""
    model_steps: int = 800
    """gradient steps of the world model"""
    model_seed: int = 0
    """seed of the world model, which all populations share"""
    explorer_steps: int = 150
    """gradient steps of the explorers"""


class KnownInformation(eqx.Module):
    """Stands where the ensemble stands: information as a map of the place that the model believes to be in."""

    world: WorldModel
    edges: tuple[float, float] = eqx.field(static=True)
    richness: float = eqx.field(static=True)

    def disagreement(self, feature, action):
        place = self.world.decoder.parts["vector"].mlp(feature)[..., 0]
        left, right = place < self.edges[0], place > self.edges[1]
        return jnp.where(left, 1.0, 0.0) + jnp.where(right, self.richness, 0.0)


def room_edges() -> tuple[float, float]:
    """The first observed coordinate halfway between the corridor and each room."""
    env = make(ENV)
    corridor = np.flatnonzero(env.region[:, env.HEIGHT // 2] == env.CORRIDOR)
    scale = 2.0 / (env.width - 1)
    return float((corridor[0] - 0.5) * scale - 1.0), float((corridor[-1] + 0.5) * scale - 1.0)


def random_walks(count: int, seed: int = 0) -> Batch:
    """Whole episodes, each with its own preferred directions, so that all of them together see both rooms."""
    env, rng = make(ENV), np.random.default_rng(seed)
    obs = np.zeros((count, LIMIT + 1, 10), np.float32)
    action = np.zeros((count, LIMIT + 1), np.int32)
    for episode in range(count):
        obs[episode, 0] = env.reset(episode).obs["vector"]
        preference = rng.dirichlet(np.full(4, 0.5))
        for t in range(LIMIT):
            action[episode, t] = rng.choice(4, p=preference)
            obs[episode, t + 1] = env.step(action[episode, t]).obs["vector"]
    first = np.zeros(action.shape, bool)
    first[:, 0] = True
    return Batch(*jax.tree.map(jnp.asarray, ({"vector": obs}, action, first, np.zeros_like(first))))


@partial(jax.jit, static_argnames="steps")
def learn_world(data: Batch, key: jax.Array, steps: int) -> WorldModel:
    """A world model of the corridor and its rooms."""
    first, second = jax.random.split(key)
    learner = Learner.create(WorldModel(make(ENV).spec, WORLD, key=first), WORLD.optimizer)

    def step(learner, key):
        index = jax.random.choice(key, data.action.shape[0], (32,))
        learner, _, metrics = model.step(learner, jax.tree.map(lambda x: x[index], data), key)
        return learner, metrics["loss"]

    return jax.lax.scan(step, learner, jax.random.split(second, steps))[0].model


@partial(jax.jit, static_argnames=("config", "steps", "richness"))
def train_explorers(world, starts, seeds, weight, config: ExploreConfig, steps: int, richness: float):
    """One population for each seed, at once."""
    information = KnownInformation(world, room_edges(), richness)

    def one(seed):
        first, second = jax.random.split(jax.random.key(seed))
        explorers = population.create(WORLD, world.action, config, key=first)

        def step(explorers, key):
            return population.step(explorers, world, information, starts, weight, key, config)[0], None

        return jax.lax.scan(step, explorers, jax.random.split(second, steps))[0]

    return jax.vmap(one)(seeds)


def deploy(world: WorldModel, explorers: population.Population, each: int = 8) -> np.ndarray:
    """Where every explorer of every seed really ends up: regions [S, P, each]."""
    actors = explorers.agents.actor.model
    seeds, size = explorers.agents.updates.shape
    policy = PopulationPolicy(world, jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), actors))
    lanes = seeds * size * each
    envs = [make(ENV) for _ in range(lanes)]
    steps, memory = [env.reset(0) for env in envs], policy.initial(lanes)
    for t in range(LIMIT):
        obs = {"vector": np.stack([step.obs["vector"] for step in steps])}
        keys = jax.random.split(jax.random.fold_in(jax.random.key(9), t), lanes)
        memory, actions = policy.act(memory, obs, np.full(lanes, t == 0), keys)
        steps = [env.step(action) for env, action in zip(envs, actions, strict=True)]
    return np.array([int(step.info["region"]) for step in steps]).reshape(seeds, size, each)


def main(args: Args) -> dict:
    """Train, deploy, and count the seeds in which each method does what the paper says it does."""
    data = random_walks(768)
    world = learn_world(data, jax.random.key(args.model_seed), args.model_steps)
    # From every moment, as in training: a critic that has only seen early states cannot judge the last.
    states, _ = world.observe(data, world.rssm.noise(jax.random.key(1), *data.action.shape))
    starts = choose_starts(states, data.is_terminal, STARTS, jax.random.key(2))
    config = ExploreConfig(population=args.explorers, weight=args.weight, agent=AGENT)
    result: dict = {"settings": asdict(args) | {"env": ENV.id, "starts": STARTS, "explore": asdict(config)}}
    for method, weight in (("pp2e", 0.0), ("cascade", args.weight)):
        explorers = train_explorers(
            world,
            starts,
            jnp.array(args.seeds),
            jnp.float32(weight),
            config,
            args.explorer_steps,
            args.richness,
        )
        regions = deploy(world, explorers)
        left, right = ((regions == room).mean(-1) for room in (LEFT, RIGHT))
        result[method] = {"left": left.tolist(), "right": right.tolist()}
        result[method]["all_in_the_richer"] = int((right > 0.5).all(-1).sum())
        result[method]["both_rooms"] = int(((right > 0.5).any(-1) & (left > 0.5).any(-1)).sum())
    return result


if __name__ == "__main__":
    command = {"command": " ".join(["python examples/two_rooms.py", *sys.argv[1:]])}
    print(json.dumps(command | main(tyro.cli(Args)), indent=2))  # noqa: T201
