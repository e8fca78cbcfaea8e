"""What is measured after a deployment."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from helpers import world_model

from cascade.cli.tables import by_deployment
from cascade.config import DeployConfig, EnvConfig, MeasureConfig, RunConfig, WorldConfig
from cascade.data.journal import Journal
from cascade.data.store import Store
from cascade.deploy import RandomPolicy
from cascade.envs import InProcess, minigrid, spec_of
from cascade.errors import SettingError
from cascade.metrics import coverage
from cascade.run.api import changed
from cascade.run.measure import (
    has_cells,
    held_out_chunk,
    held_out_episodes,
    held_out_starts,
    level_maps,
    sights,
    stored_measures,
    whereabouts,
)
from cascade.run.results import Results, record
from cascade.run.signals import Interrupted
from cascade.specs import ActionSpec, EnvSpec, Episode, EpisodeKey, ObservationSpec
from cascade.world.model import WorldModel

ENV = EnvConfig("minigrid:FourRooms-v0", observation="grid", time_limit=15)
CONFIG = RunConfig(
    method="random",
    env=ENV,
    deploy=DeployConfig(lanes=8),
    measure=MeasureConfig(levels=3, episodes=4, pictures=0),
)


class Spread:
    """Pretends to be a population: acts at random, whoever acts."""

    def __init__(self):
        self._random = RandomPolicy(spec_of(ENV).action)

    def initial(self, lanes):
        return self._random.initial(lanes)

    def act(self, *args):
        return self._random.act(*args)


@pytest.mark.parametrize("population", [1, 3, 4])
def test_every_method_has_as_many_episodes_in_each_level(population):
    method = "random" if population == 1 else "pp2e"
    config = replace(CONFIG, method=method, explore=replace(CONFIG.explore, population=population))
    episodes = held_out_episodes(Spread(), config, seed=0)
    by_level = np.bincount([episode.key.lane for episode in episodes], minlength=3)
    assert by_level.tolist() == [4, 4, 4]
    explorers = np.bincount([episode.key.explorer for episode in episodes], minlength=population)
    assert explorers.max() - explorers.min() <= 3, "shared as evenly as can be, level by level"
    assert len({tuple(episode.key) for episode in episodes}) == 12


def test_held_out_starts_are_the_same_for_all_and_can_be_others():
    assert held_out_starts(CONFIG.measure) == held_out_starts(replace(CONFIG.measure, episodes=9))
    others = held_out_starts(replace(CONFIG.measure, first=100))
    assert not set(others) & set(held_out_starts(CONFIG.measure))


@pytest.mark.parametrize(("share", "expected"), [(0.0, 10), (0.5, 13), (1.0, 16)])
def test_the_held_out_loss_is_of_such_windows_as_the_model_learns_from(share, expected):
    """Of sixteen windows of five rows over episodes of 16 rows, the share that should lies inside an episode."""
    episodes, chunk = held_out(length=5, share=share)
    assert abs((~np.asarray(chunk.is_first)[..., 1:].any(-1)).sum() - expected) <= 2
    assert np.asarray(chunk.is_first)[..., 0].all()
    windows = np.asarray(chunk.obs["grid"]).reshape(16, 5, 7, 7, 3)
    for rows in (slice(0, 5), slice(11, 16)):
        known = {episode.obs["grid"][rows].tobytes() for episode in episodes}
        assert any(window.tobytes() in known for window in windows) or share < 1.0


def test_the_held_out_loss_of_whole_episodes_is_of_every_one():
    episodes, chunk = held_out(length=16, share=1.0)
    windows = np.asarray(chunk.obs["grid"]).reshape(12, 16, 7, 7, 3)
    np.testing.assert_array_equal(windows, np.stack([episode.obs["grid"] for episode in episodes]))


def held_out(length, share):
    """Twelve episodes of 16 rows, and windows of them in batches of four."""
    sample = replace(CONFIG.sample, batch=4, length=length, prioritize_starts=share)
    config = replace(CONFIG, sample=sample)
    episodes = held_out_episodes(Spread(), config, seed=0)
    return episodes, held_out_chunk(episodes, config)


def test_coverage_counts_cells_that_can_be_reached():
    cells = level_maps(ENV, CONFIG.measure)
    assert cells.shape == (3, 19, 19)
    assert cells.sum((1, 2)).tolist() == [260, 260, 260]
    episodes = held_out_episodes(Spread(), CONFIG, seed=0)
    arrays = whereabouts(episodes, CONFIG, spec_of(ENV))
    stood = {(e.key.lane, *map(int, cell)) for e in episodes for cell in e.info["agent_pos"]}
    expected = np.mean([len([s for s in stood if s[0] == level]) / 260 for level in range(3)])
    assert coverage.coverage(arrays["visits"], arrays["reachable"]) == pytest.approx(expected)
    first = next(e for e in episodes if tuple(e.key) == (0, 1, 0))
    np.testing.assert_array_equal(arrays["paths"][0, 1, : len(first) + 1], first.info["agent_pos"])
    assert not has_cells(replace(ENV, id="probe:chain"))


@pytest.mark.parametrize("pictures", [0, 2])
def test_levels_are_drawn_if_asked_for(pictures):
    config = replace(CONFIG, measure=replace(CONFIG.measure, pictures=pictures))
    arrays = whereabouts(held_out_episodes(Spread(), config, seed=0), config, spec_of(ENV))
    assert len(arrays.get("pictures", ())) == pictures
    assert ("pictures" in arrays) == (pictures > 0), "the page knows what to do without them"


def test_results_replace_what_says_the_same_and_survive_reopening(tmp_path):
    results = Results.open(tmp_path / "results.json", {"method": "cascade"})
    results.add([record(0, 1, "coverage", 0.2), record(0, 0, "coverage", 0.1)])
    results.add([record(0, 1, "coverage", 0.3), record(0, 1, "success", 1, "reward")])
    results.add_phase([0], "model", 0, 100, 2.5)
    results.add_phase([0], "model", 0, 100, 3.5)
    again = Results.open(tmp_path / "results.json")
    assert [(x["metric"], x["deployment"], x["value"]) for x in again.records] == [
        ("coverage", 0, 0.1),
        ("coverage", 1, 0.3),
        ("success", 1, 1.0),
    ]
    assert again.about == {"method": "cascade"}
    assert [phase["seconds"] for phase in again.phases] == [3.5]


def test_a_measure_that_is_no_number_is_null_and_the_table_leaves_it_out(tmp_path):
    results = Results.open(tmp_path / "results.json")
    results.add([record(0, 0, "coverage", np.inf), record(1, 0, "coverage", 0.5)])
    results.add([record(0, 0, "success", np.float32("nan"), "reward")])
    records = Results.open(tmp_path / "results.json").records
    assert [item["value"] for item in records] == [None, None, 0.5]
    columns = by_deployment({"cascade": records}).columns
    assert [list(column.cells) for column in columns] == [["cascade"], ["1"], ["50.0%"], ["-"]]


def test_results_of_two_processes_are_both_kept(tmp_path):
    """A transfer adds to the file while the run, which opened it before, goes on."""
    run = Results.open(tmp_path / "results.json")
    run.add([record(0, 0, "coverage", 0.1)])
    Results.open(tmp_path / "results.json").add([record(0, 0, "success", 1, "reward")])
    run.add_phase([0], "model", 1, 100, 2.5)
    run.add([record(0, 1, "coverage", 0.2)])
    found = [(item["metric"], item["deployment"]) for item in Results.open(tmp_path / "results.json").records]
    assert found == [("coverage", 0), ("success", 0), ("coverage", 1)]


def test_a_world_that_cannot_be_drawn_is_measured_without_films():
    """Gymnasium's own `render` raises; the world is still a world."""
    config = RunConfig(
        method="random",
        env=EnvConfig("run_helpers:Dark"),
        measure=MeasureConfig(levels=2, episodes=1),
        world=WorldConfig(deter=8, hidden=8, stoch=2, classes=2, mlp_layers=1, mlp_units=8),
    )
    spec = spec_of(config.env)
    world = WorldModel(spec, config.world, key=jax.random.key(0))
    with InProcess(config.env, 2) as envs:
        episodes = held_out_episodes(RandomPolicy(spec.action), config, 0, envs)
    notes = []
    arrays = sights(episodes, config, spec, world, notes.append)
    assert "films" not in arrays
    assert len(notes) == 1
    assert "run_helpers:Dark: cannot draw itself (NotImplementedError" in notes[0]


