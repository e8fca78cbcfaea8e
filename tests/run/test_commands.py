"""The commands around a run, as a user types them."""

import importlib
import json
import signal
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from cascade.cli import main
from cascade.cli.main import parse
from cascade.config import EnvConfig
from cascade.presets import PRESETS, preset
from cascade.run.api import Run, open_run
from cascade.run.transfer import Outcome

TINY = (
    *("--smoke", "--env", "probe:chain", "--env.observation", "auto", "--env.time-limit", "8"),
    *("--measure.levels", "2", "--quiet"),
)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep of two methods, transferred and reported."""
    out = tmp_path_factory.mktemp("runs") / "sweep"
    main(["sweep", "demo", *TINY, "--methods", "cascade", "random", "--transfer", "--out", str(out)])
    return out


def fails(capsys, code: int, *args: str) -> str:
    """The one line that a command ends with."""
    with pytest.raises(SystemExit) as stopped:
        main(list(args))
    assert stopped.value.code == code
    error = capsys.readouterr().err.strip()
    assert len(error.splitlines()) == 1, error
    return error


def test_a_sweep_leaves_a_run_for_each_method_and_a_page(swept):
    assert (swept / "report" / "index.html").stat().st_size > 10_000
    for method in ("cascade", "random"):
        results = json.loads((swept / method / "results.json").read_text())
        assert results["method"] == method
        assert {"success", "return"} <= {item["metric"] for item in results["records"]}


def test_a_finished_sweep_is_only_shown_again(swept, capsys):
    before = (swept / "cascade" / "results.json").read_bytes()
    args = [
        "sweep",
        "demo",
        *TINY,
        "--methods",
        "cascade",
        "random",
        "--transfer",
        "--out",
        str(swept),
        "--json",
    ]
    main(args)
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert set(document["runs"]) == {"cascade", "random"}
    assert document["failed"] == {}
    assert (swept / "cascade" / "results.json").read_bytes() == before
    assert "zero-shot" in shown.err


def test_a_record_of_a_sweep(swept, tmp_path, monkeypatch):
    """Every value of every run, by metric and seed, with what differs from the preset."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "scripts")
    script, out = importlib.import_module("record"), tmp_path / "record.json"
    monkeypatch.setattr(sys, "argv", ["record.py", str(swept), "--command", "as above", "--out", str(out)])
    script.main()
    document = json.loads(out.read_text())
    assert (document["command"], set(document["runs"])) == ("as above", {"cascade", "random"})
    found = document["runs"]["cascade"]
    assert (found["method"], found["preset"]) == ("cascade", "demo")
    assert f"env.id: was {preset('demo').env.id!r}, now 'probe:chain'" in found["changed"]
    assert [len(values) for values in found["seconds"].values()] == [2, 2, 2, 2]
    steps = found["metrics"]["steps"]["0"]
    assert steps[1] == 2 * steps[0] > 0
    assert found["metrics"]["success@reward"]["0"][0] is None, "transferred after the last deployment only"
    assert document["runs"]["random"]["metrics"].keys().isdisjoint({"entropy", "information_gain"})
    with pytest.raises(SystemExit, match="different seeds"):
        script.joined(found, found)
    other = found | {"metrics": {name: {"1": seeds["0"]} for name, seeds in found["metrics"].items()}}
    both = script.joined(found, other)
    assert both["metrics"]["steps"]["1"] == both["metrics"]["steps"]["0"]
    assert both["seconds"]["model"] == pytest.approx([2 * x for x in found["seconds"]["model"]])
    with pytest.raises(SystemExit, match="the same settings"):
        script.joined(found, other | {"changed": []})


