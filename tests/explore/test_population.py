"""Explorers: trained at once as they would be alone, and moved by what the objective says."""

import dataclasses
from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import SMALL, env_spec, random_batch

from cascade.config import ActorCriticConfig, EnsembleConfig, ExploreConfig
from cascade.explore import actor_critic, disagreement, population
from cascade.explore.actor import Critic
from cascade.explore.embedding import EMBEDDINGS
from cascade.explore.imagine import Imagined, choose_starts, imagine
from cascade.world.model import WorldModel
from cascade.world.rssm import State

AGENT = ActorCriticConfig(layers=2, units=16, horizon=5, starts=12, entropy=1e-3, slow_every=2)
CONFIG = ExploreConfig(population=3, weight=0.4, agent=AGENT)

# Compiled once for all tests that ask for the same.
CREATE = jax.jit(population.create, static_argnums=(0, 1, 2))
STEP = jax.jit(population.step, static_argnames="config")


@dataclasses.dataclass
class World:
    """A frozen world model with its ensemble and places to start from."""

    action: str = "discrete"

    def __post_init__(self):
        self.spec = env_spec("vector", action=self.action)
        make = jax.jit(lambda key: WorldModel(self.spec, SMALL, key=key))
        self.model = make(jax.random.key(0))
        ensemble = EnsembleConfig(members=3, layers=1, units=16)
        self.ensemble = jax.jit(lambda key: disagreement.create(SMALL, 3, ensemble, key=key))(
            jax.random.key(1)
        ).model
        batch = random_batch(self.spec, (4, 6))
        noise = self.model.rssm.noise(jax.random.key(2), 4, 6)
        states, _ = jax.jit(lambda noise: self.model.observe(batch, noise))(noise)
        self.starts = choose_starts(states, batch.is_terminal, AGENT.starts, jax.random.key(3))

    def population(self, config=CONFIG, seed=4):
        """New explorers with opinions of their own: untrained critics say nothing, and so would hide a mix-up."""
        explorers = CREATE(SMALL, self.spec.action, config, key=jax.random.key(seed))
        weight = explorers.agents.critic.model.mlp.out.weight
        opinions = jax.random.normal(jax.random.key(seed + 1), weight.shape)
        return eqx.tree_at(
            lambda p: (p.agents.critic.model.mlp.out.weight, p.agents.slow.mlp.out.weight),
            explorers,
            (opinions, jnp.copy(opinions)),
        )

    def step(self, explorers, config=CONFIG, weight=None, seed=5):
        weight = jnp.float32(config.weight if weight is None else weight)
        return STEP(
            explorers, self.model, self.ensemble, self.starts, weight, jax.random.key(seed), config=config
        )


world_of = cache(World)


@pytest.fixture(scope="module", params=["discrete", "continuous"])
def world(request):
    return world_of(request.param)


def assert_trees_close(left, right, rtol=2e-4, atol=1e-6):
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def some_differ(left, right):
    return any(
        not np.allclose(a, b, atol=1e-7)
        for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    )


def test_parallel_training_equals_training_one_after_another(world):
    """Explorer i trained in the whole population equals it trained after the i before it, on the same draws."""
    explorers = world.population()
    together, metrics = world.step(explorers)
    assert metrics["entropy"].shape == (3,)
    for i in range(3):
        first = jax.tree.map(lambda leaf, n=i + 1: leaf[:n], explorers)
        alone, _ = world.step(first, dataclasses.replace(CONFIG, population=i + 1))
        assert_trees_close(
            jax.tree.map(lambda leaf, n=i: leaf[n], together), jax.tree.map(lambda leaf, n=i: leaf[n], alone)
        )


@partial(jax.jit, static_argnames="normalize")
def totals(explorers, model, ensemble, starts, weight, normalize):
    """Rewards of whole trajectories, [P, N], the scales having seen nothing else."""
    keys = jax.random.split(jax.random.key(7), 3)
    imagined = imagine(model, explorers.agents.actor.model, starts, keys, AGENT)
    config = dataclasses.replace(CONFIG, normalize=normalize)
    return population.rewards(explorers.scales, imagined, ensemble, weight, config)[0].sum(0)


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_centred_rewards_are_the_divided_ones_less_their_mean(world, weight):
    """What every trajectory earns alike teaches nothing, and a critic that has yet to learn it is misled by it."""
    job = (world.population(), world.model, world.ensemble, world.starts, jnp.float32(weight))
    divided, centred = (np.asarray(totals(*job, normalize)) for normalize in ("running", "centred"))
    np.testing.assert_allclose(centred, divided - divided.mean(1, keepdims=True), atol=2e-3)
    spread = centred.std(1)[1:] if weight else centred.std(1)  # the first explorer has no diversity
    np.testing.assert_allclose(spread, 1.0, rtol=2e-3)
    if weight:
        assert (centred[0] == 0.0).all()