def test_a_world_that_fails_while_it_is_filmed_costs_the_films_alone():
    config = replace(CONFIG, measure=replace(CONFIG.measure, levels=1, pictures=1))
    episodes = held_out_episodes(Spread(), config, seed=0)
    world, notes = world_model(spec_of(ENV)), []
    broken = replace(config, env=replace(ENV, id="probe:faulty?start=fail"))
    arrays = sights(episodes, broken, spec_of(ENV), world, notes.append)
    assert list(arrays) == ["open_loop"]
    (note,) = notes
    assert note.startswith(
        "no films of the explorers: env.id probe:faulty?start=fail: failed (RuntimeError: this"
    )
    with pytest.raises(Interrupted):
        sights(episodes, config, spec_of(ENV), world, notes.append, stop=lambda: True)


def test_without_maps_and_pictures_everything_else_is_measured(monkeypatch):
    config = replace(CONFIG, measure=replace(CONFIG.measure, pictures=1))
    episodes, notes = held_out_episodes(Spread(), config, seed=0), []
    whole = whereabouts(episodes, config, spec_of(ENV))
    monkeypatch.setattr(minigrid, "reachable_cells", lambda world: [][0])
    monkeypatch.setattr(minigrid.MiniGrid, "render", lambda self: [][0])
    arrays = whereabouts(episodes, config, spec_of(ENV), notes.append)
    assert [note.split(":")[0] for note in notes] == [
        "no maps of the held-out levels, nor coverage",
        "no pictures of the held-out levels",
    ]
    assert arrays.keys() == {"visits", "paths", "distance"}
    np.testing.assert_array_equal(arrays["distance"], whole["distance"])
    np.testing.assert_array_equal(arrays["paths"], whole["paths"])
    assert arrays["visits"].sum() == whole["visits"].sum()


