"""A collection that is interrupted anywhere and resumed ends with the bytes of one that never was."""

from pathlib import Path

import jax
import pytest
from deploy_helpers import Counting, contents, deploy, stop_after

from cascade.config import DeployConfig, EnvConfig
from cascade.data.files import read_json, write_json
from cascade.data.journal import Journal
from cascade.deploy import Plan, RandomPolicy, collect
from cascade.envs import InProcess
from cascade.errors import CascadeError

ID = "probe:chain?limit=9"
PLAN = Plan(seed=4, deployment=0, steps=203, population=2, each=2, groups=2)

ACT = jax.jit(Counting(actions=2).choose)


def policy() -> Counting:
    """A recurrent policy, compiled once for all tests."""
    return Counting(actions=2, act=ACT)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    root = tmp_path_factory.mktemp("reference")
    deploy(root, PLAN, ID, policy())
    return contents(root / "deploy-000")


@pytest.mark.parametrize("turns", [0, 1, 5, 16, 17, 50, 101, 110])
def test_stopped_and_resumed_is_the_same(tmp_path: Path, reference: dict[str, bytes], turns: int) -> None:
    stopped = deploy(tmp_path, PLAN, ID, policy(), stop=stop_after(turns))
    assert stopped.interrupted
    assert "interrupted; the same command goes on from here" in stopped.message
    assert not (tmp_path / "deploy-000").exists()
    assert Journal(tmp_path, 0, _spec()).steps == stopped.steps < PLAN.steps
    resumed = deploy(tmp_path, PLAN, ID, policy())
    assert resumed.steps == PLAN.steps
    assert resumed.collected == PLAN.steps - stopped.steps
    assert contents(tmp_path / "deploy-000") == reference


@pytest.mark.parametrize("flush_bytes", [900, 2500, 1 << 30])
@pytest.mark.parametrize("turns", [40, 90])
def test_killed_without_a_flush_is_the_same(
    tmp_path: Path, reference: dict[str, bytes], turns: int, flush_bytes: int
) -> None:
    """Whatever the journal had not written is gone, as after `kill -9`."""
    journal = Journal(tmp_path, 0, _spec(), flush_bytes=flush_bytes, flush_seconds=1e9)

    def die() -> bool:
        journal.flush = lambda: None
        raise SystemExit

    stop = stop_after(turns)
    with pytest.raises(SystemExit):
        deploy(tmp_path, PLAN, ID, policy(), journal, stop=lambda: stop() and die())
    again = Journal(tmp_path, 0, _spec())
    assert again.steps < journal.steps, "something was lost"
    deploy(tmp_path, PLAN, ID, policy(), again)
    assert contents(tmp_path / "deploy-000") == reference


def test_stopped_at_every_turn(tmp_path: Path, reference: dict[str, bytes]) -> None:
    """Episodes that do not fit between two stops would never end, so the stops get rarer."""
    turns = 15
    while deploy(tmp_path, PLAN, ID, policy(), stop=stop_after(turns)).interrupted:
        turns += 1
    assert contents(tmp_path / "deploy-000") == reference


def test_killed_before_the_commit(tmp_path: Path, reference: dict[str, bytes]) -> None:
    journal = Journal(tmp_path, 0, _spec())
    journal.commit = _interrupt
    with pytest.raises(KeyboardInterrupt):
        deploy(tmp_path, PLAN, ID, policy(), journal)
    journal.flush()
    resumed = deploy(tmp_path, PLAN, ID, policy())
    assert resumed.collected == 0
    assert contents(tmp_path / "deploy-000") == reference


def test_ctrl_c_in_the_middle_keeps_finished_episodes(tmp_path: Path, reference: dict[str, bytes]) -> None:
    stop = stop_after(60)
    with pytest.raises(KeyboardInterrupt):
        deploy(tmp_path, PLAN, ID, policy(), stop=lambda: stop() and _interrupt())
    assert Journal(tmp_path, 0, _spec()).steps > 0
    deploy(tmp_path, PLAN, ID, policy())
    assert contents(tmp_path / "deploy-000") == reference


def test_a_torn_shard_is_collected_again(tmp_path: Path, reference: dict[str, bytes]) -> None:
    """Its episodes come from the middle of the lanes' streams."""
    journal = Journal(tmp_path, 0, _spec(), flush_bytes=400)
    deploy(tmp_path, PLAN, ID, policy(), journal, stop=stop_after(80))
    shards = sorted(journal.path.glob("shard-*"))
    assert len(shards) > 4
    (shards[1] / "action.npy").unlink()
    resumed = deploy(tmp_path, PLAN, ID, policy())
    assert "torn shard dropped" in resumed.problems[0]
    assert "torn shard dropped" in resumed.message
    assert contents(tmp_path / "deploy-000") == reference


def test_environments_serve_again_after_a_stop(tmp_path: Path, reference: dict[str, bytes]) -> None:
    with InProcess(EnvConfig(id=ID), PLAN.lanes) as envs:
        policy = Counting(actions=2)
        journal = Journal(tmp_path, 0, envs.spec)
        assert collect(policy, envs, journal, PLAN, DeployConfig(), stop=stop_after(30)).interrupted
        assert not collect(policy, envs, journal, PLAN, DeployConfig()).interrupted
        assert policy.traces == 1
    assert contents(tmp_path / "deploy-000") == reference


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (Plan(5, 0, 203, population=2, each=2, groups=2), "seed was 4"),
        (Plan(4, 0, 400, population=2, each=2, groups=2), "steps was 203"),
        (Plan(4, 0, 203, population=1, each=1), "population was 2, each was 2, groups was 2"),
    ],
)
def test_another_plan_is_refused(tmp_path: Path, other: Plan, said: str) -> None:
    deploy(tmp_path, PLAN, ID, stop=stop_after(40))
    with pytest.raises(CascadeError, match=rf"another plan \({said}\); resume with the settings"):
        deploy(tmp_path, other, ID)


def test_a_plan_from_before_there_was_a_setting_is_refused_by_its_name(tmp_path: Path) -> None:
    deploy(tmp_path, PLAN, ID, stop=stop_after(40))
    notes = tmp_path / "deploy-000.journal" / "collection.json"
    document = read_json(notes)
    del document["plan"]["groups"]
    write_json(notes, document)
    with pytest.raises(CascadeError, match=r"another plan \(groups was not there yet\); resume"):
        deploy(tmp_path, PLAN, ID)


def test_a_journal_of_more_lanes_is_refused_even_without_its_notes(tmp_path: Path) -> None:
    deploy(tmp_path, PLAN, ID, stop=stop_after(40))
    (tmp_path / "deploy-000.journal" / "collection.json").unlink()
    with pytest.raises(CascadeError, match="more lanes"):
        deploy(tmp_path, Plan(4, 0, 203, population=1, each=1), ID, RandomPolicy(_spec().action))


def _spec():
    with InProcess(EnvConfig(id=ID), 1) as envs:
        return envs.spec


def _interrupt(*_: object) -> bool:
    raise KeyboardInterrupt
