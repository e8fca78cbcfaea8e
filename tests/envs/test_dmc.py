"""DeepMind Control worlds show and pay what the suite does; the walker pays four tasks at once."""

import importlib
import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("dm_control", reason="needs the extra 'dmc': pip install 'cascade-rl[dmc]'")

from cascade.config import EnvConfig
from cascade.envs import InProcess, Vectoriser, gl, make
from cascade.errors import CascadeError, SettingError

gl.choose()  # before the suite is imported, as the adapter does
suite = importlib.import_module("dm_control.suite")

STATE = EnvConfig(id="dmc:walker", observation="vector", action_repeat=2)
PIXELS = EnvConfig(id="dmc:walker", observation="image", action_repeat=2)
draws = pytest.mark.skipif(
    os.environ.get(gl.VARIABLE) == gl.NOTHING, reason=f"drawing needs OpenGL: apt-get install {gl.PACKAGES}"
)


def actions(count, size=6, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (count, size)).astype(np.float32)


def raw(domain, task, seed):
    """The suite's own world after its first reset with this seed."""
    env = suite.load(domain, task, task_kwargs={"random": seed})
    return env, env.reset()


def by_hand(physics):
    """stand, walk, run and flip from MuJoCo's arrays alone: no function of dm_control."""
    model, data = physics.model.ptr, physics.data.ptr
    torso = slice(1, None)  # every body hangs on the torso
    mass, centre = model.body_mass[torso, None], data.xipos[torso]
    mean = (mass * centre).sum(0) / mass.sum()
    angular, linear = data.cvel[torso, :3], data.cvel[torso, 3:]
    moving = linear + np.cross(angular, centre - data.subtree_com[1])
    drift = (mass * moving).sum(0) / mass.sum()
    axes = data.ximat[torso].reshape(-1, 3, 3)
    inertia = axes @ (model.body_inertia[torso, :, None] * axes.transpose(0, 2, 1))
    own = np.einsum("bij,bj->bi", inertia, angular)
    spin = (own + mass * np.cross(centre - mean, moving - drift)).sum(0)[1]

    height, upright = data.xpos[1, 2], data.xmat[1, 8]
    standing = 0.1 ** (max(0.0, 1.2 - height) / 0.6) ** 2
    stand = (3 * standing + (1 + upright) / 2) / 4

    def at_speed(target):  # 1 at the target, 1/2 at half of it, linear in between, 0 from a rest
        return np.clip(drift[0] / target, 0.0, 1.0) if drift[0] >= 0 else 0.0

    speeds = {"walk": at_speed(1), "run": at_speed(8), "flip": np.clip(spin / 5, 0.0, 1.0)}
    return {"stand": stand} | {task: stand * (5 * speed + 1) / 6 for task, speed in speeds.items()}


def test_states_equal_the_suites_and_rewards_are_its_sums():
    env = make(STATE)
    for seed in (3, 4):
        worlds = {task: raw("walker", task, seed) for task in ("stand", "walk", "run")}
        first = env.reset(seed)
        for _, state in worlds.values():
            np.testing.assert_array_equal(first.obs["vector"], flat(state.observation))
        for action in actions(60, seed=seed):
            step = env.step(action)
            for task, (world, _) in worlds.items():
                paid = [world.step(action.astype(np.float64)) for _ in range(2)]
                assert step.rewards[task] == paid[0].reward + paid[1].reward
                np.testing.assert_array_equal(step.obs["vector"], flat(paid[1].observation))
            assert not step.terminated
            assert not step.truncated


def flat(observation):
    return np.concatenate([np.ravel(part) for part in observation.values()]).astype(np.float32)


def test_four_rewards_equal_those_from_raw_arrays():
    env = make(EnvConfig(id="dmc:walker", observation="vector"))
    found = []
    for seed in range(3):
        env.reset(seed)
        for action in actions(150, seed=seed):
            step = env.step(np.sign(action))  # full torques, which throw the body around
            expected = by_hand(env.env.physics)
            assert step.rewards == pytest.approx(expected, abs=1e-9)
            found.append([step.rewards[task] for task in env.spec.tasks])
    stand, *moves = np.array(found).T
    for move in moves:  # each task's moving part was both absent and present
        part = (6 * move / stand - 1) / 5
        assert part.min() < 0.01
        assert part.max() > 0.1


