"""What is measured after a deployment."""

from dataclasses import replace

import numpy as np
import pytest

from cascade.config import DeployConfig, EnvConfig, MeasureConfig, RunConfig
from cascade.deploy import RandomPolicy
from cascade.envs import spec_of
from cascade.metrics import coverage
from cascade.run.measure import held_out_episodes, held_out_starts, level_map, whereabouts
from cascade.run.results import Results, record

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


def test_coverage_counts_cells_that_can_be_reached():
    cells = level_map(ENV, CONFIG.measure)
    assert cells.reachable.shape == (3, 19, 19)
    assert cells.reachable.sum((1, 2)).tolist() == [260, 260, 260]
    episodes = held_out_episodes(Spread(), CONFIG, seed=0)
    arrays = whereabouts(episodes, CONFIG, spec_of(ENV))
    stood = {(e.key.lane, *map(int, cell)) for e in episodes for cell in e.info["agent_pos"]}
    expected = np.mean([len([s for s in stood if s[0] == level]) / 260 for level in range(3)])
    assert coverage.coverage(arrays["visits"], arrays["reachable"]) == pytest.approx(expected)
    first = next(e for e in episodes if tuple(e.key) == (0, 1, 0))
    np.testing.assert_array_equal(arrays["paths"][0, 1, : len(first) + 1], first.info["agent_pos"])
    assert level_map(replace(ENV, id="probe:chain"), CONFIG.measure) is None


def test_results_replace_what_says_the_same_and_survive_reopening(tmp_path):
    results = Results.open(tmp_path / "results.json", {"method": "cascade"})
    results.add([record(0, 1, "coverage", 0.2), record(0, 0, "coverage", 0.1)])
    results.add([record(0, 1, "coverage", 0.3), record(0, 1, "success", 1, "reward")])
    results.add_phase([0], "model", 0, 100, 2.5)
    results.add_phase([0], "model", 0, 100, 3.5)
    again = Results.open(tmp_path / "results.json")
    assert again.values("coverage") == {(0, 0): 0.1, (0, 1): 0.3}
    assert again.values("success", "reward") == {(0, 1): 1.0}
    assert again.about == {"method": "cascade"}
    assert [phase["seconds"] for phase in again.phases] == [3.5]
