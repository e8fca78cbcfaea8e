"""Presets: each can be built, and each family's model takes what its environments show."""

import shlex
from dataclasses import asdict, replace
from functools import partial

import jax
import pytest
from helpers import shown

from cascade.cli.main import main, parse
from cascade.config import RunConfig
from cascade.envs import make
from cascade.errors import SettingError
from cascade.explore import population
from cascade.presets import PRESETS, preset
from cascade.presets.families import AGENT, WORLD
from cascade.presets.smoke import smoke
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


@pytest.mark.parametrize("name", PRESETS)
def test_the_settings_that_are_printed_make_the_preset(name, capsys):
    """`cascade presets NAME` prints words that turn any other preset into this one."""
    main(["presets", name])
    words = shlex.split(capsys.readouterr().err)
    assert parse(["run", "demo" if name != "demo" else "crafter", *words]).config == preset(name)


@pytest.mark.parametrize("family", sorted(WORLD))
def test_a_familys_model_trains_on_what_the_family_shows(family):
    channels, action = SHOWN[family]
    spec = EnvSpec(family, {"image": ObservationSpec("image", (64, 64, channels))}, action)
    before, after, metrics = shapes(spec, RunConfig(world=WORLD[family]))
    assert jax.tree.structure(before) == jax.tree.structure(after)
    assert ("loss/discount" in metrics) == (family != "dmc")
    assert AGENT[family].horizon == (5 if family == "dmc" else 15)


# The other games are shown, and acted in, as Montezuma's Revenge is.
DISTINCT = sorted(
    name for name in PRESETS if not name.startswith("atari") or name.startswith("atari-montezuma")
)


@pytest.mark.parametrize("name", DISTINCT)
def test_every_preset_fits_its_environment(name):
    config = preset(name)
    before, after, _ = shapes(shown(config.env), config)
    assert jax.tree.structure(before) == jax.tree.structure(after)


@pytest.mark.parametrize("name", [name for name in DISTINCT if name.endswith("-paper")])
def test_at_the_papers_size_behaviours_learn_as_their_familys_agents_do(name):
    config = preset(name)
    assert config.transfer.agent == config.explore.agent == AGENT[name.split("-")[0]]


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_explorer_has_as_many_lanes_as_any_other(name):
    config = preset(name)
    assert config.deploy.lanes % config.population == 0
    assert config.deploy.workers <= config.deploy.lanes


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_smoke_keeps_the_world_and_shrinks_the_rest(name):
    config = preset(name)
    tiny = smoke(config)
    assert replace(tiny.env, time_limit=config.env.time_limit) == config.env
    assert tiny.population == 2
    assert tiny.deploy.lanes == 2 * tiny.population
    # Episodes end within a deployment, and hold a whole training sequence.
    assert tiny.sample.length <= tiny.env.time_limit < tiny.deploy.steps / tiny.deploy.lanes
    assert tiny.method == config.method
    for part in ("latent", "discount_head", "layer_norm", "free_nats"):
        assert getattr(tiny.world, part) == getattr(config.world, part)
    assert tiny.explore.weight == config.explore.weight
    assert smoke(tiny) == tiny
    before, after = asdict(config.world), asdict(tiny.world)
    assert all(after[size] <= before[size] for size in ("deter", "hidden", "stoch", "cnn_depth", "mlp_units"))


@pytest.mark.parametrize("name", [name for name in sorted(PRESETS) if preset(name).sample.prioritize_starts])
def test_sequences_that_begin_with_episodes_hold_whole_ones(name):
    config = preset(name)
    assert config.sample.length == make(config.env).env.max_steps + 1


def test_a_smoke_run_may_have_more_explorers():
    tiny = smoke("demo")
    more = replace(tiny, explore=replace(tiny.explore, population=10))
    assert more.population == 10


def test_an_unknown_preset_is_named_with_those_that_exist():
    with pytest.raises(SettingError, match=r"preset: got 'dmeo', expected one of demo, minigrid-fourrooms"):
        preset("dmeo")
