"""Atari worlds show and pay what the emulator does, frame by frame."""

import numpy as np
import pytest

pytest.importorskip("ale_py", reason="needs the extra 'atari': pip install 'cascade-rl[atari]'")

import ale_py

from cascade.config import EnvConfig
from cascade.envs import InProcess, Vectoriser, atari, make
from cascade.envs.protocol import Paced
from cascade.errors import SettingError

MONTEZUMA = EnvConfig(id="atari:MontezumaRevenge", action_repeat=4)
RIGHT, LEFT, NOOP = 3, 4, 0


def console(rom, seed, sticky=0.25):
    """The emulator alone, one frame at a time."""
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", seed)
    ale.setFloat("repeat_action_probability", sticky)
    ale.setInt("frame_skip", 1)
    ale.loadROM(ale_py.roms.get_rom_path(rom))
    ale.reset_game()
    return ale


def shrunk(screen):
    """Averages over areas: 210x160 pixels with each repeated 32 and 2 times are 64x64 blocks of 105x5."""
    fine = np.repeat(np.repeat(screen.astype(np.int64), 32, 0), 2, 1)
    return np.rint(fine.reshape(64, 105, 64, 5).sum((1, 3)) / np.float32(105 * 5)).astype(np.uint8)


def frames(ale, action, repeat=4):
    """One action by hand: the reward, the last two screens, whether the game is over."""
    screens, reward = [], 0
    for _ in range(repeat):
        reward += ale.act(ale.getLegalActionSet()[action])
        screens.append(ale.getScreenGrayscale())
        if ale.game_over():
            break
    return reward, screens[-2:], ale.game_over()


@pytest.mark.parametrize(
    ("game", "rom"),
    [("MontezumaRevenge", "montezuma_revenge"), ("Freeway", "freeway"), ("Frostbite", "frostbite")],
)
def test_every_step_equals_the_emulators(game, rom):
    env = make(EnvConfig(id=f"atari:{game}", action_repeat=4))
    rng = np.random.default_rng(0)
    for seed in (0, 7):
        ale = console(rom, seed)
        np.testing.assert_array_equal(env.reset(seed).obs["image"][:, :, 0], shrunk(ale.getScreenGrayscale()))
        for count in range(120):
            action = int(rng.integers(18))
            step = env.step(action)
            reward, screens, over = frames(ale, action)
            assert step.rewards == {"reward": reward}
            assert (step.terminated, step.truncated) == (over, False)
            assert step.info["lives"] == ale.lives()
            if count % 10 == 0:
                np.testing.assert_array_equal(step.obs["image"][:, :, 0], shrunk(np.maximum(*screens)))


def test_scores_are_not_clipped_and_only_the_end_of_the_game_ends():
    """Frostbite pays tens; four lives are lost one after another, and the last one ends the episode."""
    env = make(EnvConfig(id="atari:Frostbite", action_repeat=4))
    ale = console("frostbite", 3)
    rng = np.random.default_rng(3)
    env.reset(3)
    lives, paid, step = [], set(), None
    while step is None or not step.terminated:
        action = int(rng.integers(18))
        step = env.step(action)
        reward, _, over = frames(ale, action)
        assert (step.rewards["reward"], step.terminated, step.truncated) == (reward, over, False)
        lives.append(int(step.info["lives"]))
        paid.add(step.rewards["reward"])
    assert lives[0] == 4
    assert set(lives) == {4, 3, 2, 1, 0}
    assert max(paid) >= 10


def test_the_repeat_is_not_applied_twice():
    env = make(MONTEZUMA)
    assert not isinstance(env, Paced)
    limited = make(EnvConfig(id="atari:MontezumaRevenge", action_repeat=4, time_limit=9))
    single = make(EnvConfig(id="atari:MontezumaRevenge"))
    for world in (env, limited, single):
        world.reset(0)
    for _ in range(3):
        one, other = env.step(RIGHT), limited.step(RIGHT)
        for _ in range(4):
            frame = single.step(RIGHT)
        np.testing.assert_array_equal(one.obs["image"], other.obs["image"])
        np.testing.assert_array_equal(one.info["position"], frame.info["position"])
    assert env._frames == 12


