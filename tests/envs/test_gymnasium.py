"""Any Gymnasium environment: its spaces become parts of an observation and one kind of action."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from sample_world import Echo

from cascade.config import EnvConfig
from cascade.envs import make
from cascade.envs.gymnasium_env import GymnasiumEnv, resize
from cascade.errors import SettingError

TWO = spaces.Discrete(2)


def adapt(space, action=TWO, observation=None, **settings):
    return GymnasiumEnv(Echo(space, action, observation), EnvConfig(id="gym:Echo", **settings))


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "MountainCarContinuous-v0", "Acrobot-v1"])
def test_parity_with_the_raw_environment(name):
    env, raw = make(EnvConfig(id=f"gym:{name}")), gym.make(name)
    rng = np.random.default_rng(0)
    obs, _ = raw.reset(seed=3)
    step = env.reset(3)
    for _ in range(300):
        np.testing.assert_array_equal(step.obs["vector"], np.asarray(obs, np.float32))
        if isinstance(raw.action_space, spaces.Discrete):
            action = theirs = int(rng.integers(env.spec.action.size))
        else:
            action = rng.uniform(-1, 1, env.spec.action.size).astype(np.float32)
            theirs = (action * raw.action_space.high).astype(np.float32)
        obs, reward, terminated, truncated, _ = raw.step(theirs)
        step = env.step(action)
        assert step.rewards["reward"] == pytest.approx(float(reward), rel=1e-5, abs=1e-6)
        assert (step.terminated, step.truncated) == (terminated, truncated and not terminated)
        if terminated or truncated:
            break


def test_vector_of_any_shape_and_type_is_float32():
    step = adapt(spaces.Box(0, 9, (2, 3), np.int64)).reset(0)
    assert step.obs["vector"].shape == (6,)
    assert step.obs["vector"].dtype == np.float32


def test_discrete_observations_are_one_hot():
    step = adapt(spaces.Discrete(4, start=2), observation=5).reset(0)
    np.testing.assert_array_equal(step.obs["vector"], [0, 0, 0, 1])
    step = adapt(spaces.MultiDiscrete([2, 3]), observation=np.array([1, 0])).reset(0)
    np.testing.assert_array_equal(step.obs["vector"], [0, 1, 1, 0, 0])


@pytest.mark.parametrize("shape", [(20, 20, 3), (20, 30, 1), (20, 30)])
def test_images_are_resized(shape):
    env = adapt(spaces.Box(0, 255, shape, np.uint8), image_size=16)
    channels = shape[2] if len(shape) == 3 else 1
    assert env.spec.observations["image"].shape == (16, 16, channels)
    image = env.reset(0).obs["image"]
    assert (image.shape, image.dtype) == ((16, 16, channels), np.uint8)


def test_image_of_the_right_size_is_copied_as_it_is():
    image = np.random.default_rng(0).integers(255, size=(16, 16, 3), dtype=np.uint8)
    copy = resize(image, 16)
    np.testing.assert_array_equal(copy, image)
    assert not np.shares_memory(copy, image)
    np.testing.assert_array_equal(resize(np.full((30, 20, 3), 9, np.uint8), 16), 9)


def test_dicts_and_tuples_become_named_parts():
    space = spaces.Dict(
        {
            "camera": spaces.Box(0, 255, (16, 16, 3), np.uint8),
            "body": spaces.Dict({"speed": spaces.Box(-1, 1, (2,)), "gear": spaces.Discrete(3)}),
            "feet": spaces.Tuple([spaces.Box(-1, 1, (1,)), spaces.MultiBinary(2)]),
        }
    )
    env = adapt(space, image_size=16)
    kinds = {name: (part.kind, part.shape) for name, part in env.spec.observations.items()}
    assert kinds == {
        "camera": ("image", (16, 16, 3)),
        "body.speed": ("vector", (2,)),
        "body.gear": ("vector", (3,)),
        "feet.0": ("vector", (1,)),
        "feet.1": ("vector", (2,)),
    }
    step = env.reset(0)
    for name, part in env.spec.observations.items():
        assert (step.obs[name].shape, step.obs[name].dtype) == (part.shape, part.dtype)
    np.testing.assert_array_equal(step.obs["body.speed"], env.env.observation["body"]["speed"])


def test_observation_setting_picks_the_parts():
    space = spaces.Dict({"eye": spaces.Box(0, 255, (16, 16, 3), np.uint8), "arm": spaces.Box(-1, 1, (2,))})
    config = EnvConfig(id="gym:Echo", observation="vector")
    assert set(GymnasiumEnv(Echo(space, TWO), config).spec.observations) == {"arm"}
    config = EnvConfig(id="gym:Echo", observation="image")
    assert set(GymnasiumEnv(Echo(space, TWO), config).spec.observations) == {"eye"}


def test_a_world_without_images_is_seen_through_its_rendering():
    env = make(EnvConfig(id="gym:CartPole-v1", observation="image", image_size=32))
    assert env.spec.observations["image"].shape == (32, 32, 3)
    first = env.reset(0).obs["image"]
    assert first.min() < 100 < first.max(), "the pole is drawn on a light ground"
    assert env.render().shape == (400, 600, 3)
    env.close()


def test_discrete_actions_keep_their_offset():
    env = adapt(spaces.Box(-1, 1, (1,)), spaces.Discrete(3, start=-1))
    env.reset(0)
    for ours, theirs in [(0, -1), (2, 1)]:
        env.step(ours)
        assert env.env.last_action == theirs


def test_continuous_actions_fill_the_bounds():
    low, high = np.array([-3.0, 0.0], np.float32), np.array([1.0, 10.0], np.float32)
    env = adapt(spaces.Box(-1, 1, (1,)), spaces.Box(low, high))
    env.reset(0)
    for ours, theirs in [([-1, -1], low), ([1, 1], high), ([0, 0], [-1, 5]), ([-7, 7], [-3, 10])]:
        env.step(np.array(ours, np.float32))
        np.testing.assert_allclose(env.env.last_action, theirs)
        assert env.env.last_action.dtype == np.float32


def test_action_repeat_sums_rewards_and_stops_at_the_end():
    env = make(EnvConfig(id="sample_world:echo", action_repeat=3))
    env.reset(0)
    steps = [env.step(1), env.step(1)]
    assert [step.rewards["reward"] for step in steps] == [3.0, 2.0]
    assert [step.terminated for step in steps] == [False, True]


def test_time_limit_truncates_and_does_not_terminate():
    env = make(EnvConfig(id="gym:Pendulum-v1", time_limit=7))
    for _ in range(2):
        env.reset(0)
        steps = [env.step(np.zeros(1, np.float32)) for _ in range(7)]
        assert [step.truncated for step in steps] == [False] * 6 + [True]
        assert not any(step.terminated for step in steps)


def test_time_limit_can_be_longer_than_the_environments_own():
    env = make(EnvConfig(id="gym:Pendulum-v1", time_limit=210))
    env.reset(0)
    steps = [env.step(np.zeros(1, np.float32)) for _ in range(210)]
    assert [step.truncated for step in steps].index(True) == 209


def test_an_end_on_the_last_step_allowed_is_an_end():
    env = make(EnvConfig(id="sample_world:echo", time_limit=5))
    env.reset(0)
    last = [env.step(0) for _ in range(5)][-1]
    assert (last.terminated, last.truncated) == (True, False)


@pytest.mark.parametrize(
    ("space", "action", "says"),
    [
        (spaces.Text(5), TWO, "observations, not Text"),
        (spaces.Dict({"a": spaces.Text(5)}), TWO, "part 'a'"),
        (spaces.Box(-1, 1, (1,)), spaces.MultiDiscrete([2, 2]), "Discrete or floating-point Box actions"),
        (spaces.Box(-1, 1, (1,)), spaces.Box(-np.inf, np.inf, (2,)), "finite bounds"),
    ],
)
def test_spaces_that_cannot_be_used_are_named(space, action, says):
    with pytest.raises(SettingError, match=says) as caught:
        adapt(space, action)
    assert str(caught.value).startswith("env.id: got 'gym:Echo'")


def test_observation_settings_that_cannot_be_met_are_named():
    images = spaces.Box(0, 255, (16, 16, 3), np.uint8)
    with pytest.raises(SettingError, match=r"env\.observation.*only shows images"):
        GymnasiumEnv(Echo(images, TWO), EnvConfig(id="gym:Echo", observation="vector"))
    with pytest.raises(SettingError, match=r"env\.observation.*auto, image or vector"):
        GymnasiumEnv(Echo(TWO, TWO), EnvConfig(id="gym:Echo", observation="grid"))
