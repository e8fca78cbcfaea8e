"""Zero-shot transfer as a whole: near the best possible return from random data, or an honest no."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest
from transfer_helpers import (
    GOAL,
    TABLE,
    best_returns,
    configuration,
    learn_world,
    random_store,
)

import cascade
from cascade.config import EnvConfig, OptimizerConfig
from cascade.deploy import Plan
from cascade.deploy.play import Played
from cascade.envs import InProcess, make
from cascade.errors import CascadeError, SettingError
from cascade.run import lesson
from cascade.run.labelling import label, rare_rows, reward_function, summary_of
from cascade.run.results import Results
from cascade.run.transfer import Outcome, Result, evaluation_seeds, score, transfer
from cascade.specs import ActionSpec, EpisodeKey
from cascade.transfer.labels import summarise
from cascade.world.model import WorldModel

FUNCTION = "transfer_helpers:at_goal"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Random data, a world model of it, and one transfer of two tasks side by side."""
    config = configuration()
    store = random_store(tmp_path_factory.mktemp("table"), TABLE, steps=2000)
    world = learn_world(store, config, 500)
    reports = []
    outcome = transfer(
        world, store, ["reward", FUNCTION], config, store.spec, 0, progress=reports.append, envs=InProcess
    )
    return store, world, outcome, reports


def optimum(payoffs):
    """The best mean return in the evaluation's episodes."""
    env = make(EnvConfig(id=TABLE))
    best = best_returns(payoffs)
    starts = [int(env.reset(int(seed)).info["state"]) for seed in evaluation_seeds(40)]
    return best[starts].mean()


@pytest.mark.parametrize("task", ["reward", FUNCTION])
def test_it_earns_95_percent_of_the_best_possible_from_random_data(table, task):
    """A reward of the environment, on every row, and a user's, on one state of eight; known by value iteration."""
    _, _, outcome, _ = table
    payoffs = make(EnvConfig(id=TABLE)).payoffs if task == "reward" else np.arange(8) == GOAL
    result = outcome.results[task]
    assert result.learned
    assert len(result.returns) == 40
    assert result.mean_return >= 0.95 * optimum(payoffs.astype(float))
    assert result.success == 1.0


def test_the_policy_acts_by_the_world_model_as_it_was(table):
    store, world, outcome, _ = table
    before = learn_world(store, configuration(), 500)
    used = outcome.behaviours["reward"].world
    for mine, theirs, first in zip(*map(jax.tree.leaves, (used, world, before)), strict=True):
        np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(mine, first)


def test_a_transfer_whose_updates_are_not_finite_stops_and_says_what_to_change(table):
    store, world, outcome, _ = table
    assert outcome.results["reward"].to_json()["skipped"] == 0
    config = replace(configuration(), max_skipped=5)
    config = replace(config, transfer=replace(config.transfer, reward=OptimizerConfig(lr=1e30)))
    with pytest.raises(
        CascadeError,
        match=r"transfer of seed 3 to reward: \d+ updates of the reward head .* max-skipped, which is 5; lower tr",
    ):
        transfer(world, store, ["reward"], config, store.spec, 3, envs=InProcess)


def test_a_bad_update_in_the_last_step_of_a_chunk_is_one(table, monkeypatch):
    """Counters only grow, so a mean over the chunk would have told an eighth of it."""
    store, world, *_ = table
    train, calls = lesson.reward_program, []

    def spoiled(heads, world, chunk, labels, step, key, config):
        calls.append(int(step))
        labels = labels.at[-1, 1].set(np.nan) if len(calls) == 25 else labels
        return train(heads, world, chunk, labels, step, key, config=config)

    monkeypatch.setattr(lesson, "reward_program", spoiled)
    tasks, config = ["reward", FUNCTION], configuration()
    outcome = transfer(world, store, tasks, config, store.spec, 0, envs=InProcess)
    assert calls[-1] == 192
    assert [outcome.results[task].skipped for task in tasks] == [0, 1]
    calls.clear()
    with pytest.raises(CascadeError, match=f"to {FUNCTION}: 1 updates of the reward head"):
        transfer(world, store, tasks, replace(config, max_skipped=0), store.spec, 0, envs=InProcess)