def test_an_episode_is_500_actions_and_is_cut_not_ended():
    env = make(STATE)
    env.reset(0)
    steps = [env.step(action) for action in actions(500)]
    assert [step.truncated for step in steps] == [False] * 499 + [True]
    assert not any(step.terminated for step in steps)


@pytest.mark.parametrize("limit", [3, 600])
def test_time_limit_replaces_the_suites(limit):
    env = make(EnvConfig(id="dmc:walker", observation="vector", action_repeat=2, time_limit=limit))
    env.reset(0)
    ends = [env.step(action).truncated for action in actions(limit)]
    assert ends == [False] * (limit - 1) + [True]


@pytest.mark.parametrize(
    ("domain", "task", "size"),
    [("cheetah", "run", 6), ("ball_in_cup", "catch", 2), ("cartpole", "swingup", 1)],
)
def test_any_task_of_the_suite(domain, task, size):
    env = make(EnvConfig(id=f"dmc:{domain}-{task}", observation="vector"))
    assert env.spec.tasks == (task,)
    assert env.spec.action.size == size
    world, state = raw(domain, task, 7)
    np.testing.assert_array_equal(env.reset(7).obs["vector"], flat(state.observation))
    for action in actions(20, size):
        step, state = env.step(action), world.step(action.astype(np.float64))
        np.testing.assert_array_equal(step.obs["vector"], flat(state.observation))
        assert step.rewards == {task: state.reward}
        np.testing.assert_array_equal(step.info["qpos"], world.physics.data.qpos.astype(np.float32))


def test_controls_are_rescaled_to_their_bounds():
    env = make(EnvConfig(id="dmc:quadruped-walk", observation="vector"))
    spec = env.env.action_spec()
    assert spec.minimum.min() < -0.9
    env.reset(0)
    ones = np.ones(env.spec.action.size, np.float32)
    for action, bound in ((ones, spec.maximum), (-3 * ones, spec.minimum)):
        env.step(action)
        np.testing.assert_allclose(env.env.physics.control(), bound)


def test_a_seed_is_an_episode_whatever_came_before():
    env, fresh = make(STATE), make(STATE)
    env.reset(1)
    for action in actions(30):
        env.step(action)
    for ours, theirs in zip(play(env, 5), play(fresh, 5), strict=True):
        np.testing.assert_array_equal(ours.obs["vector"], theirs.obs["vector"])
        assert ours.rewards == theirs.rewards
    assert not np.array_equal(env.reset(6).obs["vector"], fresh.reset(5).obs["vector"])


def play(env, seed):
    yield env.reset(seed)
    for action in actions(30, seed=9):
        yield env.step(action)


def test_info_says_where_the_torso_is():
    env = make(STATE)
    for step in play(env, 2):
        physics = env.env.physics
        assert step.info["position"][1] == np.float32(physics.torso_height())
        assert step.info["upright"] == np.float32(physics.torso_upright())
        assert step.info["position"][0] == np.float32(physics.named.data.xpos["torso", "x"])
        assert step.info["qpos"].shape == step.info["qvel"].shape == (9,)


def test_workers_step_as_this_process_does():
    lanes = np.arange(2)
    with InProcess(STATE, 2) as here, Vectoriser(STATE, 2, 2) as there:
        for envs in (here, there):
            envs.send(lanes, actions(2), lanes)
        for tick in range(6):
            ours, theirs = here.wait(lanes), there.wait(lanes)
            np.testing.assert_array_equal(ours.obs["vector"], theirs.obs["vector"])
            for task in STATE_TASKS:
                np.testing.assert_array_equal(ours.rewards[task], theirs.rewards[task])
            for envs in (here, there):
                envs.send(lanes, actions(2, seed=tick), np.full(2, -1))
        here.wait(lanes)
        there.wait(lanes)


