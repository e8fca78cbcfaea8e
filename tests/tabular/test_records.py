"""The page of the theory quotes the stored records, and the records can be made again."""

import json
from pathlib import Path

import pytest

from cascade.tabular.experiment import Experiment, rounds_record

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
RECORDS = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in ROOT.glob("results/tabular/*.json")
}
ROUNDS = [name for name in RECORDS if not name.startswith("lemma1")]


def test_every_record_is_named_on_the_page():
    assert len(RECORDS) == 8
    assert [name for name in RECORDS if f"{name}.json" not in PAGE] == []


@pytest.mark.parametrize("name", ROUNDS)
def test_the_page_quotes_the_records(name):
    cells = []
    for found in RECORDS[name]["summary"].values():
        exact = found["low"] == found["high"]
        mean = f"{found['mean']:.0f}" if exact else f"{found['mean']:.2f}"
        cells.append(mean if exact else f"{mean} ({found['low']:.2f} to {found['high']:.2f})")
    assert f"| {' | '.join(cells)} |" in PAGE


@pytest.mark.parametrize("name", [name for name in RECORDS if name.startswith("lemma1")])
def test_the_page_quotes_lemma_1(name):
    found = RECORDS[name]
    cells = [f"{found['settings']['trees']:,}"]
    cells += [f"{found[key]:.3f}" for key in ("best", "greedy", "best_repeated")]
    assert f"| {' | '.join(cells)} |" in PAGE


@pytest.mark.parametrize("name", ROUNDS)
def test_the_first_seeds_of_a_record_can_be_measured_again(name):
    settings = RECORDS[name]["settings"]
    defaults = {"policies": "sequences", "states": 12, "actions": 2, "side": 4}
    known = {"seeds": (0, 1, 2), "strategies": ("sequential", "cascade_ts")}
    found = rounds_record(Experiment(**(defaults | settings | known)).run())
    for strategy, rounds in found.items():
        assert rounds == RECORDS[name]["rounds"][strategy][:3]
