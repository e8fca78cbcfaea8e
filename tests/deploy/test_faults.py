"""What environments do to a collection, with real processes: it ends exactly, or says which and why."""

import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest
from deploy_helpers import data_of, deploy, deploy_in_workers, table_of

from cascade.config import DeployConfig
from cascade.data.store import Store
from cascade.deploy import Plan
from cascade.deploy.faults import Incidents, blames_lane
from cascade.envs import Failure
from cascade.errors import CascadeError
from cascade.specs import EpisodeKey

CONFIG = DeployConfig(steps=150, lanes=4, workers=2, step_timeout=2.0, max_failures=5)
PLAN = Plan.of(CONFIG, seed=0, deployment=0)


def check_exact(root: Path, summary) -> None:
    table = table_of(summary)
    assert table["steps"].sum() == CONFIG.steps
    assert np.bincount(table["lane"], table["steps"]).tolist() == PLAN.budgets()[0].tolist()
    metadata = Store.open(root).deployments[0].manifest.metadata
    assert metadata["failures"] == summary.faults.failures
    assert metadata["dropped_episodes"] == summary.faults.dropped_episodes
    assert metadata["causes"] == summary.faults.causes
    for cause in summary.faults.causes:
        assert cause in summary.message


def seed_of(lane: int, episode: int, attempt: int = 0) -> int:
    return PLAN.draw(EpisodeKey(0, lane, episode), attempt).seed


def test_a_killed_worker(tmp_path: Path) -> None:
    """Its lanes are collected again as they were: the data is that of a deployment without the kill."""
    turns = []

    def kill(envs) -> None:
        turns.append(None)
        if len(turns) == 31:
            os.kill(envs.pids[1], signal.SIGKILL)

    summary = deploy_in_workers(tmp_path / "killed", PLAN, CONFIG, "probe:faulty", meanwhile=kill)
    check_exact(tmp_path / "killed", summary)
    assert summary.faults.failures == 1
    assert summary.faults.dropped_episodes == 2
    assert "worker 1 died (SIGKILL)" in next(iter(summary.faults.causes))
    deploy(tmp_path / "whole", PLAN, "probe:faulty")
    assert data_of(tmp_path / "killed" / "deploy-000") == data_of(tmp_path / "whole" / "deploy-000")


@pytest.mark.parametrize(
    ("fault", "said", "dropped"),
    [("raise_at=3", "RuntimeError: this probe world raises at step 3", 1),
     ("crash_at=3", r"worker 0 died \(SIGKILL\) in the environment of lane 2", 2),
     ("hang_at=3", "worker 0 gave no sign of life for 1 s in the environment of lane 2", 2)],
)  # fmt: skip
def test_a_fault_that_comes_once(tmp_path: Path, fault: str, said: str, dropped: int) -> None:
    config = DeployConfig(**{**vars(CONFIG), "step_timeout": 1.0})
    id = f"probe:faulty?{fault}&seed={seed_of(2, 1)}&once={tmp_path / 'mark'}"
    summary = deploy_in_workers(tmp_path / "run", PLAN, config, id)
    check_exact(tmp_path / "run", summary)
    assert (summary.faults.failures, summary.faults.dropped_episodes) == (1, dropped)
    assert summary.faults.dropped_steps >= 2
    assert len(summary.faults.causes) == 1
    assert re.search(said, summary.message)


@pytest.mark.parametrize(("fault", "workers"), [("crash_at=3", 1), ("crash_at=3", 4), ("raise_at=3", 1)])
def test_a_draw_that_always_fails_is_replaced_and_alone(tmp_path: Path, fault: str, workers: int) -> None:
    """It is tried twice, then drawn anew; lanes that died with it keep their episodes."""
    config = DeployConfig(**{**vars(CONFIG), "workers": workers})
    id = f"probe:faulty?{fault}&seed={seed_of(2, 1)}"
    summary = deploy_in_workers(tmp_path / "run", PLAN, config, id)
    check_exact(tmp_path / "run", summary)
    assert summary.faults.failures == 2
    deploy(tmp_path / "whole", PLAN, "probe:faulty")
    action, whole = (
        np.load(tmp_path / name / "deploy-000" / "action.npy").reshape(-1) for name in ("run", "whole")
    )
    changed = np.flatnonzero(action != whole)
    table = table_of(summary)
    record = table[(table["lane"] == 2) & (table["episode"] == 1)][0]
    assert len(changed) > 0
    assert record["start"] <= changed.min()
    assert changed.max() < record["start"] + record["steps"]


def test_an_environment_that_always_fails_stops_the_run(tmp_path: Path) -> None:
    for attempt in range(2):
        with pytest.raises(
            CascadeError,
            match=r"^probe:faulty\?raise_at=3: [6-9] environment failures in deployment 1, more than "
            r"deploy\.max-failures, which is 5; the last, in lane \d of explorer 0: RuntimeError: this probe "
            "world raises at step 3, as asked; finished episodes are kept",
        ) as caught:
            deploy(tmp_path, PLAN, "probe:faulty?raise_at=3", config=CONFIG)
        assert "\n" not in str(caught.value), attempt
    assert not (tmp_path / "deploy-000").exists()


def test_a_process_that_always_dies_stops_the_run(tmp_path: Path) -> None:
    config = DeployConfig(steps=20, lanes=4, workers=1, max_failures=1)
    with pytest.raises(CascadeError, match=r"2 environment failures.*which is 1.*worker 0 died \(SIGKILL\)"):
        deploy_in_workers(tmp_path, Plan.of(config, seed=0, deployment=0), config, "probe:faulty?crash_at=2")


def test_failures_are_remembered_over_a_restart_but_do_not_count_towards_its_limit(tmp_path: Path) -> None:
    """A run that stopped because of its environment goes on once that is fixed."""
    mark = tmp_path / "mark"
    id = f"probe:faulty?raise_at=2&once={mark}"
    none_allowed = DeployConfig(max_failures=0)
    with pytest.raises(CascadeError, match="1 environment failures"):
        deploy(tmp_path / "run", PLAN, id, config=none_allowed)
    summary = deploy(tmp_path / "run", PLAN, id, config=none_allowed)
    check_exact(tmp_path / "run", summary)
    assert summary.faults.failures == 1


def test_a_failing_reset_drops_no_steps(tmp_path: Path) -> None:
    id = f"probe:faulty?raise_at=0&seed={seed_of(1, 2)}"
    summary = deploy(tmp_path, PLAN, id)
    check_exact(tmp_path, summary)
    assert (summary.faults.failures, summary.faults.dropped_steps) == (2, 0)


def test_one_death_is_one_failure_however_many_lanes_it_takes() -> None:
    incidents, cause = Incidents(), "worker 0 died"
    reported = [Failure(lane, cause, (0, deaths), culprit=2) for deaths in (0, 1) for lane in (0, 2, 4)]
    assert [incidents.is_new(failure) for failure in reported] == [True, False, False, True, False, False]
    assert all(incidents.is_new(Failure(lane, "RuntimeError: no")) for lane in (0, 2, 2))
    assert [blames_lane(failure) for failure in reported[:2]] == [False, True]
    assert blames_lane(Failure(0, "RuntimeError: no"))
    assert not blames_lane(Failure(0, cause, (0, 0)))
