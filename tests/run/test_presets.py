"""Presets: each can be built, and each family's model takes what its environments show."""

from functools import partial

import jax
import pytest

from cascade.config import RunConfig
from cascade.envs import spec_of
from cascade.errors import SettingError
from cascade.explore import population
from cascade.presets import PRESETS, preset
from cascade.presets.families import AGENT, WORLD
from cascade.run.bench import random_chunk
from cascade.run.phases import create_models, model_phase
from cascade.specs import ActionSpec, EnvSpec, ObservationSpec

SHOWN = {
    "minigrid": (3, ActionSpec("discrete", 7)),
    "atari": (1, ActionSpec("discrete", 18)),
    "crafter": (3, ActionSpec("discrete", 17)),
    "dmc": (3, ActionSpec("continuous", 6)),
}


def shapes(spec, config):
    """The shapes of a training step and of the population at full size, without computing either."""
    models = jax.eval_shape(lambda key: create_models(spec, config, key=key), jax.random.key(0))
    chunk = jax.eval_shape(lambda: random_chunk(spec, config, 2))
    run = partial(model_phase, step=jax.numpy.int32(0), key=jax.random.key(0))
    after, metrics = jax.eval_shape(run, models, chunk)
    jax.eval_shape(
        lambda key: population.create(config.world, spec.action, config.explore, key=key), jax.random.key(0)
    )
    return models, after, metrics


@pytest.mark.parametrize("family", sorted(WORLD))
def test_a_familys_model_trains_on_what_the_family_shows(family):
    channels, action = SHOWN[family]
    spec = EnvSpec(family, {"image": ObservationSpec("image", (64, 64, channels))}, action)
    before, after, metrics = shapes(spec, RunConfig(world=WORLD[family]))
    assert jax.tree.structure(before) == jax.tree.structure(after)
    assert ("loss/discount" in metrics) == (family != "dmc")
    assert AGENT[family].horizon == (5 if family == "dmc" else 15)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_fits_its_environment(name):
    config = preset(name)
    before, after, _ = shapes(spec_of(config.env), config)
    assert jax.tree.structure(before) == jax.tree.structure(after)
    assert config.deploy.lanes % config.population == 0


def test_an_unknown_preset_is_named_with_those_that_exist():
    with pytest.raises(SettingError, match=r"preset: got 'dmeo', expected one of demo, minigrid-fourrooms"):
        preset("dmeo")