def test_looking_ahead_makes_a_policy_of_an_actor_that_knows_little(table):
    """An actor of a few steps is nearly uniform; what it imagines of each action already tells good from bad."""
    store, world, *_ = table
    config, earned = configuration(), []
    for draws in (0, 16):
        settings = replace(config.transfer, behaviour_steps=8, lookahead=draws)
        job = (["reward", FUNCTION], replace(config, transfer=settings), store.spec, 0)
        outcome = transfer(world, store, *job, envs=InProcess)
        earned.append([result.mean_return for result in outcome.results.values()])
    for payoffs, alone, ahead in zip(
        (make(EnvConfig(id=TABLE)).payoffs, np.arange(8) == GOAL), *earned, strict=True
    ):
        best = optimum(payoffs.astype(float))
        assert ahead >= 0.95 * best
        assert alone <= 0.9 * best


def test_looking_ahead_is_for_discrete_actions(table):
    store, world, *_ = table
    config = configuration()
    config = replace(config, transfer=replace(config.transfer, lookahead=8))
    spec = replace(store.spec, action=ActionSpec("continuous", 2))
    with pytest.raises(
        SettingError, match=r"transfer.lookahead: got 8, expected 0: .* actions are continuous"
    ):
        transfer(world, store, ["reward"], config, spec, 0)


def test_heads_know_rewarding_rows_from_others(table):
    _, _, outcome, _ = table
    head = outcome.results[FUNCTION].reward_head
    assert head["error_rewarding"] < 0.15
    assert head["error_other"] < 0.05


def test_everything_is_reported(table):
    _, _, outcome, reports = table
    phases = [report.phase for report in reports]
    assert sorted(set(phases)) == ["behaviour", "evaluate", "reward"]
    assert [r.step for r in reports if r.phase == "reward"][-1] == 200
    document = outcome.results["reward"].to_json()
    assert document["episodes"] == len(document["returns"]) == 40
    curves = document["curves"]
    assert curves["step"] == [*range(8, 401, 8)]
    assert {len(values) for values in curves.values()} == {50}
    assert [value is None for value in curves["return"]] == [True] * 25 + [False] * 25
    assert [value is None for value in curves["reward_loss"]] == [False] * 25 + [True] * 25
    assert curves["reward_loss"][24] < 0.2 * curves["reward_loss"][0]
    assert document["labels"]["nonzero"] == 2000
    assert set(outcome.seconds) == {"reward", "behaviour", "evaluate"}


def test_what_is_written_holds_every_seed(table, tmp_path):
    """Results of two seeds in one file, and a behaviour that plays as it was evaluated."""
    _, _, outcome, _ = table
    written = [replace(outcome, seed=seed).write(tmp_path) for seed in (0, 1)]
    assert written[0] == written[1]
    names = [str(path.relative_to(tmp_path)) for path in written[0]]
    assert names == ["reward/deploy-000/result.json", "transfer_helpers%3Aat_goal/deploy-000/result.json"]
    document = json.loads(written[0][0].read_text())
    assert list(document["seeds"]) == ["0", "1"]
    assert document["seeds"]["1"]["return"] == outcome.results["reward"].mean_return
    assert document["seeds"]["1"]["curves"]["step"] == outcome.results["reward"].curves["step"]
    assert [(one["metric"], one["task"]) for one in outcome.records()[:2]] == [
        ("success", "reward"),
        ("return", "reward"),
    ]
    policy = cascade.load_policy(tmp_path / "reward/deploy-000/seed-0")
    env, seed, earned = make(EnvConfig(id=TABLE)), int(evaluation_seeds(1)[0]), 0.0
    step, first = env.reset(seed), True
    while not (step.terminated or step.truncated):
        step, first = env.step(policy(step.obs, first)), False
        earned += step.rewards["reward"]
    assert earned >= 0.9 * best_returns(env.payoffs)[int(env.reset(seed).info["state"])]


