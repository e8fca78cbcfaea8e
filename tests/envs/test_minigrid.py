"""MiniGrid worlds show what MiniGrid shows, byte for byte, and know which cells can be reached."""

import gymnasium as gym
import numpy as np
import pytest
from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX, STATE_TO_IDX
from minigrid.wrappers import RGBImgPartialObsWrapper

from cascade.config import EnvConfig
from cascade.envs import make
from cascade.envs.minigrid import CLASSES, draw_grid, reachable_cells
from cascade.errors import SettingError

# Walls, doors, carried things, lava, moving obstacles, worlds without occlusion.
IDS = [
    "FourRooms-v0",
    "MultiRoom-N4-S5-v1",
    "DoorKey-8x8-v0",
    "LavaCrossingS9N1-v0",
    "Dynamic-Obstacles-8x8-v0",
    "ObstructedMaze-1Dlhb-v0",
]


def play(env, raw, seed, steps, rng):
    """Both environments through one episode; yields what each returned."""
    obs, _ = raw.reset(seed=seed)
    yield (obs, 0.0, False, False), env.reset(seed)
    for _ in range(steps):
        action = int(rng.integers(raw.action_space.n))
        obs, reward, terminated, truncated, _ = raw.step(action)
        yield (obs, reward, terminated, truncated), env.step(action)
        if terminated or truncated:
            return


@pytest.mark.parametrize("name", IDS)
def test_symbols_equal_minigrids_own(name):
    env, raw = make(EnvConfig(id=f"minigrid:{name}")), gym.make(f"MiniGrid-{name}")
    rng = np.random.default_rng(0)
    for seed in range(4):
        for (obs, reward, terminated, truncated), step in play(env, raw, seed, 150, rng):
            np.testing.assert_array_equal(step.obs["grid"], obs["image"])
            assert step.rewards["reward"] == reward
            assert step.terminated == terminated
            assert step.truncated == (truncated and not terminated)
            assert tuple(step.info["agent_pos"]) == tuple(raw.unwrapped.agent_pos)
            assert step.info["agent_dir"] == raw.unwrapped.agent_dir


@pytest.mark.parametrize("observation", ["grid", "image"])
def test_the_compass_is_minigrids_own(observation):
    env = make(EnvConfig("minigrid:FourRooms-v0?compass=shown", observation=observation, time_limit=30))
    plain = make(EnvConfig("minigrid:FourRooms-v0", observation=observation, time_limit=30))
    assert set(env.spec.observations) == {observation, "compass"}
    assert set(plain.spec.observations) == {observation}
    ways, raw = set(), gym.make("MiniGrid-FourRooms-v0")
    for (obs, *_), step in play(env, raw, 3, 30, np.random.default_rng(2)):
        assert step.obs["compass"].shape == env.spec.observations["compass"].shape
        assert step.obs["compass"].item() == obs["direction"]
        ways.add(obs["direction"])
    assert ways == {0, 1, 2, 3}
    np.testing.assert_array_equal(env.reset(4).obs[observation], plain.reset(4).obs[observation])


def test_the_position_is_where_the_agent_stands():
    env = make(EnvConfig("minigrid:Empty-6x6-v0?position=shown&compass=shown"))
    assert set(env.spec.observations) == {"grid", "compass", "position"}
    part, rng = env.spec.observations["position"], np.random.default_rng(2)
    assert part.classes == (6, 6)
    step, places = env.reset(3), set()
    for _ in range(60):
        assert step.obs["position"].shape == part.shape
        assert step.obs["position"].ravel().tolist() == step.info["agent_pos"].tolist()
        places.add(tuple(step.info["agent_pos"].tolist()))
        step = env.step(rng.integers(3))
    assert len(places) > 5


@pytest.mark.parametrize(
    ("actions", "meant"), [("all", range(7)), ("moves", range(3)), ("doors", (0, 1, 2, 5))]
)
def test_fewer_actions_are_minigrids_own_under_other_numbers(actions, meant):
    env = make(EnvConfig(f"minigrid:MultiRoom-N2-S4-v0?actions={actions}&compass=shown"))
    raw = gym.make("MiniGrid-MultiRoom-N2-S4-v0")
    assert env.spec.action.size == len(meant)
    env.reset(7), raw.reset(seed=7)
    for action in np.random.default_rng(0).integers(len(meant), size=15):
        step, (obs, *_) = env.step(action), raw.step(meant[action])
        np.testing.assert_array_equal(step.obs["grid"], obs["image"])
        assert step.obs["compass"].item() == obs["direction"]


def test_what_fewer_actions_leave_out_does_nothing_in_four_rooms():
    env = gym.make("MiniGrid-FourRooms-v0")
    before, _ = env.reset(seed=1)
    for action in sorted(set(range(7)) - {0, 1, 2}):
        after, reward, terminated, *_ = env.step(action)
        np.testing.assert_array_equal(after["image"], before["image"])
        assert (reward, terminated, after["direction"]) == (0, False, before["direction"])


@pytest.mark.parametrize("name", ["FourRooms-v0", "DoorKey-8x8-v0", "Dynamic-Obstacles-8x8-v0"])
def test_pictures_equal_minigrids_own(name):
    env = make(EnvConfig(id=f"minigrid:{name}", observation="image"))
    raw = RGBImgPartialObsWrapper(gym.make(f"MiniGrid-{name}"), tile_size=9)
    for (obs, *_), step in play(env, raw, 5, 60, np.random.default_rng(1)):
        assert step.obs["image"].shape == (64, 64, 3)
        np.testing.assert_array_equal(step.obs["image"][:63, :63], obs["image"])
        assert not step.obs["image"][63:].any()


