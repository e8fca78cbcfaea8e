"""Several devices train as one does: the same numbers, the same programs, and arrays where they are said to be."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import SMALL, env_spec, random_batch

from cascade.config import ActorCriticConfig, EnsembleConfig, ExploreConfig, RunConfig, SampleConfig
from cascade.errors import SettingError
from cascade.run import state
from cascade.run.devices import Split, Spread, split, usable
from cascade.run.train import train_explorers, train_models

SPEC = env_spec("vector")
CONFIG = RunConfig(
    devices=2,
    sample=SampleConfig(batch=4, length=7),
    world=replace(SMALL, mlp_layers=1),
    ensemble=EnsembleConfig(members=2, layers=1, units=8),
    explore=ExploreConfig(population=2, agent=ActorCriticConfig(layers=1, units=8, horizon=3, starts=5)),
)
ONE = Spread(replace(CONFIG, devices=1), 1)


def batches(seeds: int):
    """A chunk [S, 1, 4, 7]."""
    rows = [random_batch(SPEC, (4, 7), seed=i) for i in range(seeds)]
    return jax.tree.map(lambda *x: jnp.stack(x)[:, None], *rows)


def trained_models(spread: Spread, seeds: int):
    """Two steps of the models."""
    keys = state.seed_keys(tuple(range(seeds)))
    models = spread.for_models(state.create(SPEC, CONFIG, keys).models)
    for step in range(2):
        models, metrics = train_models(models, spread.batches(batches(seeds)), jnp.int32(step), keys)
    return models, metrics


def trained_explorers(spread: Spread):
    """Two steps of one seed's explorers."""
    keys, config = state.seed_keys((0,)), state.explore_config(CONFIG)
    whole = state.create(SPEC, CONFIG, keys)
    models, explorers = spread.shared(whole.models), spread.for_explorers(whole.explorers)
    for step in range(2):
        explorers, metrics = train_explorers(
            explorers, models, spread.shared(batches(1)), jnp.float32(0.5), jnp.int32(step), keys, config
        )
    return explorers, metrics


def assert_same(one, two) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-3, atol=2e-5)


@pytest.mark.parametrize("seeds", [1, 2])
def test_two_devices_train_models_as_one(seeds: int) -> None:
    """One seed is divided by its batch, two seeds one to a device."""
    spread = Spread(CONFIG, seeds)
    assert spread.models_split == Split(2, by_seeds=seeds == 2)
    one, programs = trained_models(ONE, seeds), train_models._cache_size()
    two = trained_models(spread, seeds)
    assert train_models._cache_size() == programs + 1, "what comes out lies as what goes in"
    assert_same(one, two)
    for leaf in jax.tree.leaves(two[0]):
        assert len(leaf.sharding.device_set) == 2
        assert leaf.sharding.is_fully_replicated == (seeds == 1)


def test_two_devices_train_explorers_as_one() -> None:
    """One explorer to a device."""
    spread = Spread(CONFIG, 1)
    assert spread.explorers_split == Split(2, by_seeds=False)
    one, programs = trained_explorers(ONE), train_explorers._cache_size()
    two = trained_explorers(spread)
    assert train_explorers._cache_size() == programs + 1
    assert_same(one, two)
    for leaf in jax.tree.leaves(two[0]):
        assert leaf.sharding.shard_shape(leaf.shape)[:2] == (1, 1)
    gathered = spread.gathered(two[0])
    assert {leaf.device for leaf in jax.tree.leaves(gathered)} == {jax.devices()[0]}


@pytest.mark.parametrize(
    ("devices", "seeds", "other", "expected"),
    [
        (1, 10, 16, Split(1, True)),
        (2, 10, 16, Split(2, True)),
        (8, 1, 16, Split(8, False)),
        (8, 1, 10, Split(5, False)),
        (8, 4, 10, Split(5, False)),
        (4, 4, 16, Split(4, True)),
        (3, 1, 16, Split(2, False)),
        (2, 3, 3, Split(1, True)),
    ],
)
def test_as_many_devices_as_divide_the_work(devices: int, seeds: int, other: int, expected: Split) -> None:
    assert split(devices, seeds, other) == expected


def test_processors_are_not_devices_unless_asked_for() -> None:
    assert usable(RunConfig()) == 1
    assert usable(RunConfig(devices=2)) == 2
    with pytest.raises(SettingError, match=r"devices: got 9, expected 0 \(all accelerators\) up to 2"):
        usable(RunConfig(devices=9))
