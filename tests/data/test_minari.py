"""Minari both ways: what is stored becomes a dataset and comes back byte for byte, and so do datasets of others."""

import json
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from data_helpers import CONTINUOUS, SPEC, contents, make_store
from gymnasium import spaces

from cascade.data.journal import Journal
from cascade.data.minari import Dataset, export
from cascade.data.minari_spaces import Unfit, action_converter, converter
from cascade.data.store import Store
from cascade.errors import CascadeError, MissingExtra, SettingError
from cascade.run import initial
from cascade.specs import ActionSpec, EnvSpec, EpisodeKey, ObservationSpec

minari = pytest.importorskip("minari", reason="needs the extra 'minari': pip install 'cascade-rl[minari]'")
pytest.importorskip("h5py")

GRID = EnvSpec(
    "cells",
    {"grid": ObservationSpec("grid", (7, 7, 3), (100, 100, 100))},
    ActionSpec("discrete", 100),
    info={"agent_pos": SPEC.info["cell"]},
)
LARGE = EnvSpec("film", {"image": ObservationSpec("image", (40, 40, 3))}, ActionSpec("discrete", 100))


def copied(source, spec, root):
    """The dataset as the first deployment of a run."""
    note = initial.copy(f"minari:{source}", root, spec, 0)
    return Store.open(root), note


def same_rows(one, other):
    """Whether two deployments have the same files, but for the manifest, which says where they came from."""
    left, right = (contents(store.deployments[0].path) for store in (one, other))
    left.pop("manifest.json"), right.pop("manifest.json")
    return left == right


@pytest.mark.parametrize("spec", [SPEC, CONTINUOUS, GRID, LARGE], ids=lambda spec: spec.name)
def test_what_is_stored_comes_back_byte_for_byte(spec, tmp_path):
    store = make_store(tmp_path / "data", [3, 8, 1, 5, 2], spec=spec)
    path = export(store, tmp_path / "sets", "made-up-v0")
    back, note = copied(path, spec, tmp_path / "back")
    assert same_rows(store, back)
    assert note == ""


def test_a_relative_folder_will_do(tmp_path, monkeypatch):
    store = make_store(tmp_path / "data", [3, 8])
    monkeypatch.chdir(tmp_path)
    path = export(store, Path("sets"), "made-up-v0")
    assert path == tmp_path / "sets" / "made-up-v0"
    back, _ = copied("sets/made-up-v0", SPEC, tmp_path / "back")
    assert same_rows(store, back)


def test_minaris_own_reader_sees_all_of_it(tmp_path, monkeypatch):
    store = make_store(tmp_path / "data", [3, 8], [1, 5])
    export(store, tmp_path, "some/made-up-v3", task="other")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    data = minari.load_dataset("some/made-up-v3")
    assert (data.total_steps, data.total_episodes) == (17, 4)
    assert data.observation_space["image"].dtype == np.uint8
    episodes = {
        tuple(int(e.infos[name][0]) for name in ("deployment", "explorer", "lane", "episode")): e
        for e in data
    }
    assert sorted(episodes) == [(0, 0, 0, 0), (0, 1, 0, 0), (1, 0, 0, 0), (1, 1, 0, 0)]
    for index, deployment in enumerate(store.deployments):
        for explorer, lane, number, start, steps, ended in deployment.episodes.tolist():
            found = episodes[index, explorer, lane, number]
            rows = slice(start, start + steps + 1)
            for key, name in (("image", "obs.image.npy"), ("joint%2Fangles", "obs.joint%2Fangles.npy")):
                np.testing.assert_array_equal(found.observations[key], deployment.array(name)[rows])
            np.testing.assert_array_equal(found.actions, deployment.array("action.npy")[rows][:-1])
            np.testing.assert_array_equal(found.rewards, deployment.labels("other")[rows][1:])
            np.testing.assert_array_equal(found.infos["label"]["reward"], deployment.labels("reward")[rows])
            np.testing.assert_array_equal(
                found.infos["info"]["cell"], deployment.array("info.cell.npy")[rows]
            )
            assert (found.terminations.tolist(), found.truncations.tolist()) == (
                [False] * (steps - 1) + [ended],
                [False] * (steps - 1) + [not ended],
            )
    # Both deployments come back as one, each lane's episodes numbered on, with a gap between deployments.
    back, _ = copied("some/made-up-v3", SPEC, tmp_path / "back")
    assert back.deployments[0].episodes["episode"].tolist() == [0, 2, 0, 2]
    assert back.deployments[0].manifest.metadata["initial"] == "minari:some/made-up-v3"


