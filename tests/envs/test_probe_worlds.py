"""The probe worlds' known answers, since tests all over the project rely on them."""

import numpy as np
import pytest

from cascade.config import EnvConfig
from cascade.envs import make
from cascade.errors import SettingError


def probe(name, **settings):
    return make(EnvConfig(id=f"probe:{name}", **settings))


def episode(env, seed, actions):
    """All timesteps of an episode under these actions."""
    steps = [env.reset(seed)]
    for action in actions:
        steps.append(env.step(action))
        if steps[-1].terminated or steps[-1].truncated:
            break
    return steps


NAMES = ["bandit", "chain", "delayed", "table", "two-rooms", "point", "pixels", "faulty"]


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_and_actions_give_the_same_episode(name):
    first, second = probe(name, image_size=16), probe(name, image_size=16)
    rng = np.random.default_rng(0)
    action = first.spec.action
    actions = [
        int(rng.integers(action.size)) if action.kind == "discrete" else rng.uniform(-1, 1, 2)
        for _ in range(60)
    ]
    second.reset(99)
    for a, b in zip(episode(first, 7, actions), episode(second, 7, actions), strict=True):
        for name, part in first.spec.observations.items():
            np.testing.assert_array_equal(a.obs[name], b.obs[name])
            assert (a.obs[name].shape, a.obs[name].dtype) == (part.shape, part.dtype)
        assert a.rewards == b.rewards
        assert set(a.info) == set(first.spec.info)


@pytest.mark.parametrize("name", NAMES)
def test_every_episode_ends_one_way(name):
    env = probe(name, image_size=16)
    action = 0 if env.spec.action.kind == "discrete" else np.zeros(2, np.float32)
    steps = episode(env, 0, [action] * 1000)
    assert steps[-1].terminated != steps[-1].truncated
    assert not any(step.terminated or step.truncated for step in steps[:-1])


def test_bandit_pays_by_arm():
    env = probe("bandit?arms=5")
    for arm, payoff in enumerate([0.0, 0.25, 0.5, 0.75, 1.0]):
        env.reset(0)
        step = env.step(arm)
        assert step.rewards["reward"] == payoff
        assert step.terminated


def test_chain_ends_at_the_right():
    env = probe("chain?length=5")
    steps = episode(env, 0, [0, 1, 1, 0, 1, 1, 1])
    assert [int(step.obs["vector"].argmax()) for step in steps] == [0, 0, 1, 2, 1, 2, 3, 4]
    assert steps[-1].terminated
    assert sum(step.rewards["reward"] for step in steps) == env.best_return == 1.0
    assert len(episode(env, 0, [1] * 9)) == env.best_steps + 1


def test_chain_as_a_grid_and_cut():
    env = probe("chain?limit=3", observation="grid")
    steps = episode(env, 0, [1, 0, 1])
    assert env.spec.observations["grid"].classes == (2,)
    assert [step.obs["grid"].ravel().argmax() for step in steps] == [0, 1, 0, 1]
    assert steps[-1].truncated


@pytest.mark.parametrize("first", [0, 1])
def test_delayed_pays_for_the_first_action_only(first):
    steps = episode(probe("delayed?length=6"), 0, [first, 1, 0, 1, 0, 1])
    assert [step.rewards["reward"] for step in steps] == [0.0] * 6 + [float(first)]
    assert steps[-1].terminated


def test_table_follows_its_table():
    env = probe("table")
    assert env.transitions.shape == (8, 4)
    actions = np.random.default_rng(0).integers(4, size=20).tolist()
    steps = episode(env, 5, actions)
    states = [int(step.obs["vector"].argmax()) for step in steps]
    for before, action, after in zip(states, actions, states[1:], strict=False):
        assert env.transitions[before, action] == after
    assert len(steps) == 21
    assert steps[-1].truncated
    assert {int(step.info["state"]) for step in episode(env, 0, [0] * 8)} == set(range(8))
    assert len({int(env.reset(seed).obs["vector"].argmax()) for seed in range(50)}) == 8
    assert (probe("table?table=1").transitions != env.transitions).any()


def test_two_rooms_hide_detail_at_both_ends():
    env = probe("two-rooms")
    right = episode(env, 0, [1] * 14)
    left = episode(env, 0, [0] * 14)
    assert int(right[-1].info["region"]) == env.RIGHT
    assert int(left[-1].info["region"]) == env.LEFT
    rooms = env.region > 0
    corridor = env.region == env.CORRIDOR
    assert (env.region == env.RIGHT).sum() > (env.region == env.LEFT).sum() > 0
    assert len(np.unique(env.patterns[corridor], axis=0)) == 1
    assert len(np.unique(env.patterns[rooms], axis=0)) > 0.8 * rooms.sum()
    np.testing.assert_array_equal(right[0].obs["vector"], left[0].obs["vector"])


def test_two_rooms_are_too_far_apart_for_one_episode():
    env = probe("two-rooms")
    to_left = next(i for i, s in enumerate(episode(env, 0, [0] * 14)) if s.info["region"] == env.LEFT)
    steps = episode(env, 0, [0] * to_left + [1] * 14)
    assert env.RIGHT not in {int(step.info["region"]) for step in steps}


def test_point_obeys_its_equations():
    env = probe("point")
    rng = np.random.default_rng(0)
    state = env.reset(3).obs["vector"]
    for _ in range(20):
        action = rng.uniform(-1, 1, 2).astype(np.float32)
        v = 0.9 * state[2:] + 0.1 * action
        x = np.clip(state[:2] + v, -1, 1)
        step = env.step(action)
        state = step.obs["vector"]
        np.testing.assert_allclose(state[:2], x, atol=1e-6)
        assert step.rewards == {"right": pytest.approx((x[0] + 1) / 2), "up": pytest.approx((x[1] + 1) / 2)}


def test_pixels_move_the_dot():
    env = probe("pixels", image_size=16)
    before = env.reset(1)
    after = env.step(1)
    assert before.obs["image"].shape == (16, 16, 3)
    x, y = after.info["position"]
    assert after.obs["image"][2 * y, 2 * x].tolist() == [255] * 3
    assert (after.obs["image"] > 0).sum() == 4 * 3
    assert x == min(before.info["position"][0] + 1, 7)


def test_faulty_raises_when_asked_and_only_then(tmp_path):
    env = probe(f"faulty?raise_at=2&seed=5&once={tmp_path / 'done'}")
    assert len(episode(env, 4, [0] * 3)) == 4
    with pytest.raises(RuntimeError, match="raises at step 2"):
        episode(env, 5, [0] * 3)
    assert len(episode(env, 5, [0] * 3)) == 4


def test_time_limit_replaces_the_probes_own():
    assert len(episode(probe("table", time_limit=33), 0, [1] * 50)) == 34


@pytest.mark.parametrize(
    ("name", "says"),
    [("chain?legnth=3", "parameters among: length, limit"), ("chain?length=x", "length to be of type int")],
)
def test_wrong_parameters_are_named(name, says):
    with pytest.raises(SettingError, match=says):
        probe(name)
