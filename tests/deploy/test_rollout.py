"""Episodes from given starts, for measures and films."""

import numpy as np

from cascade.config import DeployConfig, EnvConfig
from cascade.deploy import RandomPolicy
from cascade.deploy.rollout import film, rollout, stage
from cascade.envs import make, spec_of

ENV = EnvConfig("minigrid:Empty-5x5-v0", observation="grid", time_limit=12)


def episodes(lanes: int, population: int = 2, starts: tuple[int, ...] = (5, 6, 7), seed: int = 0):
    policy = RandomPolicy(spec_of(ENV).action)
    config = DeployConfig(steps=1, lanes=lanes)
    with stage(ENV, config, len(starts), population) as envs:
        return rollout(policy, envs, starts, population=population, seed=seed)


def test_every_explorer_plays_every_start_once():
    played = episodes(lanes=4)
    assert [tuple(e.key) for e in played] == [(p, j, 0) for p in range(2) for j in range(3)]
    assert all(len(e) == 12 or e.terminated for e in played)


def test_how_many_are_played_at_once_changes_nothing():
    few, many = episodes(lanes=2), episodes(lanes=64)
    for one, other in zip(few, many, strict=True):
        assert one.key == other.key
        np.testing.assert_array_equal(one.action, other.action)
        np.testing.assert_array_equal(one.obs["grid"], other.obs["grid"])


def test_environments_can_be_used_again():
    """As the seeds of a run do."""
    policy, config, starts = RandomPolicy(spec_of(ENV).action), DeployConfig(steps=1, lanes=4), (5, 6, 7)
    with stage(ENV, config, len(starts), 2) as envs:
        first, second = (rollout(policy, envs, starts, population=2, seed=seed, limit=9) for seed in (0, 0))
    for one, other in zip(first, second, strict=True):
        assert len(one) <= 9
        np.testing.assert_array_equal(one.action, other.action)
        np.testing.assert_array_equal(one.obs["grid"], other.obs["grid"])


def test_episodes_differ_by_explorer_start_and_seed():
    first = episodes(lanes=8)
    assert not np.array_equal(first[0].action, first[1].action)
    assert not np.array_equal(first[0].action, first[3].action)
    assert not np.array_equal(first[0].action, episodes(lanes=8, seed=1)[0].action)


def test_an_episode_is_what_its_environment_gives_for_its_start_and_actions():
    episode = episodes(lanes=8)[1]
    env = make(ENV)
    step = env.reset(6)
    np.testing.assert_array_equal(step.obs["grid"], episode.obs["grid"][0])
    for t, action in enumerate(episode.action[:-1].tolist()):
        step = env.step(action)
        np.testing.assert_array_equal(step.obs["grid"], episode.obs["grid"][t + 1])
        assert step.rewards["reward"] == np.float64(episode.labels["reward"][t + 1])


def test_a_film_has_a_frame_for_every_row():
    episode = episodes(lanes=8)[0]
    frames = film(ENV, 5, episode.action[:-1])
    assert len(frames) == len(episode) + 1
    assert frames.dtype == np.uint8
    assert any(not np.array_equal(frames[0], frame) for frame in frames[1:])
    small = film(ENV, 5, episode.action[:-1], lambda frame: frame[::8, ::8])
    np.testing.assert_array_equal(small, frames[:, ::8, ::8])