def test_a_reward_function_labels_the_rows_it_is_given(table):
    """Stored under its own name, 0 on first rows, 1 exactly where the state was the goal."""
    store, *_ = table
    labels, states = store.labels(FUNCTION).read(), store.info("state").read()
    first = store.fields().is_first.read()
    np.testing.assert_array_equal(labels, (states == GOAL) & ~first)
    assert FUNCTION in store.tasks


def test_only_zeros_are_said_to_be_zeros_and_random_actions_are_scored(tmp_path):
    """A goal out of reach: nothing is trained, and the seed still counts in a comparison."""
    config = configuration("probe:chain?limit=3")
    store = random_store(tmp_path, config.env.id, steps=60)
    world = jax.jit(lambda key: WorldModel(store.spec, config.world, key=key))(jax.random.key(0))
    outcome = transfer(world, store, ["reward"], config, store.spec, 0, envs=InProcess)
    document = outcome.results["reward"].to_json()
    assert document["learned"] is False
    assert document["reason"].startswith("all labels of task reward are 0 in the 60 rows")
    assert document["episodes"] == len(document["steps"]) == config.transfer.episodes
    assert [(one["metric"], one["value"]) for one in outcome.records()] == [("success", 0.0), ("return", 0.0)]
    assert outcome.behaviours == {}


def test_nothing_is_learned_in_a_model_that_was_not_trained(table):
    store, world, *_ = table
    config = replace(configuration(), model_steps=0)
    outcome = transfer(world, store, ["reward"], config, store.spec, 0, envs=InProcess)
    document = outcome.results["reward"].to_json()
    assert document["learned"] is False
    assert document["reason"].startswith("the world model was not trained (model-steps is 0)")
    assert document["episodes"] == config.transfer.episodes
    assert outcome.behaviours == {}


def test_stopping_leaves_no_score(table):
    store, world, *_ = table
    outcome = transfer(world, store, ["reward"], configuration(), store.spec, 0, stop=lambda: True)
    assert outcome.interrupted
    assert outcome.results["reward"].returns is None
    assert not outcome.results["reward"].learned


def test_labels_without_a_judge_are_not_scored():
    """Labels someone added by hand: the environment cannot say what an episode was worth."""
    played = Played({"reward": np.array([[1.0], [2.0]])}, np.array([[5], [6]]), np.ones((2, 1), bool), 0)
    added, recorded = (Result(summarise(task, []), learned=True) for task in ("by-hand", "reward"))
    score(added, "by-hand", 0, 2, played)
    score(recorded, "reward", 1, 2, played)
    assert added.returns is None
    assert added.to_json()["reason"] == "not evaluated: the environment reports no reward named by-hand"
    assert (recorded.returns, recorded.steps, recorded.success) == ([2.0], [6], 1.0)


def test_what_is_not_finite_is_null_in_everything_that_is_written(tmp_path):
    """A policy that diverged is a result, too."""
    nan = float("nan")
    result = Result(summarise("reward", []), learned=True, returns=[1.0, nan], steps=[3, 4])
    result.reward_head, result.curves = {"error_other": nan}, {"step": [8], "return": [float("inf")]}
    outcome = Outcome(0, 0, {"reward": result}, configuration().transfer)
    (path,) = outcome.write(tmp_path)
    found = json.loads(path.read_text())["seeds"]["0"]
    assert (found["success"], found["return"], found["returns"]) == (0.5, None, [1.0, None])
    assert (found["reward_head"], found["curves"]["return"]) == ({"error_other": None}, [None])
    results = Results.open(tmp_path / "results.json")
    results.add(outcome.records())
    assert [item["value"] for item in results.records] == [None, 0.5]