@pytest.mark.parametrize("normalize", ["running", "centred", "none"])
def test_diversity_alone_moves_every_explorer_but_the_first(world, normalize):
    """At λ = 1 and without entropy the first explorer has no reward, and the others have one."""
    quiet = dataclasses.replace(
        CONFIG,
        normalize=normalize,
        agent=dataclasses.replace(AGENT, entropy=0.0, gradient="reinforce", trace=1.0),
    )
    explorers = world.population(quiet)
    silent = jax.tree.map(jnp.zeros_like, explorers.agents.slow)
    keys = jax.random.split(jax.random.key(7), 3)

    def loss(actors):
        def reward(imagined):
            rewards, aux = population.rewards(
                explorers.scales, imagined, world.ensemble, jnp.float32(1.0), quiet
            )
            return rewards, imagined.discount, aux

        return actor_critic.actor_loss(actors, silent, world.model, world.starts, keys, reward, quiet.agent)[
            0
        ]

    grads = jax.jit(jax.grad(loss))(explorers.agents.actor.model)
    size = np.array([sum(float(jnp.abs(leaf[i]).sum()) for leaf in jax.tree.leaves(grads)) for i in range(3)])
    assert size[0] == 0.0
    assert (size[1:] > 1e-4).all()


def test_no_explorers_gradient_touches_another(world):
    explorers = world.population()
    keys = jax.random.split(jax.random.key(7), 3)

    def loss_of(actors, which):
        def reward(imagined):
            rewards, aux = population.rewards(
                explorers.scales, imagined, world.ensemble, jnp.float32(0.5), CONFIG
            )
            only = jnp.zeros_like(rewards).at[:, which].set(rewards[:, which])
            return only, imagined.discount, aux

        agent = dataclasses.replace(AGENT, entropy=0.0)
        silent = jax.tree.map(jnp.zeros_like, explorers.agents.slow)
        return actor_critic.actor_loss(actors, silent, world.model, world.starts, keys, reward, agent)[0]

    grads = jax.jit(jax.grad(loss_of), static_argnums=1)(explorers.agents.actor.model, 2)
    for leaf in jax.tree.leaves(grads):
        np.testing.assert_array_equal(leaf[:2], 0.0)


def test_imagination_is_a_chain_of_model_steps_with_each_explorers_own_actions(world):
    explorers = world.population()
    keys = jax.random.split(jax.random.key(9), 3)
    actors = explorers.agents.actor.model
    rolled = jax.jit(lambda: imagine(world.model, actors, world.starts, keys, AGENT))()
    assert rolled.action.shape == (5, 3, 12, 3)
    np.testing.assert_array_equal(rolled.feature[0, 1], world.starts.state.feature)
    split = [State(*jnp.split(x, [SMALL.deter], -1)) for x in rolled.feature]
    for t, after in [(2, split[3]), (4, rolled.final)]:
        moved = world.model.rssm.imagine(split[t], rolled.action[t], jnp.zeros((3, 12, SMALL.stoch)))
        np.testing.assert_allclose(moved.deter, after.deter, atol=1e-5)
    assert not np.allclose(rolled.action[:, 0], rolled.action[:, 2])


def test_pp2e_ignores_diversity_and_p2e_is_its_first_explorer(world):
    explorers = world.population()
    pp2e, _ = world.step(explorers, weight=0.0)
    other, _ = world.step(explorers, dataclasses.replace(CONFIG, diversity="variance"), weight=0.0)
    assert_trees_close(pp2e.agents, other.agents)
    single = jax.tree.map(lambda leaf: leaf[:1], explorers)
    p2e, _ = world.step(single, dataclasses.replace(CONFIG, population=1), weight=0.0)
    assert_trees_close(
        jax.tree.map(lambda leaf: leaf[0], pp2e.agents), jax.tree.map(lambda leaf: leaf[0], p2e.agents)
    )


