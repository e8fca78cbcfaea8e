"""Stepping in worker processes equals stepping here, and no fault of an environment is more than its own."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from cascade.config import EnvConfig
from cascade.envs import InProcess, Vectoriser, make, worker
from cascade.errors import CascadeError, SettingError

STEP = -1


def seeds(values):
    return np.asarray(values, np.int64)


def reset(envs, lanes, first=0):
    """Reset these lanes; lane i gets the seed first + i."""
    envs.send(lanes, random_actions(envs, len(lanes), np.random.default_rng(0)), seeds(first + lanes))
    return envs.wait(lanes)


def step(envs, lanes, actions=None):
    if actions is None:
        actions = random_actions(envs, len(lanes), np.random.default_rng(0))
    envs.send(lanes, actions, np.full(len(lanes), STEP, np.int64))
    return envs.wait(lanes)


def random_actions(envs, count, rng):
    action = envs.spec.action
    if action.kind == "discrete":
        return rng.integers(action.size, size=count).astype(action.dtype)
    return rng.uniform(-1, 1, (count, action.size)).astype(action.dtype)


def play(envs, ticks, groups):
    """Random episodes in every lane, `groups` in flight; all ticks, flattened."""
    rng = np.random.default_rng(0)
    record, fresh = [], 0
    parts = envs.groups(groups)
    for lanes in parts:
        envs.send(lanes, random_actions(envs, len(lanes), rng), seeds(lanes))
    for _ in range(ticks):
        for lanes in parts:
            tick = envs.wait(lanes)
            done = tick.terminated | tick.truncated
            fresh += 100
            record += [
                *tick.obs.values(),
                *tick.rewards.values(),
                tick.terminated,
                tick.truncated,
                *tick.info.values(),
            ]
            envs.send(lanes, random_actions(envs, len(lanes), rng), np.where(done, fresh + lanes, STEP))
    for lanes in parts:
        envs.wait(lanes)
    return record


@pytest.mark.parametrize(
    ("id", "workers", "groups"),
    [("minigrid:MultiRoom-N4-S5-v1", 2, 1), ("probe:point", 2, 2), ("probe:chain", 1, 2)],
)
def test_workers_step_as_this_process_does(id, workers, groups):
    config = EnvConfig(id=id)
    with InProcess(config, 5) as here, Vectoriser(config, 5, workers) as there:
        assert here.spec == there.spec
        for ours, theirs in zip(play(here, 60, groups), play(there, 60, groups), strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)


def test_in_process_lanes_equal_single_environments():
    config = EnvConfig(id="probe:table")
    rng = np.random.default_rng(1)
    worlds = [make(config) for _ in range(3)]
    with InProcess(config, 3) as envs:
        lanes = np.arange(3)
        tick = reset(envs, lanes)
        expected = [world.reset(lane) for lane, world in enumerate(worlds)]
        for _ in range(20):
            for lane, timestep in enumerate(expected):
                np.testing.assert_array_equal(tick.obs["vector"][lane], timestep.obs["vector"])
                assert tick.rewards["reward"][lane] == np.float32(timestep.rewards["reward"])
                assert tick.truncated[lane] == timestep.truncated
            actions = random_actions(envs, 3, rng)
            if not tick.truncated.any():
                tick = step(envs, lanes, actions)
                expected = [world.step(int(a)) for world, a in zip(worlds, actions, strict=True)]


def test_results_come_in_the_order_asked_for():
    with Vectoriser(EnvConfig(id="probe:table"), 6, 2) as envs:
        forward = reset(envs, np.arange(6))
        backward = reset(envs, np.arange(6)[::-1].copy())
        np.testing.assert_array_equal(forward.obs["vector"], backward.obs["vector"][::-1])
        assert [len(group) for group in envs.groups(4)] == [2, 2, 1, 1]
        assert np.concatenate(envs.groups(4)).tolist() == list(range(6))


def test_results_are_not_overwritten_by_later_steps():
    with InProcess(EnvConfig(id="probe:table"), 1) as envs:
        tick = reset(envs, np.arange(1))
        before = tick.obs["vector"].copy()
        for _ in range(3):
            step(envs, np.arange(1))
        np.testing.assert_array_equal(tick.obs["vector"], before)


def test_a_killed_worker_loses_its_lanes_and_no_others():
    with Vectoriser(EnvConfig(id="probe:table"), 4, 2) as envs:
        lanes = np.arange(4)
        reset(envs, lanes)
        victim = envs.pids[1]
        os.kill(victim, signal.SIGKILL)
        tick = step(envs, lanes)
        assert tick.failed.tolist() == [False, True, False, True]
        assert [failure.lane for failure in tick.failures] == [1, 3]
        assert all("worker 1 died (SIGKILL)" in failure.cause for failure in tick.failures)
        assert not tick.obs["vector"][tick.failed].any()
        assert tick.obs["vector"][~tick.failed].sum() == 2
        assert envs.pids[1] != victim
        reset(envs, np.array([1, 3]))
        tick = step(envs, lanes)
        assert not tick.failed.any()


def test_a_lane_lost_between_its_turns_is_reported_at_its_next():
    with Vectoriser(EnvConfig(id="probe:table"), 2, 1) as envs:
        reset(envs, np.arange(2))
        os.kill(envs.pids[0], signal.SIGKILL)
        assert step(envs, np.array([0])).failed.all()
        assert step(envs, np.array([1])).failed.all(), "its environment died with lane 0's"
        assert not reset(envs, np.arange(2)).failures


def test_a_lost_lane_that_is_reset_anyway_is_no_failure():
    with Vectoriser(EnvConfig(id="probe:table"), 2, 1) as envs:
        reset(envs, np.arange(2))
        os.kill(envs.pids[0], signal.SIGKILL)
        assert step(envs, np.array([0])).failed.all()
        assert not reset(envs, np.array([1])).failures


def test_an_environment_that_raises_is_replaced_alone():
    with Vectoriser(EnvConfig(id="probe:faulty?raise_at=2&seed=1"), 3, 1) as envs:
        lanes, pids = np.arange(3), envs.pids
        reset(envs, lanes)
        assert not step(envs, lanes).failures
        tick = step(envs, lanes)
        assert tick.failed.tolist() == [False, True, False]
        assert tick.failures[0].cause == "RuntimeError: this probe world raises at step 2, as asked"
        reset(envs, np.array([1]), first=10)
        tick = step(envs, lanes)
        assert not tick.failures
        assert tick.obs["vector"].argmax(1).tolist() == [3, 1, 3]
        assert envs.pids == pids


def test_an_environment_that_crashes_its_process():
    with Vectoriser(EnvConfig(id="probe:faulty?crash_at=1&seed=2"), 4, 2) as envs:
        lanes = np.arange(4)
        reset(envs, lanes)
        tick = step(envs, lanes)
        assert tick.failed.tolist() == [True, False, True, False]
        assert "SIGKILL) in the environment of lane 2" in tick.failures[0].cause
        assert not reset(envs, np.array([0, 2]), first=20).failures
        assert not step(envs, lanes).failures


def test_an_environment_that_hangs_is_given_up_after_the_timeout():
    with Vectoriser(EnvConfig(id="probe:faulty?hang_at=1&seed=0"), 4, 2, timeout=1.0) as envs:
        first, second = np.array([0, 1]), np.array([2, 3])
        reset(envs, np.arange(4))
        for lanes in (first, second):
            envs.send(lanes, np.zeros(2, np.int32), np.full(2, STEP, np.int64))
        tick = envs.wait(first)
        assert tick.failed.tolist() == [True, False]
        assert "no sign of life for 1 s in the environment of lane 0" in tick.failures[0].cause
        assert envs.wait(second).failed.tolist() == [True, False], "lane 2 shared the process"
        assert not reset(envs, np.array([0, 2]), first=30).failures
        assert not step(envs, np.arange(4)).failures


def test_a_hang_in_reset_counts_too():
    with Vectoriser(EnvConfig(id="probe:faulty?hang_at=0&seed=0"), 2, 1, timeout=1.0) as envs:
        assert reset(envs, np.arange(2)).failed.all()
        assert not reset(envs, np.arange(2), first=1).failures


def test_failures_can_repeat_without_end():
    with Vectoriser(EnvConfig(id="probe:faulty?crash_at=0"), 2, 1) as envs:
        for _ in range(3):
            assert reset(envs, np.arange(2)).failed.all()


def test_more_messages_than_a_pipe_holds_do_not_block():
    with Vectoriser(EnvConfig(id="probe:table"), 300, 1) as envs:
        lanes = [np.array([lane]) for lane in range(300)]
        for lane in lanes:
            envs.send(lane, np.zeros(1, np.int32), seeds(lane))
        ticks = [envs.wait(lane) for lane in reversed(lanes)]
        assert not any(tick.failures for tick in ticks)


def test_observations_that_break_their_spec_are_a_failure():
    with InProcess(EnvConfig(id="sample_world:Wrong"), 2) as envs:
        tick = reset(envs, np.arange(2))
        assert tick.failed.tolist() == [False, True]
        assert "observation 'vector' has shape (1,), its spec says (2,)" in tick.failures[0].cause


def test_why_a_lane_failed_is_one_line():
    with InProcess(EnvConfig(id="sample_world:talkative"), 1) as envs:
        reset(envs, np.arange(1))
        assert step(envs, np.arange(1)).failures[0].cause == "RuntimeError: no contact solved"


def test_numbers_that_are_not_finite_are_a_failure_of_the_lane():
    with InProcess(EnvConfig(id="sample_world:broken"), 1) as envs:
        failures = reset(envs, np.arange(1)).failures
        assert "observation 'vector' has a value that is not finite" in failures[0].cause


def test_a_worker_uses_the_parents_import_path():
    with Vectoriser(EnvConfig(id="sample_world:echo"), 2, 1) as envs:
        np.testing.assert_array_equal(
            reset(envs, np.arange(2)).obs["vector"][1], np.float32([0.5, 0.0, -0.5])
        )


def test_a_world_that_cannot_be_made_stops_the_construction():
    with pytest.raises(
        CascadeError, match=r"start=fail: failed \(RuntimeError: .* fails to start, as asked\); fix"
    ):
        Vectoriser(EnvConfig(id="probe:faulty?start=fail"), 2)


def test_a_worker_that_cannot_start_says_why(monkeypatch):
    monkeypatch.setattr(sys, "path", [path for path in sys.path if not path.endswith("envs")])
    with pytest.raises(CascadeError, match=r"worker process did not start: SettingError: env\.id"):
        Vectoriser(EnvConfig(id="sample_world:echo"), 2)


@pytest.mark.parametrize("workers", [0, 3])
def test_workers_must_fit_the_lanes(workers):
    with pytest.raises(SettingError, match=r"deploy\.workers: got .*from 1 to deploy\.lanes, which is 2"):
        Vectoriser(EnvConfig(id="probe:table"), 2, workers)


def test_turns_are_checked():
    with InProcess(EnvConfig(id="probe:bandit"), 2) as envs:
        lanes = np.arange(2)
        with pytest.raises(ValueError, match="no episode under way"):
            step(envs, lanes)
        with pytest.raises(ValueError, match="not sent anything"):
            envs.wait(lanes)
        reset(envs, lanes)
        assert step(envs, lanes).terminated.all()
        with pytest.raises(ValueError, match=r"\[0, 1\] have no episode under way"):
            step(envs, lanes)
        with pytest.raises(ValueError, match="each can be sent once"):
            reset(envs, np.array([0, 0]))


def open_descriptors():
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def test_nothing_is_left_behind():
    before = open_descriptors()
    with Vectoriser(EnvConfig(id="probe:table"), 4, 2) as envs:
        pids = envs.pids
        reset(envs, np.arange(4))
        os.kill(pids[0], signal.SIGKILL)
        step(envs, np.arange(4))
        pids += envs.pids
    envs.close()  # a second time does no harm
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert open_descriptors() == before


def test_memory_is_shared_where_there_is_no_memfd(monkeypatch):
    monkeypatch.delattr(os, "memfd_create", raising=False)
    with Vectoriser(EnvConfig(id="probe:table"), 2, 1) as envs:
        assert reset(envs, np.arange(2)).obs["vector"].sum() == 2


def test_workers_end_with_their_parent_even_while_hung():
    code = """
