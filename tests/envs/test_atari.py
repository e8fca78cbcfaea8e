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


class Console:
    """The emulator alone, loaded anew, one frame at a time, with actions that stick by hand."""

    def __init__(self, rom, seed):
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self.ale = ale_py.ALEInterface()
        self.ale.setInt("random_seed", seed + 1)  # there is nothing random left that it could change
        self.ale.setFloat("repeat_action_probability", 0.0)
        self.ale.setInt("frame_skip", 1)
        self.ale.loadROM(ale_py.roms.get_rom_path(rom))
        self.ale.reset_game()
        self.rng, self.held = np.random.default_rng(seed), 0

    def press(self, action, repeat=4):
        """One action: the reward, the last two screens, whether the game is over."""
        screens, reward = [], 0
        for stick in self.rng.random(repeat):
            if stick >= 0.25:
                self.held = action
            reward += self.ale.act(self.ale.getLegalActionSet()[self.held])
            screens = [*screens[-1:], self.ale.getScreenGrayscale()]
            if self.ale.game_over():
                break
        return reward, screens, self.ale.game_over()


def shrunk(screen):
    """Averages over areas: 210x160 pixels with each repeated 32 and 2 times are 64x64 blocks of 105x5."""
    fine = np.repeat(np.repeat(screen.astype(np.int64), 32, 0), 2, 1)
    return np.rint(fine.reshape(64, 105, 64, 5).sum((1, 3)) / np.float32(105 * 5)).astype(np.uint8)


@pytest.mark.parametrize(
    ("game", "rom"),
    [("MontezumaRevenge", "montezuma_revenge"), ("Freeway", "freeway"), ("Frostbite", "frostbite")],
)
def test_every_step_equals_the_emulators(game, rom):
    env = make(EnvConfig(id=f"atari:{game}", action_repeat=4))
    rng = np.random.default_rng(0)
    for seed in (0, 7):
        raw = Console(rom, seed)
        first = env.reset(seed)
        np.testing.assert_array_equal(first.obs["image"][:, :, 0], shrunk(raw.ale.getScreenGrayscale()))
        for count in range(120):
            action = int(rng.integers(18))
            step = env.step(action)
            reward, screens, over = raw.press(action)
            assert step.rewards == {"reward": reward}
            assert (step.terminated, step.truncated) == (over, False)
            assert step.info["lives"] == raw.ale.lives()
            if count % 10 == 0:
                np.testing.assert_array_equal(step.obs["image"][:, :, 0], shrunk(np.maximum(*screens)))


def test_scores_are_not_clipped_and_only_the_end_of_the_game_ends():
    """Frostbite pays tens; four lives are lost one after another, and the last one ends the episode."""
    env = make(EnvConfig(id="atari:Frostbite", action_repeat=4))
    raw = Console("frostbite", 3)
    rng = np.random.default_rng(3)
    env.reset(3)
    lives, paid, step = [], set(), None
    while step is None or not step.terminated:
        action = int(rng.integers(18))
        step = env.step(action)
        reward, _, over = raw.press(action)
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
        for _ in range(4):  # what sticks is drawn frame by frame, so it is the same
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
    paths = [[tuple(step.info["position"]) for step in play(env, seed, 120)] for seed in (5, 6)]
    assert paths[0] != paths[1]


def play(env, seed, count=40):
    rng = np.random.default_rng(2)
    return [env.reset(seed), *(env.step(int(rng.integers(18))) for _ in range(count))]


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


@pytest.mark.parametrize(("pixels", "size"), [(210, 64), (160, 64), (210, 84), (160, 61), (32, 64), (64, 64)])
def test_averages_are_whole_and_cover_every_line_equally(pixels, size):
    averages = atari.Averages.of(pixels, size)
    weights = averages.sums(np.eye(pixels))
    assert weights.shape == (size, pixels)
    np.testing.assert_array_equal(weights, np.rint(weights))
    np.testing.assert_array_equal(weights.sum(1), averages.area)
    assert len(set(weights.sum(0))) == 1
    assert (np.diff(weights @ np.arange(pixels)) >= 0).all()


def test_actions_stick_a_quarter_of_the_time():
    """As the emulator's own stickiness does, which is seeded otherwise: the same law, not the same draws."""
    env = make(EnvConfig(id="atari:MontezumaRevenge"))
    env.reset(0)
    stuck = 0
    for count in range(4000):
        before, pressed = env._held, count % 18
        env.step(pressed)
        stuck += env._held != env._actions[pressed]
        assert env._held in (before, env._actions[pressed])
        if count % 500 == 499:
            env.reset(count)
    assert stuck / 4000 == pytest.approx(0.25, abs=0.03)


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
