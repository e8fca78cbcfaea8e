"""A fleet collects the bytes that one machine would, whoever dies on the way. One Ray cluster serves all tests."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from deploy_helpers import contents, data_of, deploy, table_of

from cascade.config import ActorCriticConfig, DeployConfig, EnvConfig, ExploreConfig
from cascade.data.journal import Journal
from cascade.deploy import Plan, RandomPolicy, collect_fleet, fleet
from cascade.deploy.group import keys_at
from cascade.envs import spec_of
from cascade.errors import CascadeError, MissingExtra
from cascade.explore import population
from cascade.explore.policy import PopulationPolicy
from cascade.world.model import WorldModel
from helpers import SMALL

ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")

ID = "probe:table?limit=23"
CONFIG = DeployConfig(engine="ray", runners=2, step_timeout=30.0)
PLAN = Plan(seed=3, deployment=1, steps=1203, population=2, each=4, groups=2)


@pytest.fixture(scope="module", autouse=True)
def cluster():
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(
        "local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=100 << 20,
    )
    yield ray
    ray.shutdown()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fleet, "SLICE", 0.1)


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


@pytest.mark.parametrize("runners", [1, 2])
def test_bytes_are_those_of_the_local_engine(tmp_path: Path, policy, reference, runners: int) -> None:
    summary = deploy_on_fleet(tmp_path, policy, config=replace(CONFIG, runners=runners))
    assert summary.steps == summary.collected == PLAN.steps
    assert summary.seconds.policy > 0
    assert contents(tmp_path / "deploy-001") == reference