def test_a_run_goes_on_by_its_folder_alone(swept, capsys):
    main(["run", "--out", str(swept / "cascade"), "--quiet", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert (document["preset"], document["method"]) == ("demo", "cascade")
    assert {item["deployment"] for item in document["records"]} == {0, 1}


def test_transfer_after_an_earlier_deployment_joins_the_results(swept, capsys):
    main(["transfer", str(swept / "cascade"), "--task", "reward", "--deployment", "0", "--json"])
    records = json.loads(capsys.readouterr().out)["records"]
    assert {(item["deployment"], item["task"]) for item in records} == {(0, "reward")}
    stored = json.loads((swept / "cascade" / "results.json").read_text())["records"]
    assert all(item in stored for item in records)


def test_settings_of_a_transfer_are_the_runs_unless_changed(swept, capsys):
    run = str(swept / "random")
    own = open_run(run).settings.transfer
    assert parse(["transfer", run]).config == own
    asked = ["transfer", run, "--task", "reward", "--agent.entropy", "0.25", "--greedy", "--episodes", "4"]
    agent = replace(own.agent, entropy=0.25)
    assert parse(asked).config == replace(own, agent=agent, greedy=True, episodes=4)
    main([*asked, "--deployment", "0", "--json"])
    assert {item["deployment"] for item in json.loads(capsys.readouterr().out)["records"]} == {0}
    written = json.loads(
        (swept / "random" / "transfer" / "reward" / "deploy-000" / "result.json").read_text()
    )
    assert written["seeds"]["0"]["settings"] == asdict(parse(asked).config)
    assert written["seeds"]["0"]["episodes"] == 4
    assert open_run(run).settings.transfer == own, "the run's own settings stay"
    error = fails(capsys, 2, "transfer", run, "--agent.entropi", "0.1")
    assert "--agent.entropi is no setting" in error
    assert "--agent.entropy" in error


def test_mistakes_are_one_line(swept, tmp_path, capsys):
    run = str(swept / "cascade")
    assert "preset: got 'dmeo', expected one of demo" in fails(capsys, 2, "run", "dmeo")
    assert "--methods: got 'dreamer'" in fails(
        capsys, 2, "sweep", "demo", *TINY, "--methods", "dreamer", "--out", str(tmp_path)
    )
    assert "was started with other settings (model-steps: was 4, now 5)" in fails(
        capsys, 1, "run", "--out", run, "--model-steps", "5", "--quiet"
    )
    assert "--task: got 'fly', expected one of reward" in fails(capsys, 2, "transfer", run, "--task", "fly")
    assert "deployment: got 9, expected one of 0, 1" in fails(capsys, 2, "transfer", run, "--deployment", "9")
    assert "not a run of cascade" in fails(capsys, 1, "transfer", str(tmp_path))
    assert "deploy.steps: got 0" in fails(capsys, 2, "run", "demo", "--deploy.steps", "0")


def test_a_transfer_that_is_told_to_stop_exits_as_a_run_does(swept, capsys, monkeypatch):
    def told(self, tasks, *args, **kwargs):
        signal.raise_signal(signal.SIGTERM)
        return Outcome(0, 1, {}, self.settings.transfer, interrupted=True)

    monkeypatch.setattr(Run, "transfer", told)
    with pytest.raises(SystemExit) as stopped:
        main(["transfer", str(swept / "cascade")])
    assert stopped.value.code == 128 + signal.SIGTERM
    assert "the same command starts over" in capsys.readouterr().err


def test_settings_on_the_command_line_change_the_preset(capsys):
    command = parse(["run", "minigrid-multiroom", "--method", "pp2e", "--env", "minigrid:Empty-8x8-v0"])
    assert command.config.env.id == "minigrid:Empty-8x8-v0"
    assert (command.config.diversity_weight, command.config.population) == (0.0, 10)
    assert command.preset == "minigrid-multiroom"
    assert parse(["sweep", "--seeds", "0-2"]).seeds == (0, 1, 2)


@pytest.mark.parametrize("name", ["run", "sweep"])
def test_another_environment_is_observed_and_ends_as_it_does_by_itself(name):
    """The demo's own shows a grid for eighty steps."""
    words = [name, "demo", "--env", "probe:chain"]
    assert parse(words).config.env == EnvConfig("probe:chain")
    said = parse([*words, "--env.observation=vector", "--env.time-limit", "9"]).config.env
    assert said == EnvConfig("probe:chain", observation="vector", time_limit=9)
    kept = parse([name, "demo", "--env.id", "minigrid:Empty-8x8-v0"]).config.env
    assert (kept.observation, kept.time_limit) == ("grid", 80)
    assert parse([*words, "--smoke"]).config.env.time_limit > 0


def test_data_that_are_not_there_are_missed_before_anything_is_written(capsys, tmp_path):
    out = tmp_path / "run"
    words = ["run", "demo", "--smoke", "--out", str(out), "--initial", "minari:nowhere"]
    assert "expected the folder of a Minari dataset" in fails(capsys, 2, *words)
    assert not (out / "run.json").exists()


def test_the_presets_are_listed_within_eighty_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    main(["presets"])
    listed = capsys.readouterr().err
    assert [name for name in PRESETS if name not in listed] == []
    assert "…" not in listed
    assert max(map(len, listed.splitlines())) <= 80
    main(["presets", "--json"])
    assert json.loads(capsys.readouterr().out)["demo"]["deployments"] == 3
