"""Playing given episodes: each is played once, adds up what it was worth, and does not depend on its lane."""

import jax
import numpy as np
import pytest

from cascade.config import EnvConfig
from cascade.deploy import RandomPolicy
from cascade.deploy.game import NONE
from cascade.deploy.play import play
from cascade.envs import InProcess, make
from cascade.errors import CascadeError

TABLE = EnvConfig(id="probe:table?limit=7")


class Fixed:
    """Always the same action, where every lane has its own."""

    def __init__(self, actions):
        self.actions = np.asarray(actions, np.int32)

    def initial(self, lanes):
        return ()

    def act(self, carry, obs, is_first, keys):
        return carry, self.actions


def by_hand(seed, action):
    """What an episode of one action is worth."""
    env = make(TABLE)
    step, total = env.reset(seed), 0.0
    while not (step.terminated or step.truncated):
        step = env.step(action)
        total += step.rewards["reward"]
    return total


def test_returns_are_those_of_a_plain_loop():
    seeds = np.array([[5, 6, 7], [8, 9, NONE]])
    with InProcess(TABLE, 2) as envs:
        played = play(Fixed([1, 2]), envs, seeds, jax.random.key(0))
    expected = [[by_hand(seed, 1) for seed in (5, 6, 7)], [by_hand(8, 2), by_hand(9, 2), 0.0]]
    np.testing.assert_allclose(played.returns["reward"], expected, rtol=1e-6)
    np.testing.assert_array_equal(played.steps, [[7, 7, 7], [7, 7, 0]])
    np.testing.assert_array_equal(played.finished, seeds != NONE)


def test_a_judge_is_a_task_and_the_first_row_is_not_arrived_at():
    """What a judge sees of a first row is not counted: seven steps, seven ones."""
    judges = {"ones": lambda obs, info: np.ones(len(info["state"]))}
    with InProcess(TABLE, 1) as envs:
        played = play(Fixed([0]), envs, np.array([[5, 6]]), jax.random.key(0), judges=judges)
    np.testing.assert_array_equal(played.returns["ones"], [[7.0, 7.0]])


def test_an_episode_does_not_depend_on_its_lane():
    """Random actions: the same four seeds in one lane, in two and in four."""
    seeds, found = np.array([11, 12, 13, 14]), []
    for lanes in (1, 2, 4):
        with InProcess(TABLE, lanes) as envs:
            policy = RandomPolicy(envs.spec.action)
            played = play(policy, envs, seeds.reshape(-1, lanes).T, jax.random.key(0))
        found.append(played.returns["reward"].T.ravel())
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    with InProcess(TABLE, 1) as envs:
        other = play(RandomPolicy(envs.spec.action), envs, seeds[None], jax.random.key(1))
    assert (other.returns["reward"][0] != found[0]).any()


class Counting(Fixed):
    """Notes when episodes begin."""

    def __init__(self, actions):
        super().__init__(actions)
        self.firsts = []

    def act(self, carry, obs, is_first, keys):
        self.firsts.append(is_first.copy())
        return super().act(carry, obs, is_first, keys)


def test_the_policy_is_told_where_episodes_begin():
    policy = Counting([0])
    with InProcess(TABLE, 1) as envs:
        play(policy, envs, np.array([[5, 6]]), jax.random.key(0))
    assert np.flatnonzero(np.concatenate(policy.firsts)).tolist() == [0, 8]


def test_stop_leaves_episodes_unfinished():
    turns = iter([False] * 10 + [True])
    with InProcess(TABLE, 1) as envs:
        played = play(Fixed([0]), envs, np.array([[5, 6, 7]]), jax.random.key(0), stop=lambda: next(turns))
    np.testing.assert_array_equal(played.finished, [[True, False, False]])


def test_too_many_failures_end_it():
    """An action that the world refuses fails the episode again and again."""
    with InProcess(TABLE, 1) as envs:
        policy = Fixed([envs.spec.action.size + 3])
        with pytest.raises(CascadeError, match=r"3 environment failures while evaluating, .* which is 2"):
            play(policy, envs, np.array([[5]]), jax.random.key(0), max_failures=2)


def test_an_episode_without_an_end_is_cut():
    """A chain whose goal is never reached by going left."""
    chain = EnvConfig(id="probe:chain")
    with InProcess(chain, 2) as envs:
        played = play(Fixed([0, 1]), envs, np.array([[1, 2], [3, 4]]), jax.random.key(0), limit=12)
    np.testing.assert_array_equal(played.steps[0], [12, 12])
    assert (played.steps[1] < 12).all()
    assert played.finished.all()
