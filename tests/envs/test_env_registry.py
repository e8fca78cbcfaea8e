"""From an id to a world, or to one clear line."""

import dataclasses
import importlib.metadata
import importlib.util
import subprocess
import sys

import numpy as np
import pytest
from helpers import shown

from cascade.config import EnvConfig
from cascade.envs import Environment, make, registry
from cascade.errors import CascadeError, MissingExtra, SettingError
from cascade.specs import EnvSpec


@pytest.mark.parametrize(
    ("id", "says"),
    [
        ("minigird:FourRooms-v0", "did you mean minigrid"),
        ("minigrid:FourRoom-v0", "did you mean FourRooms-v0"),
        ("gym:CartPoll-v1", "did you mean CartPole-v1"),
        ("gym:CartPole-v77", "v77"),
        ("probe:chian", "did you mean chain"),
        ("nothing", "gym:CartPole-v1"),
        ("json:no_such_function", "a function that module json has"),
        ("", "minigrid:FourRooms-v0"),
    ],
)
def test_an_unknown_id_says_what_is_known(id, says):
    with pytest.raises(SettingError, match=says) as caught:
        make(EnvConfig(id=id))
    assert str(caught.value).startswith(f"env.id: got {id!r}")


@pytest.mark.parametrize(
    "config",
    [
        EnvConfig(id="minigrid:FourRooms-v0"),
        EnvConfig(id="minigrid:MiniGrid-FourRooms-v0"),
        EnvConfig(id="gym:CartPole-v1"),
        EnvConfig(id="probe:chain"),
        EnvConfig(id="atari:MontezumaRevenge", action_repeat=4),
        EnvConfig(id="crafter:world"),
        EnvConfig(id="dmc:walker?draw=fast", action_repeat=2),
        EnvConfig(id="dmc:walker?draw=fast", observation="vector"),
    ],
    ids=lambda config: f"{config.id}-{config.observation}",
)
def test_spec_of_matches_what_the_world_returns(config):
    spec = shown(config)
    env = make(config)
    assert isinstance(env, Environment)
    assert env.spec == spec
    for step in (env.reset(0), env.step(np.zeros(spec.action.shape, spec.action.dtype))):
        assert {name: (part.shape, part.dtype) for name, part in step.obs.items()} == {
            name: (part.shape, part.dtype) for name, part in spec.observations.items()
        }
        assert {name: (part.shape, str(part.dtype)) for name, part in step.info.items()} == {
            name: (part.shape, part.dtype) for name, part in spec.info.items()
        }
        assert tuple(step.rewards) == spec.tasks
    if config.observation != "vector":  # what shows itself as a vector may have no means to draw
        assert env.render().dtype == np.uint8
        assert env.render().shape[2] == 3
    env.close()


def test_a_missing_extra_says_how_to_install_it(monkeypatch):
    scheme = registry.Scheme(
        "cascade.envs.nowhere:make", "martian:x", needs="no_such_package", extra="martian"
    )
    monkeypatch.setitem(registry.SCHEMES, "martian", scheme)
    with pytest.raises(MissingExtra, match=r"pip install 'cascade-rl\[martian\]'"):
        make(EnvConfig(id="martian:rover"))


@pytest.mark.parametrize(
    ("id", "package", "extra"),
    [
        ("atari:MontezumaRevenge", "ale_py", "atari"),
        ("crafter:world", "crafter", "crafter"),
        ("dmc:walker", "dm_control", "dmc"),
    ],
)
def test_every_family_names_the_extra_it_lacks(monkeypatch, id, package, extra):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == package else find(name, *rest)
    )
    with pytest.raises(MissingExtra) as caught:
        make(EnvConfig(id=id))
    assert str(caught.value) == f"env.id {id} needs the extra '{extra}': pip install 'cascade-rl[{extra}]'"


def offer(monkeypatch, value):
    """Pretend that an installed package offers the world `house`."""
    entry = importlib.metadata.EntryPoint("house", value, registry.ENTRY_POINTS)
    entries = importlib.metadata.EntryPoints([entry])
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **query: entries.select(**query))


@pytest.mark.parametrize("id", ["house", "house:kitchen"])
def test_an_entry_point_gives_a_world(monkeypatch, id):
    offer(monkeypatch, "sample_world:echo")
    env = make(EnvConfig(id=id))
    assert isinstance(env.spec, EnvSpec)
    assert env.spec.name == id
    np.testing.assert_array_equal(env.reset(0).obs["vector"], np.float32([0.5, 0.0, -0.5]))


def test_an_entry_point_that_does_not_load_is_named(monkeypatch):
    offer(monkeypatch, "sample_world:absent")
    with pytest.raises(CascadeError, match=r"env\.id house: entry point 'sample_world:absent'"):
        make(EnvConfig(id="house"))


def test_a_factory_of_something_else_is_named(monkeypatch):
    offer(monkeypatch, "sample_world:nothing")
    with pytest.raises(CascadeError, match="returned int, expected a gymnasium"):
        make(EnvConfig(id="house"))


def test_unknown_id_lists_entry_points(monkeypatch):
    offer(monkeypatch, "sample_world:echo")
    with pytest.raises(SettingError, match="did you mean house"):
        make(EnvConfig(id="hause"))


def test_workers_import_no_jax():
    code = (
        "import sys; from cascade.envs.worker import Lanes; from cascade.config import EnvConfig; "
        f"Lanes(EnvConfig(**{dataclasses.asdict(EnvConfig())!r}), [0]); "
        "sys.exit('jax' in sys.modules or 'equinox' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
