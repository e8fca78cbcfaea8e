"""`cascade tabular`: the document on stdout, one line for what the user can fix."""

import json

import pytest

from cascade.cli import main


def run_json(capsys, *args: str) -> dict:
    main(["tabular", *args, "--json"])
    return json.loads(capsys.readouterr().out)


def test_rounds_document(capsys):
    document = run_json(capsys, "--height", "3", "--population", "4", "--seeds", "0-4", "--epsilon", "0")
    assert set(document) == {"rounds", "settings"}
    assert document["rounds"] == {
        "sequential": [2] * 5,
        "cascade_ts": [2] * 5,
        "single_policy_batch": [7] * 5,
    }
    settings = document["settings"]
    assert settings["height"] == 3
    assert settings["population"] == 4
    assert settings["epsilon"] == 0
    assert settings["seeds"] == [0, 1, 2, 3, 4]


def test_lemma1_document(capsys):
    document = run_json(capsys, "--lemma1", "--height", "2", "--population", "3")
    assert set(document) == {"best", "best_repeated", "greedy", "greedy_ratio", "distinct", "settings"}
    assert document["distinct"] is True
    assert document["best_repeated"] < document["best"]
    assert document["greedy_ratio"] == pytest.approx(document["greedy"] / document["best"])
    assert document["settings"]["trees"] == 24


def test_without_json_stdout_is_silent_and_the_table_is_on_stderr(capsys):
    main(["tabular", "--height", "2", "--population", "2", "--seeds", "0-2"])
    captured = capsys.readouterr()
    assert captured.out == ""
    for name in ("sequential", "cascade_ts", "single_policy_batch"):
        assert name in captured.err


@pytest.mark.parametrize("world", ["stochastic", "grid"])
def test_other_worlds_have_a_default_accuracy(capsys, world):
    document = run_json(capsys, "--world", world, "--population", "4", "--seeds", "0-2", "--side", "3")
    assert document["settings"]["epsilon"] == 0.2
    assert all(r >= 1 for rounds in document["rounds"].values() for r in rounds)


def test_chosen_strategies_alone(capsys):
    document = run_json(capsys, "--strategies", "cascade_ts", "--height", "3", "--seeds", "7")
    assert list(document["rounds"]) == ["cascade_ts"]


def test_giving_up_is_null(capsys):
    document = run_json(capsys, "--height", "4", "--population", "2", "--seeds", "0,3", "--max-rounds", "8")
    assert document["rounds"]["single_policy_batch"] == [None, None]
    assert document["rounds"]["cascade_ts"] == [8, 8]


def test_out_writes_results_and_figures(capsys, tmp_path):
    folder = tmp_path / "a" / "b"
    document = run_json(capsys, "--height", "3", "--seeds", "0-2", "--out", str(folder))
    stored = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert stored["rounds"] == document["rounds"]
    assert set(stored) == {"rounds", "settings", "summary", "accuracy", "by_population"}
    assert (folder / "theory.png").read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in (folder / "theory.svg").read_text(encoding="utf-8")


def test_lemma1_out_writes_its_document(capsys, tmp_path):
    document = run_json(capsys, "--lemma1", "--height", "2", "--out", str(tmp_path))
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8")) == document


BAD = {
    "negative height": (["--height", "-1"], "--height", "-1"),
    "height 0": (["--height", "0"], "--height", "0"),
    "huge height": (["--height", "40"], "--height", "40"),
    "population 0": (["--population", "0"], "--population", "0"),
    "unknown strategy": (["--strategies", "sequential", "magic"], "--strategies", "magic"),
    "strategy twice": (["--strategies", "sequential", "sequential"], "--strategies", "once"),
    "epsilon 1": (["--epsilon", "1"], "--epsilon", "1.0"),
    "epsilon negative": (["--epsilon", "-0.1"], "--epsilon", "-0.1"),
    "epsilon nan": (["--epsilon", "nan"], "--epsilon", "nan"),
    "exact odds": (["--world", "grid", "--epsilon", "0"], "--epsilon", "grid"),
    "unknown world": (["--world", "ocean"], "--world", "ocean"),
    "unknown policies": (["--policies", "both"], "--policies", "both"),
    "negative fakes": (["--fake-samples", "-2"], "--fake-samples", "-2"),
    "no rounds": (["--max-rounds", "0"], "--max-rounds", "0"),
    "enumeration too large": (["--lemma1", "--height", "6"], "--height", "6"),
    "more policies than paths": (["--lemma1", "--height", "2", "--population", "5"], "--population", "5"),
    "bad seeds": (["--seeds", "9-0"], "--seeds", "9-0"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_exit_2(capsys, name):
    args, setting, value = BAD[name]
    with pytest.raises(SystemExit) as stopped:
        main(["tabular", *args, "--json"])
    captured = capsys.readouterr()
    assert stopped.value.code == 2
    assert captured.out == ""
    assert captured.err.strip().count("\n") == 0
    assert setting in captured.err
    assert value in captured.err
    assert "expected" in captured.err


def test_out_that_is_a_file_is_one_line(capsys, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("mine", encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        main(["tabular", "--out", str(blocked)])
    assert stopped.value.code == 2
    assert capsys.readouterr().err.strip().count("\n") == 0
    assert blocked.read_text(encoding="utf-8") == "mine"
