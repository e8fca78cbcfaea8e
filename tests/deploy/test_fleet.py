"""A fleet collects the bytes that one machine would, whoever dies on the way. One Ray cluster serves all tests."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from chaos import runner_processes
from deploy_helpers import contents, deploy, table_of
from helpers import SMALL

from cascade.config import ActorCriticConfig, DeployConfig, EnvConfig, ExploreConfig
from cascade.data.journal import Journal
from cascade.deploy import Plan, RandomPolicy, collect, collect_fleet, fleet, vectorise
from cascade.deploy.group import keys_at
from cascade.envs import spec_of
from cascade.errors import CascadeError, MissingExtra
from cascade.explore import population
from cascade.explore.policy import PopulationPolicy
from cascade.presets import preset
from cascade.presets.smoke import smoke
from cascade.run.api import run
from cascade.specs import EpisodeKey
from cascade.world.model import WorldModel

ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")

ID = "probe:table?limit=23"
CONFIG = DeployConfig(engine="ray", runners=1, step_timeout=30.0)
TWO = replace(CONFIG, runners=2)
PLAN = Plan(seed=3, deployment=1, steps=1203, population=2, each=4, groups=2)


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """Two cores, whatever the machine has."""
    with pytest.MonkeyPatch.context() as patch:
        init = ray.init
        patch.setattr(ray, "init", lambda *a, **k: init(*a, num_cpus=2, object_store_memory=100 << 20, **k))
        patch.delenv("RAY_ADDRESS", raising=False)
        fleet.connect("")
    yield ray
    ray.shutdown()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fleet, "SLICE", 0.05)
    monkeypatch.setattr(fleet, "POLL", 0.01)


@pytest.fixture(scope="module")
def policy() -> PopulationPolicy:
    """Two explorers with a recurrent belief: what they do depends on every bit of it."""
    spec = spec_of(EnvConfig(id=ID))
    explore = ExploreConfig(population=2, agent=ActorCriticConfig(layers=2, units=16))

    @jax.jit
    def create(key):
        actors = population.create(SMALL, spec.action, explore, key=key).agents.actor.model
        return WorldModel(spec, SMALL, key=key), actors

    return PopulationPolicy(*create(jax.random.key(0)))


@pytest.fixture(scope="module")
def reference(policy, tmp_path_factory) -> dict[str, bytes]:
    """What the local engine collects."""
    root = tmp_path_factory.mktemp("reference")
    deploy(root, PLAN, ID, policy)
    return contents(root / "deploy-001")


def deploy_on_fleet(root: Path, policy, plan: Plan = PLAN, id: str = ID, config=CONFIG, **options):
    env = EnvConfig(id=id)
    return collect_fleet(policy, Journal(root, plan.deployment, spec_of(env)), plan, env, config, **options)


def test_bytes_are_those_of_the_local_engine(tmp_path: Path, policy, reference) -> None:
    summary = deploy_on_fleet(tmp_path, policy)
    assert summary.steps == summary.collected == PLAN.steps
    assert summary.seconds.policy > 0
    assert contents(tmp_path / "deploy-001") == reference


def test_rows_of_a_policy_call_do_not_depend_on_each_other(policy) -> None:
    """So lanes may be acted for anywhere, in calls of the same shape, at the same rows, with others empty."""
    lanes, rng = 8, np.random.default_rng(0)
    memory = policy.initial(lanes)
    memory = type(memory)(*(rng.normal(size=part.shape).astype(np.float32) for part in memory))
    words = rng.integers(0, 2**32, (lanes, 2), dtype=np.uint32)
    keys = keys_at(words, np.arange(lanes, dtype=np.int32))
    obs, first = {"vector": np.eye(lanes, dtype=np.float32)}, np.arange(lanes) == 3
    whole, actions = policy.act(memory, obs, first, keys)
    for own in (slice(0, 1), slice(2, 5), slice(7, 8)):
        mine = np.zeros(lanes, bool)
        mine[own] = True

        def alone(x, mine=mine):
            return np.where(mine.reshape(-1, *[1] * (x.ndim - 1)), np.asarray(x), np.zeros((), x.dtype))

        others_empty = keys_at(alone(words), np.where(mine, np.arange(lanes), 0).astype(np.int32))
        part, acted = policy.act(
            jax.tree.map(alone, memory), {"vector": alone(obs["vector"])}, first & mine, others_empty
        )
        np.testing.assert_array_equal(acted[own], actions[own])
        for one, other in zip(part, whole, strict=True):
            np.testing.assert_array_equal(np.asarray(one)[own], np.asarray(other)[own])


@pytest.mark.parametrize(
    ("runners", "sizes"),
    [(1, [4, 4]), (2, [4, 4]), (3, [2, 2, 2, 2]), (5, [2, 1, 1, 2, 1, 1]), (99, [1] * 8)],
)
def test_units_are_groups_or_pieces_of_groups(runners: int, sizes: list[int]) -> None:
    units = fleet.divide(PLAN, runners)
    assert [len(unit) for unit in units] == sizes
    assert sorted(np.concatenate(units).tolist()) == list(range(PLAN.lanes))
    groups = [set(group.tolist()) for group in PLAN.group_lanes()]
    assert all(any(set(unit.tolist()) <= group for group in groups) for unit in units)


def test_more_runners_than_cores_or_groups(tmp_path: Path, policy, reference) -> None:
    """Groups are collected in pieces, which wait for the two runners that a core can be had for."""
    assert deploy_on_fleet(tmp_path, policy, config=replace(CONFIG, runners=3)).steps == PLAN.steps
    assert contents(tmp_path / "deploy-001") == reference


def test_stopped_and_resumed_elsewhere(tmp_path: Path, policy, reference) -> None:
    """Stopped on a fleet, resumed on one machine."""
    seen = []
    stopped = deploy_on_fleet(
        tmp_path, policy, progress=seen.append, stop=lambda: bool(seen) and seen[-1].episodes > 0
    )
    assert stopped.interrupted
    assert 0 < stopped.steps < PLAN.steps
    assert Journal(tmp_path, 1, spec_of(EnvConfig(id=ID))).steps == stopped.steps
    deploy(tmp_path, PLAN, ID, policy)
    assert contents(tmp_path / "deploy-001") == reference


class Killer:
    """Kills a runner now and then, once episodes have come in since the last time."""

    def __init__(self, kills: int):
        self.left, self.killed, self.at = kills, [], 0

    def __call__(self, now) -> None:
        if self.left and now.episodes > self.at and (there := runner_processes()):
            os.kill(there[0], signal.SIGKILL)
            self.left -= 1
            self.killed.append(there[0])
            self.at = now.episodes + 5


def test_runners_that_are_killed(tmp_path: Path, policy) -> None:
    """Long episodes, so that much is lost each time: the budget is exact, nothing is stored twice, and it ends."""
    plan = Plan(seed=3, deployment=1, steps=8003, population=2, each=4, groups=2)
    id = "probe:table?limit=101"
    deploy(tmp_path / "whole", plan, id, policy)
    killer = Killer(2)
    summary = deploy_on_fleet(tmp_path / "killed", policy, plan, id, TWO, progress=killer)
    assert len(set(killer.killed)) == 2
    table = table_of(summary)
    keys = table[["explorer", "lane", "episode"]].tolist()
    assert len(set(keys)) == len(keys)
    by_lane = np.zeros_like(plan.budgets())
    np.add.at(by_lane, (table["explorer"], table["lane"]), table["steps"])
    assert (by_lane == plan.budgets()).all()
    assert summary.faults.failures == 0, "a lost runner is no failure of the environment"
    assert contents(tmp_path / "killed" / "deploy-001") == contents(tmp_path / "whole" / "deploy-001")


def test_a_cluster_that_cannot_do_it_is_not_tried_for_ever(
    tmp_path: Path, policy, reference, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What had arrived is kept, and another start goes on from there."""
    with monkeypatch.context() as patch:
        patch.setattr(fleet, "START_SECONDS", 0.0)
        with pytest.raises(
            CascadeError, match=r"no runner could start within 0 s; the Ray cluster has \d of 2"
        ):
            deploy_on_fleet(tmp_path, policy)
    monkeypatch.setattr(fleet, "LOSSES", 0)
    with pytest.raises(CascadeError, match="1 runners were lost in a row without a finished episode"):
        deploy_on_fleet(tmp_path, policy, progress=Killer(1))
    assert Journal(tmp_path, 1, spec_of(EnvConfig(id=ID))).steps > 0
    deploy(tmp_path, PLAN, ID, policy)
    assert contents(tmp_path / "deploy-001") == reference