class Slider(gym.Env):
    """Somebody else's world: a dict of a picture and numbers, actions from -2 to 6, and one info."""

    observation_space = spaces.Dict(
        {
            "camera": spaces.Box(0, 255, (48, 48), np.uint8),
            "state": spaces.Box(-1, 1, (2, 2), np.float64),
            "mode": spaces.Discrete(3, start=1),
        }
    )
    action_space = spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([6.0, 1.0], np.float32))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._time = 0
        return self._observe(), {"place": np.int16(0)}

    def step(self, action):
        self._time += 1
        return self._observe(), float(action[0]), self._time == 4, False, {"place": np.int16(self._time)}

    def _observe(self):
        random = np.random.default_rng(self._time)
        camera = random.integers(0, 255, (48, 48)).astype(np.uint8)
        return {
            "camera": camera,
            "state": random.uniform(-1, 1, (2, 2)),
            "mode": np.int64(1 + self._time % 3),
        }


SLIDER = EnvSpec(
    "slider",
    {
        "camera": ObservationSpec("image", (48, 48, 1)),
        "state": ObservationSpec("vector", (4,)),
        "mode": ObservationSpec("vector", (3,)),
    },
    ActionSpec("continuous", 2),
    info={"place": SPEC.info["cell"].__class__((), "int16"), "elsewhere": SPEC.info["cell"]},
)


def played(env, steps):
    """An episode in Minari's own terms."""
    obs, info = env.reset(seed=0)
    buffer = minari.data_collector.EpisodeBuffer(observations=_listed(obs), infos=_listed(info))
    for i in range(steps):
        action = np.array([2.0 * i, 0.25 * i], np.float32)
        obs, reward, terminated, truncated, info = env.step(action)
        step = {"observation": obs, "action": action, "reward": reward, "info": info}
        buffer = buffer.add_step_data(step | {"terminated": terminated, "truncated": truncated})
    return buffer


def _listed(values):
    return {name: [value] for name, value in values.items()}


