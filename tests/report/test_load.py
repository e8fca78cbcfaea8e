"""Reading run folders: what is there is taken, what is damaged is noted, what is no run is refused in one line."""

import json

import numpy as np
import pytest
from synthetic_run import write_run

from cascade.errors import CascadeError
from cascade.report import curves
from cascade.report.load import clean, list_measures, read_measure, read_run
from cascade.report.series import number, seconds, tables


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return read_run(write_run(tmp_path_factory.mktemp("load") / "one", levels=2, steps=30))


def test_a_whole_run(run):
    assert (run.name, run.method, run.environment, run.seeds) == (
        "one",
        "cascade",
        "minigrid:FourRooms-v0",
        [0, 1],
    )
    assert run.notes == []
    assert list(list_measures(run)) == [(s, k) for s in (0, 1) for k in (1, 2, 3)]
    assert list_measures(run)[1, 3].name == "deploy-002.npz", "counted, not numbered"
    arrays = read_measure(run, list_measures(run)[1, 3])
    assert arrays["visits"].shape == (4, 2, 19, 19)


def test_transfers_become_records_once(run):
    found = [r for r in run.records if r["metric"] == "success"]
    assert len(found) == 6
    path = run.path / "transfer" / "goal" / "deploy-002" / "result.json"
    stored = json.loads(path.read_text())["seeds"]["1"]["success"]
    assert next(r["value"] for r in found if (r["seed"], r["deployment"]) == (1, 3)) == stored


def test_a_recorded_success_is_not_overwritten(tmp_path):
    folder = write_run(tmp_path / "run", levels=2, steps=20, seeds=(0,), deployments=1)
    results = json.loads((folder / "results.json").read_text())
    results["records"].append(
        {"seed": 0, "deployment": 0, "metric": "success", "task": "goal", "value": 0.125}
    )
    (folder / "results.json").write_text(json.dumps(results))
    assert [r["value"] for r in read_run(folder).records if r["metric"] == "success"] == [0.125]


def test_a_value_that_is_no_number_is_left_out(tmp_path):
    folder = write_run(tmp_path / "run", levels=2, steps=20, seeds=(0,), deployments=1)
    results = json.loads((folder / "results.json").read_text())
    odd = {"seed": 0, "deployment": 0, "metric": "information_gain", "task": None, "value": None}
    others = [item for item in results["records"] if item["metric"] != odd["metric"]]
    (folder / "results.json").write_text(json.dumps(results | {"records": [*others, odd]}))
    found = read_run(folder)
    assert (len(others) > 0, found.notes) == (True, [])
    assert odd["metric"] not in {table.metric for table in tables(found.records)}


def broken(folder, what):
    """A folder that is no run in some way, and words that the refusal must have."""
    if what == "absent":
        return folder.parent / "nowhere", "nothing there"
    if what == "no run.json":
        return folder, "without run.json"
    if what == "not JSON":
        (folder / "run.json").write_text("{")
        return folder, "cannot be read"
    (folder / "run.json").write_text(json.dumps({"format": 7}))
    return folder, "format 7"


@pytest.mark.parametrize("what", ["absent", "no run.json", "not JSON", "another format"])
def test_what_is_no_run_is_refused_in_one_line(tmp_path, what):
    (tmp_path / "run").mkdir()
    folder, word = broken(tmp_path / "run", what)
    with pytest.raises(CascadeError, match=word) as refusal:
        read_run(folder)
    assert "\n" not in str(refusal.value)
    assert str(folder) in str(refusal.value)


def test_damage_is_left_out_and_noted(tmp_path):
    folder = write_run(tmp_path / "run", levels=2, steps=20, seeds=(0,), deployments=2)
    (folder / "results.json").write_text("[1, 2")
    with (folder / "metrics.jsonl").open("a") as log:
        log.write('{"phase": "model", "val')
    (folder / "measures" / "seed-0" / "deploy-000.npz").write_bytes(b"PK no archive")
    np.savez(folder / "measures" / "seed-0" / "deploy-001.npz", visits=np.zeros(3), distance=np.zeros((2, 2)))
    run = read_run(folder)
    arrays = {key: read_measure(run, file) for key, file in list_measures(run).items()}
    assert run.phases == []
    assert len(run.logs) == 2 * 2 * 30
    assert {key: list(found) for key, found in arrays.items()} == {(0, 1): [], (0, 2): ["distance"]}
    assert [word for word in ("results.json", "metrics.jsonl", "deploy-000", "visits") if word in str(run.notes)] == [
        "results.json", "metrics.jsonl", "deploy-000", "visits"]  # fmt: skip


