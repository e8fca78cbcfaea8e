"""The training phases: what a chunk holds must not matter."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import SMALL, env_spec, random_batch

from cascade.config import ActorCriticConfig, EnsembleConfig, ExploreConfig, RunConfig
from cascade.errors import SettingError
from cascade.explore import population
from cascade.run.phases import create_models, explorer_phase, model_phase, settling_phase

SPEC = env_spec("vector")
CONFIG = RunConfig(
    world=SMALL,
    ensemble=EnsembleConfig(members=2, layers=1, units=8),
    explore=ExploreConfig(population=2, agent=ActorCriticConfig(layers=1, units=8, horizon=3, starts=5)),
)
CHUNK = jax.tree.map(lambda *rows: jnp.stack(rows), *(random_batch(SPEC, seed=seed) for seed in range(3)))
TRAIN = jax.jit(partial(model_phase, key=jax.random.key(1)), static_argnames="beside")


@pytest.fixture(scope="module")
def models():
    return jax.jit(partial(create_models, SPEC, CONFIG))(key=jax.random.key(0))


def one_by_one(phase, state):
    """The phase over the chunk's batches, a call for each."""
    for i in range(3):
        state, _ = phase(state, jax.tree.map(lambda x, i=i: x[i : i + 1], CHUNK), jnp.int32(4 + i))
    return state


def assert_close(left, right):
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-6)


def test_a_chunk_of_three_equals_three_chunks_of_one(models):
    together, metrics = TRAIN(models, CHUNK, jnp.int32(4))
    assert_close(together, one_by_one(TRAIN, models))
    assert all(value.shape == () for value in metrics.values())
    assert not np.allclose(
        together.ensemble.model.members.out.weight, models.ensemble.model.members.out.weight
    )


def test_without_an_ensemble_beside_it_the_world_model_learns_the_same(models):
    both, _ = TRAIN(models, CHUNK, jnp.int32(0))
    alone, metrics = TRAIN(models, CHUNK, jnp.int32(0), beside=False)
    assert_close(alone.world, both.world)
    for before, after in zip(jax.tree.leaves(models.ensemble), jax.tree.leaves(alone.ensemble), strict=True):
        np.testing.assert_array_equal(before, after)
    assert "loss" in metrics
    assert not any(name.startswith("ensemble/") for name in metrics)


def test_who_trains_an_ensemble_and_when():
    def when(method, **settings):
        config = RunConfig(method=method, ensemble=EnsembleConfig(**settings))
        return config.trains_beside, config.settling_steps

    assert when("cascade", settle=5) == (True, 5)
    assert when("cascade", settle=5, beside=False) == (False, 5)
    assert when("random", settle=5) == (False, 0), "nobody explores by it"
    with pytest.raises(SettingError, match=r"ensemble\.beside: got False.*ensemble\.settle"):
        when("cascade", beside=False)


def test_settling_trains_the_ensemble_alone_with_shorter_and_shorter_steps(models):
    key, first = jax.random.key(1), jax.tree.map(lambda x: x[:1], CHUNK)

    @jax.jit
    def settle(models, chunk, step):
        return settling_phase(models, chunk, step, key, span=(4, 100))

    together, metrics = settle(models, CHUNK, jnp.int32(4))
    assert_close(together, one_by_one(settle, models))
    assert_close(together.world, models.world)
    assert set(metrics) == {"ensemble/loss", "ensemble/grad_norm"}

    def moved(step):
        after = settle(models, first, jnp.int32(step))[0].ensemble.model.members
        return np.abs(np.asarray(after.out.bias - models.ensemble.model.members.out.bias)).max()

    np.testing.assert_allclose(moved(104) / moved(4), 0.1, rtol=0.05)


def test_explorers_see_the_same_posteriors_whatever_the_chunk(models):
    create = jax.jit(partial(population.create, SMALL, SPEC.action, CONFIG.explore))
    explorers, key, weight = create(key=jax.random.key(2)), jax.random.key(3), jnp.float32(0.5)

    @jax.jit
    def train(explorers, chunk, step):
        return explorer_phase(explorers, models, chunk, weight, step, key, CONFIG.explore)

    together, metrics = train(explorers, CHUNK, jnp.int32(4))
    assert_close(together, one_by_one(train, explorers))
    assert metrics["entropy"].shape == (2,)


def test_the_method_decides_population_and_weight():
    sizes = {
        m: (c.population, c.diversity_weight)
        for m in ("cascade", "pp2e", "p2e", "random")
        if (c := RunConfig(method=m, explore=ExploreConfig(population=7, weight=0.4)))
    }
    assert sizes == {"cascade": (7, 0.4), "pp2e": (7, 0.0), "p2e": (1, 0.0), "random": (1, 0.0)}