def test_limits(monkeypatch):
    assert atari.FRAMES == 27_000 * 4
    monkeypatch.setattr(atari, "FRAMES", 22)  # the sixth action is cut after two of its frames
    env = make(MONTEZUMA)
    env.reset(0)
    assert [env.step(NOOP).truncated for _ in range(6)] == [False] * 5 + [True]
    assert env._frames == 22
    longer = make(EnvConfig(id="atari:MontezumaRevenge", action_repeat=4, time_limit=8))
    longer.reset(0)
    assert [longer.step(NOOP).truncated for _ in range(8)] == [False] * 7 + [True]


def test_memory_says_where_panama_joe_is():
    env = make(MONTEZUMA)
    start = env.reset(0)
    assert start.info["room"] == 1
    assert tuple(start.info["position"]) == (77, 235)
    assert start.info["lives"] == 6
    for sign, action in ((1, RIGHT), (-1, LEFT)):
        env.reset(0)
        path = [sign * int(env.step(action).info["position"][0]) for _ in range(4)]
        assert path == sorted(path)
        assert path[-1] > sign * start.info["position"][0]


def test_a_seed_is_an_episode_whatever_came_before():
    env, fresh = make(MONTEZUMA), make(MONTEZUMA)
    env.reset(1)
    for _ in range(20):
        env.step(RIGHT)
    for ours, theirs in zip(play(env, 5), play(fresh, 5), strict=True):
        np.testing.assert_array_equal(ours.obs["image"], theirs.obs["image"])
        np.testing.assert_array_equal(ours.info["position"], theirs.info["position"])


def test_actions_stick_differently_under_another_seed():
    env = make(MONTEZUMA)
    paths = [[tuple(step.info["position"]) for step in play(env, seed)] for seed in (5, 6)]
    assert paths[0] != paths[1]


def play(env, seed):
    rng = np.random.default_rng(2)
    return [env.reset(seed), *(env.step(int(rng.integers(18))) for _ in range(40))]


def test_workers_step_as_this_process_does():
    lanes = np.arange(2)
    rng = np.random.default_rng(0)
    with InProcess(MONTEZUMA, 2) as here, Vectoriser(MONTEZUMA, 2, 2) as there:
        for envs in (here, there):
            envs.send(lanes, np.zeros(2, np.int32), lanes)
        for _ in range(10):
            ours, theirs = here.wait(lanes), there.wait(lanes)
            np.testing.assert_array_equal(ours.obs["image"], theirs.obs["image"])
            np.testing.assert_array_equal(ours.info["position"], theirs.info["position"])
            actions = rng.integers(18, size=2).astype(np.int32)
            for envs in (here, there):
                envs.send(lanes, actions, np.full(2, -1))
        here.wait(lanes)
        there.wait(lanes)


@pytest.mark.parametrize(("pixels", "size"), [(210, 64), (160, 64), (210, 84), (160, 61), (32, 64)])
def test_area_weights_are_whole_and_cover_every_pixel_equally(pixels, size):
    weights = atari.area_weights(pixels, size)
    np.testing.assert_array_equal(weights, np.rint(weights))
    assert len(set(weights.sum(0))) == len(set(weights.sum(1))) == 1


def test_other_sizes_and_names():
    env = make(EnvConfig(id="atari:montezuma_revenge", image_size=84))
    assert env.reset(0).obs["image"].shape == (84, 84, 1)
    assert env.spec.action.size == 18
    assert env.render().shape == (210, 160, 3)
    assert set(env.spec.info) == {"lives", "position", "room"}
    assert set(make(EnvConfig(id="atari:HERO")).spec.info) == {"lives"}


@pytest.mark.parametrize(
    ("id", "near"),
    [("atari:MontezumasRevenge", "MontezumaRevenge"), ("atari:frostbyte", "Frostbite")],
)
def test_a_misspelt_game_is_suggested(id, near):
    with pytest.raises(SettingError, match=f"did you mean .*{near}"):
        make(EnvConfig(id=id))


def test_vectors_are_refused():
    with pytest.raises(SettingError, match=r"env\.observation: got 'vector', expected auto or image"):
        make(EnvConfig(id="atari:Pong", observation="vector"))
