"""The record of an experiment, and the figures drawn from it."""

import json

import numpy as np
import pytest

from cascade.report.style import COLORS, NAMES
from cascade.report.tabular import draw, save
from cascade.tabular import NOT_REACHED, STRATEGIES
from cascade.tabular.experiment import Experiment, full_record, interval


def experiment(**changes) -> Experiment:
    settings = {
        "world": "tree",
        "height": 3,
        "population": 3,
        "epsilon": 0.0,
        "seeds": (0, 1, 2, 3),
        "strategies": tuple(STRATEGIES),
        "fake_samples": 1,
        "policies": "sequences",
        "states": 5,
        "actions": 2,
        "side": 3,
        "max_rounds": 50,
    }
    return Experiment(**(settings | changes))


def record(**changes) -> dict:
    chosen = experiment(**changes)
    return full_record(chosen, chosen.run(), lambda *_: None)


def test_interval_brackets_the_mean_and_repeats_exactly():
    rounds = np.random.default_rng(1).poisson(20, size=100)
    found = interval(rounds, 1000)
    assert found.low < found.mean < found.high
    assert found.high - found.low == pytest.approx(2 * 1.96 * rounds.std() / 10, rel=0.2)
    assert found == interval(rounds, 1000)


def test_interval_counts_seeds_that_gave_up_as_the_last_round():
    found = interval(np.array([10, NOT_REACHED]), 50)
    assert found.mean == 30
    assert found.missing == 1


def test_record_survives_json_and_agrees_with_itself():
    found = record()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["summary"]["single_policy_batch"]["mean"] == 7
    assert [p["population"] for p in found["by_population"]["cascade_ts"]] == [1, 2, 3]
    assert [p["mean"] for p in found["by_population"]["cascade_ts"]] == [7, 4, 3]
    curve = found["accuracy"]["cascade_ts"]
    assert curve["mean"][0] == 0.0
    assert curve["mean"][-1] == 1.0
    assert curve["round"] == [0, 1, 2, 3]


@pytest.mark.parametrize("world", ["tree", "stochastic", "grid"])
def test_figure_shows_every_strategy_in_its_colour(world):
    found = record(world=world, epsilon=0.0 if world == "tree" else 0.5)
    left, right = draw(found).axes
    for axes in (left, right):
        shown = {line.get_label(): line.get_color() for line in axes.get_lines()}
        for name in STRATEGIES:
            assert shown[NAMES[name]] == COLORS[name]
    drawn = next(line for line in right.get_lines() if line.get_label() == NAMES["cascade_ts"])
    assert list(drawn.get_ydata()) == [p["mean"] for p in found["by_population"]["cascade_ts"]]


def test_same_record_same_files(tmp_path):
    found = record()
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        assert {path.name for path in save(found, folder)} == {"theory.png", "theory.svg"}
    for name in ("theory.png", "theory.svg"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_methods_keep_apart_in_colour():
    methods = ["cascade", "pp2e", "p2e", "random"]
    assert len({COLORS[name] for name in methods}) == 4
    assert COLORS["cascade"] == COLORS["cascade_ts"]