@pytest.mark.filterwarnings("ignore::UserWarning")  # Minari asks for an author
def test_a_dataset_of_somebody_else_becomes_the_first_deployment(tmp_path, monkeypatch):
    """Written by Minari itself: one episode ends, one is cut."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    buffers = [played(Slider(), steps) for steps in (4, 2)]
    spaced = {"observation_space": Slider.observation_space, "action_space": Slider.action_space}
    data = minari.create_dataset_from_buffers("others/slider-v0", buffers, **spaced, jpeg_encoding=False)
    store, note = copied("others/slider-v0", SLIDER, tmp_path / "run")
    assert note == "minari others/slider-v0 has no info elsewhere: zeros are stored for it"
    deployment, episode = store.deployments[0], data[0]
    assert deployment.episodes[["steps", "terminated"]].tolist() == [(4, True), (2, False)]
    np.testing.assert_array_equal(
        deployment.array("obs.camera.npy")[:5, :, :, 0], episode.observations["camera"]
    )
    state = episode.observations["state"].reshape(5, 4).astype(np.float32)
    np.testing.assert_array_equal(deployment.array("obs.state.npy")[:5], state)
    mode = deployment.array("obs.mode.npy")[:5]
    np.testing.assert_array_equal(mode.argmax(1), [0, 1, 2, 0, 1])
    assert mode.sum() == 5
    # From [-2, 6] and [0, 1] to [-1, 1]; none after the last.
    expected = [[-0.5, -1.0], [0.0, -0.5], [0.5, 0.0], [1.0, 0.5], [0.0, 0.0]]
    np.testing.assert_array_equal(deployment.array("action.npy")[:5], np.array(expected, np.float32))
    assert deployment.labels("reward")[:5].tolist() == [0.0, 0.0, 2.0, 4.0, 6.0]
    assert deployment.array("info.place.npy")[:5].tolist() == [0, 1, 2, 3, 4]
    # And back again: Minari reads the same from what was stored of its own dataset.
    again = minari.MinariDataset(export(store, tmp_path, "again-v0") / "data")
    for one, other in zip(data, again, strict=True):
        np.testing.assert_array_equal(one.observations["camera"], other.observations["camera"][..., 0])
        np.testing.assert_array_equal(one.rewards, other.rewards)
        np.testing.assert_array_equal(one.terminations, other.terminations)


@pytest.mark.parametrize(
    ("space", "part"),
    [
        (spaces.Box(0, 255, (48, 48, 4), np.uint8), ObservationSpec("image", (64, 64, 3))),
        (spaces.Box(-1, 1, (3,)), ObservationSpec("vector", (4,))),
        (spaces.Discrete(3), ObservationSpec("vector", (4,))),
        (spaces.Text(3), ObservationSpec("vector", (3,))),
    ],
    ids=["channels", "size", "classes", "text"],
)
def test_what_cannot_become_an_observation_is_refused(space, part):
    with pytest.raises(Unfit, match="cannot be"):
        converter(space, part)


def test_images_of_another_size_are_resized():
    convert = converter(spaces.Box(0, 255, (96, 96, 3), np.uint8), ObservationSpec("image", (64, 64, 3)))
    rows = convert(np.full((2, 96, 96, 3), 7, np.uint8))
    assert rows.shape == (2, 64, 64, 3)
    assert (rows == 7).all()


def test_indices_begin_at_zero_and_bounds_must_be_finite():
    convert = action_converter(spaces.Discrete(3, start=5), ActionSpec("discrete", 3))
    assert convert(np.array([5, 7])).tolist() == [0, 2]
    with pytest.raises(Unfit, match="no finite bounds"):
        action_converter(spaces.Box(-np.inf, np.inf, (2,)), ActionSpec("continuous", 2))
    with pytest.raises(Unfit, match="cannot be discrete of size 4"):
        action_converter(spaces.Discrete(3), ActionSpec("discrete", 4))


def test_mistakes_are_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "none"))
    with pytest.raises(
        SettingError, match=r"initial: got 'minari:nothing-v0', expected the folder of a Minari"
    ):
        initial.copy("minari:nothing-v0", tmp_path / "run", SPEC, 0)
    store = make_store(tmp_path / "data", [3])
    path = export(store, tmp_path, "made-up-v0")
    with pytest.raises(SettingError, match="in which there is no made-up-v0 yet"):
        export(store, tmp_path, "made-up-v0")
    with pytest.raises(SettingError, match="--id: got 'no version', expected an id as Minari has them"):
        export(store, tmp_path, "no version")
    with pytest.raises(SettingError, match="--task: got 'dance', expected one of reward, other"):
        export(store, tmp_path, "other-v0", task="dance")
    with pytest.raises(SettingError, match="data that fit rod; 0 parts of its observations"):
        Dataset.open(str(path), CONTINUOUS)
    about = json.loads((path / "data/metadata.json").read_text())
    del about["action_space"]
    (path / "data/metadata.json").write_text(json.dumps(about))
    with pytest.raises(CascadeError, match="not a Minari dataset that can be read"):
        Dataset.open(str(path), SPEC)


def test_labels_that_are_missing_are_named(tmp_path):
    """Rewards are those of the one task there is; of several, each must be there by name."""
    path = export(make_store(tmp_path / "data", [3]), tmp_path, "made-up-v0")
    three = EnvSpec(SPEC.name, SPEC.observations, SPEC.action, ("reward", "dance"), SPEC.info)
    dataset = Dataset.open(str(path), three)
    with pytest.raises(CascadeError, match=r"episode 0: it has no label for each step for the task 'dance'"):
        next(dataset.episodes())


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(MissingExtra, match=r"Minari datasets needs the extra 'minari': pip install"):
        export(make_store(tmp_path / "data", [3]), tmp_path, "made-up-v0")
    with pytest.raises(MissingExtra):
        initial.copy("minari:made-up-v0", tmp_path / "run", SPEC, 0)


def test_a_copy_that_was_killed_goes_on(tmp_path):
    """Episodes that were stored before are not stored twice."""
    store = make_store(tmp_path / "data", [3, 8, 1, 5])
    path = export(store, tmp_path, "made-up-v0")
    journal = Journal(tmp_path / "back", 0, SPEC)
    journal.append(next(Dataset.open(str(path), SPEC).episodes()))
    journal.flush()
    assert EpisodeKey(0, 0, 0) in journal.finished()
    back, _ = copied(path, SPEC, tmp_path / "back")
    assert same_rows(store, back)