import os, signal, sys
import numpy as np
from cascade.config import EnvConfig
from cascade.envs import Vectoriser
envs = Vectoriser(EnvConfig(id="probe:faulty?hang_at=0"), 1, 1)
envs.send(np.arange(1), np.zeros(1, np.int32), np.zeros(1, np.int64))
print(envs.pids[0], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    # The worker holds the pipe's other end as its stderr: end of file means that it is gone.
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = parent.communicate(timeout=30)
    assert parent.returncode == -signal.SIGKILL
    assert int(out) > 0
    assert err == b""


def test_a_worker_with_another_parent_ends_although_its_pipe_is_open(monkeypatch):
    """As where polling does not wake for a hang-up: the parent that it began with is gone."""
    parents, ended = iter([7, 1]), threading.Event()
    monkeypatch.setattr(worker, "LOOK_FOR_PARENT", 0.01)
    monkeypatch.setattr(os, "getppid", lambda: next(parents))
    monkeypatch.setattr(os, "_exit", lambda code: ended.set())
    mine, theirs = socket.socketpair()
    with mine, theirs:
        worker._exit_with_parent(mine.fileno(), parent=7)
        assert ended.wait(10)


def test_a_worker_is_told_who_its_parent_is():
    """It may be an orphan before it can look."""
    *_, job = worker.command(EnvConfig(id="probe:table"), [0], 0, (1, 1), (3, 4))
    assert json.loads(job)["parent"] == os.getpid()