def test_later_deployments_are_not_seen(tmp_path):
    store = random_store(tmp_path, TABLE, steps=40, deployments=3)
    assert [one.index for one in store.upto(1).deployments] == [0, 1]
    assert store.upto(1).rows < store.rows == store.upto(2).rows
    with pytest.raises(CascadeError, match=r"deployment: got 7, but .* has \[0, 1, 2\]"):
        store.upto(7)
    label(store.upto(1), "some", lambda obs, info: np.ones(len(info["state"])))
    assert store.deployments[1].tasks == ["reward", "some"]
    assert store.deployments[2].tasks == ["reward"]


def in_two_lines(obs, info):
    raise ValueError("shapes differ\n  (3,) and (4,)")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("transfer_helpers:nothing", "--reward: got 'transfer_helpers:nothing', expected an importable"),
        ("numpy:ravel", r"--reward numpy:ravel: raised TypeError: .* info \['state'\]"),
        ("builtins:len", "--reward builtins:len: raised TypeError"),
        (FUNCTION, f"--reward {FUNCTION}: raised ValueError: shapes differ; it is given"),
    ],
)
def test_a_mistake_in_a_reward_function_is_one_line(path, message, monkeypatch):
    monkeypatch.setattr("transfer_helpers.at_goal", in_two_lines)
    obs, info = {"vector": np.zeros((5, 8))}, {"state": np.zeros(5)}
    with pytest.raises((CascadeError, SettingError), match=message) as error:
        reward_function(path)(obs, info)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros(3), r"returned float64\(3,\) for 5 rows, expected one number for each"),
        (np.zeros((5, 1)), r"returned float64\(5, 1\) for 5 rows"),
        (np.array(list("abcde")), "returned <U1"),
        (np.full(5, np.nan), "returned a number that is not finite"),
    ],
)
def test_what_a_reward_function_returns_is_checked(values, message, monkeypatch):
    monkeypatch.setattr("transfer_helpers.at_goal", lambda obs, info: values)
    with pytest.raises(CascadeError, match=message):
        reward_function(FUNCTION)({"vector": np.zeros((5, 8))}, {"state": np.zeros(5)})


def test_sequences_are_made_to_contain_rare_rewards(table, tmp_path):
    """The chain's goal is rare: half the windows hold one of its rows; dense rewards leave the ends."""
    config = configuration("probe:chain?length=9")
    store = random_store(tmp_path, config.env.id, steps=2000)
    summary = summary_of(store, "reward")
    assert summary.rare
    rows = rare_rows(store, {"reward": summary})
    np.testing.assert_array_equal(rows, np.flatnonzero(store.labels("reward").read()))
    world = jax.jit(lambda key: WorldModel(store.spec, config.world, key=key))(jax.random.key(0))
    _, labels = lesson.Lesson(world, store, {"reward": summary}, config, store.spec, 0)._draw(0, 20)
    assert np.asarray((labels[:, 0] > 0).any(-1)).mean() > 0.4
    dense, *_ = table
    assert len(rare_rows(dense, {"reward": summary_of(dense, "reward")})) == 0


def test_a_rare_reward_is_not_drowned_by_one_that_is_less_rare(tmp_path):
    """Half of the marks are each task's, whatever it has."""
    store = random_store(tmp_path, "probe:chain?length=9", steps=2000)
    labels = np.zeros(store.rows, np.float32)
    labels[[41, 43]] = 1.0
    store.add_labels("rarer", [labels])
    rows = rare_rows(store, {task: summary_of(store, task) for task in ("reward", "rarer")})
    often = np.count_nonzero(store.labels("reward").read())
    assert often > 10
    assert np.isin(rows, [41, 43]).sum() == often == len(rows) / 2
    assert set(rows) == {41, 43, *np.flatnonzero(store.labels("reward").read())}


def test_evaluation_has_seeds_of_its_own():
    seeds = evaluation_seeds(100)
    plan = Plan(seed=0, deployment=0, steps=1000, each=10)
    drawn = {plan.draw(EpisodeKey(0, lane, episode)).seed for lane in range(10) for episode in range(20)}
    assert len(set(seeds.tolist())) == 100
    assert not drawn & set(seeds.tolist())
    np.testing.assert_array_equal(evaluation_seeds(7), seeds[:7])
    assert seeds.min() >= 0
