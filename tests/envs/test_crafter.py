"""Crafter shows and pays what Crafter does; an episode is its seed and its actions."""

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("crafter", reason="needs the extra 'crafter': pip install 'cascade-rl[crafter]'")

import crafter

from cascade.config import EnvConfig
from cascade.envs import InProcess, Vectoriser, make
from cascade.envs.crafter_env import SKILLS
from cascade.errors import SettingError

WORLD = EnvConfig(id="crafter:world")
SLEEP = crafter.constants.actions.index("sleep")


class Sorted(crafter.Env):
    """Crafter's own game, but for the one choice that it leaves to memory addresses."""

    def _balance_object(self, chunk, objs, *args):
        ages = {id(one): age for age, one in enumerate(self._world._objects)}
        super()._balance_object(chunk, sorted(objs, key=lambda one: ages[id(one)]), *args)


def actions(count, seed=0):
    return np.random.default_rng(seed).integers(17, size=count).tolist()


def check(step, image, reward, over, info):
    np.testing.assert_array_equal(step.obs["image"], image)
    assert step.rewards == {"reward": reward}
    assert step.terminated == (info["discount"] == 0.0)
    assert step.truncated == (over and not step.terminated)
    assert step.info["achievements"].tolist() == [info["achievements"][skill] for skill in SKILLS]
    assert step.info["health"] == info["inventory"]["health"]
    assert step.info["position"].tolist() == info["player_pos"].tolist()


@pytest.mark.parametrize("seed", [0, 1])
def test_every_step_equals_crafters(seed):
    env, raw = make(WORLD), Sorted(seed=seed)
    np.testing.assert_array_equal(env.reset(seed).obs["image"], raw.reset())
    for action in actions(350, seed):  # past a night
        step = env.step(action)
        check(step, *raw.step(action))
        if step.terminated:
            break


def test_the_first_steps_equal_those_of_the_game_as_it_is():
    """Its creatures are chosen among at every tenth step; up to there nothing is left to memory addresses."""
    env = make(WORLD)
    for seed in (2, 3):
        raw = crafter.Env(seed=seed)
        np.testing.assert_array_equal(env.reset(seed).obs["image"], raw.reset())
        for action in actions(9, seed):
            check(env.step(action), *raw.step(action))


def test_death_ends_and_the_limit_cuts():
    env = make(EnvConfig(id="crafter:world", time_limit=5))
    env.reset(0)
    assert [env.step(0).truncated for _ in range(5)] == [False] * 4 + [True]
    env.reset(0)
    env.env.env.player.health = 1
    env.env.env.player._hunger = env.env.env.player._thirst = 0
    env.env.env.player.inventory.update(food=0, drink=0, energy=0)
    env.env.env.player._recover = -15
    step = env.step(0)
    assert step.info["health"] == 0
    assert step.terminated
    assert not step.truncated
    assert step.rewards["reward"] < 0


def test_crafters_own_limit_is_kept_unless_replaced():
    own, replaced = make(WORLD), make(EnvConfig(id="crafter:world", time_limit=20_000))
    assert own.env._length == 10_000
    assert not replaced.env.env._length


def test_skills_are_counted_over_the_episode():
    env = make(WORLD)
    env.reset(0)
    env.env.player.inventory["sapling"] = 2
    before = env.step(0)
    assert before.info["achievements"].sum() == 0
    place = crafter.constants.actions.index("place_plant")
    after = env.step(place)
    done = {
        skill: int(count) for skill, count in zip(SKILLS, after.info["achievements"], strict=True) if count
    }
    assert done == {"place_plant": 1}
    assert after.rewards["reward"] >= 0.9
    assert env.step(0).info["achievements"].sum() == 1
    assert env.reset(0).info["achievements"].sum() == 0
    assert len(SKILLS) == 22


def play(env, seed, count=40):
    return [env.reset(seed), *(env.step(action) for action in actions(count))]


def test_a_seed_is_an_episode_whatever_came_before():
    env, fresh = make(WORLD), make(WORLD)
    play(env, 1)
    for ours, theirs in zip(play(env, 5), play(fresh, 5), strict=True):
        np.testing.assert_array_equal(ours.obs["image"], theirs.obs["image"])
        np.testing.assert_array_equal(ours.info["position"], theirs.info["position"])
    assert not np.array_equal(env.reset(6).obs["image"], fresh.reset(5).obs["image"])


def test_other_processes_play_the_same_episode():
    """Five hundred steps, in processes whose objects lie elsewhere in memory."""
    code = f"""
import sys
sys.path[:0] = {sys.path!r}
padding = [object() for _ in range(int(sys.argv[1]))]
import zlib
from cascade.config import EnvConfig
from cascade.envs import make
env = make(EnvConfig(id="crafter:world"))
env.reset(11)
sum = 0
for action in {[SLEEP] * 400!r}:
    step = env.step(action)
    sum = zlib.crc32(step.obs["image"].tobytes(), sum)
    for one in env.env._world.objects:
        sum = zlib.crc32(bytes(str((type(one).__name__, one.pos.tolist())), "ascii"), sum)
    if step.terminated:
        break
print(sum)
"""
    found = [
        subprocess.run([sys.executable, "-c", code, pad], capture_output=True, text=True, check=True).stdout
        for pad in ("1", "54321")
    ]
    assert found[0] == found[1]


def test_drawing_for_people_changes_nothing():
    env, quiet = make(WORLD), make(WORLD)
    for world in (env, quiet):
        world.reset(0)
        world.env._step = 270  # night: its darkness is random
    for action in actions(10):
        assert env.render().shape == (576, 576, 3)
        np.testing.assert_array_equal(env.step(action).obs["image"], quiet.step(action).obs["image"])


def test_workers_step_as_this_process_does():
    lanes = np.arange(2)
    rng = np.random.default_rng(0)
    with InProcess(WORLD, 2) as here, Vectoriser(WORLD, 2, 2) as there:
        for envs in (here, there):
            envs.send(lanes, np.zeros(2, np.int32), lanes)
        for _ in range(25):
            ours, theirs = here.wait(lanes), there.wait(lanes)
            np.testing.assert_array_equal(ours.obs["image"], theirs.obs["image"])
            np.testing.assert_array_equal(ours.info["achievements"], theirs.info["achievements"])
            drawn = rng.integers(17, size=2).astype(np.int32)
            for envs in (here, there):
                envs.send(lanes, drawn, np.full(2, -1))
        here.wait(lanes)
        there.wait(lanes)


def test_wrong_settings_are_named():
    with pytest.raises(SettingError, match="expected crafter:world"):
        make(EnvConfig(id="crafter:Reward-v1"))
    with pytest.raises(SettingError, match=r"env\.observation: got 'grid', expected auto or image"):
        make(EnvConfig(id="crafter:world", observation="grid"))