STATE_TASKS = ("stand", "walk", "run", "flip")


@draws
def test_pictures_are_the_suites():
    env = make(PIXELS)
    assert env.spec.observations["image"].shape == (64, 64, 3)
    world, _ = raw("walker", "walk", 0)
    pictures = [env.reset(0).obs["image"]]
    expected = [world.physics.render(64, 64, camera_id=0)]
    for action in actions(3):
        pictures.append(env.step(action).obs["image"])
        for _ in range(2):
            world.step(action.astype(np.float64))
        expected.append(world.physics.render(64, 64, camera_id=0))
    np.testing.assert_array_equal(pictures, expected)
    assert not np.array_equal(pictures[0], pictures[3])
    assert env.render().shape == (240, 320, 3)
    env.close()


@draws
def test_fast_pictures_show_the_same_body_without_its_shadow():
    full, fast = (make(EnvConfig(id=f"dmc:walker?draw={how}")) for how in ("full", "fast"))
    one, other = full.reset(0).obs["image"], fast.reset(0).obs["image"]
    assert full.spec.observations == fast.spec.observations
    assert not np.array_equal(one, other)
    assert np.corrcoef(one.ravel(), other.ravel())[0, 1] > 0.6
    np.testing.assert_array_equal(full.reset(1).info["qpos"], fast.reset(1).info["qpos"])
    full.close()
    fast.close()


def test_without_opengl_vectors_work_and_pictures_say_what_to_install():
    code = f"""
import ctypes, sys
sys.path[:0] = {sys.path!r}
load = ctypes.CDLL
def absent(name, *args, **kwargs):
    if name and any(part in str(name) for part in ("EGL", "OSMesa", "OpenGL")):
        raise OSError(name)
    return load(name, *args, **kwargs)
ctypes.CDLL = absent
import numpy as np
from cascade.config import EnvConfig
from cascade.envs import make
from cascade.errors import CascadeError
env = make(EnvConfig(id="dmc:walker", observation="vector"))
env.reset(0)
assert env.step(np.zeros(6, np.float32)).obs["vector"].shape == (24,)
for draw in (env.render, lambda: make(EnvConfig(id="dmc:walker"))):
    try:
        draw()
        sys.exit("it drew")
    except CascadeError as error:
        assert "apt-get install {gl.PACKAGES}" in str(error), error
        assert "\\n" not in str(error)
"""
    bare = {name: value for name, value in os.environ.items() if name not in (gl.VARIABLE, "DISPLAY")}
    found = subprocess.run(
        [sys.executable, "-c", code], env=bare, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr


def test_a_broken_choice_of_opengl_is_one_line():
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "from cascade.config import EnvConfig\nfrom cascade.envs import make\n"
        "try:\n    make(EnvConfig(id='dmc:walker'))\nexcept Exception as error:\n    print(error)"
    )
    env = os.environ | {gl.VARIABLE: "vulkan"}
    found = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert found.stdout.count("\n") == 1
    assert "MUJOCO_GL=vulkan" in found.stdout
    assert gl.PACKAGES in found.stdout


@pytest.mark.parametrize(
    ("id", "says"),
    [
        ("dmc:walkr", "did you mean walker"),
        ("dmc:cheetah", "dmc:DOMAIN-TASK"),
        ("dmc:cheetah-rum", "did you mean cheetah-run"),
        ("dmc:walker?draw=nice", "draw=full or draw=fast"),
        ("dmc:walker?speed=2", "draw=full or draw=fast"),
        ("dmc:lqr-lqr_2_1", "controls are bounded"),
    ],
)
def test_a_wrong_name_says_what_is_known(id, says):
    with pytest.raises(SettingError, match=says):
        make(EnvConfig(id=id, observation="vector"))


def test_grids_are_refused():
    with pytest.raises(CascadeError, match=r"env\.observation: got 'grid', expected auto, image or vector"):
        make(EnvConfig(id="dmc:walker", observation="grid"))