@pytest.mark.parametrize("error", [NotImplementedError, RuntimeError])
def test_whatever_a_wrong_bit_leads_to_is_noted(tmp_path, monkeypatch, error):
    def load(*_, **__):
        raise error("zip file version 10.9")

    folder = write_run(tmp_path / "run", levels=2, steps=20, seeds=(0,), deployments=1)
    run, file = read_run(folder), folder / "measures" / "seed-0" / "deploy-000.npz"
    monkeypatch.setattr(np, "load", load)
    assert read_measure(run, file) == {}
    assert run.notes == ["measures/seed-0/deploy-000.npz cannot be read (zip file version 10.9); left out."]


def test_pickles_are_not_opened(tmp_path):
    folder = write_run(tmp_path / "run", levels=2, steps=20, seeds=(0,), deployments=1)
    file = folder / "measures" / "seed-0" / "deploy-000.npz"
    np.savez(file, visits=np.array([{"a": 1}], dtype=object))
    run = read_run(folder)
    assert read_measure(run, file) == {}
    assert len(run.notes) == 1


def test_tables_hold_the_records(run):
    found = {table.key: table for table in tables(run.records)}
    assert list(found)[:3] == ["coverage", "success-goal", "return-goal"]
    for record in run.records:
        key = record["metric"] if record["task"] is None else f"{record['metric']}-{record['task']}"
        assert found[key].at(record["deployment"])[record["seed"]] == record["value"]
    mean = found["coverage"].intervals()[2]
    assert mean.value == pytest.approx(np.mean([*found["coverage"].at(3).values()]))


def test_a_table_with_holes():
    rows = [{"metric": "m", "task": None, "seed": s, "deployment": k, "value": v}
            for s, k, v in [(0, 0, 1.0), (3, 1, 2.0), (0, 1, float("nan"))]]  # fmt: skip
    (table,) = tables(rows)
    assert table.at(0) == {0: 1.0}
    assert table.at(1) == {3: 2.0}
    assert table.at(9) == {}


def test_curves_go_on_counting_steps(run):
    model, explore = curves.phases(run.logs)
    assert (model.name, explore.name) == ("model", "explore")
    assert model.starts == {1: 0.0, 2: 581.0, 3: 1162.0}
    assert explore.curves["entropy"][0].values.shape == (90, 4)
    assert (np.diff(model.curves["loss"][1].steps) > 0).all()
    line = next(
        x for x in run.logs if (x["phase"], x["seed"], x["deployment"], x["step"]) == ("model", 1, 2, 20)
    )
    where = model.curves["loss"][1].steps == 601.0
    assert model.curves["loss"][1].values[where].item() == line["values"]["loss"]


def test_thinning_keeps_the_mean_and_the_ends_close():
    curve = curves.Curve(np.arange(1000.0), np.sin(np.arange(1000.0) / 100)[:, None])
    thin = curves.thin(curve, 100)
    assert thin.values.shape == (100, 1)
    assert thin.values.mean() == pytest.approx(curve.values.mean())
    assert curves.thin(curve, 1000) is curve


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [(0.3141, "%", "31.4 %"), (12.0, "", "12"), (0.012345, "", "0.0123"), (1234.5, "", "1,234"), (np.nan, "", "–")],
)  # fmt: skip
def test_numbers_as_people_read_them(value, unit, words):
    assert number(value, unit) == words


def test_durations_and_what_is_not_finite():
    assert [seconds(v) for v in (3.21, 45.0, 600.0, 9000.0)] == ["3.2 s", "45 s", "10.0 min", "2.5 h"]
    assert clean([1.0, float("nan"), [float("inf"), 0.1234567]]) == [1.0, None, [None, 0.12346]]
