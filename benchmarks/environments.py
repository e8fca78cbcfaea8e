"""What an action costs in each family: processor time of one environment of ours, and of the emulator's own vector.

python benchmarks/environments.py --out benchmarks/environments.json

Processor time, over all threads of the process, hardly depends on what else the machine does.
"""

import argparse
import importlib.metadata
import json
import time
from collections.abc import Callable
from pathlib import Path

import ale_py
import numpy as np

from cascade.config import EnvConfig
from cascade.envs import Environment, atari, gl, make
from cascade.presets import preset
from cascade.run.machine import describe

PRESETS = (
    "atari-montezuma",
    "atari-frostbite",
    "crafter",
    "dmc-walker-state",
    "dmc-walker",
    "dmc-walker-paper",
)
LANES = 20
REPEATS = 5
PACKAGES = ("ale-py", "crafter", "numba", "dm_control", "mujoco")


def microseconds(act: Callable[[], int], seconds: float) -> dict[str, float]:
    """Processor time for each of the actions that `act` takes and counts: median and least of a few repeats."""
    found = []
    for _ in range(REPEATS):
        until, began, count = time.perf_counter() + seconds / REPEATS, time.process_time(), 0
        while time.perf_counter() < until:
            count += act()
        found.append(1e6 * (time.process_time() - began) / count)
    return {"us": round(float(np.median(found)), 1), "least_us": round(min(found), 1)}


class Player:
    """Random actions in one world, episode after episode."""

    def __init__(self, env: Environment):
        self.env = env
        self.rng = np.random.default_rng(0)
        self.seed = 0
        self.over = True

    def reset(self) -> int:
        self.seed += 1
        self.env.reset(self.seed)
        return 1

    def act(self) -> int:
        if self.over:
            self.reset()
        action = self.env.spec.action
        discrete = action.kind == "discrete"
        chosen = self.rng.integers(action.size) if discrete else self.rng.uniform(-1, 1, action.size)
        step = self.env.step(chosen)
        self.over = step.terminated or step.truncated
        return 1


def ours(config: EnvConfig, seconds: float) -> dict:
    """An action, resets where episodes end included, and a reset alone."""
    env = make(config)
    player = Player(env)
    for _ in range(20):
        player.act()  # what is loaded or compiled at the first use
    result = {
        "id": config.id,
        "observation": config.observation,
        "action_repeat": config.action_repeat,
        "action": microseconds(player.act, seconds),
        "reset": microseconds(player.reset, seconds / 4),
    }
    env.close()
    return result


def emulators_own(game: str, seconds: float) -> dict:
    """The emulator's own vector of environments, set to what ours shows."""
    envs = ale_py.AtariVectorEnv(
        game,
        LANES,
        num_threads=1,
        img_height=64,
        img_width=64,
        stack_num=1,
        frameskip=4,
        noop_max=0,
        use_fire_reset=False,
        reward_clipping=False,
        repeat_action_probability=atari.STICKY,
        full_action_space=True,
        max_num_frames_per_episode=atari.FRAMES,
    )
    rng = np.random.default_rng(0)
    envs.reset(seed=0)

    def act() -> int:
        envs.step(rng.integers(18, size=LANES))
        return LANES

    result = {"lanes": LANES, "action": microseconds(act, seconds)}
    envs.close()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    packages = {name: importlib.metadata.version(name) for name in PACKAGES}
    results: dict = {"machine": describe(), "packages": packages, "opengl": gl.choose()}
    results |= {"presets": {}, "emulators_own": {}}
    for name in PRESETS:
        results["presets"][name] = ours(preset(name).env, args.seconds)
        print(name, results["presets"][name], flush=True)
    for game in ("montezuma_revenge", "frostbite"):
        results["emulators_own"][game] = emulators_own(game, args.seconds)
        print(game, results["emulators_own"][game], flush=True)
    args.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