def test_seeds_and_weights_vmap_over_the_whole_step(world):
    """λ is an ordinary input: methods and seeds run side by side in one call, each as it would alone."""
    pair = jax.tree.map(lambda *leaves: jnp.stack(leaves), world.population(seed=1), world.population(seed=2))
    weights = jnp.array([0.0, 0.7])

    def one(explorers, weight):
        return population.step(
            explorers, world.model, world.ensemble, world.starts, weight, jax.random.key(5), CONFIG
        )[0]

    both = jax.jit(jax.vmap(one))(pair, weights)
    for i in range(2):
        alone, _ = world.step(jax.tree.map(lambda leaf, n=i: leaf[n], pair), weight=float(weights[i]))
        assert_trees_close(jax.tree.map(lambda leaf, n=i: leaf[n], both), alone, rtol=1e-3, atol=1e-5)


def test_an_untrained_critic_says_nothing_and_keeps_large_values_apart():
    """In bfloat16 arithmetic, too: the last layer has float32's steps."""
    critic = Critic(4, ActorCriticConfig(layers=1, units=8), "bfloat16", key=jax.random.key(0))
    feature = jax.random.normal(jax.random.key(1), (5, 4))
    np.testing.assert_array_equal(critic(feature), 0.0)
    large = eqx.tree_at(lambda critic: critic.mlp.out.bias, critic, jnp.array([300.25]))
    np.testing.assert_array_equal(large(feature), 300.25)


def test_the_slow_critic_follows_at_its_own_pace(world):
    explorers = world.population()
    once, _ = world.step(explorers)
    assert_trees_close(once.agents.slow, explorers.agents.slow, rtol=0, atol=0)
    twice, _ = world.step(once)
    assert_trees_close(twice.agents.slow, twice.agents.critic.model, rtol=0, atol=0)
    assert some_differ(twice.agents.slow, once.agents.slow)


def test_every_explorers_critic_has_a_loss_of_its_own(world):
    _, metrics = world.step(world.population())
    assert len(np.unique(metrics["critic_loss"])) == CONFIG.population


def test_one_trace_serves_every_step_and_every_weight():
    world = world_of("discrete")
    explorers, _ = world.step(world.population())
    compiled = STEP._cache_size()
    for i in range(3):
        explorers, _ = world.step(explorers, weight=0.1 * i, seed=i)
    assert STEP._cache_size() == compiled


@pytest.mark.parametrize(
    ("action", "gradient"),
    [("discrete", "reinforce"), ("continuous", "reinforce"), ("continuous", "dynamics")],
)
def test_actors_learn_to_do_what_pays(action, gradient):
    """The reward is the first part of the action itself: its mean must rise, whichever way gradients come."""
    world = world_of(action)
    learning = dataclasses.replace(AGENT.actor, lr=3e-2)
    config = dataclasses.replace(AGENT, gradient=gradient, actor=learning, critic=learning, slow_every=100)
    agents = world.population(dataclasses.replace(CONFIG, agent=config)).agents

    def step(agents, key):
        keys = jax.random.split(key, 3)

        def pay(imagined):
            return imagined.action[..., 0], imagined.discount, imagined.action[..., 0].mean((0, 2))

        agents, paid, _ = actor_critic.step(agents, world.model, world.starts, keys, pay, config)
        return agents, paid

    run = jax.jit(lambda agents, keys: jax.lax.scan(step, agents, keys))
    _, paid = run(agents, jax.random.split(jax.random.key(8), 80))
    assert (paid[0] < 0.45).all()
    assert (paid[-5:].mean(0) > 0.8).all()


def test_the_mean_state_weighs_visited_states_by_the_chance_to_be_there():
    """By hand: one trajectory of two steps, with h of 1 and then 5, and a chance of 1 / 2 to go on."""
    stoch = jnp.zeros((1, 1))
    final = State(jnp.array([[5.0]]), stoch)
    feature = jnp.array([[[9.0, 0.0]], [[1.0, 0.0]]])
    imagined = Imagined(feature, final, jnp.zeros((2, 1, 1)), jnp.array([[0.5], [0.5]]))
    expected = (0.5 * 1.0 + 0.25 * 5.0) / 0.75
    np.testing.assert_allclose(EMBEDDINGS.find("mean")(imagined), [[expected]], rtol=1e-6)
    np.testing.assert_allclose(EMBEDDINGS.find("final")(imagined), [[5.0]])