def test_spec_matches_minigrids_constants():
    spec = make(EnvConfig()).spec
    grid = spec.observations["grid"]
    assert grid.shape == (7, 7, 3)
    assert grid.classes == CLASSES == (11, 6, 4)
    assert len(OBJECT_TO_IDX) == 11
    assert len(COLOR_TO_IDX) == 6
    assert len(STATE_TO_IDX) == 3
    assert set(spec.observations) == {"grid"}
    assert spec.action.size == 7
    assert set(spec.info) == {"agent_pos", "agent_dir"}


@pytest.mark.parametrize(
    ("name", "limit", "rooms"),
    [("MultiRoom-N4-S5-v0", 120, 6), ("MultiRoom-N4-S5-v1", 80, 4), ("FourRooms-v0", 100, None)],
)
def test_limits_and_room_counts(name, limit, rooms):
    env = make(EnvConfig(id=f"minigrid:{name}"))
    env.reset(0)
    if rooms is not None:
        assert len(env.env.rooms) == rooms
    for count in range(1, limit + 1):
        step = env.step(0)  # turning on the spot never reaches the goal
        assert step.truncated == (count == limit)
        assert not step.terminated


def test_goal_ends_but_limit_cuts():
    env = make(EnvConfig(id="minigrid:MiniGrid-Empty-5x5-v0"))
    env.reset(0)
    for action in (2, 2, 1, 2):
        assert not env.step(action).terminated
    step = env.step(2)
    assert step.terminated
    assert not step.truncated
    assert step.rewards["reward"] > 0.9


def test_time_limit_replaces_minigrids_own():
    env = make(EnvConfig(time_limit=130))
    env.reset(0)
    ends = [env.step(0).truncated for _ in range(130)]
    assert ends == [False] * 129 + [True]


def test_four_rooms_reaches_260_cells_in_every_level():
    env = make(EnvConfig())
    for seed in range(20):
        step = env.reset(seed)
        reached = reachable_cells(env)
        assert reached.sum() == 260
        assert reached[tuple(step.info["agent_pos"])]


@pytest.mark.parametrize(("name", "low", "high"), [("v0", 25, 60), ("v1", 12, 42)])
def test_multi_room_reaches_a_few_dozen_cells_through_doors(name, low, high):
    env = make(EnvConfig(id=f"minigrid:MultiRoom-N4-S5-{name}"))
    for seed in range(20):
        env.reset(seed)
        reached = reachable_cells(env)
        assert low <= reached.sum() <= high
        assert reached[tuple(env.env.goal_pos)]
        doors = [room.entryDoorPos for room in env.env.rooms[1:]]
        assert all(reached[tuple(door)] for door in doors)


def test_every_visited_cell_was_reachable():
    env = make(EnvConfig(id="minigrid:MultiRoom-N4-S5-v0"))
    rng = np.random.default_rng(0)
    for seed in range(5):
        env.reset(seed)
        reached = reachable_cells(env)
        for action in rng.choice([0, 1, 2, 2, 5], size=100):
            step = env.step(int(action))
            assert reached[tuple(step.info["agent_pos"])]
            if step.terminated or step.truncated:
                break


def test_locked_doors_and_goals_are_not_passed():
    env = make(EnvConfig(id="minigrid:DoorKey-8x8-v0"))
    env.reset(0)
    world = env.env
    door = next(i for i, cell in enumerate(world.grid.grid) if cell is not None and cell.type == "door")
    x, y = door % world.width, door // world.width
    assert not reachable_cells(env)[x:].any()
    world.grid.get(x, y).is_locked = False
    assert reachable_cells(env)[x, y]
    assert reachable_cells(env)[x + 1, y]


def test_reachable_cells_looks_through_the_pace_wrapper():
    env = make(EnvConfig(time_limit=10))
    env.reset(0)
    assert reachable_cells(env).sum() == 260


def test_any_symbols_can_be_drawn():
    rng = np.random.default_rng(0)
    symbols = np.stack([rng.integers(n, size=(7, 7)) for n in CLASSES], axis=-1).astype(np.uint8)
    assert draw_grid(symbols, 56).shape == (56, 56, 3)
    unseen = draw_grid(np.zeros((7, 7, 3), np.uint8), 56)
    assert unseen[48:56, 24:32].max() == 255, "the agent stands in the middle of the last row"
    assert draw_grid(np.zeros((7, 7, 3), np.uint8), 56, agent=False).max() <= 100


def test_unusable_settings_are_named():
    with pytest.raises(SettingError, match=r"env\.observation.*auto, grid or image"):
        make(EnvConfig(observation="vector"))
    with pytest.raises(SettingError, match=r"env\.image-size.*at least 28"):
        make(EnvConfig(observation="image", image_size=20))
    with pytest.raises(SettingError, match="did you mean FourRooms-v0"):
        make(EnvConfig(id="minigrid:FourRoom-v0"))
    for query in ("compass=seen", "compass", "draw=fast", "compass=shown&actions=few"):
        with pytest.raises(
            SettingError, match=r"env\.id.*compass=hidden or compass=shown, position=hidden or"
        ):
            make(EnvConfig(id=f"minigrid:FourRooms-v0?{query}"))
