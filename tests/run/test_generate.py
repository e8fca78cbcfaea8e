"""Datasets at stated returns: as much as was asked for, by the policy that was asked for, usable as a beginning."""

import json
import shutil
from dataclasses import replace

import jax
import numpy as np
import pytest
from run_helpers import one_action, tiny
from transfer_helpers import random_store

import cascade
from cascade.cli import main
from cascade.config import EnvConfig
from cascade.data.files import LOCK, one_writer
from cascade.envs import spec_of
from cascade.errors import CascadeError, SettingError
from cascade.run import initial
from cascade.run.folder import Folder
from cascade.run.generate import Mixed, Request, generate, halve, saved_behaviour

BANDIT = "probe:bandit"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of bandits, with data, and a policy for them that needs no training."""
    config = tiny(env=EnvConfig(BANDIT), method="random")
    config = replace(
        config, transfer=replace(config.transfer, episodes=400), deploy=replace(config.deploy, lanes=40)
    )
    spec, folder = spec_of(config.env), Folder(tmp_path_factory.mktemp("runs") / "run")
    folder.start(config, (0,), "demo", spec)
    random_store(folder.data(0), BANDIT, steps=40)
    one_action(spec, config, 3).save(folder.path / "transfer/reward/deploy-000/seed-0")
    return cascade.open(folder.path)


@pytest.mark.parametrize(("kind", "expected", "spread"), [("random", 0.5, 0.04), ("expert", 1.0, 0.0)])
def test_it_has_exactly_its_steps_and_earns_what_the_kind_earns(run, kind, expected, spread, tmp_path):
    about = generate(run, Request("reward", kind, 1000, 0), tmp_path / "set")
    assert about["mean_return"] == pytest.approx(expected, abs=spread)
    assert about["whole_episodes"] == 1000
    store = initial.find(str(tmp_path / "set"), seed=0)
    assert store.steps == 1000
    assert float(np.mean(store.labels("reward").read()[1::2])) == pytest.approx(about["mean_return"])


def test_medium_earns_halfway_and_says_how(run, tmp_path, capsys):
    words = ["dataset", str(run.path), "--task", "reward", "--kind", "medium", "--steps", "1000", "--json"]
    main([*words, "--out", str(tmp_path / "set")])
    about = json.loads(capsys.readouterr().out)
    # The last arm pays 1, a random one 0.5 on average: half of the actions random make 0.75.
    assert about["random_actions"] == pytest.approx(0.5, abs=0.1)
    assert about["mean_return"] == pytest.approx(0.75, abs=0.05)
    assert about["evaluated"]["expert"] == 1.0
    stored = json.loads((tmp_path / "set/dataset.json").read_text())
    assert stored["mean_return"] == about["mean_return"]


def test_a_dataset_begins_a_run(run, tmp_path):
    generate(run, Request("reward", "expert", 80, 0), tmp_path / "set")
    initial.copy(str(tmp_path / "set"), tmp_path / "data", run.spec, 0)
    assert (np.load(tmp_path / "data/deploy-000/action.npy")[::2] == 3).all()


def test_the_same_command_changes_nothing_and_another_is_refused(run, tmp_path):
    request = Request("reward", "expert", 80, 0)
    first = generate(run, request, tmp_path / "set")
    assert generate(run, request, tmp_path / "set") == first
    with pytest.raises(SettingError, match="a new folder; there is another dataset in this one"):
        generate(run, replace(request, kind="random"), tmp_path / "set")
    with pytest.raises(SettingError, match="a new folder, or one in which this dataset was begun"):
        generate(run, request, run.path)
    assert not (run.path / LOCK).exists(), "a folder that is refused is left as it was"


def test_a_dataset_goes_on_with_the_policy_it_was_begun_with(run, tmp_path):
    """Also when a later transfer has left another policy meanwhile."""
    request = Request("reward", "expert", 80, 0)
    assert generate(run, request, tmp_path / "set")["deployment"] == 0
    later = replace(run, path=tmp_path / "later")
    object.__setattr__(later, "spec", run.spec)
    shutil.copytree(run.path / "transfer", later.path / "transfer")
    one_action(run.spec, run.settings, 0).save(later.path / "transfer/reward/deploy-001/seed-0")
    assert generate(later, request, tmp_path / "set")["deployment"] == 0
    assert generate(later, request, tmp_path / "new")["deployment"] == 1
    with pytest.raises(SettingError, match="there is another dataset in this one"):
        generate(later, replace(request, deployment=1), tmp_path / "set")


def test_two_at_once_do_not_remove_each_others_files(run, tmp_path):
    out = tmp_path / "set"
    out.mkdir()
    with (
        one_writer(out),
        pytest.raises(
            CascadeError, match="another process is making this dataset; wait for it, or choose another"
        ),
    ):
        generate(run, Request("reward", "random", 80, 0), out)
    assert [path.name for path in out.iterdir()] == [LOCK]
    assert generate(run, Request("reward", "random", 80, 0), out)["episodes"] == 80


def test_what_was_stopped_goes_on_to_the_same_bytes(run, tmp_path):
    request, calls = Request("reward", "expert", 400, 0), []

    def stop():
        calls.append(1)
        return len(calls) > 12

    with pytest.raises(CascadeError, match="stopped; the same command goes on from here"):
        generate(run, request, tmp_path / "stopped", stop=stop)
    generate(run, request, tmp_path / "stopped")
    generate(run, request, tmp_path / "whole")
    one, other = (tmp_path / name / "deploy-000/manifest.json" for name in ("stopped", "whole"))
    assert one.read_bytes() == other.read_bytes()


def test_mistakes_are_one_line(run, tmp_path):
    with pytest.raises(SettingError, match="--task: got 'dance', expected one of reward"):
        generate(run, Request("dance", "expert", 10, 0), tmp_path / "set")
    with pytest.raises(SettingError, match="--steps: got 0, expected at least 1"):
        generate(run, Request("reward", "expert", 0, 0), tmp_path / "set")
    with pytest.raises(
        CascadeError, match=r"make one first: cascade transfer .* --task reward --deployment 3"
    ):
        generate(run, Request("reward", "expert", 10, 0, deployment=3), tmp_path / "set")
    assert not (tmp_path / "set").exists()


def test_a_kill_before_anything_was_decided_is_no_other_folder(run, tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "dataset.json.tmp").write_text("{")
    assert generate(run, Request("reward", "random", 80, 0), tmp_path / "set")["episodes"] == 80
    assert not (tmp_path / "set" / "dataset.json.tmp").exists()


def test_where_nothing_lies_between_medium_is_refused(run, tmp_path):
    other = replace(run, path=tmp_path / "run")
    one_action(run.spec, run.settings, 0).save(other.path / "transfer/reward/deploy-000/seed-0")
    object.__setattr__(other, "spec", run.spec)
    with pytest.raises(CascadeError, match=r"earns 0 and random actions earn .* nothing in between"):
        generate(other, Request("reward", "medium", 10, 0), tmp_path / "set")


def test_halving_finds_the_share():
    share, found = halve(lambda x: 1 - x**2, 0.5, {0.0: 1.0, 1.0: 0.0})
    assert share == pytest.approx(0.5**0.5, abs=0.01)
    assert found == 1 - share**2


def test_a_belief_is_told_what_was_really_done(run):
    """With random actions alone, the memory holds the random action and not the policy's."""
    policy = saved_behaviour(run, "reward", 0).policy()
    mixed, keys = Mixed(policy, run.spec.action, 1.0), jax.random.split(jax.random.key(1), 64)
    obs = {"vector": np.ones((64, 1), np.float32)}
    memory, actions = mixed.act(mixed.initial(64), obs, np.ones(64, bool), keys)
    np.testing.assert_array_equal(np.asarray(memory.action).argmax(1), actions)
    assert set(actions.tolist()) == {0, 1, 2, 3}
    plain, chosen = Mixed(policy, run.spec.action, 0.0).act(mixed.initial(64), obs, np.ones(64, bool), keys)
    assert (chosen == 3).all()
    np.testing.assert_array_equal(np.asarray(plain.action).argmax(1), chosen)
