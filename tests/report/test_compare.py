"""Comparisons: who is grouped with whom, and numbers that agree with the measures they come from."""

import csv
import json

import numpy as np
import pytest
from synthetic_run import write_run

from cascade.errors import SettingError
from cascade.metrics.aggregate import iqm, mann_whitney, paired_difference, probability_of_improvement
from cascade.report.build import build, short_names
from cascade.report.compare import Member, compare, group
from cascade.report.compare_page import compare_part
from cascade.report.style import COLORS, group_colors


def member(name, method, values, settings=None, environment="grid", metric="coverage", tasks=(None,)):
    """A run whose value for seed s at deployment k is values[s][k]."""
    records = [
        {"seed": seed, "deployment": k, "metric": metric, "task": task, "value": value + number}
        for number, task in enumerate(tasks)
        for seed, row in values.items()
        for k, value in enumerate(row)
    ]
    return Member(name, method, environment, settings or {}, list(values), records)


A = {0: [0.1, 0.5], 1: [0.2, 0.7], 2: [0.3, 0.9]}
B = {0: [0.1, 0.4], 1: [0.2, 0.8], 3: [0.3, 0.3]}


def test_numbers_are_those_of_the_measures():
    groups = group([member("b", "pp2e", B), member("a", "cascade", A)])
    (found,) = compare(groups)
    assert [g.label for g in groups] == ["CASCADE", "PP2E"]
    x, y = np.array([0.5, 0.7, 0.9]), np.array([0.4, 0.8, 0.3])
    assert found.deployment == 1
    assert found.final("CASCADE").value == pytest.approx(iqm(x[:, None]))
    (pair,) = found.pairs
    assert pair.improvement == probability_of_improvement(x[:, None], y[:, None])
    assert pair.improvement.value == pytest.approx(7 / 9)
    assert pair.test == mann_whitney(x, y)
    assert pair.difference == paired_difference(np.array([0.5, 0.7]), np.array([0.4, 0.8]))
    assert pair.shared == 2


def test_seeds_of_one_method_in_several_folders_are_pooled():
    rest = {5: [0.0, 0.1], 6: [0.0, 0.2]}
    groups = group([member("a", "cascade", A), member("more", "cascade", rest), member("b", "pp2e", B)])
    assert [(g.label, g.runs) for g in groups] == [("CASCADE", ["a", "more"]), ("PP2E", ["b"])]
    assert groups[0].tables["coverage"].seeds == [0, 1, 2, 5, 6]


def test_other_settings_or_the_same_seed_stay_apart():
    groups = group([member("a", "cascade", A), member("b", "cascade", A, {"weight": 0.3})])
    assert [g.label for g in groups] == ["CASCADE (a)", "CASCADE (b)"]
    assert [g.records for g in groups] == [member("a", "cascade", A).records] * 2
    groups = group([member("a", "cascade", A), member("b", "cascade", A)])
    assert [g.label for g in groups] == ["CASCADE (a)", "CASCADE (b)"]


@pytest.mark.parametrize("sweeps", [("old", "new"), ("old", "new", "newer")])
def test_runs_of_the_same_name_in_several_sweeps_are_all_compared(sweeps, tmp_path):
    """Settings differ, so that none is pooled with another."""
    paths = [tmp_path / sweep / "cascade" for sweep in sweeps]
    for number, path in enumerate(paths):
        write_run(path, levels=2, steps=60, seeds=(0,), deployments=1)
        info = json.loads((path / "run.json").read_text())
        (path / "run.json").write_text(
            json.dumps(info | {"settings": info["settings"] | {"model_steps": number}})
        )
    built = build(paths, tmp_path / "out")
    assert built.runs == [f"{sweep}/cascade" for sweep in sweeps]
    assert set(built.records) == {f"CASCADE ({sweep}/cascade)" for sweep in sweeps}
    with (tmp_path / "out/figures/compare/seeds.csv").open(newline="") as file:
        methods = {row["method"] for row in csv.DictReader(file)}
    assert methods == set(built.records)


def test_names_are_as_long_as_they_must_be(tmp_path):
    def names(*paths):
        return short_names([tmp_path / path for path in paths])

    assert names("a/cascade", "b/random") == ["cascade", "random"]
    assert names("a/cascade", "b/cascade", "b/random") == ["a/cascade", "b/cascade", "random"]
    assert names("x/a/run", "y/a/run", "y/b/run") == ["x/a/run", "y/a/run", "b/run"]
    with pytest.raises(SettingError, match=r"RUN: got '.*/a/run', expected every run once"):
        names("a/run", "b/../a/run")


def test_environments_are_not_mixed():
    runs = [
        member("a", "cascade", A),
        member("b", "pp2e", B),
        member("c", "cascade", A, environment="walker"),
    ]
    assert [c.environment for c in compare(group(runs))] == ["grid"]


def test_runs_of_unequal_length_are_compared_where_both_have_been():
    short = {seed: row[:1] for seed, row in B.items()}
    (found,) = compare(group([member("a", "cascade", A), member("b", "pp2e", short)]))
    assert found.deployment == 0
    assert [point.deployment for point in found.curves["CASCADE"]] == [0, 1]


def test_numbers_of_some_of_the_seeds_say_so(tmp_path):
    """One seed is a deployment ahead of the others: it alone is compared there."""
    ahead = {0: [0.1, 0.5], 1: [0.2], 2: [0.3]}
    groups = group([member("a", "cascade", ahead), member("b", "pp2e", B)])
    html = "".join(compare_part(groups, compare(groups), tmp_path).html)
    assert "50.0 % (1 of 3 seeds)" in html
    assert "(3 of 3 seeds)" not in html


def test_several_tasks_are_also_taken_together():
    runs = [
        member(n, m, v, metric="return", tasks=("walk", "run"))
        for n, m, v in [("a", "cascade", A), ("b", "p2e", B)]
    ]
    together, run, walk = compare(group(runs))
    assert (together.label, together.key) == ("Return: all 2 tasks", "return-all-tasks")
    assert (run.label, walk.label) == ("Return: run", "Return: walk")
    assert together.seeds["CASCADE"] == pytest.approx({0: 1.0, 1: 1.2, 2: 1.4})
    assert together.pairs[0].improvement.value == pytest.approx(7 / 9)


def test_one_group_alone_is_no_comparison():
    assert compare(group([member("a", "cascade", A)])) == []


def test_colors_are_the_methods_own_and_never_twice():
    found = group_colors(["cascade", "cascade", "pp2e", "mine"])
    assert found[0] == COLORS["cascade"]
    assert found[2] == COLORS["pp2e"]
    assert len(set(found)) == 4
