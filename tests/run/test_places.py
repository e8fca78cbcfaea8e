"""Rooms and skills: where the hero is on the screen, and how often each skill was unlocked."""

from dataclasses import replace

import numpy as np
import pytest

from cascade.config import EnvConfig, MeasureConfig, RunConfig
from cascade.data.journal import Journal
from cascade.data.store import Store
from cascade.envs import make
from cascade.run import initial
from cascade.run.places import places, tracks, whole_episodes
from cascade.specs import ActionSpec, ArraySpec, EnvSpec, Episode, EpisodeKey, ObservationSpec

GAME = EnvConfig("atari:MontezumaRevenge", observation="image", action_repeat=4)
CONFIG = RunConfig(method="p2e", env=GAME, measure=MeasureConfig(levels=1, pictures=1))
SHIRT = np.array([200, 72, 72])


def played(start, steps):
    """An episode of a hero who changes his mind every eight steps, and the middle of his shirt at each."""
    world, random = make(GAME), np.random.default_rng(0)
    actions, seen, shirts, now = [], [], [], world.reset(start)
    for time in range(steps + 1):
        seen.append(now.info)
        rows, columns = np.nonzero((np.abs(world.render() - SHIRT).max(-1) < 8)[20:])
        shirts.append((columns.mean(), rows.mean() + 20) if 40 < len(rows) < 70 else (np.nan, np.nan))
        if time % 8 == 0:
            action = int(random.integers(18))
        actions.append(action)
        now = world.step(action)
    info = {name: np.stack([one[name] for one in seen]) for name in seen[0]}
    return Episode(EpisodeKey(0, 0, 0), {}, np.array(actions, np.int32), {}, info, False), np.array(shirts)


def test_positions_are_where_the_hero_is_drawn():
    pytest.importorskip("ale_py")
    episode, shirts = played(7, 120)
    arrays = tracks([episode], CONFIG, [7])
    assert arrays["positions"].shape == (1, 1, 121, 3)
    assert arrays["rooms"].tolist() == [1]
    there = ~np.isnan(shirts[:, 0])
    assert there.sum() > 60
    apart = np.abs(arrays["positions"][0, 0, there, :2] - shirts[there])
    assert apart.mean(0).max() < 4, "pixels"
    world = make(GAME)
    world.reset(7)
    np.testing.assert_array_equal(arrays["room_pictures"][0], world.render())


def test_only_the_first_episode_from_each_start_is_kept_and_pictures_can_be_left_out():
    info = {"position": np.full((3, 2), 100, np.int16), "room": np.array([4, 4, 5], np.int16)}
    first = Episode(EpisodeKey(0, 0, 0), {}, np.zeros(3, np.int32), {}, info, True)
    again = replace(first, key=EpisodeKey(0, 0, 1), info={name: 0 * rows for name, rows in info.items()})
    config = replace(CONFIG, measure=MeasureConfig(levels=2, pictures=0))
    arrays = tracks([first, again], config, [0, 1])
    assert arrays.keys() == {"positions"}
    assert arrays["positions"][0, 0].tolist() == [[104, 221, 4], [104, 221, 4], [104, 221, 5]]
    assert (arrays["positions"][0, 1] == -1).all()


def test_skills_are_per_cent_of_episodes(tmp_path):
    spec = EnvSpec(
        "craft",
        {"vector": ObservationSpec("vector", (1,))},
        ActionSpec("discrete", 2),
        info={"achievements": ArraySpec((3,), "int32")},
    )
    journal = Journal(tmp_path, 0, spec)
    for number, counts in enumerate([[2, 0, 0], [1, 1, 0], [0, 0, 0], [3, 0, 0]]):
        done = np.array([[0, 0, 0], counts], np.int32)
        obs, label = {"vector": np.zeros((2, 1), np.float32)}, {"reward": np.zeros(2, np.float32)}
        key = EpisodeKey(0, 0, number)
        journal.append(Episode(key, obs, np.zeros(2, np.int32), label, {"achievements": done}, True))
    journal.commit()
    arrays = places([], Store.open(tmp_path), CONFIG, [])
    assert arrays["skills"].tolist() == [75.0, 25.0, 0.0]
    assert arrays["skill_names"].tolist() == ["skill 1", "skill 2", "skill 3"]


def test_episodes_that_the_budget_cut_are_not_whole(tmp_path):
    """Two lanes of three episodes in each of two deployments; the last of the second lane ended by itself.

    That holds for a copy of a copy, too, where all of a lane's episodes are in one deployment.
    """
    spec = EnvSpec("craft", {"vector": ObservationSpec("vector", (1,))}, ActionSpec("discrete", 2))
    for deployment in range(2):
        journal = Journal(tmp_path, deployment, spec)
        for lane, ends in enumerate([[True, False, False], [False, True, True]]):
            for number, ended in enumerate(ends):
                obs, label = {"vector": np.zeros((2, 1), np.float32)}, {"reward": np.zeros(2, np.float32)}
                key = EpisodeKey(0, lane, number)
                journal.append(Episode(key, obs, np.zeros(2, np.int32), label, {}, ended))
        journal.commit()

    first = [True, True, False]
    assert whole_episodes(Store.open(tmp_path)).tolist() == [*first, True, True, True] * 2
    initial.copy(str(tmp_path), tmp_path / "copy", spec, 0)
    initial.copy(str(tmp_path / "copy"), tmp_path / "again", spec, 0)
    for name in ("copy", "again"):
        assert whole_episodes(Store.open(tmp_path / name)).tolist() == first * 2 + [True] * 6
