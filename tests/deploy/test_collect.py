"""A deployment has exactly its budget, in rows that say what happened; and nothing but the plan decides it."""

from pathlib import Path

import jax
import numpy as np
import pytest
from deploy_helpers import Counting, contents, deploy, deploy_in_workers, table_of

from cascade.config import DeployConfig, EnvConfig
from cascade.data.journal import Journal
from cascade.data.store import Store
from cascade.deploy import Plan, RandomPolicy, collect
from cascade.deploy.group import keys_at
from cascade.envs import InProcess, make
from cascade.specs import ActionSpec, EpisodeKey


@pytest.mark.parametrize(
    ("steps", "lanes", "population"),
    [(1, 1, 1), (10, 16, 1), (10, 16, 4), (1, 1, 3), (97, 6, 2), (100, 3, 3), (143, 8, 1), (60, 10, 3)],
)
@pytest.mark.parametrize("id", ["probe:table?limit=7", "probe:chain", "probe:bandit"])
def test_the_budget_is_exact_and_even(tmp_path: Path, id: str, steps: int, lanes: int, population: int):
    config = DeployConfig(steps=steps, lanes=lanes)
    plan = Plan.of(config, seed=1, deployment=0, population=population)
    summary = deploy(tmp_path, plan, id, config=config)
    table = table_of(summary)
    assert table["steps"].sum() == summary.steps == summary.collected == steps
    assert summary.budget == steps
    shares = np.bincount(table["explorer"], table["steps"], population)
    assert shares.tolist() == plan.budgets().sum(1).tolist()
    assert summary.explorers == {i: int(share) for i, share in enumerate(shares) if share}
    by_lane = np.zeros_like(plan.budgets())
    np.add.at(by_lane, (table["explorer"], table["lane"]), table["steps"])
    assert (by_lane == plan.budgets()).all()
    keys = table[["explorer", "lane", "episode"]].tolist()
    assert len(set(keys)) == len(keys)
    assert summary.faults.failures == 0
    assert not summary.interrupted


def by_hand(plan: Plan, env, policy: RandomPolicy, key: EpisodeKey, steps: int):
    """The timesteps and actions of an episode, by a plain loop over one environment."""
    draw = plan.draw(key)
    timesteps, actions = [env.reset(draw.seed)], []
    for time in range(steps):
        over = timesteps[-1].terminated or timesteps[-1].truncated
        assert not over, "it went on after its end"
        keys = keys_at(draw.key[None], np.array([time], np.int32))
        actions.append(policy.act((), {}, np.zeros(1, bool), keys)[1][0])
        timesteps.append(env.step(actions[-1]))
    return timesteps, [*actions, np.zeros_like(actions[0])]


@pytest.mark.parametrize(
    "id", ["probe:chain?limit=9", "probe:point", "probe:two-rooms", "probe:table?limit=300"]
)
def test_rows_are_those_of_a_hand_written_loop(tmp_path: Path, id: str):
    plan = Plan(seed=5, deployment=0, steps=410, each=2, groups=2)
    table = table_of(deploy(tmp_path, plan, id))
    store, env = Store.open(tmp_path), make(EnvConfig(id=id))
    fields, left, policy = store.fields(), plan.budgets()[0].tolist(), RandomPolicy(env.spec.action)
    for record in table:
        key = EpisodeKey(*record.tolist()[:3])
        rows = int(record["start"]), int(record["start"] + record["steps"]) + 1
        timesteps, actions = by_hand(plan, env, policy, key, int(record["steps"]))
        np.testing.assert_array_equal(fields.action.read(*rows), actions)
        for name, column in fields.obs.items():
            np.testing.assert_array_equal(column.read(*rows), [step.obs[name] for step in timesteps])
        for name in env.spec.info:
            np.testing.assert_array_equal(store.info(name).read(*rows), [t.info[name] for t in timesteps])
        for task in env.spec.tasks:
            rewards = np.float32([step.rewards[task] for step in timesteps])
            np.testing.assert_array_equal(store.labels(task).read(*rows), rewards)
        left[key.lane] -= int(record["steps"])
        assert record["terminated"] == timesteps[-1].terminated
        assert timesteps[-1].terminated or timesteps[-1].truncated or left[key.lane] == 0
    assert left == [0, 0]


def test_only_true_ends_are_terminal(tmp_path: Path):
    """Chain ends at its right end, is cut at its limit of 9, and at the budget; only the first is terminal."""
    plan = Plan(seed=0, deployment=0, steps=301, each=4)
    table = table_of(deploy(tmp_path, plan, "probe:chain?limit=9&length=6"))
    store = Store.open(tmp_path)
    at_end = store.info("state").read()[table["start"] + table["steps"]] == 5
    assert (table["terminated"] == at_end).all()
    assert set(table["terminated"][table["steps"] == 9].tolist()) == {False, True}
    last = [table[table["lane"] == lane][-1] for lane in range(4)]
    assert any(not record["terminated"] and record["steps"] < 9 for record in last)
    terminal = np.flatnonzero(store.fields().is_terminal.read())
    assert terminal.tolist() == (table["start"] + table["steps"])[table["terminated"]].tolist()


