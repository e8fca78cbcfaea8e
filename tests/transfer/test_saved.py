"""Policies in a user's own loop, and behaviours that are saved and loaded."""

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import jax
import numpy as np
import pytest
from helpers import SMALL, env_spec

import cascade
from cascade.config import ActorCriticConfig, EnvConfig
from cascade.deploy import RandomPolicy
from cascade.envs import make
from cascade.errors import CascadeError
from cascade.explore.actor import Actor
from cascade.explore.player import Player
from cascade.specs import ActionSpec, ObservationSpec
from cascade.transfer.saved import Behaviour, checksum
from cascade.world.model import WorldModel
from cascade.world.rssm import feature_size

AGENT = ActorCriticConfig(layers=1, units=8)


def behaviour(spec, greedy=False):
    """An untrained world model and an actor with opinions."""

    @jax.jit
    def create(key):
        first, second = jax.random.split(key)
        actor = Actor(feature_size(SMALL), spec.action, AGENT, SMALL.precision, key=second)
        return WorldModel(spec, SMALL, key=first), jax.tree.map(lambda x: 30.0 * x, actor)

    return Behaviour(*create(jax.random.key(0)), spec, "reward", greedy)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A behaviour for CartPole, and where it is saved."""
    one = behaviour(make(EnvConfig(id="gym:CartPole-v1")).spec)
    return one, one.save(tmp_path_factory.mktemp("saved") / "new")


def weights_of(folder):
    return next(folder.glob("weights-*.npz"))


def drive(player, seed=0, episodes=2):
    """A user's own Gymnasium loop: the actions that were taken."""
    env, actions = gym.make("CartPole-v1"), []
    for episode in range(episodes):
        obs, _ = env.reset(seed=seed + episode)
        action, over = player(obs, first=True), False
        while not over:
            actions.append(action)
            obs, _, terminated, truncated, _ = env.step(action)
            over = terminated or truncated
            action = player(obs)
    env.close()
    return actions


def test_a_loaded_behaviour_acts_as_the_one_that_was_saved(saved):
    one, folder = saved
    first = drive(one.player())
    assert drive(cascade.load_policy(folder)) == first
    assert set(first) == {0, 1}
    assert drive(cascade.load_policy(str(folder), seed=1)) != first
    loaded = Behaviour.load(folder)
    for a, b in zip(jax.tree.leaves(one.world), jax.tree.leaves(loaded.world), strict=True):
        np.testing.assert_array_equal(a, b)
    assert (loaded.task, loaded.greedy, loaded.spec.action) == (one.task, one.greedy, one.spec.action)


def test_first_forgets_the_episode_before(saved):
    """The same key and observation: a used memory and a new one lead to the same belief and action."""
    one, _ = saved
    rng = np.random.default_rng(0)
    shown = rng.normal(size=(6, 4)).astype(np.float32)
    policy, keys = one.policy(), jax.random.split(jax.random.key(0), 1)
    memory, used = policy.initial(1), policy.initial(1)
    for row in shown:
        used, _ = policy.act(used, {"vector": row[None]}, np.array([False]), keys)
    memory, fresh = policy.act(memory, {"vector": shown[:1]}, np.array([True]), keys)
    again, action = policy.act(used, {"vector": shown[:1]}, np.array([True]), keys)
    assert fresh == action
    np.testing.assert_array_equal(memory.deter, again.deter)
    assert not np.array_equal(used.deter, again.deter)


def test_any_policy_plays():
    player = Player(
        RandomPolicy(ActionSpec("continuous", 3)),
        {"a": ObservationSpec("vector", (2,))},
        ActionSpec("continuous", 3),
    )
    actions = np.stack([player([0.0, 1.0]) for _ in range(20)])
    assert actions.dtype == np.float32
    assert np.abs(actions).max() <= 1.0
    assert len(np.unique(actions)) == 60