def test_measuring_stops_within_a_turn():
    asked = []

    def stop():
        asked.append(1)
        return len(asked) >= 5

    with pytest.raises(Interrupted, match="stopped while measuring"):
        held_out_episodes(Spread(), CONFIG, 0, stop=stop)
    assert len(asked) == 6, "five turns of fifteen and more, and once at the end"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"measure": MeasureConfig(episodes=2)},
            "measure.episodes: got 2, expected 0, or one for each of 10",
        ),
        ({"ensemble": {"layers": 0}}, "ensemble.layers: got 0, expected at least 1"),
    ],
)
def test_settings_that_would_fail_later_are_refused(change, said):
    with pytest.raises(SettingError, match=said):
        changed(RunConfig(), change)


def stored(folder, rewards, ended):
    """A store of episodes of one lane with these labels, each ended or cut."""
    spec = EnvSpec(
        "line", {"vector": ObservationSpec("vector", (1,))}, ActionSpec("discrete", 2), ("reward",)
    )
    journal = Journal(folder, 0, spec)
    for i, labels in enumerate(rewards):
        rows = len(labels)
        obs, action = {"vector": np.full((rows, 1), i, np.float32)}, np.zeros(rows, np.int32)
        key = EpisodeKey(0, i, 0)
        journal.append(Episode(key, obs, action, {"reward": np.array(labels, np.float32)}, {}, ended[i]))
    journal.commit()
    return Store.open(folder)


def test_what_the_data_hold_is_counted_by_hand(tmp_path):
    """Three episodes; their rewards are labels of the rows that were arrived at."""
    rewards = [[0.0, 0.5, 0.25], [0.0, 0.0], [0.0, -2.0, 1.0, 0.5]]
    found = stored_measures(stored(tmp_path, rewards, [True] * 3))
    assert (found["episodes"], found["steps"]) == (3, 6)
    assert found["rewarding_episodes@reward"] == 2, "the last met a reward too, whatever it paid"
    assert found["maximum_return@reward"] == 0.75


@pytest.mark.parametrize(("cut", "best"), [([0.0, -1.0], -3.0), ([0.0, 2.0], 2.0), ([0.0, -1.0, 9.0], -3.0)])
def test_the_best_episode_is_no_piece_of_one_that_costs(tmp_path, cut, best):
    """The last one was cut by the budget: what it has earned counts where nothing can be lost afterwards."""
    rewards = [[0.0, -1.0, -2.0], [0.0, -4.0], cut]
    found = stored_measures(stored(tmp_path, rewards, [True, True, False]))
    assert found["maximum_return@reward"] == best