def test_groups_workers_and_shards_do_not_show(tmp_path: Path):
    """A policy whose rows are independent gives the same bytes however lanes are batched and stepped."""
    id, config = "probe:chain", DeployConfig(steps=300, lanes=8)
    plan = Plan.of(config, seed=2, deployment=0, population=2)
    assert plan.groups == 2
    deploy(tmp_path / "here", plan, id, config=config)
    expected = contents(tmp_path / "here" / "deploy-000")
    for workers in (1, 3):
        config = DeployConfig(steps=300, lanes=8, workers=workers)
        deploy_in_workers(tmp_path / str(workers), plan, config, id)
        assert contents(tmp_path / str(workers) / "deploy-000") == expected
    with InProcess(EnvConfig(id=id), plan.lanes) as envs:
        journal = Journal(tmp_path / "shards", 0, envs.spec, flush_bytes=1)
        deploy(tmp_path, plan, id, journal=journal)
    assert contents(tmp_path / "shards" / "deploy-000") == expected
    single = Plan(2, 0, 300, population=2, each=4, groups=1)
    deploy(tmp_path / "one", single, id)
    one = contents(tmp_path / "one" / "deploy-000")
    assert {name for name in one if one[name] != expected[name]} == {"manifest.json"}, "it records the groups"


def test_seeds_and_deployments_differ(tmp_path: Path):
    actions = []
    for seed, deployment in [(0, 0), (1, 0), (0, 1)]:
        root = tmp_path / f"{seed}"
        deploy(root, Plan(seed, deployment, 60, each=2))
        actions.append((root / f"deploy-{deployment:03d}" / "action.npy").read_bytes())
    assert len(set(actions)) == 3


def test_a_policy_is_traced_once_and_told_where_episodes_begin(tmp_path: Path):
    plan = Plan(seed=0, deployment=0, steps=203, population=2, each=4, groups=2)
    policy = Counting(actions=2)
    table = table_of(deploy(tmp_path, plan, "probe:chain?limit=9", policy))
    assert policy.traces == 1
    assert policy.lanes == [4, 4]
    assert all(first.shape == (4,) and words.shape == (4, 2) for first, words in policy.calls)
    assert sum(first.sum() for first, _ in policy.calls) == len(table)
    # A lane's carry counts from its last `is_first`; where that is right, actions follow from the rows alone.
    fields = Store.open(tmp_path).fields()
    draw = jax.jit(lambda key: jax.random.randint(key, (), 0, 2))
    for record in table[:: max(1, len(table) // 8)]:
        words = plan.draw(EpisodeKey(*record.tolist()[:3])).key
        times = np.arange(record["steps"], dtype=np.int32)
        keys = keys_at(np.tile(words, (len(times), 1)), times)
        draws = np.array([int(draw(key)) for key in keys])
        rows = int(record["start"]), int(record["start"] + record["steps"])
        expected = (draws + times + fields.obs["vector"].read(*rows).argmax(-1)) % 2
        np.testing.assert_array_equal(fields.action.read(*rows), expected)


def test_progress_ends_at_the_budget(tmp_path: Path):
    seen = []
    plan = Plan(seed=0, deployment=0, steps=50, each=2)
    summary = deploy(tmp_path, plan, progress=seen.append)
    assert seen[-1] == (50, 50, summary.episodes, 0)
    assert summary.seconds.total > 0
    assert min(summary.seconds) > 0


def test_a_policy_with_the_wrong_kind_of_action_is_named(tmp_path: Path):
    with pytest.raises(TypeError, match=r"the policy gave actions float32\(2, 3\), expected int32\(2,\)"):
        deploy(tmp_path, Plan(0, 0, 50, each=2), policy=RandomPolicy(ActionSpec("continuous", 3)))


def test_lanes_that_do_not_fit_the_plan_are_refused(tmp_path: Path):
    with InProcess(EnvConfig(id="probe:table"), 3) as envs:
        policy, journal = RandomPolicy(envs.spec.action), Journal(tmp_path, 0, envs.spec)
        for plan in (Plan(0, 0, 50, each=2), Plan(0, 1, 50, each=3)):
            with pytest.raises(ValueError, match="the environments have 3 lanes"):
                collect(policy, envs, journal, plan, DeployConfig())


@pytest.mark.parametrize("kind", ["discrete", "continuous"])
def test_random_actions_are_uniform_and_of_their_key_alone(kind):
    action = ActionSpec(kind, 5)
    policy = RandomPolicy(action)
    words = np.stack([np.arange(4000), np.zeros(4000)], 1).astype(np.uint32)
    keys = keys_at(words, np.zeros(4000, np.int32))
    _, actions = policy.act(policy.initial(4000), {}, np.zeros(4000, bool), keys)
    assert (actions.shape, actions.dtype) == ((4000, *action.shape), action.dtype)
    _, some = policy.act((), {}, np.zeros(3, bool), keys[5:8])
    np.testing.assert_array_equal(some, actions[5:8])
    if kind == "discrete":
        np.testing.assert_allclose(np.bincount(actions, minlength=5) / 4000, 0.2, atol=0.025)
        assert (actions.min(), actions.max()) == (0, 4)
    else:
        np.testing.assert_allclose(actions.mean(0), 0, atol=0.04)
        np.testing.assert_allclose(actions.var(0), 1 / 3, atol=0.02)
        assert np.abs(actions).max() <= 1