@pytest.mark.parametrize(
    ("obs", "message"),
    [
        (np.zeros(5), r"observation: got one ndarray, expected a dict with \['grid', 'vector'\]"),
        ({"vector": np.zeros(5)}, r"observation: got \['vector'\], but \['grid'\] is missing"),
        (
            {"vector": np.zeros(4), "grid": np.zeros((7, 7, 3))},
            r"'vector': got shape \(4,\), expected \(5,\)",
        ),
    ],
)
def test_a_wrong_observation_is_named(obs, message):
    spec = env_spec("grid", "vector")
    with pytest.raises(CascadeError, match=message):
        Player(RandomPolicy(spec.action), spec.observations, spec.action)(obs)


def arrays(one):
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves((one.world, one.actor))]


@pytest.mark.parametrize("after", range(4))
def test_a_kill_while_it_is_replaced_leaves_the_old_or_the_new(saved, tmp_path, monkeypatch, after):
    """Killed after so many of the steps that change names: the folder always holds one whole behaviour."""
    one, _ = saved
    folder = one.save(tmp_path / "replaced")
    other = replace(one, actor=jax.tree.map(lambda x: 2.0 * x, one.actor), greedy=True)
    done = []

    def counted(change):
        def step(*args):
            if len(done) == after:
                raise KeyboardInterrupt
            done.append(change)
            return change(*args)

        return step

    with monkeypatch.context() as patch:
        for name in ("replace", "unlink"):
            patch.setattr(Path, name, counted(getattr(Path, name)))
        with suppress(KeyboardInterrupt):
            other.save(folder)
    found = Behaviour.load(folder)
    assert arrays(found) == arrays(other if found.greedy else one)
    assert found.greedy == (after > 1)
    other.save(folder)
    assert arrays(Behaviour.load(folder)) == arrays(other)
    assert len(list(folder.iterdir())) == 2


def test_what_is_replaced_while_it_is_read_is_the_new_one(saved, tmp_path, monkeypatch):
    """The old weights are gone between the settings that name them and their own turn."""
    one, _ = saved
    folder = one.save(tmp_path / "replaced")
    other = replace(one, actor=jax.tree.map(lambda x: 2.0 * x, one.actor))

    def meanwhile(path):
        monkeypatch.undo()
        other.save(folder)
        return checksum(path)

    monkeypatch.setattr("cascade.transfer.saved.checksum", meanwhile)
    assert arrays(Behaviour.load(folder)) == arrays(other)


def test_a_folder_of_an_earlier_version_is_read(saved, tmp_path):
    one, _ = saved
    folder = one.save(tmp_path / "old")
    weights_of(folder).rename(folder / "weights.npz")
    document = json.loads((folder / "behaviour.json").read_text())
    del document["weights"]
    (folder / "behaviour.json").write_text(json.dumps(document))
    assert arrays(Behaviour.load(folder)) == arrays(one)
    one.save(folder)
    assert not (folder / "weights.npz").exists()
    assert arrays(Behaviour.load(folder)) == arrays(one)


@pytest.mark.parametrize("damage", ["gone", "cut", "other", "format"])
def test_what_cannot_be_loaded_is_one_line(saved, tmp_path, damage):
    one, _ = saved
    folder = one.save(tmp_path / "copy")
    settings, weights = folder / "behaviour.json", weights_of(folder)
    if damage == "gone":
        settings.unlink()
    elif damage == "cut":
        weights.write_bytes(weights.read_bytes()[:-10])
    else:
        document = json.loads(settings.read_text())
        if damage == "format":
            document["format"] = 99
        else:
            document["world"]["deter"] = 25
        settings.write_text(json.dumps(document))
    with pytest.raises(CascadeError, match="copy: no saved behaviour can be read here") as error:
        Behaviour.load(folder)
    assert "\n" not in str(error.value)


def test_loading_executes_nothing(saved, tmp_path):
    """An array of objects in the place of weights is refused, not unpickled."""
    one, _ = saved
    folder = one.save(tmp_path / "planted")
    weights = weights_of(folder)
    with np.load(weights, allow_pickle=False) as stored:
        planted = dict(stored)
    name = next(iter(planted))
    np.savez(weights, **planted | {name: np.array([{}], object)})
    document = json.loads((folder / "behaviour.json").read_text())
    document["checksum"] = checksum(weights)
    (folder / "behaviour.json").write_text(json.dumps(document))
    with pytest.raises(CascadeError, match="Object arrays cannot be loaded"):
        Behaviour.load(folder)