def test_environments_fail_as_they_do_on_one_machine(tmp_path: Path) -> None:
    plan = Plan(seed=0, deployment=0, steps=150, each=4)
    seed = plan.draw(EpisodeKey(0, 2, 1)).seed
    policy = RandomPolicy(spec_of(EnvConfig(id="probe:faulty")).action)
    id = f"probe:faulty?raise_at=3&seed={seed}"
    summary = deploy_on_fleet(tmp_path / "fleet", policy, plan, id)
    deploy(tmp_path / "local", plan, id, policy)
    assert (summary.faults.failures, summary.faults.dropped_episodes) == (2, 2)
    assert contents(tmp_path / "fleet" / "deploy-000") == contents(tmp_path / "local" / "deploy-000")


def test_what_the_user_can_mend_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(seed=0, deployment=0, steps=60, each=4)
    policy = RandomPolicy(spec_of(EnvConfig(id="probe:faulty")).action)
    with pytest.raises(
        CascadeError, match=r"more than deploy\.max-failures, which is 1; the last, in lane \d"
    ):
        deploy_on_fleet(
            tmp_path / "a", policy, plan, "probe:faulty?raise_at=3", replace(CONFIG, max_failures=1)
        )
    journal = Journal(tmp_path / "b", 0, spec_of(EnvConfig(id="probe:faulty")))
    with pytest.raises(CascadeError, match=r"^env\.id: got 'probe:elsewhere', expected one of"):
        collect_fleet(policy, journal, plan, EnvConfig(id="probe:elsewhere"), CONFIG)
    monkeypatch.setattr(fleet, "versions", lambda: {"jax": "0.0.1"})
    with pytest.raises(
        CascadeError, match=r"runner on .*: has jax [\d.]+, this machine has 0\.0\.1; install"
    ):
        deploy_on_fleet(tmp_path / "c", policy, plan, "probe:faulty")


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"deploy\.engine ray needs the extra 'ray': pip install"):
        fleet.connect("")


def test_a_run_collects_on_the_cluster_and_goes_on_without_it(tmp_path: Path) -> None:
    """Who collects is not among the settings that must stay the same."""
    env = EnvConfig("probe:chain", time_limit=8)
    config = replace(smoke(preset("demo")), env=env, method="random", deployments=1, model_steps=0)
    run(replace(config, deploy=replace(config.deploy, engine="ray", runners=1)), tmp_path / "run")
    run(config, tmp_path / "run")
    plan = Plan.of(config.deploy, seed=0, deployment=0)
    with vectorise(env, config.deploy, plan) as envs:
        policy, journal = RandomPolicy(envs.spec.action), Journal(tmp_path / "local", 0, envs.spec)
        collect(policy, envs, journal, plan, config.deploy)
    assert contents(tmp_path / "run" / "data" / "seed-0") == contents(tmp_path / "local")
